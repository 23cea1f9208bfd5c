"""Does a machine have the memories, engines and ways of a plan file, as large and as fast?"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tilewright.errors import InputError, Problem
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.model import Machine
from tilewright.program.model import Engine, Route, Space
from tilewright.program.places import places_of
from tilewright.report.record import PlanRecord, route_limits

Part = Space | Engine | Route


def machine_problems(record: PlanRecord, machine: Machine) -> Iterator[Problem]:
    """Parts of a machine that a plan file describes otherwise than the machine does.

    Scratchpads may be smaller: a plan for the least memory takes no more than it needs. The sizes
    with which a plan was asked for count as the machine's.
    """
    limits = record.figures["source"].get("memory_limits", {})
    try:
        places = places_of(with_memory_limits(machine, tuple(limits.items())))
    except InputError as error:
        yield from error.problems
        return
    program = record.timetable.program
    yield from _unlike("space", program.spaces, {s.name: s for s in places.spaces}, machine)
    yield from _unlike("engine", program.engines, {e.name: e for e in places.engines}, machine)
    if dict(program.leakage) != dict(places.leakage):
        message = "leakage_pj_per_cycle of the plan file is not that of"
        yield Problem(message=f"{message} {machine.name}: {dict(places.leakage)}")
    for route in program.routes:
        # Where ops hold an engine while they stream, transfers hold theirs like a port.
        own = tuple([port for port in route.ports if port != route.engine])
        route = replace(route, ports=own)
        known = places.routes.get((route.source, route.target))
        way = f"route from {route.source} to"
        there = {} if known is None else {route.target: known}
        yield from _unlike(way, [route], there, machine)
        if known is not None:
            yield from _wrong_limits(record, route, machine)


def _wrong_limits(record: PlanRecord, route: Route, machine: Machine) -> Iterator[Problem]:
    """What the bytes of a way are said to pass, where they pass something else."""
    ends = route.source, route.target
    said = record.limits[ends]
    passed = route_limits(machine, replace(record.timetable.program, routes=(route,)))[ends]
    if said != passed:
        message = f"route from {route.source} to {route.target} of the plan file has limits {said}"
        yield Problem(message=f"{message}, and that of {machine.name} {passed}")


def _unlike(
    what: str, parts: Iterable[Part], known: Mapping[str, Part], machine: Machine
) -> Iterator[Problem]:
    for part in parts:
        name = part.target if isinstance(part, Route) else part.name
        other = known.get(name)
        if other is None:
            yield Problem(message=f"{what} {name} of the plan file: {machine.name} has none")
            continue
        if isinstance(part, Space) and isinstance(other, Space):
            other = replace(other, size_bytes=min(part.size_bytes, other.size_bytes))
        for key in part.__slots__:
            said, does = getattr(part, key), getattr(other, key)
            if said != does:
                yield Problem(
                    message=f"{what} {name} of the plan file has {_told(key, said)}, and that of "
                    f"{machine.name} {_told(key, does)}"
                )


def _told(key: str, value: Any) -> str:
    """A figure under the name that it has in the file."""
    if key == "bytes_per_cycle":
        return f"bits_per_cycle {8 * value}"
    return f"{key} {value}"

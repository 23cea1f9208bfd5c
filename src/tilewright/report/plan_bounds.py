"""The bounds in a plan file, worked out again: none may say more than network and machine do.

A smaller bound than could be is weaker, and not wrong. What holds for the tiles of a plan is worked
out from all of its tasks: those that a schedule added only make it longer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tilewright.errors import Problem
from tilewright.plan_model import PlanOptions
from tilewright.program.bounds import NetworkBounds
from tilewright.program.model import Program, Timetable
from tilewright.report.record import PlanRecord
from tilewright.schedule.bounds import Bounds, bounds
from tilewright.schedule.packed import most_live, packed

_ROUNDING = 1e-9

Place = tuple[str, ...]
"""The keys that lead to a figure."""


def overstated_bounds(record: PlanRecord, of_machine: NetworkBounds) -> Iterator[Problem]:
    """Bounds that say more than they can; nothing of tasks that start before what they wait for,
    which is a fault of its own."""
    timetable = record.timetable
    program = _in_order(timetable)
    if program is None:
        return
    of_tiles = bounds(program)
    for place, said in _figures(record.figures.get("bounds", {}), ()):
        group = place[1:] if place[0] in ("machine", "these_tiles", "these_lives") else place
        if group[0] == "peak_bytes":
            least: float | None = _peak_bytes(timetable, group[-1], said)
        elif place[0] == "machine" or group[0] in _OF_MACHINE:
            least = _of_machine(of_machine, group)
        else:
            least = _of_tiles(of_tiles, of_machine, group)
        told = f"bounds.{'.'.join(place)} of the plan file"
        if least is None:
            yield Problem(message=f"{told}: there is no such bound")
        elif said > least * (1 + _ROUNDING):
            yield Problem(message=f"{told} is {said}, and worked out again it is {least}")


_OF_MACHINE = ("roofline_cycles", "traffic_bytes", "energy_pj")


def _figures(data: Any, place: Place) -> Iterator[tuple[Place, float]]:
    """All numbers in nested objects, with the keys that lead to them."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _figures(value, (*place, key))
    else:
        yield place, data


def _of_machine(found: NetworkBounds, group: Place) -> float | None:
    """What no plan of the network can beat on the machine."""
    key = "cycles" if group == ("roofline_cycles",) else group[0]
    return getattr(found, key, None) if key in ("cycles", "traffic_bytes", "energy_pj") else None


def _of_tiles(found: Bounds, of_machine: NetworkBounds, group: Place) -> float | None:
    """What no schedule of the plan's tiles can beat in their order."""
    if group == ("cycles",):
        return max(found.cycles, found.order_cycles, of_machine.cycles)
    if group == ("path_cycles",):
        return found.path_cycles
    if group[0] == "engine_cycles" and len(group) == 2:
        return found.engine_cycles.get(group[1], 0)
    return None


def _in_order(timetable: Timetable) -> Program | None:
    """The program with tasks in the order of their starts; None if one waits for a later one."""
    program, slots = timetable.program, timetable.slots
    order = sorted(range(len(slots)), key=lambda n: (slots[n].start_cycle, slots[n].end_cycle, n))
    place = {number: at for at, number in enumerate(order)}
    waits = ((n, before) for n, task in enumerate(program.tasks) for before in task.after)
    if any(place[before] >= place[n] for n, before in waits):
        return None
    tasks = (
        replace(task, after=tuple(sorted(place[before] for before in task.after)))
        for task in (program.tasks[number] for number in order)
    )
    return replace(program, tasks=tuple(tasks))


def _peak_bytes(timetable: Timetable, memory: str, said: float) -> float:
    """What no placement of the same lives goes below; looked for only if more than what is alive
    at once is said."""
    program = timetable.program
    spaces = [space.name for space in program.spaces if space.memory == memory]
    live = max((most_live(timetable, name) for name in spaces), default=0)
    if said <= live:
        return live
    _, fills = packed(timetable, PlanOptions().packing)
    return max((fills[name].bound_bytes for name in spaces if name in fills), default=0)

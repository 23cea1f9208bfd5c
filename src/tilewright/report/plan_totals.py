"""Do the figures in a plan file go together: totals and tasks, tasks and their mappings' costs?"""

from collections.abc import Iterator, Mapping
from math import ceil, fsum, isclose
from typing import Any

from tilewright.errors import Problem
from tilewright.network.counts import macs
from tilewright.network.graph import Network
from tilewright.program.model import Task, Timetable
from tilewright.report.record import PlanRecord, TileFigures

Totals = Mapping[str, Any]
"""By key a number, or numbers by memory, as in `totals` of a plan file."""


_ROUNDING = 1e-9
"""Energies and cycles of mappings are sums of floats, in any order."""


def total_problems(record: PlanRecord, network: Network | None = None) -> Iterator[Problem]:
    """Totals that are not what the plan comes to, and tasks that are better than their mappings.

    Also bounds that the plan itself goes below, and with a network, figures of other ops.
    """
    claimed = record.figures.get("totals")
    if not isinstance(claimed, dict):
        yield Problem(message="the plan file has no totals")
        return
    for key, value in totals_of(record.timetable).items():
        if not _are_alike(claimed.get(key), value):
            yield Problem(
                message=f"totals.{key} of the plan file is {claimed.get(key)}, and its tasks and "
                f"buffers come to {value}"
            )
    yield from _wrong_counts(record)
    yield from bound_problems(record.figures.get("bounds", {}), record.timetable)
    for task in record.timetable.program.tasks:
        if task.mapping is not None:
            yield from _too_cheap(task, record.tiles[task.mapping])
    if network is not None:
        yield from _of_another_network(record, network)


def _of_another_network(record: PlanRecord, network: Network) -> Iterator[Problem]:
    """Tensors and ops that the network has otherwise."""
    tensors = {t.name: (t.shape, t.bits, t.role) for t in network.tensors}
    for tensor in record.figures["tensors"]:
        claimed = tuple(tensor["shape"]), tensor["bits"], tensor["role"]
        known = tensors.get(tensor["name"])
        if claimed != known:
            message = f"tensor {tensor['name']} of the plan file is {claimed}, not {known}"
            yield Problem(message=message)
    ops = {op.name: op for op in network.ops}
    for figures in record.ops:
        op = ops.get(figures.name)
        if op is not None:
            said, does = (dict(figures.dims), figures.macs), (dict(op.dims), macs(op, network))
            if said != does:
                message = f"op {op.name} of the plan file has loops and products {said}, not {does}"
                yield Problem(message=message)


def _wrong_counts(record: PlanRecord) -> Iterator[Problem]:
    program = record.timetable.program
    for key, count in (("tasks", len(program.tasks)), ("buffers", len(program.buffers))):
        said = record.figures.get(key, count)
        if said != count:
            yield Problem(message=f"{key} of the plan file is {said}, and there are {count}")


def bound_problems(bounds: Mapping[str, Any], timetable: Timetable) -> Iterator[Problem]:
    """Bounds above what the plan takes: no plan goes below a bound."""
    totals, program = totals_of(timetable), timetable.program
    cycles = totals["cycles"]
    ends = {space.memory for space in program.spaces if space.kind != "scratchpad"}
    moved = sum(sum(totals["traffic_bytes"].get(end, {}).values()) for end in ends)
    taken = {
        **dict.fromkeys(("cycles", "path_cycles", "roofline_cycles"), cycles),
        "traffic_bytes": moved,
        "energy_pj": totals["energy_pj"] * (1 + _ROUNDING),
    }
    for group in ("", "machine", "these_tiles", "these_lives"):
        claimed = bounds.get(group, {}) if group else bounds
        found = [(key, claimed.get(key, 0), value) for key, value in taken.items()]
        works = claimed.get("engine_cycles", {})
        found += [(f"engine_cycles.{engine}", least, cycles) for engine, least in works.items()]
        found += [
            (f"peak_bytes.{memory}", least, totals["peak_bytes"].get(memory, least))
            for memory, least in claimed.get("peak_bytes", {}).items()
        ]
        place = f"bounds.{group}." if group else "bounds."
        for key, least, value in found:
            if not least <= value:
                yield Problem(
                    message=f"{place}{key} of the plan is {least}, and the plan takes {value}"
                )


def _too_cheap(task: Task, tile: TileFigures) -> Iterator[Problem]:
    least = ceil(tile.cycles * (1 - _ROUNDING))
    if task.cycles < least:
        message = f"task {task.name} takes {task.cycles} cycles, and its mapping takes {least}"
        yield Problem(message=message)
    spent_pj, least_pj = fsum(c.energy_pj for c in task.charges), fsum(e[2] for e in tile.energy_pj)
    if spent_pj < least_pj * (1 - _ROUNDING):
        yield Problem(
            message=f"task {task.name} is charged {spent_pj:g} pJ, and its mapping costs "
            f"{least_pj:g} pJ"
        )


def totals_of(timetable: Timetable) -> dict[str, Any]:
    """Cycles, energy, traffic and memory, added up from tasks and buffers."""
    energies: dict[str, list[float]] = {}
    traffic: dict[str, dict[str, int]] = {}
    for task in timetable.program.tasks:
        for charge in task.charges:
            energies.setdefault(charge.memory, []).append(charge.energy_pj)
            if charge.memory not in ("array", "vector"):
                moved = traffic.setdefault(charge.memory, {"read": 0, "write": 0})
                moved["read"] += charge.read_bytes
                moved["write"] += charge.write_bytes
    for memory, lost in timetable.program.leakage_pj(timetable.cycles).items():
        energies.setdefault(memory, []).append(lost)
    by_memory = {memory: fsum(parts) for memory, parts in energies.items()}
    return {
        "cycles": timetable.cycles,
        "energy_pj": fsum(by_memory.values()),
        "energy_pj_by_memory": by_memory,
        "traffic_bytes": traffic,
        "peak_bytes": _peak_bytes(timetable),
    }


def _peak_bytes(timetable: Timetable) -> dict[str, int]:
    """By memory the highest address of a buffer that somebody touches, or that is a result."""
    program = timetable.program
    accesses = [a for task in program.tasks for a in (*task.reads, *task.writes)]
    used = [*(access.buffer for access in accesses), *program.results]
    most = {space.memory: 0 for space in program.spaces if space.kind in ("scratchpad", "external")}
    for root in dict.fromkeys(map(program.root, used)):
        buffer = program.buffers[root]
        memory = program.space[buffer.space].memory
        if memory in most:
            top = timetable.addresses[root] + buffer.size_bytes
            most[memory] = max(most[memory], top)
    return most


def _are_alike(claimed: Any, found: Any) -> bool:
    """Whether numbers are the same, energies but for how they were added up."""
    if isinstance(found, dict):
        return (
            isinstance(claimed, dict)
            and claimed.keys() == found.keys()
            and all(_are_alike(claimed[key], value) for key, value in found.items())
        )
    if isinstance(found, float):
        return isinstance(claimed, int | float) and isclose(claimed, found, rel_tol=_ROUNDING)
    return bool(claimed == found)

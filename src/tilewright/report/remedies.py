"""What would make a plan shorter: it is tried, one thing of the machine at a time.

The plan's tasks are run again in their order with that thing improved. What such a run cannot show
is what another plan would make of the better machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from tilewright.planner import Plan
from tilewright.program.model import Task, Timetable
from tilewright.replay.timing import Replay, replay_of, start_cycles
from tilewright.report.lives import is_core, purposes
from tilewright.report.record import PlanRecord

MOST_EXPLAINED = 5_000
"""Tasks above which a plan is explained only when asked to: every remedy is a run of its own."""
_FASTER = 2
"""By how much one thing is made better at a time."""
_NEARLY_ALL = 0.9
"""Of the cycles of a task, from which on what streams decides how long it takes."""
_WORTHWHILE = 0.01
"""Gains below this share of the cycles are not worth a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Something to improve, and the cycles that the plan's tasks would then take in their order."""

    what: str
    name: str
    """The engine, port or memory."""
    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedies:
    """All that can be improved; `replay_cycles` is the plan with every task as early as can be."""

    replay_cycles: int
    best_first: tuple[Remedy, ...]

    @property
    def bottleneck(self) -> Remedy | None:
        """What to improve first; None if nothing alone would help."""
        least = self.replay_cycles * (1 - _WORTHWHILE)
        best = self.best_first[0] if self.best_first else None
        return best if best is not None and best.cycles <= least else None


def remedies(record: PlanRecord) -> Remedies:
    """Everything that can be improved, one at a time, with the cycles then."""
    parts = _parts_of(record)
    replay_cycles = _last_end(parts, parts.cycles)
    found = [
        *_faster_units(record, parts),
        *_wider_ways(record, parts, replay_cycles),
        *_shorter_setups(record, parts),
        *_more_room(record, parts),
    ]
    return Remedies(
        replay_cycles=replay_cycles,
        best_first=tuple(sorted(found, key=lambda remedy: (remedy.cycles, remedy.what))),
    )


def remedies_of(plan: Plan) -> Remedies | None:
    """What would help a plan; None where it has too many tasks to say in passing."""
    return None if len(plan.program.tasks) > MOST_EXPLAINED else remedies(plan.record)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """A plan taken apart once for all trials; tasks by their numbers."""

    replay: Replay
    cycles: Sequence[int]
    """By task."""
    by_engine: Mapping[str, Sequence[int]]
    by_mapping: Mapping[int, Sequence[int]]
    by_route: Mapping[tuple[str, str], Sequence[int]]
    """Transfers by where they come from and where they go."""
    ports: Sequence[str]
    """Ports that transfers hold."""


def _parts_of(record: PlanRecord) -> _Parts:
    program = record.timetable.program
    by_engine: dict[str, list[int]] = {}
    by_mapping: dict[int, list[int]] = {}
    by_route: dict[tuple[str, str], list[int]] = {}
    for number, task in enumerate(program.tasks):
        by_engine.setdefault(task.engine, []).append(number)
        if task.mapping is not None:
            by_mapping.setdefault(task.mapping, []).append(number)
        elif task.kind != "compute" and task.reads and task.writes:
            source = program.buffers[task.reads[0].buffer].space
            target = program.buffers[task.writes[0].buffer].space
            by_route.setdefault((source, target), []).append(number)
    return _Parts(
        replay=replay_of(record.timetable),
        cycles=[task.cycles for task in program.tasks],
        by_engine=by_engine,
        by_mapping=by_mapping,
        by_route=by_route,
        ports=list(dict.fromkeys(port for task in program.tasks for port in task.ports)),
    )


def _last_end(
    parts: _Parts,
    cycles: Sequence[int],
    setup_cycles: Sequence[int] | None = None,
    lanes: Mapping[str, int] | None = None,
) -> int:
    """The end of the last task if tasks take other cycles, or ports have other lanes."""
    replay = parts.replay
    setups = map(min, replay.setup_cycles if setup_cycles is None else setup_cycles, cycles)
    starts = start_cycles(replay, cycles, list(setups), replay.lanes if lanes is None else lanes)
    return max(map(int.__add__, starts, cycles), default=0)


def _faster_units(record: PlanRecord, parts: _Parts) -> Iterator[Remedy]:
    """Arrays and vector units that take half the cycles for what is their own work."""
    tasks = record.timetable.program.tasks
    for what, name, is_vector in (("arrays", "array", False), ("vector units", "vector", True)):
        concerned = [
            engine
            for engine in parts.by_engine
            if is_core(engine) and engine.endswith(".vector") == is_vector
        ]
        if concerned:
            cycles = list(parts.cycles)
            for engine in concerned:
                for number in parts.by_engine[engine]:
                    cycles[number] = _with_faster_array(record, tasks[number])
            text = f"{what} twice as fast"
            yield Remedy(what=text, name=name, cycles=_last_end(parts, cycles))


def _with_faster_array(record: PlanRecord, task: Task) -> int:
    if task.mapping is None:
        _, coming = _streaming(record, task)
        return max(ceil(task.cycles / _FASTER), min(coming, task.cycles))
    tile = record.tiles[task.mapping]
    return min(task.cycles, ceil(task.cycles - tile.cycles + tile.faster_cycles))


def _streaming(record: PlanRecord, task: Task) -> tuple[str, int]:
    """The port through which a task without a mapping reads constants while it is at work, and the
    cycles that they take to come; no port and none if it reads none."""
    if task.kind != "compute" or not task.ports or task.mapping is not None:
        return "", 0
    program, port = record.timetable.program, task.ports[0]
    widths = [bits for limits in record.limits.values() for name, bits in limits if name == port]
    outside = {space.memory for space in program.spaces if space.kind == "external"}
    read = sum(charge.read_bytes for charge in task.charges if charge.memory in outside)
    return (port, -(-8 * read // widths[0])) if widths else ("", 0)


def _wider_ways(record: PlanRecord, parts: _Parts, replay_cycles: int) -> Iterator[Remedy]:
    """What bytes pass: DMA engines, ports of memories on and off the chip, sources and sinks."""
    passed = [name for names in record.limits.values() for name, _ in names]
    inside = [port for tile in record.tiles for port, _ in tile.wider_cycles]
    for name in dict.fromkeys([*passed, *inside]):
        cycles = _with_wider_way(record, parts, name)
        # A wider port carries a transfer faster, or more of them at a time, as engines allow.
        found = [_last_end(parts, cycles)] if cycles != parts.cycles else []
        if name in parts.replay.scarce:
            lanes = {**parts.replay.lanes, name: _FASTER * parts.replay.lanes[name]}
            found.append(_last_end(parts, parts.cycles, lanes=lanes))
        elif name in parts.ports:
            found.append(replay_cycles)
        if found:
            yield Remedy(what=f"{name} twice as wide", name=name, cycles=min(found))


def _with_wider_way(record: PlanRecord, parts: _Parts, name: str) -> list[int]:
    """The cycles of tasks with a way twice as wide."""
    cycles = list(parts.cycles)
    for mapping, numbers in parts.by_mapping.items():
        tile = record.tiles[mapping]
        wider = dict(tile.wider_cycles).get(name)
        if wider is not None:
            tile_cycles = tile.cycles
            for number in numbers:
                cycles[number] = ceil(cycles[number] - tile_cycles + wider)
    for number, task in enumerate(record.timetable.program.tasks):
        port, coming = _streaming(record, task)
        if port == name and coming >= _NEARLY_ALL * task.cycles:
            cycles[number] -= coming - coming // _FASTER
    for route, numbers in parts.by_route.items():
        limits = record.limits.get(route, ())
        now = min((bits for _, bits in limits), default=0)
        then = min((bits * _FASTER if way == name else bits for way, bits in limits), default=0)
        if then > now:
            for number in numbers:
                setup = parts.replay.setup_cycles[number]
                cycles[number] = setup + -(-(cycles[number] - setup) * now // then)
    return cycles


def _shorter_setups(record: PlanRecord, parts: _Parts) -> Iterator[Remedy]:
    tasks = record.timetable.program.tasks
    for engine in dict.fromkeys(task.engine for task in tasks if task.setup_cycles):
        cycles, setups = list(parts.cycles), list(parts.replay.setup_cycles)
        for number in parts.by_engine[engine]:
            spared = setups[number] // _FASTER
            cycles[number] -= spared
            setups[number] -= spared
        text = f"half the set-up cycles of {engine}"
        name = f"{engine} set-up"
        yield Remedy(what=text, name=name, cycles=_last_end(parts, cycles, setups))


def _more_room(record: PlanRecord, parts: _Parts) -> Iterator[Remedy]:
    """Scratchpads with room for all: nobody waits for an address, nothing is loaded again."""
    timetable = record.timetable
    why = purposes(timetable)
    pads = dict.fromkeys(s.memory for s in timetable.program.spaces if s.kind == "scratchpad")
    for memory in pads:
        inside = _touching(timetable, memory)
        spared = [
            0 if inside[number] and why[number] in ("again", "spill") else cycles
            for number, cycles in enumerate(parts.cycles)
        ]
        edges = tuple((first, second) for first, second in timetable.edges if not inside[second])
        if edges == timetable.edges and spared == parts.cycles:
            continue
        free = replace(parts, replay=replay_of(replace(timetable, edges=edges)))
        text = f"room in {memory} for everything at once"
        yield Remedy(what=text, name=memory, cycles=_last_end(free, spared))


def _touching(timetable: Timetable, memory: str) -> list[bool]:
    """By task whether it reads or writes a memory."""
    program = timetable.program
    spaces = [space.name for space in program.spaces if space.memory == memory]
    lies_there = [buffer.space in spaces for buffer in program.buffers]
    return [
        any(lies_there[access.buffer] for access in task.reads)
        or any(lies_there[access.buffer] for access in task.writes)
        for task in program.tasks
    ]

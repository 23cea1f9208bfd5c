"""Why a plan takes as long as it does: its critical path, its idle cycles, and what would help.

What would help is tried: the plan's tasks are run again in their order with one thing of the
machine improved. What such a run cannot show is what another plan would make of the better machine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from tilewright.errors import InputError, Problem
from tilewright.planner import Plan
from tilewright.program.model import Slot, Task, Timetable
from tilewright.replay.timing import timed_slots
from tilewright.report.cascades import cascade_json
from tilewright.report.lives import is_core, purposes
from tilewright.report.op_rows import OpRow, op_rows, transfer_owners
from tilewright.report.record import PlanRecord, record_of
from tilewright.report.tables import View, heading, table
from tilewright.report.waits import Reason, idle_cycles, waits

MOST_EXPLAINED = 5_000
"""Tasks above which a plan is explained only when asked to: every remedy is a run of its own."""
_FASTER = 2
"""By how much one thing is made better at a time."""
_WORTHWHILE = 0.01
"""Gains below this share of the cycles are not worth a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A stretch of the critical path: tasks of one engine one after the other."""

    engine: str
    task: int
    """The first of them, by number."""
    first: str
    last: str
    tasks: int
    start_cycle: int
    end_cycle: int
    reason: Reason
    """Why the first of them did not start earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Something to improve, and the cycles that the plan's tasks would then take in their order."""

    what: str
    name: str
    """The engine, port or memory."""
    cycles: int


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The answers. `replay_cycles` is the plan with every task as early as it can be."""

    record: PlanRecord
    replay_cycles: int
    path: tuple[Step, ...]
    path_cycles: tuple[tuple[str, int], ...]
    """Cycles of the critical path by engine."""
    idle: tuple[tuple[str, int], ...]
    """Idle cycles of arrays and vector units by cause, over all of them."""
    remedies: tuple[Remedy, ...]
    """The best first."""
    row: OpRow | None

    @property
    def bottleneck(self) -> Remedy | None:
        """What to improve first; None if nothing alone would help."""
        least = self.replay_cycles * (1 - _WORTHWHILE)
        return self.remedies[0] if self.remedies and self.remedies[0].cycles <= least else None


def explain(record: PlanRecord, op: str = "") -> Explanation:
    """Why a plan, or one of its ops, takes as long as it does.

    Raises:
        InputError: the plan has no such op.
    """
    timetable = record.timetable
    row = _row(record, op) if op else None
    slots = timed_slots(timetable)
    replay_cycles = max((slot.end_cycle for slot in slots), default=0)
    path = _critical_path(timetable, slots)
    if op:
        owners = transfer_owners(record)
        path = [(task, reason) for task, reason in path if owners[task] == op]
    causes = dict(row.idle_causes) if row else _idle(timetable)
    by_engine: dict[str, int] = {}
    for task, _ in path:
        engine = timetable.program.tasks[task].engine
        by_engine[engine] = (
            by_engine.get(engine, 0) + slots[task].end_cycle - slots[task].start_cycle
        )
    return Explanation(
        record=record,
        replay_cycles=replay_cycles,
        path=tuple(_steps(timetable, slots, path)),
        path_cycles=_largest_first(by_engine),
        idle=_largest_first(causes),
        remedies=() if op else tuple(remedies(record)),
        row=row,
    )


def explanation_of(plan: Plan) -> Explanation | None:
    """Why a plan takes as long as it does; None where it has too many tasks to say in passing."""
    if len(plan.program.tasks) > MOST_EXPLAINED:
        return None
    return explain(record_of(plan, {"network": plan.network.name, "machine": plan.machine.name}))


def _row(record: PlanRecord, op: str) -> OpRow:
    rows = op_rows(record, None)
    for row in rows:
        if op == row.name or op in row.fused:
            return row
    names = ", ".join(row.name for row in rows[:8])
    raise InputError(Problem(message=f"the plan has no op {op!r}", hint=f"it has {names}, …"))


def _idle(timetable: Timetable) -> dict[str, int]:
    causes: dict[str, int] = {}
    for idle in idle_cycles(timetable):
        causes[idle.cause] = causes.get(idle.cause, 0) + idle.cycles
    return causes


def _largest_first(amounts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(amounts.items(), key=lambda item: (-item[1], item[0])))


def _critical_path(timetable: Timetable, slots: Sequence[Slot]) -> list[tuple[int, Reason]]:
    """Tasks from the first to the one that ends last, each held up by the one before it."""
    if not slots:
        return []
    found = waits(timetable, slots)
    task = max(range(len(slots)), key=lambda n: (slots[n].end_cycle, n))
    path: list[tuple[int, Reason]] = []
    while task >= 0 and len(path) <= len(slots):
        path.append((task, found[task].reason))
        task = found[task].task
    return path[::-1]


def _steps(
    timetable: Timetable, slots: Sequence[Slot], path: Sequence[tuple[int, Reason]]
) -> Iterator[Step]:
    tasks = timetable.program.tasks
    groups: list[list[tuple[int, Reason]]] = []
    for task, reason in path:
        if groups and tasks[groups[-1][-1][0]].engine == tasks[task].engine:
            groups[-1].append((task, reason))
        else:
            groups.append([(task, reason)])
    for group in groups:
        first, last = group[0][0], group[-1][0]
        yield Step(
            engine=tasks[first].engine,
            task=first,
            first=tasks[first].name,
            last=tasks[last].name,
            tasks=len(group),
            start_cycle=slots[first].start_cycle,
            end_cycle=slots[last].end_cycle,
            reason=group[0][1],
        )


def remedies(record: PlanRecord) -> list[Remedy]:
    """Everything that can be improved, one at a time, with the cycles then; the best first."""
    found = [
        *_faster_units(record),
        *_wider_ways(record),
        *_shorter_setups(record),
        *_more_room(record),
    ]
    return sorted(found, key=lambda remedy: (remedy.cycles, remedy.what))


def _replayed(timetable: Timetable, cycles: Sequence[int]) -> int:
    """The end of the last task if tasks take other cycles."""
    tasks = tuple(
        replace(task, cycles=new, setup_cycles=min(task.setup_cycles, new))
        for task, new in zip(timetable.program.tasks, cycles, strict=True)
    )
    changed = replace(timetable, program=replace(timetable.program, tasks=tasks))
    return max((slot.end_cycle for slot in timed_slots(changed)), default=0)


def _faster_units(record: PlanRecord) -> Iterator[Remedy]:
    """Arrays and vector units that take half the cycles for what is their own work."""
    tasks = record.timetable.program.tasks
    for what, is_vector in (("arrays", False), ("vector units", True)):
        concerned = [
            is_core(task.engine) and task.engine.endswith(".vector") == is_vector for task in tasks
        ]
        if any(concerned):
            cycles = [
                _with_faster_array(record, task) if hit else task.cycles
                for task, hit in zip(tasks, concerned, strict=True)
            ]
            name = "vector" if is_vector else "array"
            text = f"{what} twice as fast"
            yield Remedy(what=text, name=name, cycles=_replayed(record.timetable, cycles))


def _with_faster_array(record: PlanRecord, task: Task) -> int:
    if task.mapping is None:
        return ceil(task.cycles / _FASTER)
    tile = record.tiles[task.mapping]
    return min(task.cycles, ceil(task.cycles - tile.cycles + tile.faster_cycles))


def _wider_ways(record: PlanRecord) -> Iterator[Remedy]:
    """What bytes pass: DMA engines, ports of memories on and off the chip, sources and sinks."""
    passed = [name for names in record.limits.values() for name, _ in names]
    inside = [port for tile in record.tiles for port, _ in tile.wider_cycles]
    tasks = record.timetable.program.tasks
    before = [task.cycles for task in tasks]
    for name in dict.fromkeys([*passed, *inside]):
        cycles = [_with_wider_way(record, task, name) for task in tasks]
        # A wider port carries a transfer faster, or more of them at a time, as engines allow.
        shared = _with_more_lanes(record.timetable, name)
        found = [_replayed(record.timetable, cycles)] if cycles != before else []
        found += [_replayed(shared, before)] if shared is not None else []
        if found:
            yield Remedy(what=f"{name} twice as wide", name=name, cycles=min(found))


def _with_wider_way(record: PlanRecord, task: Task, name: str) -> int:
    if task.mapping is None:
        return _with_faster_transfer(record, task, name)
    tile = record.tiles[task.mapping]
    return ceil(task.cycles - tile.cycles + dict(tile.wider_cycles).get(name, tile.cycles))


def _with_more_lanes(timetable: Timetable, port: str) -> Timetable | None:
    """The timetable with twice the lanes of a port; None if it is no port that transfers hold."""
    program = timetable.program
    if not any(port in task.ports for task in program.tasks):
        return None
    engines = tuple(
        replace(engine, count=_FASTER * engine.count) if engine.name == port else engine
        for engine in program.engines
    )
    return replace(timetable, program=replace(program, engines=engines))


def _with_faster_transfer(record: PlanRecord, task: Task, name: str) -> int:
    route = _route(record, task)
    if route is None:
        return task.cycles
    passed = record.limits[route]
    now = min((bits for _, bits in passed), default=0)
    then = min((bits * _FASTER if way == name else bits for way, bits in passed), default=0)
    flowing = task.cycles - task.setup_cycles
    return task.setup_cycles + (-(-flowing * now // then) if then else flowing)


def _route(record: PlanRecord, task: Task) -> tuple[str, str] | None:
    if task.kind == "compute" or not task.reads or not task.writes:
        return None
    buffers = record.timetable.program.buffers
    key = buffers[task.reads[0].buffer].space, buffers[task.writes[0].buffer].space
    return key if key in record.limits else None


def _shorter_setups(record: PlanRecord) -> Iterator[Remedy]:
    tasks = record.timetable.program.tasks
    for engine in dict.fromkeys(task.engine for task in tasks if task.setup_cycles):
        cycles = [
            task.cycles - task.setup_cycles // _FASTER if task.engine == engine else task.cycles
            for task in tasks
        ]
        text = f"half the set-up cycles of {engine}"
        name = f"{engine} set-up"
        yield Remedy(what=text, name=name, cycles=_with_setups(record, cycles, engine))


def _with_setups(record: PlanRecord, cycles: Sequence[int], engine: str) -> int:
    program = record.timetable.program
    tasks = tuple(
        replace(task, setup_cycles=task.setup_cycles - task.setup_cycles // _FASTER)
        if task.engine == engine
        else task
        for task in program.tasks
    )
    changed = replace(record.timetable, program=replace(program, tasks=tasks))
    return _replayed(changed, cycles)


def _more_room(record: PlanRecord) -> Iterator[Remedy]:
    """Scratchpads with room for all: nobody waits for an address, nothing is loaded again."""
    timetable = record.timetable
    tasks = timetable.program.tasks
    why = purposes(timetable)
    pads = dict.fromkeys(s.memory for s in timetable.program.spaces if s.kind == "scratchpad")
    for memory in pads:
        inside = [_touches(timetable, task, memory) for task in tasks]
        spared = [
            0 if inside[n] and why[n] in ("again", "spill") else task.cycles
            for n, task in enumerate(tasks)
        ]
        edges = tuple((first, second) for first, second in timetable.edges if not inside[second])
        if edges == timetable.edges and spared == [task.cycles for task in tasks]:
            continue
        text = f"room in {memory} for everything at once"
        free = replace(timetable, edges=edges)
        yield Remedy(what=text, name=memory, cycles=_replayed(free, spared))


def _touches(timetable: Timetable, task: Task, memory: str) -> bool:
    program = timetable.program
    return any(
        program.space[program.buffers[access.buffer].space].memory == memory
        for access in (*task.reads, *task.writes)
    )


def explanation_json(found: Explanation) -> dict[str, Any]:
    """An explanation for `--json`."""
    best = found.bottleneck
    return {
        "plan": found.record.title,
        "op": found.row.name if found.row else None,
        "cascade": cascade_json(found.row.cascade) if found.row and found.row.cascade else None,
        "cycles": found.record.timetable.cycles,
        "replay_cycles": found.replay_cycles,
        "bottleneck": best.name if best else None,
        "critical_path": [
            {
                "engine": step.engine,
                "task": step.task,
                "first": step.first,
                "last": step.last,
                "tasks": step.tasks,
                "start_cycle": step.start_cycle,
                "end_cycle": step.end_cycle,
                "reason": step.reason,
            }
            for step in found.path
        ],
        "critical_path_cycles": dict(found.path_cycles),
        "idle_cycles": dict(found.idle),
        "remedies": [{"what": r.what, "name": r.name, "cycles": r.cycles} for r in found.remedies],
    }


_REASONS = {
    "engine": "the engine was busy",
    "data": "its data came then",
    "room": "its address was in use",
    "port": "the port was in use",
    "choice": "",
}


def explanation_view(found: Explanation) -> View:
    """An explanation in words and tables."""
    cycles = found.record.timetable.cycles
    view = [heading(_title(found), list(_facts(found, cycles)))]
    path = table("engine", "from", ">tasks", ">start", ">end", ">share", "?not earlier because")
    for step in longest_steps(found.path):
        share = (step.end_cycle - step.start_cycle) / max(1, found.replay_cycles)
        path.add_row(
            step.engine,
            step.first if step.tasks == 1 else f"{step.first} … {step.last}",
            f"{step.tasks:,}",
            f"{step.start_cycle:,}",
            f"{step.end_cycle:,}",
            f"{share:.0%}",
            _REASONS[step.reason],
        )
    idle = table("idle because of", ">cycles")
    for cause, amount in found.idle:
        idle.add_row(cause, f"{amount:,}")
    better = table("what would help", ">cycles then", ">gain")
    for remedy in found.remedies:
        gain = 1 - remedy.cycles / max(1, found.replay_cycles)
        better.add_row(remedy.what, f"{remedy.cycles:,}", f"{max(0.0, gain):.1%}")
    return [*view, *(grid for grid in (path, idle, better) if grid.rows)]


def _title(found: Explanation) -> str:
    return f"{found.row.name} of {found.record.title}" if found.row else found.record.title


def _facts(found: Explanation, cycles: int) -> Iterator[tuple[str, str]]:
    if found.row:
        row = found.row
        yield "cycles", f"{row.busy_cycles:,} in {row.tiles} tiles, {row.idle_cycles:,} waiting"
        yield "bound by", row.bound_by
        if row.cascade is not None:
            yield "cascade" if len(row.cascade.ops) > 1 else "runs", row.cascade.text
    else:
        yield "cycles", f"{cycles:,}"
        if found.replay_cycles < cycles:
            yield "", f"{found.replay_cycles:,} if every task starts as early as it can"
        best = found.bottleneck
        if best is None:
            yield "bottleneck", "none: no single improvement gives 1 % or more"
        else:
            gain = 1 - best.cycles / max(1, found.replay_cycles)
            text = f"{best.what} would take {best.cycles:,} cycles, {gain:.1%} fewer"
            yield "bottleneck", f"{best.name}: {text}"
    shares = ", ".join(f"{engine} {amount:,}" for engine, amount in found.path_cycles[:4])
    yield "critical path", shares or "does not pass through it"


def longest_steps(steps: Sequence[Step], most: int = 20) -> list[Step]:
    """At most so many steps, the longest, in their order."""
    longest = sorted(steps, key=lambda step: (step.start_cycle - step.end_cycle, step.start_cycle))
    return sorted(longest[:most], key=lambda step: (step.start_cycle, step.engine))

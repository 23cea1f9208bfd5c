"""Why a plan takes as long as it does: its critical path, its idle cycles, and what would help."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.errors import InputError, Problem
from tilewright.planner import Plan
from tilewright.program.model import Slot, Timetable
from tilewright.replay.timing import timed_slots
from tilewright.report.cascades import cascade_json
from tilewright.report.op_rows import OpRow, op_rows, transfer_owners
from tilewright.report.record import PlanRecord
from tilewright.report.remedies import Remedies, Remedy, remedies
from tilewright.report.tables import View, heading, table
from tilewright.report.together import (
    OpsTogether,
    together_json,
    together_table,
    together_text,
)
from tilewright.report.waits import Reason, idle_cycles, waits


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
    helpful: Remedies | None
    """What would help; None for a single op."""
    row: OpRow | None

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What would help, the best first."""
        return self.helpful.best_first if self.helpful else ()

    @property
    def bottleneck(self) -> Remedy | None:
        """What to improve first; None if nothing alone would help."""
        return self.helpful.bottleneck if self.helpful else None


def explain(record: PlanRecord, op: str = "") -> Explanation:
    """Why a plan, or one of its ops, takes as long as it does.

    Raises:
        InputError: the plan has no such op.
    """
    return _explained(record, op, None if op else remedies(record))


def explanation_of(plan: Plan) -> Explanation | None:
    """Why a plan takes as long as it does; None where it has too many tasks to say in passing."""
    return None if plan.remedies is None else _explained(plan.record, "", plan.remedies)


def _explained(record: PlanRecord, op: str, helpful: Remedies | None) -> Explanation:
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
        helpful=helpful,
        row=row,
    )


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


def explanation_json(found: Explanation) -> dict[str, Any]:
    """An explanation for `--json`."""
    best = found.bottleneck
    return {
        "plan": found.record.title,
        "op": found.row.name if found.row else None,
        "cascade": cascade_json(found.row.cascade) if found.row and found.row.cascade else None,
        "together": together_json(_together(found)),
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
    together = together_table(_together(found))
    return [*view, *(grid for grid in (path, idle, better, together) if grid.rows)]


def _together(found: Explanation) -> list[OpsTogether]:
    """What runs together in the plan, or with the op that is asked for."""
    row = found.row
    return [group for group in found.record.together if row is None or row.name in group.ops]


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
        ops = found.record.ops
        products = sum(op.macs for op in ops), found.record.macs_twice
        told = together_text(found.record.together, len(ops), *products)
        if told:
            yield "together", told
    shares = ", ".join(f"{engine} {amount:,}" for engine, amount in found.path_cycles[:4])
    yield "critical path", shares or "does not pass through it"


def longest_steps(steps: Sequence[Step], most: int = 20) -> list[Step]:
    """At most so many steps, the longest, in their order."""
    longest = sorted(steps, key=lambda step: (step.start_cycle - step.end_cycle, step.start_cycle))
    return sorted(longest[:most], key=lambda step: (step.start_cycle, step.engine))

"""Does every task that computes say what, run where that can be computed, and fuse what it may?"""

from collections.abc import Iterator, Sequence

from tilewright.errors import Problem
from tilewright.network.graph import Network, Op
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.model import Box, Task, Timetable
from tilewright.program.strips import is_repeated, strip_of
from tilewright.replay.check_transfers import CORE

_Results = tuple[str, int, Box]
"""Of which op and which strip, and the ranges of the loops that walk them."""


def op_problems(
    timetable: Timetable, network: Network, tiles: Sequence[Box | None]
) -> Iterator[Problem]:
    """Tasks without an op, computing by transfers, fused ops that come twice or too early."""
    ops = {op.name: op for op in network.ops}
    for task in timetable.program.tasks:
        op = ops.get(task.op)
        if task.kind == "compute" and not task.op:
            yield Problem(message=f"task {task.name} computes, and does not say which op")
        if op is not None and KIND_CLASSES[op.kind] != "move":
            yield from _misplaced(task, op)
        if len(task.fused) > len(dict.fromkeys(task.fused)):
            yield Problem(message=f"task {task.name} applies {', '.join(task.fused)}: one op twice")
    yield from _too_early(timetable, ops, tiles)


def _misplaced(task: Task, op: Op) -> Iterator[Problem]:
    if task.kind != "compute":
        yield Problem(
            message=f"task {task.name}, a {task.kind}, does {op.name}, a {op.kind}: transfers "
            "only move elements"
        )
    elif not CORE.match(task.engine):
        yield Problem(
            message=f"task {task.name} on {task.engine} does {op.name}, a {op.kind}, and only a "
            "core computes"
        )


def _too_early(
    timetable: Timetable, ops: dict[str, Op], tiles: Sequence[Box | None]
) -> Iterator[Problem]:
    """Ops that are applied to sums to which a later task of the same results adds."""
    last: dict[_Results, int] = {}
    adding: list[tuple[int, _Results]] = []
    slots, tasks = timetable.slots, timetable.program.tasks
    fusing = {task.op: None for task in tasks if task.fused}
    loops = {name: _result_loops(ops[name]) for name in fusing if name in ops}
    for number, (task, tile) in enumerate(zip(tasks, tiles, strict=True)):
        if task.op in loops and tile is not None and not is_repeated(task):
            key = task.op, strip_of(task), tuple([tile[loop] for loop in loops[task.op]])
            adding += [(number, key)] if task.fused else []
            known = last.setdefault(key, number)
            if slots[number].start_cycle > slots[known].start_cycle:
                last[key] = number
    for number, key in adding:
        if last[key] != number:
            first, later = (timetable.program.tasks[n] for n in (number, last[key]))
            yield Problem(
                message=f"task {first.name} applies {', '.join(first.fused)} to sums to which "
                f"{later.name} adds"
            )


def _result_loops(op: Op) -> list[int]:
    """The loops, by number, along which an op's first result has an extent."""
    index = op.outputs[0].index
    kept = {dim for axis in index or () for dim, _ in axis.terms}
    return [number for number, (dim, _) in enumerate(op.dims) if dim in kept]

"""Does every task that computes say what, run where that can be computed, and fuse what it may?"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from tilewright.errors import Problem
from tilewright.network.graph import Network, Op
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.model import Box, Task, Timetable
from tilewright.replay.check_boxes import boxes_at
from tilewright.replay.check_kinds import Kinds
from tilewright.replay.check_tiles import Tiles
from tilewright.replay.check_transfers import CORE

_Results = tuple[str, int, Box]
"""Of which op and which strip, and the ranges of the loops that walk them."""


def op_problems(
    timetable: Timetable,
    network: Network,
    kinds: Kinds,
    tiles: Tiles,
    sharing: Collection[str],
) -> Iterator[Problem]:
    """Tasks without an op, computing by transfers, fused ops that come twice or too early.

    These are looked for among `sharing`, ops of which two tiles may make the same elements.
    """
    ops = {op.name: op for op in network.ops}
    if any(True for task in kinds.examples for _ in _problems_of(task, ops)):
        for task in timetable.program.tasks:
            yield from _problems_of(task, ops)
    yield from _too_early(timetable, [ops[name] for name in sharing], kinds, tiles)


def _problems_of(task: Task, ops: Mapping[str, Op]) -> Iterator[Problem]:
    """What is wrong with a task, whatever it does where."""
    op = ops.get(task.op)
    if task.kind == "compute" and not task.op:
        yield Problem(message=f"task {task.name} computes, and does not say which op")
    if op is not None and KIND_CLASSES[op.kind] != "move":
        yield from _misplaced(task, op)
    if len(task.fused) > len(dict.fromkeys(task.fused)):
        yield Problem(message=f"task {task.name} applies {', '.join(task.fused)}: one op twice")


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
    timetable: Timetable, ops: Sequence[Op], kinds: Kinds, tiles: Tiles
) -> Iterator[Problem]:
    """Ops that are applied to sums to which a later task of the same results adds."""
    last: dict[_Results, int] = {}
    adding: list[tuple[int, _Results]] = []
    slots, tasks = timetable.slots, timetable.program.tasks
    fusing = {task.op for task in kinds.examples if task.fused}
    for op in ops:
        if op.name not in fusing:
            continue
        own, loops = tiles.of_op[op.name], _result_loops(op)
        own = own.only(~kinds.is_repeated[own.tasks])
        ranges = boxes_at(own.corners[:, loops], len(loops))
        strips = kinds.strip[own.tasks].tolist()
        for number, strip, kept in zip(own.tasks.tolist(), strips, ranges, strict=True):
            key = op.name, strip, kept
            adding += [(number, key)] if tasks[number].fused else []
            known = last.setdefault(key, number)
            if slots[number].start_cycle > slots[known].start_cycle:
                last[key] = number
    for number, key in sorted(adding):
        if last[key] != number:
            first, later = (tasks[n] for n in (number, last[key]))
            yield Problem(
                message=f"task {first.name} applies {', '.join(first.fused)} to sums to which "
                f"{later.name} adds"
            )


def _result_loops(op: Op) -> list[int]:
    """The loops, by number, along which an op's first result has an extent."""
    index = op.outputs[0].index
    kept = {dim for axis in index or () for dim, _ in axis.terms}
    return [number for number, (dim, _) in enumerate(op.dims) if dim in kept]

"""Does a task read what its tile of an op needs?"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from tilewright.errors import Problem
from tilewright.network.graph import Index, Network, Op, Operand
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.model import Box, Program, Task
from tilewright.replay.check_accesses import Accesses
from tilewright.replay.check_boxes import (
    FEW_BOXES,
    Boxes,
    Ints,
    box_array,
    box_at,
    pairs_before,
    text,
    uncovered,
)

Number = TypeVar("Number", int, Ints)
"""One of a tile, or of many tiles at once."""


def tiles_of(program: Program, network: Network) -> list[Box | None]:
    """By task its ranges along all dims of its op, if it has one.

    A dim that the task's tile does not name is whole.
    """
    dims = {op.name: op.dims for op in network.ops}
    return [None if task.op not in dims else _tile(task, dims[task.op]) for task in program.tasks]


def _tile(task: Task, dims: Sequence[tuple[str, int]]) -> Box:
    if [dim for dim, _, _ in task.tile] == [dim for dim, _ in dims]:
        return tuple([(begin, end) for _, begin, end in task.tile])
    named = {dim: (begin, end) for dim, begin, end in task.tile}
    return tuple([named.get(dim, (0, size)) for dim, size in dims])


def tile_problems(
    program: Program, network: Network, accesses: Accesses, tiles: Sequence[Box | None]
) -> Iterator[Problem]:
    """Compute tasks that lack a part of an input.

    What they write need not be all they make: elements that nobody reads may be left out, and
    whether those that somebody reads are there is seen when they are read.
    """
    suspects: list[tuple[int, int, str, Box]] = []
    tasks_of = _tasks_by_op(program)
    reads = _Reads(program, accesses, tasks_of)
    for op in network.ops:
        if KIND_CLASSES[op.kind] == "move" or op.name not in tasks_of:
            continue
        numbers = tasks_of[op.name]
        boxes = [tiles[number] or () for number in numbers]
        corners = box_array(boxes, len(op.dims)) if len(boxes) > FEW_BOXES else None
        for place, operand in enumerate(op.inputs):
            shape = network.by_name[operand.tensor].shape
            if corners is None:
                needs = dict(enumerate([needed_by_tile(op, operand, box, shape) for box in boxes]))
            else:
                rows, readers = reads.of(op.name, operand.tensor)
                read = accesses.boxes[:, : len(shape), rows]
                needs = _not_covered(needed_by_tiles(op, operand, corners, shape), read, readers)
            suspects += [(numbers[at], place, operand.tensor, needs[at]) for at in needs]
    for number, _, tensor, need in sorted(suspects):
        yield from _missing_part(program, program.tasks[number], tensor, need)
    ops = {op.name: op for op in network.ops}
    for number, task in enumerate(program.tasks):
        if task.fused and tiles[number] is not None:
            for tensor, need in _needed_by_fused(network, ops, task, tiles[number] or ()):
                yield from _missing_part(program, task, tensor, need)


def _needed_by_fused(
    network: Network, ops: Mapping[str, Op], task: Task, tile: Box
) -> Iterator[tuple[str, Box]]:
    """What fused ops need beside the result that they are applied to."""
    result = ops[task.op].outputs[0]
    passed = [result.tensor]
    for op in (ops[name] for name in task.fused if name in ops):
        others = [operand for operand in op.inputs if operand.tensor not in passed]
        if others:
            made = needed_by_tile(ops[task.op], result, tile, network.by_name[result.tensor].shape)
            axes = zip(op.outputs[0].index or (), made, strict=False)
            walked = {dim: ends for axis, ends in axes for dim, _ in axis.terms[:1]}
            ranges = tuple([walked.get(dim, (0, size)) for dim, size in op.dims])
            for operand in others:
                shape = network.by_name[operand.tensor].shape
                yield operand.tensor, needed_by_tile(op, operand, ranges, shape)
        passed.append(op.outputs[0].tensor)


def _tasks_by_op(program: Program) -> dict[str, list[int]]:
    """By op the tasks that compute it."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, task in enumerate(program.tasks):
        if task.kind == "compute":
            found[task.op].append(number)
    return found


class _Reads:
    """What the tasks that compute an op read of a tensor."""

    def __init__(
        self, program: Program, accesses: Accesses, tasks_of: Mapping[str, Sequence[int]]
    ) -> None:
        self.tensor_numbers = accesses.tensor_numbers
        self.op_numbers = {op: number for number, op in enumerate(tasks_of)}
        self.place = np.full(len(program.tasks), -1, dtype=np.int64)
        op = np.full(len(program.tasks), -1, dtype=np.int64)
        for number, tasks in enumerate(tasks_of.values()):
            op[tasks] = number
            self.place[tasks] = np.arange(len(tasks))
        self.task = accesses.task
        rows = np.flatnonzero(~accesses.is_write & (op[accesses.task] >= 0))
        keys = self._key(op[accesses.task[rows]], accesses.tensors[accesses.buffer[rows]])
        order = np.argsort(keys, kind="stable")
        self.rows, self.keys = rows[order], keys[order]

    def _key(self, op: Number, tensor: Number) -> Number:
        return op * len(self.tensor_numbers) + tensor

    def of(self, op: str, tensor: str) -> tuple[Ints, Ints]:
        """The accesses, and by which of the op's tasks they are."""
        if tensor not in self.tensor_numbers:
            return self.rows[:0], self.rows[:0]
        key = self._key(self.op_numbers[op], self.tensor_numbers[tensor])
        first, last = np.searchsorted(self.keys, (key, key + 1)).tolist()
        rows = self.rows[first:last]
        return rows, self.place[self.task[rows]]


def needed_by_tile(op: Op, operand: Operand, tile: Box, shape: tuple[int, ...]) -> Box:
    """The smallest box around the elements that a tile's points touch; all without an index."""
    if operand.index is None:
        return tuple([(0, size) for size in shape])
    ranges = {dim: ends for (dim, _), ends in zip(op.dims, tile, strict=True)}
    positions = [_positions(index, ranges) for index in operand.index]
    starts = [max(0, begin) for begin, _ in positions]
    stops = [min(size, end) for (_, end), size in zip(positions, shape, strict=True)]
    return tuple([(begin, max(begin, end)) for begin, end in zip(starts, stops, strict=True)])


def needed_by_tiles(op: Op, operand: Operand, tiles: Boxes, shape: tuple[int, ...]) -> Boxes:
    """The same of many tiles."""
    begins, ends = tiles
    needs = np.zeros((2, len(shape), begins.shape[1]), dtype=np.int64)
    needs[1] = np.array(shape, dtype=np.int64)[:, None]
    ranges = {dim: (begins[at], ends[at]) for at, (dim, _) in enumerate(op.dims)}
    for axis, index in enumerate(operand.index or ()):
        begin, end = _positions(index, ranges)
        needs[0, axis] = np.maximum(0, begin)
        needs[1, axis] = np.maximum(needs[0, axis], np.minimum(shape[axis], end))
    return needs


def _positions(
    index: Index, ranges: Mapping[str, tuple[Number, Number]]
) -> tuple[Number | int, Number | int]:
    """From the first to behind the last position on an axis, which may lie in the padding."""
    first: Number | int = index.offset
    last: Number | int = index.offset + index.reach
    for dim, factor in index.terms:
        begin, end = ranges[dim]
        low, high = (begin, end - 1) if factor > 0 else (end - 1, begin)
        first = first + factor * low
        last = last + factor * high
    return -(-first // index.divisor), last // index.divisor + 1


def _not_covered(needs: Boxes, boxes: Boxes, readers: Ints) -> dict[int, Box]:
    """Tiles whose need is not seen to lie in boxes that they read, and the need.

    It does if it lies in one of them, or if they do not overlap and share as many elements with it
    as it has.
    """
    (begins, ends), (lowest, highest) = needs[:, :, readers], boxes
    is_inside = ((lowest <= begins) & (ends <= highest)).all(axis=0)
    is_covered = np.zeros(needs.shape[2], dtype=np.bool_)
    is_covered[readers[is_inside]] = True
    if not is_covered.all():
        shared = np.zeros(needs.shape[2], dtype=np.int64)
        both = np.minimum(ends, highest), np.maximum(begins, lowest)
        np.add.at(shared, readers, np.maximum(0, both[0] - both[1]).prod(axis=0))
        is_apart = np.ones(needs.shape[2], dtype=np.bool_)
        for i, j in pairs_before(np.searchsorted(readers, readers, side="right")):
            meet = ((lowest[:, i] < highest[:, j]) & (lowest[:, j] < highest[:, i])).all(axis=0)
            is_apart[readers[i[meet]]] = False
        is_covered |= is_apart & (shared == (needs[1] - needs[0]).prod(axis=0))
    return {at: box_at(needs, at, needs.shape[1]) for at in np.flatnonzero(~is_covered).tolist()}


def _missing_part(program: Program, task: Task, tensor: str, need: Box) -> Iterator[Problem]:
    boxes = [a.box for a in task.reads if program.buffers[a.buffer].tensor == tensor]
    missing = uncovered(need, boxes)
    if missing:
        tile = ", ".join(f"{dim} {begin}:{end}" for dim, begin, end in task.tile)
        yield Problem(
            message=f"task {task.name} ({tile}) needs {text(need)} of {tensor} "
            f"and reads nothing of {text(missing[0])}"
        )

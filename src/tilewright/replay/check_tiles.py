"""Does a task read what its tile of an op needs?"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    text,
    uncovered,
)

Number = TypeVar("Number", int, Ints)
"""One of a tile, or of many tiles at once."""


@dataclass(frozen=True, slots=True)
class _OpTasks:
    """Tasks that compute an op, and by tensor what they read: accesses, and by which of them."""

    numbers: list[int] = field(default_factory=list)
    reads: dict[str, tuple[list[int], list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: ([], []))
    )


def tiles_of(program: Program, network: Network) -> list[Box | None]:
    """By task its ranges along all dims of its op, if it has one.

    A dim that the task's tile does not name is whole.
    """
    dims = {op.name: op.dims for op in network.ops}
    tiles: list[Box | None] = []
    for task in program.tasks:
        tile = {dim: (begin, end) for dim, begin, end in task.tile}
        whole = dims.get(task.op)
        ends = None if whole is None else [tile.get(dim, (0, size)) for dim, size in whole]
        tiles.append(None if ends is None else tuple(ends))
    return tiles


def tile_problems(
    program: Program, network: Network, accesses: Accesses, tiles: Sequence[Box | None]
) -> Iterator[Problem]:
    """Compute tasks that lack a part of an input.

    What they write need not be all they make: elements that nobody reads may be left out, and
    whether those that somebody reads are there is seen when they are read.
    """
    suspects: list[tuple[int, int, str, Box]] = []
    tasks_of = _tasks_by_op(program)
    for op in network.ops:
        if KIND_CLASSES[op.kind] == "move" or op.name not in tasks_of:
            continue
        tasks = tasks_of[op.name]
        boxes = [tiles[number] or () for number in tasks.numbers]
        corners = box_array(boxes, len(op.dims)) if len(boxes) > FEW_BOXES else None
        for place, operand in enumerate(op.inputs):
            shape = network.by_name[operand.tensor].shape
            if corners is None:
                needs = dict(enumerate([needed_by_tile(op, operand, box, shape) for box in boxes]))
            else:
                rows, readers = tasks.reads[operand.tensor]
                read = accesses.boxes[:, : len(shape), np.array(rows, dtype=np.int64)]
                needs = _not_in_one_box(needed_by_tiles(op, operand, corners, shape), read, readers)
            suspects += [(tasks.numbers[at], place, operand.tensor, needs[at]) for at in needs]
    for number, _, tensor, need in sorted(suspects):
        yield from _missing_part(program, program.tasks[number], tensor, need)


def _tasks_by_op(program: Program) -> dict[str, _OpTasks]:
    tensors = [buffer.tensor for buffer in program.buffers]
    found: dict[str, _OpTasks] = defaultdict(_OpTasks)
    first = 0
    for number, task in enumerate(program.tasks):
        if task.kind == "compute":
            tasks = found[task.op]
            for row, access in enumerate(task.reads, first):
                rows, readers = tasks.reads[tensors[access.buffer]]
                rows.append(row)
                readers.append(len(tasks.numbers))
            tasks.numbers.append(number)
        first += len(task.reads) + len(task.writes)
    return found


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


def _not_in_one_box(needs: Boxes, boxes: Boxes, readers: Sequence[int]) -> dict[int, Box]:
    """Tiles whose need does not lie in a single one of the boxes that they read, and the need."""
    place = np.array(readers, dtype=np.int64)
    (begins, ends), (lowest, highest) = needs[:, :, place], boxes
    is_inside = ((lowest <= begins) & (ends <= highest)).all(axis=0)
    is_missing = np.ones(needs.shape[2], dtype=np.bool_)
    is_missing[place[is_inside]] = False
    return {at: box_at(needs, at, needs.shape[1]) for at in np.flatnonzero(is_missing).tolist()}


def _missing_part(program: Program, task: Task, tensor: str, need: Box) -> Iterator[Problem]:
    boxes = [a.box for a in task.reads if program.buffers[a.buffer].tensor == tensor]
    missing = uncovered(need, boxes)
    if missing:
        tile = ", ".join(f"{dim} {begin}:{end}" for dim, begin, end in task.tile)
        yield Problem(
            message=f"task {task.name} ({tile}) needs {text(need)} of {tensor} "
            f"and reads nothing of {text(missing[0])}"
        )

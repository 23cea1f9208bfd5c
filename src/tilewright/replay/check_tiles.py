"""Does a task read what its tile of an op needs?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from tilewright.errors import Problem
from tilewright.network.graph import Index, Network, Op, Operand, Tensor
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.model import Box, Program, Task
from tilewright.replay.check_accesses import Accesses
from tilewright.replay.check_boxes import (
    Boxes,
    Ints,
    box_array,
    box_at,
    boxes_at,
    meeting,
    pairs_before,
    ranges,
    text,
    uncovered,
)
from tilewright.replay.check_kinds import Flags, Kinds
from tilewright.replay.emulate_layout import holds_partial_sums


@dataclass(frozen=True, slots=True, eq=False)
class OpTiles:
    """The tasks that do an op, in order, and their ranges along its dims."""

    tasks: Ints
    corners: Boxes
    is_named: bool
    """Whether no tile names a dim that the op lacks."""

    @property
    def boxes(self) -> list[Box]:
        """The ranges, by task."""
        return boxes_at(self.corners, self.corners.shape[1])

    def only(self, is_wanted: Flags) -> "OpTiles":
        """Some of them."""
        if is_wanted.all():
            return self
        return OpTiles(self.tasks[is_wanted], self.corners[:, :, is_wanted], self.is_named)


@dataclass(frozen=True, slots=True, eq=False)
class Tiles:
    """What tasks do of the ops of a network."""

    of_op: Mapping[str, OpTiles]
    """By op, of those that any task does, in the order of the network."""

    def box(self, op: str, task: int) -> Box:
        """The ranges of a task that does an op."""
        tiles = self.of_op[op]
        place = int(np.searchsorted(tiles.tasks, task))
        return box_at(tiles.corners, place, tiles.corners.shape[1])


def tiles_of(program: Program, network: Network, kinds: Kinds) -> Tiles:
    """By task its ranges along all dims of its op, if it has one.

    A dim that the task's tile does not name is whole.
    """
    numbers = {op.name: number for number, op in enumerate(network.ops)}
    op_of = kinds.ints(lambda task: numbers.get(task.op, -1))
    in_order = np.argsort(op_of, kind="stable")
    bounds = np.searchsorted(op_of[in_order], np.arange(len(network.ops) + 1))
    found = {}
    for op, begin, end in zip(network.ops, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if begin < end:
            found[op.name] = _op_tiles(program, op, in_order[begin:end])
    return Tiles(found)


def _op_tiles(program: Program, op: Op, tasks: Ints) -> OpTiles:
    tiles = [program.tasks[number].tile for number in tasks.tolist()]
    dims = [dim for dim, _ in op.dims]
    named = list(chain.from_iterable(chain.from_iterable(tiles)))
    if named[::3] == dims * len(tiles) and {*map(len, tiles)} == {len(dims)}:
        corners = np.array([named[1::3], named[2::3]], dtype=np.int64)
        corners = corners.reshape(2, len(tiles), len(dims)).transpose(0, 2, 1)
        return OpTiles(tasks, np.ascontiguousarray(corners), is_named=True)
    boxes = [_tile(tile, op.dims) for tile in tiles]
    return OpTiles(tasks, box_array(boxes, len(dims)), is_named={*dims}.issuperset(named[::3]))


def _tile(tile: Sequence[tuple[str, int, int]], dims: Sequence[tuple[str, int]]) -> Box:
    named = {dim: (begin, end) for dim, begin, end in tile}
    return tuple([named.get(dim, (0, size)) for dim, size in dims])


Wanted = tuple[Op, Operand, Ints, Boxes]
"""An operand of an op, tasks, and their ranges along the op's dims."""


def needed_boxes(tensors: Mapping[str, Tensor], wanted: Sequence[Wanted], n_axes: int) -> Boxes:
    """As `needed_by_tile`, of many tiles, one operand behind the other."""
    counts = [len(tasks) for _, _, tasks, _ in wanted]
    ends = np.cumsum(counts).tolist()
    n_loops = max((len(op.dims) for op, _, _, _ in wanted), default=0)
    tiles = np.zeros((2, max(1, n_loops), sum(counts)), dtype=np.int64)
    for (op, _, _, corners), count, end in zip(wanted, counts, ends, strict=True):
        tiles[:, : len(op.dims), end - count : end] = corners
    offset, reach, divisor, size, *terms = _figures(tensors, wanted, n_axes).repeat(counts, axis=2)
    first, last = offset, offset + reach
    for loop, factor in zip(terms[::2], terms[1::2], strict=True):
        begin, end = np.take_along_axis(tiles, np.broadcast_to(loop, (2, *loop.shape)), axis=1)
        low, high = np.where(factor > 0, (begin, end - 1), (end - 1, begin))
        first, last = first + factor * low, last + factor * high
    begins = np.maximum(0, -(-first // divisor))
    return np.array([begins, np.maximum(begins, np.minimum(size, last // divisor + 1))])


def _figures(tensors: Mapping[str, Tensor], wanted: Sequence[Wanted], n_axes: int) -> Ints:
    """Of each axis of operands the offset, reach, divisor and size, and of its terms loop and
    factor, as [figure, axis, operand]; an axis that one lacks is 0:1."""
    rows: list[list[int]] = []
    for op, operand, _, _ in wanted:
        loops = {dim: loop for loop, (dim, _) in enumerate(op.dims)}
        shape = tensors[operand.tensor].shape
        if operand.index is None:
            rows += [[0, size - 1, 1, size] for size in shape]
        else:
            for index, size in zip(operand.index, shape, strict=True):
                terms = [n for dim, factor in index.terms for n in (loops[dim], factor)]
                rows.append([index.offset, index.reach, index.divisor, size, *terms])
        rows += [[0, 0, 1, 1]] * (n_axes - len(shape))
    longest = max(map(len, rows), default=4)
    padded = [row + [0] * (longest - len(row)) for row in rows]
    return np.array(padded, dtype=np.int64).reshape(len(wanted), n_axes, longest).T


def tile_problems(
    program: Program, network: Network, accesses: Accesses, tiles: Tiles, made: Boxes
) -> Iterator[Problem]:
    """Compute tasks that lack a part of an input; `made` is by task what its op makes.

    What they write need not be all they make: elements that nobody reads may be left out, and
    whether those that somebody reads are there is seen when they are read.
    """
    ops = {op.name: op for op in network.ops}
    is_compute = accesses.kinds.flags(lambda task: task.kind == "compute")
    leaves_sums = leaving_sums(program, accesses)
    wanted: list[Wanted] = []
    for name, done in tiles.of_op.items():
        if KIND_CLASSES[ops[name].kind] != "move":
            own = done.only(is_compute[done.tasks])
            ending = own.only(~leaves_sums[own.tasks])
            for operand in ops[name].inputs:
                by = ending if is_bias(ops[name], operand) else own
                wanted.append((ops[name], operand, by.tasks, by.corners))
    yield from _lacking(program, network, accesses, wanted)
    yield from _added_too_early(program, ops, np.flatnonzero(leaves_sums & is_compute).tolist())
    fused = list(_wanted_by_fused(network, accesses.kinds, tiles, made))
    yield from _lacking(program, network, accesses, fused)


def leaving_sums(program: Program, accesses: Accesses) -> Flags:
    """By task whether it writes sums to which another task has yet to add."""
    holds_sums = np.array([holds_partial_sums(b) for b in program.buffers], dtype=np.bool_)
    found = np.zeros(len(program.tasks), dtype=np.bool_)
    writes = accesses.is_write & holds_sums[accesses.buffer]
    found[accesses.task[writes]] = True
    return found


def is_bias(op: Op, operand: Operand) -> bool:
    """Whether an operand of a product is no factor: it is added when the sum is complete."""
    return KIND_CLASSES[op.kind] == "mac" and operand.name == "B"


def _added_too_early(
    program: Program, ops: Mapping[str, Op], numbers: Sequence[int]
) -> Iterator[Problem]:
    """Tasks that leave sums to others and read what only the last one of these adds or applies."""
    for task in map(program.tasks.__getitem__, numbers):
        op = ops.get(task.op)
        if op is None:
            continue
        own = {operand.tensor for operand in op.inputs if not is_bias(op, operand)}
        own.add(op.outputs[0].tensor)
        for name in dict.fromkeys(program.buffers[access.buffer].tensor for access in task.reads):
            if name not in own:
                yield Problem(
                    message=f"task {task.name} leaves its sums to others and reads {name}, which "
                    "the last of them adds or applies"
                )


def _wanted_by_fused(network: Network, kinds: Kinds, tiles: Tiles, made: Boxes) -> Iterator[Wanted]:
    """What fused ops need beside the result that they are applied to."""
    ops = {op.name: op for op in network.ops}
    for host, fused in dict.fromkeys((task.op, task.fused) for task in kinds.examples):
        if host not in tiles.of_op or not fused:
            continue
        is_host = np.array([task.fused == fused for task in kinds.examples], dtype=np.bool_)
        tasks = tiles.of_op[host].tasks
        tasks = tasks[is_host[kinds.number[tasks]]]
        passed = [ops[host].outputs[0].tensor]
        passing = made[:, : len(network.by_name[passed[0]].shape), tasks]
        for op in (ops[name] for name in fused if name in ops):
            others = [operand for operand in op.inputs if operand.tensor not in passed]
            if others:
                corners = _walked(op, passing)
                yield from ((op, operand, tasks, corners) for operand in others)
            passed.append(op.outputs[0].tensor)


def _walked(op: Op, results: Boxes) -> Boxes:
    """The ranges of an op's loops that lead to some boxes of its result."""
    corners = np.zeros((2, len(op.dims), results.shape[2]), dtype=np.int64)
    corners[1] = np.array([size for _, size in op.dims], dtype=np.int64)[:, None]
    places = {dim: place for place, (dim, _) in enumerate(op.dims)}
    for at, axis in enumerate((op.outputs[0].index or ())[: results.shape[1]]):
        for dim, _ in axis.terms[:1]:
            corners[:, places[dim]] = results[:, at]
    return corners


def _lacking(
    program: Program, network: Network, accesses: Accesses, wanted: Sequence[Wanted]
) -> Iterator[Problem]:
    """Tasks that do not read all that is wanted.

    They do if it lies in one of the boxes that they read of the tensor, or if these do not overlap
    and share as many elements with it as it has; others are looked at one by one.
    """
    numbers, tensors = accesses.tensor_numbers, [operand.tensor for _, operand, _, _ in wanted]
    if not tensors:
        return
    needs = needed_boxes(network.by_name, wanted, accesses.boxes.shape[1])
    task = np.concatenate([tasks for _, _, tasks, _ in wanted])
    of = np.arange(len(wanted)).repeat([len(tasks) for _, _, tasks, _ in wanted])
    tensor = np.array([numbers.get(name, len(numbers)) for name in tensors], dtype=np.int64)[of]
    reads = np.flatnonzero(~accesses.is_write)
    keys = accesses.task * (len(numbers) + 1) + accesses.tensors[accesses.buffer]
    reads = reads[np.argsort(keys[reads], kind="stable")]
    need_keys = task * (len(numbers) + 1) + tensor
    sides: tuple[Literal["left"], Literal["right"]] = ("left", "right")
    i, j = ranges(*(np.searchsorted(keys[reads], need_keys, side=side) for side in sides))
    is_covered = _covered(needs, i, accesses.boxes.take(reads[j], axis=2))
    rows = np.flatnonzero(~is_covered)
    for row in rows[np.lexsort((rows, task[rows]))].tolist():
        n_axes = len(network.by_name[tensors[of[row]]].shape)
        need = box_at(needs, row, n_axes)
        yield from _missing_part(program, program.tasks[int(task[row])], tensors[of[row]], need)


def needed_by_tile(op: Op, operand: Operand, tile: Box, shape: tuple[int, ...]) -> Box:
    """The smallest box around the elements that a tile's points touch; all without an index."""
    if operand.index is None:
        return tuple([(0, size) for size in shape])
    ranges = {dim: ends for (dim, _), ends in zip(op.dims, tile, strict=True)}
    positions = [_positions(index, ranges) for index in operand.index]
    starts = [max(0, begin) for begin, _ in positions]
    stops = [min(size, end) for (_, end), size in zip(positions, shape, strict=True)]
    return tuple([(begin, max(begin, end)) for begin, end in zip(starts, stops, strict=True)])


def _positions(index: Index, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """From the first to behind the last position on an axis, which may lie in the padding."""
    first, last = index.offset, index.offset + index.reach
    for dim, factor in index.terms:
        begin, end = ranges[dim]
        low, high = (begin, end - 1) if factor > 0 else (end - 1, begin)
        first += factor * low
        last += factor * high
    return -(-first // index.divisor), last // index.divisor + 1


def _covered(needs: Boxes, readers: Ints, boxes: Boxes) -> Flags:
    """By need whether it is seen to lie in boxes; `readers` says of each box whose it is."""
    (begins, ends), (lowest, highest) = needs.take(readers, axis=2), boxes
    is_inside = ((lowest <= begins) & (ends <= highest)).all(axis=0)
    is_covered = np.zeros(needs.shape[2], dtype=np.bool_)
    is_covered[readers[is_inside]] = True
    rest = np.flatnonzero(~is_covered[readers])
    if len(rest):
        readers, boxes = readers[rest], boxes.take(rest, axis=2)
        both = np.minimum(ends[:, rest], boxes[1]), np.maximum(begins[:, rest], boxes[0])
        shared = np.zeros(needs.shape[2], dtype=np.int64)
        np.add.at(shared, readers, np.maximum(0, both[0] - both[1]).prod(axis=0))
        is_apart = np.ones(needs.shape[2], dtype=np.bool_)
        for i, j in pairs_before(np.searchsorted(readers, readers, side="right")):
            is_apart[readers[meeting(boxes, i, j)[0]]] = False
        is_covered |= is_apart & (shared == (needs[1] - needs[0]).prod(axis=0))
    return is_covered


def _missing_part(program: Program, task: Task, tensor: str, need: Box) -> Iterator[Problem]:
    boxes = [a.box for a in task.reads if program.buffers[a.buffer].tensor == tensor]
    missing = uncovered(need, boxes)
    if missing:
        tile = ", ".join(f"{dim} {begin}:{end}" for dim, begin, end in task.tile)
        yield Problem(
            message=f"task {task.name} ({tile}) needs {text(need)} of {tensor} "
            f"and reads nothing of {text(missing[0])}"
        )

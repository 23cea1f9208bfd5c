"""What a task writes, from what it finds in memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.network.graph import BIAS, Index, Network, Op, Operand
from tilewright.program.model import Access, Box, Program, Task
from tilewright.replay.emulate_layout import box_text, holds_partial_sums
from tilewright.replay.kernels import picks, sums, windows
from tilewright.replay.kernels.quantise import dtype_of
from tilewright.replay.kernels.table import compute
from tilewright.replay.kernels.tile import Array, KernelError, Part, Quantisation, Tile, Wanted

Ranges = Mapping[str, tuple[int, int]]

CONTINUED = {kind: kernel for kernel in (sums, windows, picks) for kind in kernel.KINDS}
"""Kinds whose inner loops may be cut: a task goes on from what another one left unfinished."""


class TaskError(Exception):
    """A task does not do what it says; the message follows the task's name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Worker:
    """Computes and copies; `elements` gives the values of an access."""

    program: Program
    network: Network
    ops: Mapping[str, Op]
    quantisation: Mapping[str, Quantisation]
    elements: Callable[[Access], Array]

    def results(self, task: Task) -> list[Array]:
        """The values of each of a task's writes; TaskError where they cannot be made."""
        if not task.op:
            return self._copies(task)
        try:
            made = self._computed(task)
        except KernelError as error:
            raise TaskError(f"computes {task.op}, a {self.ops[task.op].kind}: {error}") from error
        return [self._share(access, made) for access in task.writes]

    def _copies(self, task: Task) -> list[Array]:
        if len(task.reads) not in (1, len(task.writes)):
            raise TaskError(f"copies {len(task.reads)} boxes to {len(task.writes)}")
        copies = []
        for number, write in enumerate(task.writes):
            read = task.reads[number if len(task.reads) > 1 else 0]
            source, target = (self.program.buffers[a.buffer].tensor for a in (read, write))
            if source == target and read.box != write.box:
                raise TaskError(
                    f"copies {box_text(read.box)} of {source} to where {box_text(write.box)} lies"
                )
            array, shape = self.elements(read), tuple(b - a for a, b in write.box)
            if array.size != np.prod(shape, dtype=np.int64):
                raise TaskError(f"copies {array.size} elements to a box of {shape}")
            copies.append(array.reshape(shape).copy())
        return copies

    def summed_points(self, task: Task) -> tuple[int, int]:
        """How many points a task adds to each of its sums (or maxima), and how many one needs.

        Nothing (0, 0) for ops that are none.
        """
        op = self.ops.get(task.op)
        if op is None or not _may_be_continued(op):
            return 0, 0
        inner = _summed(op)
        lengths = {dim: end - begin for dim, begin, end in task.tile}
        return prod(lengths[dim] for dim in inner), prod(op.sizes[dim] for dim in inner)

    def goes_on_from(self, task: Task) -> list[Access]:
        """The unfinished sums that a task reads."""
        buffers = self.program.buffers
        return [a for a in task.reads if holds_partial_sums(buffers[a.buffer])]

    def _computed(self, task: Task) -> dict[str, tuple[Box, Array]]:
        """What the task makes, by tensor; unfinished sums go by their op's result."""
        op = self._op(task.op)
        ranges = self._ranges(task, op)
        tile = self._tile(task, op, ranges, {})
        if _may_be_continued(op) and (op.kind not in picks.KINDS or self._is_part(task)):
            kernel = CONTINUED[op.kind]
            start = self._started_sums(task, op, tile.results[0].box)
            name = op.outputs[0].tensor
            dtype = dtype_of(self.network.by_name[name].dtype)
            # Infinite values are as good as others, as they are in `compute`.
            with np.errstate(all="ignore"):
                total = kernel.accumulate(tile, start)
                if self.is_unfinished(task):
                    return {name: (tile.results[0].box, total)}
                results = [kernel.finish(tile, total).astype(dtype, copy=False)]
        else:
            results = compute(tile)
        made = {
            wanted.tensor.name: (wanted.box, array)
            for wanted, array in zip(tile.results, results, strict=True)
        }
        for name in task.fused:
            made = self._fused(task, self._op(name), made)
        return made

    def _is_part(self, task: Task) -> bool:
        """Whether a task sees less than all that its result is made of."""
        added, needed = self.summed_points(task)
        return added < needed or bool(self.goes_on_from(task)) or self.is_unfinished(task)

    def _op(self, name: str) -> Op:
        if name not in self.ops:
            raise TaskError(f"computes {name}, which is no op of the network")
        return self.ops[name]

    def _ranges(self, task: Task, op: Op) -> Ranges:
        ranges = {dim: (begin, end) for dim, begin, end in task.tile}
        if ranges.keys() != op.sizes.keys() or any(
            not 0 <= ranges[dim][0] < max(1, ranges[dim][1]) <= max(1, size)
            for dim, size in op.dims
        ):
            raise TaskError(f"has the ranges {ranges} of loops {op.sizes}")
        whole = op.coupled if _may_be_continued(op) else (*op.coupled, *_summed(op))
        cut = [dim for dim in whole if ranges[dim] != (0, op.sizes[dim])]
        if cut:
            raise TaskError(f"cuts the loop {cut[0]} of {op.name}, which no tile may do without")
        return ranges

    def _tile(
        self,
        task: Task,
        op: Op,
        ranges: Ranges,
        made: Mapping[str, tuple[Box, Array]],
    ) -> Tile:
        parts = {}
        is_unfinished = self.is_unfinished(task)
        for operand in op.inputs:
            if operand.name == BIAS and is_unfinished:
                # It comes when the sums are complete.
                continue
            if operand.tensor in made:
                box, array = made[operand.tensor]
            else:
                box = self._reach(operand, ranges)
                # Of a window that sees only padding a pool still wants to know what it is made of.
                if any(begin >= end for begin, end in box) and op.kind not in windows.KINDS:
                    continue
                array = self._found(task, operand.tensor, box)
            parts[operand.name] = Part(
                tensor=self.network.by_name[operand.tensor],
                box=box,
                array=array,
                quantisation=self.quantisation.get(operand.tensor),
            )
        results = tuple(
            Wanted(
                tensor=self.network.by_name[operand.tensor],
                box=self._reach(operand, ranges),
                quantisation=self.quantisation.get(operand.tensor),
            )
            for operand in op.outputs
        )
        return Tile(op=op, ranges=ranges, parts=parts, results=results)

    def _fused(
        self, task: Task, op: Op, made: Mapping[str, tuple[Box, Array]]
    ) -> dict[str, tuple[Box, Array]]:
        """An op applied to a result on the way: its loops are the axes of the box."""
        (box, array), *others = made.values()
        index = op.outputs[0].index
        names = {operand.tensor for operand in op.inputs}
        if others or index is None or not names & made.keys() or len(index) != len(box):
            raise TaskError(f"applies {op.name} to what is not its input")
        if not array.size:
            return {op.outputs[0].tensor: (box, array)}
        ranges = {dim: (0, size) for dim, size in op.dims}
        for axis, ends in zip(index, box, strict=True):
            for dim, _ in axis.terms:
                ranges[dim] = ends
        tile = self._tile(task, op, ranges, made)
        return {tile.results[0].tensor.name: (tile.results[0].box, compute(tile)[0])}

    def _reach(self, operand: Operand, ranges: Ranges) -> Box:
        """The elements of a tensor that the loops touch; padding is left out."""
        shape = self.network.by_name[operand.tensor].shape
        if operand.index is None:
            return tuple((0, size) for size in shape)
        ends = zip(operand.index, shape, strict=True)
        return tuple(_axis_reach(axis, ranges, size) for axis, size in ends)

    def _found(self, task: Task, tensor: str, box: Box) -> Array:
        """A box of a tensor, put together from what the task reads."""
        buffers = self.program.buffers
        reads = [
            access
            for access in task.reads
            if buffers[access.buffer].tensor == tensor
            and not holds_partial_sums(buffers[access.buffer])
        ]
        dtype = dtype_of(self.network.by_name[tensor].dtype)
        for access in reads:
            if access.box == box:
                return self.elements(access).astype(dtype)
        whole = np.zeros([end - begin for begin, end in box], dtype=dtype)
        covered = np.zeros(whole.shape, dtype=bool)
        for access in reads:
            common = [
                (max(a, c), min(b, d)) for (a, b), (c, d) in zip(access.box, box, strict=True)
            ]
            if any(begin >= end for begin, end in common):
                continue
            target = _inside(common, box)
            whole[target] = self.elements(access)[_inside(common, access.box)]
            covered[target] = True
        if not covered.all():
            missing = np.argwhere(~covered)[0] + [begin for begin, _ in box]
            raise TaskError(
                f"needs {box_text(box)} of {tensor} and reads "
                f"{', '.join(box_text(a.box) for a in reads) or 'nothing'} of it: element "
                f"{tuple(missing.tolist())} is missing"
            )
        return whole

    def _started_sums(self, task: Task, op: Op, box: Box) -> Array | None:
        """The unfinished sums that a task goes on from; None where it begins."""
        accesses = self.goes_on_from(task)
        if not accesses:
            return None
        found = np.zeros([end - begin for begin, end in box])
        left = found.size
        for access in accesses:
            own = self.program.buffers[access.buffer].tensor == op.outputs[0].tensor
            ends = zip(access.box, box, strict=True)
            if not own or any(a < c or b > d for (a, b), (c, d) in ends):
                text = f"adds to {box_text(box)} and reads the sums of {box_text(access.box)}"
                raise TaskError(text)
            part = self.elements(access)
            found[_inside(access.box, box)] = part
            left -= part.size
        if left:
            raise TaskError(f"adds to {box_text(box)} and reads {found.size - left} sums of it")
        return found

    def is_unfinished(self, task: Task) -> bool:
        """Whether a task leaves its sums for another one to go on."""
        kinds = {holds_partial_sums(self.program.buffers[a.buffer]) for a in task.writes}
        if len(kinds) > 1:
            raise TaskError("writes both sums and what is made of them")
        return True in kinds

    def _share(self, access: Access, made: Mapping[str, tuple[Box, Array]]) -> Array:
        """The part of a result that one write takes."""
        tensor = self.program.buffers[access.buffer].tensor
        if tensor not in made:
            raise TaskError(f"writes {tensor} and makes {', '.join(made)}")
        box, array = made[tensor]
        if any(a < c or b > d for (a, b), (c, d) in zip(access.box, box, strict=True)):
            raise TaskError(
                f"writes {box_text(access.box)} of {tensor} and makes {box_text(box)} of it"
            )
        return array[_inside(access.box, box)]


def _may_be_continued(op: Op) -> bool:
    return op.kind in CONTINUED and len(op.outputs) == 1


def _summed(op: Op) -> list[str]:
    """Loops along which the result has no extent."""
    kept = {dim for axis in op.outputs[0].index or () for dim, _ in axis.terms}
    return [dim for dim, _ in op.dims if dim not in kept]


def _axis_reach(index: Index, ranges: Ranges, size: int) -> tuple[int, int]:
    places = [index.offset, index.offset + index.reach]
    for dim, factor in index.terms:
        begin, end = ranges[dim]
        first, last = sorted((factor * begin, factor * (end - 1)))
        places = [places[0] + first, places[1] + last]
    low = max(0, -(-places[0] // index.divisor))
    return min(low, size), max(min(low, size), min(size, places[1] // index.divisor + 1))


def _inside(inner: Sequence[tuple[int, int]], outer: Box) -> tuple[slice, ...]:
    """Where a box lies in another one, as slices."""
    return tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(inner, outer, strict=True))

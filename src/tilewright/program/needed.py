"""What a network's results depend on: strides leave out rows, and so do those before."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.network.graph import Index, Network, Op, Operand

Marks = np.ndarray[tuple[int], np.dtype[np.bool_]]
"""Which values of an axis or a loop are needed."""
Axes = tuple[Marks | None, ...]
"""By axis of a tensor; None: all of it."""
Loops = Mapping[str, Marks]
"""By loop, of those that are not needed as a whole."""


@dataclass(frozen=True)
class Needed:
    """By op the points that some result depends on; by tensor the elements of which it does, that
    one op reads, the most over all ops."""

    points: Mapping[str, int]
    elements: Mapping[str, int]
    reads: Mapping[tuple[str, str], int]
    """By op and tensor the elements that this op reads."""


def needed_of(network: Network) -> Needed:
    """What is needed, from the results back to the inputs."""
    shapes = {tensor.name: tensor.shape for tensor in network.tensors}
    axes: dict[str, Axes] = {tensor.name: (None,) * len(tensor.shape) for tensor in network.outputs}
    points: dict[str, int] = {}
    elements: dict[str, int] = {}
    reads: dict[tuple[str, str], int] = {}
    for op in reversed(network.ops):
        loops = _loops(op, axes, shapes)
        searched = op.searched
        points[op.name] = prod(
            int(loops[dim].sum()) if dim in loops else size
            for dim, size in op.dims
            if dim not in searched
        )
        for operand in op.inputs:
            name, shape = operand.tensor, shapes[operand.tensor]
            read = _read(op, operand, loops, shape)
            axes[name] = _either(axes[name], read) if name in axes else read
            count = _count(op, operand, read, shape)
            elements[name] = max(elements.get(name, 0), count)
            reads[op.name, name] = max(reads.get((op.name, name), 0), count)
    return Needed(points, elements, reads)


def _loops(op: Op, axes: Mapping[str, Axes], shapes: Mapping[str, tuple[int, ...]]) -> Loops:
    """The turns of loops in which an op makes what is needed of its results."""
    first = op.outputs[0]
    if len(op.outputs) != 1 or first.index is None or first.tensor not in axes:
        return {}
    found: dict[str, Marks] = {}
    for index, marks, size in zip(
        first.index, axes[first.tensor], shapes[first.tensor], strict=True
    ):
        if index.divisor == 1 and not index.reach and len(index.terms) == 1:
            ((dim, factor),) = index.terms
            turns = op.sizes[dim]
            is_all = marks is None and index.offset >= 0 and index.offset + turns <= size
            if factor == 1 and dim not in op.coupled and not is_all:
                place = np.arange(turns) + index.offset
                inside = (place >= 0) & (place < size)
                if marks is not None:
                    inside[inside] = marks[place[inside]]
                found[dim] = inside
    return found


def _read(op: Op, operand: Operand, loops: Loops, shape: tuple[int, ...]) -> Axes:
    """Of each axis of an operand what the needed turns of loops read."""
    if operand.index is None:
        return (None,) * len(shape)
    sizes = op.sizes
    return tuple(
        [
            None if _is_all(index, sizes, loops, size) else _values(index, sizes, loops, size)
            for index, size in zip(operand.index, shape, strict=True)
        ]
    )


def takes_all(index: Index, size: int, sizes: Mapping[str, int]) -> bool:
    """Whether an index takes all values below a size while all loops run."""
    return _is_all(index, sizes, {}, size) or bool(_values(index, sizes, {}, size).all())


def _is_all(index: Index, sizes: Mapping[str, int], loops: Loops, size: int) -> bool:
    """Whether an index surely takes all values below a size."""
    if index.offset > 0 or index.divisor != 1:
        return False
    last = index.offset + index.reach
    for dim, factor in sorted(index.terms, key=lambda term: term[1]):
        # Steps no longer than what shorter ones have reached leave no gap.
        if dim in loops or not 0 < factor <= last - index.offset + 1:
            return False
        last += factor * (sizes[dim] - 1)
    return last >= size - 1


def _values(index: Index, sizes: Mapping[str, int], loops: Loops, size: int) -> Marks:
    """The values below a size that an index takes, with all that lies in its reach."""
    read = np.array([index.offset])
    for dim, factor in index.terms:
        turns = np.flatnonzero(loops[dim]) if dim in loops else np.arange(sizes[dim])
        read = np.unique(np.add.outer(read, factor * turns))
    first, last = -(-read // index.divisor), (read + index.reach) // index.divisor
    marks = np.zeros(size, dtype=np.bool_)
    for more in range(index.reach // index.divisor + 1):
        place = first + more
        marks[place[(place <= last) & (place >= 0) & (place < size)]] = True
    return marks


def _either(some: Axes, others: Axes) -> Axes:
    return tuple(
        [None if a is None or b is None else a | b for a, b in zip(some, others, strict=True)]
    )


def _count(op: Op, operand: Operand, read: Axes, shape: tuple[int, ...]) -> int:
    """Elements that an op surely reads."""
    counts = [
        size if marks is None else int(marks.sum()) for marks, size in zip(read, shape, strict=True)
    ]
    loops = [dim for index in operand.index or () for dim, _ in index.terms]
    # Axes with a loop in common run together.
    return prod(counts) if len(loops) == len(set(loops)) else max(counts)

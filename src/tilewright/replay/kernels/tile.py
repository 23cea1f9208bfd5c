"""One tile of an op: the parts of its operands that are at hand, laid out along its loops."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.network.graph import Index, Op, Tensor

Array = npt.NDArray[Any]
Box = tuple[tuple[int, int], ...]
Ranges = Mapping[str, tuple[int, int]]


class KernelError(Exception):
    """An op, or this way to cut it, is not emulated; the message follows the op's name."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantisation:
    """Real value = scale × (stored value − zero point), one of each, or one per step of `axis`."""

    scale: Array
    zero_point: Array
    axis: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """The values of a box of a tensor."""

    tensor: Tensor
    box: Box
    array: Array
    quantisation: Quantisation | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the box is all of the tensor."""
        return all(
            begin == 0 and end == size
            for (begin, end), size in zip(self.box, self.tensor.shape, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wanted:
    """A box of a result that a tile has to make."""

    tensor: Tensor
    box: Box
    quantisation: Quantisation | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis of the box."""
        return tuple(end - begin for begin, end in self.box)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tile:
    """Ranges of an op's loops, what they read, by operand letter, and what they make.

    A letter without a part is an operand of which the tile sees only padding.
    """

    op: Op
    ranges: Ranges
    parts: Mapping[str, Part]
    results: tuple[Wanted, ...]

    def has(self, letter: str) -> bool:
        """Whether the op has the operand."""
        return any(operand.name == letter for operand in self.op.inputs)

    def part(self, letter: str) -> Part:
        """The operand's part; KernelError where all of it is padding."""
        if letter not in self.parts:
            raise KernelError(f"operand {letter} is not at hand")
        return self.parts[letter]

    def whole(self, letter: str) -> Array:
        """All of an operand; KernelError where the tile has only a part of it."""
        part = self.part(letter)
        if not part.is_whole:
            raise KernelError(f"all of {part.tensor.name!r} is needed, a part is at hand")
        return part.array

    def number(self, key: str, default: float = 0.0) -> float:
        """An attribute that is a number."""
        value = self.op.attribute(key, default)
        assert isinstance(value, int | float), key
        return float(value)

    def integers(self, key: str) -> tuple[int, ...]:
        """An attribute that is a list of whole numbers."""
        value = self.op.attribute(key, ())
        assert isinstance(value, tuple), key
        return tuple(int(n) for n in value)

    def text(self, key: str, default: str = "") -> str:
        """An attribute that is a text."""
        return str(self.op.attribute(key, default))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Steps of each loop, in the order of the op's dims."""
        return tuple(self.ranges[dim][1] - self.ranges[dim][0] for dim, _ in self.op.dims)

    def axis_of(self, dim: str) -> int:
        """The axis of a loop in an array over all loops."""
        return [name for name, _ in self.op.dims].index(dim)

    def index_of(self, letter: str) -> tuple[Index, ...] | None:
        """Where each point lands in an operand."""
        return next(operand.index for operand in self.op.inputs if operand.name == letter)

    def over_loops(self, letter: str, fill: float = 0) -> Array:
        """An operand's value at every point of the tile: an axis per loop, of size 1 where the
        operand does not depend on it; `fill` where a point reads padding.
        """
        index = self.index_of(letter)
        if index is None or any(axis.reach for axis in index):
            raise KernelError(f"no affine index says where operand {letter} is read")
        if letter not in self.parts:
            return np.full((1,) * len(self.op.dims), fill)
        part = self.parts[letter]
        dims = [name for name, _ in self.op.dims]
        if _is_plain(index):
            found = _plain_view(part, index, self.ranges, dims)
            if found is not None:
                return found
        return _looked_up(part, index, self.ranges, dims, fill)

    def boxed(self, values: Array, position: int = 0, fill: float = 0) -> Array:
        """Values over the loops as the box of a result; loops that it lacks must have one step.

        `fill` is what no point makes.
        """
        index = self.op.outputs[position].index
        wanted = self.results[position]
        if index is None:
            return values.reshape(wanted.shape)
        dims = [name for name, _ in self.op.dims]
        if _is_plain(index) and all(
            axis.offset == 0 and all(f == 1 for _, f in axis.terms) for axis in index
        ):
            order = [dims.index(axis.terms[0][0]) for axis in index if axis.terms]
            rest = [i for i in range(len(dims)) if i not in order]
            if all(values.shape[i] == 1 for i in rest):
                shape = tuple(values.shape[i] for i in order)
                moved = values.transpose(*order, *rest).reshape(shape)
                spread = moved.reshape(_with_ones(shape, index))
                return np.broadcast_to(spread, wanted.shape)
        return _scattered(values, index, self.ranges, dims, (wanted, fill))


def aligned(
    part: Part, index: Sequence[Index] | None, box: Box, under: Sequence[Index] | None
) -> Array:
    """A parameter (a bias, a scale) as it lies under a box of another tensor, for broadcasting.

    `index` places the parameter, `under` the other tensor; axes that are alike go together.
    """
    if part.array.size == 1:
        return part.array.reshape((1,) * len(box))
    if index is None or under is None:
        raise KernelError(f"no affine index says where {part.tensor.name!r} lies")
    array, shape = part.array, [1] * len(box)
    for axis, own in enumerate(index):
        if own.terms:
            at = list(under).index(own)
            shape[at] = box[at][1] - box[at][0]
            low = box[at][0] - part.box[axis][0]
            array = np.take(array, np.arange(low, low + shape[at]), axis=axis)
    return array.reshape(shape)


Kernel = Callable[[Tile], Sequence[Array]]
"""From a tile to the values of each of its results' boxes."""


def _with_ones(shape: Sequence[int], index: Sequence[Index]) -> tuple[int, ...]:
    sizes = iter(shape)
    return tuple(next(sizes) if axis.terms else 1 for axis in index)


def _is_plain(index: Sequence[Index]) -> bool:
    """Whether every axis follows one loop at most, and no loop moves along two axes."""
    dims = [dim for axis in index for dim, _ in axis.terms]
    return len(set(dims)) == len(dims) and all(
        axis.divisor == 1 and len(axis.terms) <= 1 for axis in index
    )


def _plain_view(
    part: Part, index: Sequence[Index], ranges: Ranges, dims: Sequence[str]
) -> Array | None:
    """The part with an axis per loop, without a copy; None where a point reads padding."""
    cuts: list[slice] = []
    names: list[str] = []
    for axis, (low, high) in zip(index, part.box, strict=True):
        start, count, step = axis.offset, 1, 1
        if axis.terms:
            dim, step = axis.terms[0]
            begin, end = ranges[dim]
            start, count = axis.offset + step * begin, end - begin
            names.append(dim)
        first, last = start - low, start + (count - 1) * step - low
        if min(first, last) < 0 or max(first, last) >= high - low:
            return None
        stop: int | None = last + (1 if step > 0 else -1)
        cuts.append(slice(first, None if stop is not None and stop < 0 else stop, step))
    cut = part.array[tuple(cuts)]
    kept = tuple(cut.shape[i] for i, axis in enumerate(index) if axis.terms)
    cut = cut.reshape(kept)
    order = sorted(range(len(names)), key=lambda i: dims.index(names[i]))
    shape = tuple(cut.shape[names.index(dim)] if dim in names else 1 for dim in dims)
    return cut.transpose(order).reshape(shape)


def positions(
    axis: Index, ranges: Ranges, dims: Sequence[str]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Where the points of a tile land along one axis, over all loops, and whether that is a place.

    An axis of the arrays has size 1 where the place does not depend on its loop.
    """
    total = np.full((1,) * len(dims), axis.offset, dtype=np.int64)
    for dim, factor in axis.terms:
        shape = [1] * len(dims)
        shape[dims.index(dim)] = -1
        total = total + factor * np.arange(*ranges[dim], dtype=np.int64).reshape(shape)
    return total // axis.divisor, total % axis.divisor == 0


def _looked_up(
    part: Part, index: Sequence[Index], ranges: Ranges, dims: Sequence[str], fill: float
) -> Array:
    """The part at every point, element by element."""
    places, inside = [], np.ones((1,) * len(dims), dtype=bool)
    for axis, (low, high) in zip(index, part.box, strict=True):
        place, whole = positions(axis, ranges, dims)
        inside = inside & whole & (place >= low) & (place < high)
        places.append(np.clip(place - low, 0, high - low - 1))
    found = part.array[tuple(places)] if places else part.array.reshape((1,) * len(dims))
    if inside.all():
        return np.asarray(found)
    return np.where(inside, found, np.asarray(fill, dtype=part.array.dtype))


def _scattered(
    values: Array,
    index: Sequence[Index],
    ranges: Ranges,
    dims: Sequence[str],
    target: tuple[Wanted, float],
) -> Array:
    """Values written where their points land; what lies outside the box is dropped."""
    wanted, fill = target
    result = np.full(wanted.shape, fill, dtype=values.dtype)
    places, inside = [], np.ones((1,) * len(dims), dtype=bool)
    for axis, (low, high) in zip(index, wanted.box, strict=True):
        place, whole = positions(axis, ranges, dims)
        inside = inside & whole & (place >= low) & (place < high)
        places.append(place - low)
    shape = np.broadcast_shapes(values.shape, inside.shape, *(p.shape for p in places))
    chosen = np.broadcast_to(inside, shape)
    if prod(shape):
        result[tuple(np.broadcast_to(p, shape)[chosen] for p in places)] = np.broadcast_to(
            values, shape
        )[chosen]
    return result

"""Sums of products: convolutions, transposed ones and matrix products, any range of their loops.

A tile adds its products to partial sums (`accumulate`); the last one of a result's tiles turns the
sums into the result (`finish`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.network.graph import Index
from tilewright.replay.kernels.activations import activated
from tilewright.replay.kernels.quantised_sums import stored, whole_result, zero_point
from tilewright.replay.kernels.tile import (
    Array,
    Part,
    Tile,
    Wanted,
    aligned,
    positions,
)

KINDS = ("conv", "conv_transpose", "matmul")


def accumulate(tile: Tile, start: Array | None) -> Array:
    """The sums over the tile's points for the box of its result, on top of `start`.

    Floats are summed in double precision: however the sums are cut, results of single precision
    then agree to the last bit but for rare ties, and so does what is rounded to whole steps behind
    them. Whole numbers are summed exactly, as 64-bit integers.
    """
    wanted = tile.results[0]
    left, right = _factor(tile, "I"), _factor(tile, "W")
    sums: Array
    if left is None or right is None:
        sums = np.zeros(wanted.shape, dtype=_sum_type(tile))
    else:
        sums = _placed(tile, _contracted(tile, left.values, right.values))
        if left.is_whole or right.is_whole:
            sums = np.rint(sums).astype(np.int64)
    return sums if start is None else sums + start.astype(sums.dtype)


def finish(tile: Tile, sums: Array) -> Array:
    """The result from its complete sums: bias, scale, activation, requantisation."""
    if sums.dtype == np.int64:
        return whole_result(tile, sums)
    result: Array = sums.astype(np.float32) * np.float32(tile.number("alpha", 1))
    if tile.has("B"):
        result = result + np.float32(tile.number("beta", 1)) * over_result(tile, "B")
    if tile.text("onnx_op") == "FusedConv" and tile.has("X3"):
        result = result + over_result(tile, "X3")
    return activated(tile.op, result)


def over_result(tile: Tile, letter: str) -> Array:
    """An operand without summed loops, such as a bias, under the box of the result."""
    under = tile.op.outputs[0].index
    return aligned(tile.part(letter), tile.index_of(letter), tile.results[0].box, under)


def _sum_type(tile: Tile) -> type[np.float64 | np.int64]:
    parts = [part for part in tile.parts.values() if part.tensor.name in _data_names(tile)]
    whole = any(part.array.dtype.kind in "iu" for part in parts)
    return np.int64 if whole else np.float64


def _data_names(tile: Tile) -> list[str]:
    return [o.tensor for o in tile.op.inputs if o.name in ("I", "W")]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Factor:
    """What is multiplied, in double precision; whole numbers lose nothing by that."""

    values: Array
    is_whole: bool


def _factor(tile: Tile, letter: str) -> _Factor | None:
    """An operand without its zero point, along the loops that it depends on; padding is zero."""
    if letter not in tile.parts:
        return None
    part = tile.parts[letter]
    index = tile.index_of(letter)
    assert index is not None
    array = stored(tile, letter, part)
    is_whole = array.dtype.kind in "iu"
    # Whole numbers, too, become doubles: products of these go through BLAS.
    values = array.astype(np.float64)
    if is_whole:
        values = values - zero_point(tile, letter, part)
    return _Factor(values=_windows(tile, part, values, index), is_whole=is_whole)


def _windows(tile: Tile, part: Part, array: Array, index: Sequence[Index]) -> Array:
    """A view with one axis per loop, 1 where the operand does not depend on it.

    Between whole positions, where no element lies, there are zeros as in the padding.
    """
    dims = [dim for dim, _ in tile.op.dims]
    low, high = _reach(tile, index)
    parts = [axis.divisor for axis in index]
    inside = zip(part.box, low, high, strict=True)
    if max(parts, default=1) == 1 and all(begin <= a and b <= end for (begin, end), a, b in inside):
        cuts = zip(low, high, part.box, strict=True)
        padded = array[tuple(slice(a - begin, b - begin) for a, b, (begin, _) in cuts)]
    else:
        padded = np.zeros([b - a for a, b in zip(low, high, strict=True)], dtype=array.dtype)
        source, target = [], []
        for (begin, end), a, b, by in zip(part.box, low, high, parts, strict=True):
            first = max(begin, -(-a // by))
            last = max(first, min(end, (b - 1) // by + 1))
            source.append(slice(first - begin, last - begin))
            target.append(slice(first * by - a, max(first * by, (last - 1) * by + 1) - a, by))
        padded[tuple(target)] = array[tuple(source)]
    # A loop that goes backwards along an axis begins at its end.
    starts = [
        sum(-factor * (end - begin - 1) for factor, (begin, end) in walks if factor < 0)
        for walks in ([(f, tile.ranges[dim]) for dim, f in axis.terms] for axis in index)
    ]
    padded = padded[tuple(slice(start, None) for start in starts)]
    shape, strides = [], []
    for dim in dims:
        steps = [
            (factor, stride)
            for axis, stride in zip(index, padded.strides, strict=True)
            for name, factor in axis.terms
            if name == dim
        ]
        begin, end = tile.ranges[dim]
        shape.append(end - begin if steps else 1)
        strides.append(sum(factor * stride for factor, stride in steps))
    return np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)


def _reach(tile: Tile, index: Sequence[Index]) -> tuple[list[int], list[int]]:
    """First and behind the last position along each axis, padding included."""
    low, high = [], []
    for axis in index:
        ends = [
            sorted((factor * tile.ranges[dim][0], factor * (tile.ranges[dim][1] - 1)))
            for dim, factor in axis.terms
        ]
        low.append(axis.offset + sum(a for a, _ in ends))
        high.append(axis.offset + sum(b for _, b in ends) + 1)
    return low, high


def _contracted(tile: Tile, left: Array, right: Array) -> Array:
    """Products summed over the loops that the result lacks: an array over all loops."""
    kept = _kept(tile)
    rank = left.ndim
    summed = [i for i in range(rank) if i not in kept]
    # What only one operand has and the result lacks is summed beforehand.
    only_left = tuple(i for i in summed if right.shape[i] == 1 and left.shape[i] > 1)
    only_right = tuple(i for i in summed if left.shape[i] == 1 and right.shape[i] > 1)
    left = left.sum(axis=only_left, keepdims=True) if only_left else left
    right = right.sum(axis=only_right, keepdims=True) if only_right else right
    inner = [i for i in summed if left.shape[i] > 1]
    batch = [i for i in kept if left.shape[i] > 1 and right.shape[i] > 1]
    rows = [i for i in kept if left.shape[i] > 1 and i not in batch]
    columns = [i for i in kept if right.shape[i] > 1 and i not in batch]

    def matrix(array: Array, groups: Sequence[list[int]]) -> Array:
        order = [i for group in groups for i in group]
        rest = [i for i in range(rank) if i not in order]
        sizes = [array.shape[i] for i in batch]
        flat = [prod(array.shape[i] for i in group) for group in groups[1:]]
        return array.transpose(*order, *rest).reshape(*sizes, *flat)

    product = matrix(left, [batch, rows, inner]) @ matrix(right, [batch, inner, columns])
    order = [*batch, *rows, *columns]
    sizes = [max(left.shape[i], right.shape[i]) for i in order]
    spread = product.reshape(*sizes, *(1,) * (rank - len(order)))
    missing = [i for i in range(rank) if i not in order]
    back = [[*order, *missing].index(i) for i in range(rank)]
    return spread.transpose(back)


def _kept(tile: Tile) -> list[int]:
    index = tile.op.outputs[0].index
    assert index is not None
    dims = [dim for dim, _ in tile.op.dims]
    return sorted({dims.index(dim) for axis in index for dim, _ in axis.terms})


def _placed(tile: Tile, products: Array) -> Array:
    """Sums over the loops in the box of the result; points that land together are added."""
    index, wanted = tile.op.outputs[0].index, tile.results[0]
    assert index is not None
    if all(len(axis.terms) <= 1 for axis in index):
        return np.asarray(tile.boxed(products), order="C")
    dims = [dim for dim, _ in tile.op.dims]
    if _is_split(index, tile, wanted):
        return np.asarray(_merged(tile, products, wanted), order="C")
    sums = np.zeros(wanted.shape, dtype=products.dtype)
    places, inside = [], np.ones((1,) * len(dims), dtype=bool)
    for axis, (low, high) in zip(index, wanted.box, strict=True):
        place, whole = positions(axis, tile.ranges, dims)
        inside = inside & whole & (place >= low) & (place < high)
        places.append(place - low)
    shape = np.broadcast_shapes(products.shape, inside.shape, *(p.shape for p in places))
    chosen = np.broadcast_to(inside, shape)
    where = tuple(np.broadcast_to(p, shape)[chosen] for p in places)
    np.add.at(sums, where, np.broadcast_to(products, shape)[chosen])
    return sums


def _is_split(index: Sequence[Index], tile: Tile, wanted: Wanted) -> bool:
    """Whether every axis is its loops one inside the other: groups of channels, say; and no shorter
    or longer than they are, as transposed convolutions may have it."""
    for axis, length in zip(index, wanted.shape, strict=True):
        if length != prod(tile.ranges[dim][1] - tile.ranges[dim][0] for dim, _ in axis.terms):
            return False
        step = 1
        for dim, factor in reversed(axis.terms):
            if factor != step or axis.offset or axis.divisor != 1:
                return False
            step *= tile.op.sizes[dim]
    return all(_is_whole_inside(axis, tile) for axis in index)


def _is_whole_inside(axis: Index, tile: Tile) -> bool:
    """Whether the tile is one stretch of the axis: no inner loop is cut unless the outer stand."""
    lengths = [tile.ranges[dim][1] - tile.ranges[dim][0] for dim, _ in axis.terms]
    sizes = [tile.op.sizes[dim] for dim, _ in axis.terms]
    return all(
        lengths[i + 1 :] == sizes[i + 1 :] or all(n == 1 for n in lengths[: i + 1])
        for i in range(len(lengths))
    )


def _merged(tile: Tile, products: Array, wanted: Wanted) -> Array:
    index = tile.op.outputs[0].index
    assert index is not None
    dims = [dim for dim, _ in tile.op.dims]
    order = [dims.index(dim) for axis in index for dim, _ in axis.terms]
    rest = [i for i in range(len(dims)) if i not in order]
    full = np.broadcast_to(products, [n if i in order else 1 for i, n in enumerate(tile.lengths)])
    return full.transpose(*order, *rest).reshape(wanted.shape)

"""Pools: each result from the window of elements that it sees."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilewright.network.graph import Index
from tilewright.replay.kernels.activations import activated
from tilewright.replay.kernels.quantise import dequantised, dtype_of, saturated, single
from tilewright.replay.kernels.tflite import pooled as tflite_pooled
from tilewright.replay.kernels.tile import Array, Part, Tile, positions

KINDS = ("max_pool", "average_pool")
"""Pools of which a tile may see a part of the windows: the largest or the sum so far is kept."""


def accumulate(tile: Tile, start: Array | None) -> Array:
    """The largest, or the sum, of what the tile sees of each window, together with `start`."""
    if tile.op.kind == "max_pool":
        windows = _windows(tile, tile.part("I"), _lowest(tile.part("I").array))
        best = windows.max(axis=_tap_axes(tile, windows))
        return np.asarray(best if start is None else np.maximum(best, start.astype(best.dtype)))
    sums = _sums(tile, _added(tile))
    return sums if start is None else sums + start.astype(sums.dtype)


def finish(tile: Tile, values: Array) -> Array:
    """The result from the largest, or the sum, of whole windows."""
    part = tile.part("I")
    sizes = tile.op.sizes
    # Means divide by the taps of a window, however few of them the last tile saw.
    tile = replace(tile, ranges={**tile.ranges, **{d: (0, sizes[d]) for d in _tap_dims(tile)}})
    if tile.op.kind == "max_pool":
        is_real = part.quantisation is None
        return activated(tile.op, values) if is_real else tflite_pooled(tile, values)
    if part.quantisation is not None and part.array.dtype.kind in "iu":
        return tflite_pooled(tile, values, _counts(tile))
    operator = tile.text("onnx_op")
    if operator == "QLinearGlobalAveragePool":
        return _whole_average(tile, values)
    mean = values / _counts(tile)
    if operator.startswith("QLinear"):
        # ONNX Runtime rounds behind the zero point here, which decides ties.
        steps = np.rint(mean / single(tile, "X5") + single(tile, "X6").astype(np.float32))
        return saturated(steps, dtype_of(tile.results[0].tensor.dtype))
    return activated(tile.op, mean)


def max_pool(tile: Tile) -> Sequence[Array]:
    """The largest of each window, and, if asked for, where it was in the whole tensor."""
    best = accumulate(tile, None)
    if len(tile.results) == 1:
        return [finish(tile, best)]
    windows = _windows(tile, tile.part("I"), _lowest(tile.part("I").array))
    flat = windows.reshape(*best.shape, -1).argmax(axis=-1)
    return [finish(tile, best), _places(tile, flat)]


def average_pool(tile: Tile) -> Sequence[Array]:
    """The mean of each window; padding counts if `count_include_pad` says so."""
    return [finish(tile, accumulate(tile, None))]


def _lowest(array: Array) -> float:
    return np.iinfo(array.dtype).min if array.dtype.kind in "iu" else -np.inf


def _added(tile: Tile) -> Array:
    """What a mean adds up: whole numbers as they are or without their zero point, or real ones."""
    part = tile.part("I")
    if part.quantisation is not None and part.array.dtype.kind in "iu":
        return part.array.astype(np.int64)
    operator = tile.text("onnx_op")
    if operator == "QLinearGlobalAveragePool":
        return part.array.astype(np.int64) - single(tile, "X4").astype(np.int64)
    if operator.startswith("QLinear"):
        return dequantised(part.array, single(tile, "X3"), single(tile, "X4"))
    return part.array


def _whole_average(tile: Tile, sums: Array) -> Array:
    """ONNX Runtime sums whole numbers and multiplies by one factor."""
    count = np.float32(np.max(_counts(tile)))
    factor = np.float32(single(tile, "X3")) / (np.float32(single(tile, "X5")) * count)
    steps = np.rint(sums.astype(np.float32) * factor).astype(np.int64)
    dtype = dtype_of(tile.results[0].tensor.dtype)
    return saturated(steps + single(tile, "X6").astype(np.int64), dtype)


def lp_pool(tile: Tile) -> Sequence[Array]:
    """The p-norm of each window; TFLite divides by the number of elements before the root."""
    p = tile.number("p", 2)
    powers = _sums(tile, np.abs(tile.part("I").array) ** np.float32(p))
    if tile.text("tflite_op"):
        powers = powers / _counts(tile)
    return [activated(tile.op, powers ** np.float32(1 / p))]


def _n_taps(tile: Tile) -> int:
    """Loops over a window: the innermost ones, along which the result has no extent."""
    return len(tile.op.dims) - len(tile.op.outputs[0].index or ())


def _tap_dims(tile: Tile) -> list[str]:
    return [dim for dim, _ in tile.op.dims][len(tile.op.dims) - _n_taps(tile) :]


def _windows(tile: Tile, part: Part, fill: float, data: Array | None = None) -> Array:
    """Elements by result, in the axes of its box, and then by tap; `fill` in the padding."""
    index = tile.index_of("I")
    result = tile.op.outputs[0].index
    assert index is not None
    assert result is not None
    array = part.array if data is None else data
    ends = [_reach(tile, axis) for axis in index]
    padded = np.full([b - a for a, b in ends], fill, dtype=array.dtype)
    source, target = [], []
    for (a, b), (low, high) in zip(ends, part.box, strict=True):
        first = max(a, low)
        last = max(first, min(b, high))
        source.append(slice(first - low, last - low))
        target.append(slice(first - a, last - a))
    padded[tuple(target)] = array[tuple(source)]
    steps = {
        dim: factor * stride
        for axis, stride in zip(index, padded.strides, strict=True)
        for dim, factor in axis.terms
    }
    dims = [axis.terms[0][0] for axis in result] + _tap_dims(tile)
    shape = [tile.ranges[dim][1] - tile.ranges[dim][0] for dim in dims]
    return np.lib.stride_tricks.as_strided(padded, shape, [steps[dim] for dim in dims])


def _reach(tile: Tile, axis: Index) -> tuple[int, int]:
    low = axis.offset + sum(f * tile.ranges[dim][0] for dim, f in axis.terms)
    high = axis.offset + sum(f * (tile.ranges[dim][1] - 1) for dim, f in axis.terms)
    return low, high + 1


def _tap_axes(tile: Tile, windows: Array) -> tuple[int, ...]:
    return tuple(range(windows.ndim - _n_taps(tile), windows.ndim))


def _sums(tile: Tile, data: Array) -> Array:
    windows = _windows(tile, tile.part("I"), 0, data)
    return np.asarray(windows.sum(axis=_tap_axes(tile, windows)))


def _counts(tile: Tile) -> Array:
    """Elements that each mean divides by, for broadcasting with the result's box."""
    index, result = tile.index_of("I"), tile.op.outputs[0].index
    assert index is not None
    assert result is not None
    sizes = tile.part("I").tensor.shape
    with_padding = bool(tile.number("count_include_pad"))
    pads = tile.integers("pads")
    total = np.ones((1,) * len(result), dtype=np.float32)
    spatial = [i for i, axis in enumerate(index) if len(axis.terms) == 2]
    half = len(pads) // 2
    for number, axis in enumerate(spatial):
        slide, tap = (dim for dim, _ in index[axis].terms)
        place, _ = positions(index[axis], tile.ranges, (slide, tap))
        low, high = 0, sizes[axis]
        if with_padding and pads:
            low, high = -pads[number], sizes[axis] + pads[half + number]
        count = ((place >= low) & (place < high)).sum(axis=1)
        shape = [1] * len(result)
        shape[[a.terms[0][0] for a in result].index(slide)] = -1
        total = total * count.reshape(shape).astype(np.float32)
    return total


def _places(tile: Tile, taps: Array) -> Array:
    """The position in the whole tensor of the chosen tap of each window, as ONNX counts it."""
    index, shape = tile.index_of("I"), tile.part("I").tensor.shape
    result = tile.op.outputs[0].index
    assert index is not None
    assert result is not None
    kernel = tile.integers("kernel_shape")
    by_axis = np.unravel_index(taps, kernel)
    order = list(range(len(shape)))
    if tile.number("storage_order"):
        order = [*order[:2], *reversed(order[2:])]
    place = np.zeros(taps.shape, dtype=np.int64)
    tap = iter(by_axis)
    coordinates = []
    for axis, own in enumerate(index):
        dim, factor = own.terms[0]
        along = own.offset + factor * np.arange(*tile.ranges[dim])
        ones = [1] * taps.ndim
        ones[axis] = -1
        here = along.reshape(ones)
        if len(own.terms) == 2:
            here = here + own.terms[1][1] * next(tap)
        coordinates.append(here)
    for axis in order:
        place = place * shape[axis] + coordinates[axis]
    return place

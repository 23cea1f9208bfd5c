"""Resizing images: each result from the elements around the place it comes from."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tilewright.replay.kernels.tile import Array, KernelError, Tile

Floats = npt.NDArray[np.floating[Any]]
"""Places are worked out in single precision, as ONNX Runtime does: ties depend on it."""

Places = Callable[[Floats, np.float32, int, int], Floats]


def _half_pixel(at: Floats, scale: np.float32, size: int, full: int) -> Floats:
    return (at + 0.5) / scale - 0.5


def _half_pixel_symmetric(at: Floats, scale: np.float32, size: int, full: int) -> Floats:
    adjustment = full / (scale * size)
    return size / 2 * (1 - adjustment) + (at + 0.5) / scale - 0.5


def _pytorch_half_pixel(at: Floats, scale: np.float32, size: int, full: int) -> Floats:
    return (at + 0.5) / scale - 0.5 if full > 1 else np.zeros_like(at)


def _align_corners(at: Floats, scale: np.float32, size: int, full: int) -> Floats:
    return at * (size - 1) / (full - 1) if full > 1 else np.zeros_like(at)


def _asymmetric(at: Floats, scale: np.float32, size: int, full: int) -> Floats:
    return at / scale


def _tf_half_pixel(at: Floats, scale: np.float32, size: int, full: int) -> Floats:
    return (at + 0.5) / scale


_COORDINATES: Final[Mapping[str, Places]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "tf_half_pixel_for_nn": _tf_half_pixel,
}


def resize(tile: Tile) -> Sequence[Array]:
    """Nearest, linear or cubic, axis by axis."""
    if tile.index_of("I") is not None:
        return [tile.boxed(tile.over_loops("I"))]
    if tile.number("antialias"):
        raise KernelError("resizing with antialias is not emulated")
    data = tile.whole("I")
    if data.dtype.kind in "iu" and tile.text("mode") != "nearest":
        return [_whole_bilinear(tile, data) if tile.text("tflite_op") else _cut_off(tile, data)]
    result, outside = data, np.zeros((1,) * data.ndim, dtype=bool)
    for axis, (begin, end) in enumerate(tile.results[0].box):
        full, size = tile.results[0].tensor.shape[axis], data.shape[axis]
        at = _places(tile, axis, size, full)[begin:end]
        # An axis of scale 1 is not resampled, not even where a region is cropped: so ONNX Runtime.
        if full == size and _scale(tile, axis, size, full) == 1:
            result = np.take(result, np.arange(begin, end), axis=axis)
            continue
        if tile.text("coordinate_transformation_mode") == "tf_crop_and_resize":
            shape = [1] * data.ndim
            shape[axis] = -1
            outside = outside | ((at < 0) | (at > size - 1)).reshape(shape)
        result = _interpolated(tile, result, axis, at)
    if outside.any():
        result = np.where(outside, np.float32(tile.number("extrapolation_value")), result)
    return [result.astype(data.dtype, copy=False)]


def _cut_off(tile: Tile, data: Array) -> Array:
    """Whole numbers as ONNX Runtime interpolates them: in single precision, then cut off."""
    coordinates = tile.text("coordinate_transformation_mode")
    if tile.text("mode") != "linear" or coordinates == "tf_crop_and_resize":
        raise KernelError("interpolating whole numbers other than linearly is not emulated")
    sides = []
    for axis, (begin, end) in enumerate(tile.results[0].box):
        full, size = tile.results[0].tensor.shape[axis], data.shape[axis]
        if full == size and _scale(tile, axis, size, full) == 1:
            data = np.take(data, np.arange(begin, end), axis=axis)
            continue
        at = np.clip(_places(tile, axis, size, full)[begin:end], 0, size - 1).astype(np.float32)
        low = np.floor(at)
        high = np.minimum(low + 1, size - 1)
        # Between an element and itself, at the end, both have half a share.
        shares = [np.where(high > low, s, np.float32(0.5)) for s in (high - at, at - low)]
        sides.append((axis, tuple(zip((low, high), shares, strict=True))))
    total = np.zeros((), dtype=np.float32)
    for corner in product(*(ends for _, ends in sides)):
        share, part = np.ones((), dtype=np.float32), data
        for (axis, _), (place, weight) in zip(sides, corner, strict=True):
            share = share * weight.reshape([-1 if i == axis else 1 for i in range(data.ndim)])
            part = np.take(part, place.astype(np.int64), axis=axis)
        total = total + share * part
    return np.trunc(total).astype(data.dtype)


def _whole_bilinear(tile: Tile, data: Array) -> Array:
    """TFLite's RESIZE_BILINEAR of whole numbers."""
    batch, (top, bottom), (left, right), channels = tile.results[0].box
    data = data[slice(*batch), :, :, slice(*channels)]
    (rows, row_shares), (columns, column_shares) = (
        _fixed_places(tile, axis, data.shape[axis], tile.results[0].tensor.shape[axis])
        for axis in (1, 2)
    )
    total = np.zeros((), dtype=np.int64)
    for row, row_share in zip(rows, row_shares, strict=True):
        for column, column_share in zip(columns, column_shares, strict=True):
            corner = data[:, row[top:bottom]][:, :, column[left:right]].astype(np.int64)
            share = row_share[top:bottom, None] * column_share[left:right]
            total = total + corner * share[None, :, :, None]
    half = np.where(total > 0, 2**19, -(2**19))
    rounded = total + half
    return np.where(rounded >= 0, rounded >> 20, -(-rounded >> 20)).astype(data.dtype)


def _fixed_places(
    tile: Tile, axis: int, size: int, full: int
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The two elements around each place and their shares in 1/1024."""
    mode = tile.text("coordinate_transformation_mode")
    if mode == "align_corners" and full > 1:
        scale = (1024 * (size - 1) + (full - 1) // 2) // (full - 1)
    else:
        scale = (1024 * size + full // 2) // full
    at = np.arange(full, dtype=np.int64) * scale
    if mode == "half_pixel":
        at = at + scale // 2 - 512
    # C++ divides towards zero.
    low = np.maximum(np.where(at >= 0, at // 1024, -(-at // 1024)), 0)
    high = np.minimum(np.where(at + 1023 >= 0, (at + 1023) // 1024, 0), size - 1)
    ahead = at - 1024 * low
    return (low, high), (1024 - ahead, ahead)


def _places(tile: Tile, axis: int, size: int, full: int) -> Floats:
    """Where along the input each result comes from."""
    at = np.arange(full, dtype=np.float32)
    mode = tile.text("coordinate_transformation_mode", "half_pixel")
    scale = np.float32(_scale(tile, axis, size, full))
    if mode == "tf_crop_and_resize":
        region = tile.op.attribute("roi", ())
        assert isinstance(region, tuple)
        first, last = (float(region[axis + i * len(region) // 2]) for i in range(2))
        if full == 1:
            return np.full(1, 0.5 * (first + last) * (size - 1), dtype=np.float32)
        return first * (size - 1) + at * (last - first) * (size - 1) / (full - 1)
    if mode not in _COORDINATES:
        raise KernelError(f"coordinates {mode!r} are not emulated")
    return _COORDINATES[mode](at, scale, size, full)


def _scale(tile: Tile, axis: int, size: int, full: int) -> float:
    scales = tile.op.attribute("scales", ())
    if isinstance(scales, tuple) and len(scales) > axis:
        return float(scales[axis])
    return full / size


def _interpolated(tile: Tile, data: Array, axis: int, at: Floats) -> Array:
    match tile.text("mode", "nearest"):
        case "nearest":
            place = np.clip(_rounded(tile, at), 0, data.shape[axis] - 1)
            return np.take(data, place.astype(np.int64), axis=axis)
        case "linear":
            return _weighted(data, axis, np.floor(at), _linear_weights(data, axis, at))
        case _:
            return _weighted(data, axis, np.floor(at) - 1, _cubic_weights(tile, data, axis, at))


def _rounded(tile: Tile, at: Floats) -> Floats:
    match tile.text("nearest_mode", "round_prefer_floor"):
        case "floor":
            return np.asarray(np.floor(at))
        case "ceil":
            return np.asarray(np.ceil(at))
        case "round_prefer_ceil":
            return np.asarray(np.floor(at + 0.5))
        case _:
            return np.asarray(np.ceil(at - 0.5))


def _linear_weights(data: Array, axis: int, at: Floats) -> list[Floats]:
    ahead = at - np.floor(at)
    return [1 - ahead, ahead]


def _cubic_weights(tile: Tile, data: Array, axis: int, at: Floats) -> list[Floats]:
    a = tile.number("cubic_coeff_a", -0.75)
    ahead = at - np.floor(at)
    weights = []
    for step in range(-1, 3):
        x = np.abs(ahead - step)
        near = (a + 2) * x**3 - (a + 3) * x**2 + 1
        far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
        weights.append(np.where(x <= 1, near, np.where(x < 2, far, 0)))
    if tile.number("exclude_outside"):
        places = [np.floor(at) + step for step in range(-1, 3)]
        inside = [(p >= 0) & (p < data.shape[axis]) for p in places]
        weights = [np.where(ok, w, 0) for ok, w in zip(inside, weights, strict=True)]
        total = np.sum(weights, axis=0)
        weights = [w / total for w in weights]
    return weights


def _weighted(data: Array, axis: int, first: Floats, weights: list[Floats]) -> Array:
    """Σ weight × element, elements beyond an end being those at the end."""
    shape = [1] * data.ndim
    shape[axis] = -1
    total = np.zeros((), dtype=np.float64)
    for step, weight in enumerate(weights):
        place = np.clip(first + step, 0, data.shape[axis] - 1).astype(np.int64)
        total = total + np.take(data, place, axis=axis) * weight.reshape(shape)
    return np.asarray(total)

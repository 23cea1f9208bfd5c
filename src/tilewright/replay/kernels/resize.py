"""Resizing images: each result from the elements around the place it comes from."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from tilewright.network import resampling
from tilewright.network.resampling import Attributes, Floats, Ints, inside
from tilewright.replay.kernels.tile import Array, KernelError, Part, Tile


def resize(tile: Tile) -> Sequence[Array]:
    """Nearest, linear or cubic, axis by axis."""
    if tile.number("antialias"):
        raise KernelError("resizing with antialias is not emulated")
    part = tile.part("I")
    if part.array.dtype.kind in "iu" and tile.text("mode") != "nearest":
        return [_whole_bilinear(tile, part) if tile.text("tflite_op") else _cut_off(tile, part)]
    attributes = dict(tile.op.attributes)
    result, outside = part.array, np.zeros((1,) * part.array.ndim, dtype=bool)
    for axis, (begin, end) in enumerate(tile.results[0].box):
        first, sizes = part.box[axis][0], _sizes(tile, part, axis)
        if resampling.is_kept(attributes, axis, *sizes):
            result = np.take(result, np.arange(begin, end) - first, axis=axis)
            continue
        at = _places(attributes, axis, sizes)[begin:end]
        if tile.text("coordinate_transformation_mode") == "tf_crop_and_resize":
            shape = [1] * result.ndim
            shape[axis] = -1
            outside = outside | ((at < 0) | (at > sizes[0] - 1)).reshape(shape)
        elements, weights = _shares(attributes, at, sizes[0])
        result = _weighted(result, axis, [place - first for place in elements], weights)
    if outside.any():
        result = np.where(outside, np.float32(tile.number("extrapolation_value")), result)
    return [result.astype(part.array.dtype, copy=False)]


def _sizes(tile: Tile, part: Part, axis: int) -> tuple[int, int]:
    """How long an axis is before and after."""
    return part.tensor.shape[axis], tile.results[0].tensor.shape[axis]


def _places(attributes: Attributes, axis: int, sizes: tuple[int, int]) -> Floats:
    try:
        return resampling.places(attributes, axis, *sizes)
    except KeyError as error:
        raise KernelError(f"coordinates {error} are not emulated") from None


def _cut_off(tile: Tile, part: Part) -> Array:
    """Whole numbers as ONNX Runtime interpolates them: in single precision, then cut off."""
    coordinates = tile.text("coordinate_transformation_mode")
    if tile.text("mode") != "linear" or coordinates == "tf_crop_and_resize":
        raise KernelError("interpolating whole numbers other than linearly is not emulated")
    attributes, data, sides = dict(tile.op.attributes), part.array, []
    for axis, (begin, end) in enumerate(tile.results[0].box):
        first, (size, full) = part.box[axis][0], _sizes(tile, part, axis)
        if resampling.is_kept(attributes, axis, size, full):
            data = np.take(data, np.arange(begin, end) - first, axis=axis)
            continue
        at = _places(attributes, axis, (size, full))[begin:end]
        at = np.clip(at, 0, size - 1).astype(np.float32)
        low = np.floor(at)
        high = np.minimum(low + 1, size - 1)
        # Between an element and itself, at the end, both have half a share.
        shares = [np.where(high > low, s, np.float32(0.5)) for s in (high - at, at - low)]
        # What has no share is not read.
        elements = [inside(place, size) - first for place in (low, np.ceil(at))]
        sides.append((axis, tuple(zip(elements, shares, strict=True))))
    total = np.zeros((), dtype=np.float32)
    for corner in product(*(ends for _, ends in sides)):
        share, cut = np.ones((), dtype=np.float32), data
        for (axis, _), (place, weight) in zip(sides, corner, strict=True):
            share = share * weight.reshape([-1 if i == axis else 1 for i in range(data.ndim)])
            cut = np.take(cut, place, axis=axis)
        total = total + share * cut
    return np.trunc(total).astype(data.dtype)


def _whole_bilinear(tile: Tile, part: Part) -> Array:
    """TFLite's RESIZE_BILINEAR of whole numbers."""
    attributes, box = dict(tile.op.attributes), tile.results[0].box
    (rows, row_shares), (columns, column_shares) = (
        _fixed_places(attributes, _sizes(tile, part, axis), box[axis], part.box[axis][0])
        for axis in (1, 2)
    )
    total = np.zeros((), dtype=np.int64)
    for row, row_share in zip(rows, row_shares, strict=True):
        for column, column_share in zip(columns, column_shares, strict=True):
            corner = part.array[:, row][:, :, column].astype(np.int64)
            share = row_share[:, None] * column_share
            total = total + corner * share[None, :, :, None]
    half = np.where(total > 0, 2**19, -(2**19))
    rounded = total + half
    return np.where(rounded >= 0, rounded >> 20, -(-rounded >> 20)).astype(part.array.dtype)


def _fixed_places(
    attributes: Attributes, sizes: tuple[int, int], wanted: tuple[int, int], first: int
) -> tuple[list[Ints], list[Ints]]:
    """The two elements around each wanted place, counted from the first at hand, and shares."""
    places, shares = resampling.fixed_places(attributes, *sizes)
    cut = slice(*wanted)
    return [place[cut] - first for place in places], [share[cut] for share in shares]


def _shares(attributes: Attributes, at: Floats, size: int) -> tuple[list[Ints], list[Floats]]:
    """The elements that results at some places are made of, and the weight of each."""
    match attributes.get("mode", "nearest"):
        case "nearest":
            return [inside(resampling.rounded(attributes, at), size)], []
        case "linear":
            ahead = at - np.floor(at)
            return [inside(np.floor(at), size), inside(np.ceil(at), size)], [1 - ahead, ahead]
        case _:
            near = [np.floor(at) + step for step in range(-1, 3)]
            weights = _cubic_weights(attributes, at, near, size)
            return [inside(place, size) for place in near], weights


def _cubic_weights(
    attributes: Attributes, at: Floats, near: list[Floats], size: int
) -> list[Floats]:
    a = attributes.get("cubic_coeff_a", -0.75)
    assert isinstance(a, int | float)
    weights = []
    for place in near:
        x = np.abs(at - place)
        close = (a + 2) * x**3 - (a + 3) * x**2 + 1
        far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
        weights.append(np.where(x <= 1, close, np.where(x < 2, far, 0)))
    if attributes.get("exclude_outside"):
        weights = [
            np.where((p >= 0) & (p < size), w, 0) for p, w in zip(near, weights, strict=True)
        ]
        total = np.sum(weights, axis=0)
        weights = [w / total for w in weights]
    return weights


def _weighted(data: Array, axis: int, elements: list[Ints], weights: list[Floats]) -> Array:
    """Σ weight × element; without weights, the only element itself."""
    if not weights:
        return np.take(data, elements[0], axis=axis)
    shape = [1] * data.ndim
    shape[axis] = -1
    total = np.zeros((), dtype=np.float64)
    for place, weight in zip(elements, weights, strict=True):
        total = total + np.take(data, place, axis=axis) * weight.reshape(shape)
    return np.asarray(total)

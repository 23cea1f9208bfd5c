"""Which elements of its input each element of a resized axis is made of.

Places are worked out in single precision, as ONNX Runtime does: ties depend on it.
"""

from collections.abc import Callable, Mapping
from math import gcd
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tilewright.network.graph import AttributeValue, Index
from tilewright.network.moves import anywhere
from tilewright.network.nests import Nest, Shape, along_dim, anywhere_along, axis_names, moved

Attributes = Mapping[str, AttributeValue]
Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]
Places = Callable[[Floats, np.float32, int, int], Floats]
Ends = tuple[Ints, Ints]
"""For each result along an axis, the first and the last element that it is made of."""

MOST_PLACES: Final = 2**20
"""Of longer axes it is not looked at place by place what is read."""


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


def resized(
    data: Shape, shape: Shape, attributes: Attributes, *, channels_last: bool = False
) -> Nest:
    """The nest over the result of a resize, with the window of the input that each point reads.

    Nearest and linear ones have a window; of others any element may be read.
    """
    is_known = (
        attributes.get("mode") in ("nearest", "linear")
        and attributes.get("coordinate_transformation_mode") in _COORDINATES
        and not attributes.get("antialias")
    )
    if not is_known or 0 in data or 0 in shape:
        return anywhere(shape, channels_last=channels_last)
    names = axis_names(len(shape), channels_last=channels_last)
    index = tuple(
        _along(name, attributes, axis, sizes)
        for axis, (name, *sizes) in enumerate(zip(names, data, shape, strict=True))
    )
    return moved(shape, index, channels_last=channels_last)


def _along(name: str, attributes: Attributes, axis: int, sizes: list[int]) -> Index:
    size, full = sizes
    if is_kept(attributes, axis, size, full):
        return along_dim(name)
    if max(sizes) > MOST_PLACES:
        return anywhere_along(size)
    return window(name, _slope(attributes, size, full), ends(attributes, axis, size, full))


def window(name: str, slope: tuple[int, int], read: Ends) -> Index:
    """The narrowest index along a loop, so many elements of the input for so many results, that
    holds what is read.

    >>> read = np.arange(6) // 3
    >>> str(window("OY", (2, 6), (read, read)))
    '(OY - 2 + 0..2) / 3'
    """
    common = gcd(*slope)
    factor, divisor = slope[0] // common, slope[1] // common
    steps = factor * np.arange(len(read[0]), dtype=np.int64)
    low, high = (divisor * read[0] - steps).min(), (divisor * read[1] - steps).max()
    return Index(((name, factor),), int(low), divisor, int(high - low))


def _slope(attributes: Attributes, size: int, full: int) -> tuple[int, int]:
    """How many elements of the input an axis goes on in how many results."""
    is_aligned = attributes["coordinate_transformation_mode"] == "align_corners"
    return (size - 1, full - 1) if is_aligned and min(size, full) > 1 else (size, full)


def ends(attributes: Attributes, axis: int, size: int, full: int) -> Ends:
    """What the results along an axis of a nearest or linear resize are made of."""
    at = places(attributes, axis, size, full)
    if attributes["mode"] == "nearest":
        nearest = inside(rounded(attributes, at), size)
        return nearest, nearest
    first, last = inside(np.floor(at), size), inside(np.ceil(at), size)
    if "tflite_op" in attributes:
        (low, high), _ = fixed_places(attributes, size, full)
        first, last = np.minimum(first, low), np.maximum(last, high)
    return first, last


def inside(place: Floats, size: int) -> Ints:
    """Whole places, those beyond an end of the axis being at the end."""
    return np.clip(place, 0, size - 1).astype(np.int64)


def is_kept(attributes: Attributes, axis: int, size: int, full: int) -> bool:
    """Whether an axis is not resampled: if its scale is 1, even where a region is cropped.

    So does ONNX Runtime.
    """
    return full == size and _scale(attributes, axis, size, full) == 1


def changes_nothing(attributes: Attributes, data: Shape, shape: Shape) -> bool:
    """Whether no axis is resampled, so that the result is the input."""
    sizes = zip(data, shape, strict=True)
    return all(is_kept(attributes, axis, *both) for axis, both in enumerate(sizes))


def places(attributes: Attributes, axis: int, size: int, full: int) -> Floats:
    """Where along the input each result comes from; KeyError for unknown coordinates."""
    at = np.arange(full, dtype=np.float32)
    mode = str(attributes.get("coordinate_transformation_mode", "half_pixel"))
    scale = np.float32(_scale(attributes, axis, size, full))
    if mode == "tf_crop_and_resize":
        region = attributes["roi"]
        assert isinstance(region, tuple)
        first, last = (float(region[axis + i * len(region) // 2]) for i in range(2))
        if full == 1:
            return np.full(1, 0.5 * (first + last) * (size - 1), dtype=np.float32)
        return first * (size - 1) + at * (last - first) * (size - 1) / (full - 1)
    return _COORDINATES[mode](at, scale, size, full)


def _scale(attributes: Attributes, axis: int, size: int, full: int) -> float:
    scales = attributes.get("scales", ())
    if isinstance(scales, tuple) and len(scales) > axis:
        return float(scales[axis])
    return full / size


def rounded(attributes: Attributes, at: Floats) -> Floats:
    """The places of the elements that nearest picks."""
    match attributes.get("nearest_mode", "round_prefer_floor"):
        case "floor":
            return np.asarray(np.floor(at))
        case "ceil":
            return np.asarray(np.ceil(at))
        case "round_prefer_ceil":
            return np.asarray(np.floor(at + 0.5))
        case _:
            return np.asarray(np.ceil(at - 0.5))


def fixed_places(attributes: Attributes, size: int, full: int) -> tuple[Ends, Ends]:
    """The two elements around each place and their shares in 1/1024: TFLite's of whole numbers."""
    mode = attributes["coordinate_transformation_mode"]
    if mode == "align_corners" and full > 1:
        scale = (1024 * (size - 1) + (full - 1) // 2) // (full - 1)
    else:
        scale = (1024 * size + full // 2) // full
    at = np.arange(full, dtype=np.int64) * scale
    if mode == "half_pixel":
        at = at + scale // 2 - 512
    # C++ divides towards zero.
    low = np.clip(np.where(at >= 0, at // 1024, -(-at // 1024)), 0, size - 1)
    high = np.minimum(np.where(at + 1023 >= 0, (at + 1023) // 1024, 0), size - 1)
    ahead = at - 1024 * low
    return (low, high), (1024 - ahead, ahead)

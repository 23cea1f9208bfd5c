"""Resize and Upsample in all their versions."""

import math

import numpy as np

from tilewright.network.graph import AttributeValue
from tilewright.network.nests import Shape, elementwise, normal_axis
from tilewright.network.onnx_reader.call import Call, Rule, Step, main_step
from tilewright.network.onnx_reader.shapes import possible_shape
from tilewright.network.resampling import changes_nothing, resized

_COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_POLICIES = ("stretch", "not_larger", "not_smaller")


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {"Resize": Rule("resize", _resize), "Upsample": Rule("resize", _upsample)}


Sizing = tuple[Shape, tuple[float, ...]]
"""The shape of the result, and the scale of every axis by which coordinates are computed."""


def _upsample(call: Call) -> list[Step]:
    """The operator that Resize replaced: scales only, no choice of coordinates."""
    data = call.shape(0)
    if call.opset >= 9:
        scales = call.numbers_at(1)
    elif call.opset >= 7:
        scales = call.numbers("scales")
    else:
        scales = (1.0, 1.0, call.number("height_scale", 1), call.number("width_scale", 1))
    attributes: dict[str, AttributeValue] = {
        "mode": call.text("mode", "nearest"),
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    return [_step(call, _scaled(data, scales), attributes)]


def _resize(call: Call) -> list[Step]:
    data = call.shape(0)
    attributes: dict[str, AttributeValue] = {
        "mode": call.choice("mode", ("nearest", "linear", "cubic")),
    }
    if call.opset < 11:
        attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return [_step(call, _scaled(data, call.numbers_at(1)), attributes)]
    coordinates = call.choice("coordinate_transformation_mode", _COORDINATES)
    attributes |= {
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": call.choice("nearest_mode", _ROUNDINGS),
        "cubic_coeff_a": call.number("cubic_coeff_a", -0.75),
        "exclude_outside": call.integer("exclude_outside", 0),
        "extrapolation_value": call.number("extrapolation_value", 0),
        "antialias": call.integer("antialias", 0),
    }
    axes = _axes(call, len(data))
    if coordinates == "tf_crop_and_resize":
        attributes["roi"] = call.numbers_at(1)
    if _is_given(call, 3):
        sizing = _to_sizes(call, data, axes)
    elif _is_given(call, 2):
        sizing = _by_scales(call, data, axes)
    else:
        raise ValueError("neither scales nor sizes are given")
    return [_step(call, sizing, attributes)]


def _is_given(call: Call, position: int) -> bool:
    """Whether the input is there and not empty: an empty one stands for one left out."""
    return call.has(position) and 0 not in call.shape(position)


def _axes(call: Call, rank: int) -> tuple[int, ...]:
    stated = call.integers("axes")
    axes = tuple(range(rank) if stated is None else (normal_axis(a, rank) for a in stated))
    if len(set(axes)) != len(axes):
        raise ValueError(f"axes {stated} repeat")
    return axes


def _by_scales(call: Call, data: Shape, axes: tuple[int, ...]) -> Sizing:
    """Scaled sizes, also where a region is cropped.

    ONNX's text would multiply by the region's size, too; its reference evaluator and ONNX Runtime
    do not.
    """
    stated = call.numbers_at(2)
    if len(stated) != len(axes):
        raise ValueError(f"{len(stated)} scales for {len(axes)} axes")
    scales = [1.0] * len(data)
    for i, axis in enumerate(axes):
        scales[axis] = stated[i]
    return _scaled(data, tuple(scales))


def _scaled(data: Shape, scales: tuple[float, ...]) -> Sizing:
    """Sizes times scales, rounded down; in single precision, as ONNX Runtime multiplies."""
    if len(scales) != len(data) or any(not 0 < scale < 2**40 for scale in scales):
        raise ValueError(f"scales {scales} of shape {data}")
    sizes = (np.float32(size) * np.float32(scale) for size, scale in zip(data, scales, strict=True))
    return possible_shape(tuple(math.floor(size) for size in sizes)), scales


def _to_sizes(call: Call, data: Shape, axes: tuple[int, ...]) -> Sizing:
    wanted = possible_shape(call.integers_at(3))
    policy = call.choice("keep_aspect_ratio_policy", _POLICIES)
    if len(wanted) != len(axes) or any(data[axis] == 0 for axis in axes):
        raise ValueError(f"sizes {wanted} for axes {axes} of shape {data}")
    ratios = [size / data[axis] for size, axis in zip(wanted, axes, strict=True)]
    if policy != "stretch":
        ratios = [min(ratios) if policy == "not_larger" else max(ratios)] * len(axes)
        wanted = tuple(math.floor(ratios[0] * data[axis] + 0.5) for axis in axes)
    shape, scales = list(data), [1.0] * len(data)
    for i, axis in enumerate(axes):
        shape[axis], scales[axis] = wanted[i], ratios[i]
    return possible_shape(tuple(shape)), tuple(scales)


def _step(call: Call, sizing: Sizing, attributes: dict[str, AttributeValue]) -> Step:
    shape, scales = sizing
    attributes["scales"] = scales
    data = call.value(0)
    if changes_nothing(attributes, data.shape, shape):
        return main_step(call, "identity", elementwise(shape), [data])
    nest = resized(data.shape, shape, attributes)
    return main_step(call, "resize", nest, [data], attributes=attributes)

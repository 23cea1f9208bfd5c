"""Convolutions, plain, transposed and quantised."""

from collections.abc import Sequence
from dataclasses import replace

from tilewright.network.graph import AttributeValue
from tilewright.network.nests import Nest, Shape
from tilewright.network.onnx_reader.call import Call, Rule, Step, Value, main_step, with_operands
from tilewright.network.onnx_reader.elements import INT32
from tilewright.network.onnx_reader.shapes import per_channel, with_inputs
from tilewright.network.onnx_reader.sliding import (
    auto_pad,
    explicit_pads,
    per_axis,
    spatial_axes,
    window_attributes,
    windows_over,
)
from tilewright.network.windows import (
    ONNX_CONV,
    ONNX_CONV_TRANSPOSE,
    Window,
    conv,
    conv_transpose,
)


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {
        "Conv": Rule("conv", _conv),
        "com.microsoft.FusedConv": Rule("conv", _conv),
        "ConvInteger": Rule("conv", _conv_integer),
        "QLinearConv": Rule("conv", _quantised_conv),
        "ConvTranspose": Rule("conv_transpose", _conv_transpose),
    }


def _conv(call: Call) -> list[Step]:
    nest, attributes = _conv_nest(call, call.shape(0), call.shape(1))
    inputs = [call.value(0), call.value(1), call.get(2)]
    nest = _with_parameters(nest, inputs)
    if call.node.op_type == "FusedConv":
        attributes["activation"] = call.text("activation", "")
        if "activation_params" in call.node.attributes:
            attributes["activation_numbers"] = call.numbers("activation_params")
        inputs.append(call.get(3))
        nest = with_inputs(nest, [nest.output])
    return [main_step(call, "conv", nest, inputs, attributes=attributes)]


def _conv_integer(call: Call) -> list[Step]:
    """Operands x, w, no bias, then the zero points of x and w."""
    nest, attributes = _conv_nest(call, call.shape(0), call.shape(1))
    inputs = [call.value(0), call.value(1), None, call.get(2), call.get(3)]
    nest = _with_parameters(nest, inputs)
    return [main_step(call, "conv", nest, inputs, element=INT32, attributes=attributes)]


def _quantised_conv(call: Call) -> list[Step]:
    """Operands x, w, bias, then scale and zero point of x, of w and of the result."""
    nest, attributes = _conv_nest(call, call.shape(0), call.shape(3))
    inputs = [call.value(0), call.value(3), call.get(8)]
    inputs += [call.get(i) for i in (1, 2, 4, 5, 6, 7)]
    nest = _with_parameters(nest, inputs)
    element = call.value(7).element
    return [main_step(call, "conv", nest, inputs, element=element, attributes=attributes)]


def _conv_nest(call: Call, data: Shape, weights: Shape) -> tuple[Nest, dict[str, AttributeValue]]:
    sizes = spatial_axes(data)
    groups = call.integer("group", 1)
    kernel = _kernel(call, data, weights)
    if weights[1] * groups != data[1]:
        raise ValueError(
            f"weights {weights} in {groups} groups need {weights[1] * groups} input channels, "
            f"the input {data} has {data[1]}"
        )
    windows = windows_over(call, sizes, kernel)
    attributes = {**window_attributes(windows), "group": groups}
    return conv(data, weights[0], groups, windows, ONNX_CONV), attributes


def _conv_transpose(call: Call) -> list[Step]:
    data, weights = call.shape(0), call.shape(1)
    sizes = spatial_axes(data)
    groups = call.integer("group", 1)
    kernel = _kernel(call, data, weights)
    if weights[0] != data[1]:
        raise ValueError(f"weights {weights} need {weights[0]} input channels, not {data[1]}")
    windows = _transposed_windows(call, sizes, kernel)
    nest = conv_transpose(data, weights[1] * groups, groups, windows, ONNX_CONV_TRANSPOSE)
    inputs = [call.value(0), call.value(1), call.get(2)]
    attributes = {**window_attributes(windows), "group": groups}
    nest = _with_parameters(nest, inputs)
    return [main_step(call, "conv_transpose", nest, inputs, attributes=attributes)]


def _transposed_windows(call: Call, sizes: Shape, kernel: Shape) -> tuple[Window, ...]:
    """Windows whose pads crop the result; a negative pad behind is room that is added there."""
    rank = len(sizes)
    strides = per_axis(call, "strides", rank, 1)
    dilations = per_axis(call, "dilations", rank, 1)
    extra = per_axis(call, "output_padding", rank, 0)
    begins, ends = explicit_pads(call, rank)
    mode = auto_pad(call)
    stated = _stated_sizes(call, rank)
    windows = []
    for i in range(rank):
        window = Window(kernel=kernel[i], stride=strides[i], dilation=dilations[i])
        uncut = (sizes[i] - 1) * strides[i] + window.reach + extra[i]
        if stated is not None or mode.startswith("SAME"):
            # "Same" never adds: with a kernel smaller than the stride the result stays shorter.
            wanted = min(uncut, sizes[i] * strides[i]) if stated is None else stated[i]
            small = (uncut - wanted) // 2
            begin = small if mode == "SAME_UPPER" else uncut - wanted - small
            end = uncut - wanted - begin
        else:
            begin, end = (begins[i], ends[i]) if mode == "NOTSET" else (0, 0)
        windows.append(replace(window, pad_begin=begin, pad_end=end - extra[i]))
    return tuple(windows)


def _stated_sizes(call: Call, rank: int) -> tuple[int, ...] | None:
    """Spatial sizes of the result where the node asks for them."""
    stated = call.integers("output_shape")
    if not stated:
        return None
    if len(stated) < rank:
        raise ValueError(f"attribute 'output_shape' is {stated} for {rank} spatial axes")
    # Some exporters write batch and channels too; the spatial sizes come last.
    return stated[-rank:]


def _kernel(call: Call, data: Shape, weights: Shape) -> Shape:
    """The kernel's sizes, which the weights have and the node may repeat."""
    if len(weights) != len(data):
        raise ValueError(f"weights {weights} do not go with an input of shape {data}")
    stated = call.integers("kernel_shape")
    if stated is not None and stated != weights[2:]:
        raise ValueError(f"attribute 'kernel_shape' is {stated}, the weights are {weights}")
    return weights[2:]


def _with_parameters(nest: Nest, inputs: Sequence[Value | None]) -> Nest:
    """Places the operands behind data and weights: bias, scales, zero points."""
    assert nest.output is not None
    channel, channels = nest.output[1], nest.shape[1]
    return with_operands(nest, inputs[2:], lambda shape: per_channel(shape, channel, channels))

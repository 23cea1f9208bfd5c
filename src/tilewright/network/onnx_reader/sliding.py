"""Operators whose window slides over spatial axes: convolutions and pools."""

from collections.abc import Sequence
from dataclasses import replace

from tilewright.network.nests import SPATIAL, Nest, Shape
from tilewright.network.onnx_reader.call import Attributes, Call, Rule, Step, main_step
from tilewright.network.onnx_reader.elements import INT32, INT64
from tilewright.network.onnx_reader.shapes import per_channel, with_inputs
from tilewright.network.windows import (
    ONNX_CONV,
    ONNX_CONV_TRANSPOSE,
    Window,
    conv,
    conv_transpose,
    pool,
    same_window,
)

_AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    found = {
        "Conv": Rule("conv", _conv),
        "com.microsoft.FusedConv": Rule("conv", _conv),
        "ConvInteger": Rule("conv", _conv_integer),
        "QLinearConv": Rule("conv", _quantised_conv),
        "ConvTranspose": Rule("conv_transpose", _conv_transpose),
        "MaxPool": Rule("max_pool", _max_pool),
        "AveragePool": Rule("average_pool", _average_pool),
        "LpPool": Rule("lp_pool", _lp_pool),
        "com.microsoft.QLinearAveragePool": Rule("average_pool", _quantised_pool),
        "com.microsoft.QLinearGlobalAveragePool": Rule("average_pool", _quantised_global_pool),
    }
    for name, kind in _GLOBAL_POOLS.items():
        found[name] = Rule(kind, _global_pool)
    return found


_GLOBAL_POOLS = {
    "GlobalAveragePool": "average_pool",
    "GlobalMaxPool": "max_pool",
    "GlobalLpPool": "lp_pool",
}


def _conv(call: Call) -> list[Step]:
    nest, windows = _conv_nest(call, call.shape(0), call.shape(1), has_bias=call.has(2))
    if call.has(2):
        _check_bias(call.shape(2), nest.shape[1])
    if call.has(3):
        nest = with_inputs(nest, [nest.output])
    inputs = [call.get(i) for i in range(4 if call.has(3) else 3 if call.has(2) else 2)]
    if call.has(3) and not call.has(2):
        raise ValueError("input 2 is missing")
    attributes = _conv_attributes(call, windows)
    if call.node.op_type == "FusedConv":
        attributes = {**attributes, "activation": call.text("activation", "")}
    return [main_step(call, "conv", nest, inputs, attributes=attributes)]


def _conv_integer(call: Call) -> list[Step]:
    nest, windows = _conv_nest(call, call.shape(0), call.shape(1), has_bias=False)
    inputs = [call.value(0), call.value(1), None, call.get(2), call.get(3)]
    nest = _with_parameters(nest, inputs)
    attributes = _conv_attributes(call, windows)
    return [main_step(call, "conv", nest, inputs, element=INT32, attributes=attributes)]


def _quantised_conv(call: Call) -> list[Step]:
    """Inputs x, w, bias, then the scales and zero points of x, w and the result."""
    nest, windows = _conv_nest(call, call.shape(0), call.shape(3), has_bias=False)
    if call.has(8):
        _check_bias(call.shape(8), nest.shape[1])
    inputs = [call.value(0), call.value(3), call.get(8)]
    inputs += [call.get(i) for i in (1, 2, 4, 5, 6, 7)]
    nest = _with_parameters(nest, inputs)
    return [
        main_step(
            call,
            "conv",
            nest,
            inputs,
            element=call.value(7).element,
            attributes=_conv_attributes(call, windows),
        )
    ]


def _with_parameters(nest: Nest, inputs: Sequence[object]) -> Nest:
    """Adds the operands behind data and weights: biases, scales and zero points per channel."""
    from tilewright.network.onnx_reader.call import Value

    assert nest.output is not None
    channel, channels = nest.output[1], nest.shape[1]
    return with_inputs(
        nest,
        [
            per_channel(v.shape, channel, channels) if isinstance(v, Value) else None
            for v in inputs[2:]
        ],
    )

"""Quantising, dequantising, and the element-wise operators that work on quantised tensors.

Scales and zero points follow the data: they take the operand letters from the fourth on.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tilewright.network.graph import AttributeValue, Index
from tilewright.network.moves import concat
from tilewright.network.nests import Indices, Nest, Shape, elementwise, normal_axis, reduce
from tilewright.network.onnx_reader.call import (
    Builder,
    Call,
    Rule,
    Step,
    Value,
    main_step,
    side_step,
    with_operands,
)
from tilewright.network.onnx_reader.elements import FLOAT32, UINT8, ElementType, element_type
from tilewright.network.onnx_reader.shapes import per_channel


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {
        "QuantizeLinear": Rule("quantize", _quantize),
        "com.microsoft.QuantizeLinear": Rule("quantize", _quantize),
        "DequantizeLinear": Rule("dequantize", _dequantize),
        "com.microsoft.DequantizeLinear": Rule("dequantize", _dequantize),
        "DynamicQuantizeLinear": Rule("dynamic_quantize", _dynamic_quantize),
        "com.microsoft.QLinearAdd": Rule("add", _binary("add")),
        "com.microsoft.QLinearMul": Rule("mul", _binary("mul")),
        "com.microsoft.QLinearLeakyRelu": Rule("leaky_relu", _leaky_relu),
        "com.microsoft.QLinearSigmoid": Rule("sigmoid", _sigmoid),
        "com.microsoft.QLinearConcat": Rule("concat", _concat),
    }


def _quantize(call: Call) -> list[Step]:
    zero_point = call.get(2)
    stated = call.integer("output_dtype", 0)
    if zero_point is not None:
        element = zero_point.element
    else:
        element = element_type(stated) if stated else UINT8
    return [_linear(call, "quantize", element)]


def _dequantize(call: Call) -> list[Step]:
    stated = call.integer("output_dtype", 0)
    element = element_type(stated) if stated else call.value(1).element
    return [_linear(call, "dequantize", element)]


def _linear(call: Call, kind: str, element: ElementType) -> Step:
    """Operands x, scale, zero point; the scale is one number, one per channel, or blocked."""
    data = call.shape(0)
    nest = elementwise(data)
    values = [call.value(0), call.value(1), call.get(2)]
    attributes: dict[str, AttributeValue] = {
        "axis": call.integer("axis", 1),
        "block_size": call.integer("block_size", 0),
    }
    nest = with_operands(nest, values[1:], partial(_scale_place, call, nest))
    return main_step(call, kind, nest, values, element=element, attributes=attributes)


def _scale_place(call: Call, nest: Nest, shape: Shape) -> Indices | None:
    assert nest.output is not None
    if shape in ((), (1,)):
        return tuple(Index(()) for _ in shape)
    axis = normal_axis(call.integer("axis", 1), len(nest.shape))
    if len(shape) == 1:
        return per_channel(shape, nest.output[axis], nest.shape[axis])
    block = call.integer("block_size", 0)
    blocked = list(nest.shape)
    if block > 0 and len(shape) == len(blocked):
        blocked[axis] = -(-blocked[axis] // block)
    if block < 1 or shape != tuple(blocked):
        raise ValueError(f"a scale of shape {shape} for data of shape {nest.shape}")
    return None


def _dynamic_quantize(call: Call) -> list[Step]:
    """The quantised tensor, and its scale and zero point, which every element decides."""
    data = call.shape(0)
    everything = tuple(range(len(data)))
    nest = elementwise(data)
    nest = replace(nest, coupled=tuple(name for name, _ in nest.dims))
    main = main_step(call, "dynamic_quantize", nest, [call.value(0)], element=UINT8)
    single = reduce(data, everything, keep_dims=False)
    scale = side_step(call, main, 1, single, FLOAT32)
    return [main, *scale, *side_step(call, main, 2, single, UINT8)]


def _binary(kind: str) -> Builder:
    """Operands a, b, then scale and zero point of a, of b and of the result."""

    def build(call: Call) -> list[Step]:
        nest = elementwise(call.shape(0), call.shape(3))
        inputs = [call.value(0), call.value(3), None]
        inputs += [call.get(i) for i in (1, 2, 4, 5, 6, 7)]
        nest = _with_single_parameters(nest, inputs, start=2)
        return [main_step(call, kind, nest, inputs)]

    return build


def _leaky_relu(call: Call) -> list[Step]:
    return [_unary(call, "leaky_relu", {"alpha": call.number("alpha", 0.01)})]


def _sigmoid(call: Call) -> list[Step]:
    return [_unary(call, "sigmoid", {})]


def _unary(call: Call, kind: str, attributes: dict[str, AttributeValue]) -> Step:
    """Operands x, then scale and zero point of x and of the result."""
    inputs: list[Value | None] = [call.value(0), None, None]
    inputs += [call.get(i) for i in range(1, 5)]
    nest = _with_single_parameters(elementwise(call.shape(0)), inputs, start=1)
    return main_step(call, kind, nest, inputs, attributes=attributes)


def _concat(call: Call) -> list[Step]:
    """All data, then scale and zero point of the result and of each input.

    Attribute `data_inputs` says how many operands are data.
    """
    if len(call.inputs) < 5 or (len(call.inputs) - 2) % 3:
        raise ValueError(f"{len(call.inputs)} inputs are not two and three for each tensor")
    positions = range(2, len(call.inputs), 3)
    data = [call.value(i) for i in positions]
    parameters = [call.get(i) for i in range(len(call.inputs)) if i not in positions]
    rank = len(data[0].shape)
    axis = normal_axis(call.integer("axis"), max(rank, 1))
    nest = concat([value.shape for value in data], axis)
    inputs: list[Value | None] = [*data, *parameters]
    nest = _with_single_parameters(nest, inputs, start=len(data))
    attributes: dict[str, AttributeValue] = {"axis": axis, "data_inputs": len(data)}
    return [main_step(call, "concat", nest, inputs, attributes=attributes)]


def _with_single_parameters(nest: Nest, inputs: Sequence[Value | None], *, start: int) -> Nest:
    """Places the scales and zero points, of one element each, from operand `start` on."""
    return with_operands(nest, inputs[start:], _single_place)


def _single_place(shape: Shape) -> Indices:
    if any(size != 1 for size in shape):
        raise ValueError(f"a scale or zero point of shape {shape}; one element is needed")
    return tuple(Index(()) for _ in shape)

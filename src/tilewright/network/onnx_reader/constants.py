"""Operators whose result is known when the file is read: they make a constant, never an op."""

import math
from collections.abc import Callable

import numpy as np

from tilewright.network.nests import Shape
from tilewright.network.onnx_reader.call import Call, Value
from tilewright.network.onnx_reader.elements import (
    FLOAT32,
    INT64,
    NUMPY_NAMES,
    ElementType,
    element_type,
)
from tilewright.network.onnx_reader.model import StoredTensor, Unreadable
from tilewright.network.onnx_reader.shapes import possible_shape
from tilewright.network.onnx_reader.stored import MAX_ELEMENTS, Array, decode

ConstantRule = Callable[[Call], Value]


def rules() -> dict[str, ConstantRule]:
    """Rules by operator."""
    return {
        "Constant": _constant,
        "ConstantOfShape": _constant_of_shape,
        "EyeLike": _eye_like,
        "NonZero": _non_zero,
        "Range": _range,
        "Shape": _shape,
        "Size": _size,
    }


def _made(
    call: Call, shape: Shape, element: ElementType, data: Array | StoredTensor | None
) -> Value:
    if not call.output(0):
        raise ValueError("its first result has no name")
    return Value(
        name=call.output(0),
        shape=possible_shape(shape),
        element=element,
        is_constant=True,
        data=data,
    )


def _numbers(call: Call, data: Array, element: ElementType) -> Value:
    return _made(call, data.shape, element, data)


def _constant(call: Call) -> Value:
    attributes = call.node.attributes
    stored = attributes.get("value")
    if isinstance(stored, StoredTensor):
        return _made(call, stored.shape, stored.element, stored)
    if isinstance(stored, Unreadable):
        raise ValueError(f"attribute 'value' is {stored.what}")
    if "value_int" in attributes:
        return _numbers(call, np.array(call.integer("value_int"), np.int64), INT64)
    if "value_ints" in attributes:
        return _numbers(call, np.array(call.integers("value_ints"), np.int64), INT64)
    if "value_float" in attributes:
        return _numbers(call, np.array(call.number("value_float", 0), np.float32), FLOAT32)
    if "value_floats" in attributes:
        return _numbers(call, np.array(call.numbers("value_floats"), np.float32), FLOAT32)
    raise ValueError("it has no attribute that holds numbers: value, value_int(s), value_float(s)")


def _constant_of_shape(call: Call) -> Value:
    shape = possible_shape(call.integers_at(0))
    filler = call.node.attributes.get("value")
    if filler is None:
        return _made(call, shape, FLOAT32, _filled(shape, np.zeros(1, np.float32)))
    if not isinstance(filler, StoredTensor):
        raise ValueError("attribute 'value' must be a tensor")
    try:
        data = _filled(shape, decode(filler))
    except ValueError:
        data = None
    return _made(call, shape, filler.element, data)


def _filled(shape: Shape, value: Array) -> Array | None:
    """The value everywhere, without taking memory; None where nobody will look at it."""
    return np.broadcast_to(value.reshape(()), shape) if math.prod(shape) <= MAX_ELEMENTS else None


def _eye_like(call: Call) -> Value:
    shape = call.shape(0)
    stated = call.integer("dtype", 0)
    element = element_type(stated) if stated else call.value(0).element
    if len(shape) != 2:
        raise ValueError(f"shape {shape} is no matrix")
    offset = call.integer("k", 0)
    data = None
    if math.prod(shape) <= MAX_ELEMENTS and abs(offset) < MAX_ELEMENTS:
        data = np.eye(*shape, k=offset).astype(_numpy_name(element))
    return _made(call, shape, element, data)


def _numpy_name(element: ElementType) -> str:
    return element.name if element.name in NUMPY_NAMES else "float32"


def _non_zero(call: Call) -> Value:
    array = call.array(0)
    return _numbers(call, np.array(np.nonzero(np.atleast_1d(array)), np.int64), INT64)


def _range(call: Call) -> Value:
    start, limit, delta = (call.numbers_at(i) for i in range(3))
    if len(start) != 1 or len(limit) != 1 or len(delta) != 1 or delta[0] == 0:
        raise ValueError("start, limit and delta must be one number each, delta not 0")
    element = call.value(0).element
    if element.name.startswith(("int", "uint")):
        # Whole numbers may be too large for a float to hold.
        first, end, step = (call.integer_at(i) for i in range(3))
        return _progression(call, first, step, max(0, -(-(end - first) // step)))
    count = max(0, math.ceil((limit[0] - start[0]) / delta[0]))
    return _progression(call, start[0], delta[0], count)


def _progression(call: Call, first: float, step: float, count: int) -> Value:
    element = call.value(0).element
    data = None
    if count <= MAX_ELEMENTS:
        data = (np.arange(count) * step + first).astype(_numpy_name(element))
    return _made(call, (count,), element, data)


def _shape(call: Call) -> Value:
    sizes = call.shape(0)
    start = call.integer("start", 0)
    end = call.integer("end", len(sizes))
    return _numbers(call, np.array(sizes[start:end], np.int64), INT64)


def _size(call: Call) -> Value:
    elements = math.prod(call.shape(0))
    if elements >= 2**63:
        raise ValueError(f"{elements} elements are too many to be counted")
    return _numbers(call, np.array(elements, np.int64), INT64)

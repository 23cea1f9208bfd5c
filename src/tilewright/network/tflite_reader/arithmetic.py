"""Operators that compute element by element, along axes, or over them."""

from tilewright.network.graph import AttributeValue, Index
from tilewright.network.nests import (
    Indices,
    Nest,
    along,
    axis_names,
    elementwise,
    moved,
    normal_axis,
    reduce,
)
from tilewright.network.tflite_reader.call import (
    Call,
    Step,
    Value,
    axis_of,
    everywhere,
    integer,
    integers,
    known_integers,
    recorded_shape,
)

_FLOATS = ("float16", "float32", "float64", "bfloat16")
_CLIPS = {"RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}


def one_each(call: Call, kind: str) -> tuple[Step, ...]:
    """From one input: RELU, EXP, …"""
    return _each_element(call, kind, 1)


def two_each(call: Call, kind: str) -> tuple[Step, ...]:
    """From two inputs, with broadcasting: ADD, MUL, LESS, …"""
    return _each_element(call, kind, 2)


def three_each(call: Call, kind: str) -> tuple[Step, ...]:
    """From three inputs, with broadcasting: SELECT_V2."""
    return _each_element(call, kind, 3)


def all_each(call: Call, kind: str) -> tuple[Step, ...]:
    """From any number of inputs: ADD_N."""
    return _each_element(call, kind, len(call.inputs))


def _each_element(call: Call, kind: str, count: int) -> tuple[Step, ...]:
    inputs = call.present()
    if not len(inputs) == len(call.inputs) == count:
        raise ValueError(f"{len(inputs)} inputs, not {count}")
    nest = elementwise(*(value.shape for value in inputs), channels_last=True)
    return call.step(kind, nest, inputs, _scalars(call))


def clipped(call: Call, kind: str) -> tuple[Step, ...]:
    """RELU_N1_TO_1 and RELU_0_TO_1."""
    data = call.tensor(0)
    low, high = _CLIPS[call.operator]
    nest = elementwise(data.shape, channels_last=True)
    return call.step(kind, nest, (data,), {"min": low, "max": high})


def quantize(call: Call, kind: str) -> tuple[Step, ...]:
    """QUANTIZE: from floats, or from one quantisation to another."""
    data = call.tensor(0)
    nest = elementwise(data.shape, channels_last=True)
    return call.step(kind if data.dtype in _FLOATS else "requantize", nest, (data,))


def cast(call: Call, kind: str) -> tuple[Step, ...]:
    """CAST; the type it casts to is its result's."""
    data = call.tensor(0)
    nest = elementwise(data.shape, channels_last=True)
    return call.step(kind, nest, (data,), {"to": call.results[0].dtype})


def select(call: Call, kind: str) -> tuple[Step, ...]:
    """SELECT: a condition with one axis chooses among whole entries of the first axis."""
    condition, chosen, other = (call.tensor(i) for i in range(3))
    if len(condition.shape) != 1 or len(chosen.shape) < 2:
        return three_each(call, kind)
    if chosen.shape != other.shape or condition.shape[0] != chosen.shape[0]:
        raise ValueError(f"shapes {condition.shape}, {chosen.shape} and {other.shape}")
    names = axis_names(len(chosen.shape), channels_last=True)
    whole: Indices = tuple(Index(((name, 1),)) for name in names)
    nest = moved(chosen.shape, whole[:1], whole, whole, channels_last=True)
    return call.step(kind, nest, (condition, chosen, other))


def along_last(call: Call, kind: str) -> tuple[Step, ...]:
    """SOFTMAX and normalisations: each result depends on its whole last axis."""
    data = call.tensor(0)
    nest = along(data.shape, [-1], channels_last=True)
    last = len(data.shape) - 1
    return call.step(kind, nest, (data,), {"axis": last, "axes": (last,), **_scalars(call)})


def cumsum(call: Call, kind: str) -> tuple[Step, ...]:
    """CUMSUM along one axis."""
    data = call.tensor(0)
    axis = axis_of(data.shape, integer(call, 1, "the axis"))
    nest = along(data.shape, [axis], channels_last=True)
    return call.step(kind, nest, (data,), {"axis": axis, **_scalars(call)})


def reduction(call: Call, kind: str) -> tuple[Step, ...]:
    """MEAN, SUM, REDUCE_MAX, … over the axes in the second input."""
    data, axes = call.tensor(0), integers(call, 1, "the axes")
    keeps_axes = bool(call.option("keep_dims"))
    nest = reduce(data.shape, axes, keep_dims=keeps_axes, channels_last=True)
    normal = tuple(sorted({normal_axis(axis, len(data.shape)) for axis in axes}))
    return call.step(kind, nest, (data,), {"axes": normal, "keepdims": int(keeps_axes)})


def arg_extreme(call: Call, kind: str) -> tuple[Step, ...]:
    """ARG_MAX and ARG_MIN along one axis, which goes."""
    data = call.tensor(0)
    axis = axis_of(data.shape, integer(call, 1, "the axis"))
    nest = reduce(data.shape, [axis], keep_dims=False, channels_last=True)
    return call.step(kind, nest, (data,), {"axis": axis})


def top_k(call: Call, kind: str) -> tuple[Step, ...]:
    """TOPK_V2: the `k` largest along the last axis, and where they were."""
    data = call.tensor(0)
    if not data.shape:
        raise ValueError("a scalar has no largest elements")
    wanted = known_integers(call.tensor(1)) or recorded_shape(call)[-1:]
    if len(wanted) != 1 or not 0 < wanted[0] <= data.shape[-1]:
        raise ValueError(f"the {wanted} largest of {data.shape[-1]} elements")
    *lead, last = axis_names(len(data.shape), channels_last=True)
    outer: Indices = tuple(Index(((name, 1),)) for name in lead)
    nest = Nest(
        dims=(*zip(lead, data.shape[:-1], strict=True), (last, wanted[0]), ("C", data.shape[-1])),
        shape=(*data.shape[:-1], wanted[0]),
        output=(*outer, Index(((last, 1),))),
        inputs=((*outer, Index((("C", 1),))),),
        coupled=(last, "C"),
    )
    return call.step(kind, nest, (data,), {"axis": len(lead), "k": wanted[0]})


def one_hot(call: Call, kind: str) -> tuple[Step, ...]:
    """ONE_HOT: reads positions, the new axis's size, and the values for yes and for no."""
    positions, on_value, off_value = call.tensor(0), call.tensor(2), call.tensor(3)
    rank = len(positions.shape) + 1
    axis = normal_axis(call.option("axis"), rank)
    depth = known_integers(call.tensor(1)) or recorded_shape(call)[axis : axis + 1]
    if len(depth) != 1 or depth[0] < 1:
        raise ValueError(f"a new axis of size {depth}")
    names = axis_names(rank, channels_last=True)
    index = tuple(Index(((name, 1),)) for i, name in enumerate(names) if i != axis)
    shape = (*positions.shape[:axis], depth[0], *positions.shape[axis:])
    nest = moved(shape, index, everywhere(on_value), everywhere(off_value), channels_last=True)
    inputs: tuple[Value, ...] = (positions, on_value, off_value)
    return call.step(kind, nest, inputs, {"axis": axis})


def _scalars(call: Call) -> dict[str, AttributeValue]:
    """The operator's numbers as attributes, under the schema's names."""
    return {
        name: int(value) if isinstance(value, bool) else value
        for name, value in call.options
        if name != "fused_activation_function"
    }

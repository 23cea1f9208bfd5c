"""Operators that cut tensors up, join them, and pad them."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.network import moves
from tilewright.network.graph import AttributeValue, Index
from tilewright.network.nests import Nest, Shape, axis_names, moved, normal_axis
from tilewright.network.tflite_reader.call import (
    Call,
    Result,
    Step,
    Value,
    axis_of,
    everywhere,
    integer,
    integers,
    known_integers,
    known_numbers,
    made,
    recorded_shape,
)

_MIRROR_MODES = {0: "reflect", 1: "symmetric"}


def computed_move(call: Call, kind: str) -> tuple[Step, ...]:
    """A move whose parameters other operators compute: the file says what comes out."""
    inputs = call.present()
    nest = moves.anywhere(recorded_shape(call), len(inputs), channels_last=True)
    return call.step(kind, nest, inputs)


def concatenation(call: Call, kind: str) -> tuple[Step, ...]:
    """CONCATENATION along one axis."""
    inputs = call.present()
    axis = axis_of(inputs[0].shape, call.option("axis"))
    nest = moves.concat([value.shape for value in inputs], axis, channels_last=True)
    return call.step(kind, nest, inputs, {"axis": axis})


def pack(call: Call, kind: str) -> tuple[Step, ...]:
    """PACK: each input gets a new axis of size 1 and they are joined along it."""
    inputs = call.present()
    if any(value.shape != inputs[0].shape for value in inputs):
        raise ValueError(f"inputs of shapes {', '.join(str(value.shape) for value in inputs)}")
    axis = normal_axis(call.option("axis"), len(inputs[0].shape) + 1)
    shape = (*inputs[0].shape[:axis], 1, *inputs[0].shape[axis:])
    widening = moves.reshape(inputs[0].shape, shape, channels_last=True)
    widened = tuple(
        _widened(call, value, widening, f"{call.results[0].name}:part_{i}")
        for i, value in enumerate(inputs)
    )
    nest = moves.concat([shape] * len(inputs), axis, channels_last=True)
    joined = call.step(kind, nest, tuple(made(step) for step in widened), {"axis": axis})
    return widened + joined


def unpack(call: Call, kind: str) -> tuple[Step, ...]:
    """UNPACK: entry i along the axis, without the axis, is result i."""
    data = call.tensor(0)
    axis = axis_of(data.shape, call.option("axis"))
    if len(call.results) != data.shape[axis]:
        raise ValueError(f"{len(call.results)} results from axis {axis} of {data.shape}")
    shape = (*data.shape[:axis], *data.shape[axis + 1 :])
    names = iter(axis_names(len(shape), channels_last=True))
    index = [Index(((next(names), 1),)) if i != axis else None for i in range(len(data.shape))]
    return tuple(
        _piece(
            call,
            kind,
            moved(
                shape, tuple(Index((), i) if n is None else n for n in index), channels_last=True
            ),
            (data, result),
            _entry_attributes(data.shape, axis, i, 1),
        )
        for i, result in enumerate(call.results)
    )


def split(call: Call, kind: str) -> tuple[Step, ...]:
    """SPLIT: reads the axis and the data; all results have the same size."""
    data = call.tensor(1)
    axis = axis_of(data.shape, integer(call, 0, "the axis"))
    count = len(call.results)
    if data.shape[axis] % count:
        raise ValueError(f"axis {axis} of {data.shape} does not split into {count} equal parts")
    return _split(call, kind, data, axis, [data.shape[axis] // count] * count)


def split_v(call: Call, kind: str) -> tuple[Step, ...]:
    """SPLIT_V: reads the data, the size of each result (-1: the rest) and the axis."""
    data, sizes = call.tensor(0), integers(call, 1, "the sizes")
    axis = axis_of(data.shape, integer(call, 2, "the axis"))
    rest = data.shape[axis] - sum(size for size in sizes if size != -1)
    filled = [rest if size == -1 else size for size in sizes]
    if (
        len(sizes) != len(call.results)
        or any(size < 0 for size in filled)
        or sum(filled) != data.shape[axis]
    ):
        raise ValueError(
            f"axis {axis} of {data.shape} does not split into {sizes} for "
            f"{len(call.results)} results"
        )
    return _split(call, kind, data, axis, filled)


def slice_of(call: Call, kind: str) -> tuple[Step, ...]:
    """SLICE: reads where to begin and how many elements to take (-1: all that follow)."""
    data = call.tensor(0)
    begins, counts = known_integers(call.tensor(1)), known_integers(call.tensor(2))
    if begins is None or counts is None:
        return computed_move(call, kind)
    if not len(begins) == len(counts) == len(data.shape):
        raise ValueError(f"begin {begins} and size {counts} for data of shape {data.shape}")
    sizes = [
        extent - begin if count == -1 else count
        for extent, begin, count in zip(data.shape, begins, counts, strict=True)
    ]
    steps = [1] * len(begins)
    nest = moves.slice_axes(data.shape, begins, sizes, steps, channels_last=True)
    return call.step(kind, nest, (data,), _slice_attributes(begins, sizes, steps))


def strided_slice(call: Call, kind: str) -> tuple[Step, ...]:
    """STRIDED_SLICE: begin, end and stride per axis, with masks that override them."""
    data = call.tensor(0)
    begins, ends, strides = (known_integers(call.tensor(i)) for i in (1, 2, 3))
    if begins is None or ends is None or strides is None:
        return computed_move(call, kind)
    if not len(begins) == len(ends) == len(strides):
        raise ValueError(f"begin {begins}, end {ends} and strides {strides} differ in length")
    spans = _spans(call, data.shape, list(zip(begins, ends, strides, strict=True)))
    shape = tuple(span.count for span in spans if not span.is_dropped)
    names = iter(axis_names(len(shape), channels_last=True))
    index = []
    for span in spans:
        name = "" if span.is_dropped else next(names)
        if not span.is_new:
            index.append(Index(((name, span.step),) if name else (), span.begin))
    nest = moved(shape, tuple(index), channels_last=True)
    cut = [(span.begin, span.count, span.step) for span in spans if not span.is_new]
    begins, counts, strides = zip(*cut, strict=True) if cut else ((), (), ())
    return call.step(kind, nest, (data,), _slice_attributes(begins, counts, strides))


def pad(call: Call, kind: str) -> tuple[Step, ...]:
    """PAD and PADV2, whose third input is the value to pad with."""
    data = call.tensor(0)
    paddings = _paddings(call, data)
    if paddings is None:
        return computed_move(call, kind)
    begins, ends = paddings
    nest = moves.pad(data.shape, begins, ends, channels_last=True)
    attributes: dict[str, AttributeValue] = {"pads": (*begins, *ends), "mode": "constant"}
    value = call.optional(2)
    if value is None:
        return call.step(kind, nest, (data,), attributes)
    index = everywhere(value)
    known = known_numbers(value)
    if known is not None:
        return call.step(kind, nest, (data,), {**attributes, "value": known[0]})
    nest = moved(nest.shape, *nest.inputs, index, channels_last=True)
    return call.step(kind, nest, (data, value), attributes)


def mirror_pad(call: Call, kind: str) -> tuple[Step, ...]:
    """MIRROR_PAD, with or without the outermost elements."""
    data = call.tensor(0)
    paddings = _paddings(call, data)
    mode = _MIRROR_MODES.get(call.option("mode"))
    if paddings is None:
        return computed_move(call, kind)
    if mode is None:
        raise ValueError(f"no mode has the number {call.option('mode')}")
    begins, ends = paddings
    nest = moves.repeating_pad(data.shape, begins, ends, channels_last=True)
    return call.step(kind, nest, (data,), {"pads": (*begins, *ends), "mode": mode})


def reverse(call: Call, kind: str) -> tuple[Step, ...]:
    """REVERSE_V2: backwards along the axes in the second input."""
    data = call.tensor(0)
    axes = {axis_of(data.shape, axis) for axis in integers(call, 1, "the axes")}
    begins = [size - 1 if i in axes else 0 for i, size in enumerate(data.shape)]
    steps = [-1 if i in axes else 1 for i in range(len(data.shape))]
    nest = moves.slice_axes(data.shape, begins, data.shape, steps, channels_last=True)
    return call.step(kind, nest, (data,), {"axes": tuple(sorted(axes))})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """What a strided slice takes of one axis; a new axis has size 1 and reads nothing."""

    begin: int
    count: int
    step: int
    is_new: bool = False
    is_dropped: bool = False


def _spans(call: Call, shape: Shape, triples: Sequence[tuple[int, int, int]]) -> list[_Span]:
    """One span per axis of the data or of the result, in order."""
    ellipsis, new = call.option("ellipsis_mask"), call.option("new_axis_mask")
    named = sum(not (ellipsis | new) >> i & 1 for i in range(len(triples)))
    if bin(ellipsis & (1 << len(triples)) - 1).count("1") > 1 or named > len(shape):
        raise ValueError(f"{len(triples)} slices of data of shape {shape}")
    spans: list[_Span] = []
    axes = iter(shape)
    for i, triple in enumerate(triples):
        if ellipsis >> i & 1:
            skipped = [next(axes) for _ in range(len(shape) - named)]
            spans.extend(_Span(begin=0, count=size, step=1) for size in skipped)
        elif new >> i & 1:
            spans.append(_Span(begin=0, count=1, step=1, is_new=True))
        else:
            spans.append(_span(call, i, triple, next(axes)))
    spans.extend(_Span(begin=0, count=size, step=1) for size in axes)
    return spans


def _span(call: Call, position: int, triple: tuple[int, int, int], size: int) -> _Span:
    begin, end, step = triple
    if step == 0:
        raise ValueError(f"slice {position} has stride 0")

    def is_set(mask: str) -> int:
        return call.option(mask) >> position & 1

    low, high = (0, size) if step > 0 else (-1, size - 1)
    begin = min(max(begin + size if begin < 0 else begin, low), high)
    if is_set("begin_mask"):
        begin = 0 if step > 0 else size - 1
    if is_set("shrink_axis_mask"):
        if not 0 <= begin < size:
            raise ValueError(f"slice {position} takes element {triple[0]} of {size}")
        return _Span(begin=begin, count=1, step=1, is_dropped=True)
    if call.option("offset"):
        end += begin
    end = min(max(end + size if end < 0 else end, low), high)
    if is_set("end_mask"):
        end = high if step > 0 else low
    return _Span(begin=begin, count=max(0, -(-(end - begin) // step)), step=step)


def _split(call: Call, kind: str, data: Value, axis: int, sizes: Sequence[int]) -> tuple[Step, ...]:
    steps, start = [], 0
    for size, result in zip(sizes, call.results, strict=True):
        begins = [start if i == axis else 0 for i in range(len(data.shape))]
        counts = (*data.shape[:axis], size, *data.shape[axis + 1 :])
        nest = moves.slice_axes(data.shape, begins, counts, [1] * len(counts), channels_last=True)
        attributes = _entry_attributes(data.shape, axis, start, size)
        steps.append(_piece(call, kind, nest, (data, result), attributes))
        start += size
    return tuple(steps)


def _slice_attributes(
    begins: Sequence[int], sizes: Sequence[int], steps: Sequence[int]
) -> dict[str, AttributeValue]:
    return {"starts": tuple(begins), "sizes": tuple(sizes), "steps": tuple(steps)}


def _entry_attributes(data: Shape, axis: int, start: int, size: int) -> dict[str, AttributeValue]:
    """Attributes of a slice along one axis only."""
    begins = [start if i == axis else 0 for i in range(len(data))]
    sizes = (*data[:axis], size, *data[axis + 1 :])
    return _slice_attributes(begins, sizes, [1] * len(data))


def _piece(
    call: Call,
    kind: str,
    nest: Nest,
    ends: tuple[Value, Result],
    attributes: dict[str, AttributeValue],
) -> Step:
    """The step that makes one of several results; `ends` is what it reads and what it makes."""
    data, result = ends
    return Step(
        kind=kind,
        nest=nest,
        inputs=(data,),
        results=(result,),
        attributes=call.attributes(attributes),
    )


def _widened(call: Call, value: Value, nest: Nest, name: str) -> Step:
    return Step(
        kind="reshape",
        nest=nest,
        inputs=(value,),
        results=(Result(name=name, dtype=value.dtype, bits=value.bits),),
        attributes={"tflite_op": call.operator},
    )


def _paddings(call: Call, data: Value) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Padding before and behind each axis; None where other operators compute it."""
    value = call.tensor(1)
    numbers = known_integers(value)
    if numbers is None:
        return None
    if value.shape != (len(data.shape), 2):
        raise ValueError(f"paddings of shape {value.shape} for data of shape {data.shape}")
    if any(number < 0 for number in numbers):
        raise ValueError(f"paddings {numbers} are negative")
    return numbers[::2], numbers[1::2]

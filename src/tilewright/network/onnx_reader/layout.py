"""Operators that only say where elements lie: reshapes, transposes, slices, joins and pads."""

from collections.abc import Sequence
from math import prod

from tilewright.network.graph import AttributeValue
from tilewright.network.moves import (
    anywhere,
    concat,
    pad,
    repeating_pad,
    reshape,
    slice_axes,
    space_blocks,
    transpose,
)
from tilewright.network.nests import Nest, Shape, normal_axis, reshaped
from tilewright.network.onnx_reader.call import (
    Attributes,
    Call,
    NodeError,
    Rule,
    Step,
    Value,
    known_number,
    main_step,
)
from tilewright.network.onnx_reader.shapes import MAX_RANK, possible_shape, with_inputs


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {
        "Reshape": Rule("reshape", _reshape),
        "Flatten": Rule("reshape", _flatten),
        "Squeeze": Rule("reshape", _squeeze),
        "Unsqueeze": Rule("reshape", _unsqueeze),
        "Transpose": Rule("transpose", _transpose),
        "Concat": Rule("concat", _concat),
        "Split": Rule("slice", _split),
        "Slice": Rule("slice", _slice),
        "ReverseSequence": Rule("slice", _reverse_sequence),
        "Pad": Rule("pad", _pad),
        "DepthToSpace": Rule("depth_to_space", _depth_to_space),
        "SpaceToDepth": Rule("space_to_depth", _space_to_depth),
    }


def _move(call: Call, kind: str, nest: Nest, attributes: Attributes) -> list[Step]:
    return [main_step(call, kind, nest, [call.value(0)], attributes=attributes)]


def _reshape_to(call: Call, shape: Shape) -> list[Step]:
    nest = reshape(call.shape(0), possible_shape(shape))
    return _move(call, "reshape", nest, {"shape": shape})


def _reshape(call: Call) -> list[Step]:
    data = call.shape(0)
    wanted = (call.integers("shape") or ()) if call.opset < 5 else call.integers_at(1)
    copies = not call.flag("allowzero")
    if len(wanted) > MAX_RANK:
        raise ValueError(f"{len(wanted)} axes are more than the {MAX_RANK} that are possible")
    return _reshape_to(call, reshaped(prod(data), wanted, data, zero_copies=copies))


def _flatten(call: Call) -> list[Step]:
    data = call.shape(0)
    axis = call.integer("axis", 1)
    if not -len(data) <= axis <= len(data):
        raise ValueError(f"axis {axis} of a tensor with {len(data)} axes")
    axis += len(data) if axis < 0 else 0
    return _reshape_to(call, (prod(data[:axis]), prod(data[axis:])))


def _axes(call: Call) -> tuple[int, ...] | None:
    """Axes from the attribute, or, from opset 13 on, from the second input."""
    stated = call.integers("axes")
    return call.integers_at(1) if stated is None and call.has(1) else stated


def _squeeze(call: Call) -> list[Step]:
    data = call.shape(0)
    stated = _axes(call)
    if stated is None:
        dropped = {i for i, size in enumerate(data) if size == 1}
    else:
        dropped = {_axis(axis, len(data)) for axis in stated}
    if any(data[i] != 1 for i in dropped):
        raise ValueError(f"axes {stated} of shape {data} have not all one element")
    return _reshape_to(call, tuple(size for i, size in enumerate(data) if i not in dropped))


def _unsqueeze(call: Call) -> list[Step]:
    data = call.shape(0)
    stated = _axes(call)
    if stated is None:
        raise ValueError("attribute 'axes' is missing")
    rank = len(data) + len(stated)
    if rank > MAX_RANK:
        raise ValueError(f"{rank} axes are more than the {MAX_RANK} that are possible")
    added = {_axis(axis, rank) for axis in stated}
    if len(added) != len(stated):
        raise ValueError(f"axes {stated} repeat")
    sizes = iter(data)
    return _reshape_to(call, tuple(1 if i in added else next(sizes) for i in range(rank)))


def _axis(axis: int, rank: int) -> int:
    if rank == 0:
        raise ValueError("a scalar has no axis")
    return normal_axis(axis, rank)


def _transpose(call: Call) -> list[Step]:
    data = call.shape(0)
    order = call.integers("perm")
    if order is None:
        order = tuple(reversed(range(len(data))))
    if len(order) != len(data):
        raise ValueError(f"{order} is no order of the axes of {data}")
    nest = transpose(data, order)
    return _move(call, "transpose", nest, {"perm": tuple(_axis(a, len(data)) for a in order)})


def _concat(call: Call) -> list[Step]:
    values = call.all_values()
    rank = len(values[0].shape)
    # Before opset 4 the axis had a default.
    axis = _axis(call.integer("axis", 1 if call.opset < 4 else None), rank)
    nest = concat([value.shape for value in values], axis)
    return [main_step(call, "concat", nest, values, attributes={"axis": axis})]


def _split(call: Call) -> list[Step]:
    """One slice per result that has a name."""
    data = call.shape(0)
    axis = _axis(call.integer("axis", 0), len(data))
    lengths = _split_lengths(call, data[axis])
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    if min(lengths) < 0 or starts[-1] != data[axis]:
        raise ValueError(f"parts {lengths} do not make an axis of {data[axis]} elements")
    steps = []
    for i, name in enumerate(call.node.outputs):
        if name:
            begins, sizes = [0] * len(data), list(data)
            begins[axis], sizes[axis] = starts[i], lengths[i]
            steps.append(_slice_step(call, i, begins, sizes, [1] * len(data)))
    return steps


def _split_lengths(call: Call, size: int) -> tuple[int, ...]:
    """The length of each part, one per result."""
    stated = call.integers("split")
    if stated is None and call.has(1):
        stated = call.integers_at(1)
    count = len(call.node.outputs)
    if stated is not None:
        if len(stated) != count or not count:
            raise ValueError(f"{len(stated)} parts for {count} results")
        return stated
    parts = call.integer("num_outputs", count)
    if parts != count or not count:
        raise ValueError(f"attribute 'num_outputs' is {parts}, there are {count} results")
    length = -(-size // count)
    last = size - length * (count - 1)
    if (call.opset < 18 and last != length) or last < 0:
        raise ValueError(f"an axis of {size} elements cannot be cut into {count} equal parts")
    return (*((length,) * (count - 1)), last)


def _slice(call: Call) -> list[Step]:
    data = call.shape(0)
    rank = len(data)
    starts, ends, axes, steps = _slice_arguments(call)
    begins, sizes, strides = [0] * rank, list(data), [1] * rank
    seen: set[int] = set()
    for start, end, axis, stride in zip(starts, ends, axes, steps, strict=True):
        at = _axis(axis, rank)
        if at in seen:
            raise ValueError(f"axis {axis} is sliced twice")
        if stride == 0:
            raise ValueError(f"axis {axis} is sliced with a step of 0")
        seen.add(at)
        chosen = _chosen(start, end, stride, data[at])
        begins[at], sizes[at], strides[at] = chosen.start, len(chosen), stride
    return [_slice_step(call, 0, begins, sizes, strides)]


def _reverse_sequence(call: Call) -> list[Step]:
    """A slice backwards, where every sequence is as long as its axis."""
    data = call.shape(0)
    axis = _axis(call.integer("time_axis", 0), len(data))
    if any(length != data[axis] for length in call.integers_at(1)):
        raise NodeError(
            f"its sequences are shorter than the {data[axis]} steps of their axis",
            "reverse whole sequences only: leave their lengths out on export",
        )
    begins, steps = [0] * len(data), [1] * len(data)
    begins[axis], steps[axis] = max(0, data[axis] - 1), -1
    return [_slice_step(call, 0, begins, list(data), steps)]


def _chosen(start: int, end: int, step: int, size: int) -> range:
    """Positions along an axis; bounds below 0 count from its end, those beyond it are moved in."""
    if size == 0:
        return range(0)
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return range(min(max(start, 0), size), min(max(end, 0), size), step)
    return range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)


def _slice_arguments(call: Call) -> tuple[Sequence[int], ...]:
    """Starts, ends, axes and steps, from attributes before opset 10 and from inputs since."""
    if call.opset < 10:
        starts, ends = call.integers("starts"), call.integers("ends")
        axes, steps = call.integers("axes"), None
    else:
        starts, ends = call.integers_at(1), call.integers_at(2)
        axes = call.integers_at(3) if call.has(3) else None
        steps = call.integers_at(4) if call.has(4) else None
    if starts is None or ends is None:
        raise ValueError("attributes 'starts' and 'ends' are needed")
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    if len({len(starts), len(ends), len(axes), len(steps)}) != 1:
        raise ValueError(
            f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps"
        )
    return starts, ends, axes, steps


def _slice_step(
    call: Call, result: int, begins: list[int], sizes: list[int], steps: list[int]
) -> Step:
    nest = slice_axes(call.shape(0), begins, sizes, steps)
    attributes: dict[str, AttributeValue] = {
        "starts": tuple(begins),
        "sizes": tuple(sizes),
        "steps": tuple(steps),
        "onnx_op": call.node.op_type,
    }
    value = call.value(0)
    return Step(
        kind="slice",
        nest=nest,
        inputs=(value,),
        outputs=((call.output(result), value.element),),
        attributes=attributes,
        result=str(result) if len(call.node.outputs) > 1 else "",
    )


def _pad(call: Call) -> list[Step]:
    data = call.shape(0)
    mode = call.choice("mode", ("constant", "reflect", "edge", "wrap"))
    begins, ends = _pad_amounts(call, len(data))
    nest = pad(data, begins, ends)
    if mode != "constant" and any(amount > 0 for amount in (*begins, *ends)):
        # Round the end an axis may be read anywhere.
        nest = anywhere(nest.shape) if mode == "wrap" else repeating_pad(data, begins, ends)
    attributes: dict[str, AttributeValue] = {"mode": mode, "pads": (*begins, *ends)}
    inputs: list[Value | None] = [call.value(0), None, None]
    if call.opset < 11:
        attributes["value"] = call.number("value", 0)
    elif mode == "constant" and call.has(2):
        number = known_number(call.value(2))
        if number is None:
            inputs[2] = call.value(2)
        else:
            attributes["value"] = number
    nest = with_inputs(nest, [None, None])
    return [main_step(call, "pad", nest, inputs, attributes=attributes)]


def _pad_amounts(call: Call, rank: int) -> tuple[list[int], list[int]]:
    """Padding before and behind every axis."""
    if call.opset < 11:
        pads = call.integers("pads" if call.opset > 1 else "paddings") or (0,) * (2 * rank)
    else:
        pads = call.integers_at(1)
    axes = list(range(rank))
    if call.has(3):
        axes = [_axis(axis, rank) for axis in call.integers_at(3)]
    if len(pads) != 2 * len(axes):
        raise ValueError(f"{len(pads)} amounts of padding for {len(axes)} axes")
    begins, ends = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        begins[axis], ends[axis] = pads[i], pads[i + len(axes)]
    return begins, ends


def _depth_to_space(call: Call) -> list[Step]:
    mode = call.choice("mode", ("DCR", "CRD"))
    return _blocks(call, to_space=True, mode=mode)


def _space_to_depth(call: Call) -> list[Step]:
    return _blocks(call, to_space=False, mode=call.choice("mode", ("DCR", "CRD")))


def _blocks(call: Call, *, to_space: bool, mode: str) -> list[Step]:
    block = call.integer("blocksize")
    nest = space_blocks(
        call.shape(0), block, to_space=to_space, columns=mode == "DCR", channels_last=False
    )
    kind = "depth_to_space" if to_space else "space_to_depth"
    return _move(call, kind, nest, {"blocksize": block, "mode": mode})

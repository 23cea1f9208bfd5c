"""Reductions, and what picks or counts along an axis."""

from dataclasses import replace

from tilewright.network.graph import AttributeValue
from tilewright.network.nests import along, moved, normal_axis, reduce
from tilewright.network.onnx_reader.call import (
    Builder,
    Call,
    Rule,
    Step,
    further_result,
    main_step,
)
from tilewright.network.onnx_reader.elements import INT64
from tilewright.network.onnx_reader.shapes import with_inputs

_REDUCTIONS = """
ReduceSum reduce_sum  ReduceMean reduce_mean  ReduceMax reduce_max  ReduceMin reduce_min
ReduceProd reduce_prod  ReduceL1 reduce_l1  ReduceL2 reduce_l2  ReduceLogSum reduce_log_sum
ReduceLogSumExp reduce_log_sum_exp  ReduceSumSquare reduce_sum_square
"""


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    words = _REDUCTIONS.split()
    return {
        **{
            name: Rule(kind, _reduction(kind))
            for name, kind in zip(words[::2], words[1::2], strict=True)
        },
        "ArgMax": Rule("arg_max", _arg_best("arg_max")),
        "ArgMin": Rule("arg_min", _arg_best("arg_min")),
        "TopK": Rule("top_k", _top_k),
        "CumSum": Rule("cumsum", _cumulative_sum),
        "OneHot": Rule("one_hot", _one_hot),
    }


def _reduction(kind: str) -> Builder:
    def build(call: Call) -> list[Step]:
        data = call.shape(0)
        rank = len(data)
        stated = call.integers("axes")
        if stated is None and call.has(1):
            stated = call.integers_at(1)
        if not stated:
            stated = () if call.flag("noop_with_empty_axes") else tuple(range(rank))
        axes = tuple(sorted({_axis(axis, rank) for axis in stated}))
        keep_dims = call.flag("keepdims", default=True)
        nest = reduce(data, axes, keep_dims=keep_dims)
        attributes: dict[str, AttributeValue] = {"axes": axes, "keepdims": int(keep_dims)}
        return [main_step(call, kind, nest, [call.value(0)], attributes=attributes)]

    return build


def _axis(axis: int, rank: int) -> int:
    if rank == 0:
        raise ValueError("a scalar has no axis")
    return normal_axis(axis, rank)


def _arg_best(kind: str) -> Builder:
    def build(call: Call) -> list[Step]:
        data = call.shape(0)
        axis = _axis(call.integer("axis", 0), len(data))
        keep_dims = call.flag("keepdims", default=True)
        nest = reduce(data, (axis,), keep_dims=keep_dims)
        attributes: dict[str, AttributeValue] = {
            "axis": axis,
            "keepdims": int(keep_dims),
            "select_last_index": call.integer("select_last_index", 0),
        }
        inputs = [call.value(0)]
        return [main_step(call, kind, nest, inputs, element=INT64, attributes=attributes)]

    return build


def _top_k(call: Call) -> list[Step]:
    """The loop along the axis is as long as the input's; its points beyond k touch no result."""
    data = call.shape(0)
    axis = _axis(call.integer("axis", -1), len(data))
    count = call.integer("k") if call.opset < 10 else call.integer_at(1)
    if not 0 <= count <= data[axis]:
        raise ValueError(f"{count} elements are wanted of an axis with {data[axis]}")
    nest = along(data, (axis,))
    nest = replace(nest, shape=(*data[:axis], count, *data[axis + 1 :]))
    attributes: dict[str, AttributeValue] = {
        "axis": axis,
        "k": count,
        "largest": call.integer("largest", 1),
        "sorted": call.integer("sorted", 1),
    }
    step = main_step(call, "top_k", nest, [call.value(0)], attributes=attributes)
    return [further_result(step, call.output(1), INT64)]


def _cumulative_sum(call: Call) -> list[Step]:
    data = call.shape(0)
    axis = _axis(call.integer_at(1), len(data))
    attributes: dict[str, AttributeValue] = {
        "axis": axis,
        "exclusive": call.integer("exclusive", 0),
        "reverse": call.integer("reverse", 0),
    }
    nest = along(data, (axis,))
    return [main_step(call, "cumsum", nest, [call.value(0)], attributes=attributes)]


def _one_hot(call: Call) -> list[Step]:
    """Operands: the indices and, as the third, the two values."""
    indices, values = call.shape(0), call.value(2)
    depth = call.numbers_at(1)
    if len(depth) != 1 or depth[0] < 0:
        raise ValueError(f"the depth must be one number, not {depth}")
    count = int(depth[0])
    axis = _axis(call.integer("axis", -1), len(indices) + 1)
    shape = (*indices[:axis], count, *indices[axis:])
    nest = moved(shape)
    assert nest.output is not None
    place = (*nest.output[:axis], *nest.output[axis + 1 :])
    nest = with_inputs(nest, [place, None, None])
    attributes: dict[str, AttributeValue] = {"axis": axis, "depth": count}
    inputs = [call.value(0), None, values]
    return [main_step(call, "one_hot", nest, inputs, element=values.element, attributes=attributes)]

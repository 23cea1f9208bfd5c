"""Softmaxes and normalisations: results that depend on all elements along some axes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tilewright.network.graph import AttributeValue, Index
from tilewright.network.nests import (
    SPATIAL,
    Indices,
    Nest,
    Shape,
    along,
    axis_names,
    elementwise,
    normal_axis,
    reduce,
)
from tilewright.network.onnx_reader.call import (
    Builder,
    Call,
    NodeError,
    Rule,
    Step,
    Value,
    main_step,
    side_step,
    with_operands,
)
from tilewright.network.onnx_reader.elements import FLOAT32
from tilewright.network.onnx_reader.shapes import per_channel, spread, with_inputs

_SOFTMAXES = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Hardmax": "hardmax"}
_LAYER_NORMS = {
    "LayerNormalization": "layer_norm",
    "RMSNormalization": "rms_norm",
    "SimplifiedLayerNormalization": "rms_norm",
}
_SKIP_LAYER_NORMS = {
    "com.microsoft.SkipLayerNormalization": "layer_norm",
    "com.microsoft.SkipSimplifiedLayerNormalization": "rms_norm",
}


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {
        "BatchNormalization": Rule("batch_norm", _batch_norm),
        "InstanceNormalization": Rule("instance_norm", _instance_norm),
        "GroupNormalization": Rule("group_norm", _group_norm),
        "LpNormalization": Rule("lp_norm", _lp_norm),
        "MeanVarianceNormalization": Rule("mean_variance_norm", _mean_variance_norm),
        "LRN": Rule("local_response_norm", _local_response_norm),
        "com.microsoft.QLinearSoftmax": Rule("softmax", _quantised_softmax),
        **{name: Rule(kind, _softmax(kind)) for name, kind in _SOFTMAXES.items()},
        **{name: Rule(kind, _layer_norm(kind)) for name, kind in _LAYER_NORMS.items()},
        **{name: Rule(kind, _skip_layer_norm(kind)) for name, kind in _SKIP_LAYER_NORMS.items()},
    }


def _softmax(kind: str) -> Builder:
    def build(call: Call) -> list[Step]:
        axes = _softmax_axes(call, call.opset)
        nest = along(call.shape(0), axes)
        return [main_step(call, kind, nest, [call.value(0)], attributes={"axes": axes})]

    return build


def _softmax_axes(call: Call, opset: int) -> tuple[int, ...]:
    """One axis; before opset 13, that axis and all behind it."""
    rank = len(call.shape(0))
    axis = _axis(call, -1 if opset >= 13 else 1, rank)
    return (axis,) if opset >= 13 else tuple(range(axis, rank))


def _axis(call: Call, default: int, rank: int) -> int:
    if rank == 0:
        raise ValueError("a scalar has no axis")
    return normal_axis(call.integer("axis", default), rank)


def _quantised_softmax(call: Call) -> list[Step]:
    """Operands x, then, from the fourth letter on, scale and zero point of x and the result."""
    axes = _softmax_axes(call, call.integer("opset", 13))
    own = along(call.shape(0), axes)
    inputs: list[Value | None] = [call.value(0), None, None]
    inputs += [call.get(i) for i in range(1, 5)]
    nest = with_operands(own, inputs[1:], partial(spread, nest=own))
    return [main_step(call, "softmax", nest, inputs, attributes={"axes": axes})]


def _layer_norm(kind: str) -> Builder:
    def build(call: Call) -> list[Step]:
        data = call.shape(0)
        axis = _axis(call, -1, len(data))
        axes = tuple(range(axis, len(data)))
        inputs = [call.value(0), call.get(1), call.get(2)]
        own = along(data, axes)
        nest = with_operands(own, inputs[1:], partial(spread, nest=own))
        attributes: dict[str, AttributeValue] = {
            "axis": axis,
            "axes": axes,
            "epsilon": call.number("epsilon", 1e-5),
        }
        main = main_step(call, kind, nest, inputs, attributes=attributes)
        kept = reduce(data, axes, keep_dims=True)
        sides = (side_step(call, main, i, kept, FLOAT32) for i in (1, 2))
        return [main, *(step for steps in sides for step in steps)]

    return build


def _skip_layer_norm(kind: str) -> Builder:
    """Layer normalisation of x + skip (+ bias), which is result 3; operands as ONNX Runtime's."""

    def build(call: Call) -> list[Step]:
        data = call.shape(0)
        axes = (_axis(call, -1, len(data)),)
        count = 5 if kind == "layer_norm" else 4
        inputs = [call.value(0), call.value(1), *(call.get(i) for i in range(2, count))]
        own = along(data, axes)
        nest = with_operands(own, inputs[1:], partial(spread, nest=own))
        attributes: dict[str, AttributeValue] = {
            "axis": axes[0],
            "axes": axes,
            "epsilon": call.number("epsilon", 1e-12),
        }
        main = main_step(call, kind, nest, inputs, attributes=attributes)
        kept = reduce(data, axes, keep_dims=True)
        sides = (side_step(call, main, i, kept, FLOAT32) for i in (1, 2))
        steps = [main, *(step for steps in sides for step in steps)]
        return steps + _sum_step(call, main, nest, [inputs[0], inputs[1], call.get(count - 1)])

    return build


def _sum_step(call: Call, main: Step, nest: Nest, summands: Sequence[Value | None]) -> list[Step]:
    if not call.output(3):
        return []
    given = tuple(v for v in summands if v is not None)
    return [
        Step(
            kind="add",
            nest=replace(
                nest, coupled=(), inputs=tuple(spread(value.shape, nest) for value in given)
            ),
            inputs=given,
            outputs=((call.output(3), main.outputs[0][1]),),
            attributes={"onnx_op": call.node.op_type, "result": 3},
            result="3",
        )
    ]


def _batch_norm(call: Call) -> list[Step]:
    """Normalisation with stored statistics; those are handed on where they are asked for."""
    if call.flag("training_mode"):
        raise NodeError("it is in training mode", "export the model for inference")
    data = call.shape(0)
    if not data:
        raise ValueError("a scalar has no channels")
    values = [call.value(i) for i in range(5)]
    nest = elementwise(data)
    nest = with_inputs(nest, [_channel_parameter(v.shape, nest) for v in values[1:]])
    attributes = {"epsilon": call.number("epsilon", 1e-5)}
    steps = [main_step(call, "batch_norm", nest, values, attributes=attributes)]
    for position, source in ((1, 3), (2, 4), (3, 3), (4, 4)):
        if call.output(position):
            value = values[source]
            steps.append(
                Step(
                    kind="identity",
                    nest=elementwise(value.shape),
                    inputs=(value,),
                    outputs=((call.output(position), value.element),),
                    attributes={"onnx_op": call.node.op_type, "result": position},
                    result=str(position),
                )
            )
    return steps


def _channel_parameter(shape: Shape, nest: Nest) -> Indices:
    """One element per channel; the channel is the second axis, or the only one there is."""
    assert nest.output is not None
    axis = 1 if len(nest.shape) > 1 else 0
    channels = nest.shape[axis]
    if shape != (channels,):
        raise ValueError(f"a parameter of shape {shape} for {channels} channels")
    return (nest.output[axis],)


def _instance_norm(call: Call) -> list[Step]:
    data = call.shape(0)
    if len(data) < 3:
        raise ValueError(f"shape {data} has no spatial axes")
    values = [call.value(i) for i in range(3)]
    axes = tuple(range(2, len(data)))
    nest = along(data, axes)
    nest = with_inputs(nest, [_channel_parameter(v.shape, nest) for v in values[1:]])
    attributes: dict[str, AttributeValue] = {"axes": axes, "epsilon": call.number("epsilon", 1e-5)}
    return [main_step(call, "instance_norm", nest, values, attributes=attributes)]


def _group_norm(call: Call) -> list[Step]:
    """Channels are cut into groups: dim G counts the groups, K the channels of one."""
    data = call.shape(0)
    groups = call.integer("num_groups")
    if not 2 <= len(data) <= 2 + len(SPATIAL) or groups < 1 or data[1] % groups:
        raise ValueError(f"shape {data} cannot be cut into {groups} groups of channels")
    values = [call.value(i) for i in range(3)]
    spatial = tuple(f"O{name}" for name in SPATIAL[len(SPATIAL) - len(data) + 2 :])
    channel = Index((("G", data[1] // groups), ("K", 1)))
    index = (Index((("B", 1),)), channel, *(Index(((name, 1),)) for name in spatial))
    sizes = (data[0], groups, data[1] // groups, *data[2:])
    nest = Nest(
        dims=tuple(zip(("B", "G", "K", *spatial), sizes, strict=True)),
        shape=data,
        output=index,
        inputs=(index,),
        coupled=("K", *spatial),
    )
    # Scale and bias have one element per group up to opset 20, one per channel from then on.
    per_group = Index((("G", 1),))
    place = (per_group, groups) if call.opset < 21 else (channel, data[1])
    nest = with_inputs(nest, [per_channel(v.shape, *place) for v in values[1:]])
    attributes: dict[str, AttributeValue] = {
        "num_groups": groups,
        "epsilon": call.number("epsilon", 1e-5),
    }
    return [main_step(call, "group_norm", nest, values, attributes=attributes)]


def _lp_norm(call: Call) -> list[Step]:
    axis = _axis(call, -1, len(call.shape(0)))
    nest = along(call.shape(0), (axis,))
    attributes: dict[str, AttributeValue] = {
        "axis": axis,
        "axes": (axis,),
        "p": call.integer("p", 2),
    }
    return [main_step(call, "lp_norm", nest, [call.value(0)], attributes=attributes)]


def _mean_variance_norm(call: Call) -> list[Step]:
    data = call.shape(0)
    stated = call.integers("axes")
    axes = tuple(normal_axis(a, len(data)) for a in (stated if stated is not None else (0, 2, 3)))
    nest = along(data, axes)
    attributes: dict[str, AttributeValue] = {"axes": axes, "epsilon": 1e-9}
    return [main_step(call, "mean_variance_norm", nest, [call.value(0)], attributes=attributes)]


def _local_response_norm(call: Call) -> list[Step]:
    """Each result reads a window of `size` channels around its own: dim C counts them."""
    data = call.shape(0)
    size = call.integer("size")
    if len(data) < 2 or size < 1:
        raise ValueError(f"a window of {size} channels over shape {data}")
    names = axis_names(len(data))
    nest = elementwise(data)
    assert nest.output is not None
    window = Index(((names[1], 1), ("C", 1)), -((size - 1) // 2))
    nest = replace(
        nest,
        dims=(*nest.dims, ("C", size)),
        inputs=((nest.output[0], window, *nest.output[2:]),),
    )
    attributes: dict[str, AttributeValue] = {
        "size": size,
        "alpha": call.number("alpha", 1e-4),
        "beta": call.number("beta", 0.75),
        "bias": call.number("bias", 1),
    }
    kind = "local_response_norm"
    return [main_step(call, kind, nest, [call.value(0)], attributes=attributes)]

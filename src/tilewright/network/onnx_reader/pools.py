"""Pools, over windows and over everything."""

from tilewright.network.graph import AttributeValue
from tilewright.network.nests import SPATIAL, Nest, Shape
from tilewright.network.onnx_reader.call import (
    Call,
    Rule,
    Step,
    Value,
    further_result,
    main_step,
    with_operands,
)
from tilewright.network.onnx_reader.elements import INT64
from tilewright.network.onnx_reader.shapes import per_channel
from tilewright.network.onnx_reader.sliding import (
    spatial_axes,
    window_attributes,
    windows_over,
)
from tilewright.network.windows import Window, pool

_GLOBAL = {
    "GlobalAveragePool": "average_pool",
    "GlobalMaxPool": "max_pool",
    "GlobalLpPool": "lp_pool",
}


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {
        "MaxPool": Rule("max_pool", _max_pool),
        "AveragePool": Rule("average_pool", _average_pool),
        "LpPool": Rule("lp_pool", _lp_pool),
        "com.microsoft.QLinearAveragePool": Rule("average_pool", _quantised_pool),
        "com.microsoft.QLinearGlobalAveragePool": Rule("average_pool", _quantised_global_pool),
        **{name: Rule(kind, _global_pool) for name, kind in _GLOBAL.items()},
    }


def _max_pool(call: Call) -> list[Step]:
    nest, attributes = _pool(call)
    attributes["storage_order"] = call.integer("storage_order", 0)
    step = main_step(call, "max_pool", nest, [call.value(0)], attributes=attributes)
    return [further_result(step, call.output(1), INT64)]


def _average_pool(call: Call) -> list[Step]:
    nest, attributes = _pool(call)
    attributes["count_include_pad"] = call.integer("count_include_pad", 0)
    return [main_step(call, "average_pool", nest, [call.value(0)], attributes=attributes)]


def _lp_pool(call: Call) -> list[Step]:
    nest, attributes = _pool(call)
    attributes["p"] = call.number("p", 2)
    return [main_step(call, "lp_pool", nest, [call.value(0)], attributes=attributes)]


def _global_pool(call: Call) -> list[Step]:
    nest, attributes = _pool_over_everything(call.shape(0))
    kind = _GLOBAL[call.node.op_type]
    if kind == "lp_pool":
        attributes["p"] = call.number("p", 2)
    return [main_step(call, kind, nest, [call.value(0)], attributes=attributes)]


def _quantised_pool(call: Call) -> list[Step]:
    nest, attributes = _pool(call)
    attributes["count_include_pad"] = call.integer("count_include_pad", 0)
    return [_quantised(call, nest, attributes)]


def _quantised_global_pool(call: Call) -> list[Step]:
    nest, attributes = _pool_over_everything(call.shape(0))
    return [_quantised(call, nest, attributes)]


def _quantised(call: Call, nest: Nest, attributes: dict[str, AttributeValue]) -> Step:
    """Operands x, then, from the fourth letter on, scale and zero point of x and the result."""
    if call.flag("channels_last"):
        raise ValueError("channels_last is not read; store the tensors channels first")
    inputs: list[Value | None] = [call.value(0), None, None]
    inputs += [call.get(i) for i in range(1, 5)]
    assert nest.output is not None
    channel, channels = nest.output[1], nest.shape[1]
    nest = with_operands(nest, inputs[1:], lambda shape: per_channel(shape, channel, channels))
    return main_step(call, "average_pool", nest, inputs, attributes=attributes)


def _pool(call: Call) -> tuple[Nest, dict[str, AttributeValue]]:
    data = call.shape(0)
    sizes = spatial_axes(data)
    kernel = call.integers("kernel_shape")
    if kernel is None or len(kernel) != len(sizes):
        raise ValueError(f"attribute 'kernel_shape' is {kernel} for the spatial axes {sizes}")
    windows = windows_over(call, sizes, kernel)
    attributes = window_attributes(windows)
    attributes["ceil_mode"] = int(call.flag("ceil_mode"))
    return pool(data, windows), attributes


def _pool_over_everything(data: Shape) -> tuple[Nest, dict[str, AttributeValue]]:
    if not 2 <= len(data) <= 2 + len(SPATIAL):
        raise ValueError(
            f"an input of shape {data}; batch, channels and up to {len(SPATIAL)} spatial axes are "
            "needed"
        )
    windows = tuple(Window(kernel=size) for size in data[2:])
    return pool(data, windows), window_attributes(windows)

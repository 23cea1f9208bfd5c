"""Operators that multiply and accumulate, and windows that pool."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tilewright.network import moves
from tilewright.network.graph import AttributeValue, Index
from tilewright.network.nests import Nest, Shape, matmul
from tilewright.network.tflite_reader.call import (
    Call,
    Result,
    Step,
    Value,
    known_integers,
    made,
    not_known,
)
from tilewright.network.windows import (
    TFLITE_CONV,
    TFLITE_CONV_TRANSPOSE,
    TFLITE_DEPTHWISE,
    ConvLayout,
    Window,
    conv,
    conv_transpose,
    pool,
    same_window,
)

_SAME, _VALID = 0, 1
_DEPTH_LAST = ConvLayout(data="BSC", weights="ScK", result="BSK")
_DEPTH_LAST_TRANSPOSE = ConvLayout(data="BSC", weights="SKC", result="BSK")


def conv_2d(call: Call, kind: str) -> tuple[Step, ...]:
    """CONV_2D: weights are (K, height, width, channels of a group)."""
    data, weights = _ranked(call, 0, 4), _ranked(call, 1, 4)
    channels, depth = data.shape[-1], weights.shape[-1]
    if depth == 0 or channels % depth:
        raise ValueError(f"weights of shape {weights.shape} do not fit {channels} channels")
    windows = _windows(call, data.shape[1:3], weights.shape[1:3], "hw")
    groups = channels // depth
    bias = _bias(call, 2, weights.shape[0])
    nest = conv(data.shape, weights.shape[0], groups, windows, TFLITE_CONV)
    return _conv_step(call, kind, nest, (data, weights, *bias), (windows, groups))


def depthwise_conv_2d(call: Call, kind: str) -> tuple[Step, ...]:
    """DEPTHWISE_CONV_2D: weights are (1, height, width, K), K a multiple of the channels."""
    data, weights = _ranked(call, 0, 4), _ranked(call, 1, 4)
    if weights.shape[0] != 1:
        raise ValueError(f"weights of shape {weights.shape}: the first axis has to be 1")
    windows = _windows(call, data.shape[1:3], weights.shape[1:3], "hw")
    groups, channels = data.shape[-1], weights.shape[-1]
    bias = _bias(call, 2, channels)
    nest = conv(data.shape, channels, groups, windows, TFLITE_DEPTHWISE)
    return _conv_step(call, kind, nest, (data, weights, *bias), (windows, groups))


def conv_3d(call: Call, kind: str) -> tuple[Step, ...]:
    """CONV_3D: weights are (depth, height, width, C, K)."""
    data, weights = _ranked(call, 0, 5), _ranked(call, 1, 5)
    _same_channels(data, weights.shape[3], weights)
    windows = _windows(call, data.shape[1:4], weights.shape[:3], "dhw")
    bias = _bias(call, 2, weights.shape[4])
    nest = conv(data.shape, weights.shape[4], 1, windows, _DEPTH_LAST)
    return _conv_step(call, kind, nest, (data, weights, *bias), (windows, 1))


def transpose_conv(call: Call, kind: str) -> tuple[Step, ...]:
    """TRANSPOSE_CONV: reads the result's shape, weights (K, height, width, C) and data."""
    data, weights = _ranked(call, 2, 4), _ranked(call, 1, 4)
    _same_channels(data, weights.shape[3], weights)
    return _transposed(call, kind, weights.shape[1:3], weights.shape[0], TFLITE_CONV_TRANSPOSE)


def conv_3d_transpose(call: Call, kind: str) -> tuple[Step, ...]:
    """CONV_3D_TRANSPOSE: weights are (depth, height, width, K, C)."""
    data, weights = _ranked(call, 2, 5), _ranked(call, 1, 5)
    _same_channels(data, weights.shape[4], weights)
    return _transposed(call, kind, weights.shape[:3], weights.shape[3], _DEPTH_LAST_TRANSPOSE)


def _transposed(
    call: Call, kind: str, kernel: Shape, channels: int, layout: ConvLayout
) -> tuple[Step, ...]:
    data, weights = call.tensor(2), call.tensor(1)
    wanted = known_integers(call.tensor(0)) or call.results[0].recorded
    if wanted is None or -1 in wanted:
        raise not_known("the shape of its result")
    if len(wanted) != len(data.shape) or wanted[0] != data.shape[0] or wanted[-1] != channels:
        raise ValueError(f"a result of shape {wanted} from {data.shape} and {weights.shape}")
    axes = "dhw"[-len(kernel) :]
    forward = _windows(call, wanted[1:-1], kernel, axes)
    windows = [
        replace(window, pad_end=(size - 1) * window.stride + window.reach - window.pad_begin - out)
        for window, size, out in zip(forward, data.shape[1:-1], wanted[1:-1], strict=True)
    ]
    bias = _bias(call, 3, channels)
    nest = conv_transpose(data.shape, channels, 1, windows, layout)
    return _conv_step(call, kind, nest, (data, weights, *bias), (windows, 1))


def pool_2d(call: Call, kind: str) -> tuple[Step, ...]:
    """AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""
    data = _ranked(call, 0, 4)
    kernel = (call.option("filter_height"), call.option("filter_width"))
    windows = _windows(call, data.shape[1:3], kernel, "hw")
    attributes = _window_attributes(windows)
    # TFLite's average counts only the elements that are there.
    extra: dict[str, AttributeValue] = {"count_include_pad": 0} if kind == "average_pool" else {}
    extra |= {"p": 2} if kind == "lp_pool" else {}
    nest = pool(data.shape, windows, channels_last=True)
    return call.step(kind, nest, (data,), {**attributes, **extra})


def fully_connected(call: Call, kind: str) -> tuple[Step, ...]:
    """FULLY_CONNECTED: weights are (K, C); data whose last axis is not C is reshaped first."""
    data, weights = call.tensor(0), _ranked(call, 1, 2)
    channels, depth = weights.shape
    if call.option("weights_format"):
        raise ValueError("shuffled weights are not supported; only the default format is")
    if depth == 0 or data.elements % depth:
        raise ValueError(f"weights of shape {weights.shape} do not fit data of {data.shape}")
    keeps_axes = bool(call.option("keep_num_dims"))
    first: tuple[Step, ...] = ()
    if not data.shape or data.shape[-1] != depth:
        if keeps_axes:
            raise ValueError(f"weights of shape {weights.shape} do not fit data of {data.shape}")
        first = (_rows(call, data, (data.elements // depth, depth)),)
        data = made(first[0])
    bias = _bias(call, 2, channels)
    nest = matmul(data.shape, weights.shape, transpose_right=True)
    if not keeps_axes:
        nest = _one_row_axis(nest)
    nest = _with_bias(nest, bias, Index((("K", 1),)))
    return first + call.step(kind, nest, (data, weights, *bias), {"transA": 0, "transB": 1})


def batch_matmul(call: Call, kind: str) -> tuple[Step, ...]:
    """BATCH_MATMUL, with either matrix transposed."""
    left, right = call.tensor(0), call.tensor(1)
    if len(left.shape) < 2 or len(right.shape) < 2:
        raise ValueError(f"shapes {left.shape} and {right.shape} are not both matrices")
    transposed = (bool(call.option("adj_x")), bool(call.option("adj_y")))
    nest = matmul(
        left.shape, right.shape, transpose_left=transposed[0], transpose_right=transposed[1]
    )
    inner = (left.shape[-2 if transposed[0] else -1], right.shape[-1 if transposed[1] else -2])
    if inner[0] != inner[1]:
        raise ValueError(f"shapes {left.shape} and {right.shape}: {inner[0]} against {inner[1]}")
    attributes = {"transA": int(transposed[0]), "transB": int(transposed[1])}
    return call.step(kind, nest, (left, right), attributes)


def _rows(call: Call, data: Value, shape: Shape) -> Step:
    """The reshape that FULLY_CONNECTED does on the way."""
    name = f"{call.results[0].name}:rows"
    return Step(
        kind="reshape",
        nest=moves.reshape(data.shape, shape),
        inputs=(data,),
        results=(Result(name=name, dtype=data.dtype, bits=data.bits),),
        attributes={"tflite_op": call.operator},
    )


def _one_row_axis(nest: Nest) -> Nest:
    """The matrix product with all axes of the result but the last as one."""
    assert nest.output is not None
    *rows, last = nest.output
    sizes = nest.shape[:-1]
    terms = tuple(
        (dim, factor * prod(sizes[i + 1 :]))
        for i, index in enumerate(rows)
        for dim, factor in index.terms
        if sizes[i] != 1 or len(sizes) == 1
    )
    return replace(nest, shape=(prod(sizes), nest.shape[-1]), output=(Index(terms), last))


def _ranked(call: Call, position: int, rank: int) -> Value:
    value = call.tensor(position)
    if len(value.shape) != rank:
        raise ValueError(f"input {position} has shape {value.shape}, not {rank} axes")
    return value


def _same_channels(data: Value, depth: int, weights: Value) -> None:
    if data.shape[-1] != depth:
        raise ValueError(f"weights of shape {weights.shape} do not fit data of {data.shape}")


def _bias(call: Call, position: int, channels: int) -> tuple[Value, ...]:
    bias = call.optional(position)
    if bias is None:
        return ()
    if bias.shape[-1:] != (channels,) or bias.elements != channels:
        raise ValueError(f"a bias of shape {bias.shape} for {channels} channels")
    return (bias,)


def _with_bias(nest: Nest, bias: tuple[Value, ...], channel: Index) -> Nest:
    """The nest with `channel` as the index of the bias, whose other axes have size 1."""
    if not bias:
        return nest
    ones = tuple(Index(()) for _ in bias[0].shape[:-1])
    return replace(nest, inputs=(*nest.inputs[:2], (*ones, channel)))


def _windows(call: Call, sizes: Shape, kernel: Shape, axes: str) -> list[Window]:
    """Windows along the axes named by the letters of their options, `h` for `stride_h`."""
    padding = call.option("padding")
    if padding not in (_SAME, _VALID):
        raise ValueError(f"no padding has the number {padding}")
    options = dict(call.options)
    windows = []
    for axis, size, taps in zip(axes, sizes, kernel, strict=True):
        stride = call.option(f"stride_{axis}")
        factor = f"dilation_{axis}_factor"
        dilation = call.option(factor) if factor in options else 1
        windows.append(
            same_window(size, taps, stride, dilation)
            if padding == _SAME
            else Window(kernel=taps, stride=stride, dilation=dilation)
        )
    return windows


def _window_attributes(windows: Sequence[Window]) -> dict[str, AttributeValue]:
    begins, ends = [w.pad_begin for w in windows], [w.pad_end for w in windows]
    return {
        "kernel_shape": tuple(w.kernel for w in windows),
        "strides": tuple(w.stride for w in windows),
        "dilations": tuple(w.dilation for w in windows),
        "pads": (*begins, *ends),
    }


def _conv_step(
    call: Call,
    kind: str,
    nest: Nest,
    inputs: tuple[Value, ...],
    sliding: tuple[Sequence[Window], int],
) -> tuple[Step, ...]:
    """The step of a convolution; `sliding` is its windows and its number of groups."""
    windows, groups = sliding
    assert nest.output is not None
    attributes: dict[str, AttributeValue] = {**_window_attributes(windows), "group": groups}
    return call.step(kind, _with_bias(nest, inputs[2:], nest.output[-1]), inputs, attributes)

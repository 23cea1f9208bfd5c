"""Each element of the result from the matching elements of the inputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from tilewright.replay.kernels import tflite
from tilewright.replay.kernels.activations import UNARY, activated, gelu
from tilewright.replay.kernels.quantise import (
    dequantised,
    dtype_of,
    quantised,
    saturated,
    single,
)
from tilewright.replay.kernels.quantised_sums import dynamic_quantisation
from tilewright.replay.kernels.tile import Array, Kernel, KernelError, Tile, positions

Combine = Callable[[Array, Array], Array]

_BINARY: Final[Mapping[str, Combine]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "mean": np.add,
    "pow": np.power,
    "atan2": np.arctan2,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "greater": np.greater,
    "less_or_equal": np.less_equal,
    "greater_or_equal": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "squared_difference": lambda a, b: np.square(a - b),
    "floor_div": np.floor_divide,
}


def _inputs(tile: Tile) -> list[Array]:
    return [tile.over_loops(operand.name) for operand in tile.op.inputs]


def _is_tflite_quantised(tile: Tile) -> bool:
    return tile.results[0].quantisation is not None or any(
        part.quantisation is not None and part.array.dtype.kind in "iu"
        for part in tile.parts.values()
    )


def _unary(kind: str) -> Kernel:
    function = UNARY[kind]

    def kernel(tile: Tile) -> Sequence[Array]:
        if tile.text("onnx_op").startswith("QLinear"):
            return [_looked_up(tile, kind)]
        if _is_tflite_quantised(tile):
            return [tflite.unary(tile, lambda real: function(tile, real))]
        return [activated(tile.op, tile.boxed(function(tile, tile.over_loops("I"))))]

    return kernel


def _looked_up(tile: Tile, kind: str) -> Array:
    """A function of quantised numbers as ONNX Runtime has it: a table of all 256 of them."""
    real = dequantised(tile.over_loops("I"), single(tile, "X3"), single(tile, "X4"))
    result = tile.boxed(UNARY[kind](tile, real))
    dtype = dtype_of(tile.results[0].tensor.dtype)
    return quantised(result, single(tile, "X5"), single(tile, "X6"), dtype)


def _binary(kind: str) -> Kernel:
    combine = _BINARY[kind]

    def kernel(tile: Tile) -> Sequence[Array]:
        if tile.text("onnx_op").startswith("QLinear"):
            return [_quantised_pair(tile, kind)]
        if _is_tflite_quantised(tile):
            return [tflite.binary(tile, kind, combine)]
        inputs = _inputs(tile)
        result = inputs[0]
        for other in inputs[1:]:
            result = combine(result, other)
        if kind == "mean":
            result = result / result.dtype.type(len(inputs))
        return [activated(tile.op, tile.boxed(np.asarray(result)))]

    return kernel


def _quantised_pair(tile: Tile, kind: str) -> Array:
    """QLinearAdd and QLinearMul in the arithmetic of ONNX Runtime's vector code."""
    left, right = tile.over_loops("I"), tile.over_loops("W")
    scale_a, zero_a, scale_b, zero_b, scale_c, zero_c = (
        single(tile, f"X{i}", default).astype(np.float32)
        for i, default in zip(range(3, 9), (1, 0, 1, 0, 1, 0), strict=True)
    )
    dtype = dtype_of(tile.results[0].tensor.dtype)
    if kind == "mul":
        ratio = scale_a * scale_b / scale_c
        product = (left.astype(np.int64) - zero_a) * (right.astype(np.int64) - zero_b)
        real = product.astype(np.float32) * ratio
        return saturated(tile.boxed(np.rint(real + zero_c)), dtype)
    ratio_a, ratio_b = scale_a / scale_c, scale_b / scale_c
    fixed = zero_c - (ratio_a * zero_a + ratio_b * zero_b)
    real = left.astype(np.float32) * ratio_a + (right.astype(np.float32) * ratio_b + fixed)
    return saturated(tile.boxed(np.rint(real)), dtype)


def _div(tile: Tile) -> Sequence[Array]:
    if _is_tflite_quantised(tile):
        return [tflite.binary(tile, "div", np.divide)]
    left, right = _inputs(tile)
    if left.dtype.kind in "iu":
        # Whole numbers are divided towards zero.
        quotient = np.abs(left) // np.abs(right)
        return [tile.boxed(quotient * np.sign(left) * np.sign(right))]
    return [activated(tile.op, tile.boxed(left / right))]


def _mod(tile: Tile) -> Sequence[Array]:
    left, right = _inputs(tile)
    return [tile.boxed(np.fmod(left, right) if tile.number("fmod") else np.mod(left, right))]


def _bit_shift(tile: Tile) -> Sequence[Array]:
    left, right = _inputs(tile)
    shift = np.left_shift if tile.text("direction") == "LEFT" else np.right_shift
    return [tile.boxed(shift(left, right))]


def _prelu(tile: Tile) -> Sequence[Array]:
    if _is_tflite_quantised(tile):
        return [tflite.prelu(tile)]
    x, slope = _inputs(tile)
    return [tile.boxed(np.where(x >= 0, x, x * slope))]


def _where(tile: Tile) -> Sequence[Array]:
    condition, chosen, other = _inputs(tile)
    return [tile.boxed(np.where(condition, chosen, other))]


def _clip(tile: Tile) -> Sequence[Array]:
    def clipped(x: Array) -> Array:
        for letter, key, combine in (("W", "min", np.maximum), ("B", "max", np.minimum)):
            if tile.has(letter):
                x = combine(x, tile.over_loops(letter).astype(x.dtype))
            elif tile.op.attribute(key) != "":
                x = combine(x, np.asarray(tile.number(key)).astype(x.dtype))
        return x

    if _is_tflite_quantised(tile):
        return [tflite.unary(tile, clipped)]
    return [tile.boxed(clipped(tile.over_loops("I")))]


def _gelu(tile: Tile) -> Sequence[Array]:
    by_tanh = tile.text("approximate") == "tanh" or (
        bool(tile.text("tflite_op")) and bool(tile.number("approximate"))
    )
    if _is_tflite_quantised(tile):
        return [tflite.unary(tile, lambda real: gelu(real, tanh=by_tanh))]
    x = tile.over_loops("I")
    if tile.has("W"):
        x = x + tile.over_loops("W")
    return [tile.boxed(gelu(x, tanh=by_tanh))]


def _cast(tile: Tile) -> Sequence[Array]:
    dtype = dtype_of(tile.results[0].tensor.dtype)
    with np.errstate(invalid="ignore"):
        return [tile.boxed(tile.over_loops("I")).astype(dtype)]


def _trilu(tile: Tile) -> Sequence[Array]:
    part = tile.part("I")
    (top, bottom), (left, right) = part.box[-2:]
    ahead = np.arange(left, right)[None, :] - np.arange(top, bottom)[:, None]
    offset = tile.number("k")
    kept = ahead >= offset if tile.number("upper", 1) else ahead <= offset
    return [np.where(kept, part.array, np.zeros((), dtype=part.array.dtype))]


def _quantize(tile: Tile) -> Sequence[Array]:
    wanted = tile.results[0]
    dtype = dtype_of(wanted.tensor.dtype)
    if tile.text("tflite_op"):
        return [tflite.requantised(tile)]
    if dtype.kind not in "iu" and not dtype.name.startswith("float8"):
        raise KernelError(f"quantised numbers of type {wanted.tensor.dtype} are not emulated")
    scale, zero = _linear_parameters(tile)
    return [quantised(tile.boxed(tile.over_loops("I")), scale, zero, dtype)]


def _dequantize(tile: Tile) -> Sequence[Array]:
    if tile.text("tflite_op"):
        return [tflite.dequantised_part(tile)]
    scale, zero = _linear_parameters(tile)
    stored = tile.boxed(tile.over_loops("I"))
    if stored.dtype.kind not in "iu":
        return [stored.astype(np.float32) * scale]
    return [dequantised(stored, scale, zero)]


def _linear_parameters(tile: Tile) -> tuple[Array, Array]:
    """Scale and zero point under the result's box; a blocked scale holds for `block_size` steps."""
    found = []
    for letter in ("W", "B"):
        if not tile.has(letter):
            found.append(np.zeros((), dtype=np.int64))
        elif tile.index_of(letter) is not None:
            found.append(tile.boxed(tile.over_loops(letter)))
        else:
            found.append(_blocked(tile, tile.whole(letter)))
    return found[0], found[1]


def _blocked(tile: Tile, parameter: Array) -> Array:
    axis = int(tile.number("axis", 1)) % parameter.ndim
    block = int(tile.number("block_size"))
    for at, (begin, end) in enumerate(tile.results[0].box):
        place = np.arange(begin, end) // (block if at == axis else 1)
        parameter = np.take(parameter, place, axis=at)
    return parameter


def _dynamic_quantize(tile: Tile) -> Sequence[Array]:
    data = tile.whole("I")
    scale, zero = dynamic_quantisation(data)
    match int(tile.number("result")):
        case 1:
            return [scale]
        case 2:
            return [zero]
        case _:
            return [quantised(data, scale, zero, np.dtype(np.uint8))]


def _one_hot(tile: Tile) -> Sequence[Array]:
    """ONNX gives both values as one operand (off, on), TFLite as two (on, off)."""
    axis = int(tile.number("axis"))
    result = tile.op.outputs[0].index
    assert result is not None
    chosen = tile.over_loops("I").astype(np.int64)
    dims = [dim for dim, _ in tile.op.dims]
    place, _ = positions(result[axis], tile.ranges, dims)
    if tile.text("tflite_op"):
        on, off = tile.part("W").array.reshape(-1)[0], tile.part("B").array.reshape(-1)[0]
    else:
        off, on = tile.whole("B").reshape(-1)
        depth = int(tile.number("depth"))
        chosen = np.where(chosen < 0, chosen + depth, chosen)
    return [tile.boxed(np.where(chosen == place, on, off))]


def _requantize(tile: Tile) -> Sequence[Array]:
    if not _is_tflite_quantised(tile):
        raise KernelError("it has no quantisation")
    return [tflite.requantised(tile)]


KERNELS: Final[Mapping[str, Kernel]] = {
    **{kind: _unary(kind) for kind in UNARY},
    **{kind: _binary(kind) for kind in _BINARY},
    "div": _div,
    "mod": _mod,
    "bit_shift": _bit_shift,
    "prelu": _prelu,
    "where": _where,
    "clip": _clip,
    "gelu": _gelu,
    "cast": _cast,
    "trilu": _trilu,
    "quantize": _quantize,
    "dequantize": _dequantize,
    "requantize": _requantize,
    "dynamic_quantize": _dynamic_quantize,
    "one_hot": _one_hot,
}

"""Ops on quantised tensors as TFLite's kernels define them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.replay.kernels.fixed_point import (
    averaged,
    divided_away,
    hard_swish,
    multiplied,
    multiplied_once,
    round_away,
)
from tilewright.replay.kernels.quantise import dtype_of, stored_quantisation
from tilewright.replay.kernels.tile import Array, KernelError, Part, Quantisation, Tile, Wanted

_ADD_SHIFT = 20
"""Bits by which TFLite's ADD and SUB scale their operands up."""

_SQUARE_SHIFT = 7
"""The same for SQUARED_DIFFERENCE: squares of what is scaled up more would not fit in 32 bit."""

_RELUS = ("relu", "relu6", "clip")


def zero_point(part: Part) -> Array:
    """The zero point of a tensor, under its box."""
    return _under(part.box, stored_quantisation(part), stored_quantisation(part).zero_point)


def real_values(part: Part) -> Array:
    """The real numbers that a part stands for."""
    quantisation = stored_quantisation(part)
    steps = part.array.astype(np.int64) - zero_point(part).astype(np.int64)
    scale = _under(part.box, quantisation, quantisation.scale)
    return (steps * scale.astype(np.float64)).astype(np.float32)


def _under(box: tuple[tuple[int, int], ...], quantisation: Quantisation, values: Array) -> Array:
    if values.size == 1:
        return values.reshape((1,) * len(box))
    begin, end = box[quantisation.axis]
    shape = [1] * len(box)
    shape[quantisation.axis] = end - begin
    return values[begin:end].reshape(shape)


def _result(tile: Tile) -> tuple[Wanted, float, int, np.dtype[Any]]:
    """The first result with its scale, zero point and type."""
    wanted = tile.results[0]
    dtype = dtype_of(wanted.tensor.dtype)
    if wanted.quantisation is None:
        raise KernelError("its result has no quantisation")
    if dtype not in (np.int8, np.uint8):
        raise KernelError(f"quantised numbers of type {dtype} are not emulated")
    scale = float(wanted.quantisation.scale.reshape(-1)[0])
    return wanted, scale, int(wanted.quantisation.zero_point.reshape(-1)[0]), dtype


def _limited(tile: Tile, steps: Array) -> Array:
    """Steps behind the zero point, within the type and the op's own activation."""
    _, scale, zero, dtype = _result(tile)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    ends = {
        "relu": (0.0, None),
        "relu6": (0.0, 6.0),
        "relu_n1_to_1": (-1.0, 1.0),
        "": (None, None),
    }
    name = tile.text("activation")
    if name not in ends:
        raise KernelError(f"activation {name!r} of quantised numbers is not emulated")
    first, last = ends[name]
    if first is not None:
        low = max(low, zero + int(round_away(np.asarray(first / np.float32(scale)))))
    if last is not None:
        high = min(high, zero + int(round_away(np.asarray(last / np.float32(scale)))))
    return np.asarray(np.clip(steps + zero, low, high), dtype=dtype)


def requantised_sums(tile: Tile, sums: Array) -> Array:
    """Complete sums of products as the result: bias, scale per channel, zero point, activation."""
    wanted, scale, _, dtype = _result(tile)
    if tile.has("B"):
        low, high = wanted.box[-1]
        bias = tile.part("B").array.reshape(-1)
        start = tile.part("B").box[-1][0]
        sums = sums + bias[low - start : high - start].astype(np.int64)
    left, right = stored_quantisation(tile.part("I")), stored_quantisation(tile.part("W"))
    data_scale = np.float32(left.scale.reshape(-1)[0])
    factors = right.scale.astype(np.float64) * float(data_scale) / scale
    if dtype == np.uint8:
        # Files of that age have one scale, and TFLite multiplies it in single precision.
        factors = (right.scale.astype(np.float32) * data_scale).astype(np.float64) / scale
    if factors.size > 1:
        factors = factors[slice(*wanted.box[-1])]
    factors = factors.reshape([1] * (len(wanted.box) - 1) + [-1])
    multiply = multiplied_once if tile.text("tflite_op") == "FULLY_CONNECTED" else multiplied
    return _limited(tile, multiply(sums, factors))


def pooled(tile: Tile, values: Array, counts: Array | None = None) -> Array:
    """A pool's result: the largest values as they are, or sums divided by their counts."""
    if counts is not None:
        values = divided_away(values, counts)
    own = int(stored_quantisation(tile.part("I")).zero_point.reshape(-1)[0])
    result_zero = _result(tile)[2]
    if own != result_zero:
        raise KernelError("a pool whose result has another quantisation is not emulated")
    return _limited(tile, values.astype(np.int64) - own)


def requantised(tile: Tile) -> Array:
    """Real numbers, or numbers of another quantisation, in the result's."""
    part = tile.part("I")
    _, scale, zero, dtype = _result(tile)
    if part.array.dtype.kind == "f":
        steps = round_away(part.array / np.float32(scale)) + zero
        limits = np.iinfo(dtype)
        return np.asarray(np.clip(steps, limits.min, limits.max), dtype=dtype)
    return rescaled(tile, part)


def rescaled(tile: Tile, part: Part) -> Array:
    """Stored numbers of a part in the result's quantisation; unchanged where that is the same."""
    _, scale, zero, dtype = _result(tile)
    own = stored_quantisation(part)
    own_scale = float(own.scale.reshape(-1)[0])
    own_zero = int(own.zero_point.reshape(-1)[0])
    if (own_scale, own_zero) == (scale, zero):
        return part.array
    limits = np.iinfo(dtype)
    if tile.op.kind == "concat":
        # TFLite's concatenation rescales in single precision.
        factor = np.float32(own_scale) * (np.float32(1) / np.float32(scale))
        moved = part.array.astype(np.float32) * factor + np.float32(-own_zero * factor)
        steps = round_away(moved).astype(np.int64)
    else:
        steps = multiplied(part.array.astype(np.int64) - own_zero, np.asarray(own_scale / scale))
    return np.clip(steps + zero, limits.min, limits.max).astype(dtype)


def dequantised_part(tile: Tile) -> Array:
    """Stored numbers as real ones; half precision is widened."""
    part = tile.part("I")
    return part.array.astype(np.float32) if part.array.dtype.kind == "f" else real_values(part)


def unary(tile: Tile, function: Callable[[Array], Array]) -> Array:
    """A function of one number: rectifiers in fixed point, others through a table of reals."""
    part = tile.part("I")
    if tile.op.kind in ("abs", "leaky_relu"):
        return _two_lines(tile, part)
    if tile.op.kind == "hard_swish":
        return _hard_swish(tile, part)
    _, scale, zero, dtype = _result(tile)
    limits = np.iinfo(dtype)
    if tile.op.kind in _RELUS:
        steps = rescaled(tile, part).astype(np.int64)
        ends = {"relu": (0.0, np.inf), "relu6": (0.0, 6.0)}
        low, high = ends.get(tile.op.kind, (tile.number("min"), tile.number("max")))
        first = zero + int(round_away(np.asarray(low / np.float32(scale))))
        steps = np.maximum(steps, first)
        if np.isfinite(high):
            last = zero + int(round_away(np.asarray(high / np.float32(scale))))
            steps = np.minimum(steps, last)
        return steps.astype(dtype)
    real = function(real_values(part)).astype(np.float32) * (np.float32(1) / np.float32(scale))
    # TFLite's square root cuts off what its others round.
    steps = (np.trunc if tile.op.kind == "sqrt" else round_away)(real) + zero
    return np.clip(steps, limits.min, limits.max).astype(dtype)


def _hard_swish(tile: Tile, part: Part) -> Array:
    own = stored_quantisation(part)
    steps = part.array.astype(np.int64) - int(own.zero_point.reshape(-1)[0])
    own_scale, scale = float(np.float32(own.scale.reshape(-1)[0])), _result(tile)[1]
    if own_scale >= 128 * scale:
        raise KernelError("a result with steps 128 times as fine as its input's is not emulated")
    return _limited(tile, hard_swish(steps, own_scale, scale))


def _two_lines(tile: Tile, part: Part) -> Array:
    """A number times one factor, or times another below zero."""
    own = stored_quantisation(part)
    steps = part.array.astype(np.int64) - int(own.zero_point.reshape(-1)[0])
    # TFLite works both factors out in single precision.
    own_scale, scale = np.float32(own.scale.reshape(-1)[0]), np.float32(_result(tile)[1])
    kept = multiplied(steps, np.asarray(own_scale / scale))
    if tile.op.kind == "abs":
        below = multiplied(-steps, np.asarray(own_scale / scale))
    else:
        below = multiplied(steps, np.asarray(own_scale * np.float32(tile.number("alpha")) / scale))
    return _limited(tile, np.where(steps >= 0, kept, below))


def binary(tile: Tile, kind: str, combine: Callable[[Array, Array], Array]) -> Array:
    """A function of two numbers, both operands under the result's box."""
    parts = [tile.part(operand.name) for operand in tile.op.inputs]
    steps = [
        tile.over_loops(operand.name).astype(np.int64)
        - int(stored_quantisation(part).zero_point.reshape(-1)[0])
        for operand, part in zip(tile.op.inputs, parts, strict=True)
    ]
    scales = [np.float32(stored_quantisation(part).scale.reshape(-1)[0]) for part in parts]
    if kind in ("add", "sub"):
        return _limited(tile, tile.boxed(_sum(tile, steps, scales, kind)))
    if kind == "squared_difference":
        return _limited(tile, tile.boxed(_squared_difference(tile, steps, scales)))
    if kind == "mul":
        # TFLite works this factor out in single precision.
        factor = scales[0] * scales[1] / np.float32(_result(tile)[1])
        return _limited(tile, tile.boxed(multiplied(steps[0] * steps[1], np.asarray(factor))))
    if kind in ("min", "max"):
        zero = int(stored_quantisation(parts[0]).zero_point.reshape(-1)[0])
        if any(scale != scales[0] for scale in scales):
            raise KernelError(f"{kind} of different quantisations is not emulated")
        return tile.boxed(combine(steps[0], steps[1]) + zero).astype(parts[0].array.dtype)
    reals = [s.astype(np.float64) * float(f) for s, f in zip(steps, scales, strict=True)]
    if tile.results[0].quantisation is None:
        return tile.boxed(combine(reals[0], reals[1]))
    raise KernelError(f"{kind} of quantised numbers is not emulated")


def _sum(tile: Tile, steps: list[Array], scales: list[np.float32], kind: str) -> Array:
    if len(steps) != 2:
        raise KernelError("sums of more than two quantised tensors are not emulated")
    left, right, largest = _alike(steps, scales, _ADD_SHIFT)
    total = left + right if kind == "add" else left - right
    return multiplied(total, np.asarray(largest / (2**_ADD_SHIFT * _result(tile)[1])))


def _squared_difference(tile: Tile, steps: list[Array], scales: list[np.float32]) -> Array:
    left, right, largest = _alike(steps, scales, _SQUARE_SHIFT)
    factor = largest * largest / (2 ** (2 * _SQUARE_SHIFT) * _result(tile)[1])
    return multiplied((left - right) ** 2, np.asarray(factor))


def _alike(steps: list[Array], scales: list[np.float32], shift: int) -> tuple[Array, Array, float]:
    """Two operands, scaled up, in steps of one size, and that size."""
    largest = 2.0 * max(float(s) for s in scales)
    left, right = (
        multiplied(s << shift, np.asarray(float(f) / largest))
        for s, f in zip(steps, scales, strict=True)
    )
    return left, right, largest


def prelu(tile: Tile) -> Array:
    """Parametric ReLU: both branches are scaled in fixed point."""
    part, slope = tile.part("I"), tile.part("W")
    data, own = stored_quantisation(part), stored_quantisation(slope)
    scale = _result(tile)[1]
    x = tile.over_loops("I").astype(np.int64) - int(data.zero_point.reshape(-1)[0])
    a = tile.over_loops("W").astype(np.int64) - int(own.zero_point.reshape(-1)[0])
    data_scale, own_scale = (
        np.float32(data.scale.reshape(-1)[0]),
        np.float32(own.scale.reshape(-1)[0]),
    )
    kept = multiplied(x, np.asarray(float(data_scale) / scale))
    scaled = multiplied(x * a, np.asarray(float(data_scale) * float(own_scale) / scale))
    return _limited(tile, tile.boxed(np.where(x >= 0, kept, scaled)))


def softmax(tile: Tile) -> Array:
    """Softmax along the last axis, from a table of exponentials in single precision."""
    part = tile.part("I")
    _, scale, zero, dtype = _result(tile)
    x = part.array.astype(np.int64)
    own = np.float32(stored_quantisation(part).scale.reshape(-1)[0])
    table = np.exp(-own * np.float32(tile.number("beta", 1)) * np.arange(256, dtype=np.float32))
    powers = table[x.max(axis=-1, keepdims=True) - x]
    # Summed one by one, as the loop there does.
    total = np.cumsum(powers, axis=-1, dtype=np.float32)[..., -1:]
    share = powers * (np.float32(1) / (total * np.float32(scale)))
    steps = np.floor(share + np.float32(0.5)).astype(np.int64) + zero
    limits = np.iinfo(dtype)
    return np.asarray(np.clip(steps, limits.min, limits.max), dtype=dtype)


def reduced(tile: Tile, kind: str, x: Array, axes: tuple[int, ...]) -> Array:
    """Means in fixed point, sums in single precision, extremes as they are."""
    part = tile.part("I")
    own = stored_quantisation(part)
    if kind in ("reduce_max", "reduce_min"):
        extreme = x.max if kind == "reduce_max" else x.min
        return tile.boxed(extreme(axis=axes, keepdims=True))
    if kind not in ("reduce_mean", "reduce_sum"):
        raise KernelError(f"{kind} of quantised numbers is not emulated")
    _, scale, _, _ = _result(tile)
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    zero = int(own.zero_point.reshape(-1)[0])
    sums = x.sum(axis=axes, keepdims=True, dtype=np.int64)
    own_scale = np.float32(own.scale.reshape(-1)[0])
    if kind == "reduce_mean":
        steps = averaged(sums - zero * count, count, float(own_scale) / scale)
    else:
        # TFLite sums up in single precision.
        factor = own_scale / np.float32(scale)
        real = sums.astype(np.float32) * factor + np.float32(-zero * count) * factor
        steps = round_away(real).astype(np.int64)
    return _limited(tile, tile.boxed(steps))

"""Sums of products of whole numbers: zero points before, requantisation behind."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from tilewright.replay.kernels import tflite
from tilewright.replay.kernels.quantise import dtype_of, quantised, saturated
from tilewright.replay.kernels.tile import Array, KernelError, Part, Tile, aligned

_ZERO_POINTS: Final[Mapping[str, tuple[str, str]]] = {
    "ConvInteger": ("X3", "X4"),
    "MatMulInteger": ("X3", "X4"),
    "QLinearConv": ("X4", "X6"),
    "QLinearMatMul": ("X4", "X6"),
    "QGemm": ("X4", "X6"),
    "MatMulIntegerToFloat": ("X5", "X6"),
    "DynamicQuantizeMatMul": ("", "X4"),
}
"""Letters of the zero points of both factors, by ONNX operator."""


def stored(tile: Tile, letter: str, part: Part) -> Array:
    """A factor's stored values; the first one of DynamicQuantizeMatMul is quantised here.

    Weights that TFLite keeps as whole numbers for an op on real ones are unpacked.
    """
    is_real = dtype_of(tile.results[0].tensor.dtype).kind == "f"
    if part.quantisation is not None and is_real and tile.text("tflite_op"):
        return tflite.real_values(part)
    if tile.text("onnx_op") != "DynamicQuantizeMatMul" or letter != "I":
        return part.array
    if not part.is_whole:
        raise KernelError("its first factor is quantised as a whole, a part is at hand")
    scale, zero = dynamic_quantisation(part.array)
    # The zero point is taken off at once: it is no operand.
    steps = quantised(part.array, scale, zero, np.dtype(np.uint8))
    return steps.astype(np.int32) - int(zero)


def dynamic_quantisation(data: Array) -> tuple[Array, Array]:
    """Scale and zero point (uint8) as DynamicQuantizeLinear works them out from all values."""
    low, high = np.float32(min(0, data.min())), np.float32(max(0, data.max()))
    scale = np.float32((high - low) / np.float32(255))
    zero = np.rint(np.clip(-low / scale, 0, 255)) if scale else np.float32(0)
    return np.asarray(scale), np.asarray(zero, dtype=np.uint8)


def zero_point(tile: Tile, letter: str, part: Part) -> Array:
    """The zero point of a factor, under its box."""
    none = np.zeros((), dtype=np.float64)
    if part.quantisation is not None:
        return tflite.zero_point(part)
    letters = _ZERO_POINTS.get(tile.text("onnx_op"))
    if letters is None:
        return none
    own = letters[0 if letter == "I" else 1]
    if not own or not tile.has(own):
        return none
    under = tile.index_of(letter)
    found = aligned(tile.part(own), tile.index_of(own), part.box, under)
    return found.astype(np.float64)


def whole_result(tile: Tile, sums: Array) -> Array:
    """The result of complete sums of whole numbers."""
    result = tile.results[0]
    if result.quantisation is not None:
        return tflite.requantised_sums(tile, sums)
    operator = tile.text("onnx_op")
    dtype = dtype_of(result.tensor.dtype)
    if operator in ("QLinearConv", "QLinearMatMul", "QGemm"):
        return _requantised(tile, sums)
    if operator == "MatMulIntegerToFloat":
        real = sums.astype(np.float32) * (_under(tile, "X3") * _under(tile, "X4"))
        return np.asarray(real + _under(tile, "B") if tile.has("B") else real)
    if operator == "DynamicQuantizeMatMul":
        scale = dynamic_quantisation(tile.whole("I"))[0] * _under(tile, "X3")
        real = sums.astype(np.float32) * scale
        return np.asarray(real + _under(tile, "B") if tile.has("B") else real)
    if tile.has("B"):
        sums = sums + _under(tile, "B").astype(np.int64)
    # Accumulators wrap around, as those of a machine do.
    return sums.astype(dtype)


def _requantised(tile: Tile, sums: Array) -> Array:
    if tile.has("B"):
        sums = sums + _under(tile, "B").astype(np.int64)
    scale = _under(tile, "X3") * _under(tile, "X5") * np.float32(tile.number("alpha", 1))
    dtype = dtype_of(tile.results[0].tensor.dtype)
    if not tile.has("X7"):
        return np.asarray(sums.astype(np.float32) * scale)
    factor = (scale / _under(tile, "X7")).astype(np.float32)
    steps = np.rint(sums.astype(np.int32).astype(np.float32) * factor).astype(np.int64)
    zero = _under(tile, "X8").astype(np.int64) if tile.has("X8") else np.int64(0)
    return saturated(steps + zero, dtype)


def _under(tile: Tile, letter: str) -> Array:
    under = tile.op.outputs[0].index
    return aligned(tile.part(letter), tile.index_of(letter), tile.results[0].box, under)

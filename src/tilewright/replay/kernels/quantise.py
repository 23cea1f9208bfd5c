"""Between stored whole numbers and the real numbers that they stand for."""

from importlib import import_module
from typing import Any

import numpy as np

from tilewright.replay.kernels.tile import Array, KernelError, Part, Quantisation, Tile, aligned


def saturated(values: Array, dtype: np.dtype[Any]) -> Array:
    """Whole numbers moved into what the type can hold."""
    limits = np.iinfo(dtype)
    return np.clip(values, limits.min, limits.max).astype(dtype)


def quantised(real: Array, scale: Array, zero_point: Array, dtype: np.dtype[Any]) -> Array:
    """round(real / scale) + zero point, ties to even, as ONNX has it.

    Small floats have no zero point; what is too large for them becomes their largest.
    """
    steps = real.astype(np.float32) / scale.astype(np.float32)
    if dtype.kind in "iu":
        return saturated(np.rint(steps).astype(np.float64) + zero_point, dtype)
    most = np.float32(import_module("ml_dtypes").finfo(dtype).max)
    small: Array = np.clip(steps, -most, most).astype(dtype)
    return small


def dequantised(stored: Array, scale: Array, zero_point: Array) -> Array:
    """(stored − zero point) × scale in single precision."""
    steps = stored.astype(np.int64) - zero_point.astype(np.int64)
    return np.asarray(steps.astype(np.float32) * scale.astype(np.float32))


def dtype_of(name: str) -> np.dtype[Any]:
    """NumPy's type for an element type; single precision where there is none."""
    try:
        if name.startswith("float8e"):
            small: np.dtype[Any] = np.dtype(
                getattr(import_module("ml_dtypes"), name.replace("8e", "8_e"))
            )
            return small
        return np.dtype(name or "float32")
    except (TypeError, AttributeError, ImportError):
        return np.dtype("float32")


def parameter(tile: Tile, letter: str, default: float | None = None) -> Array:
    """A scale or zero point that is an operand, under the box of the first result."""
    if not tile.has(letter):
        if default is None:
            raise KernelError(f"operand {letter} is missing")
        return np.asarray(default, dtype=np.float32)
    under = tile.op.outputs[0].index
    return aligned(tile.part(letter), tile.index_of(letter), tile.results[0].box, under)


def single(tile: Tile, letter: str, default: float = 0) -> Array:
    """A scale or zero point that is one number."""
    if not tile.has(letter):
        return np.asarray(default, dtype=np.float32)
    array = tile.part(letter).array
    if array.size != 1:
        raise KernelError(f"operand {letter} must be one number")
    return array.reshape(())


def stored_quantisation(part: Part) -> Quantisation:
    """The quantisation that the file gives a tensor."""
    if part.quantisation is None:
        raise KernelError(f"the quantisation of {part.tensor.name!r} is not known")
    return part.quantisation

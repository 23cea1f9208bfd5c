"""Products with weights of a few bits that are packed in blocks, each with a scale of its own."""

from functools import partial

import numpy as np

from tilewright.network.nests import matmul
from tilewright.network.onnx_reader.call import (
    Call,
    NodeError,
    Rule,
    Step,
    Value,
    main_step,
    with_operands,
)
from tilewright.network.onnx_reader.shapes import spread
from tilewright.network.onnx_reader.stored import Array

_WIDTHS = (2, 4, 8)


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {"com.microsoft.MatMulNBits": Rule("matmul", _matmul)}


def weights_name(packed: str) -> str:
    """What the reader calls the unpacked weights."""
    return f"{packed} unpacked"


def _matmul(call: Call) -> list[Step]:
    """Operands a and the unpacked weights, which lie packed, then the bias."""
    rows, columns = call.integer("N"), call.integer("K")
    bits, block = call.integer("bits", 4), call.integer("block_size")
    packed, scales = call.value(1), call.value(2)
    if bits not in _WIDTHS or block < 1:
        raise ValueError(f"blocks of {block} weights of {bits} bits")
    if call.has(4):
        raise NodeError("it has 'g_idx', which is not read", "quantise without reordering columns")
    if not all(value.is_constant for value in (packed, scales)):
        raise NodeError("its weights are computed at run time", "make them initialisers")
    blocks = -(-columns // block)
    wanted = (rows, blocks, -(-block * bits // 8))
    if packed.shape != wanted or np.prod(scales.shape) != rows * blocks:
        raise ValueError(
            f"weights of shape {packed.shape} and scales of shape {scales.shape}; "
            f"{wanted} and {rows} x {blocks} are needed"
        )
    weights = Value(
        name=weights_name(packed.name),
        shape=(rows, columns),
        element=call.value(0).element,
        is_constant=True,
        unknown_because="they lie packed in the file",
        stored_bits=bits,
    )
    nest = matmul(call.shape(0), weights.shape, transpose_right=True)
    inputs = [call.value(0), weights, call.get(5)]
    nest = with_operands(nest, inputs[2:], partial(spread, nest=nest))
    return [main_step(call, "matmul", nest, inputs)]


def unpacked(
    packed: Array, scales: Array, zero_points: Array | None, *, bits: int, columns: int
) -> Array:
    """(rows, columns) from (rows, blocks, bytes): (code - zero point) x scale of its block.

    Codes lie low bits first. Zero points are packed likewise, row by row, or are real numbers;
    without any, zero lies in the middle.
    """
    rows, blocks, _ = packed.shape
    codes = _codes(packed, bits).astype(np.float32)
    by_block = (rows, blocks, 1)
    zeros: Array = np.full(by_block, 2 ** (bits - 1), dtype=np.float32)
    if zero_points is not None:
        given = zero_points.reshape(rows, -1)
        if given.dtype == np.uint8:
            given = _codes(given, bits)[:, :blocks]
        zeros = given.astype(np.float32).reshape(by_block)
    real = (codes - zeros) * scales.astype(np.float32).reshape(by_block)
    return real.reshape(rows, -1)[:, :columns].astype(scales.dtype)


def _codes(packed: Array, bits: int) -> Array:
    """The numbers in the bytes along the last axis."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = packed[..., None] >> shifts & np.uint8(2**bits - 1)
    return parts.reshape(*packed.shape[:-1], -1)

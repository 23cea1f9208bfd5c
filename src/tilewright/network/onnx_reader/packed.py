"""Products with weights of a few bits that are packed in blocks, each with a scale of its own."""

from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from tilewright.network.nests import along_dim, anywhere_along, matmul
from tilewright.network.onnx_reader.call import (
    Call,
    NodeError,
    Rule,
    Step,
    Value,
    main_step,
    with_operands,
)
from tilewright.network.onnx_reader.elements import UINT8
from tilewright.network.onnx_reader.shapes import spread
from tilewright.network.onnx_reader.stored import Array

_WIDTHS = (2, 4, 8)


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {"com.microsoft.MatMulNBits": Rule("matmul", _matmul)}


def weights_name(packed: str) -> str:
    """What the reader calls the unpacked weights."""
    return f"{packed} unpacked"


def row_name(by_block: str) -> str:
    """What the reader calls scales or zero points that have a row for each of the weights."""
    return f"{by_block} by row"


def _matmul(call: Call) -> list[Step]:
    """Operands a and the unpacked weights, which lie packed, the bias, then scales and zeros.

    Weights are unpacked with the scales of their blocks, all of a row, on their way to the array.
    """
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
    if packed.shape != wanted or prod(scales.shape) != rows * blocks:
        raise ValueError(
            f"weights of shape {packed.shape} and scales of shape {scales.shape}; "
            f"{wanted} and {rows} x {blocks} are needed"
        )
    zeros = call.get(3)
    if zeros is not None and not _has_all(zeros, rows, blocks, bits):
        raise ValueError(f"zero points of shape {zeros.shape} for {rows} x {blocks} blocks")
    weights = Value(
        name=weights_name(packed.name),
        shape=(rows, columns),
        element=call.value(0).element,
        is_constant=True,
        unknown_because="they lie packed in the file",
        stored_bits=bits,
    )
    nest = matmul(call.shape(0), weights.shape, transpose_right=True)
    bias = call.get(5)
    nest = with_operands(nest, [bias], partial(spread, nest=nest))
    by_row = [
        replace(value, name=row_name(value.name), shape=(rows, blocks), data=None)
        for value in (scales, zeros)
        if value is not None
    ]
    if zeros is not None and zeros.element == UINT8:
        by_row[1] = replace(by_row[1], stored_bits=bits)
    nest = with_operands(nest, by_row, lambda _: (along_dim("K"), anywhere_along(blocks)))
    return [main_step(call, "matmul", nest, [call.value(0), weights, bias, *by_row])]


def _has_all(zeros: Value, rows: int, blocks: int, bits: int) -> bool:
    """Whether there is a zero point for every block; those of a row fill up bytes."""
    in_row = -(-blocks * bits // 8) if zeros.element == UINT8 else blocks
    return zeros.is_constant and prod(zeros.shape) == rows * in_row


def unpacked(packed: Array, scales: Array, zeros: Array | None, *, bits: int) -> Array:
    """(rows, columns) from (rows, blocks, bytes): (code - zero point) x scale of its block.

    Codes lie low bits first; without zero points, zero lies in the middle. There may be columns too
    many.
    """
    rows, blocks, _ = packed.shape
    codes = _codes(packed, bits).astype(np.float32)
    middle: Array = np.full((rows, blocks), 2 ** (bits - 1)) if zeros is None else zeros
    real = (codes - middle.astype(np.float32)[..., None]) * scales.astype(np.float32)[..., None]
    return real.reshape(rows, -1).astype(scales.dtype)


def by_row(by_block: Array, rows: int, blocks: int, *, bits: int) -> Array:
    """Scales or zero points of blocks, (rows, blocks); bytes are packed, row by row."""
    given = by_block.reshape(rows, -1)
    return _codes(given, bits)[:, :blocks] if given.dtype == np.uint8 else given


def _codes(packed: Array, bits: int) -> Array:
    """The numbers in the bytes along the last axis."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = packed[..., None] >> shifts & np.uint8(2**bits - 1)
    return parts.reshape(*packed.shape[:-1], -1)

"""Ops that only say where elements lie, scatters among them."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

import numpy as np

from tilewright.replay.kernels import tflite
from tilewright.replay.kernels.activations import activated
from tilewright.replay.kernels.quantise import dequantised, dtype_of, quantised, single
from tilewright.replay.kernels.tile import Array, Kernel, KernelError, Tile


def _cut(tile: Tile, whole: Array) -> Array:
    """The box of the result out of all of it."""
    return whole[tuple(slice(begin, end) for begin, end in tile.results[0].box)]


def _affine(tile: Tile) -> Sequence[Array]:
    """A move whose indices say everything: each point copies one element."""
    return [tile.boxed(tile.over_loops("I"))]


def _reshape(tile: Tile) -> Sequence[Array]:
    if tile.index_of("I") is not None:
        return _affine(tile)
    whole, shape = tile.whole("I"), tile.results[0].tensor.shape
    if whole.size != prod(shape):
        raise KernelError(f"{whole.size} elements do not fill the shape {list(shape)}")
    return [_cut(tile, whole.reshape(shape))]


def _transpose(tile: Tile) -> Sequence[Array]:
    if tile.index_of("I") is None:
        return [_cut(tile, tile.whole("I").transpose(tile.whole("W").astype(np.int64).tolist()))]
    return _affine(tile)


def _concat(tile: Tile) -> Sequence[Array]:
    """Each input where the result holds it; quantised ones are rescaled to the result's scale."""
    result = np.zeros(tile.results[0].shape, dtype=dtype_of(tile.results[0].tensor.dtype))
    count = int(tile.number("data_inputs", len(tile.op.inputs)))
    axis = int(tile.number("axis"))
    start = tile.results[0].box[axis][0]
    for number, operand in enumerate(tile.op.inputs[:count]):
        if operand.name not in tile.parts:
            continue
        part = tile.parts[operand.name]
        assert operand.index is not None
        shift = -operand.index[axis].offset - start
        low, high = part.box[axis]
        where = [slice(None)] * result.ndim
        where[axis] = slice(low + shift, high + shift)
        values = part.array
        if tile.text("onnx_op") == "QLinearConcat":
            values = _rescaled(tile, values, count + 2 + 2 * number)
        elif part.quantisation is not None and values.dtype.kind in "iu":
            values = tflite.rescaled(tile, part)
        result[tuple(where)] = values
    return [result if tile.text("onnx_op") else activated_floats(tile, result)]


def activated_floats(tile: Tile, values: Array) -> Array:
    """The op's own activation; TFLite has none on quantised concatenations."""
    return activated(tile.op, values) if values.dtype.kind == "f" else values


def _rescaled(tile: Tile, values: Array, position: int) -> Array:
    """An input of QLinearConcat in the result's quantisation; letters follow the data's."""
    letters = ["I", "W", "B", *(f"X{i}" for i in range(3, 3 + 3 * len(tile.op.inputs)))]
    count = int(tile.number("data_inputs"))
    scale, zero = (single(tile, letters[position + i], 1 - i) for i in range(2))
    own_scale, own_zero = (single(tile, letters[count + i], 1 - i) for i in range(2))
    if scale == own_scale and zero == own_zero:
        return values
    return quantised(dequantised(values, scale, zero), own_scale, own_zero, values.dtype)


def _pad(tile: Tile) -> Sequence[Array]:
    mode = tile.text("mode", "constant")
    if mode == "constant":
        return [tile.boxed(tile.over_loops("I", _filler(tile)), fill=_filler(tile))]
    if mode not in ("reflect", "symmetric", "edge", "wrap"):
        raise KernelError(f"padding mode {mode!r} is not emulated")
    pads, part = tile.integers("pads"), tile.part("I")
    half, data = len(pads) // 2, part.array
    for axis, (low, high) in enumerate(tile.results[0].box):
        begin, end = pads[axis], pads[axis + half]
        kept = np.arange(max(0, -begin), part.tensor.shape[axis] + min(0, end))
        widths = (max(0, begin), max(0, end))
        sources = np.pad(kept, widths, mode=mode)[low:high]  # type: ignore[call-overload]  # a mode
        data = np.take(data, sources - part.box[axis][0], axis)
    return [data]


def _filler(tile: Tile) -> float:
    for letter in ("B", "W"):
        if tile.has(letter):
            return float(tile.part(letter).array.reshape(-1)[0])
    quantisation = tile.results[0].quantisation
    if quantisation is not None and tile.op.attribute("value", "") == "":
        return float(quantisation.zero_point.reshape(-1)[0])
    return tile.number("value")


def _tile(tile: Tile) -> Sequence[Array]:
    if tile.index_of("I") is not None:
        return _affine(tile)
    repeats = tile.integers("repeats") or tuple(tile.whole("W").astype(np.int64).tolist())
    return [_cut(tile, np.tile(tile.whole("I"), repeats))]


def _slice(tile: Tile) -> Sequence[Array]:
    if tile.index_of("I") is None:
        raise KernelError("a slice whose bounds are computed is not emulated")
    return _affine(tile)


def _scatter(tile: Tile) -> Sequence[Array]:
    operator = tile.text("onnx_op") or tile.text("tflite_op")
    if operator == "SCATTER_ND":
        whole = np.zeros(tile.results[0].tensor.shape, dtype=tile.part("I").array.dtype)
        places = tuple(np.moveaxis(tile.whole("W").astype(np.int64), -1, 0))
        np.add.at(whole, places, tile.whole("I"))
        return [_cut(tile, whole)]
    if operator == "DYNAMIC_UPDATE_SLICE":
        return [_updated_slice(tile)]
    # Only the box of the data is at hand; what is scattered elsewhere is dropped.
    shape = tile.results[0].tensor.shape
    whole = np.zeros(shape, dtype=tile.part("I").array.dtype)
    _cut(tile, whole)[...] = tile.over_loops("I").reshape(tile.results[0].shape)
    indices, updates = tile.whole("W").astype(np.int64), tile.whole("B")
    if operator == "ScatterND":
        sizes = np.asarray(shape[: indices.shape[-1]])
        where = tuple(np.moveaxis(np.where(indices < 0, indices + sizes, indices), -1, 0))
    else:
        axis = int(tile.number("axis"))
        grid: list[Array] = list(np.indices(indices.shape))
        grid[axis] = np.where(indices < 0, indices + shape[axis], indices)
        where = tuple(grid)
    _combine(whole, where, updates, tile.text("reduction", "none"))
    return [_cut(tile, whole)]


def _combine(whole: Array, where: tuple[Array, ...], updates: Array, reduction: str) -> None:
    match reduction:
        case "none":
            whole[where] = updates
        case "add":
            np.add.at(whole, where, updates)
        case "mul":
            np.multiply.at(whole, where, updates)
        case "max":
            np.maximum.at(whole, where, updates)
        case "min":
            np.minimum.at(whole, where, updates)
        case _:
            raise KernelError(f"reduction {reduction!r} is not emulated")


def _updated_slice(tile: Tile) -> Array:
    shape = tile.results[0].tensor.shape
    whole = np.zeros(shape, dtype=tile.part("I").array.dtype)
    _cut(tile, whole)[...] = tile.over_loops("I").reshape(tile.results[0].shape)
    update, start = tile.whole("W"), tile.whole("B").reshape(-1).astype(np.int64)
    begins = np.clip(start, 0, np.asarray(shape) - np.asarray(update.shape))
    where = tuple(slice(b, b + n) for b, n in zip(begins, update.shape, strict=True))
    whole[where] = update
    return _cut(tile, whole)


KERNELS: Final[Mapping[str, Kernel]] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "concat": _concat,
    "slice": _slice,
    "pad": _pad,
    "scatter": _scatter,
    "expand": _affine,
    "tile": _tile,
    "depth_to_space": _affine,
    "space_to_depth": _affine,
    "space_to_batch": lambda tile: [tile.boxed(tile.over_loops("I", _filler(tile)))],
    "batch_to_space": _affine,
    "reverse": _affine,
}

"""Ops that pick elements: look-ups, and places of the largest and the smallest.

A tile may see a part of what they pick from (`accumulate`): of a look-up it fills in what lies in
that part, and of the best elements it keeps those so far and their places.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tilewright.replay.kernels.tile import Array, Kernel, KernelError, Tile

KINDS = ("gather", "arg_max", "arg_min")

_PLACES = 2**32
"""What the best so far is multiplied by, to have its place beside it: exact in double precision."""


def accumulate(tile: Tile, start: Array | None) -> Array:
    """What is found in the tile's part, together with `start`."""
    if tile.op.kind == "gather":
        found, is_there = _found(tile)
        return np.where(is_there, found, np.zeros((), found.dtype) if start is None else start)
    best = tile.boxed(_with_places(tile).max(axis=_picked_from(tile), keepdims=True))
    return best if start is None else np.maximum(best, start.astype(np.int64))


def finish(tile: Tile, values: Array) -> Array:
    """The result, when everything was seen."""
    if tile.op.kind == "gather":
        return values
    behind = values.astype(np.int64) % _PLACES
    return behind if tile.number("select_last_index") else _PLACES - 1 - behind


def _look_up(tile: Tile) -> Sequence[Array]:
    """Elements at places that another input says."""
    found, is_there = _found(tile)
    if not is_there.all():
        raise KernelError(f"a look-up in {tile.part('I').tensor.name!r} has a part of it at hand")
    return [found]


def _place_of_best(tile: Tile) -> Sequence[Array]:
    """Where the largest or the smallest is, counted in the order of the axes that are compared."""
    axes = _picked_from(tile)
    x = np.moveaxis(tile.over_loops("I"), axes, range(-len(axes), 0))
    flat = x.reshape(*x.shape[: x.ndim - len(axes)], -1)
    pick = np.argmax if tile.op.kind == "arg_max" else np.argmin
    if tile.number("select_last_index"):
        place = flat.shape[-1] - 1 - pick(np.flip(flat, -1), axis=-1)
    else:
        place = pick(flat, axis=-1)
    return [tile.boxed(np.expand_dims(place, sorted(axes)))]


def _picked_from(tile: Tile) -> tuple[int, ...]:
    """Loops that the result lacks, by their numbers, in the order of the axes that they walk."""
    kept = {dim for axis in tile.op.outputs[0].index or () for dim, _ in axis.terms}
    walked = [dim for axis in tile.index_of("I") or () for dim, _ in axis.terms]
    return tuple(tile.axis_of(dim) for dim in walked if dim not in kept)


def _with_places(tile: Tile) -> Array:
    """Every element and its place as one number: of equal elements the one that is taken counts
    most."""
    x = tile.over_loops("I")
    if x.dtype.kind not in "iu" or x.dtype.itemsize > 2:
        raise KernelError(f"a part of what is compared is at hand, of type {x.dtype}")
    place = np.zeros((1,) * x.ndim, dtype=np.int64)
    for number in _picked_from(tile):
        dim, size = tile.op.dims[number]
        along = [-1 if at == number else 1 for at in range(x.ndim)]
        place = place * size + np.arange(*tile.ranges[dim]).reshape(along)
    value = x.astype(np.int64) * (1 if tile.op.kind == "arg_max" else -1)
    is_last = bool(tile.number("select_last_index"))
    return np.asarray(value * _PLACES + (place if is_last else _PLACES - 1 - place))


def _found(tile: Tile) -> tuple[Array, Array]:
    """What the tile's part of a table has for each element of the result, and whether it has."""
    if not any(operand.name == "I" and tile.op.searches(operand) for operand in tile.op.inputs):
        found = tile.boxed(tile.over_loops("I"))
        return found, np.ones(found.shape, dtype=bool)
    part, places, is_there = tile.part("I"), [], np.ones(tile.results[0].shape, dtype=bool)
    for (low, high), place in zip(part.box, _places(tile), strict=True):
        is_there &= (place >= low) & (place < high)
        places.append(np.clip(place - low, 0, high - low - 1))
    found = part.array[tuple(places)]
    return np.broadcast_to(found, is_there.shape), is_there


def _places(tile: Tile) -> list[Array]:
    """By axis of the table, where each element of the result is found, for broadcasting."""
    table, box = tile.part("I").tensor, tile.results[0].box
    places = _said(tile, len(table.shape))
    first = min(places)
    for axis, size in enumerate(table.shape):
        if axis in places:
            said = places[axis]
            places[axis] = np.where(said < 0, said + size, said)
            if ((places[axis] < 0) | (places[axis] >= size)).any():
                raise KernelError(f"a look-up goes beyond axis {axis} of {table.name!r}")
        else:
            own = axis if axis < first else axis + len(box) - len(table.shape)
            places[axis] = np.arange(*box[own]).reshape(
                [-1 if at == own else 1 for at in range(len(box))]
            )
    return [places[axis] for axis in range(len(table.shape))]


def _said(tile: Tile, rank: int) -> dict[int, Array]:
    """What the other input says: places along the axes of a table, over those of the result."""
    said, axis = tile.part("W").array.astype(np.int64), int(tile.number("axis"))
    operator = tile.text("onnx_op") or tile.text("tflite_op")
    batch = int(tile.number("batch_dims"))
    if operator == "GatherElements":
        return {axis: said}
    if operator in ("GatherND", "GATHER_ND"):
        *lead, depth = said.shape
        behind = (1,) * (rank - batch - depth)
        return {batch + i: said[..., i].reshape(*lead, *behind) for i in range(depth)}
    before, behind = (1,) * (axis - batch), (1,) * (rank - axis - 1)
    return {axis: said.reshape(*said.shape[:batch], *before, *said.shape[batch:], *behind)}


KERNELS: Final[Mapping[str, Kernel]] = {
    "gather": _look_up,
    "arg_max": _place_of_best,
    "arg_min": _place_of_best,
}

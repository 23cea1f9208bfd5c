"""Operators whose input says which elements of another one are meant."""

from collections.abc import Sequence

from tilewright.network.graph import Index
from tilewright.network.nests import Indices, along_dim, anywhere_along, axis_names, moved
from tilewright.network.tflite_reader.call import Call, Step, axis_of, known_integers
from tilewright.network.tflite_reader.slices import computed_move


def gather(call: Call, kind: str) -> tuple[Step, ...]:
    """GATHER: entries along one axis; the first axes of both inputs may go together."""
    data, positions = call.tensor(0), call.tensor(1)
    axis = axis_of(data.shape, call.option("axis"))
    batch = call.option("batch_dims")
    batch += len(positions.shape) if batch < 0 else 0
    if not 0 <= batch <= min(axis, len(positions.shape)):
        raise ValueError(f"{batch} batch axes for axis {axis} and positions {positions.shape}")
    if data.shape[:batch] != positions.shape[:batch]:
        raise ValueError(f"the first {batch} axes of {data.shape} and {positions.shape} differ")
    shape = (*data.shape[:axis], *positions.shape[batch:], *data.shape[axis + 1 :])
    names = axis_names(len(shape), channels_last=True)
    end = axis + len(positions.shape) - batch
    source = (*_along(names[:axis]), anywhere_along(data.shape[axis]), *_along(names[end:]))
    index = _along((*names[:batch], *names[axis:end]))
    nest = moved(shape, source, index, channels_last=True)
    return call.step(kind, nest, (data, positions), {"axis": axis, "batch_dims": batch})


def gather_nd(call: Call, kind: str) -> tuple[Step, ...]:
    """GATHER_ND: the last axis of the positions names the first axes of the data."""
    data, positions = call.tensor(0), call.tensor(1)
    if not positions.shape or not 0 < positions.shape[-1] <= len(data.shape):
        raise ValueError(f"positions of shape {positions.shape} in data of {data.shape}")
    depth, lead = positions.shape[-1], len(positions.shape) - 1
    shape = (*positions.shape[:-1], *data.shape[depth:])
    names = axis_names(len(shape), channels_last=True)
    source = (*map(anywhere_along, data.shape[:depth]), *_along(names[lead:]))
    index = (*_along(names[:lead]), anywhere_along(depth))
    nest = moved(shape, source, index, channels_last=True)
    return call.step(kind, nest, (data, positions))


def embedding_lookup(call: Call, kind: str) -> tuple[Step, ...]:
    """EMBEDDING_LOOKUP: rows of a table; reads the positions before the table."""
    positions, table = call.tensor(0), call.tensor(1)
    if len(positions.shape) != 1 or len(table.shape) < 2:
        raise ValueError(f"positions of shape {positions.shape} in a table of {table.shape}")
    shape = (*positions.shape, *table.shape[1:])
    first, *others = axis_names(len(shape), channels_last=True)
    source = (anywhere_along(table.shape[0]), *_along(others))
    nest = moved(shape, source, _along((first,)), channels_last=True)
    return call.step(kind, nest, (table, positions), {"axis": 0, "batch_dims": 0})


def _along(names: Sequence[str]) -> Indices:
    return tuple(map(along_dim, names))


def scatter_nd(call: Call, kind: str) -> tuple[Step, ...]:
    """SCATTER_ND: updates at positions of a tensor of zeros in the shape of the third input."""
    positions, updates = call.tensor(0), call.tensor(1)
    shape = known_integers(call.tensor(2))
    if shape is None:
        return computed_move(call, kind)
    nest = moved(shape, None, None, channels_last=True)
    return call.step(kind, nest, (updates, positions))


def update_slice(call: Call, kind: str) -> tuple[Step, ...]:
    """DYNAMIC_UPDATE_SLICE: the data with a smaller tensor written over it somewhere."""
    data, update, start = (call.tensor(i) for i in range(3))
    if len(data.shape) != len(update.shape) or any(
        small > large for small, large in zip(update.shape, data.shape, strict=True)
    ):
        raise ValueError(f"an update of shape {update.shape} for data of {data.shape}")
    names = axis_names(len(data.shape), channels_last=True)
    whole = tuple(Index(((name, 1),)) for name in names)
    nest = moved(data.shape, whole, None, None, channels_last=True)
    return call.step(kind, nest, (data, update, start))

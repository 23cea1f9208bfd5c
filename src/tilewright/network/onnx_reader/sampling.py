"""Images sampled at places that are computed: look-ups of the elements around, and their mean."""

from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from tilewright.network.moves import transpose
from tilewright.network.nests import anywhere_along, elementwise, moved
from tilewright.network.onnx_reader.call import Call, NodeError, Rule, Step, Value
from tilewright.network.onnx_reader.composition import Composition
from tilewright.network.onnx_reader.elements import BOOL, INT64
from tilewright.network.onnx_reader.shapes import with_inputs

_BY_CHANNEL = (0, 2, 1)


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {"GridSample": Rule("gather", _grid_sample)}


@dataclass(frozen=True, slots=True)
class _Side:
    """For each sample, an element along one axis, and its share; None: it is the only one."""

    place: Value
    share: Value | None


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis of the image, and what becomes of samples beyond it."""

    name: str
    size: int
    align_corners: bool
    has_border: bool
    """Whether elements at the end stand for those beyond, or else zeros."""


def _grid_sample(call: Call) -> list[Step]:
    data, grid = call.value(0), call.value(1)
    mode = call.text("mode", "linear")
    padding = call.choice("padding_mode", ("zeros", "border", "reflection"))
    if mode not in ("linear", "bilinear", "nearest") or padding == "reflection":
        hint = "sample linearly or the nearest element, with zeros or the border around"
        raise NodeError(f"mode {mode!r} with padding {padding!r} is not read", hint)
    if len(data.shape) != 4 or len(grid.shape) != 4 or grid.shape[3] != 2:
        raise NodeError(
            f"data of shape {data.shape} sampled at {grid.shape} is not read",
            "sample images: batch, channels, rows and columns",
        )
    if grid.shape[0] != data.shape[0] or not all(data.shape):
        raise ValueError(f"data of shape {data.shape} sampled at {grid.shape}")
    ops = Composition(call)
    batch, channels, rows, columns = data.shape
    samples = grid.shape[1] * grid.shape[2]
    axis = partial(_Axis, align_corners=call.flag("align_corners"), has_border=padding == "border")
    sides = []
    for position, along in ((1, axis("rows", rows)), (0, axis("columns", columns))):
        said = ops.part(f"{along.name} said", grid, {3: (position, position + 1)})
        said = ops.shaped(f"{along.name} of samples", said, (batch, samples, 1))
        place = _place(ops, along, said)
        sides.append(
            _nearest(ops, along, place) if mode == "nearest" else _around(ops, along, place)
        )
    flat = ops.shaped("image in a row", data, (batch, channels, rows * columns))
    table = _transposed(ops, "image by element", flat)
    total: Value | None = None
    for number, (row, column) in enumerate(product(*sides)):
        found = _corner(ops, f"corner {number}", table, (row, column), columns)
        total = found if total is None else ops.each("add", f"sum {number}", total, found)
    assert total is not None
    made = _transposed(ops, "samples by channel", total)
    ops.give(0, made, (batch, channels, *grid.shape[1:3]))
    return ops.steps


def _number(ops: Composition, label: str, value: float) -> Value:
    return ops.worked_out(label, (), lambda: np.array(value, dtype=np.float32))


def _place(ops: Composition, axis: _Axis, said: Value) -> Value:
    """From -1 … 1 to places along an axis: its ends are those of its elements, or their middles."""
    half = (axis.size - 1 if axis.align_corners else axis.size) / 2
    scaled = ops.each("mul", f"{axis.name} scaled", said, _number(ops, f"{axis.name} half", half))
    middle = _number(ops, f"{axis.name} middle", (axis.size - 1) / 2)
    place = ops.each("add", f"{axis.name} placed", scaled, middle)
    return _clipped(ops, f"{axis.name} inside", place, axis.size) if axis.has_border else place


def _clipped(ops: Composition, label: str, place: Value, size: int) -> Value:
    ends = {"min": 0.0, "max": float(size - 1)}
    return ops.add("clip", label, elementwise(place.shape), [place], ends)


def _nearest(ops: Composition, axis: _Axis, place: Value) -> list[_Side]:
    return [_side(ops, axis, "nearest", ops.each("round", f"{axis.name} nearest", place), None)]


def _around(ops: Composition, axis: _Axis, place: Value) -> list[_Side]:
    """The elements before and behind a place, each with what is left to the other as its share."""
    one = _number(ops, f"{axis.name} one", 1)
    low = ops.each("floor", f"{axis.name} before", place)
    ahead = ops.each("sub", f"{axis.name} ahead", place, low)
    high = ops.each("add", f"{axis.name} behind", low, one)
    left = ops.each("sub", f"{axis.name} left", one, ahead)
    return [_side(ops, axis, "first", low, left), _side(ops, axis, "second", high, ahead)]


def _side(ops: Composition, axis: _Axis, label: str, place: Value, share: Value | None) -> _Side:
    """An element that is there, and no share for one that is not."""
    name = f"{axis.name} {label}"
    inside = _clipped(ops, f"{name} there", place, axis.size)
    if not axis.has_border:
        is_there = ops.of_type(ops.each("equal", f"{name} is there", place, inside), BOOL)
        if share is None:
            share = _number(ops, f"{name} all", 1)
        nothing = _number(ops, f"{name} nothing", 0)
        share = ops.each("where", f"{name} share", is_there, share, nothing)
    return _Side(inside, share)


def _corner(
    ops: Composition, label: str, table: Value, sides: tuple[_Side, _Side], columns: int
) -> Value:
    """One element for each sample and channel, times its shares."""
    row, column = sides
    batch, samples, _ = row.place.shape
    width = _number(ops, f"{label} columns", columns)
    before = ops.each("mul", f"{label} before", row.place, width)
    place = ops.each("add", f"{label} place", before, column.place)
    place = ops.shaped(f"{label} place of sample", place, (batch, samples))
    nest = elementwise(place.shape)
    whole = ops.add("cast", f"{label} number", nest, [place], {"to": INT64.name})
    whole = ops.of_type(whole, INT64)
    nest = moved((batch, samples, table.shape[2]))
    assert nest.output is not None
    source = (nest.output[0], anywhere_along(table.shape[1]), nest.output[2])
    nest = with_inputs(nest, [source, nest.output[:2]])
    ways = {"axis": 1, "batch_dims": 1}
    found = ops.add("gather", f"{label} found", nest, [table, whole], ways)
    for side, name in ((row, "row"), (column, "column")):
        if side.share is not None:
            found = ops.each("mul", f"{label} by {name}", found, side.share)
    return found


def _transposed(ops: Composition, label: str, value: Value) -> Value:
    nest = transpose(value.shape, _BY_CHANNEL)
    return ops.add("transpose", label, nest, [value], {"perm": _BY_CHANNEL})

"""Gathers, scatters, and results that repeat their input: expand, tile, resize."""

from math import prod

from tilewright.network.graph import MAX_SIZE, AttributeValue, Index
from tilewright.network.moves import expand
from tilewright.network.nests import (
    Nest,
    Shape,
    anywhere_along,
    axis_names,
    broadcast,
    moved,
    normal_axis,
)
from tilewright.network.onnx_reader.call import (
    Call,
    NodeError,
    Rule,
    Step,
    Value,
    known_array,
    main_step,
)
from tilewright.network.onnx_reader.shapes import possible_shape, with_inputs


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {
        "Gather": Rule("gather", _gather),
        "GatherElements": Rule("gather", _gather_elements),
        "GatherND": Rule("gather", _gather_nd),
        "Scatter": Rule("scatter", _scatter_elements),
        "ScatterElements": Rule("scatter", _scatter_elements),
        "ScatterND": Rule("scatter", _scatter_nd),
        "Expand": Rule("expand", _expand),
        "Tile": Rule("tile", _tile),
    }


def _axis(call: Call, rank: int) -> int:
    if rank == 0:
        raise ValueError("a scalar has no axis")
    return normal_axis(call.integer("axis", 0), rank)


def _gather(call: Call) -> list[Step]:
    """Evenly spaced indices that are known make a slice; others may be anywhere along the axis."""
    data, indices = call.shape(0), call.shape(1)
    axis = _axis(call, len(data))
    shape = possible_shape((*data[:axis], *indices, *data[axis + 1 :]))
    nest = moved(shape)
    assert nest.output is not None
    end = axis + len(indices)
    spaced = _spaced(call.value(1), data[axis])
    if spaced is not None and not call.value(0).is_constant:
        return [_sliced(call, nest, axis, spaced)]
    source = (*nest.output[:axis], anywhere_along(data[axis]), *nest.output[end:])
    nest = with_inputs(nest, [source, nest.output[axis:end]])
    inputs = [call.value(0), call.value(1)]
    return [main_step(call, "gather", nest, inputs, attributes={"axis": axis})]


def _spaced(indices: Value, size: int) -> range | None:
    """Indices counted from the front; None where they are not known or not evenly spaced."""
    if not indices.is_constant or prod(indices.shape) not in (1, *indices.shape[:1]):
        return None
    try:
        known = [int(index) for index in known_array(indices).ravel()]
    except ValueError:
        return None
    for index in known:
        if not -size <= index < size:
            raise ValueError(f"index {index} into an axis of {size} elements")
    known = [index % size for index in known]
    step = known[1] - known[0] if len(known) > 1 else 1
    if not known or step == 0:
        return None
    spaced = range(known[0], known[0] + step * len(known), step)
    return spaced if list(spaced) == known else None


def _sliced(call: Call, nest: Nest, axis: int, spaced: range) -> Step:
    """Evenly spaced elements of an axis, which goes if a single one is picked without an axis."""
    assert nest.output is not None
    end = axis + len(call.shape(1))
    along = nest.output[axis:end] if len(spaced) > 1 else ()
    picked = Index(tuple((i.terms[0][0], spaced.step) for i in along), spaced.start)
    source = (*nest.output[:axis], picked, *nest.output[end:])
    rank = len(call.shape(0))
    at = [i == axis for i in range(rank)]
    attributes: dict[str, AttributeValue] = {
        "starts": tuple(spaced.start if here else 0 for here in at),
        "sizes": tuple(
            len(spaced) if here else size for here, size in zip(at, call.shape(0), strict=True)
        ),
        "steps": tuple(spaced.step if here else 1 for here in at),
    }
    nest = with_inputs(nest, [source])
    return main_step(call, "slice", nest, [call.value(0)], attributes=attributes)


def _gather_elements(call: Call) -> list[Step]:
    data, indices = call.shape(0), call.shape(1)
    axis = _axis(call, len(data))
    if len(indices) != len(data):
        raise ValueError(f"indices of shape {indices} into shape {data}")
    nest = moved(indices)
    assert nest.output is not None
    source = (*nest.output[:axis], anywhere_along(data[axis]), *nest.output[axis + 1 :])
    nest = with_inputs(nest, [source, nest.output])
    inputs = [call.value(0), call.value(1)]
    return [main_step(call, "gather", nest, inputs, attributes={"axis": axis})]


def _gather_nd(call: Call) -> list[Step]:
    data, indices = call.shape(0), call.shape(1)
    batch = call.integer("batch_dims", 0)
    if not indices or not 0 <= batch < min(len(data), len(indices)):
        raise ValueError(f"{batch} batch axes of shapes {data} and {indices}")
    depth = indices[-1]
    if depth < 1 or batch + depth > len(data) or indices[:batch] != data[:batch]:
        raise ValueError(f"indices of shape {indices} into shape {data}")
    shape = possible_shape((*indices[:-1], *data[batch + depth :]))
    nest, lead = moved(shape), len(indices) - 1
    assert nest.output is not None
    searched = map(anywhere_along, data[batch : batch + depth])
    source = (*nest.output[:batch], *searched, *nest.output[lead:])
    nest = with_inputs(nest, [source, (*nest.output[:lead], anywhere_along(depth))])
    inputs = [call.value(0), call.value(1)]
    return [main_step(call, "gather", nest, inputs, attributes={"batch_dims": batch})]


def _scatter_elements(call: Call) -> list[Step]:
    data = call.shape(0)
    axis = _axis(call, len(data))
    if call.shape(1) != call.shape(2) or len(call.shape(1)) != len(data):
        raise ValueError(f"updates {call.shape(2)} at indices {call.shape(1)} of shape {data}")
    return _scatter(call, {"axis": axis})


def _scatter_nd(call: Call) -> list[Step]:
    data, indices, updates = call.shape(0), call.shape(1), call.shape(2)
    if not indices or indices[-1] > len(data):
        raise ValueError(f"indices of shape {indices} into shape {data}")
    if updates != (*indices[:-1], *data[indices[-1] :]):
        raise ValueError(f"updates {updates} at indices {indices} of shape {data}")
    return _scatter(call, {})


def _scatter(call: Call, attributes: dict[str, AttributeValue]) -> list[Step]:
    nest = moved(call.shape(0))
    nest = with_inputs(nest, [nest.output, None, None])
    attributes["reduction"] = call.text("reduction", "none")
    inputs = [call.value(i) for i in range(3)]
    return [main_step(call, "scatter", nest, inputs, attributes=attributes)]


def _expand(call: Call) -> list[Step]:
    data = call.shape(0)
    shape = possible_shape(broadcast(data, call.integers_at(1)))
    attributes: dict[str, AttributeValue] = {"shape": shape}
    return [main_step(call, "expand", expand(data, shape), [call.value(0)], attributes=attributes)]


def _tile(call: Call) -> list[Step]:
    if call.opset < 6:
        raise NodeError("opset 1 has another Tile", "convert the model to a newer opset")
    data, repeats = call.shape(0), call.integers_at(1)
    if len(repeats) != len(data) or any(not 0 <= count <= MAX_SIZE for count in repeats):
        raise ValueError(f"{repeats} repeats of shape {data}")
    nest = _tile_nest(data, repeats)
    attributes: dict[str, AttributeValue] = {"repeats": repeats}
    return [main_step(call, "tile", nest, [call.value(0)], attributes=attributes)]


def _tile_nest(data: Shape, repeats: tuple[int, ...]) -> Nest:
    """Dims of the input, and for each axis that repeats a dim R… that counts the repeats."""
    names = axis_names(len(data))
    shape = possible_shape(tuple(s * r for s, r in zip(data, repeats, strict=True)))
    axes = list(zip(names, data, repeats, strict=True))
    return Nest(
        dims=tuple(zip(names, data, strict=True))
        + tuple((f"R{name}", count) for name, _, count in axes if count != 1),
        shape=shape,
        output=tuple(
            Index(((name, 1),) if count == 1 else ((f"R{name}", size), (name, 1)))
            for name, size, count in axes
        ),
        inputs=(tuple(Index(((name, 1),)) for name in names),),
    )

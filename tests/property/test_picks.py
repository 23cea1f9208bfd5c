"""Look-ups and places of the best that take the rows of what they read as these come."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cascade_cases import cascaded, prepared
from tests.random_cases import examples, repeatable
from tests.small_machines import Small, small_machine
from tests.small_networks import Draw

from tilewright.errors import InfeasibleError
from tilewright.network import nests, windows
from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import AttributeValue, Network
from tilewright.network.nests import Nest, anywhere_along
from tilewright.program.cascade import Cascade
from tilewright.replay.check import problems
from tilewright.replay.emulate import replay
from tilewright.replay.values import Values

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A network that picks from a pool's result, what it is given, and what NumPy picks."""

    network: Network
    arrays: dict[str, Array]
    expected: Array


def pooled(data: Array) -> Array:
    """The largest of 3 x 3 elements, nothing around them."""
    found = np.lib.stride_tricks.sliding_window_view(data, (3, 3), axis=(2, 3)).max(axis=(4, 5))
    return np.asarray(found)


@dataclass(frozen=True)
class Pick:
    """The last op: its nest, its attributes, the places that it is given, and its result."""

    kind: str
    nest: Nest
    attributes: dict[str, AttributeValue]
    places: Array | None
    expected: Array


Picking = Callable[[Draw, Array], Pick]


def best(draw: Draw, table: Array) -> Pick:
    """ArgMax or ArgMin along axes; there are few values, so that several are the best."""
    kind = draw(st.sampled_from(["arg_max", "arg_min"]))
    axes = draw(st.sampled_from([(1,), (2,), (3,), (2, 3), (1, 2)]))
    is_last = draw(st.booleans())
    find = np.argmax if kind == "arg_max" else np.argmin
    compared = np.moveaxis(table, axes, range(-len(axes), 0))
    flat = compared.reshape(*compared.shape[: table.ndim - len(axes)], -1)
    place = find(flat[..., ::-1] if is_last else flat, axis=-1)
    return Pick(
        kind,
        nests.reduce(table.shape, axes, keep_dims=False),
        {"select_last_index": int(is_last)},
        None,
        np.asarray(flat.shape[-1] - 1 - place if is_last else place),
    )


def entries(draw: Draw, table: Array) -> Pick:
    """Gather: entries along an axis, which may be counted from the end."""
    axis, count = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    places = some_places(draw, table.shape[axis], (count,))
    shape = (*table.shape[:axis], count, *table.shape[axis + 1 :])
    own = nests.moved(shape).output
    assert own is not None
    source = (*own[:axis], anywhere_along(table.shape[axis]), *own[axis + 1 :])
    nest = nests.moved(shape, source, own[axis : axis + 1])
    return Pick("gather", nest, {"axis": axis}, places, np.take(table, places, axis))


def elements(draw: Draw, table: Array) -> Pick:
    """GatherElements: an entry along an axis for every element of the result."""
    axis = draw(st.integers(1, 3))
    shape = tuple(2 if i == axis else size for i, size in enumerate(table.shape))
    places = some_places(draw, table.shape[axis], shape)
    own = nests.moved(shape).output
    assert own is not None
    source = (*own[:axis], anywhere_along(table.shape[axis]), *own[axis + 1 :])
    attributes: dict[str, AttributeValue] = {"axis": axis, "onnx_op": "GatherElements"}
    from_front = np.where(places < 0, places + table.shape[axis], places)
    expected = np.take_along_axis(table, from_front, axis)
    return Pick("gather", nests.moved(shape, source, own), attributes, places, expected)


def points(draw: Draw, table: Array) -> Pick:
    """GatherND: elements, or what lies behind the first axes, at places along several axes."""
    depth, count = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    along = [some_places(draw, size, (count,)) for size in table.shape[:depth]]
    shape = (count, *table.shape[depth:])
    own = nests.moved(shape).output
    assert own is not None
    source = (*map(anywhere_along, table.shape[:depth]), *own[1:])
    nest = nests.moved(shape, source, (*own[:1], anywhere_along(depth)))
    attributes: dict[str, AttributeValue] = {"onnx_op": "GatherND"}
    return Pick("gather", nest, attributes, np.stack(along, axis=-1), table[tuple(along)])


def some_places(draw: Draw, size: int, shape: tuple[int, ...]) -> Array:
    random = np.random.default_rng(draw(st.integers(0, 99)))
    return random.integers(-size, size, shape)


@st.composite
def cases(draw: Draw, kinds: tuple[Picking, ...]) -> Case:
    """A pool and what picks from its result."""
    shape = (1, draw(st.integers(1, 6)), draw(st.integers(4, 9)), draw(st.integers(3, 8)))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    arrays: dict[str, Array] = {"x": random.integers(-3, 3, shape).astype(np.int8)}
    table = pooled(arrays["x"])
    pick = draw(st.sampled_from(kinds))(draw, table)
    net = NetworkBuilder("picks")
    net.tensor("x", shape, bits=8, role="input", dtype="int8")
    nest = windows.pool(shape, [windows.Window(kernel=3)] * 2)
    net.op("pool", "max_pool", nest, ["x"], {"pool": (8, "int8")})
    inputs, result = ["pool"], (8, "int8")
    if pick.places is None:
        result = (32, "int32")
    else:
        net.tensor("at", pick.places.shape, bits=32, role="input", dtype="int32")
        arrays["at"] = pick.places.astype(np.int32)
        inputs.append("at")
    net.op("pick", pick.kind, pick.nest, inputs, {"pick": result}, attributes=pick.attributes)
    return Case(net.finish(["pick"]), arrays, pick.expected)


machines = st.builds(
    Small,
    kind=st.sampled_from(["one", "split", "ends"]),
    size_bytes=st.sampled_from([256, 1024, 4096]),
    cores=st.sampled_from([1, 1, 2]),
    alignment_bytes=st.sampled_from([1, 16]),
)


@settings(repeatable, max_examples=examples(60))
@given(cases((entries, elements, points)), machines, st.sampled_from([1, 2, 3]), st.data())
def test_what_is_found_row_by_row_is_what_numpy_finds(
    case: Case, small: Small, step: int, data: st.DataObject
) -> None:
    check_row_by_row(case, small, step, data)


@settings(repeatable, max_examples=examples(40))
@given(cases((best,)), machines, st.sampled_from([1, 2, 3]), st.data())
def test_the_place_of_the_best_of_all_rows_is_the_one_that_numpy_finds(
    case: Case, small: Small, step: int, data: st.DataObject
) -> None:
    check_row_by_row(case, small, step, data)


def check_row_by_row(case: Case, small: Small, step: int, data: st.DataObject) -> None:
    """A cascade along an axis of what is picked from computes the same, holding rows of it."""
    machine = small_machine(small)
    ways = [axis for axis in prepared(case.network, machine).rows.axes(1) if axis < 0]
    if not ways:
        return
    axis = data.draw(st.sampled_from(ways))
    cascade = Cascade(first=0, last=1, axis=axis, step=step, eager=step > 1)
    try:
        made = cascaded(case.network, machine, cascade)
    except InfeasibleError:
        return
    assert problems(made.timetable, case.network) == []
    found = replay(made.timetable, case.network, Values(arrays=case.arrays))
    assert found.problems == ()
    np.testing.assert_array_equal(found.outputs["pick"], case.expected)
    rows = case.network.by_name["pool"].shape[~axis]
    held = [b.box[~axis] for b in made.lowered.program.buffers if b.tensor == "pool"]
    assert max(stop - start for start, stop in held) == min(step, rows)

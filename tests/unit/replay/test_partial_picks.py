"""Look-ups and places of the best of which a task sees a part: what is kept in between."""

from dataclasses import replace

import numpy as np
from tests.cascade_cases import Cascaded, cascaded
from tests.small_machines import Small, small_machine

from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import Network
from tilewright.network.nests import along_dim, anywhere_along, moved, reduce
from tilewright.program.cascade import Cascade
from tilewright.replay.check import problems
from tilewright.replay.emulate import replay
from tilewright.replay.values import Values

DATA = np.arange(12, dtype=np.int8).reshape(6, 2)[::-1].copy()
PLACES = np.array([4, -6, 0], np.int32)


def looked_up() -> Network:
    """Three rows of six, at places that are given."""
    net = NetworkBuilder("looked_up")
    net.tensor("x", (6, 2), bits=8, role="input", dtype="int8")
    net.tensor("at", (3,), bits=32, role="input", dtype="int32")
    nest = moved((3, 2), (anywhere_along(6), along_dim("K")), (along_dim("D"),))
    net.op("y", "gather", nest, ["x", "at"], {"y": (8, "int8")}, attributes={"axis": 0})
    return net.finish(["y"])


def best(dtype: str) -> Network:
    """The place of the largest of six."""
    net = NetworkBuilder("best")
    net.tensor("x", (6, 2), bits=8, role="input", dtype=dtype)
    nest = reduce((6, 2), [0], keep_dims=False)
    net.op("y", "arg_max", nest, ["x"], {"y": (32, "int32")}, attributes={"axis": 0})
    return net.finish(["y"])


def by_rows(network: Network) -> Cascaded:
    return cascaded(
        network, small_machine(Small()), Cascade(first=0, last=0, axis=~0, step=2, eager=True)
    )


def test_what_lies_in_no_row_that_was_seen_waits_for_the_others() -> None:
    network = looked_up()
    made = by_rows(network)
    found = replay(made.timetable, network, Values(arrays={"x": DATA, "at": PLACES}))
    assert found.problems == ()
    # Place -6 is the first of six; rows count down from 10 and 11.
    np.testing.assert_array_equal(found.outputs["y"], [[2, 3], [10, 11], [10, 11]])


def test_a_place_beyond_the_table_is_reported() -> None:
    network = looked_up()
    made = by_rows(network)
    at = np.array([6, 0, 0], np.int32)
    found = replay(made.timetable, network, Values(arrays={"x": DATA, "at": at}))
    assert "a look-up goes beyond axis 0 of 'x'" in found.problems[0].message


def test_rows_that_nobody_looks_at_are_missed() -> None:
    network = looked_up()
    made = by_rows(network)
    program = made.timetable.program
    first = next(n for n, task in enumerate(program.tasks) if task.op)
    tasks = list(program.tasks)
    # The first task looks at one row of its two.
    tile = tuple((dim, a, 1 if dim == "S0" else b) for dim, a, b in tasks[first].tile)
    tasks[first] = replace(tasks[first], tile=tile)
    wrong = replace(made.timetable, program=replace(program, tasks=tuple(tasks)))
    values = Values(arrays={"x": DATA, "at": PLACES})
    assert any("points are missing" in p.message for p in problems(wrong, network))
    assert any("products, not" in p.message for p in replay(wrong, network, values).problems)


def test_the_first_of_equals_wins_in_whichever_rows_it_is() -> None:
    network = best("int8")
    data = np.array([[1, 5], [3, -8], [3, 5], [2, -8], [3, 5], [0, -8]], np.int8)
    found = replay(by_rows(network).timetable, network, Values(arrays={"x": data}))
    assert found.problems == ()
    np.testing.assert_array_equal(found.outputs["y"], [1, 0])


def test_real_numbers_are_compared_at_once() -> None:
    network = best("int8")
    timetable = by_rows(network).timetable
    real = best("float32")
    found = replay(timetable, real, Values(arrays={"x": DATA.astype(np.float32)}))
    assert "a part of what is compared is at hand, of type float32" in found.problems[0].message

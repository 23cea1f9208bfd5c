"""Pools that are cut along their windows: maxima and sums so far, kept in between."""

from dataclasses import replace

import numpy as np
import pytest
from tests.ladder_cases import prepared_on

from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.network.zoo.layers import Filter
from tilewright.program.model import Task, Timetable
from tilewright.replay.check import problems
from tilewright.replay.emulate import replay
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import Values
from tilewright.schedule.control_edges import control_edges
from tilewright.strategy.ladder.cells import work_of
from tilewright.strategy.ladder.program import timetable_of
from tilewright.strategy.ladder.rungs import RungName, rung_run

DATA = np.arange(2 * 5 * 5, dtype=np.float32).reshape(1, 2, 5, 5) % 7 - 9


def pooled(kind: str) -> Network:
    """A 3 x 3 pool with a stride of 2 and room around; all values are below zero."""
    net = layers.draft("pooled", 16)
    data = layers.given(net, "input", (1, 2, 5, 5))
    window = Filter(kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    if kind == "max_pool":
        return net.finish(layers.max_pool(net, "pool", data, window))
    return net.finish(layers.global_average_pool(net, "pool", data))


def by_taps(network: Network, name: RungName = "line_buffered") -> Timetable:
    run = rung_run(work_of(network), name)
    assert run is not None
    return with_edges(timetable_of(prepared_on(network, 4_096), run))


def with_edges(timetable: Timetable) -> Timetable:
    return replace(timetable, edges=control_edges(timetable))


def values() -> Values:
    return Values(arrays={"input": DATA})


def changed(timetable: Timetable, number: int, task: Task) -> Timetable:
    tasks = list(timetable.program.tasks)
    tasks[number] = task
    program = replace(timetable.program, tasks=tuple(tasks))
    return replace(timetable, program=program)


def first_continued(timetable: Timetable) -> int:
    """The first task that goes on from what another one left and leaves it to a third."""
    program = timetable.program
    for number, task in enumerate(program.tasks):
        sums = [a for a in task.reads if "partial" in program.buffers[a.buffer].name]
        unfinished = [a for a in task.writes if "partial" in program.buffers[a.buffer].name]
        if sums and unfinished:
            return number
    raise AssertionError("no task goes on")


@pytest.mark.parametrize("kind", ["max_pool", "average_pool"])
def test_a_pool_that_takes_one_element_at_a_time_has_the_same_result(kind: str) -> None:
    network = pooled(kind)
    timetable = by_taps(network)
    assert len(timetable.program.tasks) > 25
    assert problems(timetable, network) == []
    found = replay(timetable, network, values())
    assert found.problems == ()
    expected = computed(network, {"input": DATA}, {})["pool"]
    np.testing.assert_allclose(found.outputs["pool"], expected, rtol=1e-6)
    if kind == "max_pool":
        # By hand: padding counts for nothing, although it is larger than every value.
        assert found.outputs["pool"][0, 0, 0, 0] == DATA[0, 0, :2, :2].max()
    else:
        assert found.outputs["pool"][0, 1, 0, 0] == pytest.approx(DATA[0, 1].mean())


@pytest.mark.parametrize("kind", ["max_pool", "average_pool"])
def test_a_tap_that_is_left_out_is_found(kind: str) -> None:
    network = pooled(kind)
    timetable = by_taps(network)
    number = first_continued(timetable)
    program = timetable.program
    # The task does nothing any more: it copies nothing and computes nothing.
    task = program.tasks[number]
    idle = replace(task, op="", tile=(), reads=task.reads[-1:], writes=task.writes)
    wrong = changed(timetable, number, replace(idle, kind="move"))
    assert any("points are missing" in p.message for p in problems(wrong, network))
    assert any("products, not" in p.message for p in replay(wrong, network, values()).problems)


def test_a_tap_that_is_taken_twice_is_found() -> None:
    network = pooled("average_pool")
    timetable = by_taps(network)
    number = first_continued(timetable)
    task, other = timetable.program.tasks[number], timetable.program.tasks[number - 1]
    assert task.tile != other.tile
    before = next(t for t in timetable.program.tasks[:number] if t.op)
    wrong = changed(timetable, number, replace(task, tile=before.tile, reads=task.reads))
    assert any("both compute" in p.message for p in problems(wrong, network))


def test_a_result_that_is_taken_too_early_is_found() -> None:
    network = pooled("max_pool")
    timetable = by_taps(network)
    number = first_continued(timetable)
    program = timetable.program
    last = next(
        n
        for n, task in enumerate(program.tasks)
        if task.op and "partial" not in program.buffers[task.writes[0].buffer].name
    )
    # The result is made from the first tap alone.
    task = program.tasks[last]
    reads = [a for a in task.reads if "partial" not in program.buffers[a.buffer].name]
    wrong = changed(timetable, last, replace(task, reads=tuple(reads)))
    assert number < last
    assert any("products, not" in p.message for p in replay(wrong, network, values()).problems)

"""Weights that stream take their time and energy, and nothing leads past a memory unsaid."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from tests.brought import without_bypass

import tilewright
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.model import Task, Timetable
from tilewright.replay.check import problems


def machine() -> Machine:
    return tilewright.load_machine("ethos_u55_256")


def network() -> Network:
    """64 x 12 weights and 12 biases of 4 B."""
    net = layers.draft("product", 8)
    return net.finish(layers.gemm(net, "scores", layers.given(net, "x", (1, 64)), 12))


@cache
def timetable() -> Timetable:
    found = tilewright.plan(network(), machine()).timetable
    (task,) = [task for task in found.program.tasks if task.op]
    assert task.ports == ("flash.axi",)
    return found


def said(change: Callable[[Task], Task], on: Machine | None = None) -> list[str]:
    found = timetable()
    tasks = tuple(change(task) if task.op else task for task in found.program.tasks)
    changed = replace(found, program=replace(found.program, tasks=tasks))
    return [problem.message for problem in problems(changed, network(), on or machine())]


def same(task: Task) -> Task:
    return task


def quicker(task: Task) -> Task:
    return replace(task, cycles=815)


def cheaper(task: Task) -> Task:
    left = [charge for charge in task.charges if charge.memory != "flash"]
    (first, *_) = [charge for charge in task.charges if charge.memory == "flash"]
    return replace(task, charges=(*left, replace(first, read_bytes=815, energy_pj=0.0)))


def test_a_plan_with_weights_that_stream_is_right() -> None:
    assert said(same) == []


def test_nothing_is_read_past_a_memory_where_the_machine_does_not_say_so() -> None:
    assert said(same, without_bypass(machine())) == [
        "task scores reads weights straight from flash, and nothing leads past sram"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (quicker, "task scores takes 815 cycles, and 816 bytes straight from flash take 816"),
        (
            cheaper,
            "task scores is charged for 815 bytes read and 0 pJ at flash, and reads 816 straight "
            "from there for 71416.3 pJ",
        ),
    ],
)
def test_what_streams_takes_time_and_energy(change: Callable[[Task], Task], message: str) -> None:
    # 768 B of weights and 48 B of biases, at a byte a cycle and 87.52 pJ a byte.
    assert message in said(change)

"""Feature maps in bricks are cut between bricks, by the planner and for the checker."""

import re
from dataclasses import replace
from functools import cache

import pytest

import tilewright
from tilewright.machine.limits import with_memory_limits
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import Plan, PlanOptions, plan
from tilewright.program.model import Access, Program
from tilewright.replay.check import problems
from tilewright.replay.verify import verify


def tower(channels: int) -> Network:
    """A depthwise convolution between two pointwise ones."""
    net = layers.draft("tower", 8)
    data = layers.given(net, "x", (1, channels, 12, 12))
    data = layers.conv(net, "first", data, channels, layers.square(1))
    deep = layers.square(3, 1, 1, group=channels)
    data = layers.conv(net, "deep", data, channels, deep)
    return net.finish(layers.conv(net, "last", data, channels, layers.square(1)))


@cache
def planned(machine: str) -> Plan:
    on = tilewright.load_machine(machine)
    return plan(tower(48), on, PlanOptions(objective="memory"))


def channel_ranges(program: Program, tensor: str) -> set[tuple[int, int]]:
    """The channels of a map that tasks compute with at once."""
    return {
        access.box[1]
        for task in program.tasks
        if task.kind == "compute"
        for access in (*task.reads, *task.writes)
        if program.buffers[access.buffer].tensor == tensor
    }


@pytest.mark.parametrize("tensor", ["first", "deep"])
def test_tiles_of_little_room_begin_and_end_between_bricks(tensor: str) -> None:
    found = channel_ranges(planned("ethos_u55_128").program, tensor)
    assert found
    assert all(begin % 16 == 0 and end % 16 == 0 for begin, end in found)


def forged(box_channels: tuple[int, int]) -> list[str]:
    """What is said of a plan of which a task reads other channels of a map than it should."""
    made = planned("ethos_u55_128")
    program, tasks = made.program, list(made.program.tasks)
    number = next(n for n, task in enumerate(tasks) if task.op == "last")
    (access, *rest) = tasks[number].reads
    assert program.buffers[access.buffer].tensor == "deep"
    box = (access.box[0], box_channels, *access.box[2:])
    tasks[number] = replace(tasks[number], reads=(Access(access.buffer, box), *rest))
    wrong = replace(made.timetable, program=replace(program, tasks=tuple(tasks)))
    on = tilewright.load_machine("ethos_u55_128")
    return [problem.message for problem in problems(wrong, made.network, on)]


def test_a_task_that_begins_inside_a_brick_is_refused() -> None:
    found = forged((8, 16))
    # The task has a name with its tile.
    example = (
        "task last reads channels 8:16 of deep, which lies in bricks of 16: no operation of an "
        "Ethos-U begins or ends inside one"
    )
    assert example in [re.sub(r" \[.*\] reads", " reads", text) for text in found]
    assert not any("in bricks" in text for text in forged((0, 16)))


def test_other_machines_cut_maps_anywhere() -> None:
    on = tilewright.load_machine("ethos_u55_128")
    plain = replace(on, cores=(replace(on.cores[0], model=None),))
    made = plan(tower(48), plain, PlanOptions(objective="memory"))
    found = channel_ranges(made.program, "first") | channel_ranges(made.program, "deep")
    assert any(begin % 16 or end % 16 for begin, end in found)


@pytest.mark.parametrize("size_bytes", [256, 1024])
def test_sums_to_which_another_op_is_applied_are_no_map(size_bytes: int) -> None:
    """The planner cut them between rows of channels, as their result lies, and was refused."""
    net = layers.draft("fused", 8)
    sums = layers.conv(
        net, "sums", layers.given(net, "x", (1, 512, 4, 4)), 32, layers.square(3, 1, 1)
    )
    network = net.finish(layers.activation(net, "result", sums))
    limited = with_memory_limits(tilewright.load_machine("ethos_u65_256"), (("sram", size_bytes),))
    made = plan(network, limited)
    assert verify(made.timetable, network, machine=limited).agrees

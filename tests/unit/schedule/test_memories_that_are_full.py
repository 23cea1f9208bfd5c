"""External memories that are too small, where roots lie, and orders of programs of many tasks."""

from dataclasses import replace

import pytest
from tests.schedule_programs import Builder

from tilewright.errors import InfeasibleError
from tilewright.program.model import Program, Space
from tilewright.schedule.feasible_order import feasible_order
from tilewright.schedule.schedule import schedule
from tilewright.schedule.scratchpad import Scratchpad
from tilewright.schedule.tables import tables_of


def with_dram(program: Program, size_bytes: int) -> Program:
    spaces = tuple(
        replace(space, size_bytes=size_bytes) if space.name == "dram" else space
        for space in program.spaces
    )
    return replace(program, spaces=spaces)


def spilling_program() -> Program:
    """x makes room for b and y; outside lie a, b, y, z (18 B) and for a while x (6 B).

    It takes too long to be made again.
    """
    builder = Builder(10, {"dma": 1, "core": 1})
    sizes = {"a": 4, "x": 6, "b": 6, "y": 4, "z": 4}
    a, x, b, y, z = (builder.buffer(name, size) for name, size in sizes.items())
    builder.load(a)
    builder.task("first", "core", 100, [a], [x])
    builder.load(b)
    builder.task("second", "core", 1, [b], [y], after=[1])
    builder.store(y)
    builder.task("third", "core", 1, [x], [z], after=[3])
    builder.store(z)
    return builder.program()


def test_constants_and_results_that_an_external_memory_cannot_hold_are_counted() -> None:
    with pytest.raises(InfeasibleError) as caught:
        schedule(with_dram(spilling_program(), 15))
    text = str(caught.value)
    assert "memory 'dram' of 15 B cannot hold" in text
    assert "3 B short (b@dram 6 B, a@dram 4 B, y@dram 4 B, z@dram 4 B)" in text
    assert "'dram' of 18 B would do" in text


def test_an_external_memory_without_room_for_what_is_written_out_says_how_much_would_do() -> None:
    with pytest.raises(InfeasibleError) as caught:
        schedule(with_dram(spilling_program(), 20))
    text = str(caught.value)
    assert "memory 'dram' of 20 B is full: 'x#saved0' needs 6 B" in text
    assert "largest free range has 2 B" in text
    assert "'dram' of 24 B would do" in text
    assert schedule(with_dram(spilling_program(), 24)).cycles > 0


def test_a_root_lies_beside_what_leaves_soon_after_it() -> None:
    space = Space(name="s", memory="s", kind="scratchpad", size_bytes=100)
    pad = Scratchpad(space, last_step=[9, 2, 5, 5, 1])
    # The ends of the memory are alike for the first one, and the lower one is taken.
    assert pad.place(0, 20, False) == 0
    # Until step 2: beside the one that stays until 9, not at the end that stays for ever.
    assert pad.place(1, 20, False) == 20
    # Until step 5: the neighbour below leaves before, so it goes to the other end.
    assert pad.place(2, 20, False) == 80
    assert pad.place(3, 20, False) == 60
    # Until step 1: the one until 2 is nearer than the one until 5.
    assert pad.place(4, 10, False) == 40
    pad.release(20)
    pad.release(40)
    assert pad.place(1, 40, False) == 20


def test_an_alignment_holds_beside_either_neighbour() -> None:
    space = Space(name="s", memory="s", kind="scratchpad", size_bytes=100, alignment_bytes=8)
    pad = Scratchpad(space, last_step=[5, 5, 9])
    assert pad.place(0, 10, False) == 0
    assert pad.place(1, 10, False) == 16
    # 100 - 10 = 90, rounded down.
    assert pad.place(2, 10, False) == 88
    assert pad.place(0, 65, False) is None


def test_an_order_of_more_tasks_than_calls_may_nest_is_found() -> None:
    # Both a and b are too much at once, so b must be used before a is made, or the reverse.
    builder = Builder(10, {"dma": 1, "core": 1}, spill=False)
    a, b, c, d = (
        builder.buffer(name, size) for name, size in zip("abcd", (6, 6, 1, 1), strict=True)
    )
    first = builder.task("make a", "core", 1, [], [a])
    last = builder.task("make b", "core", 1, [], [b])
    for number in range(1100):
        last = builder.task(f"wait {number}", "core", 1, after=[last])
    builder.task("use a", "core", 1, [a], [c])
    builder.task("use b", "core", 1, [b], [d])
    tables = tables_of(builder.program())
    order = feasible_order(tables, 2000)
    assert order is not None
    assert sorted(order) == list(range(1104))
    where = {task: place for place, task in enumerate(order)}
    assert where[1102] < where[1] or where[1103] < where[first]
    assert feasible_order(tables, 1000) is None

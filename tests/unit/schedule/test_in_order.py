"""Program order: every number is derived in its test."""

from dataclasses import replace

import pytest
from tests.schedule_programs import Builder

from tilewright.program.model import Program
from tilewright.schedule.schedule import schedule_in_order


def chain(capacity_bytes: int) -> Program:
    """Two ops with a copy before each: a and b, then b and c are there together, 10 bytes."""
    builder = Builder(capacity_bytes, {"dma": 1, "core": 1})
    a, b, c = (builder.buffer(name, size) for name, size in (("a", 6), ("b", 4), ("c", 6)))
    builder.load(a)
    builder.task("first", "core", 10, [a], [b])
    builder.load(c)
    builder.task("second", "core", 10, [b, c])
    return builder.program()


def test_who_gets_an_address_waits_for_all_who_had_it() -> None:
    # a comes in 6 cycles, the first op ends at 16; only then is there room for c, another 6 cycles.
    found = schedule_in_order(chain(10))
    assert found is not None
    times = [(slot.start_cycle, slot.end_cycle) for slot in found.slots]
    assert times == [(0, 6), (6, 16), (16, 22), (22, 32)]
    a, b, c = found.addresses[:3]
    assert a == c
    assert {a, b} in ({0, 4}, {0, 6})


def test_what_is_alive_at_once_must_fit() -> None:
    assert schedule_in_order(chain(9)) is None


@pytest.mark.parametrize(("lanes", "start_cycle"), [(1, 8), (2, 3)])
def test_a_copy_waits_for_a_lane_of_its_port_less_its_setup(lanes: int, start_cycle: int) -> None:
    # Each copy holds its lane to its end, at 10; the next one's bytes flow 2 cycles after its
    # start. With two lanes the second copy waits only for the op that it follows.
    builder = Builder(100, {"dma": 2, "core": 1, "port": lanes})
    first, second = builder.buffer("first", 10), builder.buffer("second", 10)
    op = builder.task("op", "core", 3)
    copies = [builder.load(first), builder.load(second)]
    builder.task("user of both", "core", 1, [first, second])
    for copy, after in zip(copies, ((), (op,)), strict=True):
        builder.tasks[copy] = replace(
            builder.tasks[copy], setup_cycles=2, ports=("port",), after=after
        )
    found = schedule_in_order(builder.program())
    assert found is not None
    assert found.slots[copies[0]].end_cycle == 10
    assert found.slots[copies[1]].start_cycle == start_cycle


def test_whoever_touches_a_place_waits_for_those_who_had_it() -> None:
    # There is room for one buffer. The copy of `a` takes 4 cycles, its user 10. Two writers of `b`
    # follow, one to an engine and neither after the other: both wait for cycle 14.
    builder = Builder(4, {"dma": 1, "core0": 1, "core1": 1})
    a, b = builder.buffer("a", 4), builder.buffer("b", 4)
    builder.load(a)
    builder.task("user of a", "core0", 10, [a])
    writers = [builder.task(f"writer on {core}", core, 3, [], [b]) for core in ("core0", "core1")]
    for writer in writers:
        builder.tasks[writer] = replace(builder.tasks[writer], after=())
    found = schedule_in_order(builder.program())
    assert found is not None
    assert [found.slots[writer].start_cycle for writer in writers] == [14, 14]

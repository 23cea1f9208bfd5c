"""The event simulation on small programs whose times are worked out by hand."""

from dataclasses import replace

import pytest

from tilewright.errors import InputError, LimitError
from tilewright.program.model import Engine, Program, Slot, Task, Timetable
from tilewright.replay.timing import timed_slots, timing


def task(
    name: str, engine: str, cycles: int, after: tuple[int, ...] = (), port: str = "", setup: int = 0
) -> Task:
    return Task(
        name=name,
        kind="compute",
        engine=engine,
        cycles=cycles,
        after=after,
        ports=(port,) if port else (),
        setup_cycles=setup,
    )


def timetable(*tasks: Task, starts: tuple[int, ...], lanes: int = 1) -> Timetable:
    engines = tuple(Engine(name=name) for name in dict.fromkeys(t.engine for t in tasks))
    program = Program(
        name="p",
        spaces=(),
        engines=(*engines, Engine(name="port", count=lanes)),
        routes=(),
        buffers=(),
        tasks=tasks,
    )
    slots = tuple(
        Slot(start_cycle=start, end_cycle=start + t.cycles)
        for start, t in zip(starts, tasks, strict=True)
    )
    return Timetable(program=program, slots=slots, addresses=())


# Two loads of 10 cycles one behind the other, each computed on for 6: 10 + 10 + 6.
CHAIN = timetable(
    task("load a", "dma", 10),
    task("load b", "dma", 10),
    task("conv a", "core", 6, (0,)),
    task("conv b", "core", 6, (1,)),
    starts=(0, 10, 10, 20),
)


def test_without_contention_the_time_is_the_plans() -> None:
    assert timing(CHAIN) == CHAIN.cycles == 26
    assert timed_slots(CHAIN) == CHAIN.slots


def test_a_slower_engine_delays_only_what_waits_for_it() -> None:
    # 12 + 12 + 6.
    assert timing(CHAIN, slower={"dma": 1.2}) == 30
    # The core works behind the DMA engine: 10 + 10 + 9.
    assert timing(CHAIN, slower={"core": 1.5}) == 29


def test_a_faster_engine_is_a_factor_below_one() -> None:
    # 5 + 6 + 6: the core is now what everything waits for.
    assert timing(CHAIN, slower={"dma": 0.5}) == 17


def test_control_edges_are_waited_for() -> None:
    held = replace(CHAIN, edges=((2, 1),))
    # The second load waits for the first conv: 10 + 6 + 10 + 6.
    assert timing(held) == 32


def test_tasks_of_an_engine_keep_the_order_of_the_plan() -> None:
    # The short task could run at once, but stands second: 10 + 1.
    plan = timetable(
        task("long", "a", 5), task("next", "b", 5, (0,)), task("short", "b", 1), starts=(0, 5, 10)
    )
    assert [slot.start_cycle for slot in timed_slots(plan)] == [0, 5, 10]


def test_a_port_with_one_lane_lets_one_transfer_flow_at_a_time() -> None:
    first = task("a", "dma 0", 10, port="port", setup=2)
    second = task("b", "dma 1", 10, port="port", setup=2)
    # Both would flow from cycle 2 on; the second may begin its set-up at 8, to flow from 10 on.
    shared = timetable(first, second, starts=(0, 8))
    assert [slot.start_cycle for slot in timed_slots(shared)] == [0, 8]
    wide = timetable(first, second, starts=(0, 8), lanes=2)
    assert [slot.start_cycle for slot in timed_slots(wide)] == [0, 0]


def test_a_port_that_one_engine_uses_alone_holds_nobody_up() -> None:
    loads = (
        task("load a", "dma", 10, port="port", setup=2),
        task("load b", "dma", 10, port="port", setup=2),
        task("conv", "core", 6, (0,)),
    )
    # 10 + 10, and the core from 10 on.
    assert [s.start_cycle for s in timed_slots(timetable(*loads, starts=(0, 10, 10)))] == [
        0,
        10,
        10,
    ]


def test_two_that_compete_elsewhere_change_nothing_for_others() -> None:
    # Behind the chain stand two transfers for one lane: 10 cycles each, one after the other.
    rivals = (
        task("a", "dma 0", 10, port="port"),
        task("b", "dma 1", 10, port="port"),
    )
    both = timetable(*CHAIN.program.tasks, *rivals, starts=(0, 10, 10, 20, 0, 10))
    for factor in (0.3, 1.0, 2.7):
        alone = timed_slots(CHAIN, slower={"dma": factor})
        beside = timed_slots(both, slower={"dma": factor})
        assert beside[:4] == alone
        assert [slot.start_cycle for slot in beside[4:]] == [0, 10]


def test_the_end_of_a_wait_for_a_lane_is_nobodys_end() -> None:
    # The last task of the program waits for a lane until 10, and another one for the last task.
    plan = timetable(
        task("behind", "dma 0", 10),
        task("a", "dma 1", 10, port="port"),
        task("b", "dma 0", 10, port="port"),
        starts=(20, 0, 10),
    )
    assert [slot.start_cycle for slot in timed_slots(plan)] == [20, 0, 10]


def test_who_comes_first_in_the_plan_gets_the_lane() -> None:
    rivals = task("a", "dma 0", 10, port="port"), task("b", "dma 1", 10, port="port")
    assert [s.start_cycle for s in timed_slots(timetable(*rivals, starts=(10, 0)))] == [10, 0]
    assert [s.start_cycle for s in timed_slots(timetable(*rivals, starts=(0, 10)))] == [0, 10]


def test_a_short_transfer_may_flow_while_another_one_sets_up() -> None:
    # The first flows from 8 to 10; one that flows from 0 to 8 is out of its way, to 9 is not.
    first = task("a", "dma 0", 10, port="port", setup=8)
    for cycles, start in ((8, 0), (9, 10)):
        plan = timetable(first, task("b", "dma 1", cycles, port="port"), starts=(0, start))
        assert [slot.start_cycle for slot in timed_slots(plan)] == [0, start]


def test_jitter_only_delays_and_depends_on_the_seed_alone() -> None:
    times = [timing(CHAIN, jitter=0.5, seed=seed) for seed in range(20)]
    assert times == [timing(CHAIN, jitter=0.5, seed=seed) for seed in range(20)]
    assert all(26 <= cycles <= 39 for cycles in times)
    assert len(set(times)) > 3


def test_an_engine_that_is_not_there_is_an_input_error() -> None:
    with pytest.raises(InputError, match="there is no engine 'dmaa'"):
        timing(CHAIN, slower={"dmaa": 1.2})
    with pytest.raises(InputError, match="cannot be 0 times as slow"):
        timing(CHAIN, slower={"dma": 0})
    with pytest.raises(InputError, match=r"a jitter of -0.1 is not possible"):
        timing(CHAIN, jitter=-0.1)


def test_waits_against_the_order_of_an_engine_stop_everything() -> None:
    plan = timetable(task("a", "core", 5, (1,)), task("b", "core", 5), starts=(0, 5))
    with pytest.raises(LimitError, match="2 tasks wait for each other"):
        timing(plan)


def test_a_task_that_takes_no_time_holds_nothing_up() -> None:
    plan = timetable(
        task("a", "core", 5),
        task("b", "core", 0, (0,)),
        task("c", "core", 3, (1,)),
        starts=(0, 5, 5),
    )
    assert timing(plan) == 8

"""The compiled simulation against the one in Python: the same runs, to the cycle and the byte."""

from collections import Counter
from dataclasses import replace

import pytest
from tests.property.test_schedule_rules import random_rules
from tests.property.test_schedule_stops_early import released
from tests.schedule_emulator import check_timetable
from tests.schedule_programs import Builder, random_program
from tests.schedule_rich_programs import rich_program

from tilewright.program.model import Program
from tilewright.schedule import compiled
from tilewright.schedule.claims import StuckError
from tilewright.schedule.compiled import Compiled, compiled_of, is_compiled
from tilewright.schedule.options import Policy, ScheduleOptions
from tilewright.schedule.repack import find_addresses
from tilewright.schedule.schedule import schedule
from tilewright.schedule.search import keys_of
from tilewright.schedule.simulate import simulate
from tilewright.schedule.state import NO_LIMIT, Score, State, TooSlowError
from tilewright.schedule.tables import Tables, tables_of

pytestmark = pytest.mark.skipif(not is_compiled(), reason="the kernel is not compiled here")

Ending = State | str | None


def in_python(tables: Tables, policy: Policy, limit: Score) -> Ending:
    order = released(tables, policy)
    try:
        return simulate(tables, order, policy, keys_of(order, policy), limit)
    except StuckError as stuck:
        return f"stuck at {stuck.task} with {stuck.lying}"
    except TooSlowError as slow:
        return f"too slow, short of room: {slow.is_short}"


def by_kernel(program: Compiled, policy: Policy, limit: Score) -> Ending:
    """The run, or None if the kernel leaves it to Python."""
    order = released(program.tables, policy)
    try:
        return program.run(order, policy, keys_of(order, policy), limit)
    except StuckError as stuck:
        return f"stuck at {stuck.task} with {stuck.lying}"
    except TooSlowError as slow:
        return f"too slow, short of room: {slow.is_short}"


def facts(state: State) -> list[object]:
    """Everything about a finished run that others read."""
    copies = list(state.copy_address)
    return [
        (state.now, state.added_cycles, state.is_short),
        (state.start, state.instance, state.engine, state.cycles, state.setup, state.ports),
        (state.kind, state.touched, state.written, state.added, state.used_copies),
        [(key, state.copy_begin[key], state.copy_end.get(key)) for key in copies],
        copies if state.policy.addresses_later else state.copy_address,
    ]


def programs(seed: int) -> tuple[Program, Program]:
    return rich_program(seed, layers=3 + seed % 14), random_program(seed, max_tasks=8 + seed % 40)


def without_spilling(program: Program) -> Program:
    """A program on a machine on which nothing that was computed can be written out and back."""
    inward = [route for route in program.routes if program.space[route.source].kind == "external"]
    return replace(program, routes=tuple(inward))


@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_and_python_make_the_same_runs(seed: int) -> None:
    for program in programs(seed):
        tables = tables_of(program)
        given = Compiled(tables)
        for number in range(4):
            policy = replace(random_rules(100 * seed + number), recompute=False)
            expected = in_python(tables, policy, NO_LIMIT)
            found = by_kernel(given, policy, NO_LIMIT)
            assert isinstance(expected, State)
            assert isinstance(found, State)
            assert facts(found) == facts(expected)
            limit = (expected.now * (60 + 10 * number) // 100, 0)
            assert by_kernel(given, policy, limit) == in_python(tables, policy, limit)


def test_the_kernel_gets_stuck_where_python_does() -> None:
    stuck = done = 0
    for seed in range(30):
        for program in programs(seed):
            tables = tables_of(without_spilling(program))
            given = Compiled(tables)
            for number in range(3):
                policy = replace(random_rules(100 * seed + number), recompute=False)
                expected = in_python(tables, policy, NO_LIMIT)
                found = by_kernel(given, policy, NO_LIMIT)
                if isinstance(expected, State):
                    done += 1
                    assert isinstance(found, State)
                    assert facts(found) == facts(expected)
                else:
                    stuck += 1
                    assert found == expected
                    limit = (40 + 20 * number, 0)
                    assert by_kernel(given, policy, limit) == in_python(tables, policy, limit)
    assert stuck > 60
    assert done > 40


@pytest.mark.parametrize("seed", [26, 36, 69, 83, 101, 148])
def test_the_kernel_forces_what_a_task_waits_for_as_python_does(seed: int) -> None:
    """In some runs of these programs the memory is cleared for a copy that comes before a task."""
    tables = tables_of(rich_program(seed, layers=12))
    forced = 0
    for number in range(4):
        policy = replace(random_rules(100 * seed + number), recompute=False)
        expected = in_python(tables, policy, NO_LIMIT)
        found = by_kernel(Compiled(tables), policy, NO_LIMIT)
        assert isinstance(expected, State)
        assert isinstance(found, State)
        assert facts(found) == facts(expected)
        forced += expected.forced_times >= 2
    assert forced


def test_of_several_copies_that_a_task_waits_for_the_first_is_forced_first() -> None:
    """Each copy fills two places, and there is no room for both beside the task's operands."""
    builder = Builder(12, {"dma": 1, "core": 1})
    sides = [[builder.buffer(f"{name}{side}", 4) for name in "ab"] for side in range(2)]
    copies = []
    for side, targets in enumerate(sides):
        outside = builder.buffer(f"w{side}@dram", 4, "dram")
        builder.given.append(outside)
        copies.append(builder.task(f"load{side}", "dma", 4, [outside], targets))
    result = builder.buffer("x", 2)
    builder.task("first", "core", 3, [sides[0][0], sides[1][0]], [result])
    builder.store(result)
    last = builder.buffer("y", 2)
    builder.task("second", "core", 3, [sides[0][1], sides[1][1]], [last])
    builder.store(last)
    tables = tables_of(builder.program())
    expected = in_python(tables, Policy(), NO_LIMIT)
    found = by_kernel(Compiled(tables), Policy(), NO_LIMIT)
    assert isinstance(expected, State)
    assert isinstance(found, State)
    assert found.start[copies[0]] == 0
    assert found.start[copies[1]] > 0
    assert facts(found) == facts(expected)


def test_the_kernel_makes_runs_in_which_nothing_can_be_computed_again() -> None:
    ends: Counter[str] = Counter()
    for seed in range(30):
        for given in programs(seed):
            for program in (given, without_spilling(given)):
                tables = tables_of(program)
                policy = replace(random_rules(seed), recompute=True)
                expected = in_python(tables, policy, NO_LIMIT)
                found = by_kernel(Compiled(tables), policy, NO_LIMIT)
                if found is None:
                    ends["left to Python"] += 1
                elif isinstance(found, State):
                    assert isinstance(expected, State)
                    assert facts(found) == facts(expected)
                    ends["done"] += 1
                else:
                    assert found == expected
                    ends["stuck"] += 1
    assert min(ends["left to Python"], ends["done"], ends["stuck"]) > 10, ends


def test_a_run_of_the_kernel_gets_the_same_addresses_later() -> None:
    compared = 0
    for seed in range(30):
        tables = tables_of(rich_program(seed, layers=8))
        policy = replace(random_rules(seed), recompute=False, addresses_later=True)
        expected = in_python(tables, policy, NO_LIMIT)
        found = by_kernel(Compiled(tables), policy, NO_LIMIT)
        if isinstance(expected, State) and isinstance(found, State):
            assert find_addresses(found, 1000) == find_addresses(expected, 1000)
            assert found.copy_address == expected.copy_address
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("seed", range(12))
def test_schedules_are_the_same_without_the_kernel(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ScheduleOptions(search_simulations=20)
    for program in programs(seed):
        found = schedule(program, options)
        check_timetable(program, found)
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "kernel", None)
            assert schedule(program, options) == found


def test_the_kernel_leaves_what_it_has_no_room_for_to_python() -> None:
    program = random_program(1)
    tasks = tuple(replace(task, cycles=1 << 60) for task in program.tasks)
    assert compiled_of(tables_of(program)) is not None
    assert compiled_of(tables_of(replace(program, tasks=tasks))) is None
    for n_operands, is_carried in ((40, True), (300, False)):
        builder = Builder(n_operands + 1, {"dma": 1, "core": 1})
        operands = [builder.buffer(f"w{number}", 1) for number in range(n_operands)]
        for operand in operands:
            builder.load(operand)
        builder.task("op", "core", 1, operands, [builder.buffer("x", 1)])
        found = by_kernel(Compiled(tables_of(builder.program())), Policy(), NO_LIMIT)
        assert (found is not None) == is_carried

"""The compiled simulation against the one in Python: the same runs, to the cycle and the byte."""

from dataclasses import replace

import pytest
from tests.property.test_schedule_rules import random_rules
from tests.property.test_schedule_stops_early import released
from tests.schedule_emulator import check_timetable
from tests.schedule_programs import random_program
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
    except StuckError:
        return "stuck"
    except TooSlowError as slow:
        return f"too slow, short of room: {slow.is_short}"


def by_kernel(program: Compiled, policy: Policy, limit: Score) -> Ending:
    """The run, or None if the kernel leaves it to Python."""
    order = released(program.tables, policy)
    try:
        return program.run(order, policy, keys_of(order, policy), limit)
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


@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_and_python_make_the_same_runs(seed: int) -> None:
    carried = 0
    for program in programs(seed):
        tables = tables_of(program)
        given = Compiled(tables)
        for number in range(4):
            policy = replace(random_rules(100 * seed + number), recompute=False)
            expected = in_python(tables, policy, NO_LIMIT)
            found = by_kernel(given, policy, NO_LIMIT)
            if found is None:
                continue
            carried += 1
            assert isinstance(expected, State)
            assert isinstance(found, State)
            assert facts(found) == facts(expected)
            limit = (expected.now * (60 + 10 * number) // 100, 0)
            assert by_kernel(given, policy, limit) == in_python(tables, policy, limit)
    assert carried >= 6


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


def test_the_kernel_leaves_computing_again_and_numbers_beyond_its_own_to_python() -> None:
    program = random_program(1)
    tables = tables_of(program)
    policy = replace(random_rules(1), recompute=True)
    assert by_kernel(Compiled(tables), policy, NO_LIMIT) is None
    tasks = tuple(replace(task, cycles=1 << 60) for task in program.tasks)
    assert compiled_of(tables) is not None
    assert compiled_of(tables_of(replace(program, tasks=tasks))) is None

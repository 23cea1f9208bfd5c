"""Every timetable is a correct run of its program, no bound is above it, and it is nearly best."""

from dataclasses import replace

import pytest
from tests.schedule_emulator import check_timetable
from tests.schedule_optimum import shortest
from tests.schedule_programs import random_program
from tests.schedule_rich_programs import rich_program

from tilewright.errors import InfeasibleError
from tilewright.program.model import Program, Slot, Timetable
from tilewright.replay.check import problems
from tilewright.schedule.bounds import bounds
from tilewright.schedule.options import Policy, ScheduleOptions
from tilewright.schedule.order import order_of
from tilewright.schedule.result import timetable_of
from tilewright.schedule.schedule import schedule
from tilewright.schedule.search import keys_of
from tilewright.schedule.simulate import simulate
from tilewright.schedule.tables import tables_of

QUICK = ScheduleOptions(search_simulations=20)
NO_SEARCH = ScheduleOptions(small_tasks=0, portfolio_tasks=0)


@pytest.mark.parametrize("seed", range(120))
def test_a_program_with_everything_runs_as_if_in_order(seed: int) -> None:
    program = rich_program(seed)
    timetable = schedule(program, QUICK)
    check_timetable(program, timetable)
    assert bounds(program).cycles <= timetable.cycles


@pytest.mark.parametrize("seed", range(40))
def test_longer_programs_under_the_first_rules_run_as_if_in_order(seed: int) -> None:
    program = rich_program(seed, layers=25)
    check_timetable(program, schedule(program, NO_SEARCH))


@pytest.mark.parametrize("seed", range(60))
def test_the_independent_checker_finds_nothing_wrong(seed: int) -> None:
    # Without a network the checker cannot know that a slice or a part holds another's data.
    timetable = schedule(rich_program(seed, layers=12, views=False), QUICK)
    assert [problem.message for problem in problems(timetable)] == []


def with_slow_transfers(program: Program, factor: int) -> Program:
    return replace(
        program,
        routes=tuple(
            replace(route, bytes_per_cycle=route.bytes_per_cycle / factor)
            for route in program.routes
        ),
        tasks=tuple(
            task if task.kind == "compute" else replace(task, cycles=task.cycles * factor)
            for task in program.tasks
        ),
    )


def test_what_is_computed_again_reads_and_makes_the_same() -> None:
    repeated = 0
    for seed in range(80):
        program = with_slow_transfers(rich_program(seed, layers=12), 5)
        tables = tables_of(program)
        order = order_of(tables, range(len(tables.engine)))
        policy = Policy(recompute=True, margin=None)
        timetable = timetable_of(simulate(tables, order, policy, keys_of(order, policy)))
        check_timetable(program, timetable)
        added = timetable.program.tasks[len(program.tasks) :]
        repeated += sum(task.kind == "compute" for task in added)
    assert repeated > 2


def broken(timetable: Timetable, number: int) -> Timetable:
    """The timetable with one transfer of data evicted, or one task, earlier by a cycle."""
    slots = list(timetable.slots)
    old = slots[number]
    slots[number] = Slot(
        start_cycle=old.start_cycle - 1, end_cycle=old.end_cycle - 1, instance=old.instance
    )
    return replace(timetable, slots=tuple(slots))


def test_the_emulator_notices_tasks_that_start_too_early() -> None:
    noticed = tried = 0
    for seed in range(6):
        program = rich_program(seed)
        timetable = schedule(program, QUICK)
        for number, slot in enumerate(timetable.slots):
            if slot.start_cycle == 0:
                continue
            tried += 1
            try:
                check_timetable(program, broken(timetable, number))
            except AssertionError:
                noticed += 1
    # Some tasks do have a cycle to spare.
    assert noticed > 0.8 * tried > 50


def test_the_emulator_notices_addresses_that_overlap() -> None:
    program = rich_program(3)
    timetable = schedule(program, QUICK)
    touched = {a.buffer for task in timetable.program.tasks for a in (*task.reads, *task.writes)}
    noticed = 0
    for buffer in sorted(touched):
        addresses = list(timetable.addresses)
        if addresses[buffer] == 0:
            continue
        addresses[buffer] = 0
        try:
            check_timetable(program, replace(timetable, addresses=tuple(addresses)))
        except AssertionError:
            noticed += 1
    assert noticed > 3


def test_the_same_program_gets_the_same_timetable_and_names_do_not_matter() -> None:
    for seed in range(10):
        program = rich_program(seed)
        timetable = schedule(program, QUICK)
        assert schedule(program, QUICK) == timetable
        renamed = replace(
            program, tasks=tuple(replace(t, name=f"other {t.name}") for t in program.tasks)
        )
        assert schedule(renamed, QUICK).slots == timetable.slots


def gap(program: Program, options: ScheduleOptions) -> float:
    """How much longer than the shortest run a timetable is; 0 if it is as short."""
    timetable = schedule(program, options)
    check_timetable(program, timetable)
    return timetable.cycles / shortest(program, below=timetable.cycles) - 1


def test_small_programs_are_within_five_percent_of_the_optimum() -> None:
    gaps = [gap(random_program(seed), ScheduleOptions()) for seed in range(40)]
    assert sum(gaps) / len(gaps) < 0.05


@pytest.mark.slow
def test_500_small_programs_are_within_one_percent_of_the_optimum() -> None:
    gaps = [gap(random_program(seed), ScheduleOptions()) for seed in range(500)]
    assert sum(gaps) / len(gaps) < 0.01
    assert max(gaps) < 0.3


@pytest.mark.parametrize("first", [0, pytest.param(60, marks=pytest.mark.slow)])
def test_without_spilling_a_schedule_is_found_whenever_there_is_one(first: int) -> None:
    infeasible = 0
    for seed in range(first, first + 60 if first == 0 else 400):
        program = random_program(seed, spill=False)
        try:
            check_timetable(program, schedule(program, QUICK))
        except InfeasibleError:
            infeasible += 1
            assert shortest(program, below=1 << 30, may_save=False) == 1 << 30, seed
    assert infeasible <= 8


@pytest.mark.slow
def test_no_bound_is_above_the_optimum() -> None:
    for seed in range(60):
        program = random_program(seed)
        found = bounds(program)
        assert found.cycles <= shortest(program)
        assert found.order_cycles <= shortest(program, keep_order=True), seed


def test_no_schedule_exists_below_the_bound_of_the_memory() -> None:
    for seed in range(40):
        program = random_program(seed)
        needed = bounds(program).peak_bytes["cmx"]
        sizes = {space.name: space.size_bytes for space in program.spaces}
        assert needed <= sizes["cmx"]
        small = tuple(
            replace(space, size_bytes=needed - 1) if space.name == "cmx" else space
            for space in program.spaces
        )
        with pytest.raises(InfeasibleError, match="1 B more than it has"):
            schedule(replace(program, spaces=small))
        exact = tuple(
            replace(space, size_bytes=needed) if space.name == "cmx" else space
            for space in program.spaces
        )
        tight = replace(program, spaces=exact)
        check_timetable(tight, schedule(tight, QUICK))

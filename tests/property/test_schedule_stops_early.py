"""Runs that are given up, or never made, would not have been better."""

from dataclasses import replace

import pytest
from tests.property.test_schedule_rules import random_rules
from tests.schedule_emulator import check_timetable
from tests.schedule_programs import random_program
from tests.schedule_rich_programs import rich_program

from tilewright.program.model import Program
from tilewright.schedule.bounds import bounds
from tilewright.schedule.options import Policy, ScheduleOptions
from tilewright.schedule.order import Order, order_of
from tilewright.schedule.prefetch import compute_starts, release_steps
from tilewright.schedule.rules import of_times_only, rules_for
from tilewright.schedule.schedule import schedule, schedule_below
from tilewright.schedule.search import keys_of
from tilewright.schedule.simulate import simulate
from tilewright.schedule.state import NO_LIMIT, Score, State, TooSlowError
from tilewright.schedule.tables import Tables, tables_of

QUICK = ScheduleOptions(search_simulations=20)


def released(tables: Tables, policy: Policy) -> Order:
    """The program's own order, with copies let go as a policy says."""
    order = order_of(tables, range(len(tables.engine)))
    if policy.margin is None:
        return order
    starts = compute_starts(tables, order)
    return replace(order, release=release_steps(tables, order, starts, policy.margin))


def run(tables: Tables, policy: Policy, limit: Score = NO_LIMIT) -> State:
    """One simulation; raises TooSlowError if it does not stay below a limit."""
    order = released(tables, policy)
    return simulate(tables, order, policy, keys_of(order, policy), limit)


@pytest.mark.parametrize("seed", range(12))
def test_a_run_is_given_up_exactly_if_it_does_not_stay_below_its_limit(seed: int) -> None:
    for program in (rich_program(seed, layers=12), random_program(seed, max_tasks=24)):
        tables = tables_of(program)
        for number in range(8):
            policy = random_rules(100 * seed + number)
            whole = run(tables, policy)
            score = (whole.now, whole.added_cycles)
            limited = run(tables, policy, (score[0], score[1] + 1))
            assert limited.start == whole.start
            with pytest.raises(TooSlowError):
                run(tables, policy, score)


def roomy(program: Program) -> Program:
    """The program with scratchpads that hold all of it."""
    total = sum(buffer.size_bytes + 64 for buffer in program.buffers)
    return replace(
        program,
        spaces=tuple(
            replace(space, size_bytes=space.size_bytes + total)
            if space.kind == "scratchpad"
            else space
            for space in program.spaces
        ),
    )


def test_runs_in_which_nobody_waits_for_room_differ_by_no_rule_about_room() -> None:
    compared = unhindered = 0
    for seed in range(20):
        for program in (rich_program(seed, layers=8), roomy(rich_program(seed, layers=8))):
            tables = tables_of(program)
            known: dict[tuple[Policy, tuple[int, ...]], list[int]] = {}
            for rule in rules_for(len(tables.engine), ScheduleOptions()):
                if rule.policy is None:
                    continue
                state = run(tables, rule.policy)
                key = of_times_only(rule.policy), tuple(released(tables, rule.policy).release)
                if state.is_short:
                    # In other gaps there may be no room; a run without that is no worse.
                    continue
                compared += key in known
                unhindered += 1
                assert known.setdefault(key, state.start) == state.start
    assert unhindered > compared > 100


@pytest.mark.parametrize("seed", range(15))
def test_a_schedule_below_some_cycles_is_below_them(seed: int) -> None:
    program = rich_program(seed, layers=6)
    cycles = schedule(program, QUICK).cycles
    found = schedule_below(program, 4 * cycles, QUICK)
    assert found is not None
    check_timetable(program, found)
    for below in (found.cycles, cycles, (found.cycles + bounds(program).cycles) // 2):
        better = schedule_below(program, below, QUICK)
        assert better is None or better.cycles < below


def test_a_program_that_does_not_fit_has_no_schedule_below_any_cycles() -> None:
    program = random_program(0)
    spaces = tuple(
        replace(space, size_bytes=1) if space.name == "cmx" else space for space in program.spaces
    )
    assert schedule_below(replace(program, spaces=spaces), 1 << 40) is None

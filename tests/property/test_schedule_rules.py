"""Every single rule gets to the end of a program whose largest task fits, no sooner than bounds."""

import random
from dataclasses import replace

import pytest
from tests.property.test_schedule import with_slow_transfers
from tests.schedule_emulator import check_timetable
from tests.schedule_programs import Builder, random_program
from tests.schedule_rich_programs import rich_program

from tilewright.program.model import Program
from tilewright.schedule.bounds import bounds
from tilewright.schedule.infeasible import too_large
from tilewright.schedule.options import Policy, ScheduleOptions
from tilewright.schedule.order import order_of
from tilewright.schedule.prefetch import compute_starts, release_steps
from tilewright.schedule.result import timetable_of
from tilewright.schedule.rules import rules_for
from tilewright.schedule.search import keys_of
from tilewright.schedule.simulate import simulate
from tilewright.schedule.state import State
from tilewright.schedule.tables import Tables, tables_of


def run(tables: Tables, policy: Policy) -> State:
    """One simulation in the program's own order; raises StuckError if it does not end."""
    order = order_of(tables, range(len(tables.engine)))
    if policy.margin is not None:
        starts = compute_starts(tables, order)
        order = replace(order, release=release_steps(tables, order, starts, policy.margin))
    return simulate(tables, order, policy, keys_of(order, policy))


def random_rules(seed: int) -> Policy:
    rng = random.Random(seed)
    return Policy(
        key=rng.choice(("order", "slack", "need")),
        eviction=rng.choice(("cost", "distance")),
        prefetch=rng.random() < 0.8,
        margin=rng.choice((None, None, 0, 1)),
        guarded=rng.random() < 0.5,
        stores_first=rng.random() < 0.5,
        recompute=rng.random() < 0.5,
        by_life=rng.random() < 0.5,
        both_ends=rng.random() < 0.5,
        addresses_later=rng.random() < 0.3,
        window=rng.choice((1, 2, 32)),
        lookahead_steps=rng.choice((1, 2, 256)),
    )


def assert_every_rule_ends(program: Program, seed: int) -> None:
    tables = tables_of(program)
    assert too_large(tables) is None
    least_cycles = bounds(program).order_cycles
    rules = rules_for(len(tables.engine), ScheduleOptions())
    listed = dict.fromkeys(rule.policy for rule in rules if rule.policy is not None)
    for policy in (*listed, *(random_rules(100 * seed + number) for number in range(6))):
        state = run(tables, policy)
        assert state.unfinished == 0
        assert state.now >= least_cycles
        if not policy.addresses_later:
            check_timetable(program, timetable_of(state))


@pytest.mark.parametrize("seed", range(12))
def test_every_rule_ends_with_tight_scratchpads(seed: int) -> None:
    assert_every_rule_ends(rich_program(seed, layers=12), seed)
    assert_every_rule_ends(random_program(seed, max_tasks=24), seed)


def test_every_rule_ends_when_computing_again_is_cheap() -> None:
    for seed in (17, 20, 26):
        assert_every_rule_ends(with_slow_transfers(rich_program(seed, layers=12), 5), seed)


@pytest.mark.slow
def test_every_rule_ends_on_many_programs() -> None:
    for seed in range(12, 72):
        assert_every_rule_ends(rich_program(seed, layers=12), seed)
        assert_every_rule_ends(random_program(seed, max_tasks=24), seed)
    for seed in range(6):
        assert_every_rule_ends(rich_program(seed, layers=60), seed)
        assert_every_rule_ends(with_slow_transfers(rich_program(seed, layers=30), 5), seed)


def test_a_copy_needed_now_is_considered_behind_copies_that_do_not_fit() -> None:
    # w2 has the longest rest of the program behind it (100 + 1 cycles against 1 + 1 + 1) and is
    # the only one in the window, but beside w1 and x1 (8 + 2 B of 12 B) its 8 B do not fit.
    # So w1 comes in (1), first runs (1), w2 comes in (100), second runs (1).
    builder = Builder(12, {"dma": 1, "core": 1})
    w1, x1, w2, y = (
        builder.buffer(name, size) for name, size in (("w1", 8), ("x1", 2), ("w2", 8), ("y", 2))
    )
    builder.load(w1, 1)
    builder.task("first", "core", 1, [w1], [x1])
    builder.load(w2, 100)
    builder.task("second", "core", 1, [x1, w2], [y])
    builder.results.append(y)
    state = run(tables_of(builder.program()), Policy(key="slack", margin=None, window=1))
    assert state.now == 103


def aligned_and_tight(program: Program, alignment_bytes: int) -> Program:
    """The program on scratchpads in which its largest task just fits, the last block unpadded."""
    aligned = replace(
        program,
        spaces=tuple(
            replace(space, alignment_bytes=alignment_bytes) if space.name == "cmx" else space
            for space in program.spaces
        ),
    )
    peak_bytes = bounds(aligned).peak_bytes
    spaces = tuple(
        replace(space, size_bytes=peak_bytes.get(space.name, space.size_bytes))
        for space in aligned.spaces
    )
    return replace(aligned, spaces=spaces)


@pytest.mark.parametrize("alignment_bytes", [4, 16])
def test_every_rule_ends_when_the_last_block_has_no_room_for_its_padding(
    alignment_bytes: int,
) -> None:
    for seed in range(3):
        program = aligned_and_tight(random_program(seed, max_tasks=24), alignment_bytes)
        assert_every_rule_ends(program, seed)

"""What may leave a scratchpad, at what price, and what is computed again, looked at in mid-run."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.schedule_programs import Builder

from tilewright.program.model import Program
from tilewright.schedule.contents import Held
from tilewright.schedule.evict import (
    can_recompute,
    evict,
    is_repeatable,
    leaving_cost,
    moving_cycles,
    survivors,
)
from tilewright.schedule.options import EvictionRule, Policy
from tilewright.schedule.order import order_of
from tilewright.schedule.search import keys_of
from tilewright.schedule.state import ABSENT, EVICTED, LEAVING, RESERVED, State
from tilewright.schedule.tables import tables_of

S, A, B, C, D, E = range(6)
"""Buffers of `program`."""
LOAD_S, MAKE_A, OP_B, LOAD_C, OP_D, OP_E = range(6)
"""Tasks of it; the computations are steps 0 to 3."""


def program(*, make_cycles: int = 1, spill: bool = True, s_until_e: bool = True) -> Program:
    """s -> a -> b; (b, c) -> d; (s, a, d) -> e. s has 1 byte, the others have 10, a cycle each.

    Unless `s_until_e`, op d is the last one to read s.
    """
    builder = Builder(100, {"dma": 1, "core": 1}, spill=spill)
    for name in "sabcde":
        builder.buffer(name, 1 if name == "s" else 10)
    builder.load(S)
    builder.task("make a", "core", make_cycles, [S], [A])
    builder.task("op b", "core", 5, [A], [B])
    builder.load(C)
    builder.task("op d", "core", 5, [B, C] if s_until_e else [S, B, C], [D])
    builder.task("op e", "core", 5, [S, A, D] if s_until_e else [A, D], [E])
    builder.results.append(E)
    return builder.program()


def state_of(given: Program, policy: Policy, started: Mapping[int, int]) -> State:
    """A run in which these tasks have started at these cycles, and have ended."""
    tables = tables_of(given)
    order = order_of(tables, range(len(tables.engine)))
    state = State(tables, order, policy, keys_of(order, policy))
    for task, start in started.items():
        state.start[task] = start
        state.current += task in order.steps
        for root in tables.touched[task]:
            state.waiting[root] -= 1
            state.left[root] -= 1
            if state.where[root] == ABSENT:
                assert state.place(root, state.position[task])
                state.settle(root)
        for root, held in tables.made[task]:
            state.contents[root].append(held)
    return state


def after_op_b(given: Program | None = None, policy: Policy | None = None) -> State:
    """Op d is next; a, b and s are there, and c is not."""
    rules = policy or Policy(recompute=True)
    return state_of(given or program(), rules, {LOAD_S: 0, MAKE_A: 1, OP_B: 2})


def is_computed_again(state: State) -> bool:
    held = survivors(state, A)
    assert held is not None
    return can_recompute(state, A, held)


def test_a_result_is_computed_again_only_if_that_is_shorter_than_its_way_out_and_back() -> None:
    # 10 bytes take 10 cycles out and 10 back.
    assert is_computed_again(after_op_b(program(make_cycles=19)))
    assert not is_computed_again(after_op_b(program(make_cycles=20)))
    # Where there is no way out, any length will do.
    assert is_computed_again(after_op_b(program(make_cycles=20, spill=False)))


def test_a_result_is_computed_again_only_if_the_rules_allow_it() -> None:
    assert not is_computed_again(after_op_b(policy=Policy(recompute=False)))


def test_nothing_is_computed_again_when_the_memory_is_cleared_unless_it_cannot_go_out() -> None:
    for spill in (True, False):
        state = after_op_b(program(spill=spill))
        assert is_computed_again(state)
        state.forced = OP_D
        assert is_computed_again(state) != spill


def test_only_all_of_what_one_task_of_the_program_wrote_is_computed_again() -> None:
    state = after_op_b()
    (held,) = state.contents[A]
    assert can_recompute(state, A, [held])
    assert not can_recompute(state, A, [held, held])
    assert not can_recompute(state, A, [Held(A, ((0, 5),), MAKE_A, False)])
    # What came back, or was computed again, was written by a task that was added.
    assert not can_recompute(state, A, [Held(A, held.box, state.n_tasks)])


def test_a_task_is_repeated_only_for_its_one_result_and_if_all_that_it_read_is_as_it_was() -> None:
    builder = Builder(100, {"dma": 1, "core": 1})
    a, b, c = (builder.buffer(name, 10) for name in "abc")
    steady, changing = (builder.buffer(f"{name}@dram", 10, "dram") for name in ("x", "y"))
    load = builder.load(a)
    plain = builder.task("plain", "core", 1, [a], [b])
    double = builder.task("double", "core", 1, [a], [b, c])
    in_place = builder.task("in place", "core", 1, [a, b], [b])
    builder.task("store", "dma", 1, [c], [changing])
    streamed = [len(builder.tasks) + number for number in range(2)]
    for outside in (steady, changing):
        builder.task("streamed", "core", 1, [a, outside], [b])
        builder.tasks[-1] = replace(builder.tasks[-1], kind="compute")
    builder.task("store", "dma", 1, [b], [changing])
    tables = tables_of(builder.program())
    assert is_repeatable(tables, b, plain)
    assert not is_repeatable(tables, a, load)
    assert not is_repeatable(tables, b, double)
    assert not is_repeatable(tables, b, in_place)
    # What is streamed from outside must not be written later on.
    assert [is_repeatable(tables, b, task) for task in streamed] == [True, False]


def test_a_result_is_computed_again_only_from_inputs_that_are_there_and_stay_until_then() -> None:
    state = after_op_b()
    state.where[S] = EVICTED
    assert not is_computed_again(state)
    state = after_op_b()
    state.missing[S] = 1
    assert not is_computed_again(state)
    # Op e needs a at step 3; s is read for the last time by op d at step 2, or by op e itself.
    assert not is_computed_again(after_op_b(program(s_until_e=False)))
    # Who would read s later has begun already: nobody keeps it.
    state = after_op_b()
    state.waiting[S] = 0
    assert not is_computed_again(state)


def written_again(start: int, cycles: int) -> State:
    """After op b, with another task that writes s; a negative start: it is still to come."""
    given = program()
    late = replace(given.tasks[LOAD_S], name="load s anew", cycles=cycles, after=())
    last = len(given.tasks)
    state = state_of(
        replace(given, tasks=(*given.tasks, late)),
        Policy(recompute=True),
        {LOAD_S: 0, MAKE_A: 1, OP_B: 2},
    )
    state.start[last] = start
    return state


def test_a_result_is_not_computed_again_from_what_was_written_since() -> None:
    # a was made at cycle 1. Whatever had ended by then was read.
    assert is_computed_again(written_again(start=0, cycles=1))
    assert not is_computed_again(written_again(start=0, cycles=2))
    assert not is_computed_again(written_again(start=-1, cycles=0))


def test_what_is_computed_again_keeps_its_inputs_until_then() -> None:
    state = after_op_b()
    left, waiting = state.left[S], state.waiting[S]
    evict(state, A)
    (added,) = state.added
    assert (added.root, added.recomputed, added.out, added.origin) == (A, True, False, MAKE_A)
    assert state.where[A] == EVICTED
    assert state.missing[A] == 1
    task = state.n_tasks
    assert state.touched[task] == (A, S)
    # It is one more reader of s, before op e at step 3.
    assert (state.left[S], state.waiting[S]) == (left + 1, waiting + 1)
    assert state.position[task] == state.promised[S] == 3
    # Two results from the same input: it is needed for the first of them.
    state.promised[S] = 2
    state.where[A], state.missing[A], state.contents[A] = ABSENT, 0, [Held(A, ((0, 10),), MAKE_A)]
    assert state.place(A, 3)
    state.settle(A)
    evict(state, A)
    assert state.promised[S] == 2


def test_what_others_are_computed_from_is_missed_as_soon_as_they_are() -> None:
    state = after_op_b()
    assert state.next_position(S) == 3
    state.promised[S] = 2
    assert leaving_cost(state, S, 2) is None
    assert leaving_cost(state, S, 1) is not None


def test_a_result_being_read_is_not_left_to_be_computed_again() -> None:
    state = after_op_b()
    state.running[A] = 1
    evict(state, A)
    assert (state.added, state.where[A]) == ([], state.where[B])


def test_moving_costs_what_goes_out_and_what_comes_back() -> None:
    plain = Policy()
    # s is outside still and only comes back; a goes out and comes back, or is computed again.
    assert moving_cycles(after_op_b(policy=plain), S) == 1
    assert moving_cycles(after_op_b(policy=plain), A) == 10 + 10
    assert moving_cycles(after_op_b(program(make_cycles=7)), A) == 7
    # Without a way out it can only be computed again, or not leave at all.
    assert moving_cycles(after_op_b(program(make_cycles=7, spill=False)), A) == 7
    assert moving_cycles(after_op_b(program(spill=False), plain), A) is None
    assert moving_cycles(after_op_b(program(spill=False), plain), S) == 1


def test_whether_a_result_can_be_computed_again_is_not_remembered() -> None:
    state = after_op_b(program(make_cycles=7))
    assert moving_cycles(state, A) == 7
    state.where[S] = EVICTED
    assert moving_cycles(state, A) == 20


@pytest.mark.parametrize("eviction", ["cost", "distance"])
def test_what_is_missed_later_leaves_for_less(eviction: EvictionRule) -> None:
    state = after_op_b(policy=Policy(eviction=eviction))
    # a is needed at step 3, b at step 2.
    prices = [leaving_cost(state, A, step) for step in (0, 1, 2, 3)]
    assert prices[3] is None
    assert leaving_cost(state, B, 2) is None
    known = [price for price in prices if price is not None]
    assert 0 < known[0] < known[1] < known[2]
    # Both move in 20 cycles: a, two steps away, costs half of b, one step away, by either rule.
    one, two = leaving_cost(state, B, 1), leaving_cost(state, A, 1)
    assert one is not None
    assert two is not None
    assert one / two == pytest.approx(2, rel=1e-5)


@pytest.mark.parametrize(("eviction", "ratio"), [("cost", 20), ("distance", 1)])
def test_by_distance_cycles_decide_only_between_equal_distances(
    eviction: EvictionRule, ratio: int
) -> None:
    state = after_op_b(policy=Policy(eviction=eviction))
    # Both are needed at step 3; a moves in 20 cycles, s in one.
    a, s = leaving_cost(state, A, 2), leaving_cost(state, S, 2)
    assert a is not None
    assert s is not None
    assert a > s
    assert a / s == pytest.approx(ratio, rel=1e-5)


def test_of_equal_prices_that_of_one_is_less_than_that_of_several() -> None:
    state = state_of(program(), Policy(), {LOAD_S: 0, MAKE_A: 1, OP_B: 2, LOAD_C: 7})
    # At step 1, b, of 20 cycles, is one step away; c, of 10, is too; a, of 20, is two away.
    one, other, third = (leaving_cost(state, root, 1) for root in (B, A, C))
    assert one is not None
    assert other is not None
    assert third is not None
    assert one < other + third
    assert one == pytest.approx(other + third)


def test_what_will_leave_anyway_costs_nothing_and_what_is_being_written_stays() -> None:
    state = after_op_b()
    state.where[A] = LEAVING
    assert leaving_cost(state, A, 2) == 0
    state = after_op_b()
    state.waiting[A] = 0
    assert leaving_cost(state, A, 2) == 0
    state = after_op_b()
    state.writing[A] = 1
    assert leaving_cost(state, A, 2) is None
    # A place that is only kept is given up for nothing, but not by the task that waits for it.
    state = after_op_b()
    state.where[A] = RESERVED
    assert leaving_cost(state, A, 2) == 0
    assert leaving_cost(state, A, 3) is None

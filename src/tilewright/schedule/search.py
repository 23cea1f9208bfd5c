"""Which rules to simulate a program under: a fixed list for all, and a local search for small ones.

Every budget is a number of simulations, so the same program always gets the same answer.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tilewright.schedule.claims import StuckError
from tilewright.schedule.compiled import compiled_of
from tilewright.schedule.feasible_order import feasible_order
from tilewright.schedule.options import Policy, ScheduleOptions
from tilewright.schedule.order import Order, order_of
from tilewright.schedule.prefetch import compute_starts, release_steps
from tilewright.schedule.repack import find_addresses
from tilewright.schedule.rules import of_times_only, rules_for
from tilewright.schedule.simulate import simulate
from tilewright.schedule.state import NO_LIMIT, Score, State, TooSlowError
from tilewright.schedule.tables import Tables

_PATIENCE = 40
"""After so many simulations the search goes back to the best run so far."""

_MOST_RULES = 32
"""How many simulations under different rules are made at most."""


Ending = Literal["done", "too slow", "no addresses", "stuck"]


@dataclass(frozen=True, slots=True)
class Run:
    """One finished simulation and the rules that led to it."""

    state: State
    sequence: Sequence[int]
    policy: Policy
    score: Score


def best_run(
    tables: Tables, options: ScheduleOptions, lower_bound: int, limit: Score = NO_LIMIT
) -> Run:
    """The best run of all that are tried and stay below a limit.

    Raises StuckError if none gets to the end, TooSlowError if one might but not below the limit.
    """
    search = Search(tables, options, lower_bound, limit)
    search.portfolio()
    if search.best is None and not search.is_slow:
        search.other_orders()
    if len(tables.engine) <= options.small_tasks and search.best is not None:
        search.improve(options.search_simulations)
    if search.best is not None:
        return search.best
    if search.is_slow:
        raise TooSlowError(search.was_short)
    assert search.stuck is not None
    raise StuckError(*search.stuck)


class Search:
    """Keeps the best run."""

    def __init__(
        self, tables: Tables, options: ScheduleOptions, lower_bound: int, limit: Score = NO_LIMIT
    ) -> None:
        self.tables = tables
        self.compiled = compiled_of(tables)
        self.options = options
        self.lower_bound = lower_bound
        self.limit = limit
        """The score of the best run so far, or what it has to be below."""
        self.best: Run | None = None
        self.stuck: tuple[int, list[list[int]]] | None = None
        """The task that could never start in the first run that got stuck, and what lay there."""
        self.is_slow = False
        """Whether a run might have got to the end, but not below the limit."""
        self.sequence: Sequence[int] = range(len(tables.engine))
        self.ending: Ending = "stuck"
        """How the last run ended, and whether somebody waited for room in it."""
        self.was_short = True
        self.released: dict[tuple[int, Score | None], Order] = {}
        """By margin, and the score of the run whose times were planned with, the order for it."""
        self.tried: set[tuple[Policy, tuple[int, ...]]] = set()
        self.unhindered: set[tuple[Policy, tuple[int, ...]]] = set()
        """Runs, as far as their times go, in which nobody ever waited for room."""
        self.unpacked: set[Policy] = set()
        """Rules under which a run was good, but not all of its data got addresses."""

    def portfolio(self) -> None:
        """Simulate under the rules of the list that may make a difference, until many did not."""
        order = order_of(self.tables, self.sequence)
        planned = compute_starts(self.tables, order)
        self.released.clear()
        n_tasks = max(1, len(planned))
        budget = max(2, min(_MOST_RULES, self.options.portfolio_tasks // n_tasks))
        retries = max(2, min(_MOST_RULES, self.options.retry_tasks // n_tasks))
        in_vain = 0
        for rule in rules_for(n_tasks, self.options):
            before = self.best
            is_enough = in_vain >= self.options.rules_in_vain or self._is_close_enough()
            if is_enough and (before is not None or self.is_slow):
                return
            policy = rule.policy or (before.policy if before else None)
            if policy is None or (before is None and rule.is_replanned):
                continue
            run = before if rule.is_replanned else None
            released = self._released(order, policy.margin, planned, run)
            if self._is_known(released, policy):
                continue
            self.run(self.sequence, released, policy, None)
            if not self.was_short:
                self.unhindered.add((of_times_only(policy), _letting_go(released, policy)))
            if self.ending == "stuck":
                retries -= 1
            else:
                budget -= 1
            if self.best is not before:
                in_vain = 0
            elif self.ending != "no addresses":
                in_vain += 1
            if budget <= 0 or retries <= 0:
                return

    def _released(
        self, order: Order, margin: int | None, planned: Sequence[int], run: Run | None
    ) -> Order:
        """The order with copies let go with a margin, if tasks start as planned, or as in a run."""
        if margin is None:
            return order
        # Every best run has a better score than those before it.
        key = margin, None if run is None else run.score
        if key not in self.released:
            starts = planned if run is None else run.state.start[: len(planned)]
            release = release_steps(self.tables, order, starts, margin)
            self.released[key] = replace(order, release=release)
        return self.released[key]

    def _is_known(self, order: Order, policy: Policy) -> bool:
        """Whether a run like this was made already, or is not wanted; from now on it is known."""
        if policy.room_percent < 100 and replace(policy, room_percent=100) not in self.unpacked:
            return True
        released = _letting_go(order, policy)
        found = (replace(policy, margin=None), released)
        if found in self.tried or (of_times_only(policy), released) in self.unhindered:
            return True
        self.tried.add(found)
        return False

    def run(
        self, sequence: Sequence[int], order: Order, policy: Policy, most_cycles: int | None
    ) -> Run | None:
        """Simulate once; None if it gets stuck or takes more cycles, or is not the best so far."""
        limit = self.limit
        if policy.addresses_later:
            limit = (limit[0], 0)
        elif most_cycles is not None:
            limit = (most_cycles + 1, 0)
        whole = replace(policy, room_percent=100)
        self.unpacked.discard(whole)
        self.was_short = True
        try:
            state = self._simulated(order, policy, limit)
        except StuckError as stuck:
            self.ending = "stuck"
            self.stuck = self.stuck or (stuck.task, stuck.lying)
            return None
        except TooSlowError as slow:
            self.ending = "too slow"
            self.is_slow = True
            self.was_short = slow.is_short
            return None
        self.was_short = state.is_short
        if policy.addresses_later and not find_addresses(state, self.options.packing_nodes):
            self.ending = "no addresses"
            self.unpacked.add(whole)
            return None
        self.ending = "done"
        run = Run(state, sequence, policy, (state.now, state.added_cycles))
        if run.score < self.limit:
            self.best, self.limit = run, run.score
        return run

    def _simulated(self, order: Order, policy: Policy, limit: Score) -> State:
        """One simulation, by the compiled kernel if it is there and carries the run."""
        keys = keys_of(order, policy)
        if self.compiled is not None:
            state = self.compiled.run(order, policy, keys, limit)
            if state is not None:
                return state
        return simulate(self.tables, order, policy, keys, limit)

    def other_orders(self) -> None:
        """Nothing fits in the program's own order: look for one that does."""
        found = feasible_order(self.tables, self.options.order_sets)
        if found is None:
            return
        self.sequence = found
        self.tried.clear()
        self.unhindered.clear()
        self.portfolio()
        for later in (True, False):
            policy = Policy(key="order", margin=None, prefetch=False, addresses_later=later)
            self.run(found, order_of(self.tables, found), policy, None)

    def improve(self, budget: int) -> None:
        """Local search over the order of all tasks, transfers included, and over the rules."""
        rng = random.Random(self.options.seed)
        assert self.best is not None
        current = self.best
        for number in range(budget):
            if self._is_close_enough():
                return
            if number % _PATIENCE == 0:
                current = self.best
            sequence = current.sequence
            if rng.random() < 0.75:
                sequence = self._moved(rng, list(sequence))
            policy = _changed(rng, current.policy)
            # A little worse is allowed now and then, to get away from where nothing is better.
            most_cycles = current.score[0] + rng.choice((0, 0, 1))
            if policy == current.policy and sequence == current.sequence:
                continue
            run = self.run(sequence, order_of(self.tables, sequence), policy, most_cycles)
            current = run or current

    def _moved(self, rng: random.Random, sequence: list[int]) -> list[int]:
        """A sequence in which one task stands elsewhere, behind all it waits for."""
        task = rng.choice(sequence)
        rest = [other for other in sequence if other != task]
        before = set(self.tables.after[task])
        behind = set(self.tables.followers[task])
        low = max((i + 1 for i, other in enumerate(rest) if other in before), default=0)
        high = min((i for i, other in enumerate(rest) if other in behind), default=len(rest))
        place = rng.randint(low, high)
        return [*rest[:place], task, *rest[place:]]

    def _is_close_enough(self) -> bool:
        """Whether nothing can be gained, or for large programs too little to go on."""
        if self.best is None:
            return False
        if len(self.tables.engine) <= self.options.small_tasks:
            return self.best.score <= (self.lower_bound, 0)
        return self.best.score[0] * 1000 <= self.lower_bound * (1000 + self.options.gap_permille)


def _letting_go(order: Order, policy: Policy) -> tuple[int, ...]:
    """By task from which step on a copy may start; nothing if copies start when needed only."""
    return tuple(order.release) if policy.prefetch else ()


def keys_of(order: Order, policy: Policy) -> list[int]:
    """By task: its place among waiting transfers, the smallest first."""
    if policy.key == "slack":
        return [-cycles for cycles in order.tail_cycles]
    if policy.key == "need":
        return list(order.position)
    keys = [0] * len(order.sequence)
    for number, task in enumerate(order.sequence):
        keys[task] = number
    return keys


def _changed(rng: random.Random, policy: Policy) -> Policy:
    """Other rules, a few of them at a time."""
    draw = rng.random()
    if draw < 0.6:
        return replace(policy, key="order", margin=None)
    return Policy(
        key=rng.choice(("order", "order", "slack", "need")),
        eviction=rng.choice(("cost", "distance")),
        prefetch=policy.prefetch,
        guarded=rng.random() < 0.6,
        stores_first=rng.random() < 0.5,
        recompute=rng.random() < 0.3,
        by_life=rng.random() < 0.5,
        both_ends=rng.random() < 0.5,
        addresses_later=rng.random() < 0.7,
        margin=None,
        window=rng.choice((1, 2, 32)),
        lookahead_steps=rng.choice((1, 2, 256)),
    )

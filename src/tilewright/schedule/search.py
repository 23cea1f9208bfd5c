"""Which rules to simulate a program under: a fixed list for all, and a local search for small ones.

Every budget is a number of simulations, so the same program always gets the same answer.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.schedule.claims import StuckError
from tilewright.schedule.feasible_order import feasible_order
from tilewright.schedule.options import KeyRule, Policy, ScheduleOptions
from tilewright.schedule.order import Order, order_of
from tilewright.schedule.prefetch import compute_starts, release_steps
from tilewright.schedule.repack import find_addresses
from tilewright.schedule.simulate import simulate
from tilewright.schedule.state import State
from tilewright.schedule.tables import Tables

Score = tuple[int, int]
"""Cycles, then cycles of added transfers."""


_PATIENCE = 40
"""After so many simulations the search goes back to the best run so far."""

_KEYS: tuple[KeyRule, ...] = ("need", "slack")


_MOST_RULES = 32
"""How many simulations under different rules are made at most."""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished simulation and the rules that led to it."""

    state: State
    sequence: Sequence[int]
    policy: Policy
    score: Score


def best_run(tables: Tables, options: ScheduleOptions, lower_bound: int) -> Run:
    """The best run of all that are tried; raises StuckError if none gets to the end."""
    search = Search(tables, options, lower_bound)
    n_tasks = len(tables.engine)
    search.portfolio(max(2, min(_MOST_RULES, options.portfolio_tasks // max(1, n_tasks))))
    if search.best is None:
        search.portfolio(max(2, min(_MOST_RULES, options.retry_tasks // max(1, n_tasks))))
    if search.best is not None:
        search.pack_afterwards()
    else:
        search.other_orders()
    if n_tasks <= options.small_tasks and search.best is not None:
        search.improve(options.search_simulations)
    if search.best is None:
        assert search.stuck is not None
        raise search.stuck
    return search.best


class Search:
    """Keeps the best run."""

    def __init__(self, tables: Tables, options: ScheduleOptions, lower_bound: int) -> None:
        self.tables = tables
        self.options = options
        self.lower_bound = lower_bound
        self.best: Run | None = None
        self.stuck: StuckError | None = None
        self.sequence: Sequence[int] = range(len(tables.engine))

    def portfolio(self, budget: int) -> None:
        """Simulate under every policy of the list, each with prefetches planned from the last."""
        order = order_of(self.tables, self.sequence)
        for policy in rules_for(len(self.tables.engine), self.options):
            starts: Sequence[int] = compute_starts(self.tables, order)
            for _ in range(1 if policy.margin is None or not policy.prefetch else 2):
                if budget == 0 or self._is_close_enough():
                    return
                budget -= 1
                run = self.run(self.sequence, order, policy, starts)
                if run is None:
                    break
                starts = run.state.start[: len(starts)]

    def run(
        self, sequence: Sequence[int], order: Order, policy: Policy, starts: Sequence[int] | None
    ) -> Run | None:
        """Simulate once; None if a task never gets its memory."""
        if policy.margin is not None and starts is not None:
            release = release_steps(self.tables, order, starts, policy.margin)
            order = replace(order, release=release)
        try:
            state = simulate(self.tables, order, policy, keys_of(order, policy))
        except StuckError as stuck:
            self.stuck = self.stuck or stuck
            return None
        if policy.addresses_later:
            if self.best is not None and state.now >= self.best.score[0]:
                return None
            if not find_addresses(state, self.options.packing_nodes):
                return None
        added = sum(state.cycles[len(self.tables.engine) :])
        run = Run(state, sequence, policy, (state.now, added))
        if self.best is None or run.score < self.best.score:
            self.best = run
        return run

    def pack_afterwards(self) -> None:
        """Count only bytes during the run, and find addresses when all lives are known.

        The fuller the memory, the less likely there are any: less and less is fetched ahead.
        """
        if len(self.tables.engine) > self.options.packing_tasks:
            return
        order = order_of(self.tables, self.sequence)
        base = _base(self.options)
        for key in _KEYS:
            for percent in (100, 97, 94, 90, 85):
                if self.best is None or self._is_close_enough():
                    return
                before = self.best
                policy = replace(base, key=key, addresses_later=True, room_percent=percent)
                starts = before.state.start[: len(self.tables.engine)]
                self.run(self.sequence, order, policy, starts)
                if self.best is not before:
                    break

    def other_orders(self) -> None:
        """Nothing fits in the program's own order: look for one that does."""
        order = feasible_order(self.tables, self.options.order_sets)
        if order is None:
            return
        self.sequence = order
        self.portfolio(_MOST_RULES)
        for later in (True, False):
            policy = Policy(key="order", margin=None, prefetch=False, addresses_later=later)
            self.run(order, order_of(self.tables, order), policy, None)

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
            run = self.run(sequence, order_of(self.tables, sequence), policy, None)
            # A little worse is allowed now and then, to get away from where nothing is better.
            if run is not None and run.score[0] <= current.score[0] + rng.choice((0, 0, 1)):
                current = run

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


def _base(options: ScheduleOptions) -> Policy:
    return Policy(
        prefetch=options.prefetch,
        lookahead_steps=options.lookahead_steps,
        window=options.window,
    )


def rules_for(n_tasks: int, options: ScheduleOptions) -> Iterator[Policy]:
    """The rules under which a program of so many tasks may be simulated, in order."""
    base = _base(options)
    is_small = n_tasks <= options.many_rules_tasks
    # The first ones are the best for real networks, each on another kind of machine. A small
    # program is simulated under all of them; the best gap leaves the least memory in use.
    for by_life in (False, True) if is_small else (True, False):
        for margin in (1, None, 2):
            for key in _KEYS:
                yield replace(base, key=key, margin=margin, by_life=by_life)
    for key in _KEYS:
        yield replace(base, key=key, recompute=True)
    if not is_small:
        return
    for key in _KEYS:
        yield replace(base, key=key, margin=0)
        yield replace(base, key=key, margin=4)
        yield replace(base, key=key, eviction="distance")
        yield replace(base, key=key, by_life=False, both_ends=False)
        yield replace(base, key=key, prefetch=False)


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

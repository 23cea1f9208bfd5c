"""The best of all mappings: every order of all prime factors, every way of cutting it into levels.

The search goes over chains of cuts instead of orders: costs depend on the tiles at which levels end
and hardly on the order of loops between them. Chains are bounded, so that most never come up, and
what is found is proven to be the best, or said to be within a bound of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapping.attach import attach
from tilewright.mapping.batch import Ints
from tilewright.mapping.bounds import Ground
from tilewright.mapping.chains import Catch, Hunt, Quarry, hunt
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.evaluate import (
    Batch,
    Loops,
    Setup,
    cost_of,
    evaluate_loops,
    loops_of,
)
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.judge import Goal, judge_of
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.orders import count_orders, loop_factors
from tilewright.mapping.polish import polish
from tilewright.mapping.realise import evaluate_layouts, layouts_of
from tilewright.mapping.relaxation import relaxation_of
from tilewright.mapping.search import (
    Mapped,
    Objective,
    SearchOptions,
    best_column,
    loma,
    loma_unrolled,
    rank,
)
from tilewright.mapping.spatial import UnrollOptions, unrollings

_CLOSE = 1 + 1e-9
"""What differs by less is equal: sums of floats depend on their order."""

_BEAM = 48
_STEPS = (0.02, 0.2, 1.0)
"""Parts of the gap between bound and best mapping that are searched one after the other."""

_CELLS = 6_000_000
"""Stages times tiles beyond which a search over chains would take too much memory."""

_LIMITS = (6, 8)
"""Loop factors of the LOMA searches that this one is never worse than."""


def complete(
    nest: LoopNest, hierarchy: Hierarchy, constraint: Constraint | None, options: SearchOptions
) -> Mapped | None:
    """The best mapping with levels cut anywhere; None if nothing fits.

    The result is never worse than LOMA's with 6 or 8 loop factors. Its `bound` holds for all
    mappings of the unrollings tried; `proven` says that the objective's first value reaches it.
    `options.budget` limits the candidates, except for LOMA's. A given order, or `even` levels, are
    searched order by order with LOMA's levels, and proven if these were all.
    """
    if options.even or (constraint is not None and constraint.order):
        return _order_by_order(nest, hierarchy, constraint, options)
    choices = UnrollOptions(mixed=options.mixed_unrolling, limit=options.unrollings)
    setups = [
        Setup(nest, hierarchy, attach(nest, hierarchy, u, round_off=options.round_off))
        for u in unrollings(nest, hierarchy, constraint, choices)
    ]
    search = _Search(setups, options)
    search.try_loma(nest, hierarchy, constraint, _LIMITS[0])
    search.first_value()
    settled = search.second_value()
    if not (search.proven and settled):
        search.try_loma(nest, hierarchy, constraint, _LIMITS[1])
    return search.result()


@dataclass(frozen=True, slots=True)
class _Best:
    """The best mapping so far: its rank, and how to make it."""

    rank: tuple[float, float]
    setup: Setup
    loops: Loops


class _Search:
    """The state of one search: the best mapping, what was spent, and a bound per unrolling."""

    def __init__(self, setups: Sequence[Setup], options: SearchOptions) -> None:
        self.setups, self.options = setups, options
        self.objective: Objective = options.objective
        self.bounds = np.zeros(len(setups))
        self.best: _Best | None = None
        self.spent = 0
        self.costed = 0

    @property
    def value(self) -> float:
        return np.inf if self.best is None else self.best.rank[0]

    @property
    def proven(self) -> bool:
        return bool(self.value <= self.bounds.min() * _CLOSE)

    @property
    def left(self) -> int:
        return max(0, self.options.budget - self.spent)

    def try_loma(
        self,
        nest: LoopNest,
        hierarchy: Hierarchy,
        constraint: Constraint | None,
        limit: int,
    ) -> None:
        """Take LOMA's best mapping if it is better."""
        found = loma(nest, hierarchy, constraint, replace(self.options, lpf_limit=limit))
        if found is not None:
            self.costed += found.candidates
            value = rank(self.objective, found.cost.cycles, found.cost.energy_pj)
            self._take(_Best(value, found.setup, found.loops))

    def _take(self, found: _Best) -> None:
        if self.best is None or found.rank < self.best.rank:
            self.best = found

    def _take_column(self, batch: Batch) -> None:
        column = best_column(batch, self.objective)
        if column is not None:
            self._take(_Best(self._rank(batch, column), batch.setup, loops_of(batch, column)))

    def _rank(self, batch: Batch, column: int) -> tuple[float, float]:
        cycles, energy = float(batch.cycles[column]), float(batch.energy_pj[column])
        return rank(self.objective, cycles, energy)

    def first_value(self) -> None:
        """Search every unrolling for the objective's first value, the most promising first."""
        goal = self._goal()
        quarries = []
        for number, setup in enumerate(self.setups):
            quarry = _quarry(setup, goal)
            self.bounds[number] = np.inf if quarry is None else 0.0
            if quarry is not None:
                quarries.append((number, quarry))
        judged = []
        for number, quarry in quarries:
            judge = judge_of(quarry.ground, self._goal(), self.value * _CLOSE)
            if judge is None:
                self.bounds[number] = self.value
                continue
            self.bounds[number] = judge.bound
            self._realise(quarry, judge.trails)
            judged.append((judge.bound, number, quarry))
        raise NotImplementedError

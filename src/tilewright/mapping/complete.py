"""The best of all mappings: every order of all prime factors, every way of cutting it into levels.

The search goes over chains of cuts instead of orders: costs depend on the tiles at which levels end
and hardly on the order of loops between them. Chains are bounded, so that most never come up, and
what is found is proven to be the best, or said to be within a bound of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np

from tilewright.mapping.attach import attach
from tilewright.mapping.batch import Ints
from tilewright.mapping.bounds import Ground
from tilewright.mapping.chains import Hunt, Quarry, hunt
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.evaluate import Loops, Setup, cost_of, evaluate_loops, loops_of
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.judge import Goal, Judge, judge_of, tuned_for_time
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.orders import Loop, count_orders, loop_factors
from tilewright.mapping.polish import polish
from tilewright.mapping.realise import evaluate_layouts, layouts_of
from tilewright.mapping.relaxation import relaxation_of
from tilewright.mapping.search import Mapped, SearchOptions, best_column, loma, rank
from tilewright.mapping.spatial import UnrollOptions, unrollings
from tilewright.mapping.tiles import lattice_of

_CLOSE = 1 + 1e-9
"""What differs by less is equal: sums of floats depend on their order."""

_BEAM = 48
_STEPS = ((1.0, 0.6), (0.1, 0.5), (0.4, 0.7), (1.0, 1.0))
"""Parts of the gap between bound and best mapping that are searched one after the other, each with
a part of the budget: all of it, and if that is too much, little by little."""

_ENDLESS = 1 << 62

_CELLS = 6_000_000
"""Stages times tiles beyond which tables of chains would take too much memory."""

_LIMITS = (6, 8)
"""Loop factors of the LOMA searches that this one is never worse than."""


@dataclass(frozen=True, slots=True)
class _Best:
    """The best mapping so far, and its rank."""

    rank: tuple[float, float]
    setup: Setup
    loops: Loops


@dataclass(frozen=True, slots=True)
class _State:
    """The best mapping so far, and the candidates that it took."""

    best: _Best | None
    spent: int

    @property
    def value(self) -> float:
        """The first value of the best mapping."""
        return np.inf if self.best is None else self.best.rank[0]

    def with_mapping(self, found: _Best | None, spent: int) -> "_State":
        """The state after another mapping was found."""
        better = found is not None and (self.best is None or found.rank < self.best.rank)
        return _State(found if better else self.best, self.spent + spent)


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
    fields = [_Field(setup) for setup in _setups(nest, hierarchy, constraint, options)]
    first = loma(nest, hierarchy, constraint, replace(options, lpf_limit=_LIMITS[0]))
    state = _with_loma(_State(None, 0), first, options)
    if state.best is not None:
        favourite = state.best.setup.spatial.unrolling
        fields.sort(key=lambda field: field.setup.spatial.unrolling != favourite)
    bounds = []
    for number, field in enumerate(fields):
        share = _share(options, state, len(fields) - number + 1)
        state, bound = _explored(field, _goal(state, options), state, share)
        bounds.append(bound)
    state, settled = _second_value(fields, bounds, state, options)
    if not settled or state.value > min(bounds) * _CLOSE:
        second = loma(nest, hierarchy, constraint, replace(options, lpf_limit=_LIMITS[1]))
        state = _with_loma(state, second, options)
    if state.best is not None and state.value > min(bounds) * _CLOSE:
        state = _polished(state.best, state, options)
    return None if state.best is None else _mapped(state.best, min(bounds), state, options)


def _setups(
    nest: LoopNest, hierarchy: Hierarchy, constraint: Constraint | None, options: SearchOptions
) -> list[Setup]:
    choices = UnrollOptions(
        mixed=options.mixed_unrolling, limit=options.unrollings, aliased=options.round_off
    )
    return [
        Setup(nest, hierarchy, attach(nest, hierarchy, unrolling, round_off=options.round_off))
        for unrolling in unrollings(nest, hierarchy, constraint, choices)
    ]


def _mapped(best: _Best, bound: float, state: _State, options: SearchOptions) -> Mapped:
    cost = cost_of(evaluate_loops(best.setup, best.loops))
    value, _ = rank(options.objective, cost.cycles, cost.energy_pj)
    return Mapped(
        setup=best.setup,
        loops=best.loops,
        cost=cost,
        candidates=state.spent,
        bound=min(bound, value),
        proven=value <= bound * _CLOSE,
    )


def _with_loma(state: _State, found: Mapped | None, options: SearchOptions) -> _State:
    if found is None:
        return state
    value = rank(options.objective, found.cost.cycles, found.cost.energy_pj)
    return state.with_mapping(_Best(value, found.setup, found.loops), found.candidates)


def _share(options: SearchOptions, state: _State, parts: int) -> SearchOptions:
    """Options with a budget that leaves as much to each of the parts still to come."""
    left = max(0, options.budget - state.spent)
    return replace(options, budget=state.spent + left // parts)


def _goal(state: _State, options: SearchOptions) -> Goal:
    match options.objective:
        case "latency":
            return Goal("time")
        case "energy":
            return Goal("energy")
        case "edp":
            return Goal("product", slope=_slope(state.best))


def _slope(best: _Best | None) -> float:
    """Energy per cycle of the best mapping: where a product is least, the two weigh the same."""
    if best is None:
        return 1.0
    cost = cost_of(evaluate_loops(best.setup, best.loops))
    return cost.energy_pj / cost.cycles


@dataclass(frozen=True)
class _Field:
    """One unrolling with what is worked out about its chains."""

    setup: Setup

    @cached_property
    def plain(self) -> Quarry | None:
        """Its chains, only energy being counted; None if nothing fits."""
        relaxation = relaxation_of(self.setup, timed=False)
        return None if relaxation is None else Quarry(Ground(relaxation))

    @cached_property
    def timed(self) -> Quarry | None:
        """Its chains, time and energy being counted; None if nothing fits."""
        relaxation = relaxation_of(self.setup, timed=True)
        return None if relaxation is None else Quarry(Ground(relaxation))


def _explored(
    field: _Field, goal: Goal, state: _State, options: SearchOptions, *, thorough: bool = True
) -> tuple[_State, float]:
    """Search the chains of one unrolling; the bound holds for all its mappings.

    Unless `thorough`, the search is quick and may miss the best.
    """
    below = _target(goal, state)
    if _cells(field.setup) > _CELLS:
        return state, _least_work(field.setup, goal)
    quarry = field.timed if goal.counts_time else field.plain
    if quarry is None:
        return state, np.inf
    tuning = None
    if goal.tunes_time:
        enough = below if goal.kind == "time" else goal.limit
        tuning = tuned_for_time(quarry.ground, enough)
    judge = judge_of(quarry.ground, goal, tuning, below)
    if judge is None:
        return state, below
    state = _realised(quarry, judge.trails, state, options)
    state = _beam(quarry, judge, state, options)
    if not thorough:
        return state, judge.bound
    return _closed(quarry, judge, state, options)


def _target(goal: Goal, state: _State) -> float:
    """The value below which a search for the goal would find something better."""
    if state.best is None:
        return np.inf
    return state.best.rank[1 if goal.limit < np.inf else 0]


def _cells(setup: Setup) -> int:
    lattice = lattice_of(setup.spatial.temporal, setup.nest.dims[0][0])
    return lattice.size * prod(len(chain) + 1 for chain in setup.hierarchy.chains.values())


def _least_work(setup: Setup, goal: Goal) -> float:
    """A bound that needs no tables: the array's own cycles and energy."""
    cycles = prod(size for _, size in setup.spatial.temporal) * setup.op_cycles
    time = np.array([cycles + setup.spatial.drain_cycles])
    return float(goal.value(time, np.array([setup.mac_pj]))[0])


def _realised(
    quarry: Quarry, trails: Sequence[Ints], state: _State, options: SearchOptions
) -> _State:
    """The state after making mappings from chains."""
    if not trails:
        return state
    layouts = layouts_of(quarry.relaxation, trails)
    batch = evaluate_layouts(quarry.relaxation.setup, layouts)
    column = best_column(batch, options.objective)
    found = None
    if column is not None:
        value = rank(options.objective, float(batch.cycles[column]), float(batch.energy_pj[column]))
        found = _Best(value, batch.setup, loops_of(batch, column))
    return state.with_mapping(found, layouts.orders.count)


def _beam(quarry: Quarry, judge: Judge, state: _State, options: SearchOptions) -> _State:
    """A quick search that may miss the best; it does not end before there is a mapping at all."""
    left = max(0, options.budget - state.spent) if state.best is not None else _ENDLESS
    asked = Hunt(below=_target(judge.goal, state), budget=left, width=_BEAM)
    catch = hunt(quarry, judge, asked)
    state = replace(state, spent=state.spent + catch.spent)
    return _realised(quarry, [trail for _, trail in catch.trails], state, options)


def _closed(
    quarry: Quarry, judge: Judge, state: _State, options: SearchOptions
) -> tuple[_State, float]:
    """Raise the bound towards the best mapping until they meet or the budget ends."""
    bound = judge.bound
    for part, share in _STEPS:
        target = _target(judge.goal, state)
        if target <= bound * _CLOSE:
            break
        below = bound + part * (target - bound) if target < np.inf else np.inf
        left = max(0, options.budget - state.spent)
        catch = hunt(quarry, judge, Hunt(below=below, budget=int(left * share)))
        state = replace(state, spent=state.spent + catch.spent)
        state = _realised(quarry, [trail for _, trail in catch.trails], state, options)
        if catch.complete:
            bound = max(bound, min(below, catch.least))
            if catch.least < np.inf:
                break
    return state, bound


def _second_value(
    fields: Sequence[_Field], bounds: Sequence[float], state: _State, options: SearchOptions
) -> tuple[_State, bool]:
    """Improve the second value without giving up the first; False if better ones may be left."""
    if state.best is None or options.objective == "edp":
        return state, True
    kind: Literal["time", "energy"] = "energy" if options.objective == "latency" else "time"
    proven = state.value <= min(bounds) * _CLOSE
    settled = True
    for field, bound in zip(fields, bounds, strict=True):
        if bound <= state.value * _CLOSE:
            goal = Goal(kind, limit=state.value * _CLOSE)
            share = _share(options, state, 2 * len(fields))
            state, reached = _explored(field, goal, state, share, thorough=proven)
            settled &= reached * _CLOSE >= _target(goal, state)
    return state, settled


def _polished(best: _Best, state: _State, options: SearchOptions) -> _State:
    """The state after small changes to its mapping."""
    left = max(0, options.budget - state.spent)
    loops, spent = polish(best.setup, best.loops, options.objective, left)
    cost = cost_of(evaluate_loops(best.setup, loops))
    value = rank(options.objective, cost.cycles, cost.energy_pj)
    return state.with_mapping(_Best(value, best.setup, loops), spent)


def _order_by_order(
    nest: LoopNest, hierarchy: Hierarchy, constraint: Constraint | None, options: SearchOptions
) -> Mapped | None:
    """The best order that agrees with the constraint, of as many loop factors as can be tried."""
    setups = _setups(nest, hierarchy, constraint, options)
    given = constraint.order if constraint is not None else ()
    fixed = [(loop, size) for loop, size in given if size is not None]
    limits = [_most_factors(setup, fixed, options.budget // len(setups)) for setup in setups]
    known = [limit for limit in limits if limit is not None]
    state = _State(None, 0)
    for limit in dict.fromkeys((*_LIMITS, min(known, default=None))):
        found = loma(nest, hierarchy, constraint, replace(options, lpf_limit=limit))
        state = _with_loma(state, found, options)
    if state.best is None:
        return None
    mapped = _mapped(state.best, state.value, state, options)
    return mapped if not known else replace(mapped, bound=None, proven=False)


def _most_factors(setup: Setup, fixed: Sequence[Loop], budget: int) -> int | None:
    """How many loop factors give no more orders than the budget; None: all of them do."""
    temporal, first = setup.spatial.temporal, setup.nest.dims[0][0]
    if count_orders(loop_factors(temporal, first, None, fixed=fixed)) <= budget:
        return None
    limit = _LIMITS[0]
    while count_orders(loop_factors(temporal, first, limit + 1, fixed=fixed)) <= budget:
        limit += 1
    return limit

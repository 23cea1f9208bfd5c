"""The best of all mappings: every order of all prime factors, every way to cut it into levels.

The driver of the search. The incumbent starts as LOMA's best. For each unrolling, branch and bound
over chains of cuts finds better mappings and raises a lower bound; where the two meet, the mapping
is proven to be the best. docs/explanation/complete-search.md explains the parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np

from tilewright.mapping.attach import attach
from tilewright.mapping.batch import Ints
from tilewright.mapping.complete.branch import BranchLimits, BranchResult, branch_and_bound
from tilewright.mapping.complete.cost_to_go import StageGraph
from tilewright.mapping.complete.mappings import evaluate_mappings, mappings_of
from tilewright.mapping.complete.node_bounds import (
    Criterion,
    NodeBounds,
    latency_dual,
    node_bounds_of,
)
from tilewright.mapping.complete.relaxation import relaxation_of
from tilewright.mapping.complete.tiles import lattice_of
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.evaluate import Loops, Setup, cost_of, evaluate_loops, loops_of
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.orders import Loop, count_orders, loop_factors
from tilewright.mapping.search import Mapped, SearchOptions, best_column, loma, rank
from tilewright.mapping.spatial import UnrollOptions, unrollings

_CLOSE = 1 + 1e-9
"""What differs by less is equal: sums of floats depend on their order."""

_BEAM = 48
"""Nodes of each stage that the first, quick search branches."""

_ENDLESS = 1 << 62

_CELLS = 6_000_000
"""Stages times tiles beyond which tables of chains would take too much memory."""

_LIMITS = (6, 8)
"""Loop factors of the LOMA searches that this one is never worse than."""


@dataclass(frozen=True, slots=True)
class _Incumbent:
    """The best mapping so far, and its rank."""

    rank: tuple[float, float]
    setup: Setup
    loops: Loops


@dataclass(frozen=True, slots=True)
class _Progress:
    """The incumbent, and the candidates spent so far."""

    incumbent: _Incumbent | None
    spent: int

    @property
    def value(self) -> float:
        """The first value of the incumbent."""
        return np.inf if self.incumbent is None else self.incumbent.rank[0]

    def with_mapping(self, found: _Incumbent | None, spent: int) -> "_Progress":
        """The progress after another mapping was found, or none."""
        better = found is not None and (self.incumbent is None or found.rank < self.incumbent.rank)
        return _Progress(found if better else self.incumbent, self.spent + spent)


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
    subproblems = [_Subproblem(setup) for setup in _setups(nest, hierarchy, constraint, options)]
    first = loma(nest, hierarchy, constraint, replace(options, lpf_limit=_LIMITS[0]))
    progress = _with_loma(_Progress(None, 0), first, options)
    if progress.incumbent is not None:
        favourite = progress.incumbent.setup.spatial.unrolling
        subproblems.sort(key=lambda subproblem: subproblem.setup.spatial.unrolling != favourite)
    bounds = []
    for number, subproblem in enumerate(subproblems):
        share = _share(options, progress, len(subproblems) - number + 1)
        progress, bound = _searched(subproblem, _criterion(progress, options), progress, share)
        bounds.append(bound)
    progress, settled = _with_second_value(subproblems, bounds, progress, options)
    if not settled or progress.value > min(bounds) * _CLOSE:
        second = loma(nest, hierarchy, constraint, replace(options, lpf_limit=_LIMITS[1]))
        progress = _with_loma(progress, second, options)
    return _mapped(progress, min(bounds), options)


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


def _mapped(progress: _Progress, bound: float, options: SearchOptions) -> Mapped | None:
    incumbent = progress.incumbent
    if incumbent is None:
        return None
    cost = cost_of(evaluate_loops(incumbent.setup, incumbent.loops))
    value, _ = rank(options.objective, cost.cycles, cost.energy_pj)
    return Mapped(
        setup=incumbent.setup,
        loops=incumbent.loops,
        cost=cost,
        candidates=progress.spent,
        bound=min(bound, value),
        proven=value <= bound * _CLOSE,
    )


def _with_loma(progress: _Progress, found: Mapped | None, options: SearchOptions) -> _Progress:
    if found is None:
        return progress
    value = rank(options.objective, found.cost.cycles, found.cost.energy_pj)
    return progress.with_mapping(_Incumbent(value, found.setup, found.loops), found.candidates)


def _share(options: SearchOptions, progress: _Progress, parts: int) -> SearchOptions:
    """Options with a budget that leaves as much to each of the parts still to come."""
    left = max(0, options.budget - progress.spent)
    return replace(options, budget=progress.spent + left // parts)


def _criterion(progress: _Progress, options: SearchOptions) -> Criterion:
    match options.objective:
        case "latency":
            return Criterion("time")
        case "energy":
            return Criterion("energy")
        case "edp":
            return Criterion("product", slope=_slope(progress.incumbent))


def _slope(incumbent: _Incumbent | None) -> float:
    """Energy per cycle of the incumbent: where a product is least, the two weigh the same."""
    if incumbent is None:
        return 1.0
    cost = cost_of(evaluate_loops(incumbent.setup, incumbent.loops))
    return cost.energy_pj / cost.cycles


@dataclass(frozen=True)
class _Subproblem:
    """One unrolling and its relaxed problem, made when it is asked for."""

    setup: Setup

    @cached_property
    def graph(self) -> StageGraph | None:
        """The relaxed problem; None if nothing fits."""
        relaxation = relaxation_of(self.setup)
        return None if relaxation is None else StageGraph(relaxation)


def _searched(
    subproblem: _Subproblem,
    criterion: Criterion,
    progress: _Progress,
    options: SearchOptions,
    *,
    thorough: bool = True,
) -> tuple[_Progress, float]:
    """Search the chains of one unrolling; the bound holds for all its mappings.

    Unless `thorough`, the search is quick and may miss the best.
    """
    below = _target(criterion, progress)
    if _cells(subproblem.setup) > _CELLS:
        return progress, _least_work(subproblem.setup, criterion)
    graph = subproblem.graph
    if graph is None:
        return progress, np.inf
    dual = None
    if criterion.bounds_time:
        enough = below if criterion.kind == "time" else criterion.limit
        dual = latency_dual(graph, enough)
        if dual.least(criterion) >= below:
            return progress, below
    node_bounds = node_bounds_of(graph, criterion, dual)
    if node_bounds.bound >= below:
        return progress, below
    progress = _with_mappings(graph, node_bounds.chains, progress, options)
    progress = _beam_searched(graph, node_bounds, progress, options)
    if not thorough:
        return progress, node_bounds.bound
    return _proved(graph, node_bounds, progress, options)


def _target(criterion: Criterion, progress: _Progress) -> float:
    """The value below which a chain would be better than the incumbent."""
    if progress.incumbent is None:
        return np.inf
    return progress.incumbent.rank[1 if criterion.limit < np.inf else 0]


def _cells(setup: Setup) -> int:
    lattice = lattice_of(setup.spatial.temporal, setup.nest.dims[0][0])
    return lattice.size * prod(len(chain) + 1 for chain in setup.hierarchy.chains.values())


def _least_work(setup: Setup, criterion: Criterion) -> float:
    """A bound that needs no tables: the array's own cycles and energy."""
    cycles = prod(size for _, size in setup.spatial.temporal) * setup.op_cycles
    time = np.array([cycles + setup.spatial.drain_cycles])
    return float(criterion.value(time, np.array([setup.mac_pj]))[0])


def _with_mappings(
    graph: StageGraph, chains: Sequence[Ints], progress: _Progress, options: SearchOptions
) -> _Progress:
    """The progress after making mappings from chains."""
    if not chains:
        return progress
    mappings = mappings_of(graph.relaxation, chains)
    batch = evaluate_mappings(graph.relaxation.setup, mappings)
    column = best_column(batch, options.objective)
    found = None
    if column is not None:
        value = rank(options.objective, float(batch.cycles[column]), float(batch.energy_pj[column]))
        found = _Incumbent(value, batch.setup, loops_of(batch, column))
    return progress.with_mapping(found, mappings.orders.count)


def _beam_searched(
    graph: StageGraph, node_bounds: NodeBounds, progress: _Progress, options: SearchOptions
) -> _Progress:
    """A quick search that may miss the best; it does not end before there is a mapping at all."""
    left = max(0, options.budget - progress.spent) if progress.incumbent is not None else _ENDLESS
    limits = BranchLimits(below=_target(node_bounds.criterion, progress), budget=left, width=_BEAM)
    progress, _ = _branched(graph, node_bounds, limits, progress, options)
    return progress


def _proved(
    graph: StageGraph, node_bounds: NodeBounds, progress: _Progress, options: SearchOptions
) -> tuple[_Progress, float]:
    """Search all chains below the incumbent, and raise the bound if the budget lasts."""
    target = _target(node_bounds.criterion, progress)
    if target <= node_bounds.bound * _CLOSE:
        return progress, node_bounds.bound
    limits = BranchLimits(below=target, budget=max(0, options.budget - progress.spent))
    progress, result = _branched(graph, node_bounds, limits, progress, options)
    least = min(target, result.least) if result.complete else node_bounds.bound
    return progress, max(node_bounds.bound, least)


def _branched(
    graph: StageGraph,
    node_bounds: NodeBounds,
    limits: BranchLimits,
    progress: _Progress,
    options: SearchOptions,
) -> tuple[_Progress, BranchResult]:
    result = branch_and_bound(graph, node_bounds, limits)
    progress = replace(progress, spent=progress.spent + result.spent)
    chains = [chain for _, chain in result.chains]
    return _with_mappings(graph, chains, progress, options), result


def _with_second_value(
    subproblems: Sequence[_Subproblem],
    bounds: Sequence[float],
    progress: _Progress,
    options: SearchOptions,
) -> tuple[_Progress, bool]:
    """Improve the second value without giving up the first; False if better ones may be left."""
    if progress.incumbent is None or options.objective == "edp":
        return progress, True
    kind: Literal["time", "energy"] = "energy" if options.objective == "latency" else "time"
    proven = progress.value <= min(bounds) * _CLOSE
    settled = True
    for subproblem, bound in zip(subproblems, bounds, strict=True):
        if bound <= progress.value * _CLOSE:
            criterion = Criterion(kind, limit=progress.value * _CLOSE)
            share = _share(options, progress, 2 * len(subproblems))
            progress, reached = _searched(subproblem, criterion, progress, share, thorough=proven)
            settled &= reached * _CLOSE >= _target(criterion, progress)
    return progress, settled


def _order_by_order(
    nest: LoopNest, hierarchy: Hierarchy, constraint: Constraint | None, options: SearchOptions
) -> Mapped | None:
    """The best order that agrees with the constraint, of as many loop factors as can be tried."""
    setups = _setups(nest, hierarchy, constraint, options)
    given = constraint.order if constraint is not None else ()
    fixed = [(loop, size) for loop, size in given if size is not None]
    limits = [_most_factors(setup, fixed, options.budget // len(setups)) for setup in setups]
    known = [limit for limit in limits if limit is not None]
    progress = _Progress(None, 0)
    for limit in dict.fromkeys((*_LIMITS, min(known, default=None))):
        found = loma(nest, hierarchy, constraint, replace(options, lpf_limit=limit))
        progress = _with_loma(progress, found, options)
    mapped = _mapped(progress, progress.value, options)
    if mapped is None or not known:
        return mapped
    return replace(mapped, bound=None, proven=False)


def _most_factors(setup: Setup, fixed: Sequence[Loop], budget: int) -> int | None:
    """How many loop factors give no more orders than the budget; None: all of them do."""
    temporal, first = setup.spatial.temporal, setup.nest.dims[0][0]
    if count_orders(loop_factors(temporal, first, None, fixed=fixed)) <= budget:
        return None
    limit = _LIMITS[0]
    while count_orders(loop_factors(temporal, first, limit + 1, fixed=fixed)) <= budget:
        limit += 1
    return limit

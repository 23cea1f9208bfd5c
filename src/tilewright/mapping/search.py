"""Finding the best mapping of a nest on a core: spatial candidates times temporal ones."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tilewright.mapping.attach import Spatial, Unrolling, attach
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.evaluate import Batch, Cost, Loops, cost_of, evaluate, loops_of
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.orders import all_orders, loop_factors, matching
from tilewright.mapping.spatial import UnrollOptions, unrollings

Objective = Literal["latency", "energy", "edp"]


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How to search. `lpf_limit` bounds the loop factors that LOMA permutes."""

    objective: Objective = "latency"
    lpf_limit: int | None = 6
    even: bool = False
    mixed_unrolling: bool = False
    unrollings: int = 3


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """The best mapping found, its cost, and how many were tried."""

    nest: LoopNest
    hierarchy: Hierarchy
    spatial: Spatial
    loops: Loops
    cost: Cost
    candidates: int


def rank(objective: Objective, cycles: float, energy_pj: float) -> tuple[float, float]:
    """What a search minimises; the second part decides between equals."""
    match objective:
        case "latency":
            return cycles, energy_pj
        case "energy":
            return energy_pj, cycles
        case "edp":
            return cycles * energy_pj, 0.0


def best_column(batch: Batch, objective: Objective) -> int | None:
    """The first of the best candidates of a batch, or None if none fits."""
    if not batch.fits.any():
        return None
    match objective:
        case "latency":
            first, second = batch.cycles, batch.energy_pj
        case "energy":
            first, second = batch.energy_pj, batch.cycles
        case "edp":
            first = np.where(batch.fits, batch.cycles * batch.energy_pj, np.inf)
            second = np.zeros_like(first)
    ties = np.flatnonzero(first == first.min())
    return int(ties[np.argmin(second[ties])])


def loma(
    nest: LoopNest, hierarchy: Hierarchy, constraint: Constraint | None, options: SearchOptions
) -> Mapped | None:
    """The best of all orders of at most `lpf_limit` loop factors; None if nothing fits."""
    choices = UnrollOptions(mixed=options.mixed_unrolling, limit=options.unrollings)
    best: Mapped | None = None
    tried = 0
    for unrolling in unrollings(nest, hierarchy, constraint, choices):
        found = loma_unrolled(nest, hierarchy, unrolling, constraint, options)
        tried += found[1]
        if found[0] is None:
            continue
        if best is None or _rank(found[0], options) < _rank(best, options):
            best = found[0]
    return None if best is None else replace(best, candidates=tried)


def loma_unrolled(
    nest: LoopNest,
    hierarchy: Hierarchy,
    unrolling: Unrolling,
    constraint: Constraint | None,
    options: SearchOptions,
) -> tuple[Mapped | None, int]:
    """LOMA for one unrolling: the best mapping or None, and the number of orders tried."""
    spatial = attach(nest, hierarchy, unrolling)
    factors = loop_factors(spatial.temporal, nest.dims[0][0], options.lpf_limit)
    orders = all_orders(factors)
    if constraint is not None and constraint.order:
        orders = matching(orders, constraint.order)
    if orders.count == 0:
        return None, 0
    batch = evaluate(nest, hierarchy, spatial, orders, even=options.even)
    column = best_column(batch, options.objective)
    if column is None:
        return None, orders.count
    loops = loops_of(batch, column)
    mapped = Mapped(
        nest=nest,
        hierarchy=hierarchy,
        spatial=spatial,
        loops=loops,
        cost=cost_of(nest, hierarchy, spatial, loops),
        candidates=orders.count,
    )
    return mapped, orders.count


def _rank(mapped: Mapped, options: SearchOptions) -> tuple[float, float]:
    return rank(options.objective, mapped.cost.cycles, mapped.cost.energy_pj)

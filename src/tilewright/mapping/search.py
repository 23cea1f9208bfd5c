"""Finding the best mapping of a nest on a core: spatial candidates times temporal ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from tilewright.errors import refuse_unknown
from tilewright.mapping.attach import attach
from tilewright.mapping.batch import Orders, chunks, orders_of
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.evaluate import Batch, Cost, Loops, Setup, cost_of, evaluate, loops_of
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.kernel import Description, Wanted, best_order, takes
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
    budget: int = 200_000
    """Candidates that a search may cost, where it does not cost all."""
    seed: int = 0
    round_off: bool = False
    """Let float round-off add passes, as ZigZag does."""

    def __post_init__(self) -> None:
        refuse_unknown("objective", self.objective, get_args(Objective))


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """The best mapping found, its cost, and how many were tried."""

    setup: Setup
    loops: Loops
    cost: Cost
    candidates: int
    bound: float | None = None
    """No mapping does better than this in the objective's first value, if a search shows that."""
    proven: bool = False


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
    first, second = batch.cycles, batch.energy_pj
    if objective == "energy":
        first, second = second, first
    elif objective == "edp":
        first, second = np.where(batch.fits, first * second, np.inf), np.zeros_like(first)
    least = first.min(initial=np.inf)
    if least == np.inf:
        return None
    ties = np.flatnonzero(first == least)
    return int(ties[np.argmin(second[ties])])


def loma_candidates(
    nest: LoopNest,
    hierarchy: Hierarchy,
    constraint: Constraint | None,
    options: SearchOptions,
    *,
    by_value: bool = False,
) -> Iterator[tuple[Setup, Orders]]:
    """Every unrolling with all orders of at most `lpf_limit` loop factors.

    `by_value` is that of `UnrollOptions`.
    """
    choices = UnrollOptions(
        mixed=options.mixed_unrolling,
        limit=options.unrollings,
        aliased=options.round_off,
        by_value=by_value,
    )
    for unrolling in unrollings(nest, hierarchy, constraint, choices):
        spatial = attach(nest, hierarchy, unrolling, round_off=options.round_off)
        setup = Setup(nest, hierarchy, spatial)
        yield setup, _loma_orders(setup, constraint, options.lpf_limit)


def loma(
    nest: LoopNest, hierarchy: Hierarchy, constraint: Constraint | None, options: SearchOptions
) -> Mapped | None:
    """The best of all orders of at most `lpf_limit` loop factors; None if nothing fits."""
    # Where ZigZag's way to shrink an unrolling leaves one that cannot be mapped, ours answers.
    ways = (True, False) if options.round_off else (False,)
    for by_value in ways:
        best: Mapped | None = None
        tried = 0
        for setup, orders in loma_candidates(
            nest, hierarchy, constraint, options, by_value=by_value
        ):
            found = best_of(setup, orders, options)
            tried += orders.count
            if found is not None and (best is None or _rank(found, options) < _rank(best, options)):
                best = found
        if best is not None:
            return replace(best, candidates=tried)
    return None


def best_of(
    setup: Setup, orders: Orders, options: SearchOptions, at_most: float = np.inf
) -> Mapped | None:
    """The best of some orders, allocated greedily; None if none fits.

    None also if what is minimised first is above `at_most` for all of them.
    """
    best = best_candidate(setup, orders, options, at_most)
    return None if best is None else mapped(best[0], best[1], orders.count)


def best_candidate(
    setup: Setup, orders: Orders, options: SearchOptions, at_most: float = np.inf
) -> tuple[Batch, int, tuple[float, float]] | None:
    """As `best_of`: a batch, the number of the best in it, and what it is ranked by."""
    description = setup.description
    if description is not None and takes(description, orders):
        return _best_compiled(setup, description, orders, options, at_most)
    best: tuple[Batch, int, tuple[float, float]] | None = None
    least = (at_most, np.inf)
    for part in chunks(orders):
        batch = evaluate(setup, part, even=options.even)
        column = best_column(batch, options.objective)
        if column is None:
            continue
        value = rank(options.objective, batch.cycles[column], batch.energy_pj[column])
        if value < least:
            best, least = (batch, column, value), value
    return best


def _best_compiled(
    setup: Setup,
    description: Description,
    orders: Orders,
    options: SearchOptions,
    at_most: float,
) -> tuple[Batch, int, tuple[float, float]] | None:
    """As `best_candidate`, by the kernel: the batch has no other candidate."""
    objective = options.objective
    wanted = Wanted(objective=objective, mac_pj=setup.mac_pj, at_most=at_most)
    found = best_order(description, orders, wanted, even=options.even)
    if found is None:
        return None
    number, allocation, costs = found
    one = slice(number, number + 1)
    only = Orders(orders.names, orders.loops[:, one], orders.sizes[:, one])
    batch = Batch(setup, only, allocation, costs)
    return batch, 0, rank(objective, batch.cycles[0], batch.energy_pj[0])


def mapped(batch: Batch, column: int, tried: int) -> Mapped:
    """One candidate of a batch, with its cost in every detail."""
    loops, cost = loops_of(batch, column), cost_of(batch, column)
    return Mapped(setup=batch.setup, loops=loops, cost=cost, candidates=tried)


def _loma_orders(setup: Setup, constraint: Constraint | None, limit: int | None) -> Orders:
    """The orders to try: a given one alone, or all that agree with what is given of it."""
    temporal, first = setup.spatial.temporal, setup.nest.dims[0][0]
    given = constraint.order if constraint is not None else ()
    given = tuple((loop, size) for loop, size in given if loop == "*" or loop in setup.nest.sizes)
    complete = [(loop, size) for loop, size in given if size is not None]
    if complete and len(complete) == len(given) and _products(complete) == dict(temporal):
        return orders_of([complete])
    orders = all_orders(loop_factors(temporal, first, limit, fixed=complete))
    return matching(orders, given) if given else orders


def _products(loops: Sequence[tuple[str, int]]) -> dict[str, int]:
    result: dict[str, int] = {}
    for loop, size in loops:
        result[loop] = result.get(loop, 1) * size
    return {loop: size for loop, size in result.items() if size > 1}


def _rank(mapped: Mapped, options: SearchOptions) -> tuple[float, float]:
    return rank(options.objective, mapped.cost.cycles, mapped.cost.energy_pj)

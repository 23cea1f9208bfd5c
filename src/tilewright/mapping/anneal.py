"""Simulated annealing over orders of all prime factors: many chains at once, as columns."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tilewright.mapping.attach import attach
from tilewright.mapping.batch import Bools, Floats, Ints
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.evaluate import Batch, Setup, cost_of, evaluate, loops_of
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.orders import loop_factors, orders_from_kinds
from tilewright.mapping.search import Mapped, SearchOptions, best_column, rank
from tilewright.mapping.spatial import UnrollOptions, unrollings

_CHAINS = 64
_START_TEMPERATURE = 0.05
_END_TEMPERATURE = 0.0005
"""Relative worsening that is accepted about one time in three, at first and at last."""


def anneal(
    nest: LoopNest, hierarchy: Hierarchy, constraint: Constraint | None, options: SearchOptions
) -> Mapped | None:
    """The best mapping that annealing meets within the budget, or None if it meets none that fits.

    The same seed and budget give the same mapping. An order that the constraint gives is not
    looked at: a given order leaves nothing to anneal.
    """
    choices = UnrollOptions(mixed=options.mixed_unrolling, limit=options.unrollings)
    found = unrollings(nest, hierarchy, constraint, choices)
    best: Mapped | None = None
    tried = 0
    for number, unrolling in enumerate(found):
        spatial = attach(nest, hierarchy, unrolling, round_off=options.round_off)
        setup = Setup(nest, hierarchy, spatial)
        share = max(1, options.budget // len(found) // _CHAINS)
        for batch in _walk(setup, options, steps=share, seed=(options.seed, number)):
            tried += batch.orders.count
            column = best_column(batch, options.objective)
            if column is None:
                continue
            value = rank(options.objective, batch.cycles[column], batch.energy_pj[column])
            if best is None or value < _value(best, options):
                best = Mapped(
                    setup=setup,
                    loops=loops_of(batch, column),
                    cost=cost_of(batch, column),
                    candidates=0,
                )
    return None if best is None else replace(best, candidates=tried)


def _walk(
    setup: Setup, options: SearchOptions, *, steps: int, seed: tuple[int, int]
) -> Iterator[Batch]:
    """Every batch of orders that the chains visit, `steps` of them."""
    chance = np.random.default_rng(seed)
    factors = loop_factors(setup.spatial.temporal, setup.nest.dims[0][0], None)
    kinds = sorted(set(factors))
    numbers = np.array([kinds.index(f) for f in factors], dtype=np.int64)
    place: Ints = np.array([chance.permutation(numbers) for _ in range(_CHAINS)]).T
    values = np.full(_CHAINS, np.inf)
    cooling = (_END_TEMPERATURE / _START_TEMPERATURE) ** (1 / max(1, steps - 1))
    temperature = _START_TEMPERATURE
    columns = np.arange(_CHAINS)
    for _ in range(steps):
        swapped = place.copy()
        if len(factors) > 1:
            first, second = chance.integers(0, len(factors), size=(2, _CHAINS))
            swapped[first, columns] = place[second, columns]
            swapped[second, columns] = place[first, columns]
        batch = evaluate(setup, orders_from_kinds(kinds, swapped), even=options.even)
        yield batch
        new = _values(batch, options)
        accepted = _accepted(values, new, chance.random(_CHAINS), temperature)
        place = np.where(accepted, swapped, place)
        values = np.where(accepted, new, values)
        temperature *= cooling


def _accepted(old: Floats, new: Floats, drawn: Floats, temperature: float) -> Bools:
    """Which chains take their step: all that improve, and others the less, the worse it is."""
    better = new <= old
    with np.errstate(invalid="ignore"):
        worse_by = np.where(np.isfinite(new) & np.isfinite(old), new / old - 1, np.inf)
    likely = drawn < np.exp(-np.where(better, 0.0, worse_by) / temperature)
    taken: Bools = better | likely
    return taken


def _values(batch: Batch, options: SearchOptions) -> Floats:
    match options.objective:
        case "latency":
            return batch.cycles
        case "energy":
            return batch.energy_pj
        case "edp":
            return batch.cycles * batch.energy_pj


def _value(mapped: Mapped, options: SearchOptions) -> tuple[float, float]:
    return rank(options.objective, mapped.cost.cycles, mapped.cost.energy_pj)

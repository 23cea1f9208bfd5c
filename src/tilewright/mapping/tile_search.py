"""The best mapping of a tile: all single-loop unrollings ranked by their steps, then loop orders.

An unrolling's steps are a bound on its cycles, so unrollings are tried from the fewest steps on
until no other one can be better. Among equals those come first that ask least of the ports next to
the array.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf, prod

from tilewright.mapping.attach import Unrolling, attach
from tilewright.mapping.evaluate import Setup
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.orders import all_orders, loop_factors
from tilewright.mapping.search import Mapped, SearchOptions, best_of, rank
from tilewright.mapping.spatial import (
    UnrollOptions,
    elements_per_cycle,
    factor_limits,
    limited,
    unrollings,
)

CLOSE = 1.01
"""A mapping this close to the bound of the unrollings that are left ends the search."""


def map_tile(nest: LoopNest, hierarchy: Hierarchy, options: SearchOptions) -> Mapped | None:
    """The best mapping of a nest among `options.unrollings` unrollings; None if nothing fits.

    Where ports hold the array up, unrollings by less than the array allows are tried too: those of
    the general search.
    """
    best: Mapped | None = None
    tried = 0
    chosen = _candidates(nest, hierarchy, options.unrollings)
    for number, (_, unrolling) in enumerate(chosen):
        # Unrollings with more steps come first if they ask less of the ports: look at all the rest.
        if _is_close(best, min(steps for steps, _ in chosen[number:]), options):
            break
        best, count = _better(best, nest, hierarchy, unrolling, options)
        tried += count
    if not _is_close(best, min((steps for steps, _ in chosen), default=0), options):
        for unrolling in unrollings(nest, hierarchy, None, UnrollOptions()):
            best, count = _better(best, nest, hierarchy, unrolling, options)
            tried += count
    return None if best is None else replace(best, candidates=tried)


def _is_close(best: Mapped | None, steps: int, options: SearchOptions) -> bool:
    """Whether an unrolling of so many steps could gain next to nothing."""
    if best is None or options.objective != "latency":
        return False
    return best.cost.cycles <= CLOSE * steps * best.setup.op_cycles


def _better(
    best: Mapped | None,
    nest: LoopNest,
    hierarchy: Hierarchy,
    unrolling: Unrolling,
    options: SearchOptions,
) -> tuple[Mapped | None, int]:
    """The better of what was found and the best of an unrolling, and how many were tried."""
    setup = Setup(nest, hierarchy, attach(nest, hierarchy, unrolling))
    orders = all_orders(loop_factors(setup.spatial.temporal, nest.dims[0][0], options.lpf_limit))
    found = best_of(setup, orders, options)
    if found is None or (best is not None and _value(best, options) <= _value(found, options)):
        return best, orders.count
    return found, orders.count


def _candidates(nest: LoopNest, hierarchy: Hierarchy, most: int) -> list[tuple[int, Unrolling]]:
    """The most promising unrollings, and, as ports may be asked less than feared, the shortest."""
    ranked = ranked_unrollings(nest, hierarchy)
    shortest = sorted(ranked)[: most // 2]
    first = [found for found in ranked if found not in shortest][: most - len(shortest)]
    return [found for found in ranked if found in first or found in shortest]


def _value(mapped: Mapped, options: SearchOptions) -> tuple[float, float]:
    return rank(options.objective, mapped.cost.cycles, mapped.cost.energy_pj)


def fewest_steps(nest: LoopNest, hierarchy: Hierarchy) -> int:
    """Steps that the array needs at least, however the nest is cut, one loop on an array dim."""
    units = prod(max(1, *most.values()) for most in factor_limits(nest, hierarchy).values())
    return -(-nest.points // units)


def ranked_unrollings(nest: LoopNest, hierarchy: Hierarchy) -> list[tuple[int, Unrolling]]:
    """Unrollings of one loop per array dim with their steps, the most promising first."""
    found: dict[Unrolling, tuple[float, int]] = {}
    for factors in _single_loops(nest, hierarchy):
        unrolling = limited(nest, hierarchy, factors)
        if unrolling not in found:
            steps = _steps(nest, _totals({d: dict(pairs) for d, pairs in unrolling}))
            found[unrolling] = steps * _congestion(nest, hierarchy, unrolling), steps
    ordered = sorted(found.items(), key=lambda item: (item[1], item[0]))
    return [(steps, unrolling) for unrolling, (_, steps) in ordered]


def _single_loops(nest: LoopNest, hierarchy: Hierarchy) -> Iterator[dict[str, dict[str, int]]]:
    """One loop per array dim, as far as it goes; even steps rather than a ragged last one."""
    limits = factor_limits(nest, hierarchy)
    dims = [dim for dim, _ in hierarchy.array.dims]
    choices = [
        [loop for loop, most in limits[dim].items() if most > 1 and nest.sizes[loop] > 1] or [""]
        for dim in dims
    ]
    for loops in product(*choices):
        left = dict(nest.sizes)
        factors: dict[str, dict[str, int]] = {}
        for dim, loop in zip(dims, loops, strict=True):
            factors[dim] = {}
            if loop:
                most = min(limits[dim][loop], left[loop])
                passes = -(-left[loop] // most)
                factor = -(-left[loop] // passes)
                factors[dim][loop] = factor
                left[loop] = passes
        yield factors


def _totals(factors: dict[str, dict[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for pairs in factors.values():
        for loop, factor in pairs.items():
            totals[loop] = totals.get(loop, 1) * factor
    return totals


def _steps(nest: LoopNest, totals: dict[str, int]) -> int:
    return prod(-(-size // totals.get(loop, 1)) for loop, size in nest.dims)


def _congestion(nest: LoopNest, hierarchy: Hierarchy, unrolling: Unrolling) -> float:
    """Cycles that the ports next to the array need, at most, for what it takes in one step."""
    worst = 1.0
    for operand in nest.operands:
        memory = hierarchy.memory(operand.letter, 0)
        same = nest.irrelevant(operand)
        taken = prod(
            factor
            for dim, pairs in unrolling
            if dim in memory.served_dims
            for loop, factor in pairs
            if loop not in same
        )
        fed = elements_per_cycle(hierarchy, memory, operand)
        if fed not in (0, inf):
            worst = max(worst, taken / fed)
    return worst

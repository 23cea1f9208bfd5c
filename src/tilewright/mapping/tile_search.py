"""The best mapping of a tile: all single-loop unrollings ranked by their steps, then loop orders.

An unrolling's steps are a bound on its cycles, so unrollings are tried from the fewest steps on
until no other one can be better. Among equals those come first that ask least of the ports next to
the array.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf, prod

from tilewright.mapping.attach import Unrolling, attach
from tilewright.mapping.evaluate import Setup
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.orders import all_orders, ascending_orders, loop_factors
from tilewright.mapping.search import Mapped, SearchOptions, best_of, rank
from tilewright.mapping.spatial import (
    UnrollOptions,
    elements_per_cycle,
    factor_limits,
    feeds,
    limited,
    unrollings,
)

CLOSE = 1.01
"""A mapping this close to the bound of the unrollings that are left ends the search."""

TIMED_UNROLLINGS = 6
"""Unrollings that are tried where only the energy is the mapping's to say."""


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


def map_timed_tile(nest: LoopNest, hierarchy: Hierarchy, options: SearchOptions) -> Mapped | None:
    """A mapping of little energy, for a tile whose cycles are known without it; None: none fits.

    A search for the least energy tries all unrollings; otherwise a few that differ in what they ask
    of the lowest memories come close.
    """
    if options.objective == "energy":
        return map_tile(nest, hierarchy, options)
    least = replace(options, objective="energy")
    best: Mapped | None = None
    tried = 0
    for unrolling in _different(nest, hierarchy, TIMED_UNROLLINGS):
        setup = Setup(nest, hierarchy, attach(nest, hierarchy, unrolling))
        factors = loop_factors(setup.spatial.temporal, nest.dims[0][0], options.lpf_limit)
        orders = ascending_orders(factors)
        found = best_of(setup, orders, least, inf if best is None else best.cost.energy_pj)
        best, tried = found or best, tried + orders.count
    if best is None:
        return map_tile(nest, hierarchy, options)
    return replace(best, candidates=tried)


def _different(nest: LoopNest, hierarchy: Hierarchy, most: int) -> list[Unrolling]:
    """The most promising unrollings of which no two ask the same of the lowest memories."""
    found: dict[tuple[int, ...], Unrolling] = {}
    for steps, unrolling in ranked_unrollings(nest, hierarchy):
        found.setdefault((steps, *_asked(nest, hierarchy, unrolling)), unrolling)
        if len(found) == most:
            break
    return list(found.values())


def _asked(nest: LoopNest, hierarchy: Hierarchy, unrolling: Unrolling) -> Iterator[int]:
    """Elements that the two lowest memories of every operand move in a step."""
    for operand in nest.operands:
        same = nest.irrelevant(operand)
        shared: list[str] = []
        for level in hierarchy.chains[operand.letter][:2]:
            shared += hierarchy.levels[level][0].served_dims
            yield prod(
                factor
                for dim, pairs in unrolling
                for loop, factor in pairs
                if not (loop in same and dim in shared)
            )


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
    # Sums of energies in another order may differ in the last digits: equals are told apart below.
    at_most = inf if best is None else _value(best, options)[0] * (1 + 1e-9)
    found = best_of(setup, orders, options, at_most)
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
    lowest, doors = feeds(nest, hierarchy), _doors(nest, hierarchy)
    for factors in _single_loops(nest, hierarchy):
        unrolling = limited(hierarchy, lowest, factors)
        if unrolling not in found:
            steps = _steps(nest, unrolling)
            found[unrolling] = steps * _congestion(doors, unrolling), steps
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


def _steps(nest: LoopNest, unrolling: Unrolling) -> int:
    totals: dict[str, int] = {}
    for _, pairs in unrolling:
        for loop, factor in pairs:
            totals[loop] = totals.get(loop, 1) * factor
    return prod(-(-size // totals.get(loop, 1)) for loop, size in nest.dims)


@dataclass(frozen=True, slots=True)
class _Door:
    """The port through which the array takes or gives elements of an operand."""

    dims: tuple[str, ...]
    """Array dims that share it."""
    same: tuple[str, ...]
    """Loops along which units share an element."""
    elements_per_cycle: float


def _doors(nest: LoopNest, hierarchy: Hierarchy) -> list[_Door]:
    found = []
    for operand in nest.operands:
        memory = hierarchy.memory(operand.letter, 0)
        fed = elements_per_cycle(hierarchy, memory, operand)
        if fed not in (0, inf):
            found.append(_Door(tuple(memory.served_dims), nest.irrelevant(operand), fed))
    return found


def _congestion(doors: Sequence[_Door], unrolling: Unrolling) -> float:
    """Cycles that the ports next to the array need, at most, for what it takes in one step."""
    worst = 1.0
    for door in doors:
        taken = 1
        for dim, pairs in unrolling:
            if dim in door.dims:
                for loop, factor in pairs:
                    if loop not in door.same:
                        taken *= factor
        worst = max(worst, taken / door.elements_per_cycle)
    return worst

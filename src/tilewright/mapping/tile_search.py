"""The best mapping of a tile: all single-loop unrollings ranked by their steps, then loop orders.

An unrolling's steps are a bound on its cycles, so unrollings are tried from the fewest steps on
until no other one can be better. Among equals those come first that ask least of the ports next to
the array.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import ceil, inf, prod

from tilewright.mapping.attach import Unrolling, attach
from tilewright.mapping.evaluate import Setup
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.orders import all_orders, loop_factors
from tilewright.mapping.search import Mapped, SearchOptions, best_of, rank
from tilewright.mapping.single_loops import Door, single_loops
from tilewright.mapping.spatial import (
    UnrollOptions,
    elements_per_cycle,
    factor_limits,
    feeds,
    limited,
    unrollings,
)

Factors = dict[str, dict[str, int]]
"""By array dim, then by loop, the factor."""

CLOSE = 1.01
"""A mapping this close to the bound of the unrollings that are left ends the search."""

QUICK_UNROLLINGS = 3
"""Most promising unrollings that a quick look at a tile tries, beside the shortest one."""

QUICK_FACTORS = 4
"""Loop factors that it permutes."""

HELD_UP = 0.25
"""The part of its cycles for which a port must hold the array up before fewer units are tried."""


def map_tile(
    nest: LoopNest,
    hierarchy: Hierarchy,
    options: SearchOptions,
    ranked: Sequence[tuple[int, Unrolling]] | None = None,
) -> Mapped | None:
    """The best mapping of a nest among `options.unrollings` unrollings; None if nothing fits.

    `ranked` are its unrollings, if they are known already. Where ports hold the array up, others
    that use less than the array has are tried too: those of the general search, and what is best
    with as many units as ports keep up with.
    """
    best: Mapped | None = None
    tried = 0
    if ranked is None:
        ranked = ranked_unrollings(nest, hierarchy)
    chosen = _candidates(ranked, options.unrollings)
    for number, (steps, unrolling) in enumerate(chosen):
        # Unrollings with more steps come first if they ask less of the ports: look at all the rest.
        if _is_close(best, min(steps for steps, _ in chosen[number:]), options):
            break
        if _is_hopeless(best, steps, options):
            continue
        best, count = _better(best, nest, hierarchy, unrolling, options)
        tried += count
    if not _is_close(best, min((steps for steps, _ in chosen), default=0), options):
        for unrolling in unrollings(nest, hierarchy, None, UnrollOptions()):
            if _is_hopeless(best, _steps(nest, unrolling), options):
                continue
            best, count = _better(best, nest, hierarchy, unrolling, options)
            tried += count
    if best is not None and options.objective == "latency":
        best, count = _with_idle_units(best, options)
        tried += count
    return None if best is None else replace(best, candidates=tried)


def _with_idle_units(best: Mapped, options: SearchOptions) -> tuple[Mapped, int]:
    """The best of a mapping and those with fewer units at work, and how many were tried.

    An array that takes more than ports move waits in every step; with fewer units it has more
    steps, and may not wait in any.
    """
    nest, hierarchy, tried = best.setup.nest, best.setup.hierarchy, 0
    least = HELD_UP * best.cost.cycles
    slow = [memory for memory, _, cycles in best.cost.port_stalls if cycles > least]
    doors = _doors(nest, hierarchy, len(hierarchy.levels), slow) if slow else []
    for narrower in _narrower(doors, best.setup.spatial.unrolling):
        if not _is_hopeless(best, _steps(nest, narrower), options):
            found, count = _better(best, nest, hierarchy, narrower, options)
            best, tried = found or best, tried + count
    return best, tried


def _narrower(doors: Sequence[Door], unrolling: Unrolling) -> list[Unrolling]:
    """Unrollings that go less far along one array dim, so that some door takes fewer cycles."""
    found: dict[Unrolling, None] = {}
    for door in doors:
        taken = _taken(door, unrolling)
        cycles = ceil(taken / door.elements)
        for fewer in dict.fromkeys((1, cycles - 1)) if cycles > 1 else ():
            for place, (dim, pairs) in enumerate(unrolling):
                for loop, factor in pairs if dim in door.dims else ():
                    less = int(factor * fewer * door.elements / taken)
                    if loop not in door.same and len(pairs) == 1 and less > 0:
                        narrow = (dim, ((loop, less),))
                        found[(*unrolling[:place], narrow, *unrolling[place + 1 :])] = None
    return list(found)


def quick_cycles(
    tile: LoopNest,
    hierarchy: Hierarchy,
    options: SearchOptions,
    ranked: Sequence[tuple[int, Unrolling]],
) -> float | None:
    """Cycles of the best mapping among a few, to compare tiles with; None if nothing fits.

    `ranked` are the unrollings of the whole op: the loops of the first run along the array here.
    """
    limits, lowest = factor_limits(tile, hierarchy), feeds(tile, hierarchy)
    few = replace(options, lpf_limit=min(options.lpf_limit or QUICK_FACTORS, QUICK_FACTORS))
    best: Mapped | None = None
    for _, of_op in dict.fromkeys([*ranked[:QUICK_UNROLLINGS], min(ranked)]):
        along = {dim: pairs[0][0] for dim, pairs in of_op if pairs}
        loops = [
            along[dim] if dim in along and most[along[dim]] > 1 else ""
            for dim, most in limits.items()
        ]
        unrolling = limited(hierarchy, lowest, filled(tile, limits, loops))
        if not _is_hopeless(best, _steps(tile, unrolling), options):
            best, _ = _better(best, tile, hierarchy, unrolling, few)
    return None if best is None else best.cost.cycles


def _is_close(best: Mapped | None, steps: int, options: SearchOptions) -> bool:
    """Whether an unrolling of so many steps could gain next to nothing."""
    if best is None or options.objective != "latency":
        return False
    return best.cost.cycles <= CLOSE * steps * best.setup.op_cycles


def _is_hopeless(best: Mapped | None, steps: int, options: SearchOptions) -> bool:
    """Whether an unrolling of so many steps takes longer than what was found, in any order."""
    if best is None or options.objective != "latency":
        return False
    return best.cost.cycles < steps * best.setup.op_cycles


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


def _candidates(ranked: Sequence[tuple[int, Unrolling]], most: int) -> list[tuple[int, Unrolling]]:
    """The most promising unrollings, and, as ports may be asked less than feared, the shortest."""
    shortest = sorted(ranked)[: most // 2]
    first = [found for found in ranked if found not in shortest][: most - len(shortest)]
    return [found for found in ranked if found in first or found in shortest]


def _value(mapped: Mapped, options: SearchOptions) -> tuple[float, float]:
    return rank(options.objective, mapped.cost.cycles, mapped.cost.energy_pj)


def fewest_steps(nest: LoopNest, hierarchy: Hierarchy, part: float = 1.0) -> int:
    """Steps that the array needs at least, however the nest is cut, one loop on an array dim."""
    units = prod(max(1, *most.values()) for most in factor_limits(nest, hierarchy).values())
    return max(_whole_steps(nest.points * part / units), least_steps(nest, hierarchy, part))


def least_steps(nest: LoopNest, hierarchy: Hierarchy, part: float = 1.0) -> int:
    """Steps that the array needs at least, however the nest is cut and whatever is unrolled, for a
    part of its points.

    Several loops may share an array dim; none goes further along it than ports next to the array
    let it.
    """
    limits = factor_limits(nest, hierarchy)
    units = reach = 1
    for dim, size in hierarchy.array.dims:
        units *= min(size, prod(max(1, most) for most in limits[dim].values()))
    for loop, size in nest.dims:
        reach *= min(size, prod(max(1, most[loop]) for most in limits.values()))
    return _whole_steps(nest.points * part / max(1, min(units, reach)))


def _whole_steps(steps: float) -> int:
    """Steps are whole; the last digits of a quotient are not told from rounding."""
    return ceil(steps * (1 - 1e-12))


def ranked_unrollings(nest: LoopNest, hierarchy: Hierarchy) -> list[tuple[int, Unrolling]]:
    """Unrollings of one loop per array dim with their steps, the most promising first."""
    limits, lowest = factor_limits(nest, hierarchy), feeds(nest, hierarchy)
    doors = _doors(nest, hierarchy)
    choices = {
        dim: [(loop, n) for loop, n in most.items() if n > 1 and nest.sizes[loop] > 1] or [("", 1)]
        for dim, most in limits.items()
    }
    stores = [Door(feed.dims, feed.same, feed.elements) for feed in lowest]
    found = single_loops(nest, choices, stores, doors)
    if found is None:
        ways = product(*([loop for loop, _ in tried] for tried in choices.values()))
        held = dict.fromkeys(limited(hierarchy, lowest, filled(nest, limits, way)) for way in ways)
        found = [_rated(nest, doors, unrolling) for unrolling in held]
    return [(steps, unrolling) for _, steps, unrolling in sorted(found)]


def _rated(
    nest: LoopNest, doors: Sequence[Door], unrolling: Unrolling
) -> tuple[float, int, Unrolling]:
    steps = _steps(nest, unrolling)
    return steps * _congestion(doors, unrolling), steps, unrolling


def filled(
    nest: LoopNest, limits: Mapping[str, Mapping[str, int]], loops: Sequence[str]
) -> Factors:
    """A loop along each array dim, as far as it goes; even steps rather than a ragged last one."""
    left = dict(nest.sizes)
    factors: Factors = {}
    for dim, loop in zip(limits, loops, strict=True):
        factors[dim] = {}
        if loop:
            most = min(limits[dim][loop], left[loop])
            passes = -(-left[loop] // most)
            factors[dim][loop] = -(-left[loop] // passes)
            left[loop] = passes
    return factors


def _steps(nest: LoopNest, unrolling: Unrolling) -> int:
    totals: dict[str, int] = {}
    for _, pairs in unrolling:
        for loop, factor in pairs:
            totals[loop] = totals.get(loop, 1) * factor
    steps = 1
    for loop, size in nest.dims:
        steps *= -(-size // totals.get(loop, 1))
    return steps


def _doors(
    nest: LoopNest, hierarchy: Hierarchy, levels: int = 1, memories: Sequence[str] | None = None
) -> list[Door]:
    """The ports of so many levels, from the array on, as what has to pass them sees them.

    Only those of some memories, if these are given.
    """
    found = []
    for operand in nest.operands:
        for level in range(min(levels, len(hierarchy.chains[operand.letter]))):
            memory = hierarchy.memory(operand.letter, level)
            fed = elements_per_cycle(hierarchy, memory, operand)
            is_meant = memories is None or memory.name in memories
            if is_meant and fed not in (0, inf):
                found.append(Door(tuple(memory.served_dims), nest.irrelevant(operand), fed))
    return found


def _congestion(doors: Sequence[Door], unrolling: Unrolling) -> float:
    """Cycles that the ports next to the array need, at most, for what it takes in one step."""
    worst = 1.0
    for door in doors:
        worst = max(worst, _taken(door, unrolling) / door.elements)
    return worst


def _taken(door: Door, unrolling: Unrolling) -> int:
    """Elements that the array takes from a door in one step."""
    taken = 1
    for dim, pairs in unrolling:
        if dim in door.dims:
            for loop, factor in pairs:
                if loop not in door.same:
                    taken *= factor
    return taken

"""Mappings of little energy, for cores whose own model says how long a tile takes.

Loop orders are few: the factors of a loop stand smallest first. Which loops run along the array is
found out for a whole op once, among unrollings that differ in what they ask of the lowest memories;
the tiles of the op then try the best of these.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, prod

from tilewright.mapping.attach import Unrolling, attach
from tilewright.mapping.evaluate import Setup, cost_from, cost_of, evaluate_loops, loops_of
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.kernel_least import Least, frame_of, least_energy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.orders import ascending_orders, loop_factors
from tilewright.mapping.search import Mapped, SearchOptions, best_candidate
from tilewright.mapping.spatial import factor_limits, feeds, limited
from tilewright.mapping.tile_search import filled, map_tile
from tilewright.records import quickly_made

Pattern = tuple[str, ...]
"""The loop along each array dim; none: an empty name."""

OF_OPS = 6
"""Unrollings that are tried for a whole op."""

OF_TILES = 3
"""Of those, how many are tried for each of its tiles."""


@dataclass(frozen=True, kw_only=True)
class TimedOp:
    """A whole op, and the patterns that are tried for its tiles."""

    nest: LoopNest
    hierarchy: Hierarchy
    options: SearchOptions
    least: "_Candidate | None"
    patterns: tuple[Pattern, ...]

    @cached_property
    def best(self) -> Mapped | None:
        """Its mapping, if one fits."""
        if self.least is None:
            return map_tile(self.nest, self.hierarchy, self.options)
        return _mapped(self.nest, self.hierarchy, self.least)


def map_timed_op(
    nest: LoopNest,
    hierarchy: Hierarchy,
    ranked: Sequence[tuple[int, Unrolling]],
    options: SearchOptions,
) -> TimedOp:
    """What is to be known of an op before its tiles are mapped; `ranked` are its unrollings."""
    found = []
    if options.objective != "energy":
        chosen = _different(nest, hierarchy, ranked, OF_OPS)
        found = _by_energy(nest, hierarchy, chosen, options, OF_TILES)
    return TimedOp(
        nest=nest,
        hierarchy=hierarchy,
        options=options,
        least=found[0] if found else None,
        patterns=tuple(_pattern(candidate.unrolling) for candidate in found),
    )


def map_timed_tile(
    nest: LoopNest, hierarchy: Hierarchy, options: SearchOptions, op: TimedOp
) -> Mapped | None:
    """A mapping of little energy of a tile of an op; None if none fits.

    A search for the least energy tries what it tries for other cores.
    """
    if nest == op.nest:
        return op.best
    unrollings = _unrollings(nest, hierarchy, op.patterns)
    found = _by_energy(nest, hierarchy, unrollings, options, 1)
    if not found:
        return map_tile(nest, hierarchy, options)
    return _mapped(nest, hierarchy, found[0])


@quickly_made
@dataclass(frozen=True)
class _Candidate:
    """The order of least energy of an unrolling."""

    unrolling: Unrolling
    least: Least


def _mapped(nest: LoopNest, hierarchy: Hierarchy, candidate: _Candidate) -> Mapped:
    least = candidate.least
    setup = Setup(nest, hierarchy, attach(nest, hierarchy, candidate.unrolling))
    if least.figures is not None:
        cost = cost_from(setup, least.figures)
    else:
        cost = cost_of(evaluate_loops(setup, least.loops))
    return Mapped(setup=setup, loops=least.loops, cost=cost, candidates=least.tried)


def _by_energy(
    nest: LoopNest,
    hierarchy: Hierarchy,
    unrollings: Sequence[Unrolling],
    options: SearchOptions,
    most: int,
) -> list[_Candidate]:
    """The `most` best unrollings of those that fit, that of the least energy first."""
    frame = frame_of(nest, hierarchy)
    found: list[_Candidate] = []
    for unrolling in unrollings:
        at_most_pj = found[-1].least.energy_pj if len(found) == most else inf
        if frame is not None:
            least = least_energy(frame, unrolling, options, at_most_pj)
        else:
            least = _least_in_python(nest, hierarchy, unrolling, options, at_most_pj)
        if least is not None:
            # Sorting keeps the order of equals: the most promising ones come first.
            found = sorted(
                [*found, _Candidate(unrolling, least)], key=lambda found: found.least.energy_pj
            )[:most]
    return found


def _least_in_python(
    nest: LoopNest,
    hierarchy: Hierarchy,
    unrolling: Unrolling,
    options: SearchOptions,
    at_most_pj: float,
) -> Least | None:
    """As `least_energy`, without the compiled search."""
    setup = Setup(nest, hierarchy, attach(nest, hierarchy, unrolling))
    factors = loop_factors(setup.spatial.temporal, nest.dims[0][0], options.lpf_limit)
    orders = ascending_orders(factors)
    best = best_candidate(setup, orders, replace(options, objective="energy"), at_most_pj)
    if best is None:
        return None
    batch, column, (energy_pj, _) = best
    return Least(loops_of(batch, column), energy_pj, orders.count)


def _unrollings(
    nest: LoopNest, hierarchy: Hierarchy, patterns: Sequence[Pattern]
) -> list[Unrolling]:
    """The unrollings of a tile that follow patterns, each once."""
    limits, lowest = factor_limits(nest, hierarchy), feeds(nest, hierarchy)
    dims = list(limits)
    found: dict[Unrolling, None] = {}
    for pattern in patterns:
        loops = [
            loop if loop and limits[dim][loop] > 1 else ""
            for dim, loop in zip(dims, pattern, strict=True)
        ]
        found[limited(hierarchy, lowest, filled(nest, limits, loops))] = None
    return list(found)


def _pattern(unrolling: Unrolling) -> Pattern:
    return tuple(pairs[0][0] if pairs else "" for _, pairs in unrolling)


def _different(
    nest: LoopNest,
    hierarchy: Hierarchy,
    ranked: Sequence[tuple[int, Unrolling]],
    most: int,
) -> list[Unrolling]:
    """The most promising unrollings of which no two ask the same of the lowest memories."""
    feeds = list(_lowest_feeds(nest, hierarchy))
    found: dict[tuple[int, ...], Unrolling] = {}
    for steps, unrolling in ranked:
        asked = [
            prod(
                [
                    factor
                    for dim, pairs in unrolling
                    for loop, factor in pairs
                    if loop not in same or dim not in shared
                ]
            )
            for same, shared in feeds
        ]
        found.setdefault((steps, *asked), unrolling)
        if len(found) == most:
            break
    return list(found.values())


def _lowest_feeds(
    nest: LoopNest, hierarchy: Hierarchy
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """For the two lowest memories of every operand: loops and array dims that share elements."""
    for operand in nest.operands:
        shared: tuple[str, ...] = ()
        for level in hierarchy.chains[operand.letter][:2]:
            shared += hierarchy.levels[level][0].served_dims
            yield nest.irrelevant(operand), shared

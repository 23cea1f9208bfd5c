"""Mappings of little energy, for cores whose own model says how long a tile takes.

Loop orders are few: the factors of a loop stand smallest first. Which loops run along the array is
found out for a whole op once, among unrollings that differ in what they ask of the lowest memories;
the tiles of the op then try the best of these.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from tilewright.mapping.attach import Unrolling, attach
from tilewright.mapping.evaluate import Batch, Setup
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.orders import ascending_orders, loop_factors
from tilewright.mapping.search import Mapped, SearchOptions, best_candidate, mapped
from tilewright.mapping.spatial import factor_limits, feeds, limited
from tilewright.mapping.tile_search import filled, map_tile

Pattern = tuple[str, ...]
"""The loop along each array dim; none: an empty name."""

OF_OPS = 6
"""Unrollings that are tried for a whole op."""

OF_TILES = 3
"""Of those, how many are tried for each of its tiles."""


@dataclass(frozen=True, kw_only=True)
class TimedOp:
    """A whole op: its mapping, if one fits, and the patterns that are tried for its tiles."""

    nest: LoopNest
    best: Mapped | None
    patterns: tuple[Pattern, ...]


def map_timed_op(
    nest: LoopNest,
    hierarchy: Hierarchy,
    ranked: Sequence[tuple[int, Unrolling]],
    options: SearchOptions,
) -> TimedOp:
    """What is to be known of an op before its tiles are mapped; `ranked` are its unrollings."""
    if options.objective == "energy":
        return TimedOp(nest=nest, best=map_tile(nest, hierarchy, options), patterns=())
    chosen = _different(nest, hierarchy, ranked, OF_OPS)
    found = _by_energy(nest, hierarchy, chosen, options)
    return TimedOp(
        nest=nest,
        best=found[0].mapped if found else map_tile(nest, hierarchy, options),
        patterns=tuple(_pattern(candidate.unrolling) for candidate in found[:OF_TILES]),
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
    found = _by_energy(nest, hierarchy, unrollings, options)
    return found[0].mapped if found else map_tile(nest, hierarchy, options)


@dataclass(frozen=True)
class _Candidate:
    """The order of least energy of an unrolling."""

    unrolling: Unrolling
    batch: Batch
    column: int
    energy_pj: float
    tried: int

    @property
    def mapped(self) -> Mapped:
        return mapped(self.batch, self.column, self.tried)


def _by_energy(
    nest: LoopNest,
    hierarchy: Hierarchy,
    unrollings: Sequence[Unrolling],
    options: SearchOptions,
) -> list[_Candidate]:
    """The unrollings that fit, that of the least energy first."""
    least = replace(options, objective="energy")
    found = []
    for unrolling in unrollings:
        setup = Setup(nest, hierarchy, attach(nest, hierarchy, unrolling))
        factors = loop_factors(setup.spatial.temporal, nest.dims[0][0], options.lpf_limit)
        orders = ascending_orders(factors)
        best = best_candidate(setup, orders, least)
        if best is not None:
            batch, column, (energy_pj, _) = best
            found.append(_Candidate(unrolling, batch, column, energy_pj, orders.count))
    # Sorting keeps the order of equals: the most promising ones come first.
    return sorted(found, key=lambda candidate: candidate.energy_pj)


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

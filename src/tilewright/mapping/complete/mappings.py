"""From chains of cuts to mappings: loop orders whose levels end at the tiles of a chain.

The relaxed problem leaves the order of the loops between two tiles open; here it is chosen, and the
cost model has the last word.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from tilewright.mapping.allocate import Allocation
from tilewright.mapping.batch import Ints, Orders
from tilewright.mapping.complete.capacity import fits
from tilewright.mapping.complete.relaxation import Relaxation
from tilewright.mapping.evaluate import Batch, Setup, evaluate_allocated

_VARIANTS = 24
"""Orders tried for each chain."""


@dataclass(frozen=True, eq=False)
class Mappings:
    """Orders with the ends of all levels: a mapping per column."""

    orders: Orders
    ends: Mapping[str, Ints]


@dataclass(frozen=True, slots=True)
class _Segment:
    """Loops between two neighbouring tiles of a chain, the best one to be outermost last."""

    tile: int
    loops: tuple[tuple[str, tuple[int, ...]], ...]


def evaluate_mappings(setup: Setup, mappings: Mappings) -> Batch:
    """Cost mappings; what does not fit has infinite cost."""
    fitting = fits(setup, mappings.orders, mappings.ends)
    return evaluate_allocated(setup, mappings.orders, Allocation(mappings.ends, fitting))


def mappings_of(relaxation: Relaxation, chains: Sequence[Ints]) -> Mappings:
    """Some mappings for each chain.

    What counts inside a segment is which loop is outermost: one that moves the operands whose
    levels end there leaves most time to replace their data.
    """
    lattice = relaxation.tables.lattice
    loops, sizes = [], []
    ends: dict[str, list[list[int]]] = {o.letter: [] for o in relaxation.setup.nest.operands}
    for chain in chains:
        segments = _segments(relaxation, chain)
        for choice in islice(_choices(segments), _VARIANTS):
            order: list[tuple[str, int]] = []
            places = {0: 0}
            for segment, outermost in zip(segments, choice, strict=True):
                order += _ordered(segment, outermost)
                places[segment.tile] = len(order)
            order = order or [(lattice.names[0], 1)]
            loops.append([lattice.names.index(name) for name, _ in order])
            sizes.append([float(size) for _, size in order])
            for letter, cuts in _ends(relaxation, chain, places, len(order)):
                ends[letter].append(cuts)
    orders = Orders(lattice.names, _columns(loops), np.ascontiguousarray(np.array(sizes).T))
    return Mappings(orders, {letter: _columns(rows) for letter, rows in ends.items()})


def _columns(rows: Sequence[Sequence[int]]) -> Ints:
    return np.ascontiguousarray(np.array(rows, dtype=np.int64).T)


def _segments(relaxation: Relaxation, chain: Ints) -> list[_Segment]:
    lattice, nest = relaxation.tables.lattice, relaxation.setup.nest
    stationary = {operand.letter: nest.irrelevant(operand) for operand in nest.operands}
    moving = {operand.letter: nest.relevant(operand) for operand in nest.operands}
    ending: dict[int, list[str]] = {}
    tiles = iter(chain)
    for cuts in relaxation.tables.cuts:
        for cut in cuts:
            tile = int(next(tiles))
            ending.setdefault(tile, []).extend([cut.letter] * (cut.arch > 0))
    outwards = sorted({*ending, lattice.size - 1} - {0}, key=lambda t: float(lattice.iterations[t]))
    result = []
    inner = 0
    for tile in outwards:
        counts = lattice.exponents[:, tile] - lattice.exponents[:, inner]
        loops: dict[str, tuple[int, ...]] = {}
        for (name, prime), count in zip(lattice.axes, counts, strict=True):
            if count:
                loops[name] = loops.get(name, ()) + (prime,) * int(count)
        letters = ending.get(tile, [])

        def outermost_last(name: str, letters: list[str] = letters) -> tuple[int, int, str]:
            reusing = sum(name in stationary[letter] for letter in letters)
            return -reusing, sum(name in moving[letter] for letter in letters), name

        ordered = sorted(loops.items(), key=lambda item: outermost_last(item[0]))
        result.append(_Segment(tile, tuple(ordered)))
        inner = tile
    return result


def _choices(segments: Sequence[_Segment]) -> Iterator[tuple[int, ...]]:
    """Numbers of the outermost loop of each segment: the best, then others, few changes first."""
    best = tuple(len(segment.loops) - 1 for segment in segments)
    yield best
    singles = [
        (place, number)
        for place, segment in enumerate(segments)
        for number in range(len(segment.loops) - 2, -1, -1)
    ]
    for place, number in singles:
        yield (*best[:place], number, *best[place + 1 :])
    for i, (place, number) in enumerate(singles):
        for other, second in singles[i + 1 :]:
            if other != place:
                choice = list(best)
                choice[place], choice[other] = number, second
                yield tuple(choice)


def _ordered(segment: _Segment, outermost: int) -> list[tuple[str, int]]:
    names = [*segment.loops[:outermost], *segment.loops[outermost + 1 :], segment.loops[outermost]]
    return [(name, prime) for name, primes in names for prime in primes]


def _ends(
    relaxation: Relaxation, chain: Ints, places: Mapping[int, int], length: int
) -> Iterator[tuple[str, list[int]]]:
    tiles = iter(chain)
    for operand, cuts in zip(relaxation.setup.nest.operands, relaxation.tables.cuts, strict=True):
        positions = {cut.arch: places[int(next(tiles))] for cut in cuts}
        depth = len(relaxation.setup.hierarchy.chains[operand.letter])
        yield operand.letter, [*(positions[level + 1] for level in range(depth - 1)), length]

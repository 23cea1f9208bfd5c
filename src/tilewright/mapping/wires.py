"""What units of an array get together: how the `sharing` of a machine bears on an unrolling.

Windows that are unrolled side by side overlap. A machine whose memories say nothing takes an
element to every unit by itself; with `union` it is read once for all units that want it; wires
along a sum of array dims do the same if the units on a wire, and only those, want one element.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import ceil, prod
from typing import Final

import numpy as np

from tilewright.machine.model import Sharing
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest, NestOperand

EVERY: Final = -1
"""All relations of an operand, as bits by their numbers."""

MOST_UNITS: Final = 2**20
"""Units that are looked at one by one; of a larger array a corner, as many along each dim."""

Terms = tuple[tuple[str, int], ...]
Places = tuple[tuple[str, Terms], ...]
"""Per array dim the loops along it, with their factors."""
Position = tuple[int, ...]


def joined(
    nest: LoopNest, hierarchy: Hierarchy, factors: Mapping[tuple[str, str], float]
) -> dict[str, tuple[int, ...]]:
    """Per operand with windows and arch level, the relations along which an element is read once.

    They are bits by their numbers. `factors` are those of every (array dim, loop).
    """
    result = {}
    for operand in nest.operands:
        if nest.relations_of(operand):
            result[operand.letter] = tuple(
                [
                    0
                    if way is None
                    else EVERY
                    if way.is_union
                    else _on_wires(nest, operand, way, _below(operand, hierarchy, factors, level))
                    for level, way in enumerate(hierarchy.sharing[operand.letter])
                ]
            )
    return result


def misfits(
    nest: LoopNest, hierarchy: Hierarchy, factors: Mapping[tuple[str, str], float]
) -> Iterator[tuple[str, Sharing, str]]:
    """Operands that an unrolling does not let use the wires they have: letter, wires, reason."""
    for operand in nest.operands:
        for level, way in enumerate(hierarchy.sharing[operand.letter]):
            if way is None or way.is_union:
                continue
            places = _wired(way, _below(operand, hierarchy, factors, level))
            units = clash(way.terms, places, axes_of(nest, operand))
            if units is not None:
                first, second = (
                    ", ".join(f"{dim} {at}" for (dim, _), at in zip(places, unit, strict=True))
                    for unit in units
                )
                one = _sum(way, places, units[0]) == _sum(way, places, units[1])
                where = "on one wire want different elements" if one else "want one element"
                yield operand.letter, way, f"units ({first}) and ({second}) {where}"
                break


def _sum(way: Sharing, places: Places, unit: Position) -> int:
    at = dict(zip((dim for dim, _ in places), unit, strict=True))
    return sum(factor * at.get(dim, 0) for dim, factor in way.terms)


def _below(
    operand: NestOperand,
    hierarchy: Hierarchy,
    factors: Mapping[tuple[str, str], float],
    level: int,
) -> Places:
    """What runs along the array dims up to an arch level, in the order of the array."""
    serving = hierarchy.serving[operand.letter]
    places: dict[str, list[tuple[str, int]]] = {
        dim: [] for dim, _ in hierarchy.array.dims if serving[dim] <= level
    }
    for (dim, loop), factor in factors.items():
        if factor > 1 and dim in places:
            places[dim].append((loop, ceil(factor - 1e-9)))
    return tuple((dim, tuple(pairs)) for dim, pairs in places.items() if pairs)


def _wired(way: Sharing, places: Places) -> Places:
    wires = dict(way.terms)
    return tuple((dim, pairs) for dim, pairs in places if dim in wires)


def axes_of(nest: LoopNest, operand: NestOperand) -> tuple[Terms, ...]:
    """The index of an operand: per axis its loops, with their factors."""
    alone = (((loop, 1),) for loop in nest.relevant(operand))
    return (*alone, *(relation.terms for relation in nest.relations_of(operand)))


def _on_wires(nest: LoopNest, operand: NestOperand, way: Sharing, places: Places) -> int:
    """The relations along which wires bring an element once: both loops run along them alone."""
    wired = _wired(way, places)
    apart = {loop for place in places if place not in wired for loop, _ in place[1]}
    mask = sum(
        1 << number
        for number, relation in enumerate(nest.relations_of(operand))
        if not any(loop in apart for loop, _ in relation.terms)
    )
    return mask if mask and clash(way.terms, wired, axes_of(nest, operand)) is None else 0


@lru_cache(maxsize=4096)
def clash(
    terms: Terms, places: Places, axes: tuple[Terms, ...]
) -> tuple[Position, Position] | None:
    """Two units on one wire that want different elements, or on two wires that want the same.

    None if the units on a wire, and only those, want one element. A position has a number for each
    of the `places`.
    """
    if not places:
        return None
    along = int(MOST_UNITS ** (1 / len(places)))
    sizes = [min(prod(factor for _, factor in pairs), along) for _, pairs in places]
    units = np.indices(sizes).reshape(len(sizes), -1)
    at: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = {}
    steps: dict[str, int] = {}
    for (_, pairs), position in zip(places, units, strict=True):
        rest = position
        for loop, factor in pairs:
            step = steps.get(loop, 1)
            rest, digit = rest // factor, rest % factor
            at[loop] = at.get(loop, np.zeros_like(rest)) + digit * step
            steps[loop] = step * factor
    factors, still = dict(terms), np.zeros_like(units[0])
    wire = sum((factors[dim] * row for (dim, _), row in zip(places, units, strict=True)), still)
    element = still
    for axis in axes:
        index = sum((factor * at[loop] for loop, factor in axis if loop in at), still)
        row = np.unique(index, return_inverse=True)[1].reshape(-1)
        element = np.unique(element * MOST_UNITS + row, return_inverse=True)[1].reshape(-1)
    for first, second in ((wire, element), (element, wire)):
        order = np.lexsort((second, first))
        same = first[order[1:]] == first[order[:-1]]
        bad = np.flatnonzero(same & (second[order[1:]] != second[order[:-1]]))
        if bad.size:
            a, b = sorted(order[bad[0] : bad[0] + 2])
            return tuple(units[:, a].tolist()), tuple(units[:, b].tolist())
    return None

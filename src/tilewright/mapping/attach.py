"""A spatial unrolling attached to memory levels: what is unrolled below which memory.

Arch level 0 of an operand is what its lowest memory feeds at once; level l + 1 holds the loops over
which memory l is replicated. An unrolling that does not divide its loop is *fractional*: K = 1000
over 32 units runs 32 times with 31.25 units busy on average. Energy and capacity follow the
fractional factors, transfers and time the whole ones.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.wires import joined

Unrolling = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""Per array dim, the loops that run along it, with their factors."""
Levels = tuple[tuple[tuple[str, float], ...], ...]
"""Unrolled loops per arch level."""


@dataclass(frozen=True)
class Spatial:
    """An unrolling with its factors per operand and arch level, and the loops left to time."""

    unrolling: Unrolling
    fractional: Mapping[str, Levels]
    whole: Mapping[str, Levels]
    temporal: tuple[tuple[str, int], ...]
    drain_cycles: int
    joined: Mapping[str, tuple[int, ...]]
    """What units get together, see `wires.joined`."""


def attach(
    nest: LoopNest, hierarchy: Hierarchy, unrolling: Unrolling, *, round_off: bool = False
) -> Spatial:
    """Spread an unrolling over the levels of every operand.

    With `round_off`, the quotient of two floats that lies just above a whole number costs a pass
    more, as in ZigZag: K = 75 on 12 lanes then takes 8 passes, not 7.
    """
    factors = fractional_factors(nest, hierarchy, unrolling)
    whole = {place: float(int(factor)) for place, factor in factors.items()}
    letters = [operand.letter for operand in nest.operands]
    fractional = {letter: levels_of(letter, hierarchy, factors) for letter in letters}
    rounded = (
        fractional
        if whole == factors
        else {letter: levels_of(letter, hierarchy, whole) for letter in letters}
    )
    first_input = nest.operands[min(1, len(nest.operands) - 1)].letter
    return Spatial(
        unrolling=unrolling,
        fractional=fractional,
        whole=rounded,
        temporal=_temporal_loops(nest, fractional[first_input], 0.0 if round_off else 1e-9),
        drain_cycles=sum(
            max(math.ceil(math.prod(f for _, f in pairs)) - 1, 0)
            for dim, pairs in unrolling
            if dim in hierarchy.array.systolic_dims
        ),
        joined=joined(nest, hierarchy, factors),
    )


def fractional_factors(
    nest: LoopNest, hierarchy: Hierarchy, unrolling: Unrolling
) -> dict[tuple[str, str], float]:
    """The factor of every (array dim, loop); one array dim of each loop takes up the remainder."""
    widths = hierarchy.array.sizes
    clamped = {
        (dim, loop): min(factor, widths[dim]) for dim, pairs in unrolling for loop, factor in pairs
    }
    widest: dict[str, tuple[int, str]] = {}
    for (dim, loop), factor in clamped.items():
        if loop not in widest or factor > widest[loop][0]:
            widest[loop] = factor, dim
    done: dict[str, float] = {}
    result: dict[tuple[str, str], float] = {}
    for (dim, loop), factor in clamped.items():
        earlier = done.get(loop, 1.0)
        exact: float = factor
        if widest[loop][1] == dim:
            size = nest.sizes[loop]
            exact = size / math.ceil(size / (factor * earlier)) / earlier
        result[(dim, loop)] = exact
        done[loop] = earlier * exact
    return result


def levels_of(
    letter: str, hierarchy: Hierarchy, factors: Mapping[tuple[str, str], float]
) -> Levels:
    """The loops that are unrolled at each level; one on several array dims has the product."""
    serving = hierarchy.serving[letter]
    levels: list[dict[str, float]] = [{} for _ in range(len(hierarchy.chains[letter]) + 1)]
    for (dim, loop), factor in factors.items():
        level = levels[serving[dim]]
        level[loop] = level.get(loop, 1.0) * factor
    return tuple([tuple(level.items()) for level in levels])


def _temporal_loops(
    nest: LoopNest, levels: Levels, tolerance: float
) -> tuple[tuple[str, int], ...]:
    """Loops left after unrolling."""
    sizes = dict(nest.dims)
    for level in levels:
        for loop, factor in level:
            if sizes[loop] > 1:
                sizes[loop] = math.ceil(sizes[loop] / factor - tolerance)
    return tuple((loop, size) for loop, size in sizes.items() if size > 1)

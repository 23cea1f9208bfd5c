"""Capacity: the bits a mapping needs of every memory, and whether it fits.

Levels may end anywhere. As the cost model merges loops that an operand does not depend on into the
level below, so does this: a result is wide in a memory only if something is added to it after the
level below has ended, loops merged into that level included. All that LOMA's greedy allocation
accepts fits, and more.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.mapping.batch import Bools, Floats, Ints, Orders, tensor_elements
from tilewright.mapping.complete.tiles import Lattice
from tilewright.mapping.evaluate import Setup
from tilewright.mapping.nest import NestOperand
from tilewright.mapping.revisits import revisits_from

TOLERANCE = 1e-9
"""Relative: a product of fractional factors may be off in its last bits."""


@dataclass(frozen=True, eq=False)
class Need:
    """Bits one operand needs of the memory of a level, by the tile inside the level's end."""

    memory: int
    wide: Floats
    """With partial sums, as long as something will be added; for inputs the same as `narrow`."""
    narrow: Floats
    """With final results."""


@dataclass(frozen=True, eq=False)
class Capacity:
    """Needs per operand and level, and the sizes of the memories in bits."""

    needs: tuple[tuple[Need, ...], ...]
    sizes: Floats
    unfinished: Bools
    """Tiles after which something is still added to the result."""


def capacity_of(setup: Setup, lattice: Lattice) -> Capacity:
    """Tabulate what every level needs for every tile."""
    extents = {name: lattice.extents[i][None] for i, name in enumerate(lattice.names)}
    needs = []
    for operand in setup.nest.operands:
        levels = []
        for level, memory in enumerate(setup.hierarchy.chains[operand.letter]):
            wide, narrow = _bits(setup, operand, level, extents)
            levels.append(Need(memory, np.ascontiguousarray(wide[0]), narrow[0]))
        needs.append(tuple(levels))
    summed = setup.nest.irrelevant(setup.nest.operands[0])
    open_loops = [i for i, name in enumerate(lattice.names) if name in summed]
    below = lattice.extents[open_loops] < lattice.extents[open_loops, -1:]
    unfinished: Bools = np.any(below, axis=0)
    return Capacity(tuple(needs), memory_sizes(setup), unfinished)


def memory_sizes(setup: Setup) -> Floats:
    """Bits of every level's memory, with what round-off may add."""
    return np.array([m.size_bits * (1 + TOLERANCE) for m, _ in setup.hierarchy.levels])


def fits(setup: Setup, orders: Orders, ends: Mapping[str, Ints]) -> Bools:
    """Which orders with the given level ends fit all memories, (N,)."""
    sizes = memory_sizes(setup)
    used = np.zeros((sizes.size, orders.count))
    columns = orders.columns
    for operand in setup.nest.operands:
        stationary = orders.is_one_of(setup.nest.irrelevant(operand))
        last = _last_place(stationary)
        begin = np.zeros(orders.count, dtype=np.int64)
        for level, memory in enumerate(setup.hierarchy.chains[operand.letter]):
            end = ends[operand.letter][level]
            extents = {name: values[end, columns][None] for name, values in orders.extents.items()}
            wide, narrow = _bits(setup, operand, level, extents)
            is_wide = (last >= begin) | _revisited(setup, operand, orders, (level, begin))
            used[memory] += np.where(is_wide, wide[0], narrow[0])
            begin = _merged(stationary, end)
    result: Bools = np.all(used <= sizes[:, None], axis=0)
    return result


def _revisited(
    setup: Setup, operand: NestOperand, orders: Orders, place: tuple[int, Ints]
) -> Bools:
    """Whether loops from a level's begin on return to results of a nest that scatters, (N,)."""
    level, begin = place
    levels = setup.spatial.fractional[operand.letter][: level + 1]
    result = np.zeros(orders.count, dtype=np.bool_)
    for relation in setup.nest.relations_of(operand) if operand.letter == "O" else ():
        if not relation.is_zigzags:
            result |= revisits_from(relation, setup.nest.sizes, orders, begin, levels)
    return result


def _merged(stationary: Bools, ends: Ints) -> Ints:
    """Ends moved outwards over all loops that the operand does not depend on."""
    merged = ends.copy()
    for place in range(stationary.shape[0]):
        merged += (merged == place) & stationary[place]
    return merged


def _last_place(marks: Bools) -> Ints:
    length = marks.shape[0]
    last: Ints = np.where(marks.any(axis=0), length - 1 - np.argmax(marks[::-1], axis=0), -1)
    return last


def _bits(
    setup: Setup, operand: NestOperand, level: int, extents: Mapping[str, Floats]
) -> tuple[Floats, Floats]:
    """Bits that a level needs, wide and narrow, (1, N)."""
    nest, levels = setup.nest, setup.spatial.fractional[operand.letter]
    shape = next(iter(extents.values())).shape
    whole = dict(setup.spatial.temporal)
    elements = tensor_elements(nest, operand, _unrolled(extents, levels[: level + 1]), shape)
    everything = {loop: np.full((1, 1), float(whole.get(loop, 1))) for loop in extents}
    most = tensor_elements(nest, operand, _unrolled(everything, levels[: level + 1]), (1, 1))
    if setup.hierarchy.memory(operand.letter, level).forces_double_buffering:
        elements = np.where(elements < most * (1 - TOLERANCE), elements * 2, elements)
    summed_above = any(
        loop in nest.irrelevant(operand) for loops in levels[level + 1 :] for loop, _ in loops
    )
    is_result = operand.letter == "O"
    final = nest.final_bits if is_result and not summed_above else operand.bits
    return elements * operand.bits, elements * final


def _unrolled(
    extents: Mapping[str, Floats], levels: tuple[tuple[tuple[str, float], ...], ...]
) -> dict[str, Floats]:
    """Extents with unrolled factors; a product that should be whole is not just below it."""
    result = dict(extents)
    for loops in levels:
        for loop, factor in loops:
            result[loop] = result[loop] * factor if loop in result else np.full((1, 1), factor)
    return {loop: values * (1 + TOLERANCE / 1000) for loop, values in result.items()}

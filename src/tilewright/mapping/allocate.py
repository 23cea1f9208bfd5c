"""Where the loops of an order go: bottom-up, each memory takes what saves most traffic above it.

An allocation gives every operand, at each of its levels, the position in the order up to which the
loops belong to that level or a lower one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.mapping.attach import Levels, Spatial
from tilewright.mapping.batch import Bools, Floats, Ints, Orders, tensor_elements
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest, NestOperand
from tilewright.mapping.revisits import revisits_from


@dataclass(frozen=True, eq=False)
class Allocation:
    """Ends of every level per operand, (levels, N); `fits` marks the candidates that have one."""

    ends: Mapping[str, Ints]
    fits: Bools


@dataclass(frozen=True, eq=False)
class _Choice:
    """What one operand may take at a memory: cuts with their sizes and costs, (choices, N)."""

    cuts: Ints
    bits: Floats
    cost: Floats


def allocate(
    nest: LoopNest, hierarchy: Hierarchy, spatial: Spatial, orders: Orders, *, even: bool = False
) -> Allocation:
    """Allocate every order greedily, as LOMA does.

    With `even`, a loop goes to the same memory for all operands that the memory holds.
    """
    growths = {
        o.letter: _Growth(nest, o, orders, spatial.fractional[o.letter]) for o in nest.operands
    }
    start: dict[str, Ints] = {
        o.letter: np.zeros(orders.count, dtype=np.int64) for o in nest.operands
    }
    ends: dict[str, list[Ints]] = {o.letter: [] for o in nest.operands}
    fits = np.ones(orders.count, dtype=np.bool_)
    for index, (memory, letters) in enumerate(hierarchy.levels):
        choices = []
        for letter in letters:
            level = len(ends[letter])
            is_top = hierarchy.chains[letter][-1] == index
            held = growths[letter].elements(level, start[letter])
            bits = held * _bits(nest, spatial, orders, letter, (level, start[letter]))
            if memory.forces_double_buffering:
                bits = _doubled(bits)
            choice, possible = _choice(orders, bits, start[letter], memory.size_bits, is_top=is_top)
            fits &= possible
            choices.append(choice)
        starts = [start[letter] for letter in letters]
        taken, possible = _best(choices, starts, memory.size_bits, even=even)
        fits &= possible
        for letter, cuts in zip(letters, taken, strict=True):
            start[letter] = cuts
            ends[letter].append(cuts)
            if hierarchy.chains[letter][-1] == index:
                fits &= cuts == orders.length
    return Allocation({letter: np.array(cuts) for letter, cuts in ends.items()}, fits)


class _Growth:
    """Elements of an operand as its levels fill, exact to the last bit of the product.

    A fractional factor (15.873 units) makes a product depend on the order of its factors, and what
    should cost the same then does not quite. Such loops are multiplied in the order in which they
    are allocated: level by level what is unrolled there, then the loops taken in time.
    """

    def __init__(
        self, nest: LoopNest, operand: NestOperand, orders: Orders, levels: Levels
    ) -> None:
        self.nest, self.operand, self.orders, self.levels = nest, operand, orders, levels
        self.whole: dict[str, float] = {}
        self.uneven: dict[str, Floats] = {
            loop: np.ones((orders.length + 1, orders.count))
            for level in levels
            for loop, factor in level
            if factor != int(factor)
        }

    def elements(self, level: int, start: Ints) -> Floats:
        """Elements at a level for every cut, (n + 1, N); to be called level by level."""
        here = dict(self.levels[level])
        for loop, factor in here.items():
            if loop not in self.uneven:
                self.whole[loop] = self.whole.get(loop, 1.0) * factor
        extents = dict(self.orders.extents)
        for loop, factor in self.whole.items():
            extents[loop] = extents[loop] * factor if loop in extents else np.full((1, 1), factor)
        for loop, before in self.uneven.items():
            value = before[start, self.orders.columns] * here.get(loop, 1.0)
            self.uneven[loop] = self._onward(loop, value, start)
        shape = (self.orders.length + 1, self.orders.count)
        return tensor_elements(self.nest, self.operand, extents | self.uneven, shape)

    def _onward(self, loop: str, value: Floats, start: Ints) -> Floats:
        """Products with the loop's factors from `start` on, one after the other."""
        orders = self.orders
        result = np.empty((orders.length + 1, orders.count))
        result[0] = value
        mine = orders.is_one_of([loop])
        for place in range(orders.length):
            taken = mine[place] & (place >= start)
            value = np.where(taken, value * orders.sizes[place], value)
            result[place + 1] = value
        return result


def _bits(
    nest: LoopNest, spatial: Spatial, orders: Orders, letter: str, where: tuple[int, Ints]
) -> Floats | int:
    """Bits per element: a result is wide as long as anything is still to be added to it.

    ZigZag gives results that its own rule calls sums no more room for that.
    """
    operand = next(o for o in nest.operands if o.letter == letter)
    if letter != "O" or operand.bits == nest.final_bits:
        return operand.bits
    level, start = where
    summed = nest.irrelevant(operand)
    levels = spatial.fractional[letter]
    above = [loop for loops in levels[level + 1 :] for loop, _ in loops]
    if any(loop in summed for loop in above):
        return operand.bits
    last = _last_place(orders.is_one_of(summed))
    wide = last >= start
    for relation in nest.relations_of(operand):
        if not relation.is_zigzags:
            wide |= revisits_from(relation, nest.sizes, orders, start, levels[: level + 1])
    return np.where(wide, float(operand.bits), float(nest.final_bits))


def _last_place(marks: Bools) -> Ints:
    """The last position with a mark in every column, or -1."""
    length = marks.shape[0]
    found: Ints = np.where(marks.any(axis=0), length - 1 - np.argmax(marks[::-1], axis=0), -1)
    return found


def _doubled(bits: Floats) -> Floats:
    """Twice the size wherever something is left to load, as forced double buffering needs."""
    whole = bits[-1]
    result = np.where(bits < whole, bits * 2, bits)
    result[-1] = whole
    return result


def _choice(
    orders: Orders, bits: Floats, start: Ints, capacity: int, *, is_top: bool
) -> tuple[_Choice, Bools]:
    """The cuts an operand may take; at its top memory only the longest that fits, free of cost."""
    positions = np.arange(orders.length + 1)[:, None]
    reachable = np.logical_and.accumulate((bits <= capacity) | (positions < start), axis=0)
    allowed = reachable & (positions >= start)
    columns = orders.columns
    possible: Bools = allowed[start, columns]
    if is_top:
        cuts = np.where(possible, _last_place(allowed), start)
        size = bits[cuts, columns]
        return _Choice(cuts[None], size[None], np.zeros((1, orders.count))), possible
    left = orders.iterations[-1] / orders.iterations
    cost = np.where(allowed, bits * left, np.inf)
    cuts = np.broadcast_to(positions, bits.shape)
    return _Choice(cuts, np.where(allowed, bits, np.inf), cost), possible


def _best(
    choices: Sequence[_Choice], starts: Sequence[Ints], capacity: int, *, even: bool
) -> tuple[list[Ints], Bools]:
    """The combination of cuts of least cost that fits together; among equals the last one."""
    count = choices[0].cuts.shape[1]
    bits, cost = np.zeros((1, count)), np.zeros((1, count))
    least = np.zeros(count)
    for choice in choices:
        bits = (bits[:, None] + choice.bits[None]).reshape(-1, count)
        cost = (cost[:, None] + choice.cost[None]).reshape(-1, count)
        least = least + np.min(choice.bits, axis=0)
    allowed = bits <= capacity
    if even and len(choices) > 1:
        allowed &= _together(choices, starts)
    cost = np.where(allowed, cost, np.inf)
    picked = cost.shape[0] - 1 - np.argmin(cost[::-1], axis=0)
    any_allowed = np.isfinite(cost[picked, np.arange(count)])
    taken: list[Ints] = []
    for choice, start in zip(reversed(choices), reversed(starts), strict=True):
        picked, place = np.divmod(picked, choice.cuts.shape[0])
        taken.append(np.where(any_allowed, choice.cuts[place, np.arange(count)], start))
    return taken[::-1], least <= capacity


def _together(choices: Sequence[_Choice], starts: Sequence[Ints]) -> Bools:
    """Combinations in which no loop is taken for one operand and left for another."""
    lengths = [choice.cuts.shape[0] for choice in choices]
    grid = np.indices(lengths).reshape(len(lengths), -1)
    cuts = [choice.cuts[place] for choice, place in zip(choices, grid, strict=True)]
    result = np.ones(cuts[0].shape, dtype=np.bool_)
    for i, mine in enumerate(cuts):
        for j, other in enumerate(cuts):
            if i != j:
                result &= mine <= np.maximum(starts[i], other)
    return result

"""Partial sums of a nest that scatters, as ZigZag 3.9.1 has them.

ZigZag takes every loop of a relation apart: into one that walks through the elements of the result,
and one that meets them again, by which the points for each element grow. Three habits make this
another rule than that of `revisits.py`. The fractions of unrolled loops are cut off from the
elements and not from the points. The padding of the target counts as if its elements had been met
before. And whether sums come back depends on single loops, but their width on how much the points
for each element grow in all, which may be less than nothing.
"""

from collections.abc import Sequence
from math import gcd, prod

import numpy as np

from tilewright.mapping.attach import Levels
from tilewright.mapping.batch import Bools, Floats, Ints, Orders, tensor_elements
from tilewright.mapping.nest import LoopNest, NestOperand, Relation


def zigzags_sums(
    nest: LoopNest, orders: Orders, begins: Sequence[Ints], levels: Levels
) -> tuple[Bools, Bools]:
    """Whether sums come back to each level of the result, and move there in full width.

    Both are (levels, N). What is unrolled at a level lies within its begin.
    """
    result = nest.operands[0]
    walk = _Walk(nest, result, orders)
    walk.unroll(levels[0])
    ends = [*begins[1:], np.full(orders.count, orders.length)]
    returns, growths = [], []
    for level, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        walk.start()
        for place in range(orders.length):
            walk.step(place, (begin <= place) & (place < end))
        walk.unroll(levels[level + 1])
        returns.append(walk.returns)
        growths.append(walk.growth)
    whole = {loop: np.full((1, 1), float(size)) for loop, size in nest.dims}
    elements = float(tensor_elements(nest, result, whole, (1, 1))[0, 0])
    again = [np.trunc(elements * (prod(growths[level:]) - 1)) for level in range(len(begins))]
    from_here = np.logical_or.accumulate(np.array(returns)[::-1])[::-1]
    return from_here, np.array(again) != 0


class _Walk:
    """How the points for each element of the result grow, loop by loop, for N candidates."""

    def __init__(self, nest: LoopNest, result: NestOperand, orders: Orders) -> None:
        self.orders = orders
        self.summed = nest.irrelevant(result)
        self.relations = nest.relations_of(result)
        self.lengths = {
            loop: np.ones(orders.count) for relation in self.relations for loop, _ in relation.terms
        }
        self.reuses = [np.ones(orders.count) for _ in self.relations]
        self.start()

    def start(self) -> None:
        """From here on `returns` and `growth` are those of the next level."""
        self.returns = np.zeros(self.orders.count, dtype=np.bool_)
        self.growth = np.ones(self.orders.count)

    def unroll(self, loops: Sequence[tuple[str, float]]) -> None:
        """Take the loops that are unrolled at a level, for all candidates."""
        for loop, factor in loops:
            self._take(loop, np.full(self.orders.count, factor))

    def step(self, place: int, taken: Bools) -> None:
        """Take the loops at a place of the orders, for the candidates that have it here."""
        for number, loop in enumerate(self.orders.names):
            mine = taken & (self.orders.loops[place] == number)
            if mine.any():
                self._take(loop, np.where(mine, self.orders.sizes[place], 1.0))

    def _take(self, loop: str, factor: Floats) -> None:
        if loop in self.summed:
            self._grow(factor)
        if loop not in self.lengths:
            return
        self.lengths[loop] = self.lengths[loop] * factor
        for number, relation in enumerate(self.relations):
            if loop in dict(relation.terms):
                reuse = self._reuse(relation)
                self._grow(reuse / self.reuses[number])
                self.reuses[number] = reuse

    def _grow(self, factor: Floats) -> None:
        self.growth = self.growth * factor
        self.returns = self.returns | (factor > 1)

    def _reuse(self, relation: Relation) -> Floats:
        (a, ca), (b, cb) = relation.terms
        step = gcd(ca, cb)
        first, second = np.trunc(self.lengths[a]), np.trunc(self.lengths[b])
        again = np.maximum(0, second - ca // step) * (first - cb // step)
        elements = np.minimum(first * second - again, relation.size)
        result: Floats = self.lengths[a] * self.lengths[b] / elements
        return result

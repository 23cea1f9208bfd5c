"""Which loops of a nest that scatters return to elements of the result that were met before.

With `OX = 2*IX + 1*FX` two taps never meet: each result is written once, in whatever order the
loops run. With three taps every second result belongs to two inputs, and is a partial sum until the
later of them has come.
"""

from collections.abc import Mapping, Sequence
from math import gcd, prod

import numpy as np

from tilewright.mapping.attach import Levels
from tilewright.mapping.batch import Bools, Floats, Ints, Orders
from tilewright.mapping.nest import Relation


def reuse(relation: Relation, first: Floats, second: Floats) -> Floats:
    """How often an element of the target is met, on average, by loops that are so long.

    >>> ox = Relation("OX", (("IX", 2), ("FX", 1)), 22)
    >>> reuse(ox, np.array([10.0, 10.0]), np.array([2.0, 3.0])) == (1, 30 / 21)
    array([ True,  True])
    """
    (_, ca), (_, cb) = relation.terms
    step = gcd(ca, cb)
    points = first * second
    again = np.maximum(0, first - cb // step) * np.maximum(0, second - ca // step)
    result: Floats = points / (points - again)
    return result


def least_reuse(relation: Relation, sizes: Mapping[str, int]) -> float:
    """The least reuse of loops outside of which no other returns; less, and some does."""
    (a, _), (b, _) = relation.terms
    whole = reuse(relation, np.array(float(sizes[a])), np.array(float(sizes[b])))
    # A fraction of the units times the passes is not always quite the whole loop.
    return float(whole) * (1 - 1e-9)


def revisits(
    relation: Relation,
    sizes: Mapping[str, int],
    orders: Orders,
    begins: Sequence[Ints],
    levels: Levels,
) -> Bools:
    """Whether loops from the begin of each level on return to elements met before, (levels, N).

    What is unrolled at a level lies within its begin.
    """
    result = np.empty((len(begins), orders.count), dtype=np.bool_)
    for level, begin in enumerate(begins):
        result[level] = revisits_from(relation, sizes, orders, begin, levels[: level + 1])
    return result


def revisits_from(
    relation: Relation, sizes: Mapping[str, int], orders: Orders, begin: Ints, levels: Levels
) -> Bools:
    """Whether loops from a begin on return to elements met before, (N,).

    The levels are those whose unrolled loops lie within the begin.
    """
    first, second = (
        prod(f for loops in levels for n, f in loops if n == loop)
        * _extents(orders, loop)[begin, orders.columns]
        for loop, _ in relation.terms
    )
    result: Bools = reuse(relation, first, second) < least_reuse(relation, sizes)
    return result


def _extents(orders: Orders, loop: str) -> Floats:
    if loop in orders.extents:
        return orders.extents[loop]
    return np.ones((orders.length + 1, orders.count))

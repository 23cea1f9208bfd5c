"""Whether an index takes every value below a size: against going through all points."""

from itertools import product
from random import Random

from tilewright.network.graph import Index
from tilewright.program.needed import takes_all


def by_going_through(axis: Index, size: int, sizes: dict[str, int]) -> bool:
    steps = [[factor * step for step in range(sizes[dim])] for dim, factor in axis.terms]
    lowest = [axis.offset + sum(point) for point in product(*steps)]
    touched = [low + reach for low in lowest for reach in range(axis.reach + 1)]
    return {at * axis.divisor for at in range(size)} <= set(touched)


def test_windows_with_strides_dilations_and_padding_reach_what_their_points_do() -> None:
    chance = Random(7)
    found = {True: 0, False: 0}
    for _ in range(2_000):
        dims = ("A", "B", "C")[: chance.randint(0, 3)]
        sizes = {dim: chance.randint(1, 5) for dim in dims}
        terms = tuple((dim, chance.choice((1, 1, 2, 3, 4, 6, -1))) for dim in dims)
        axis = Index(terms=terms, offset=chance.randint(-3, 1))
        size = chance.randint(1, 14)
        expected = by_going_through(axis, size, sizes)
        assert takes_all(axis, size, sizes) == expected
        found[expected] += 1
    assert min(found.values()) > 200


def test_windows_of_one_element_reach_what_their_points_do() -> None:
    chance = Random(8)
    found = {True: 0, False: 0}
    for _ in range(1_000):
        divisor = chance.randint(2, 4)
        terms = (("A", chance.randint(1, 4)),)
        reach = chance.choice((0, divisor - 1))
        axis = Index(terms, chance.randint(-4, 1), divisor, reach)
        sizes, size = {"A": chance.randint(1, 12)}, chance.randint(1, 5)
        expected = by_going_through(axis, size, sizes)
        assert takes_all(axis, size, sizes) == expected
        found[expected] += 1
    assert min(found.values()) > 200

"""Whether an index takes every value below a size: against going through all points."""

from itertools import product
from random import Random

from tilewright.network.graph import Index
from tilewright.program.bounds import _reaches_all


def by_going_through(axis: Index, size: int, sizes: dict[str, int]) -> bool:
    steps = [[factor * step for step in range(sizes[dim])] for dim, factor in axis.terms]
    return set(range(size)) <= {axis.offset + sum(point) for point in product(*steps)}


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
        assert _reaches_all(axis, size, sizes) == expected
        found[expected] += 1
    assert min(found.values()) > 200

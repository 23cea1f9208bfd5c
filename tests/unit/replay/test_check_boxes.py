"""Many boxes at once: which of them overlap, and what they leave of another."""

import random
from itertools import product

import pytest

from tilewright.program.model import Box
from tilewright.replay.check_boxes import fill, overlapping_pairs, uncovered, volume


def points(box: Box) -> set[tuple[int, ...]]:
    return set(product(*(range(begin, end) for begin, end in box)))


def random_box(generator: random.Random, shape: tuple[int, ...]) -> Box:
    begins = [generator.randrange(size) for size in shape]
    return tuple(
        (begin, generator.randint(begin + 1, min(begin + 3, size)))
        for begin, size in zip(begins, shape, strict=True)
    )


@pytest.mark.parametrize("seed", range(30))
def test_pairs_among_many_are_those_with_a_point_in_common_in_order(seed: int) -> None:
    generator = random.Random(seed)
    shape = generator.choice([(60,), (12, 9), (1, 9, 7), (5, 4, 6)])
    boxes = [random_box(generator, shape) for _ in range(50)]
    inside = [points(box) for box in boxes]
    expected = [(i, j) for i in range(50) for j in range(i + 1, 50) if inside[i] & inside[j]]
    assert overlapping_pairs(boxes) == expected


def tiles() -> list[Box]:
    """All of a grid of 8 by 6 in 24 tiles, in an order of their own."""
    grid: list[Box] = [((x, x + 2), (y, y + 1)) for x, y in product(range(0, 8, 2), range(6))]
    random.Random(1).shuffle(grid)
    return grid


def test_tiles_that_fill_a_box_leave_nothing_of_it() -> None:
    whole = ((0, 8), (0, 6))
    assert fill(whole, tiles())
    assert uncovered(whole, tiles()) == []


@pytest.mark.parametrize("lost", range(24))
def test_without_one_tile_others_twice_or_outside_do_not_fill_the_box(lost: int) -> None:
    whole, grid = ((0, 8), (0, 6)), tiles()
    (begin, end), row = grid[lost]
    others = [*grid[:lost], *grid[lost + 1 :]]
    # In the second and the third case the number of points is right.
    for wrong in ([], [others[0]], [((begin + 8, end + 8), row)]):
        boxes = [*others, *wrong]
        assert not fill(whole, boxes)
        left = uncovered(whole, boxes)
        assert sum(map(volume, left)) == 2
        assert set().union(*map(points, left)) == points(grid[lost])

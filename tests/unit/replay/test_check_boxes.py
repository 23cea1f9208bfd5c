"""Many boxes at once: which of them overlap, and what they leave of another."""

import random
from itertools import product

import numpy as np
import pytest

from tilewright.program.model import Box
from tilewright.replay import check_boxes
from tilewright.replay.check_boxes import (
    FEW_BOXES,
    are_outside,
    box_array,
    box_at,
    fill,
    is_full,
    meeting_within,
    overlapping_pairs,
    pairs_before,
    uncovered,
    volume,
)


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


@pytest.mark.parametrize("at_a_time", [1, 3, 1 << 20])
@pytest.mark.parametrize("seed", range(20))
def test_all_pairs_come_in_order_however_many_at_a_time(
    seed: int, at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_boxes, "MOST_PAIRS", at_a_time)
    generator = random.Random(seed)
    stops = [generator.randint(0, 12) for _ in range(12)]
    found = [
        pair
        for i, j in pairs_before(np.array(stops, dtype=np.int64))
        for pair in zip(i.tolist(), j.tolist(), strict=True)
    ]
    assert found == [(i, j) for i, stop in enumerate(stops) for j in range(i + 1, stop)]


@pytest.mark.parametrize("count", [FEW_BOXES, FEW_BOXES + 1])
def test_boxes_outside_another_are_found_few_or_many(count: int) -> None:
    inside: Box = ((2, 4), (0, 3))
    others: list[Box] = [((1, 3), (0, 3)), ((2, 5), (0, 3)), ((4, 2), (0, 3)), ((2, 4), (0, 4))]
    for other in others:
        boxes = [*[inside] * (count - 1), other]
        assert are_outside(((2, 4), (0, 3)), boxes) == [*[False] * (count - 1), True]


def test_boxes_with_fewer_axes_are_in_an_array_as_they_were() -> None:
    boxes: list[Box] = [((1, 2), (3, 5)), (), ((7, 9),)]
    array = box_array(boxes, 3)
    assert array[:, :, 1].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert [box_at(array, at, len(box)) for at, box in enumerate(boxes)] == boxes


def test_a_box_is_full_if_its_parts_have_all_its_elements() -> None:
    box: Box = ((0, 4), (2, 6))
    assert is_full(box, [((0, 9), (0, 9))])
    assert is_full(box, [((0, 4), (0, 3)), ((0, 2), (3, 9)), ((2, 5), (3, 6))])
    assert not is_full(box, [((0, 4), (0, 3)), ((0, 2), (3, 9)), ((2, 5), (3, 5))])
    assert not is_full(box, [((0, 4), (3, 6))])


def test_boxes_without_axes_all_meet_those_of_their_group() -> None:
    groups = np.array([0, 1, 0, 1, 1])
    found = meeting_within(groups, box_array([()] * len(groups), 0))
    pairs = {
        tuple(sorted(pair)) for i, j in found for pair in zip(i.tolist(), j.tolist(), strict=True)
    }
    assert pairs == {(0, 2), (1, 3), (1, 4), (3, 4)}

"""Boxes of the checker, against masks of all elements."""

import random

import numpy as np
import pytest

from tilewright.program.model import Box
from tilewright.replay.check_boxes import minus, overlapping_pairs, reshaped, uncovered, volume


def random_box(generator: random.Random, shape: tuple[int, ...]) -> Box:
    ends = [sorted(generator.sample(range(size + 1), 2)) for size in shape]
    return tuple((begin, end) for begin, end in ends)


def mask(
    boxes: list[Box], shape: tuple[int, ...]
) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    """How many of the boxes hold each element."""
    counts = np.zeros(shape, dtype=np.int64)
    for box in boxes:
        counts[tuple(slice(*ends) for ends in box)] += 1
    return counts


def grouped(generator: random.Random, factors: list[int]) -> tuple[int, ...]:
    """The factors multiplied up into axes."""
    axes, axis = [], 1
    for factor in factors:
        axis *= factor
        if generator.random() < 0.6:
            axes.append(axis)
            axis = 1
    return (*axes, axis)


@pytest.mark.parametrize("seed", range(300))
def test_a_box_under_another_shape_has_the_same_elements(seed: int) -> None:
    generator = random.Random(seed)
    factors = [generator.choice([1, 2, 3, 4]) for _ in range(generator.randint(1, 4))]
    shape = grouped(generator, factors)
    generator.shuffle(factors)
    target = grouped(generator, factors)
    box = random_box(generator, shape)
    found = mask(reshaped(box, shape, target), target)
    assert (found == mask([box], shape).reshape(target)).all()


@pytest.mark.parametrize("seed", range(100))
def test_what_is_left_of_a_box_is_what_no_other_holds(seed: int) -> None:
    generator = random.Random(seed)
    shape = tuple(generator.randint(1, 5) for _ in range(generator.randint(0, 3)))
    box, *holes = (random_box(generator, shape) for _ in range(generator.randint(1, 4)))
    left = mask(uncovered(box, holes), shape)
    assert (left == (mask([box], shape) > 0) * (mask(holes, shape) == 0)).all()
    assert sum(volume(part) for hole in holes[:1] for part in minus(box, hole)) == sum(
        int(((mask([box], shape) == 1) & (mask([hole], shape) == 0)).sum()) for hole in holes[:1]
    )


@pytest.mark.parametrize("seed", range(50))
def test_pairs_that_overlap_are_those_with_an_element_in_common(seed: int) -> None:
    generator = random.Random(seed)
    shape = tuple(generator.randint(1, 6) for _ in range(generator.randint(0, 3)))
    boxes = [random_box(generator, shape) for _ in range(generator.randint(0, 7))]
    masks = [mask([box], shape) for box in boxes]
    expected = [(i, j) for j in range(len(boxes)) for i in range(j) if (masks[i] * masks[j]).any()]
    assert sorted(overlapping_pairs(boxes)) == sorted(expected)

"""What a tile of an op needs of an operand, against a walk over its points."""

import random
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from tilewright.network.graph import Index, Op, Operand, Tensor
from tilewright.program.model import Box
from tilewright.replay.check_boxes import box_array, boxes_at
from tilewright.replay.check_tiles import needed_boxes, needed_by_tile

SIZES = {"OY": 6, "FY": 3, "K": 4}


def op_reading(index: tuple[Index, ...] | None) -> tuple[Operand, Op]:
    operand = Operand(name="I", tensor="x", index=index)
    result = Operand(name="O", tensor="y", index=(Index((("K", 1),)),))
    dims = tuple(SIZES.items())
    op = Op(
        name="op", kind="conv", dims=dims, inputs=(operand,), outputs=(result,), accumulator_bits=32
    )
    return operand, op


def random_index(generator: random.Random) -> Index:
    """Strides, windows, padding, turned axes, and positions between those of the axis."""
    dims = generator.sample(sorted(SIZES), generator.randint(0, 2))
    terms = tuple((dim, generator.choice([-2, -1, 1, 2, 3])) for dim in dims)
    return Index(
        terms, generator.randint(-3, 5), generator.choice([1, 1, 2]), generator.choice([0, 0, 2])
    )


def random_tile(generator: random.Random) -> Box:
    begins = [generator.randrange(size) for size in SIZES.values()]
    pairs = zip(begins, SIZES.values(), strict=True)
    return tuple((begin, generator.randint(begin + 1, size)) for begin, size in pairs)


def walked(index: Index, tile: Box, size: int) -> tuple[int, int]:
    """From the first to behind the last position on an axis between those that points reach."""
    reached = []
    for point in product(*(range(*ends) for ends in tile)):
        loops = dict(zip(SIZES, point, strict=True))
        at = index.offset + sum(factor * loops[dim] for dim, factor in index.terms)
        reached += [at, at + index.reach]
    inside = [k for k in range(size) if min(reached) <= k * index.divisor <= max(reached)]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


def needed_together(op: Op, tiles: Sequence[Box], shape: tuple[int, int]) -> list[Box]:
    """What tiles need of an op's input, behind what they need of its result."""
    tensors = {
        "x": Tensor(name="x", shape=shape, bits=8, role="activation"),
        "y": Tensor(name="y", shape=(SIZES["K"],), bits=8, role="activation"),
    }
    tasks, corners = np.arange(len(tiles)), box_array(tiles, len(SIZES))
    wanted = [(op, operand, tasks, corners) for operand in op.operands]
    found = needed_boxes(tensors, wanted, 3)
    assert (found[:, 2] == [[0], [1]]).all()
    assert boxes_at(found[:, :, : len(tiles)], 1) == [(tile[2],) for tile in tiles]
    return boxes_at(found[:, :, len(tiles) :], 2)


@pytest.mark.parametrize("seed", range(100))
def test_what_tiles_need_is_what_their_points_reach(seed: int) -> None:
    generator = random.Random(seed)
    shape = generator.randint(1, 9), generator.randint(1, 9)
    indices = random_index(generator), random_index(generator)
    operand, op = op_reading(indices)
    tiles = [random_tile(generator) for _ in range(8)]
    one_by_one = [needed_by_tile(op, operand, tile, shape) for tile in tiles]
    assert needed_together(op, tiles, shape) == one_by_one
    for tile, need in zip(tiles, one_by_one, strict=True):
        for index, size, (begin, end) in zip(indices, shape, need, strict=True):
            wanted = walked(index, tile, size)
            assert (begin, end) == wanted or (begin == end and wanted[0] == wanted[1])


def test_without_an_index_all_is_needed() -> None:
    operand, op = op_reading(None)
    tile = ((0, 1), (0, 1), (0, 1))
    assert needed_by_tile(op, operand, tile, (3, 5)) == ((0, 3), (0, 5))
    assert needed_together(op, [tile, tile], (3, 5)) == [((0, 3), (0, 5))] * 2

"""What lies in a buffer, against one cell per element."""

import random

import numpy as np
import numpy.typing as npt
import pytest

from tilewright.program.model import Box
from tilewright.replay.check_contents import FEW_PIECES, Contents, Piece

Cells = npt.NDArray[np.int64]


def piece(box: Box, maker: int) -> Piece:
    return Piece(box, ("t",), (0,) * len(box), maker)


def region(box: Box) -> tuple[slice, ...]:
    return tuple(slice(begin, end) for begin, end in box)


def random_box(generator: random.Random, shape: tuple[int, ...], longest: int) -> Box:
    begins = [generator.randrange(size) for size in shape]
    return tuple(
        (begin, generator.randint(begin + 1, min(begin + longest, size)))
        for begin, size in zip(begins, shape, strict=True)
    )


def cells_of(pieces: list[Piece], shape: tuple[int, ...]) -> Cells:
    """By element who made it, -1 for nobody; no element may be in two pieces."""
    cells = np.full(shape, -1, dtype=np.int64)
    for found in pieces:
        assert (cells[region(found.box)] == -1).all()
        cells[region(found.box)] = found.maker
    return cells


@pytest.mark.parametrize("seed", range(40))
def test_every_element_holds_what_was_put_there_last(seed: int) -> None:
    generator = random.Random(seed)
    shape = generator.choice([(200,), (14, 14), (5, 6, 7)])
    contents, cells = Contents(), np.full(shape, -1, dtype=np.int64)
    for maker in range(150):
        longest = 20 if generator.random() < 0.05 else 2
        box = random_box(generator, shape, longest)
        # A copy of what nobody has written leaves nothing behind.
        is_empty = generator.random() < 0.1
        contents.put([] if is_empty else [piece(box, maker)], [box])
        cells[region(box)] = -1 if is_empty else maker
        wanted = random_box(generator, shape, 6)
        expected = np.full(shape, -1, dtype=np.int64)
        expected[region(wanted)] = cells[region(wanted)]
        assert (cells_of(contents.under(wanted), shape) == expected).all()
    assert (cells_of([*contents.pieces.values()], shape) == cells).all()


def test_what_is_left_of_pieces_among_many_is_cut_to_the_box() -> None:
    contents = Contents()
    for at in range(100):
        contents.put([piece(((4 * at, 4 * at + 4),), at)], [((4 * at, 4 * at + 4),)])
    # 41 to 43 lies inside the piece 10, 202 to 210 takes half of 50, all of 51 and half of 52.
    contents.put([piece(((41, 43),), 100)], [((41, 43),)])
    contents.put([piece(((202, 210),), 101)], [((202, 210),)])
    assert sorted((p.box, p.maker) for p in contents.under(((37, 47),))) == [
        (((37, 40),), 9),
        (((40, 41),), 10),
        (((41, 43),), 100),
        (((43, 44),), 10),
        (((44, 47),), 11),
    ]
    assert sorted((p.box, p.maker) for p in contents.under(((196, 216),))) == [
        (((196, 200),), 49),
        (((200, 202),), 50),
        (((202, 210),), 101),
        (((210, 212),), 52),
        (((212, 216),), 53),
    ]


def test_boxes_that_are_used_again_and_again_are_found_once() -> None:
    # More boxes come and go than there are pieces, so that the array is made anew.
    contents = Contents()
    for maker in range(1000):
        begin, length = maker * 7 % 200, 1 + maker % 3
        box = ((begin, begin + length),)
        contents.put([piece(box, maker)] if maker % 4 else [], [box])
        assert len(contents.filed) <= 2 * len(contents.pieces) + 2 * FEW_PIECES + 1
    found = contents.under(((0, 203),))
    assert sorted(found) == sorted(contents.pieces.values())
    cells_of(found, (203,))


def test_a_scalar_holds_one_piece() -> None:
    contents = Contents()
    for maker in range(3):
        contents.put([piece((), maker)], [()])
    assert contents.under(()) == [piece((), 2)]

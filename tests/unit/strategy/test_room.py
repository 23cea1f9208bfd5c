"""Bytes in several memories as one number."""

from math import inf

import pytest

from tilewright.strategy.room import Room

ROOM = Room(sizes={"weights": 1_000, "data": 64})


@pytest.mark.parametrize(
    ("weights", "data", "fits"),
    [(0, 0, True), (1_000, 64, True), (1_001, 0, False), (0, 65, False), (2**40, 2**40, False)],
)
def test_everything_fits_if_each_memory_has_room(weights: int, data: int, fits: bool) -> None:
    use = ROOM.use("weights", weights) + ROOM.use("data", data)
    assert ROOM.fits(use) is fits
    assert ROOM.uses({"weights": weights, "data": data}) == use


def test_nothing_has_room_in_what_is_no_scratchpad() -> None:
    assert ROOM.fits(ROOM.use("dram", 0))
    assert not ROOM.fits(ROOM.use("dram", 1))
    assert ROOM.share(ROOM.use("dram", 1)) == inf


def test_the_share_is_that_of_the_memory_which_is_filled_most() -> None:
    assert ROOM.share(0) == 0.0
    assert ROOM.share(ROOM.uses({"weights": 250, "data": 48})) == 0.75
    assert ROOM.share(ROOM.uses({"weights": 1_500, "data": 48})) == 1.5


def test_the_last_of_ever_larger_uses_that_has_room_is_found() -> None:
    """64 bytes of data; each use takes more of them, and nothing of anything else."""
    for sizes in ([5], [0, 10, 20, 30, 40, 50, 60], [1, 64], [1, 65, 66], [3, 3, 3, 60, 70, 80]):
        uses = [ROOM.use("data", size) for size in sizes]
        for alive in (0, 4, 5, 20, 59):
            fitting = [n for n, size in enumerate(sizes) if n == 0 or size + alive <= 64]
            assert ROOM.most_fitting(uses, ROOM.use("data", alive)) == fitting[-1]


def test_something_fits_beside_the_others_if_it_fits_beside_one() -> None:
    others = [ROOM.use("data", 60), ROOM.use("weights", 990), ROOM.use("data", 20)]
    assert ROOM.fits_beside_any(others, ROOM.use("data", 4))
    assert ROOM.fits_beside_any(others, ROOM.use("data", 64))
    assert ROOM.fits_beside_any(others[2:], ROOM.use("data", 44))
    assert not ROOM.fits_beside_any(others[:1], ROOM.use("data", 5))
    assert not ROOM.fits_beside_any(others, ROOM.uses({"data": 50, "weights": 11}))

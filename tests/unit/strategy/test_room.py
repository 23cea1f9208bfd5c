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

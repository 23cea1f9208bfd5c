"""Objects that are made while nobody looks for garbage among them."""

import gc

import pytest

from tilewright import garbage
from tilewright.garbage import without_garbage_collection


def test_making_one_more_object_does_not_have_all_of_them_looked_through() -> None:
    looks: list[str] = []

    def noted(phase: str, info: dict[str, int]) -> None:
        looks.append(phase)

    gc.enable()
    with without_garbage_collection():
        pass  # If it is time to look, it is done here.
    with without_garbage_collection():
        assert not gc.isenabled()
        made = [[number] for number in range(20_000)]
        gc.callbacks.append(noted)
    more = [[number] for number in range(100)]
    gc.callbacks.remove(noted)
    assert gc.isenabled()
    assert looks == []
    assert gc.get_freeze_count() == 0
    assert len(made) + len(more) == 20_100


class InACycle:
    """An object that is alive until somebody looks for cycles."""

    alive = 0

    def __init__(self) -> None:
        InACycle.alive += 1
        self.itself = self

    def __del__(self) -> None:
        InACycle.alive -= 1


@pytest.mark.slow
def test_cycles_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "ROOM", 0)
    gc.enable()
    most = 0
    # Each round leaves a quarter of the objects there are; without a look all rounds would stay.
    size = len(gc.get_objects()) // 4
    for _ in range(12):
        with without_garbage_collection():
            for _ in range(size):
                InACycle()
        most = max(most, InACycle.alive)
    assert most < 8 * size


def test_the_next_call_looks_through_what_one_has_made_and_not_its_own_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "ROOM", -(10**9))
    gc.enable()
    gc.collect()
    with without_garbage_collection():
        for _ in range(1_000):
            InACycle()
    assert InACycle.alive == 1_000
    with without_garbage_collection():
        pass
    assert InACycle.alive == 0


def test_what_others_have_frozen_stays_so() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    try:
        with without_garbage_collection():
            pass
        # Some of them may be gone meanwhile because nobody needs them any more.
        assert gc.get_freeze_count() > frozen // 2
    finally:
        gc.unfreeze()

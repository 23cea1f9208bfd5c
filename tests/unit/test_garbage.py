"""Objects that are made while nobody looks for garbage among them."""

import gc

from tilewright.garbage import without_garbage_collection


def test_making_one_more_object_does_not_have_all_of_them_looked_through() -> None:
    looks: list[str] = []

    def noted(phase: str, info: dict[str, int]) -> None:
        looks.append(phase)

    gc.enable()
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


def test_what_others_have_frozen_stays_so() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    try:
        with without_garbage_collection():
            pass
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()

"""Switching the search for garbage off where many objects are made and none of them form cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Make objects without looking for cycles among them, which takes a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            _count_as_old()
            gc.enable()


def _count_as_old() -> None:
    """Count all objects among the old ones, or the next one that is made has all looked through."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()

"""Switching the search for garbage off where many objects are made, and looking through them later.

Without a search, what forms cycles stays. Python would hardly ever look for it afterwards, because
it does not see these objects grow old; so it is done here whenever there are twice as many.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

ROOM = 1_000_000
"""So many objects more than those left by the last look are not worth one."""


@dataclass
class _LastLook:
    """How many objects were left when all were last looked through, and how many came since."""

    left: int = 0
    made: int = 0


_LAST_LOOK = _LastLook()


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Make objects without looking for cycles among them, which takes a quarter of the time."""
    was_enabled = gc.isenabled()
    if was_enabled:
        _look_if_many()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            _count_made()
            gc.enable()


def _look_if_many() -> None:
    """Look through what earlier calls have made, of which much may be gone by now.

    Not at their end: whoever makes one plan and stops need not wait for it.
    """
    if _LAST_LOOK.made > _LAST_LOOK.left + ROOM and not gc.get_freeze_count():
        gc.collect()
        _LAST_LOOK.left, _LAST_LOOK.made = len(gc.get_objects()), 0


def _count_made() -> None:
    if gc.get_freeze_count():
        return
    # Python's own count of young objects: to count all of them takes as long as a small plan.
    _LAST_LOOK.made += gc.get_count()[0]
    gc.freeze()
    # They count as old now, or the next object that is made has all of them looked through.
    gc.unfreeze()

"""Who must wait for whom where a place in memory is used again.

A reader waits for the writers of what it reads. A writer waits for all who touched what it
overwrites, and the users of a place for the users of what lay there before. Of those in one queue
the latest says it all.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.program.model import Box
from tilewright.records import quickly_made
from tilewright.schedule.clocks import Clock

_FEW_USES = 32
"""Up to so many uses are compared one by one; any limit from 8 to 64 takes the same time."""

_EVERYWHERE = -(1 << 62)
"""Below every begin of a box, and below every end with its sign turned."""


@quickly_made
class Place(NamedTuple):
    """The addresses [begin, end), which belong to `holder`.

    Two places of one holder are independent if their boxes share no element; None is all of it.
    """

    begin: int
    end: int
    holder: int
    box: Box | None = None


class User(NamedTuple):
    """The task of some turn and queue, and whom it waits for as far as is known."""

    turn: int
    queue: int
    known: Clock


class PlaceUses:
    """The uses of an address space: segments, split where places begin and end."""

    def __init__(self) -> None:
        self.starts: list[int] = [0]
        self.segments: list[_Segment] = [_Segment(-1)]

    def waits(self, user: User, place: Place, is_write: bool) -> list[int]:
        """Turns that a user of a place must wait for and is not known to; others may wait for it.

        Users come in the order of their turns, and each reads before it writes.
        """
        waits: list[int] = []
        first, last = self._split(place.begin), self._split(place.end)
        for segment in self.segments[first:last]:
            if segment.holder != place.holder:
                segment.give_to(place.holder)
            waits += segment.waits(user, place.box, is_write)
            segment.note(user, place.box, is_write)
        if last > first + 1:
            self._join(first, last)
        return waits

    def _split(self, at: int) -> int:
        """The index of the segment that starts at an address."""
        index = bisect_left(self.starts, at)
        if index == len(self.starts) or self.starts[index] != at:
            self.starts.insert(index, at)
            self.segments.insert(index, self.segments[index - 1].copy())
        return index

    def _join(self, first: int, last: int) -> None:
        """Make one of neighbours of which only the newest use counts: it used all of them."""
        kept = [first]
        for index in range(first + 1, last):
            segment, other = self.segments[kept[-1]], self.segments[index]
            if segment.has_one_use and other.has_one_use:
                segment.before = _later(segment.before, other.before)
            else:
                kept.append(index)
        self.starts[first:last] = [self.starts[index] for index in kept]
        self.segments[first:last] = [self.segments[index] for index in kept]


class _Segment:
    """Addresses up to the next segment: who used them for the holder, by queue.

    `before` are the last users of whatever lay here before the holder, by queue, and `hull` is the
    smallest box around all boxes that were used.
    """

    __slots__ = ("before", "has_one_use", "holder", "hull", "readers", "writers")

    def __init__(self, holder: int) -> None:
        self.holder = holder
        self.before: Mapping[int, int] = {}
        self.writers: dict[int, _Log] = {}
        self.readers: dict[int, _Log] = {}
        self.hull: Box | None = None
        self.has_one_use = False

    def copy(self) -> "_Segment":
        """A segment that can go its own way."""
        twin = _Segment(self.holder)
        twin.before, twin.hull, twin.has_one_use = self.before, self.hull, self.has_one_use
        twin.writers = {queue: log.copy() for queue, log in self.writers.items()}
        twin.readers = {queue: log.copy() for queue, log in self.readers.items()}
        return twin

    def give_to(self, holder: int) -> None:
        """The addresses belong to another holder from now on."""
        writers, readers = (
            {queue: log.turns[-1] for queue, log in logs.items()}
            for logs in (self.writers, self.readers)
        )
        self.before = _later(writers, readers) or self.before
        self.holder, self.writers, self.readers = holder, {}, {}

    def waits(self, user: User, box: Box | None, is_write: bool) -> list[int]:
        """Turns that a user of a box must wait for and is not known to."""
        known = user.known
        found = [turn for queue, turn in self.before.items() if turn > known[queue]]
        for logs in (self.writers, self.readers) if is_write else (self.writers,):
            for queue, log in logs.items():
                if log.turns[-1] > known[queue]:
                    found += log.latest(box, known[queue])
        return found

    def note(self, user: User, box: Box | None, is_write: bool) -> None:
        """Others may have to wait for this use."""
        mine = self.writers if is_write else self.readers
        if self._is_replaced_by(user, box, is_write):
            self.writers.clear()
            self.readers.clear()
            self.hull, self.has_one_use = box, True
        else:
            self.hull, self.has_one_use = _around(self.hull, box), False
        if user.queue in mine:
            mine[user.queue].add(user.turn, box)
        else:
            mine[user.queue] = _Log(user.turn, box)

    def _is_replaced_by(self, user: User, box: Box | None, is_write: bool) -> bool:
        """Whether all who would wait for an earlier use will wait for a new one."""
        if not is_write and (self.writers or any(queue != user.queue for queue in self.readers)):
            return False
        return not (self.writers or self.readers) or _covers(box, self.hull)


class _Log:
    """Turns of one queue, ascending, that read, or that write, boxes of a holder.

    A buffer may be written in thousands of boxes. So the corners of all but the last few may also
    be columns of an array: first the begins along every axis, then the ends, their signs turned.
    """

    __slots__ = ("boxes", "corners", "turns")

    def __init__(self, turn: int, box: Box | None) -> None:
        self.turns: list[int] = [turn]
        self.boxes: list[Box | None] = [box]
        self.corners: npt.NDArray[np.int64] | None = None

    def copy(self) -> "_Log":
        """A log that can go its own way; arrays of corners are replaced, never changed."""
        twin = _Log(0, None)
        twin.turns, twin.boxes, twin.corners = self.turns.copy(), self.boxes.copy(), self.corners
        return twin

    def add(self, turn: int, box: Box | None) -> None:
        """Put one at the end; who waits for it waits for the same box just before it as well."""
        if self.boxes[-1] == box:
            self.turns[-1] = turn
        else:
            self.turns.append(turn)
            self.boxes.append(box)

    def latest(self, box: Box | None, known: int) -> list[int]:
        """The latest turn after a known one whose box shares elements with another, if any."""
        first, end = bisect_right(self.turns, known), len(self.turns)
        if not box or end - first <= _FEW_USES:
            return self._latest_between(first, end, box)
        corners = self._filed(len(box))
        found = self._latest_between(max(first, corners.shape[1]), end, box)
        if found:
            return found
        limits = np.array([end for _, end in box] + [-begin for begin, _ in box], dtype=np.int64)
        meets = (corners[:, first:] < limits[:, None]).all(axis=0)
        return [self.turns[first + at] for at in np.flatnonzero(meets)[-1:].tolist()]

    def _latest_between(self, first: int, end: int, box: Box | None) -> list[int]:
        for at in range(end - 1, first - 1, -1):
            if _meet(self.boxes[at], box):
                return [self.turns[at]]
        return []

    def _filed(self, axes: int) -> npt.NDArray[np.int64]:
        """The corners of all but the last few boxes."""
        filed = 0 if self.corners is None else self.corners.shape[1]
        new = self.boxes[filed:]
        if self.corners is not None and len(new) <= _FEW_USES:
            return self.corners
        everywhere = [_EVERYWHERE] * (2 * axes)
        rows = [
            everywhere if box is None else [begin for begin, _ in box] + [-end for _, end in box]
            for box in new
        ]
        columns = np.array(rows, dtype=np.int64).T
        parts = [columns] if self.corners is None else [self.corners, columns]
        self.corners = np.ascontiguousarray(np.concatenate(parts, axis=1))
        return self.corners


def _later(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    """By queue the later turn."""
    later = dict(one)
    for queue, turn in other.items():
        later[queue] = max(turn, later.get(queue, turn))
    return later


def _meet(one: Box | None, other: Box | None) -> bool:
    """Whether two boxes of a holder share an element."""
    if one is None or other is None:
        return True
    for (begin, end), (other_begin, other_end) in zip(one, other, strict=True):
        if begin >= other_end or other_begin >= end:
            return False
    return True


def _covers(outer: Box | None, inner: Box | None) -> bool:
    if outer is None or inner is None:
        return outer is None
    for (begin, end), (inner_begin, inner_end) in zip(outer, inner, strict=True):
        if inner_begin < begin or end < inner_end:
            return False
    return True


def _around(one: Box | None, other: Box | None) -> Box | None:
    """The smallest box around two."""
    if one is None or other is None or one == other:
        return None if one is None else other
    both = zip(one, other, strict=True)
    return tuple([(min(a, c), max(b, d)) for (a, b), (c, d) in both])

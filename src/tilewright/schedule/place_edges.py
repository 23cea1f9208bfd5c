"""Who must wait for whom where a place in memory is used again, given the order of its uses."""

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.program.model import Box

_FEW_USES = 32
"""Up to so many uses are compared one by one; any limit from 8 to 64 takes the same time."""

_EVERYWHERE = -(1 << 62)
"""Below every begin of a box, and below every end with its sign turned."""


class PlaceUse(NamedTuple):
    """A task touches the addresses [begin, end), which belong to `holder`.

    Two uses of one holder are independent if their boxes share no element; None is all of it. Tasks
    of the same `queue` run one after the other anyway; -1 is no queue.
    """

    task: int
    begin: int
    end: int
    is_write: bool
    holder: Hashable = None
    box: Box | None = None
    queue: int = -1


@dataclass(slots=True)
class _Seen:
    """A use that later ones may have to wait for, and whether any already does."""

    use: PlaceUse
    turn: int
    is_read: bool = False
    is_overwritten: bool = False

    def copy(self) -> "_Seen":
        """The same use, of which another segment learns by itself who waits for it."""
        return _Seen(self.use, self.turn, self.is_read, self.is_overwritten)


class _Uses:
    """Uses of one holder in the order in which they came, found by where their boxes lie.

    A buffer may be written in thousands of boxes. So the corners of all but the last few uses are
    also columns of an array: first the begins along every axis, then the ends, their signs turned.
    """

    __slots__ = ("corners", "seen")

    def __init__(self, seen: Sequence[_Seen] = ()) -> None:
        self.seen = list(seen)
        self.corners: npt.NDArray[np.int64] | None = None
        if len(self.seen) > _FEW_USES:
            self._file()

    def copy(self) -> "_Uses":
        """Uses that can go their own way; arrays of corners are replaced, never changed."""
        twin = _Uses()
        twin.seen, twin.corners = [seen.copy() for seen in self.seen], self.corners
        return twin

    def near(self, box: Box | None) -> Sequence[int]:
        """Places in `seen`, ascending: of all that share elements with a box or lie inside it.

        Others may be among them.
        """
        if box is None or self.corners is None:
            return range(len(self.seen))
        limits = [end for _, end in box] + [-begin for begin, _ in box]
        is_near = (self.corners <= np.array(limits, dtype=np.int64)[:, None]).all(axis=0)
        found: list[int] = np.flatnonzero(is_near).tolist()
        return [*found, *range(self.corners.shape[1], len(self.seen))]

    def add(self, new: _Seen) -> None:
        """Put one at the end."""
        self.seen.append(new)
        filed = 0 if self.corners is None else self.corners.shape[1]
        if len(self.seen) - filed > _FEW_USES:
            self._file()

    def drop(self, places: Sequence[int]) -> None:
        """Take out those at some places, which ascend."""
        for place in reversed(places):
            del self.seen[place]
        if self.corners is not None and places and places[0] < self.corners.shape[1]:
            filed = [place for place in places if place < self.corners.shape[1]]
            self.corners = np.delete(self.corners, filed, axis=1)

    def _file(self) -> None:
        """Put the corners of all uses into the array."""
        filed = 0 if self.corners is None else self.corners.shape[1]
        boxes = [seen.use.box for seen in self.seen[filed:]]
        axes = next((len(box) for box in boxes if box is not None), None)
        if axes is None:
            return
        everywhere = [_EVERYWHERE] * (2 * axes)
        rows = [
            everywhere if box is None else [begin for begin, _ in box] + [-end for _, end in box]
            for box in boxes
        ]
        columns = np.array(rows, dtype=np.int64).reshape(len(rows), 2 * axes).T
        parts = [columns] if self.corners is None else [self.corners, columns]
        self.corners = np.ascontiguousarray(np.concatenate(parts, axis=1))


@dataclass(slots=True)
class _Segment:
    """Addresses up to the next segment: who used them for the holder.

    `before` are the last users of whatever lay here before the holder.
    """

    holder: Hashable
    before: tuple[int, ...] = ()
    writers: _Uses = field(default_factory=_Uses)
    readers: _Uses = field(default_factory=_Uses)

    def copy(self) -> "_Segment":
        """A segment that can go its own way."""
        return _Segment(self.holder, self.before, self.writers.copy(), self.readers.copy())


def place_edges(uses: Sequence[PlaceUse]) -> list[tuple[int, int]]:
    """The waits between uses of places, given in the order in which they happen.

    A reader waits for the writers of what it reads. A writer waits for the last ones who touched
    what it overwrites, and the first users of a place for the last users of what lay there before.
    """
    space = _Space()
    edges: dict[tuple[int, int], None] = {}
    for turn, use in enumerate(uses):
        if use.begin < use.end:
            for first in space.touched(_Seen(use, turn)):
                if first != use.task:
                    edges[first, use.task] = None
    return sorted(edges)


class _Space:
    """The address space as segments, split where uses begin and end."""

    def __init__(self) -> None:
        self.starts: list[int] = [0]
        self.segments: list[_Segment] = [_Segment(None)]

    def touched(self, new: _Seen) -> Iterator[int]:
        """Tasks that a use waits for; from now on the segments know of the use."""
        first, last = self._split(new.use.begin), self._split(new.use.end)
        starts: list[int] = []
        segments: list[_Segment] = []
        for start, segment in zip(self.starts[first:last], self.segments[first:last], strict=True):
            waits = _waits(segment, new)
            yield from waits
            if starts and _has_one_user(segments[-1]) and _has_one_user(segment):
                joined = (*segments[-1].before, *segment.before)
                segments[-1].before = tuple(dict.fromkeys(joined))
            else:
                starts.append(start)
                segments.append(segment)
        self.starts[first:last] = starts
        self.segments[first:last] = segments

    def _split(self, at: int) -> int:
        """The index of the segment that starts at an address."""
        index = bisect_left(self.starts, at)
        if index == len(self.starts) or self.starts[index] != at:
            self.starts.insert(index, at)
            self.segments.insert(index, self.segments[index - 1].copy())
        return index


def _has_one_user(segment: _Segment) -> bool:
    return len(segment.writers.seen) + len(segment.readers.seen) == 1


def _waits(segment: _Segment, new: _Seen) -> list[int]:
    """Tasks that a use of one segment waits for."""
    use = new.use
    if segment.holder != use.holder:
        old = (*segment.writers.seen, *segment.readers.seen)
        last = [s.use.task for s in old if not (s.is_read or s.is_overwritten)]
        segment.before = tuple(dict.fromkeys(last)) or segment.before
        segment.holder, segment.writers, segment.readers = use.holder, _Uses(), _Uses()
    writers, readers = segment.writers.seen, segment.readers.seen
    if not (writers or readers):
        (segment.writers if use.is_write else segment.readers).add(new.copy())
        return list(segment.before)
    near_writers = segment.writers.near(use.box)
    near_readers = segment.readers.near(use.box)
    met = [writers[at] for at in near_writers if _conflict(writers[at].use, use)]
    if use.is_write:
        met += [readers[at] for at in near_readers if _conflict(readers[at].use, use)]
    waits = _needed(met)
    for seen in met:
        if use.is_write:
            seen.is_overwritten = True
        else:
            seen.is_read = True
    if use.is_write:
        gone = [at for at in near_writers if _covers(use.box, writers[at].use.box)]
        segment.writers.drop(gone)
    segment.readers.drop([at for at in near_readers if _is_replaced(readers[at].use, use)])
    (segment.writers if use.is_write else segment.readers).add(new.copy())
    return waits if met else list(segment.before)


def _is_replaced(old: PlaceUse, new: PlaceUse) -> bool:
    """Whether whoever would wait for an old reader will wait for a new use of the same holder."""
    if not new.is_write and not old.queue == new.queue != -1:
        return False
    return _covers(new.box, old.box)


def _needed(met: Sequence[_Seen]) -> list[int]:
    """The tasks of `met` without those that one waits for anyway by waiting for the others."""
    uses: _Uses | None = None
    needed: list[int] = []
    for seen in met:
        if seen.is_read or seen.is_overwritten:
            uses = uses or _Uses(met)
            if _is_behind(seen, [met[at] for at in uses.near(seen.use.box)]):
                continue
        needed.append(seen.use.task)
    return needed


def _is_behind(seen: _Seen, met: Sequence[_Seen]) -> bool:
    """Whether waiting for all of `met` but this use means waiting for this one as well."""
    return any(later.turn > seen.turn and _conflict(later.use, seen.use) for later in met)


def _conflict(one: PlaceUse, other: PlaceUse) -> bool:
    """Whether one writes what the other, of the same holder, touches."""
    if not (one.is_write or other.is_write):
        return False
    if one.box is None or other.box is None:
        return True
    for (begin, end), (other_begin, other_end) in zip(one.box, other.box, strict=True):
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

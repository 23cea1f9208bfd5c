"""Who must wait for whom because a place in memory is used again.

A timetable is correct at its own times. A machine runs it by order alone, each task as soon as what
it waits for has ended, so every wait that addresses cause has to be said.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.program.model import Access, Box, Program, Timetable

_FEW_USES = 32
"""So many uses are compared one by one as fast as with one operation on arrays (measured)."""

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
        close = (self.corners <= np.array(limits, dtype=np.int64)[:, None]).all(axis=0)
        found: list[int] = np.flatnonzero(close).tolist()
        return [*found, *range(len(close), len(self.seen))]

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
        self.corners = np.concatenate(parts, axis=1)


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


def control_edges(timetable: Timetable) -> tuple[tuple[int, int], ...]:
    """Pairs of tasks, sorted: the second must not start before the first has ended.

    Together with `after` and the order of the tasks on every instance of an engine they order every
    two tasks of which one writes what the other touches.
    Pairs that follow from `after` and the others are left out (as far as `reduced` sees it), and
    so are tasks that run at the same time. Two readers never wait for each other.
    """
    slots, tasks = timetable.slots, timetable.program.tasks
    waits = [
        {first: None for first in task.after if slots[first].end_cycle <= slots[number].start_cycle}
        for number, task in enumerate(tasks)
    ]
    place = {
        number: at for at, number in enumerate(_topological([tuple(before) for before in waits]))
    }
    order = sorted(
        range(len(slots)), key=lambda n: (slots[n].start_cycle, slots[n].end_cycle, place[n])
    )
    edges = [
        (first, second)
        for uses in _place_uses(timetable, order).values()
        for first, second in place_edges(uses)
        if slots[first].end_cycle <= slots[second].start_cycle and first not in waits[second]
    ]
    for first, second in edges:
        waits[second][first] = None
    queued = set(_queue_order(timetable, order))
    for first, second in queued:
        waits[second][first] = None
    needed = reduced([tuple(before) for before in waits])
    return tuple(sorted({e for e in edges if e not in queued and e[0] in needed[e[1]]}))


def _queue_order(timetable: Timetable, order: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbours on the same instance of an engine."""
    last: dict[int, int] = {}
    queues = _queues(timetable)
    for number in order:
        queue = queues[number]
        if queue in last:
            yield last[queue], number
        last[queue] = number


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


def _place_uses(timetable: Timetable, order: Sequence[int]) -> dict[str, list[PlaceUse]]:
    """By space, what the tasks do there one after the other; each reads before it writes.

    Where all accesses of a root are without gaps they are taken as ranges of addresses, so that
    only neighbours meet; otherwise as boxes of all its addresses.
    """
    program, queue = timetable.program, _queues(timetable)
    with_gaps = set()
    ranges: dict[tuple[int, Box | None], tuple[int, int] | None] = {}
    touched = _first_and_last(program, queue, order)
    for touch in touched:
        key = touch.root, touch.box
        if key not in ranges:
            ranges[key] = _byte_range(program, *key)
        if ranges[key] is None:
            with_gaps.add(touch.root)
    found: dict[str, list[PlaceUse]] = defaultdict(list)
    for number, root, box, is_write in touched:
        buffer, base = program.buffers[root], timetable.addresses[root]
        begin, end = ranges[root, box] or (0, 0)
        if root in with_gaps:
            begin, end = 0, buffer.size_bytes
        if program.space[buffer.space].kind in ("scratchpad", "external"):
            use = PlaceUse(number, base + begin, base + end, is_write, root, box, queue[number])
            found[buffer.space].append(use)
    return found


class _Touch(NamedTuple):
    """A task reads or writes a box of a buffer that is no view; None is all of it."""

    task: int
    root: int
    box: Box | None
    is_write: bool


def _first_and_last(program: Program, queue: Sequence[int], order: Sequence[int]) -> list[_Touch]:
    """What tasks touch, each reading before it writes, without reads that change nothing.

    Of reads of the same box by tasks of one queue, with no write to the buffer between them, the
    first one waits for the writers and the last one is waited for. What is given and never written
    keeps its place to the end, so nobody waits for its readers.
    """
    touches: list[_Touch] = []
    given = _never_written(program)
    written: dict[int, int] = defaultdict(int)
    runs: dict[tuple[int, Box | None, int, int], tuple[int, int]] = {}
    needless: set[int] = set()
    for number in order:
        task = program.tasks[number]
        for accesses, is_write in ((task.reads, False), (task.writes, True)):
            for access in accesses:
                root, box = program.root(access.buffer), _box_in_root(program, access)
                if root in given:
                    continue
                if is_write:
                    written[root] += 1
                else:
                    run = root, box, queue[number], written[root]
                    first, last = runs.get(run, (len(touches), len(touches)))
                    if last != first:
                        needless.add(last)
                    runs[run] = first, len(touches)
                touches.append(_Touch(number, root, box, is_write))
    return [touch for at, touch in enumerate(touches) if at not in needless]


def _never_written(program: Program) -> set[int]:
    written = {program.root(access.buffer) for task in program.tasks for access in task.writes}
    return {program.root(number) for number in program.given} - written


def _queues(timetable: Timetable) -> list[int]:
    """By task a number for the instance of the engine that it runs on."""
    numbers: dict[tuple[str, int], int] = {}
    pairs = zip(timetable.program.tasks, timetable.slots, strict=True)
    return [numbers.setdefault((t.engine, slot.instance), len(numbers)) for t, slot in pairs]


def _byte_range(program: Program, root: int, box: Box | None) -> tuple[int, int] | None:
    """The bytes of a buffer that a box takes; None if there are gaps between them."""
    buffer = program.buffers[root]
    if box is None:
        return 0, buffer.size_bytes
    if box == buffer.box:
        return 0, buffer.size_bytes
    shape = [end - begin for begin, end in buffer.box]
    cut = [axis for axis, ends in enumerate(box) if ends != buffer.box[axis]]
    outer = box[: cut[-1]] if cut else ()
    if any(end - begin != 1 for begin, end in outer):
        return None
    steps = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    starts = [start for start, _ in buffer.box]
    first = sum((b - s) * by for (b, _), s, by in zip(box, starts, steps, strict=True))
    last = sum((e - 1 - s) * by for (_, e), s, by in zip(box, starts, steps, strict=True))
    elements = max(1, prod(shape))
    return first * buffer.size_bytes // elements, -(-(last + 1) * buffer.size_bytes // elements)


def _box_in_root(program: Program, access: Access) -> Box | None:
    """The box of an access in its root's coordinates; None, that is all, under another shape."""
    buffer = program.buffers[access.buffer]
    if buffer.view is None:
        return access.box
    if buffer.view.origin is None:
        return None
    return tuple(
        (begin - start + at, end - start + at)
        for (begin, end), (start, _), at in zip(
            access.box, buffer.box, buffer.view.origin, strict=True
        )
    )


def reduced(
    dependencies: Sequence[Sequence[int]], *, window: int = 10_000
) -> tuple[tuple[int, ...], ...]:
    """The dependencies without those that follow from others; entry i is what task i waits for.

    A path is only seen over tasks that are at most `window` places apart in a topological order:
    above that many tasks some dependencies may be left that follow from others, none is lost.

    Raises:
        ValueError: tasks wait for each other in a circle.

    >>> reduced([[], [0], [0, 1]])
    ((), (0,), (1,))
    """
    order = _topological(dependencies)
    place = {task: at for at, task in enumerate(order)}
    mask = (1 << window) - 1
    # Bit k of reach[i]: the task at place i waits, however indirectly, for the one at i - 1 - k.
    reach = [0] * len(order)
    kept: list[tuple[int, ...]] = [()] * len(order)
    for at, task in enumerate(order):
        seen, needed = 0, []
        for before in sorted(
            dict.fromkeys(dependencies[task]), key=place.__getitem__, reverse=True
        ):
            gap = at - place[before]
            if gap > window or not seen >> (gap - 1) & 1:
                needed.append(before)
            if gap <= window:
                seen |= (1 << (gap - 1) | reach[place[before]] << gap) & mask
        kept[task] = tuple(sorted(needed))
        reach[at] = seen
        if at >= window:
            reach[at - window] = 0
    return tuple(kept)


def _topological(dependencies: Sequence[Sequence[int]]) -> list[int]:
    """Tasks such that each comes after what it waits for, the smallest number first."""
    followers: list[list[int]] = [[] for _ in dependencies]
    missing = [len(set(before)) for before in dependencies]
    for task, before in enumerate(dependencies):
        for first in dict.fromkeys(before):
            followers[first].append(task)
    ready = [task for task, count in enumerate(missing) if not count]
    order: list[int] = []
    while ready:
        task = heappop(ready)
        order.append(task)
        for follower in followers[task]:
            missing[follower] -= 1
            if not missing[follower]:
                heappush(ready, follower)
    if len(order) < len(dependencies):
        stuck = next(task for task, count in enumerate(missing) if count)
        raise ValueError(f"task {stuck} waits for itself through others")
    return order

"""Who must wait for whom because a place in memory is used again.

A timetable is correct at its own times. A machine runs it by order alone, each task as soon as what
it waits for has ended, so every wait that addresses cause has to be said.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from math import prod
from typing import NamedTuple

from tilewright.program.model import Access, Box, Program, Timetable
from tilewright.schedule.place_edges import PlaceUse, place_edges


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

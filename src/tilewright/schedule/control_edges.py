"""Who must wait for whom because a place in memory is used again.

A timetable is correct at its own times. A machine runs it by order alone, each task as soon as what
it waits for has ended, so every wait that addresses cause has to be said.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

from tilewright.program.model import Access, Box, Buffer, Program, Timetable
from tilewright.schedule.clocks import Clocks
from tilewright.schedule.place_edges import Place, PlaceUses, User


def control_edges(timetable: Timetable) -> tuple[tuple[int, int], ...]:
    """Pairs of tasks, sorted: the second must not start before the first has ended.

    Together with `after` and the order of the tasks on every instance of an engine they order every
    two tasks of which one writes what the other touches.
    Pairs that follow from all of these are left out, and so are tasks that run at the same time.
    Two readers never wait for each other.
    """
    slots, tasks = timetable.slots, timetable.program.tasks
    order = _start_order(timetable)
    turns = [0] * len(order)
    for turn, number in enumerate(order):
        turns[number] = turn
    ends = [slots[number].end_cycle for number in order]
    queues = _queues(timetable)
    clocks = Clocks([queues[number] for number in order])
    places = _places(timetable)
    spaces = {space.name: PlaceUses() for space in timetable.program.spaces}
    edges: list[tuple[int, int]] = []
    for turn, number in enumerate(order):
        task, start = tasks[number], slots[number].start_cycle
        before = [turns[first] for first in task.after]
        user = User(turn, queues[number], clocks.begin([t for t in before if ends[t] <= start]))
        met: list[int] = []
        for accesses, is_write in ((task.reads, False), (task.writes, True)):
            for access in accesses:
                place = places.get(access)
                if place is not None:
                    space = timetable.program.buffers[access.buffer].space
                    met += spaces[space].waits(user, place, is_write)
        if met:
            needed = clocks.add([first for first in met if ends[first] <= start])
            edges += [(order[first], number) for first in needed]
    return tuple(sorted(edges))


def _start_order(timetable: Timetable) -> list[int]:
    """Tasks by start; of those at one cycle the ones that take no time first, as they wait."""
    slots, tasks = timetable.slots, timetable.program.tasks
    place: Sequence[int] = range(len(tasks))
    if any(max(task.after, default=0) > number for number, task in enumerate(tasks)):
        place = _topological_places(
            [
                [first for first in task.after if slots[first].end_cycle <= slot.start_cycle]
                for task, slot in zip(tasks, slots, strict=True)
            ]
        )
    return sorted(
        range(len(tasks)), key=lambda n: (slots[n].start_cycle, slots[n].end_cycle, place[n])
    )


def _places(timetable: Timetable) -> dict[Access, Place]:
    """Where each box of a buffer that tasks touch lies, if anyone may have to wait for them.

    Where all boxes of a root are without gaps they are taken as ranges of addresses, so that only
    neighbours meet; otherwise as boxes of all its addresses. What is given and never written keeps
    its place to the end, so nobody waits for its readers.
    """
    program = timetable.program
    given = _never_written(program)
    memories = [space.name for space in program.spaces if space.kind in ("scratchpad", "external")]
    is_shared = [
        buffer.space in memories and program.root(number) not in given
        for number, buffer in enumerate(program.buffers)
    ]
    touched = dict.fromkeys(
        access
        for task in program.tasks
        for access in (*task.reads, *task.writes)
        if is_shared[access.buffer]
    )
    boxes = {access: _box_in_root(program, access) for access in touched}
    ranges: dict[Access, tuple[int, int]] = {}
    with_gaps: set[int] = set()
    for access, box in boxes.items():
        root = program.root(access.buffer)
        ends = _byte_range(program.buffers[root], box)
        ranges[access] = ends or (0, program.buffers[root].size_bytes)
        if ends is None:
            with_gaps.add(root)
    places: dict[Access, Place] = {}
    for access, (begin, end) in ranges.items():
        root = program.root(access.buffer)
        base, size_bytes = timetable.addresses[root], program.buffers[root].size_bytes
        first, last = (0, size_bytes) if root in with_gaps else (begin, end)
        if first < last:
            places[access] = Place(base + first, base + last, root, boxes[access])
    return places


def _never_written(program: Program) -> set[int]:
    written = {program.root(access.buffer) for task in program.tasks for access in task.writes}
    return {program.root(number) for number in program.given} - written


def _queues(timetable: Timetable) -> list[int]:
    """By task a number for the instance of the engine that it runs on."""
    numbers: dict[tuple[str, int], int] = {}
    pairs = zip(timetable.program.tasks, timetable.slots, strict=True)
    return [numbers.setdefault((t.engine, slot.instance), len(numbers)) for t, slot in pairs]


def _byte_range(buffer: Buffer, box: Box | None) -> tuple[int, int] | None:
    """The bytes of a buffer that a box takes; None if there are gaps between them."""
    if box is None or box == buffer.box:
        return 0, buffer.size_bytes
    # Axes behind the last one that the box cuts are whole, so only those before it make gaps.
    first = last = 0
    step, is_cut = 1, False
    for (begin, end), (start, stop) in zip(reversed(box), reversed(buffer.box), strict=True):
        if is_cut and end - begin != 1:
            return None
        is_cut = is_cut or (begin, end) != (start, stop)
        first += (begin - start) * step
        last += (end - 1 - start) * step
        step *= stop - start
    elements = max(1, step)
    return first * buffer.size_bytes // elements, -(-(last + 1) * buffer.size_bytes // elements)


def _box_in_root(program: Program, access: Access) -> Box | None:
    """The box of an access in its root's coordinates; None, that is all, under another shape."""
    buffer = program.buffers[access.buffer]
    if buffer.view is None:
        return access.box
    if buffer.view.origin is None:
        return None
    axes = zip(access.box, buffer.box, buffer.view.origin, strict=True)
    return tuple([(begin - start + at, end - start + at) for (begin, end), (start, _), at in axes])


def _topological_places(dependencies: Sequence[Sequence[int]]) -> list[int]:
    """By task its place in an order in which each comes after what it waits for.

    Of those that could come next it is the one with the smallest number.

    Raises:
        ValueError: tasks wait for each other in a circle.

    >>> _topological_places([[2], [], []])
    [2, 0, 1]
    """
    followers: list[list[int]] = [[] for _ in dependencies]
    for task, before in enumerate(dependencies):
        for first in before:
            followers[first].append(task)
    missing = [len(before) for before in dependencies]
    ready = [task for task, count in enumerate(missing) if not count]
    places = [-1] * len(dependencies)
    for place in range(len(dependencies)):
        if not ready:
            raise ValueError(f"task {places.index(-1)} waits for itself through others")
        task = heappop(ready)
        places[task] = place
        for follower in followers[task]:
            missing[follower] -= 1
            if not missing[follower]:
                heappush(ready, follower)
    return places

"""Ways to make a plan with rolling buffers wrong: each, if it finds a place, is one for certain."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from tests.plan_faults import Fault, waits_of

from tilewright.program.model import Access, Box, Buffer, Task, Timetable, View


@dataclass(frozen=True, kw_only=True)
class Ring:
    """A buffer of some rows along an axis, and its laps: views of later rows in the same place."""

    root: int
    axis: int
    rows: int
    laps: tuple[int, ...]


def rings(plan: Timetable) -> list[Ring]:
    """The rolling buffers of a plan that go round at least once."""
    buffers = plan.program.buffers
    found = []
    for root, buffer in enumerate(buffers):
        laps = [n for n, b in enumerate(buffers) if b.view is not None and b.view.buffer == root]
        axes = [
            axis
            for axis in range(len(buffer.box))
            if len({buffers[n].box[axis] for n in laps if _is_first(plan, laps, n)}) > 1
        ]
        if axes:
            rows = buffer.box[axes[0]][1] - buffer.box[axes[0]][0]
            found.append(Ring(root=root, axis=axes[0], rows=rows, laps=tuple(laps)))
    return found


def _is_first(plan: Timetable, laps: Sequence[int], number: int) -> bool:
    """Whether a lap is of the same tensor as the first one: parts of a concatenation differ."""
    return plan.program.buffers[number].tensor == plan.program.buffers[laps[0]].tensor


def _cut(box: Box, axis: int, span: tuple[int, int]) -> Box:
    return (*box[:axis], span, *box[axis + 1 :])


def _place(plan: Timetable, access: Access) -> tuple[int, Box]:
    """The buffer that holds the bytes of an access, and where in its coordinates."""
    buffer = plan.program.buffers[access.buffer]
    if buffer.view is None or buffer.view.origin is None:
        return plan.program.root(access.buffer), access.box
    pairs = zip(access.box, buffer.box, buffer.view.origin, strict=True)
    return buffer.view.buffer, tuple((a - low + at, b - low + at) for (a, b), (low, _), at in pairs)


def _meet(one: Box, other: Box) -> bool:
    return all(a < d and c < b for (a, b), (c, d) in zip(one, other, strict=True))


def _address(buffers: Sequence[Buffer], addresses: Sequence[int], view: View) -> int:
    """The address of a view's first element."""
    root = buffers[view.buffer]
    shape = [stop - start for start, stop in root.box]
    at = 0
    for origin, (start, _), size in zip(view.origin or (), root.box, shape, strict=True):
        at = at * size + origin - start
    return addresses[view.buffer] + at * root.size_bytes // prod(shape)


def _with_tasks(plan: Timetable, tasks: Sequence[Task]) -> Timetable:
    return replace(plan, program=replace(plan.program, tasks=tuple(tasks)))


def _with_task(plan: Timetable, number: int, task: Task) -> Timetable:
    tasks = list(plan.program.tasks)
    tasks[number] = task
    return _with_tasks(plan, tasks)


def _ancestors(waits: Sequence[Sequence[int]], task: int) -> set[int]:
    seen, stack = set[int](), [task]
    while stack:
        for before in waits[stack.pop()]:
            if before not in seen:
                seen.add(before)
                stack.append(before)
    return seen


def _unordered(plan: Timetable, first: int, second: int) -> Timetable | None:
    """The plan without the waits that make a task come after another; None if an engine does."""
    waits = waits_of(plan)

    def leads_back(other: int) -> bool:
        return other == first or first in _ancestors(waits, other)

    task = plan.program.tasks[second]
    left = tuple(other for other in task.after if not leads_back(other))
    wrong = _with_task(plan, second, replace(task, after=left))
    edges = tuple(e for e in plan.edges if e[1] != second or not leads_back(e[0]))
    wrong = replace(wrong, edges=edges)
    return None if first in _ancestors(waits_of(wrong), second) else wrong


def _touching(plan: Timetable, ring: Ring, *, reads: bool) -> Iterator[tuple[int, Box]]:
    """Tasks that read or write a ring, and where."""
    for number, task in enumerate(plan.program.tasks):
        for access in task.reads if reads else task.writes:
            root, box = _place(plan, access)
            if root == ring.root:
                yield number, box


def overwrites_too_soon(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A task does not wait for one that still reads the row which it writes over."""
    ring = draw.choice(rings(plan))
    writer, place = draw.choice(list(_touching(plan, ring, reads=False)))
    start = plan.slots[writer].start_cycle
    readers = [
        number
        for number, box in _touching(plan, ring, reads=True)
        if _meet(box, place) and plan.slots[number].end_cycle <= start and number != writer
    ]
    return _unordered(plan, draw.choice(readers), writer) if readers else None


def reads_too_soon(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A task does not wait for one that writes the row which it reads: it may find an older one."""
    ring = draw.choice(rings(plan))
    reader, place = draw.choice(list(_touching(plan, ring, reads=True)))
    start = plan.slots[reader].start_cycle
    before = [
        (plan.slots[number].end_cycle, number)
        for number, box in _touching(plan, ring, reads=False)
        if _meet(box, place) and plan.slots[number].end_cycle <= start
    ]
    return _unordered(plan, max(before)[1], reader) if before else None


def starts_a_lap_early(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A row is read when its place still holds the row of the lap before."""
    ring = draw.choice(rings(plan))
    reader, place = draw.choice(list(_touching(plan, ring, reads=True)))
    writers = sorted(
        (plan.slots[number].start_cycle, number)
        for number, box in _touching(plan, ring, reads=False)
        if _meet(box, place) and plan.slots[number].end_cycle <= plan.slots[reader].start_cycle
    )
    if len(writers) < 2:
        return None
    # Everything waits as it did, only this task does not, and it runs before its writer.
    wrong = _unordered(plan, writers[-1][1], reader)
    if wrong is None:
        return None
    slots = list(plan.slots)
    end = writers[-1][0]
    slots[reader] = replace(
        slots[reader], start_cycle=end - plan.program.tasks[reader].cycles, end_cycle=end
    )
    return replace(wrong, slots=tuple(slots)) if slots[reader].start_cycle >= 0 else None


def without_a_halo_row(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A tile does not read the first or the last of the rows that it needs."""
    ring = draw.choice(rings(plan))
    number, _ = draw.choice(list(_touching(plan, ring, reads=True)))
    task = plan.program.tasks[number]
    if not task.op:
        return None
    mine = [at for at, access in enumerate(task.reads) if access.buffer in ring.laps]
    names = [plan.program.buffers[task.reads[at].buffer].tensor for at in mine]
    if len(set(names)) > 1:
        return None
    spans = [task.reads[at].box[ring.axis] for at in mine]
    edge = draw.choice([min(start for start, _ in spans), max(stop for _, stop in spans) - 1])
    reads = []
    for at, access in enumerate(task.reads):
        start, stop = access.box[ring.axis] if at in mine else (0, 1)
        if at not in mine or not start <= edge < stop:
            reads.append(access)
        elif stop - start > 1:
            span = (start + 1, stop) if edge == start else (start, stop - 1)
            reads.append(Access(access.buffer, _cut(access.box, ring.axis, span)))
    return _with_task(plan, number, replace(task, reads=tuple(reads)))


def _beside(
    plan: Timetable, ring: Ring, access: Access, draw: random.Random
) -> tuple[Timetable, Access] | None:
    """The plan with one buffer more, which has the box of an access a row away from its place."""
    step = draw.choice([-1, 1])
    _, place = _place(plan, access)
    start, stop = place[ring.axis]
    if start + step < 0 or stop + step > ring.rows:
        return None
    buffers = plan.program.buffers
    origin = [begin for begin, _ in place]
    origin[ring.axis] += step
    lap = buffers[access.buffer]
    size = lap.size_bytes * _elements(access.box) // _elements(lap.box)
    view = View(ring.root, tuple(origin))
    made = replace(lap, box=access.box, size_bytes=size, view=view)
    program = replace(plan.program, buffers=(*buffers, made))
    addresses = (*plan.addresses, _address(buffers, plan.addresses, view))
    return replace(plan, program=program, addresses=addresses), Access(len(buffers), access.box)


def _elements(box: Box) -> int:
    return prod(stop - start for start, stop in box)


def reads_beside(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A task looks for a row one place before or behind the one where it lies."""
    ring = draw.choice(rings(plan))
    number, _ = draw.choice(list(_touching(plan, ring, reads=True)))
    task = plan.program.tasks[number]
    at = draw.choice([i for i, a in enumerate(task.reads) if a.buffer in ring.laps])
    found = _beside(plan, ring, task.reads[at], draw)
    if found is None:
        return None
    wrong, access = found
    reads = (*task.reads[:at], access, *task.reads[at + 1 :])
    return _with_task(wrong, number, replace(task, reads=reads))


def writes_beside(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A task leaves rows that are read later one place before or behind their own."""
    ring = draw.choice(rings(plan))
    number, _ = draw.choice(list(_touching(plan, ring, reads=False)))
    task = plan.program.tasks[number]
    at = draw.choice([i for i, a in enumerate(task.writes) if a.buffer in ring.laps])
    is_read = any(
        access.buffer == task.writes[at].buffer and _meet(access.box, task.writes[at].box)
        for other in plan.program.tasks
        for access in other.reads
    )
    found = _beside(plan, ring, task.writes[at], draw)
    if found is None or not is_read:
        return None
    wrong, access = found
    writes = (*task.writes[:at], access, *task.writes[at + 1 :])
    return _with_task(wrong, number, replace(task, writes=writes))


def reads_the_lap_before(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A tile reads the rows that lay in the place of its own one lap ago, as if they were those."""
    ring = draw.choice(rings(plan))
    number, _ = draw.choice(list(_touching(plan, ring, reads=True)))
    task = plan.program.tasks[number]
    at = draw.choice([i for i, a in enumerate(task.reads) if a.buffer in ring.laps])
    access, buffers = task.reads[at], plan.program.buffers
    start, stop = access.box[ring.axis]
    before = [
        lap
        for lap in ring.laps
        if buffers[lap].tensor == buffers[access.buffer].tensor
        and buffers[lap].box[ring.axis][0] <= start - ring.rows
        and stop - ring.rows <= buffers[lap].box[ring.axis][1]
    ]
    if not before:
        return None
    box = _cut(access.box, ring.axis, (start - ring.rows, stop - ring.rows))
    reads = (*task.reads[:at], Access(before[0], box), *task.reads[at + 1 :])
    return _with_task(plan, number, replace(task, reads=reads))


CASCADE_FAULTS: tuple[Fault, ...] = (
    overwrites_too_soon,
    reads_too_soon,
    starts_a_lap_early,
    without_a_halo_row,
    reads_beside,
    writes_beside,
    reads_the_lap_before,
)

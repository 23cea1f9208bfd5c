"""Ways to make a correct plan wrong: each fault, if it finds a place, is one for certain."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.program.model import Access, Charge, Task, Timetable

Fault = Callable[[Timetable, random.Random], Timetable | None]
"""A wrong plan made of a correct one; None where the fault that was drawn is none."""


def _with_task(plan: Timetable, number: int, task: Task) -> Timetable:
    tasks = list(plan.program.tasks)
    tasks[number] = task
    return replace(plan, program=replace(plan.program, tasks=tuple(tasks)))


def _life(plan: Timetable, root: int) -> tuple[int, int] | None:
    """From the first write to the last read of a buffer; None if either is missing."""
    program, slots = plan.program, plan.slots
    writes = [
        slots[n].start_cycle
        for n, task in enumerate(program.tasks)
        if any(program.root(a.buffer) == root for a in task.writes)
    ]
    reads = [
        slots[n].end_cycle
        for n, task in enumerate(program.tasks)
        if any(program.root(a.buffer) == root for a in task.reads)
    ]
    return (min(writes), max(reads)) if writes and reads else None


def _is_used_as_a_whole(plan: Timetable, root: int) -> bool:
    """Whether every access is to all of a buffer: parts may be dead while others live."""
    buffers = plan.program.buffers
    return all(
        access.buffer == root and access.box == buffers[root].box
        for task in plan.program.tasks
        for access in (*task.reads, *task.writes)
        if plan.program.root(access.buffer) == root
    )


def moved_onto_another(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A buffer lies where another one lives at the same time."""
    program = plan.program
    scratch = [
        n
        for n, b in enumerate(program.buffers)
        if b.view is None and program.space[b.space].kind == "scratchpad"
    ]
    one, other = draw.sample(scratch, 2)
    if not (_is_used_as_a_whole(plan, one) and _is_used_as_a_whole(plan, other)):
        return None
    lives = _life(plan, one), _life(plan, other)
    if program.buffers[one].space != program.buffers[other].space or None in lives:
        return None
    (a, b), (c, d) = (life for life in lives if life is not None)
    step = plan.addresses[other] - plan.addresses[one]
    end = plan.addresses[other] + program.buffers[one].size_bytes
    room = program.space[program.buffers[one].space].size_bytes
    if max(a, c) >= min(b, d) or step == 0 or end > room:
        return None
    addresses = [
        address + step if program.root(n) == one else address
        for n, address in enumerate(plan.addresses)
    ]
    return replace(plan, addresses=tuple(addresses))


def shortened(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A buffer has fewer bytes than its elements take."""
    number = draw.randrange(len(plan.program.buffers))
    buffers = list(plan.program.buffers)
    size = buffers[number].size_bytes
    if size < 2 or buffers[number].view is not None:
        return None
    buffers[number] = replace(buffers[number], size_bytes=size - draw.randint(1, size // 2))
    return replace(plan, program=replace(plan.program, buffers=tuple(buffers)))


def waits_of(plan: Timetable) -> list[list[int]]:
    """By task: what it waits for, the task before it on its engine included."""
    waits = [list(task.after) for task in plan.program.tasks]
    for first, second in plan.edges:
        waits[second].append(first)
    last: dict[tuple[str, int], int] = {}
    slots = plan.slots
    for n in sorted(range(len(slots)), key=lambda n: (slots[n].start_cycle, slots[n].end_cycle, n)):
        key = plan.program.tasks[n].engine, slots[n].instance
        if key in last:
            waits[n].append(last[key])
        last[key] = n
    return waits


def _is_ordered(plan: Timetable, first: int, second: int) -> bool:
    waits, seen, stack = waits_of(plan), set[int](), [second]
    while stack:
        for before in waits[stack.pop()]:
            if before == first:
                return True
            if before not in seen:
                seen.add(before)
                stack.append(before)
    return False


def _touches(plan: Timetable, first: int, second: int) -> bool:
    """Whether the second task reads a box that the first one writes."""
    tasks = plan.program.tasks
    return any(
        a.buffer == b.buffer
        and all(s < v and u < t for (s, t), (u, v) in zip(a.box, b.box, strict=True))
        for a in tasks[first].writes
        for b in tasks[second].reads
    )


def without_wait(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A task does not wait for who writes what it reads, and nothing else makes it."""
    number = draw.randrange(len(plan.program.tasks))
    task = plan.program.tasks[number]
    if not task.after:
        return None
    dropped = draw.choice(task.after)
    left = tuple(other for other in task.after if other != dropped)
    wrong = _with_task(plan, number, replace(task, after=left))
    if not _touches(plan, dropped, number) or _is_ordered(wrong, dropped, number):
        return None
    return wrong


def without_edge(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A place is used again without a wait for who used it before."""
    if not plan.edges:
        return None
    dropped = draw.choice(plan.edges)
    wrong = replace(plan, edges=tuple(edge for edge in plan.edges if edge != dropped))
    return None if _is_ordered(wrong, *dropped) else wrong


def without_task(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A task does nothing: a transfer or a tile is missing."""
    number = draw.randrange(len(plan.program.tasks))
    task = plan.program.tasks[number]
    idle = replace(task, kind="load", op="", fused=(), tile=(), reads=(), writes=(), charges=())
    return _with_task(plan, number, idle)


def _replaced(accesses: Sequence[Access], at: int, access: Access) -> tuple[Access, ...]:
    return (*accesses[:at], access, *accesses[at + 1 :])


def without_a_row(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A tile does not read a row that it needs: of an operand that its loops touch all of."""
    number = draw.randrange(len(plan.program.tasks))
    task = plan.program.tasks[number]
    if task.kind != "compute" or len(task.reads) < 2:
        return None
    # The first two operands are data and weights, whose boxes are exactly what is touched.
    at = draw.randrange(2)
    box = list(task.reads[at].box)
    axis = draw.randrange(len(box))
    begin, end = box[axis]
    if end - begin < 2:
        return None
    box[axis] = draw.choice([(begin + 1, end), (begin, end - 1)])
    access = Access(task.reads[at].buffer, tuple(box))
    return _with_task(plan, number, replace(task, reads=_replaced(task.reads, at, access)))


def exchanged_slices(plan: Timetable, draw: random.Random) -> Timetable | None:
    """Two loads bring each other's slice of a tensor."""
    tasks = plan.program.tasks
    loads = [n for n, task in enumerate(tasks) if task.kind == "load" and task.reads]
    one, other = draw.sample(loads, 2)
    a, b = tasks[one].reads, tasks[other].reads
    shapes = [[tuple(t - s for s, t in r.box) for r in reads] for reads in (a, b)]
    if [r.buffer for r in a] != [r.buffer for r in b] or shapes[0] != shapes[1] or a == b:
        return None
    wrong = _with_task(plan, one, replace(tasks[one], reads=b))
    return _with_task(wrong, other, replace(tasks[other], reads=a))


def too_early(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A task starts before what it waits for has ended."""
    number = draw.randrange(len(plan.program.tasks))
    after = plan.program.tasks[number].after
    if not after:
        return None
    start = max(plan.slots[other].end_cycle for other in after) - draw.randint(1, 3)
    if start < 0:
        return None
    slots = list(plan.slots)
    cycles = slots[number].end_cycle - slots[number].start_cycle
    slots[number] = replace(slots[number], start_cycle=start, end_cycle=start + cycles)
    return replace(plan, slots=tuple(slots))


def another_tile(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A tile's loops end a step too early, or begin one too late."""
    number = draw.randrange(len(plan.program.tasks))
    task = plan.program.tasks[number]
    if not task.tile:
        return None
    at = draw.randrange(len(task.tile))
    dim, begin, end = task.tile[at]
    if end - begin < 2:
        return None
    cut = draw.choice([(dim, begin + 1, end), (dim, begin, end - 1)])
    return _with_task(
        plan, number, replace(task, tile=(*task.tile[:at], cut, *task.tile[at + 1 :]))
    )


def other_bytes(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A transfer claims another number of bytes than it moves."""
    number = draw.randrange(len(plan.program.tasks))
    task = plan.program.tasks[number]
    if task.op or not task.charges:
        return None
    first, *rest = task.charges
    wrong = replace(first, read_bytes=first.read_bytes + draw.choice([-1, 1, 64]))
    return _with_task(plan, number, replace(task, charges=(wrong, *rest)))


def at_the_same_time(plan: Timetable, draw: random.Random) -> Timetable | None:
    """Two tasks run on one instance of an engine at once."""
    number = draw.randrange(len(plan.program.tasks))
    task, slot = plan.program.tasks[number], plan.slots[number]
    others = [
        other
        for other, found in enumerate(plan.slots)
        if other != number
        and plan.program.tasks[other].engine == task.engine
        and found.instance == slot.instance
        and found.end_cycle > found.start_cycle
    ]
    if not others or slot.end_cycle == slot.start_cycle:
        return None
    start = plan.slots[draw.choice(others)].start_cycle
    slots = list(plan.slots)
    end = start + slot.end_cycle - slot.start_cycle
    slots[number] = replace(slot, start_cycle=start, end_cycle=end)
    return replace(plan, slots=tuple(slots))


def from_a_neighbour(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A transfer reads a box one element beside the one that it writes."""
    number = draw.randrange(len(plan.program.tasks))
    task = plan.program.tasks[number]
    if task.kind == "compute" or len(task.reads) != 1:
        return None
    read = task.reads[0]
    whole = plan.program.buffers[read.buffer].box
    free = [axis for axis, (_, stop) in enumerate(read.box) if stop < whole[axis][1]]
    if not free:
        return None
    axis = draw.choice(free)
    start, stop = read.box[axis]
    box = (*read.box[:axis], (start + 1, stop + 1), *read.box[axis + 1 :])
    return _with_task(plan, number, replace(task, reads=(read._replace(box=box),)))


def _priced(plan: Timetable, draw: random.Random) -> tuple[int, int] | None:
    """A task and one of its charges, which is known to the digit: no model of a core decides."""
    number = draw.randrange(len(plan.program.tasks))
    task = plan.program.tasks[number]
    is_modelled = task.mapping is None and any(c.memory == "array" for c in task.charges)
    return None if is_modelled or not task.charges else (number, draw.randrange(len(task.charges)))


def _charged(plan: Timetable, number: int, at: int, charge: Charge) -> Timetable:
    task = plan.program.tasks[number]
    return _with_task(
        plan, number, replace(task, charges=(*task.charges[:at], charge, *task.charges[at + 1 :]))
    )


def less_energy(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A task claims less energy at a memory than it takes there."""
    found = _priced(plan, draw)
    if found is None:
        return None
    charge = plan.program.tasks[found[0]].charges[found[1]]
    less = replace(charge, energy_pj=0.9 * charge.energy_pj)
    return None if less == charge else _charged(plan, *found, less)


def fewer_bytes(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A task claims a byte less at a memory than it reads there."""
    found = _priced(plan, draw)
    if found is None:
        return None
    charge = plan.program.tasks[found[0]].charges[found[1]]
    if not charge.read_bytes:
        return None
    return _charged(plan, *found, replace(charge, read_bytes=charge.read_bytes - 1))


def without_a_read(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A tile does not read one of its operands, or the sums that it goes on from."""
    number = draw.randrange(len(plan.program.tasks))
    task = plan.program.tasks[number]
    if task.kind != "compute" or len(task.reads) < 2:
        return None
    at = draw.randrange(len(task.reads))
    left = (*task.reads[:at], *task.reads[at + 1 :])
    return None if task.reads[at] in left else _with_task(plan, number, replace(task, reads=left))


def writes_a_row_more(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A tile claims to write what another one makes."""
    number = draw.randrange(len(plan.program.tasks))
    task = plan.program.tasks[number]
    if task.kind != "compute" or not task.writes:
        return None
    at = draw.randrange(len(task.writes))
    box, whole = task.writes[at].box, plan.program.buffers[task.writes[at].buffer].box
    free = [axis for axis, (_, end) in enumerate(box) if end < whole[axis][1]]
    if not free:
        return None
    axis = draw.choice(free)
    longer = (*box[:axis], (box[axis][0], box[axis][1] + 1), *box[axis + 1 :])
    access = task.writes[at]._replace(box=longer)
    return _with_task(plan, number, replace(task, writes=_replaced(task.writes, at, access)))


def without_mapping(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A tile on the array of a core without a model takes a cycle, whatever it does."""
    number = draw.randrange(len(plan.program.tasks))
    task = plan.program.tasks[number]
    if task.mapping is None:
        return None
    slots = list(plan.slots)
    slots[number] = replace(slots[number], end_cycle=slots[number].start_cycle + 1)
    wrong = _with_task(plan, number, replace(task, mapping=None, cycles=1))
    return replace(wrong, slots=tuple(slots))


def on_another_unit(plan: Timetable, draw: random.Random) -> Timetable | None:
    """A task is on the vector unit instead of the array, or the other way round."""
    number = draw.randrange(len(plan.program.tasks))
    task = plan.program.tasks[number]
    if task.kind != "compute" or not task.engine.startswith("core"):
        return None
    array = task.engine.removesuffix(".vector")
    other = f"{array}.vector" if task.engine == array else array
    return _with_task(plan, number, replace(task, engine=other))


FAULTS: tuple[Fault, ...] = (
    fewer_bytes,
    less_energy,
    on_another_unit,
    without_a_read,
    without_mapping,
    writes_a_row_more,
    at_the_same_time,
    from_a_neighbour,
    moved_onto_another,
    shortened,
    without_wait,
    without_edge,
    without_task,
    without_a_row,
    exchanged_slices,
    too_early,
    another_tile,
    other_bytes,
)


def wrong_plans(plan: Timetable, fault: Fault, count: int) -> list[Timetable]:
    """As many wrong plans as asked for, or as can be found in 200 times as many tries."""
    found: list[Timetable] = []
    for seed in range(200 * count):
        made = fault(plan, random.Random(seed))
        if made is not None:
            found.append(made)
        if len(found) == count:
            break
    return found

"""Does a timetable refer to things that exist, and do its boxes lie inside each other?

Nothing else can be checked before this holds.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from tilewright.errors import Problem
from tilewright.program.model import Access, Buffer, Program, Task, Timetable
from tilewright.replay.check_accesses import Accesses
from tilewright.replay.check_boxes import contains, shifted, text, view_shift, volume


def structure_problems(timetable: Timetable, accesses: Accesses) -> Iterator[Problem]:
    """Names and indices that lead nowhere, and boxes that lie outside their buffers."""
    program = timetable.program
    yield from _counts(timetable)
    for number in _suspect_buffers(program, accesses):
        yield from _buffer_problems(program, number, program.buffers[number])
    for role, buffers in (("given", program.given), ("results", program.results)):
        for buffer_number in buffers:
            if not 0 <= buffer_number < len(program.buffers):
                yield Problem(
                    message=f"`{role}` names buffer {buffer_number}, which does not exist"
                )
    engines = {engine.name for engine in program.engines}
    for number in _suspect_tasks(program, accesses, engines):
        yield from _task_problems(program, program.tasks[number], engines)
    for one, other in timetable.edges:
        if not (0 <= one < len(program.tasks) and 0 <= other < len(program.tasks)):
            yield Problem(message=f"edge ({one}, {other}) names a task that does not exist")


def _suspect_buffers(program: Program, accesses: Accesses) -> Sequence[int]:
    """Buffers to be looked at: those not seen at once to lie where they can."""
    spaces = {name: number for number, name in enumerate(program.space)}
    buffers, n_buffers = program.buffers, len(program.buffers)
    space = np.array([spaces.get(buffer.space, -1) for buffer in buffers], dtype=np.int64)
    size_bytes = np.array([buffer.size_bytes for buffer in buffers], dtype=np.int64)
    begins, ends = accesses.buffer_boxes
    is_fine = (space >= 0) & (size_bytes >= 0) & (begins <= ends).all(axis=0)
    is_view = np.array([buffer.view is not None for buffer in buffers], dtype=np.bool_)
    exists = (accesses.roots >= 0) & (accesses.roots < n_buffers)
    is_fine &= ~is_view | (exists & ~accesses.is_reshaped)
    views = np.flatnonzero(is_fine & is_view)
    root = accesses.roots[views]
    n_axes = np.array([len(buffer.box) for buffer in buffers], dtype=np.int64)
    begins, ends = (accesses.buffer_boxes + accesses.shifts).take(views, axis=2)
    lowest, highest = accesses.buffer_boxes.take(root, axis=2)
    is_inside = ((lowest <= begins) & (ends <= highest)).all(axis=0) & ~is_view[root]
    is_fine[views] = is_inside & (space[views] == space[root]) & (n_axes[views] == n_axes[root])
    suspects: list[int] = np.flatnonzero(~is_fine).tolist()
    return suspects


def _suspect_tasks(program: Program, accesses: Accesses, engines: set[str]) -> Sequence[int]:
    """Tasks to be looked at: those that touch something outside, or all if any names what does not
    exist."""
    named = {name for t in accesses.kinds.examples for name in (t.engine, *t.ports)}
    waits = chain.from_iterable([task.after for task in program.tasks])
    after = np.fromiter(waits, dtype=np.int64)
    are_tasks = after.min(initial=0) >= 0 and after.max(initial=-1) < len(program.tasks)
    if named <= engines and are_tasks:
        return sorted(_tasks_outside(program, accesses))
    return range(len(program.tasks))


def _tasks_outside(program: Program, accesses: Accesses) -> set[int]:
    """Tasks that touch something outside their buffers, or buffers that do not exist."""
    exists = (accesses.buffer >= 0) & (accesses.buffer < len(program.buffers))
    n_axes = np.array([len(buffer.box) for buffer in program.buffers], dtype=np.int64)
    rows = np.flatnonzero(exists)
    buffer, (begins, ends) = accesses.buffer[rows], accesses.boxes.take(rows, axis=2)
    lowest, highest = accesses.buffer_boxes.take(buffer, axis=2)
    inside = ((lowest <= begins) & (begins <= ends) & (ends <= highest)).all(axis=0)
    is_fine = np.zeros(len(exists), dtype=np.bool_)
    is_fine[rows] = inside & (accesses.n_axes[rows] == n_axes[buffer])
    return set(accesses.task[~is_fine].tolist())


def _counts(timetable: Timetable) -> Iterator[Problem]:
    program = timetable.program
    for what, have, need in (
        ("slots", len(timetable.slots), len(program.tasks)),
        ("addresses", len(timetable.addresses), len(program.buffers)),
    ):
        if have != need:
            yield Problem(message=f"{program.name}: {have} {what}, and {need} are needed")


def _buffer_problems(program: Program, number: int, buffer: Buffer) -> Iterator[Problem]:
    name = f"buffer {buffer.name}"
    if buffer.space not in program.space:
        yield Problem(message=f"{name} lies in {buffer.space}, a space that does not exist")
    if buffer.size_bytes < 0 or any(begin > end for begin, end in buffer.box):
        yield Problem(message=f"{name}: {buffer.size_bytes} bytes, box {text(buffer.box)}")
    if buffer.view is None:
        return
    if not 0 <= buffer.view.buffer < len(program.buffers) or buffer.view.buffer == number:
        root = f"buffer {buffer.view.buffer}, which does not exist or is itself"
        yield Problem(message=f"{name} is a view of {root}")
        return
    yield from _view_problems(buffer, program.buffers[buffer.view.buffer])


def _view_problems(buffer: Buffer, root: Buffer) -> Iterator[Problem]:
    assert buffer.view is not None
    view = f"buffer {buffer.name}, a view of {root.name}"
    if root.view is not None:
        yield Problem(message=f"{view}: {root.name} is itself a view, so it has no bytes")
    if root.space != buffer.space:
        yield Problem(message=f"{view}: lies in {buffer.space} and its root in {root.space}")
    if buffer.view.origin is None:
        yield from _same_bytes(view, buffer, root)
        return
    if not len(buffer.view.origin) == len(root.box) == len(buffer.box):
        axes = f"{len(buffer.box)} axes, origin {len(buffer.view.origin)}, root {len(root.box)}"
        yield Problem(message=f"{view}: {axes}; they must be equal")
        return
    shift = view_shift(buffer)
    assert shift is not None
    place = shifted(buffer.box, shift)
    if not contains(root.box, place):
        yield Problem(message=f"{view}: lies at {text(place)}, outside the root's {text(root.box)}")


def _same_bytes(view: str, buffer: Buffer, root: Buffer) -> Iterator[Problem]:
    if buffer.size_bytes != root.size_bytes:
        sizes = f"{buffer.size_bytes} bytes, the root {root.size_bytes}"
        yield Problem(message=f"{view} under another shape: {sizes}; they must be equal")
    elif volume(buffer.box) != volume(root.box):
        sizes = f"{volume(buffer.box)} elements, the root {volume(root.box)}"
        yield Problem(message=f"{view} under another shape: {sizes}; they must be equal")


def _task_problems(program: Program, task: Task, engines: set[str]) -> Iterator[Problem]:
    for name in (task.engine, *task.ports):
        if name not in engines:
            yield Problem(message=f"task {task.name} needs {name}, an engine that does not exist")
    for before in task.after:
        if not 0 <= before < len(program.tasks):
            yield Problem(message=f"task {task.name} waits for task {before}, which does not exist")
    for verb, accesses in (("reads", task.reads), ("writes", task.writes)):
        for access in accesses:
            yield from _access_problems(program, f"task {task.name} {verb}", access)


def _access_problems(program: Program, who: str, access: Access) -> Iterator[Problem]:
    if not 0 <= access.buffer < len(program.buffers):
        yield Problem(message=f"{who} buffer {access.buffer}, which does not exist")
        return
    buffer = program.buffers[access.buffer]
    if not contains(buffer.box, access.box):
        yield Problem(
            message=f"{who} {text(access.box)} of buffer {buffer.name}, "
            f"which holds {text(buffer.box)} only"
        )

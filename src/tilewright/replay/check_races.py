"""Does anyone touch what another one is just writing?

A box counts as touched from the start of a task to its end.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tilewright.errors import Problem
from tilewright.program.model import Access, Box, Program, Timetable
from tilewright.replay.check_accesses import Accesses, volumes
from tilewright.replay.check_boxes import (
    Boxes,
    Ints,
    box_array,
    box_at,
    boxes_in_root,
    bytes_of,
    common,
    pairs_before,
    text,
    view_shift,
    volume,
)
from tilewright.replay.check_time import cycles_text, slot_times


class Use(NamedTuple):
    """A box of a root that a task touches."""

    task: int
    is_write: bool
    box: Box


def races(
    timetable: Timetable, accesses: Accesses, order: Sequence[int]
) -> dict[int, list[Problem]]:
    """By task: tasks that run at its start and touch the same elements, one of the two writing.

    `order` are all tasks by start.
    """
    program = timetable.program
    rows, boxes = _in_roots(program, accesses)
    roots = accesses.roots[accesses.buffer[rows]]
    turns = np.empty(len(order), dtype=np.int64)
    turns[order] = np.arange(len(order))
    by_root = np.lexsort((rows, turns[accesses.task[rows]], roots))
    rows, roots, (begins, ends) = rows[by_root], roots[by_root], boxes[:, :, by_root]
    task, is_write = accesses.task[rows], accesses.is_write[rows]
    found: list[tuple[int, int, int, int]] = []
    for i, j in pairs_before(_stops(timetable, task, roots)):
        is_race = (is_write[i] | is_write[j]) & (task[i] != task[j])
        i, j = i[is_race], j[is_race]
        meet = ((begins[:, i] < ends[:, j]) & (begins[:, j] < ends[:, i])).all(axis=0)
        i, j = i[meet], j[meet]
        found += zip(*(k.tolist() for k in (rows[j], turns[task[i]], i, j)), strict=True)
    problems: dict[int, list[Problem]] = {}
    for _, _, first, second in sorted(found):
        root = int(roots[first])
        n_axes = len(program.buffers[root].box)
        one, other = (
            Use(int(task[at]), bool(is_write[at]), box_at(boxes, int(by_root[at]), n_axes))
            for at in (first, second)
        )
        problems.setdefault(other.task, []).append(_race(timetable, root, one, other))
    return problems


def _race(timetable: Timetable, root: int, one: Use, other: Use) -> Problem:
    buffer = timetable.program.buffers[root]
    box = common(one.box, other.box)
    verbs = ["writes" if use.is_write else "reads" for use in (one, other)]
    start = timetable.slots[other.task].start_cycle
    end = min(timetable.slots[use.task].end_cycle for use in (one, other))
    return Problem(
        message=f"{cycles_text(timetable, one.task)} {verbs[0]} and "
        f"{cycles_text(timetable, other.task)} {verbs[1]} {text(box)} of buffer "
        f"{buffer.name} ({bytes_of(buffer, volume(box))} bytes) at cycles {start} to {end}"
    )


def _in_roots(program: Program, accesses: Accesses) -> tuple[Ints, Boxes]:
    """The boxes of roots that are touched, and by which access; none that is empty.

    Those of roots that nobody writes are left out.
    """
    roots = accesses.roots[accesses.buffer]
    is_written = np.zeros(len(program.buffers), dtype=np.bool_)
    is_written[roots[accesses.is_write]] = True
    is_wanted = is_written[roots] & (volumes(accesses.boxes) > 0)
    shifts = np.zeros((accesses.boxes.shape[1], len(program.buffers)), dtype=np.int64)
    has_other_shape = np.zeros(len(program.buffers), dtype=np.bool_)
    for number, buffer in enumerate(program.buffers):
        if buffer.view is not None:
            shift = view_shift(buffer)
            has_other_shape[number] = shift is None
            shifts[: len(shift or ()), number] = shift or ()
    rows = np.flatnonzero(is_wanted & ~has_other_shape[accesses.buffer])
    boxes = accesses.boxes[:, :, rows] + shifts[:, accesses.buffer[rows]]
    others = [
        (row, box)
        for row in np.flatnonzero(is_wanted & has_other_shape[accesses.buffer]).tolist()
        for box in boxes_in_root(program, _access(accesses, row))
    ]
    if not others:
        return rows, boxes
    more = box_array([box for _, box in others], boxes.shape[1])
    return np.append(rows, [row for row, _ in others]), np.concatenate([boxes, more], axis=2)


def _access(accesses: Accesses, row: int) -> Access:
    box = box_at(accesses.boxes, row, int(accesses.n_axes[row]))
    return Access(int(accesses.buffer[row]), box)


def _stops(timetable: Timetable, tasks: Ints, roots: Ints) -> Ints:
    """Of uses by root and start: the first one behind each that does not start before it ends."""
    starts, ends = slot_times(timetable)
    starts, ends = starts[tasks], ends[tasks]
    in_order = np.sort(starts)
    # As places among all starts they can be one number with the root, however late they are.
    places = [np.searchsorted(in_order, times) for times in (starts, ends)]
    begin, end = (roots * (len(tasks) + 1) + place for place in places)
    return np.searchsorted(begin, end)

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
    meeting,
    pairs_before,
    text,
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
    rows, roots, in_order = rows[by_root], roots[by_root], boxes.take(by_root, axis=2)
    task, is_write = accesses.task[rows], accesses.is_write[rows]
    found: list[tuple[int, int, int, int]] = []
    for i, j in pairs_before(_stops(timetable, task, roots)):
        is_race = (is_write[i] | is_write[j]) & (task[i] != task[j])
        i, j = meeting(in_order, i[is_race], j[is_race])
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
    is_reshaped = accesses.is_reshaped[accesses.buffer]
    rows = np.flatnonzero(is_wanted & ~is_reshaped)
    boxes = accesses.boxes.take(rows, axis=2)
    boxes += accesses.shifts.take(accesses.buffer[rows], axis=1)
    others = [
        (row, box)
        for row in np.flatnonzero(is_wanted & is_reshaped).tolist()
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

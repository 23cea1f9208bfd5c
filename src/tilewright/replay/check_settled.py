"""Buffers whose contents never change once they are there: most of a plan, looked at all at once.

What is accepted here need not be walked through. What is not may still be right.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.program.model import Box, Program, Timetable
from tilewright.replay.check_accesses import Accesses, Flags, roots_of
from tilewright.replay.check_boxes import Boxes, Ints, box_at
from tilewright.replay.check_transfers import is_plain_copy

GIVEN = -1
"""The maker of what is there from the start."""

UNSETTLED = -2
"""In place of the maker of a buffer that may change."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Settled:
    """Buffers of which all reads are right.

    A settled buffer is no view and touched through no view. It is given and never written, or
    written once and read only later, inside of what was written. A copy settles what it writes if
    it reads the same box of the same tensor in a settled buffer.
    """

    makers: list[int]
    """By buffer: the task that made what lies in it, or GIVEN, or UNSETTLED."""
    boxes: Boxes
    """By buffer: what is written or given of it."""
    walked_tasks: list[bool]
    """By task: whether it touches a buffer that is not settled."""

    def box(self, program: Program, buffer: int) -> Box:
        """What a settled buffer holds of its tensor."""
        return box_at(self.boxes, buffer, len(program.buffers[buffer].box))


def settled_buffers(
    timetable: Timetable, accesses: Accesses, order: Sequence[int], unfinished: Iterable[int]
) -> Settled:
    """The settled buffers; `order` are all tasks by start, and `unfinished` make partial sums."""
    program = timetable.program
    is_given = np.zeros(len(program.buffers), dtype=np.bool_)
    is_given[list(program.given)] = True
    writes = np.flatnonzero(accesses.is_write)
    row = np.full(len(program.buffers), -1, dtype=np.int64)
    row[accesses.buffer[writes]] = writes
    boxes = accesses.buffer_boxes.copy()
    boxes[:, :, row >= 0] = accesses.boxes[:, :, row[row >= 0]]
    is_steady = _is_steady(program, accesses, is_given)
    is_steady &= _is_read_later(accesses, order, row, boxes)
    makers = np.full(len(program.buffers), UNSETTLED, dtype=np.int64)
    makers[is_steady & is_given] = GIVEN
    is_copy = np.array([is_plain_copy(task) for task in program.tasks], dtype=np.bool_)
    is_unfinished = np.zeros(len(program.tasks), dtype=np.bool_)
    is_unfinished[list(unfinished)] = True
    written = np.flatnonzero(is_steady & ~is_given)
    writer = accesses.task[row[written]]
    is_made = ~is_copy[writer] & ~is_unfinished[writer]
    makers[written[is_made]] = writer[is_made]
    copied = written[is_copy[writer]]
    sources, is_same = _sources(program, accesses, row[copied])
    _spread(makers, copied[is_same], sources[is_same])
    is_walked = np.zeros(len(program.tasks), dtype=np.bool_)
    is_walked[accesses.task[makers[accesses.buffer] == UNSETTLED]] = True
    return Settled(makers=makers.tolist(), boxes=boxes, walked_tasks=is_walked.tolist())


def _is_steady(program: Program, accesses: Accesses, is_given: Flags) -> Flags:
    """Buffers, no views involved, that are either given or written, and written only once."""
    roots = roots_of(program)
    touched = roots[accesses.buffer]
    n_writes = np.bincount(touched[accesses.is_write], minlength=len(roots))
    is_steady: Flags = n_writes == np.where(is_given, 0, 1)
    own = np.arange(len(roots), dtype=np.int64)
    is_steady &= roots == own
    is_steady[touched[touched != accesses.buffer]] = False
    is_steady[roots[is_given & (roots != own)]] = False
    return is_steady


def _is_read_later(accesses: Accesses, order: Sequence[int], row: Ints, boxes: Boxes) -> Flags:
    """Buffers that are read only after the access that writes them, and inside its box."""
    turns = np.empty(len(order), dtype=np.int64)
    turns[order] = np.arange(len(order))
    there_from = np.full(len(row), -1, dtype=np.int64)
    there_from[row >= 0] = turns[accesses.task[row[row >= 0]]]
    reads = np.flatnonzero(~accesses.is_write)
    buffer, (begins, ends) = accesses.buffer[reads], accesses.boxes[:, :, reads]
    lowest, highest = boxes[:, :, buffer]
    is_right = ((lowest <= begins) & (ends <= highest)).all(axis=0)
    is_right &= turns[accesses.task[reads]] > there_from[buffer]
    is_read_later = np.ones(len(row), dtype=np.bool_)
    is_read_later[buffer[~is_right]] = False
    return is_read_later


def _sources(program: Program, accesses: Accesses, writes: Ints) -> tuple[Ints, Flags]:
    """Buffers from which copies take what they write, and whether that is the same data.

    Of several reads and writes the first goes with the first, and so on; a single read with all.
    """
    numbers: dict[str, int] = {}
    tensors = np.array(
        [numbers.setdefault(buffer.tensor, len(numbers)) for buffer in program.buffers],
        dtype=np.int64,
    )
    task = accesses.task[writes]
    n_reads = np.bincount(accesses.task[~accesses.is_write], minlength=len(program.tasks))[task]
    first = np.searchsorted(accesses.task, task)
    place = np.where(n_reads == 1, 0, writes - first - n_reads)
    has_source = place < n_reads
    reads = np.where(has_source, first + place, writes)
    buffer, target = accesses.buffer[reads], accesses.buffer[writes]
    is_same_box = (accesses.boxes[:, :, reads] == accesses.boxes[:, :, writes]).all(axis=(0, 1))
    is_same_box &= accesses.n_axes[reads] == accesses.n_axes[writes]
    return buffer, has_source & is_same_box & (tensors[buffer] == tensors[target])


def _spread(makers: Ints, targets: Ints, sources: Ints) -> None:
    """Copies settle their targets, from settled buffers on, as far as that leads."""
    while True:
        is_new = (makers[targets] == UNSETTLED) & (makers[sources] != UNSETTLED)
        if not is_new.any():
            return
        makers[targets[is_new]] = makers[sources[is_new]]

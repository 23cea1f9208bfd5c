"""Buffers of which every read is seen to be right without a walk: most of a plan, all at once.

What is accepted here need not be walked through. What is not may still be right.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.program.model import Program, Timetable
from tilewright.replay.check_accesses import Accesses, sources_of
from tilewright.replay.check_boxes import (
    MOST_ELEMENTS,
    Boxes,
    Ints,
    meeting,
    meeting_within,
    ranges,
)
from tilewright.replay.check_kinds import Flags

GIVEN = -1
"""The maker of what is there from the start."""

UNKNOWN = -2
"""In place of the maker of what has to be walked through."""

MANY = 256
"""A buffer with more writes, or a root with more of them before a read, is walked through."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Settled:
    """Roots of which all reads are right, and who made what is read there."""

    is_settled: list[bool]
    """By buffer whether its root is settled."""
    makers: list[int]
    """By access the last maker of what it reads or writes, GIVEN, or UNKNOWN."""
    first_access: list[int]
    """By task the first of its accesses."""
    walked_tasks: list[bool]
    """By task whether it touches a buffer that is not settled."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Touches:
    """All accesses, then what is given as if it were written, and results as if they were read."""

    turn: Ints
    buffer: Ints
    root: Ints
    is_write: Flags
    boxes: Boxes
    """In the coordinates of their roots."""
    is_odd: Flags
    """By touch whether it is of a view under another shape, or of more than can be counted."""


def settled_buffers(
    timetable: Timetable, accesses: Accesses, order: Sequence[int], unfinished: Iterable[int]
) -> Settled:
    """The settled roots; `order` are all tasks by start, and `unfinished` make partial sums.

    A read is right if writes to the same buffer, of which no two overlap, filled its box before,
    and no write to another buffer of the root came in between. It must be finished data: made by
    an op, or given, or copied from the same box of the same tensor by a read that is right.
    """
    program = timetable.program
    touches = _touches(program, accesses, order)
    writes = np.flatnonzero(touches.is_write)
    reads = np.flatnonzero(~touches.is_write)
    is_wrong = touches.is_odd.copy()
    is_wrong[_clashing(touches, writes)] = True
    pairs, since, is_filled = _own_writes(touches, reads, writes)
    is_wrong[reads[~is_filled]] = True
    is_wrong[_overwritten(touches, reads, writes, since)] = True
    is_candidate = np.ones(len(program.buffers), dtype=np.bool_)
    is_candidate[touches.root[is_wrong]] = False
    makers, is_settled = _makers(program, accesses, touches, (pairs, unfinished, is_candidate))
    is_walked = np.zeros(len(program.tasks), dtype=np.bool_)
    is_walked[accesses.task[~is_settled[accesses.roots[accesses.buffer]]]] = True
    first = np.searchsorted(accesses.task, np.arange(len(program.tasks)))
    return Settled(
        is_settled=is_settled[accesses.roots].tolist(),
        makers=makers.tolist(),
        first_access=first.tolist(),
        walked_tasks=is_walked.tolist(),
    )


def _touches(program: Program, accesses: Accesses, order: Sequence[int]) -> _Touches:
    turns = np.empty(len(order), dtype=np.int64)
    turns[order] = np.arange(len(order))
    own_given = {buffer for buffer in program.given if accesses.roots[buffer] == buffer}
    given = [b for b in program.given if b in own_given or accesses.roots[b] not in own_given]
    results = list(program.results)
    extra = np.array([*given, *results], dtype=np.int64)
    buffer = np.append(accesses.buffer, extra)
    boxes = np.concatenate([accesses.boxes, accesses.buffer_boxes.take(extra, axis=2)], axis=2)
    elements = (boxes[1] - boxes[0]).astype(np.float64).prod(axis=0)
    ends = [-1] * len(given) + [len(order)] * len(results)
    return _Touches(
        turn=np.append(turns[accesses.task], np.array(ends, dtype=np.int64)),
        buffer=buffer,
        root=accesses.roots[buffer],
        is_write=np.append(accesses.is_write, np.array(ends, dtype=np.int64) < 0),
        boxes=boxes + accesses.shifts.take(buffer, axis=1),
        is_odd=accesses.is_reshaped[buffer] | (elements > MOST_ELEMENTS),
    )


def _clashing(touches: _Touches, writes: Ints) -> Ints:
    """Writes to buffers that are written often, or twice to one element."""
    counts = np.bincount(touches.buffer[writes], minlength=int(touches.buffer.max(initial=0)) + 1)
    is_often = counts[touches.buffer[writes]] > MANY
    found = [writes[is_often]]
    rows = writes[~is_often]
    for one, _ in meeting_within(touches.buffer[rows], touches.boxes.take(rows, axis=2)):
        found.append(rows[one])
    return np.concatenate(found)


def _own_writes(
    touches: _Touches, reads: Ints, writes: Ints
) -> tuple[tuple[Ints, Ints], Ints, Flags]:
    """Reads paired with the earlier writes to their buffers that they meet.

    By read also the turn of the first of these, and whether they fill what is read.
    """
    n_turns = int(touches.turn.max(initial=0)) + 2
    keys = touches.buffer * n_turns + touches.turn + 1
    rows = writes[np.argsort(keys[writes], kind="stable")]
    last = np.searchsorted(keys[rows], keys[reads])
    first = np.searchsorted(keys[rows], touches.buffer[reads] * n_turns)
    place, j = ranges(np.where(last - first > MANY, last, first), last)
    one, other = meeting(touches.boxes, reads[place], rows[j])
    (begins, ends), (lowest, highest) = (touches.boxes.take(at, axis=2) for at in (one, other))
    sizes = np.maximum(0, np.minimum(ends, highest) - np.maximum(begins, lowest)).prod(axis=0)
    one, other, sizes = one[sizes > 0], other[sizes > 0], sizes[sizes > 0]
    shared = np.zeros(len(touches.turn), dtype=np.int64)
    np.add.at(shared, one, sizes)
    since = touches.turn.copy()
    np.minimum.at(since, one, touches.turn[other])
    begins, ends = touches.boxes.take(reads, axis=2)
    is_filled = shared[reads] == np.maximum(0, ends - begins).prod(axis=0)
    return (one, other), since[reads], is_filled


def _overwritten(touches: _Touches, reads: Ints, writes: Ints, since: Ints) -> Ints:
    """Reads of what another buffer of the root was written over since then, or that may be."""
    n_turns = int(touches.turn.max(initial=0)) + 2
    keys = touches.root * n_turns + touches.turn + 1
    rows = writes[np.argsort(keys[writes], kind="stable")]
    first = np.searchsorted(keys[rows], touches.root[reads] * n_turns + since + 1)
    last = np.searchsorted(keys[rows], keys[reads])
    is_long = last - first > MANY
    i, j = ranges(np.where(is_long, last, first), last)
    one, other = reads[i], rows[j]
    is_other = touches.buffer[one] != touches.buffer[other]
    one, _ = meeting(touches.boxes, one[is_other], other[is_other])
    return np.append(one, reads[is_long])


def _makers(
    program: Program,
    accesses: Accesses,
    touches: _Touches,
    known: tuple[tuple[Ints, Ints], Iterable[int], Flags],
) -> tuple[Ints, Flags]:
    """By touch who made its data, as far as copies lead, and by buffer whether it is settled."""
    (reads, writes), unfinished, is_candidate = known
    is_copy = accesses.kinds.is_copy
    is_unfinished = np.zeros(len(program.tasks), dtype=np.bool_)
    is_unfinished[list(unfinished)] = True
    makers = np.full(len(touches.turn), UNKNOWN, dtype=np.int64)
    makers[touches.is_write & (touches.turn < 0)] = GIVEN
    rows = np.flatnonzero(accesses.is_write)
    task = accesses.task[rows]
    is_made = ~is_copy[task] & ~is_unfinished[task]
    makers[rows[is_made]] = task[is_made]
    copied = rows[is_copy[task]]
    sources, is_same = _sources(accesses, copied)
    copied, sources = copied[is_same], sources[is_same]
    while True:
        is_settled = is_candidate.copy()
        is_settled[touches.root[touches.is_write & (makers == UNKNOWN)]] = False
        is_right = is_settled[touches.root[reads]]
        np.maximum.at(makers, reads[is_right], makers[writes[is_right]])
        is_new = (makers[copied] == UNKNOWN) & (makers[sources] != UNKNOWN)
        if not is_new.any():
            return makers, is_settled
        makers[copied[is_new]] = makers[sources[is_new]]


def _sources(accesses: Accesses, writes: Ints) -> tuple[Ints, Flags]:
    """The reads from which copies take what they write, and whether that is the same data."""
    reads, is_same = sources_of(accesses, writes)
    source, target = accesses.buffer[reads], accesses.buffer[writes]
    is_same &= (accesses.boxes.take(reads, axis=2) == accesses.boxes.take(writes, axis=2)).all(
        axis=(0, 1)
    )
    is_same &= accesses.n_axes[reads] == accesses.n_axes[writes]
    is_same &= accesses.tensors[source] == accesses.tensors[target]
    return reads, is_same

"""Buffers of which every read is seen to be right without a walk: most of a plan, all at once.

What is accepted here need not be walked through. What is not may still be right.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.program.model import Program, Timetable
from tilewright.replay.check_accesses import Accesses, Flags, sources_of
from tilewright.replay.check_boxes import MOST_ELEMENTS, Boxes, Ints, pairs_before, view_shift
from tilewright.replay.check_transfers import is_plain_copy

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
    shifts = np.zeros((accesses.boxes.shape[1], len(program.buffers)), dtype=np.int64)
    is_odd = np.zeros(len(program.buffers), dtype=np.bool_)
    for number, one in enumerate(program.buffers):
        if one.view is not None:
            shift = view_shift(one)
            is_odd[number] = shift is None
            shifts[: len(shift or ()), number] = shift or ()
    boxes = np.concatenate([accesses.boxes, accesses.buffer_boxes[:, :, extra]], axis=2)
    elements = (boxes[1] - boxes[0]).astype(np.float64).prod(axis=0)
    ends = [-1] * len(given) + [len(order)] * len(results)
    return _Touches(
        turn=np.append(turns[accesses.task], np.array(ends, dtype=np.int64)),
        buffer=buffer,
        root=accesses.roots[buffer],
        is_write=np.append(accesses.is_write, np.array(ends, dtype=np.int64) < 0),
        boxes=boxes + shifts[:, buffer],
        is_odd=is_odd[buffer] | (elements > MOST_ELEMENTS),
    )


def _clashing(touches: _Touches, writes: Ints) -> Ints:
    """Writes to buffers that are written often, or twice to one element."""
    counts = np.bincount(touches.buffer[writes], minlength=int(touches.buffer.max(initial=0)) + 1)
    is_often = counts[touches.buffer[writes]] > MANY
    found = [writes[is_often]]
    rows = writes[~is_often]
    axis = _widest_axis(touches.buffer[rows], touches.boxes[0][:, rows])
    low, high = touches.boxes[:, axis, rows]
    # As places among all begins they can be one number with the buffer, however large they are.
    in_order = np.sort(low)
    first, last = (
        touches.buffer[rows] * (len(rows) + 1) + np.searchsorted(in_order, ends)
        for ends in (low, high)
    )
    by_begin = np.argsort(first, kind="stable")
    rows = rows[by_begin]
    begins, ends = touches.boxes[:, :, rows]
    for i, j in pairs_before(np.searchsorted(first[by_begin], last[by_begin])):
        meet = ((begins[:, i] < ends[:, j]) & (begins[:, j] < ends[:, i])).all(axis=0)
        found.append(rows[i[meet]])
    return np.concatenate(found)


def _widest_axis(buffer: Ints, begins: Ints) -> Ints:
    """By write the axis along which those of its buffer have the most different begins."""
    n_buffers = int(buffer.max(initial=0)) + 1
    counts = np.zeros((max(1, len(begins)), n_buffers), dtype=np.int64)
    for axis, begin in enumerate(begins):
        order = np.lexsort((begin, buffer))
        is_new = np.ones(len(order), dtype=np.bool_)
        is_new[1:] = (np.diff(begin[order]) != 0) | (np.diff(buffer[order]) != 0)
        counts[axis] = np.bincount(buffer[order][is_new], minlength=n_buffers)
    widest: Ints = counts.argmax(axis=0)
    return widest[buffer]


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
    i, j = _ranges(np.where(last - first > MANY, last, first), last)
    (begins, ends), (lowest, highest) = touches.boxes[:, :, reads[i]], touches.boxes[:, :, rows[j]]
    sizes = np.maximum(0, np.minimum(ends, highest) - np.maximum(begins, lowest)).prod(axis=0)
    shared = np.zeros(len(reads), dtype=np.int64)
    np.add.at(shared, i, sizes)
    i, j = i[sizes > 0], j[sizes > 0]
    since = touches.turn[reads].copy()
    np.minimum.at(since, i, touches.turn[rows[j]])
    begins, ends = touches.boxes[:, :, reads]
    return (reads[i], rows[j]), since, shared == np.maximum(0, ends - begins).prod(axis=0)


def _overwritten(touches: _Touches, reads: Ints, writes: Ints, since: Ints) -> Ints:
    """Reads of what another buffer of the root was written over since then, or that may be."""
    n_turns = int(touches.turn.max(initial=0)) + 2
    keys = touches.root * n_turns + touches.turn + 1
    rows = writes[np.argsort(keys[writes], kind="stable")]
    first = np.searchsorted(keys[rows], touches.root[reads] * n_turns + since + 1)
    last = np.searchsorted(keys[rows], keys[reads])
    is_long = last - first > MANY
    i, j = _ranges(np.where(is_long, last, first), last)
    one, other = reads[i], rows[j]
    is_other = touches.buffer[one] != touches.buffer[other]
    one, other = one[is_other], other[is_other]
    (begins, ends), (lowest, highest) = touches.boxes[:, :, one], touches.boxes[:, :, other]
    meet = ((begins < highest) & (lowest < ends)).all(axis=0)
    return np.append(one[meet], reads[is_long])


def _ranges(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """All i and j with first[i] <= j < last[i], in order."""
    counts = np.maximum(0, last - first)
    i = np.arange(len(counts)).repeat(counts)
    before = np.cumsum(counts) - counts
    return i, np.arange(len(i)) - before[i] + first[i]


def _makers(
    program: Program,
    accesses: Accesses,
    touches: _Touches,
    known: tuple[tuple[Ints, Ints], Iterable[int], Flags],
) -> tuple[Ints, Flags]:
    """By touch who made its data, as far as copies lead, and by buffer whether it is settled."""
    (reads, writes), unfinished, is_candidate = known
    is_copy = np.array([is_plain_copy(task) for task in program.tasks], dtype=np.bool_)
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
    is_same &= (accesses.boxes[:, :, reads] == accesses.boxes[:, :, writes]).all(axis=(0, 1))
    is_same &= accesses.n_axes[reads] == accesses.n_axes[writes]
    is_same &= accesses.tensors[source] == accesses.tensors[target]
    return reads, is_same

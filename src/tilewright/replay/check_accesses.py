"""What tasks read and write, as arrays: thousands of boxes are looked at all at once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np

from tilewright.program.model import Program
from tilewright.replay.check_boxes import Boxes, Ints, box_array
from tilewright.replay.check_kinds import Flags, Kinds, kinds_of


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Accesses:
    """All accesses of a program: of each task first what it reads, then what it writes."""

    task: Ints
    buffer: Ints
    is_write: Flags
    boxes: Boxes
    n_axes: Ints
    """Of each of the boxes."""
    buffer_boxes: Boxes
    """By buffer; with as many axes as `boxes`."""
    roots: Ints
    """By buffer the one whose bytes it uses."""
    shifts: Ints
    """What to add to the coordinates of a buffer to get those of its root, as [axis, buffer]."""
    is_reshaped: Flags
    """By buffer whether it is a view under another shape, to which no shift leads."""
    tensors: Ints
    """By buffer a number for its tensor."""
    tensor_numbers: Mapping[str, int]
    kinds: Kinds
    """Of the tasks."""


def accesses_of(program: Program, n_axes: int = 1) -> Accesses:
    """All accesses of a program, with at least so many axes; they may be of buffers that do not
    exist.

    Raises:
        OverflowError: there is a number that does not fit into 64 bits.
    """
    # Every task counts twice: 2 n stands for what task n reads, 2 n + 1 for what it writes.
    by_side = [side for task in program.tasks for side in (task.reads, task.writes)]
    sides = np.arange(len(by_side)).repeat(_array(map(len, by_side)))
    rows = list(chain.from_iterable(by_side))
    buffers, touched = zip(*rows, strict=True) if rows else ((), ())
    tensors: dict[str, int] = {}
    # Thousands of accesses share boxes, which the program holds: no two have been one object.
    boxes = (*touched, *(buffer.box for buffer in program.buffers))
    names = list(map(id, boxes))
    distinct = dict(zip(names, boxes, strict=True))
    places = dict(zip(distinct, range(len(distinct)), strict=True))
    place = _array(map(places.__getitem__, names))
    box, buffer_box = place[: len(rows)], place[len(rows) :]
    lengths = _array(map(len, distinct.values()))
    corners = box_array([*distinct.values()], int(lengths.max(initial=n_axes)))
    shifts, is_reshaped = _shifts(program, corners.shape[1])
    return Accesses(
        task=sides // 2,
        buffer=_array(buffers),
        is_write=sides % 2 == 1,
        boxes=corners.take(box, axis=2),
        n_axes=lengths[box],
        buffer_boxes=corners.take(buffer_box, axis=2),
        roots=_array(
            [n if b.view is None else b.view.buffer for n, b in enumerate(program.buffers)]
        ),
        shifts=shifts,
        is_reshaped=is_reshaped,
        tensors=_array([tensors.setdefault(b.tensor, len(tensors)) for b in program.buffers]),
        tensor_numbers=tensors,
        kinds=kinds_of(program),
    )


def _array(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, dtype=np.int64)


def _shifts(program: Program, n_axes: int) -> tuple[Ints, Flags]:
    shifts = np.zeros((n_axes, len(program.buffers)), dtype=np.int64)
    is_reshaped = np.zeros(len(program.buffers), dtype=np.bool_)
    for number, buffer in enumerate(program.buffers):
        if buffer.view is None:
            continue
        origin = buffer.view.origin
        if origin is None or len(origin) != len(buffer.box):
            is_reshaped[number] = True
        else:
            starts = [begin for begin, _ in buffer.box]
            shifts[: len(origin), number] = [o - s for o, s in zip(origin, starts, strict=True)]
    return shifts, is_reshaped


def sources_of(accesses: Accesses, writes: Ints) -> tuple[Ints, Flags]:
    """The reads that some writes of copies go with, and whether there are such.

    A single read goes with all writes of its task; of several the first goes with the first write,
    and so on.
    """
    sides = 2 * accesses.task + accesses.is_write
    task = accesses.task[writes]
    first, first_write = np.searchsorted(sides, 2 * task), np.searchsorted(sides, 2 * task + 1)
    n_reads = first_write - first
    place = np.where(n_reads == 1, 0, writes - first_write)
    has_source = place < n_reads
    return np.where(has_source, first + place, writes), has_source


def volumes(boxes: Boxes) -> Ints:
    """Elements in each box; none if a range is empty or backwards."""
    begins, ends = boxes
    sizes: Ints = np.maximum(0, ends - begins).prod(axis=0)
    return sizes

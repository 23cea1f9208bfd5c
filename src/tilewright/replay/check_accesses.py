"""What tasks read and write, as arrays: thousands of boxes are looked at all at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.program.model import Box, Program
from tilewright.replay.check_boxes import Boxes, Ints, box_array

Flags = npt.NDArray[np.bool_]


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
    tensors: Ints
    """By buffer a number for its tensor."""
    tensor_numbers: Mapping[str, int]


def accesses_of(program: Program) -> Accesses:
    """All accesses of a program; they may be of buffers that do not exist.

    Raises:
        OverflowError: there is a number that does not fit into 64 bits.
    """
    rows = [access for task in program.tasks for access in (*task.reads, *task.writes)]
    counts = [n for task in program.tasks for n in (len(task.reads), len(task.writes))]
    # Every task counts twice: 2 n stands for what task n reads, 2 n + 1 for what it writes.
    sides = np.arange(len(counts), dtype=np.int64).repeat(np.array(counts, dtype=np.int64))
    tensors: dict[str, int] = {}
    # Thousands of accesses have few different boxes.
    boxes: dict[Box, int] = {}
    box = _array([boxes.setdefault(access.box, len(boxes)) for access in rows])
    buffer_box = _array([boxes.setdefault(buffer.box, len(boxes)) for buffer in program.buffers])
    distinct = [*boxes]
    n_axes = _array([len(box) for box in distinct])
    corners = box_array(distinct, max([1, *n_axes.tolist()]))
    return Accesses(
        task=sides // 2,
        buffer=_array([access.buffer for access in rows]),
        is_write=sides % 2 == 1,
        boxes=np.ascontiguousarray(corners[:, :, box]),
        n_axes=n_axes[box],
        buffer_boxes=np.ascontiguousarray(corners[:, :, buffer_box]),
        roots=_array(
            [n if b.view is None else b.view.buffer for n, b in enumerate(program.buffers)]
        ),
        tensors=_array([tensors.setdefault(b.tensor, len(tensors)) for b in program.buffers]),
        tensor_numbers=tensors,
    )


def _array(numbers: Sequence[int]) -> Ints:
    return np.array(numbers, dtype=np.int64)


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

"""What tasks read and write, as arrays: thousands of boxes are looked at all at once."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.program.model import Program
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


def accesses_of(program: Program) -> Accesses:
    """All accesses of a program; they may be of buffers that do not exist.

    Raises:
        OverflowError: there is a number that does not fit into 64 bits.
    """
    rows = [access for task in program.tasks for access in (*task.reads, *task.writes)]
    counts = [n for task in program.tasks for n in (len(task.reads), len(task.writes))]
    # Every task counts twice: 2 n stands for what task n reads, 2 n + 1 for what it writes.
    sides = np.arange(len(counts), dtype=np.int64).repeat(np.array(counts, dtype=np.int64))
    boxes = [access.box for access in rows]
    buffer_boxes = [buffer.box for buffer in program.buffers]
    n_axes = list(map(len, boxes))
    most = max([*n_axes, *map(len, buffer_boxes)], default=0)
    return Accesses(
        task=sides // 2,
        buffer=np.array([access.buffer for access in rows], dtype=np.int64),
        is_write=sides % 2 == 1,
        boxes=box_array(boxes, most),
        n_axes=np.array(n_axes, dtype=np.int64),
        buffer_boxes=box_array(buffer_boxes, most),
    )


def roots_of(program: Program) -> Ints:
    """By buffer the one whose bytes it uses."""
    return np.array([program.root(n) for n in range(len(program.buffers))], dtype=np.int64)


def volumes(boxes: Boxes) -> Ints:
    """Elements in each box; none if a range is empty or backwards."""
    begins, ends = boxes
    sizes: Ints = np.maximum(0, ends - begins).prod(axis=0)
    return sizes

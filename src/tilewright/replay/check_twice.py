"""Does a task write the same bytes twice into one scratchpad, in the time in which it writes once?

Transfers take the time of every copy, and so do vector units. The cycles of a task on an array are
its mapping's, which writes each result once.
"""

from collections.abc import Iterator

import numpy as np

from tilewright.errors import Problem
from tilewright.program.model import Program, Task
from tilewright.replay.check_accesses import Accesses, volumes
from tilewright.replay.check_boxes import meeting_within, text


def twice_problems(program: Program, accesses: Accesses) -> Iterator[Problem]:
    """Tasks on arrays that write an element of a tensor to two places of one space."""
    is_on_array = accesses.kinds.flags(_is_on_array)
    rows = np.flatnonzero(accesses.is_write & is_on_array[accesses.task])
    n_writes = np.bincount(accesses.task[rows], minlength=len(is_on_array))
    rows = rows[n_writes[accesses.task[rows]] > 1]
    rows = rows[volumes(accesses.boxes.take(rows, axis=2)) > 0]
    spaces = {space.name: number for number, space in enumerate(program.spaces)}
    lies_in = np.array([spaces[buffer.space] for buffer in program.buffers], dtype=np.int64)
    buffer = accesses.buffer[rows]
    what = lies_in[buffer] * (len(accesses.tensor_numbers) + 1) + accesses.tensors[buffer]
    _, groups = np.unique(np.stack([accesses.task[rows], what]), axis=1, return_inverse=True)
    for one, _ in meeting_within(groups.reshape(-1), accesses.boxes.take(rows, axis=2)):
        for row in rows[one].tolist():
            task = program.tasks[int(accesses.task[row])]
            written = program.buffers[int(accesses.buffer[row])]
            box = tuple((int(a), int(b)) for a, b in accesses.boxes[:, : len(written.box), row].T)
            yield Problem(
                message=f"task {task.name} writes elements of {text(box)} of {written.tensor} to "
                f"{written.space} twice, in the time of once"
            )


def _is_on_array(task: Task) -> bool:
    is_array = task.mapping is not None or any(c.memory == "array" for c in task.charges)
    return task.kind == "compute" and is_array

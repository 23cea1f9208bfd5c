"""Tasks of one kind: what does not depend on where their data lies is found out once for all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.program.model import Program, Task
from tilewright.program.strips import is_repeated, strip_of
from tilewright.replay.check_boxes import Ints

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Kinds:
    """Which tasks are alike in all but their names, tiles and waits, and what they touch.

    Of a name it counts which strip it says, and whether the task is a repeated one.
    """

    number: Ints
    """By task the number of its kind."""
    examples: Sequence[Task]
    """By kind the first task of it."""
    strip: Ints
    """By task the strip that it is part of; 0 if it is of none."""
    is_repeated: Flags
    """By task whether it does once more what another one has done."""
    part: Ints
    """By task a number for its op, or the strip of it; -1 without an op, and if it is repeated."""
    is_copy: Flags
    """By task whether it moves bytes as they are; a transfer with an op makes another tensor."""

    def flags(self, is_true: Callable[[Task], bool]) -> Flags:
        """By task whether something is true that depends on nothing but its kind."""
        return np.array([is_true(task) for task in self.examples], dtype=np.bool_)[self.number]

    def ints(self, number_of: Callable[[Task], int]) -> Ints:
        """By task a number that depends on nothing but its kind."""
        return np.array([number_of(task) for task in self.examples], dtype=np.int64)[self.number]


def kinds_of(program: Program) -> Kinds:
    """The kinds of a program's tasks, in order of their first tasks."""
    known: dict[object, int] = {}
    examples: list[Task] = []
    numbers: list[int] = []
    for task in program.tasks:
        # The program holds the charges, so that no two of them have been one object.
        who = task.kind, task.engine, task.cycles, task.setup_cycles, task.ports, id(task.charges)
        what = task.op and (task.op, task.fused, task.mapping, strip_of(task), is_repeated(task))
        kind = known.setdefault((who, what or (task.fused, task.mapping)), len(known))
        if kind == len(examples):
            examples.append(task)
        numbers.append(kind)
    number = np.array(numbers, dtype=np.int64)
    parts: dict[tuple[str, int], int] = {}
    return Kinds(
        number=number,
        examples=examples,
        part=np.array([_part(task, parts) for task in examples], dtype=np.int64)[number],
        strip=np.array([strip_of(task) for task in examples], dtype=np.int64)[number],
        is_repeated=np.array([is_repeated(task) for task in examples], dtype=np.bool_)[number],
        is_copy=np.array([is_plain_copy(task) for task in examples], dtype=np.bool_)[number],
    )


def _part(task: Task, known: dict[tuple[str, int], int]) -> int:
    if not task.op or is_repeated(task):
        return -1
    return known.setdefault((task.op, strip_of(task)), len(known))


def is_plain_copy(task: Task) -> bool:
    """Whether a task moves bytes as they are; a transfer with an op makes another tensor."""
    return task.kind != "compute" and not task.op

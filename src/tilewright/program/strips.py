"""Strips: parts of a stretch of ops that run one after the other, some columns each.

Columns near a border between two strips are computed for both. So that it can be told from a task
that does what another one has done already, its name says which strip it is part of.
"""

from tilewright.program.model import Task

_MARK = " strip "


def strip_name(name: str, strip: int) -> str:
    """The name of an op, a tensor or a task in a strip; the first one is 1.

    >>> strip_name("conv1", 2)
    'conv1 strip 2'
    """
    return f"{name}{_MARK}{strip}"


def strip_of(task: Task) -> int:
    """The strip that a task is part of; 0 if its op does not run in strips.

    >>> name = "conv1 strip 2 [OY0:4]"
    >>> strip_of(Task(name=name, kind="compute", engine="core", cycles=1, op="conv1"))
    2
    """
    if not task.op or not task.name.startswith(task.op + _MARK):
        return 0
    number = task.name[len(task.op) + len(_MARK) :].split(" ", 1)[0].split("#", 1)[0]
    return int(number) if number.isascii() and number.isdigit() else 0


def is_repeated(task: Task) -> bool:
    """Whether a task does once more what another one has done: a `#` stands behind its op's name.

    >>> is_repeated(Task(name="a#1 [OY0:4]", kind="compute", engine="core", cycles=1, op="a#1"))
    False
    >>> is_repeated(Task(name="a [OY0:4] #1", kind="compute", engine="core", cycles=1, op="a"))
    True
    """
    return "#" in task.name.removeprefix(task.op)

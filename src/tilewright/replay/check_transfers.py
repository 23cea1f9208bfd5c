"""Does every task touch only what it may: transfers two ends alike, computing its own core?"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tilewright.errors import Problem
from tilewright.program.model import Access, Program, SpaceKind, Task, TaskKind
from tilewright.replay.check_boxes import text, volume

ENDS: Final[dict[TaskKind, tuple[tuple[SpaceKind, ...], tuple[SpaceKind, ...]]]] = {
    "load": (("external", "source"), ("scratchpad",)),
    "store": (("scratchpad",), ("external", "sink")),
    "move": (("scratchpad",), ("scratchpad",)),
    "compute": (("scratchpad", "external", "source"), ("scratchpad", "external", "sink")),
}
"""Kinds of space that each kind of task reads and writes."""

CORE: Final = re.compile(r"core\[(\d+)\]")


def transfer_problems(program: Program) -> Iterator[Problem]:
    """Tasks whose reads and writes do not fit their kind."""
    kinds = [program.space[buffer.space].kind for buffer in program.buffers]
    found = {engine.name: CORE.match(engine.name) for engine in program.engines}
    cores = {name: int(core[1]) if core else None for name, core in found.items()}
    for task in program.tasks:
        reading, writing = ENDS[task.kind]
        if any(kinds[access.buffer] not in reading for access in task.reads):
            yield from _wrong_spaces(program, task, (task.reads, "reads", reading))
        if any(kinds[access.buffer] not in writing for access in task.writes):
            yield from _wrong_spaces(program, task, (task.writes, "writes", writing))
        if task.kind == "compute":
            yield from _foreign_reads(program, task, cores[task.engine])
        else:
            yield from _unequal_ends(program, task)


def copies(task: Task) -> Sequence[tuple[Access, Access]]:
    """What a transfer copies where: one read to all writes, or read by read to write by write."""
    if len(task.reads) == 1:
        return [(task.reads[0], write) for write in task.writes]
    return list(zip(task.reads, task.writes, strict=False))


def is_plain_copy(task: Task) -> bool:
    """Whether a task moves bytes as they are; a transfer with an op makes another tensor."""
    return task.kind != "compute" and not task.op


def _wrong_spaces(
    program: Program, task: Task, side: tuple[tuple[Access, ...], str, tuple[SpaceKind, ...]]
) -> Iterator[Problem]:
    accesses, verb, allowed = side
    for access in accesses:
        buffer = program.buffers[access.buffer]
        kind = program.space[buffer.space].kind
        if kind not in allowed:
            yield Problem(
                message=f"task {task.name} {verb} buffer {buffer.name} in {buffer.space} ({kind}), "
                f"and a {task.kind} {verb} only {' or '.join(allowed)}"
            )


def _foreign_reads(program: Program, task: Task, core: int | None) -> Iterator[Problem]:
    for access in task.reads:
        buffer = program.buffers[access.buffer]
        space = program.space[buffer.space]
        if space.kind == "scratchpad" and None not in (core, space.core) and space.core != core:
            yield Problem(
                message=f"task {task.name} on {task.engine} reads {buffer.size_bytes} bytes of "
                f"buffer {buffer.name} in {space.name}, which belongs to core {space.core}"
            )


def _unequal_ends(program: Program, task: Task) -> Iterator[Problem]:
    """A copy reads what it writes; a transfer that does an op (pads, repeats) need not."""
    if task.op:
        return
    if not task.reads or not task.writes or len(task.reads) not in (1, len(task.writes)):
        yield Problem(
            message=f"task {task.name}, a {task.kind}, reads {len(task.reads)} boxes and writes "
            f"{len(task.writes)}: which goes where?"
        )
    for read, write in copies(task):
        source, target = program.buffers[read.buffer], program.buffers[write.buffer]
        wrong = ""
        if volume(read.box) != volume(write.box):
            wrong = f"{volume(read.box)} elements against {volume(write.box)}"
        elif source.tensor == target.tensor and read.box != write.box:
            wrong = "another part of the tensor"
        if wrong:
            yield Problem(
                message=f"task {task.name}, a {task.kind}, reads {text(read.box)} of "
                f"{source.tensor} from buffer {source.name} and writes {text(write.box)} of "
                f"{target.tensor} to buffer {target.name}: {wrong}"
            )

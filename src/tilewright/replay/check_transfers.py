"""Does every task touch only what it may: transfers two ends alike, computing its own core?"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, get_args

import numpy as np

from tilewright.errors import Problem
from tilewright.program.model import Access, Program, SpaceKind, Task, TaskKind
from tilewright.replay.check_accesses import Accesses, sources_of
from tilewright.replay.check_boxes import text, volume
from tilewright.replay.check_kinds import Flags

ENDS: Final[dict[TaskKind, tuple[tuple[SpaceKind, ...], tuple[SpaceKind, ...]]]] = {
    "load": (("external", "source"), ("scratchpad",)),
    "store": (("scratchpad",), ("external", "sink")),
    "move": (("scratchpad",), ("scratchpad",)),
    "compute": (("scratchpad", "external", "source"), ("scratchpad", "external", "sink")),
}
"""Kinds of space that each kind of task reads and writes."""

CORE: Final = re.compile(r"core\[(\d+)\]")


def transfer_problems(program: Program, accesses: Accesses) -> Iterator[Problem]:
    """Tasks whose reads and writes do not fit their kind."""
    cores = _cores(program)
    for number in _suspects(program, accesses, cores):
        task = program.tasks[number]
        reading, writing = ENDS[task.kind]
        yield from _wrong_spaces(program, task, (task.reads, "reads", reading))
        yield from _wrong_spaces(program, task, (task.writes, "writes", writing))
        if task.kind == "compute":
            yield from _foreign_reads(program, task, cores[task.engine])
        else:
            yield from _unequal_ends(program, task)


def _cores(program: Program) -> dict[str, int | None]:
    """By engine the core that it belongs to."""
    found = {engine.name: CORE.match(engine.name) for engine in program.engines}
    return {name: int(core[1]) if core else None for name, core in found.items()}


def _suspects(
    program: Program, accesses: Accesses, cores: Mapping[str, int | None]
) -> Sequence[int]:
    """Tasks, in order, that may have problems: those not seen to be fine all at once."""
    is_suspect = np.zeros(len(program.tasks), dtype=np.bool_)
    is_suspect[accesses.task[_wrong_touches(program, accesses, cores)]] = True
    is_copy = accesses.kinds.is_copy
    counts = np.bincount(2 * accesses.task + accesses.is_write, minlength=2 * len(is_copy))
    n_reads, n_writes = counts.reshape(-1, 2).T
    is_paired = (n_writes > 0) & ((n_reads == 1) | (n_reads == n_writes))
    is_suspect |= is_copy & ~is_paired
    writes = np.flatnonzero(accesses.is_write & (is_copy & is_paired)[accesses.task])
    reads, _ = sources_of(accesses, writes)
    is_same = (accesses.boxes.take(reads, axis=2) == accesses.boxes.take(writes, axis=2)).all(
        axis=(0, 1)
    )
    is_same &= accesses.n_axes[reads] == accesses.n_axes[writes]
    is_suspect[accesses.task[writes[~is_same]]] = True
    suspects: list[int] = np.flatnonzero(is_suspect).tolist()
    return suspects


def _wrong_touches(program: Program, accesses: Accesses, cores: Mapping[str, int | None]) -> Flags:
    """By access whether a task of its kind must not touch such a space, or one of another core."""
    kinds: tuple[TaskKind, ...] = get_args(TaskKind)
    space_kinds: tuple[SpaceKind, ...] = get_args(SpaceKind)
    may_touch = np.array(
        [[[space in side for space in space_kinds] for side in ENDS[kind]] for kind in kinds]
    )
    kind = accesses.kinds.ints(lambda task: kinds.index(task.kind))[accesses.task]
    core = accesses.kinds.ints(lambda task: _number(cores[task.engine]))[accesses.task]
    place = {s.name: (space_kinds.index(s.kind), _number(s.core)) for s in program.spaces}
    by_buffer = [place[buffer.space] for buffer in program.buffers]
    space_kind, owner = np.array(by_buffer, dtype=np.int64).reshape(-1, 2)[accesses.buffer].T
    is_wrong: Flags = (
        (owner != core) & (owner >= 0) & (core >= 0) & (kind == kinds.index("compute"))
    )
    is_wrong |= ~may_touch[kind, accesses.is_write.astype(np.int64), space_kind]
    return is_wrong


def _number(core: int | None) -> int:
    return -1 if core is None else core


def copies(task: Task) -> Sequence[tuple[Access, Access]]:
    """What a transfer copies where: one read to all writes, or read by read to write by write."""
    if len(task.reads) == 1:
        return [(task.reads[0], write) for write in task.writes]
    return list(zip(task.reads, task.writes, strict=False))


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

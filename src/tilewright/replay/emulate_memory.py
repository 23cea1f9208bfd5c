"""Memories in which every granule remembers which write filled it.

A *write* is one access of one task (or a buffer that is given from the start). What a write leaves
behind has a *tag*: the buffer whose bytes they are, and the data that they are, so that bytes which
another tensor has taken over are not mistaken for the old ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.network.graph import Network
from tilewright.program.model import Access, Program
from tilewright.replay.emulate_layout import Layout

Array = npt.NDArray[Any]
Ids = npt.NDArray[np.int32]

NEVER = 0
"""The write of granules that nothing was written to."""
GIVEN = -1
"""The task of a write that was there from the start."""
_UNFINISHED = -1
_NOTHING = -2


@dataclass(frozen=True, kw_only=True, eq=False)
class Writes:
    """All writes of a program, numbered from 1, with their tasks, accesses and tags."""

    tasks: tuple[int, ...]
    accesses: tuple[Access | None, ...]
    tags: Ids
    first: Mapping[int, int]
    """The first write of a task, by task; the others follow it."""
    given: Mapping[int, int]
    """The write that filled a buffer from the start."""
    tag_of: Mapping[tuple[int, str], int]


def writes_of(program: Program, families: Mapping[str, str]) -> Writes:
    """Number the writes of a program; `families` names the data that a tensor is."""
    tag_of: dict[tuple[int, str], int] = {}

    def tag(buffer: int) -> int:
        tensor = program.buffers[buffer].tensor
        key = (program.root(buffer), families.get(tensor, tensor))
        return tag_of.setdefault(key, len(tag_of))

    tasks, accesses, tags = [GIVEN], [None], [_NOTHING]
    accesses_typed: list[Access | None] = list(accesses)
    first: dict[int, int] = {}
    given: dict[int, int] = {}
    for buffer in program.given:
        given[buffer] = len(tasks)
        tasks.append(GIVEN)
        accesses_typed.append(Access(buffer, program.buffers[buffer].box))
        tags.append(tag(buffer))
    for number, task in enumerate(program.tasks):
        first[number] = len(tasks)
        for access in task.writes:
            tasks.append(number)
            accesses_typed.append(access)
            tags.append(tag(access.buffer))
        for access in task.reads:
            tag(access.buffer)
    for buffer in program.results:
        tag(buffer)
    return Writes(
        tasks=tuple(tasks),
        accesses=tuple(accesses_typed),
        tags=np.array(tags, dtype=np.int32),
        first=first,
        given=given,
        tag_of=tag_of,
    )


@dataclass(kw_only=True, eq=False)
class Memories:
    """The granules of all spaces: which write filled each and, unless left out, its value."""

    layout: Layout
    writes: Writes
    families: Mapping[str, str]
    filled: dict[str, Ids]
    values: dict[str, Array]
    finished: Ids
    """By write: its tag once the task has ended; before that nobody may read it."""
    started: dict[str, int] = field(default_factory=dict)
    """Writes begun so far, by space."""
    _filled_views: dict[int, Ids] = field(default_factory=dict)
    _value_views: dict[int, Array] = field(default_factory=dict)

    def tag(self, access: Access) -> int:
        """The tag of what an access touches."""
        program = self.layout.program
        tensor = program.buffers[access.buffer].tensor
        key = (program.root(access.buffer), self.families.get(tensor, tensor))
        return self.writes.tag_of[key]

    def granules(self, access: Access) -> Ids:
        """The writes that filled an access, an axis per tensor axis and one within an element."""
        return self._cut(access, self.filled, self._filled_views)

    def elements(self, access: Access) -> Array:
        """The values of an access: a view."""
        cut: Array = self._cut(access, self.values, self._value_views)[..., 0]
        return cut

    def begin_write(self, write: int) -> None:
        """Mark granules as being written: what was there is lost, what comes is not there yet."""
        access = self.writes.accesses[write]
        assert access is not None
        self.granules(access)[...] = write
        space = self.layout.program.buffers[access.buffer].space
        self.started[space] = self.started.get(space, 0) + 1
        self.finished[write] = _UNFINISHED

    def end_write(self, write: int) -> bool:
        """Make what was written readable; False if something else was written there meanwhile."""
        access = self.writes.accesses[write]
        assert access is not None
        self.finished[write] = self.writes.tags[write]
        return bool((self.granules(access) == write).all())

    def foreign(self, access: Access, own: range = range(0)) -> int | None:
        """A write that fills part of an access although the data there should be another's.

        `own` are writes that do not matter: those of the task that reads.
        """
        ids = self.granules(access)
        wrong = self.finished[ids] != self.tag(access)
        if not wrong.any():
            return None
        for write in dict.fromkeys(ids[wrong].tolist()):
            if write not in own:
                return int(write)
        return None

    def _cut(self, access: Access, arrays: Mapping[str, Array], views: dict[int, Array]) -> Array:
        buffer = self.layout.program.buffers[access.buffer]
        root = self.layout.program.root(access.buffer)
        if root not in views:
            place = self.layout.places[root]
            base = self.layout.extents[place.space][0]
            flat = arrays[place.space][place.begin - base : place.end - base]
            views[root] = flat.reshape(*place.shape, place.per_element)
        whole = views[root]
        box = self.layout.in_root(access)
        if box is None:
            shape = tuple(end - begin for begin, end in buffer.box)
            whole = whole.reshape(*shape, whole.shape[-1])
            box, starts = access.box, [begin for begin, _ in buffer.box]
        else:
            starts = [begin for begin, _ in self.layout.program.buffers[root].box]
        cuts = zip(box, starts, strict=True)
        return whole[tuple(slice(a - start, b - start) for (a, b), start in cuts)]


def empty_memories(
    layout: Layout, writes: Writes, families: Mapping[str, str], *, dtype: str | None
) -> Memories:
    """Memories in which nothing lies but what is given, which has no values yet.

    Without a `dtype` there are no values at all.
    """
    sizes = {space: high - low for space, (low, high) in layout.extents.items()}
    memories = Memories(
        layout=layout,
        writes=writes,
        families=families,
        filled={space: np.zeros(size, dtype=np.int32) for space, size in sizes.items()},
        values={space: np.zeros(size, dtype=dtype) for space, size in sizes.items()}
        if dtype
        else {},
        finished=np.full(len(writes.tasks), _UNFINISHED, dtype=np.int32),
    )
    memories.finished[NEVER] = _NOTHING
    for write in writes.given.values():
        memories.begin_write(write)
        memories.end_write(write)
    return memories


def families_of(network: Network, program: Program) -> dict[str, str]:
    """One name for all tensors that are the same data: those that views lead between.

    An op that no task computes, of a kind that only moves data, is such a view.
    """
    computed = {name for task in program.tasks for name in (task.op, *task.fused)}
    family: dict[str, str] = {}

    def head(name: str) -> str:
        while family.get(name, name) != name:
            name = family[name]
        return name

    for op in network.ops:
        if op.name not in computed:
            for operand in op.operands:
                family[head(operand.tensor)] = head(op.outputs[0].tensor)
    return {tensor.name: head(tensor.name) for tensor in network.tensors}

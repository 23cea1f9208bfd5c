"""Do a plan's waits order all tasks that touch the same memory?

If whoever reads, overwrites or is overwritten waits for the other, directly or through others, then
every order that the waits allow lets every task find the same data: the result does not depend on
how long anything takes. An engine instance keeps the order of its tasks, which counts as a wait.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.program.model import Access, Timetable
from tilewright.replay.emulate_memory import GIVEN, NEVER, Ids, Writes
from tilewright.replay.emulate_order import any_order, predecessors

Pair = tuple[int, int]
"""Two tasks, the one that the timetable starts earlier first."""

_BLOCK = 8192
"""Tasks whose successors are followed at a time, so that memory grows with tasks, not squared."""


@dataclass(kw_only=True, eq=False)
class Meetings:
    """Tasks that touch the same granules, while a plan runs in the order of its times."""

    writes: Writes
    pairs: dict[Pair, list[tuple[Access, Access]]] = field(default_factory=dict)
    """With the accesses that meet, or may: a reader and a writer of parts of one write."""
    _readers: dict[int, list[tuple[int, Access]]] = field(default_factory=dict)
    """By write: who has read it so far."""

    def read(self, task: int, access: Access, ids: Ids) -> None:
        """A task reads granules that these writes filled."""
        for write in _distinct(ids):
            if write != NEVER:
                self._meet(self.writes.tasks[write], task, self.writes.accesses[write], access)
                self._readers.setdefault(write, []).append((task, access))

    def overwrite(self, task: int, access: Access, ids: Ids) -> None:
        """A task writes over granules that these writes filled."""
        for write in _distinct(ids):
            if write == NEVER:
                continue
            self._meet(self.writes.tasks[write], task, self.writes.accesses[write], access)
            for reader, read in self._readers.get(write, ()):
                self._meet(reader, task, read, access)

    def _meet(self, first: int, second: int, before: Access | None, after: Access) -> None:
        if first not in (second, GIVEN) and before is not None:
            self.pairs.setdefault((first, second), []).append((before, after))


def _distinct(ids: Ids) -> list[int]:
    """The writes among granules; neighbours are mostly alike, so sorting them all is too much."""
    flat = ids.reshape(-1)
    if not flat.size:
        return []
    changes = np.flatnonzero(flat[1:] != flat[:-1])
    return sorted({int(flat[-1]), *flat[changes].tolist()})


def races(
    timetable: Timetable, meetings: Meetings, touch: Callable[[Access, Access], bool]
) -> Iterator[tuple[Pair, tuple[Access, Access]]]:
    """Pairs of tasks that meet and that nothing orders, with the accesses that share granules."""
    for pair in _unordered(timetable, sorted(meetings.pairs)):
        for before, after in meetings.pairs[pair]:
            if touch(before, after):
                yield pair, (before, after)
                break


def _unordered(timetable: Timetable, pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Pairs whose second task does not wait for the first, directly or through others."""
    before = predecessors(timetable)
    order = any_order(timetable, None)
    for start in range(0, len(order), _BLOCK):
        block = range(start, start + _BLOCK)
        # By task: a bit for every task of the block that it waits for.
        waited = [0] * len(before)
        for task in order:
            bits = 0
            for other in before[task]:
                bits |= waited[other]
                if other in block:
                    bits |= 1 << (other - start)
            waited[task] = bits
        for first, second in pairs:
            if first in block and not waited[second] >> (first - start) & 1:
                yield first, second

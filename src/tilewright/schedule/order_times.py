"""When tasks run in program order: each as soon as all that it needs is free.

`_order_times.c` is the same, compiled.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from tilewright.program.model import Slot
from tilewright.schedule.tables import Tables

try:
    from tilewright.schedule import _order_times as kernel
except ImportError:
    kernel = None  # type: ignore[assignment]  # not compiled here

_MOST = 1 << 61
"""Cycles and bytes that the kernel can add up in 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stays:
    """By root: the tasks that touch it first and last, and the addresses it has in the meantime.

    All of them are -1 for what is in no scratchpad.
    """

    first: list[int]
    last: list[int]
    begin: list[int]
    end: list[int]


def is_compiled() -> bool:
    """Whether the compiled clock is there."""
    return kernel is not None


def slots_in_order(tables: Tables, stays: Stays) -> list[Slot]:
    """The times of all tasks of a program, whose roots in scratchpads stay where they are told.

    A task waits for its engine, its ports, the tasks that it comes after, and for all who had the
    addresses of what it touches before.
    """
    rooms = [tables.program.space[name].size_bytes for name in tables.scratchpads]
    is_small = sum(tables.work_cycles) + sum(tables.setup) + max(rooms, default=0) < _MOST
    is_for_kernel = is_compiled() and is_small
    starts, instances = _times(tables, stays) if is_for_kernel else _Clock(tables, stays).times()
    return [
        Slot(start_cycle=start, end_cycle=start + cycles, instance=instance)
        for start, cycles, instance in zip(starts, tables.cycles, instances, strict=False)
    ]


def _times(tables: Tables, stays: Stays) -> tuple[list[int], list[int]]:
    """Starts and instances by the kernel."""
    given = (
        array("q", tables.engine),
        array("q", tables.cycles),
        array("q", tables.setup),
        *_flat(tables.ports),
        *_flat(tables.after),
        *_flat(tables.touched),
        array("q", tables.scratchpad),
        array("q", stays.first),
        array("q", stays.last),
        array("q", stays.begin),
        array("q", stays.end),
        array("q", tables.instances),
    )
    empty = bytes(8 * len(tables.program.tasks))
    starts, instances = array("q", empty), array("q", empty)
    kernel.times(given, len(tables.scratchpads), starts, instances)
    return starts.tolist(), instances.tolist()


def _flat(lists: Sequence[Sequence[int]]) -> "tuple[array[int], array[int]]":
    """Where each of some lists begins (and the last one ends), and all of them in one."""
    begins = accumulate(map(len, lists), initial=0)
    return array("q", begins), array("q", chain.from_iterable(lists))


class _LastUses:
    """Segments of a scratchpad: from which address on, and when its last user was done."""

    def __init__(self) -> None:
        self.starts = [0]
        self.times = [0]

    def free_from(self, begin: int, end: int) -> int:
        """When all of [begin, end) is free."""
        first, last = bisect_right(self.starts, begin) - 1, bisect_left(self.starts, end)
        return max(self.times[first:last])

    def leave(self, begin: int, end: int, time: int) -> None:
        """The user of [begin, end) was done at a time, and had it alone."""
        starts, times = self.starts, self.times
        first, last = bisect_left(starts, begin), bisect_left(starts, end)
        behind = times[last - 1]
        is_split = last == len(starts) or starts[last] != end
        starts[first:last] = [begin, end] if is_split else [begin]
        times[first:last] = [time, behind] if is_split else [time]


class _Clock:
    """Starts every task as soon as its engine, its ports, its inputs and its addresses are free."""

    def __init__(self, tables: Tables, stays: Stays) -> None:
        self.tables = tables
        self.stays = stays
        self.last_uses = [_LastUses() for _ in tables.scratchpads]
        self.instances = [[0] * count for count in tables.instances]
        self.ready = [0] * len(stays.first)
        self.done = [0] * len(stays.first)

    def times(self) -> tuple[list[int], list[int]]:
        """The starts of all tasks of the program, and on which instances of their engines."""
        tables = self.tables
        starts: list[int] = []
        ends: list[int] = []
        instances: list[int] = []
        for task in range(len(tables.program.tasks)):
            start = self._addresses_free(task)
            for before in tables.after[task]:
                if ends[before] > start:
                    start = ends[before]
            ports = tables.ports[task]
            if ports:
                start = max(start, self._lanes_free(ports) - tables.setup[task])
            engine = self.instances[tables.engine[task]]
            instance = engine.index(min(engine))
            start = max(start, engine[instance])
            end = start + tables.cycles[task]
            engine[instance] = end
            for port in ports:
                times = self.instances[port]
                times[times.index(min(times))] = end
            self._leave(task, end)
            starts.append(start)
            ends.append(end)
            instances.append(instance)
        return starts, instances

    def _lanes_free(self, ports: tuple[int, ...]) -> int:
        """When every port has a free lane for each time that it is named."""
        free = 0
        for port in ports:
            times = self.instances[port]
            lane = times[0] if len(times) == 1 else sorted(times)[ports.count(port) - 1]
            if lane > free:
                free = lane
        return free

    def _addresses_free(self, task: int) -> int:
        """When whoever had the addresses before is done with them."""
        free, stays, ready = 0, self.stays, self.ready
        for root in self.tables.touched[task]:
            if stays.first[root] == task:
                uses = self.last_uses[self.tables.scratchpad[root]]
                ready[root] = uses.free_from(stays.begin[root], stays.end[root])
            if ready[root] > free:
                free = ready[root]
        return free

    def _leave(self, task: int, end: int) -> None:
        done, stays = self.done, self.stays
        for root in self.tables.touched[task]:
            if end > done[root]:
                done[root] = end
            if stays.last[root] == task:
                # It came when all before it at this place were done.
                uses = self.last_uses[self.tables.scratchpad[root]]
                uses.leave(stays.begin[root], stays.end[root], done[root])

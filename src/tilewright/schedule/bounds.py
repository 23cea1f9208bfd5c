"""What no schedule of a program can do better: cycles and bytes, whatever is evicted or prefetched.

`path_cycles` is the longest chain of tasks that wait for each other, `engine_cycles` the work of an
engine over its instances, `window_cycles` the same for those tasks that cannot start before some
moment, with what must come before and behind them.

`order_cycles` holds for every schedule that keeps the order of the compute tasks on each engine.
Let c(0), c(1), ... be the compute tasks of an engine with one instance, and k the instances of a
DMA engine. At the start of c(i), whatever is in a scratchpad fits into it. So of the copies that
c(i), c(i + 1), ... read, those that are in a scratchpad then, even if only in part, have at most
as many bytes as it has room beside the results of c(i); all others still have to be made,
completely, once more if they were there before:

    end >= start(c(i)) + (cycles of all copies for c(i), ... - cycles that fit in the rooms) / k
           + (the least that follows the end of such a copy)

What fits in a room is at most the fractional knapsack of its copies by cycles per byte. And
start(c(i)) is at least the work of the engine before it, the longest path to it, and the cycles
of all copies for c(0) ... c(i) over k.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
import numpy.typing as npt

from tilewright.program.model import Program
from tilewright.schedule.beginning import with_beginning
from tilewright.schedule.contents import Held, box_bytes
from tilewright.schedule.order import order_of
from tilewright.schedule.tables import COMPUTE, LOAD, Tables, tables_of

_MOMENTS = 64
"""How many compute tasks of an engine are looked at as c(i); any choice gives a valid bound."""

_Steps = dict[int, int]
"""By copy a place in a queue."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower bounds of a program, each worked out when it is asked for."""

    tables: Tables
    """The program laid out flat."""

    @cached_property
    def cycles(self) -> int:
        """The largest bound that holds for every schedule."""
        works = (*self.engine_cycles.values(), *self.port_cycles.values())
        return max(self.path_cycles, self.window_cycles, *works, 0)

    @cached_property
    def order_cycles(self) -> int:
        """The largest that holds for schedules that keep the compute order."""
        return max(self.cycles, _order_cycles(self.tables, self._heads, self._tails))

    @cached_property
    def path_cycles(self) -> int:
        """The longest chain of tasks that wait for each other."""
        return max(self._tails, default=0)

    @cached_property
    def window_cycles(self) -> int:
        """Of the tasks of an engine that cannot start before some moment."""
        return _window_cycles(self.tables, self._heads, self._tails)

    @cached_property
    def engine_cycles(self) -> Mapping[str, int]:
        """By engine: its tasks' cycles over its instances, every copy made once."""
        return _engine_cycles(self.tables)

    @cached_property
    def port_cycles(self) -> Mapping[str, int]:
        """By port: the cycles in which its lanes carry bytes, over their number."""
        return _port_cycles(self.tables)

    @cached_property
    def peak_bytes(self) -> Mapping[str, int]:
        """By scratchpad: the most that any single task needs at once."""
        return _peak_bytes(self.tables)

    @cached_property
    def live_peak_bytes(self) -> Mapping[str, int]:
        """By scratchpad: the most that is live at a step of this order if nothing is evicted."""
        live_bytes = order_of(self.tables, range(len(self.tables.engine))).live_bytes
        pairs = zip(self.tables.scratchpads, live_bytes, strict=True)
        return {name: max(live) for name, live in pairs}

    @cached_property
    def _heads(self) -> list[int]:
        """By task: the longest path that must have ended before it starts."""
        heads: list[int] = []
        ends: list[int] = []
        for before, cycles in zip(self.tables.after, self.tables.cycles, strict=True):
            head = 0
            for other in before:
                if ends[other] > head:
                    head = ends[other]
            heads.append(head)
            ends.append(head + cycles)
        return heads

    @cached_property
    def _tails(self) -> list[int]:
        """By task: the longest path from its start to the end."""
        cycles, tails = self.tables.cycles, [0] * len(self.tables.engine)
        longest = [0] * len(tails)
        for task in reversed(range(len(tails))):
            tail = tails[task] = longest[task] + cycles[task]
            for before in self.tables.after[task]:
                if tail > longest[before]:
                    longest[before] = tail
        return tails


def bounds(program: Program) -> Bounds:
    """Lower bounds of a program."""
    return Bounds(tables_of(with_beginning(program)))


def _engine_cycles(tables: Tables) -> dict[str, int]:
    work = tables.work_cycles
    return {
        name: -(-work[engine] // tables.instances[engine])
        for engine, name in enumerate(tables.engine_names)
        if name and work[engine]
    }


def _port_cycles(tables: Tables) -> dict[str, int]:
    work: dict[int, int] = {}
    for ports, cycles, setup in zip(tables.ports, tables.cycles, tables.setup, strict=True):
        for port in ports:
            work[port] = work.get(port, 0) + max(0, cycles - setup)
    return {
        tables.engine_names[port]: -(-work[port] // tables.instances[port]) for port in sorted(work)
    }


def _window_cycles(tables: Tables, heads: Sequence[int], tails: Sequence[int]) -> int:
    """For each engine: the tasks that cannot start before a moment, or after which much follows."""
    best = 0
    cycles, head, tail = (np.array(v, dtype=np.int64) for v in (tables.cycles, heads, tails))
    engine, behind = np.array(tables.engine), tail - cycles
    for number, count in enumerate(tables.instances):
        tasks = np.flatnonzero(engine == number)
        if not len(tasks):
            continue
        for first, second in ((head[tasks], behind[tasks]), (behind[tasks], head[tasks])):
            order = np.argsort(-first, kind="stable")
            work = np.cumsum(cycles[tasks][order])
            least = np.minimum.accumulate(second[order])
            best = max(best, int((first[order] - (-work // count) + least).max(initial=0)))
    return best


def _order_cycles(tables: Tables, heads: Sequence[int], tails: Sequence[int]) -> int:
    queues: list[list[int]] = [[] for _ in tables.instances]
    for task, kind in enumerate(tables.kind):
        if kind == COMPUTE:
            queues[tables.engine[task]].append(task)
    best = 0
    plain = _plain_copies(tables)
    for queue, count in zip(queues, tables.instances, strict=True):
        if queue and count == 1:
            for steps in _reading_steps(tables, queue, plain).values():
                best = max(best, _joint_cycles(tables, queue, steps, heads, tails))
    return best


def _joint_cycles(
    tables: Tables,
    queue: Sequence[int],
    steps: tuple[_Steps, _Steps],
    heads: Sequence[int],
    tails: Sequence[int],
) -> int:
    """The bound for one compute engine's queue and the copies of one DMA engine."""
    first, last = steps
    copies = sorted(last)
    cycles = np.array([tables.cycles[copy] for copy in copies], dtype=np.int64)
    sizes = np.array([_copy_bytes(tables, copy) for copy in copies], dtype=np.float64)
    until = np.array([last[copy] for copy in copies])
    since = np.array([first[copy] for copy in copies])
    behind = np.array([tails[copy] - tables.cycles[copy] for copy in copies], dtype=np.int64)
    again = np.array([tails[queue[last[copy]]] for copy in copies], dtype=np.int64)
    dense = np.lexsort((np.arange(len(copies)), -cycles / sizes))
    pad_of = np.array([tables.scratchpad[tables.touched[copy][0]] for copy in copies])
    pads = sorted(set(pad_of.tolist()))
    count = tables.instances[tables.engine[copies[0]]]
    work = np.concatenate(([0], np.cumsum([tables.cycles[task] for task in queue])))
    best = 0
    for step in sorted({len(queue) * number // _MOMENTS for number in range(_MOMENTS)}):
        chosen = dense[until[dense] >= step]
        if not len(chosen):
            continue
        before = int(cycles[since <= step].sum())
        start = max(int(work[step]), heads[queue[step]], -(-before // count))
        rest = float(cycles[chosen].sum())
        for pad in pads:
            here = chosen[pad_of[chosen] == pad]
            left = tables.room_bytes[pad] - _result_bytes(tables, queue[step], pad)
            rest -= _fitting_cycles(sizes[here], cycles[here], left)
        # Cycles are whole, so what the sums lose to rounding cannot raise the ceiling.
        cycles_left = ceil(rest - 1e-6)
        if cycles_left > 0:
            # One that was made before, for an earlier reader, is followed by its last one at least.
            follows = np.where(since[chosen] < step, again[chosen], behind[chosen])
            best = max(best, start + -(-cycles_left // count) + int(follows.min()))
    return best


def _reading_steps(
    tables: Tables, queue: Sequence[int], plain: Sequence[bool]
) -> dict[int, tuple[_Steps, _Steps]]:
    """By DMA engine the first and the last place in a queue at which each copy's data is read.

    Only of plain copies: what else might have to be moved instead of another one need not take as
    long.
    """
    found: dict[int, tuple[_Steps, _Steps]] = {}
    for step, task in enumerate(queue):
        for copy in tables.after[task]:
            if plain[copy] and tables.touched[copy][0] in tables.touched[task]:
                first, last = found.setdefault(tables.engine[copy], ({}, {}))
                first.setdefault(copy, step)
                last[copy] = step
    return found


def _plain_copies(tables: Tables) -> list[bool]:
    """By task: whether it copies to one place that nobody computes over."""
    overwritten = {
        root
        for kind, roots in zip(tables.kind, tables.written, strict=True)
        if kind != LOAD
        for root in roots
    }
    return [
        kind == LOAD and len(writes) == 1 and len(touched) == 1 and touched[0] not in overwritten
        for kind, writes, touched in zip(tables.kind, tables.writes, tables.touched, strict=True)
    ]


def _fitting_cycles(
    sizes: npt.NDArray[np.float64], cycles: npt.NDArray[np.int64], room: int
) -> float:
    """The most cycles of copies, the densest first, whose bytes fit in a room."""
    filled = np.cumsum(sizes)
    whole = int(np.searchsorted(filled, room, side="right"))
    total = float(cycles[:whole].sum())
    if whole < len(sizes):
        left = room - (float(filled[whole - 1]) if whole else 0.0)
        total += float(cycles[whole]) * max(0.0, left) / max(1e-9, float(sizes[whole]))
    return total


def _copy_bytes(tables: Tables, copy: int) -> int:
    buffer, box = tables.writes[copy][0]
    return max(1, box_bytes(tables.program, Held(buffer, box, copy)))


def _result_bytes(tables: Tables, task: int, pad: int) -> int:
    """Bytes of what a task writes to a scratchpad and nobody touched before."""
    written = dict.fromkeys(tables.root[buffer] for buffer, _ in tables.writes[task])
    return sum(
        tables.size_bytes[root]
        for root in written
        if tables.scratchpad[root] == pad and tables.users[root][0] == task
    )


def _peak_bytes(tables: Tables) -> dict[str, int]:
    """Aligned sizes of a task's operands; the one that lies on top needs no padding."""
    peak = [0] * len(tables.scratchpads)
    for roots in dict.fromkeys(tables.touched):
        total, padding = [0] * len(peak), [0] * len(peak)
        for root in roots:
            pad, aligned = tables.scratchpad[root], tables.aligned_bytes[root]
            total[pad] += aligned
            padding[pad] = max(padding[pad], aligned - tables.size_bytes[root])
        peak = [max(most, t - p) for most, t, p in zip(peak, total, padding, strict=True)]
    return dict(zip(tables.scratchpads, peak, strict=True))

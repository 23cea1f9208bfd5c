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
from functools import cache
from math import ceil

import numpy as np
import numpy.typing as npt

from tilewright.program.model import Program
from tilewright.schedule.contents import Held, box_bytes
from tilewright.schedule.order import Order, order_of
from tilewright.schedule.tables import LOAD, Tables, tables_of

_MOMENTS = 64
"""How many compute tasks of an engine are looked at as c(i); any choice gives a valid bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Lower bounds of a program; `cycles` is the largest that holds for every schedule.

    `order_cycles` may be larger: it holds for schedules that keep the compute order.
    """

    cycles: int
    path_cycles: int
    window_cycles: int
    order_cycles: int
    engine_cycles: Mapping[str, int]
    """By engine: its tasks' cycles over its instances, every copy made once."""
    port_cycles: Mapping[str, int]
    """By port: the cycles in which its lanes carry bytes, over their number."""
    peak_bytes: Mapping[str, int]
    """By scratchpad: the most that any single task needs at once."""
    live_peak_bytes: Mapping[str, int]
    """By scratchpad: the most that is live at a step of this order if nothing is evicted."""


def bounds(program: Program) -> Bounds:
    """Lower bounds of a program."""
    tables = tables_of(program)
    return bounds_of(tables, order_of(tables, range(len(tables.engine))))


def bounds_of(tables: Tables, order: Order) -> Bounds:
    """Lower bounds from a program laid out flat."""
    heads = _heads(tables)
    tails = _tails(tables)
    engines = _engine_cycles(tables)
    ports = _port_cycles(tables)
    path = max(tails, default=0)
    window = _window_cycles(tables, heads, tails)
    general = max(path, window, *engines.values(), *ports.values(), 0)
    return Bounds(
        cycles=general,
        path_cycles=path,
        window_cycles=window,
        order_cycles=max(general, _order_cycles(tables, order, heads, tails)),
        engine_cycles=engines,
        port_cycles=ports,
        peak_bytes=_peak_bytes(tables),
        live_peak_bytes={
            name: max(live) for name, live in zip(tables.scratchpads, order.live_bytes, strict=True)
        },
    )


def _heads(tables: Tables) -> list[int]:
    """By task: the longest path that must have ended before it starts."""
    heads = [0] * len(tables.engine)
    for task, before in enumerate(tables.after):
        heads[task] = max((heads[other] + tables.cycles[other] for other in before), default=0)
    return heads


def _tails(tables: Tables) -> list[int]:
    """By task: the longest path from its start to the end."""
    tails = [0] * len(tables.engine)
    for task in reversed(range(len(tails))):
        behind = max((tails[other] for other in tables.followers[task]), default=0)
        tails[task] = tables.cycles[task] + behind
    return tails


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
    by_engine: list[list[int]] = [[] for _ in tables.instances]
    for task, engine in enumerate(tables.engine):
        by_engine[engine].append(task)
    behind = [tail - cycles for tail, cycles in zip(tails, tables.cycles, strict=True)]
    for tasks, count in zip(by_engine, tables.instances, strict=True):
        for first, second in ((heads, behind), (behind, heads)):
            tasks.sort(key=lambda task: (-first[task], task))
            work = 0
            least = second[tasks[0]] if tasks else 0
            for task in tasks:
                work += tables.cycles[task]
                least = min(least, second[task])
                best = max(best, first[task] + -(-work // count) + least)
    return best


def _order_cycles(tables: Tables, order: Order, heads: Sequence[int], tails: Sequence[int]) -> int:
    best = 0
    for engine, queue in enumerate(order.queues):
        if tables.instances[engine] != 1 or not queue:
            continue
        for dma in range(len(tables.instances)):
            best = max(best, _joint_cycles(tables, queue, dma, heads, tails))
    return best


def _joint_cycles(
    tables: Tables, queue: Sequence[int], dma: int, heads: Sequence[int], tails: Sequence[int]
) -> int:
    """The bound for one compute engine's queue and the copies of one DMA engine."""
    first, last = _reading_steps(tables, queue, dma)
    if not last:
        return 0
    copies = sorted(last)
    cycles = np.array([tables.cycles[copy] for copy in copies], dtype=np.int64)
    sizes = np.array([_copy_bytes(tables, copy) for copy in copies], dtype=np.float64)
    until = np.array([last[copy] for copy in copies])
    since = np.array([first[copy] for copy in copies])
    behind = np.array([tails[copy] - tables.cycles[copy] for copy in copies], dtype=np.int64)
    dense = np.lexsort((np.arange(len(copies)), -cycles / sizes))
    pad_of = np.array([tables.scratchpad[tables.touched[copy][0]] for copy in copies])
    pads = sorted(set(pad_of.tolist()))
    count = tables.instances[dma]
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
            best = max(best, start + -(-cycles_left // count) + int(behind[chosen].min()))
    return best


def _reading_steps(
    tables: Tables, queue: Sequence[int], dma: int
) -> tuple[dict[int, int], dict[int, int]]:
    """The first and the last place in a queue at which each copy's data is read.

    Only copies to one place whose bytes nobody computes over: what else might have to be moved
    instead of them need not take as long.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    only_copied = cache(lambda root: _only_copied(tables, root))
    for step, task in enumerate(queue):
        for copy in tables.after[task]:
            if tables.kind[copy] != LOAD or tables.engine[copy] != dma:
                continue
            if len(tables.writes[copy]) != 1 or len(tables.touched[copy]) != 1:
                continue
            root = tables.touched[copy][0]
            if root in tables.touched[task] and only_copied(root):
                first.setdefault(copy, step)
                last[copy] = step
    return first, last


def _only_copied(tables: Tables, root: int) -> bool:
    return all(
        tables.kind[user] == LOAD or all(tables.root[b] != root for b, _ in tables.writes[user])
        for user in tables.users[root]
    )


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
    for roots in tables.touched:
        for pad in dict.fromkeys(tables.scratchpad[root] for root in roots):
            here = [root for root in roots if tables.scratchpad[root] == pad]
            padding = max(tables.aligned_bytes[root] - tables.size_bytes[root] for root in here)
            total = sum(tables.aligned_bytes[root] for root in here) - padding
            peak[pad] = max(peak[pad], total)
    return dict(zip(tables.scratchpads, peak, strict=True))

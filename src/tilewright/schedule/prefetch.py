"""Planning prefetches: from which step on a copy is worth starting, given when tasks will start.

Going back from the last need, every copy takes the latest place on its engine at which it is
still in time; some time before that it is let go, and not earlier: data that comes far too early
only takes room.
"""

from bisect import bisect_right
from collections.abc import Sequence
from heapq import heapify, heapreplace

from tilewright.schedule.order import Order
from tilewright.schedule.tables import COMPUTE, STORE, Tables


def compute_starts(tables: Tables, order: Order) -> list[int]:
    """By task: when it could start if all data were always there."""
    starts = [0] * len(order.sequence)
    free = [[0] * count for count in tables.instances]
    for task in order.sequence:
        start = 0
        for before in tables.after[task]:
            if tables.kind[before] == COMPUTE:
                start = max(start, starts[before] + tables.cycles[before])
        if tables.kind[task] == COMPUTE:
            idle = free[tables.engine[task]]
            start = max(start, idle[0])
            heapreplace(idle, start + tables.cycles[task])
        starts[task] = start
    return starts


def release_steps(tables: Tables, order: Order, starts: Sequence[int], margin: int) -> list[int]:
    """By task: the step from which on a copy may start; `margin` is in durations of a copy."""
    reached = [0]
    for task in order.steps:
        reached.append(max(reached[-1], starts[task]))
    copies = [task for task in order.sequence if tables.kind[task] not in (COMPUTE, STORE)]
    typical = sum(tables.cycles[task] for task in copies) // max(1, len(copies))
    # By position: when data must be there; behind the last step, when that has started.
    due_at = [*(starts[task] for task in order.steps), reached[-1]]
    position = order.position
    copies.sort(key=lambda task: (due_at[position[task]], position[task], task), reverse=True)
    latest: list[list[int]] = [[-reached[-1]] * count for count in tables.instances]
    for heap in latest:
        heapify(heap)
    released = list(order.position)
    for task in copies:
        # Heaps of negated times: the instance that is free latest, going backwards, comes first.
        heap, cycles = latest[tables.engine[task]], tables.cycles[task]
        start = min(due_at[position[task]], -heap[0]) - cycles
        heapreplace(heap, -start)
        wish = start - margin * (typical + cycles)
        step = bisect_right(reached, wish) - 1
        if step < position[task]:
            released[task] = max(0, step)
    return released

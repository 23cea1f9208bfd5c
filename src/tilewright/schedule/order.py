"""What follows from the order of the compute tasks: when data is needed, what remains, who is live.

A *step* is a compute task's place in that order; it is the clock by which memory is planned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from tilewright.schedule.tables import COMPUTE, STORE, Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A topological order of all tasks and what follows from it."""

    sequence: Sequence[int]
    steps: list[int]
    """The compute tasks in order."""
    position: list[int]
    """By task: its own step, or the step before which a copy is needed or a store may happen."""
    queues: list[list[int]]
    """By engine: its compute tasks in order."""
    tail_cycles: list[int]
    """By task: the longest way from its start to the end, engines' queues kept in order."""
    left_cycles: list[int]
    """By task: what the longest way from its start to the end takes at least."""
    uses: list[list[int]]
    """By root: the tasks that touch it, by position."""
    release: list[int]
    """By task: the step from which on a copy may start."""
    live_bytes: list[list[int]]
    """By scratchpad and step: bytes of what is touched then, or before and again afterwards."""


def order_of(tables: Tables, sequence: Sequence[int]) -> Order:
    """Derive everything from a topological order of the tasks."""
    steps = [task for task in sequence if tables.kind[task] == COMPUTE]
    queues: list[list[int]] = [[] for _ in tables.instances]
    for task in steps:
        queues[tables.engine[task]].append(task)
    position = _positions(tables, sequence, steps)
    rank = [0] * len(sequence)
    for number, task in enumerate(sequence):
        rank[task] = number
    tails = _tails(tables, sequence, queues)
    # Where an engine has several instances, a queue's tasks may overtake each other at the end.
    single = [q if n == 1 else [] for q, n in zip(queues, tables.instances, strict=True)]
    uses: list[list[int]] = [[] for _ in tables.root]
    for _, _, task in sorted(zip(position, rank, range(len(sequence)), strict=True)):
        for root in tables.touched[task]:
            uses[root].append(task)
    return Order(
        sequence=sequence,
        steps=steps,
        position=position,
        queues=queues,
        tail_cycles=tails,
        left_cycles=tails if max(tables.instances) == 1 else _tails(tables, sequence, single),
        uses=uses,
        release=[0] * len(sequence),
        live_bytes=_live_bytes(tables, position, uses, len(steps)),
    )


def _positions(tables: Tables, sequence: Sequence[int], steps: list[int]) -> list[int]:
    position = [len(steps)] * len(sequence)
    step = 0
    for task in sequence:
        position[task] = step
        step += tables.kind[task] == COMPUTE
    needed = [len(steps)] * len(sequence)
    for task in reversed(sequence):
        if tables.kind[task] in (COMPUTE, STORE):
            needed[task] = position[task]
            continue
        for follower in tables.followers[task]:
            if needed[follower] < needed[task]:
                needed[task] = needed[follower]
        if not tables.followers[task]:
            needed[task] = position[task]
    return needed


def _tails(tables: Tables, sequence: Sequence[int], queues: list[list[int]]) -> list[int]:
    following = [-1] * len(sequence)
    for queue, count in zip(queues, tables.instances, strict=True):
        for before, behind in zip(queue, queue[count:], strict=False):
            following[before] = behind
    tails = [0] * len(sequence)
    for task in reversed(sequence):
        longest = tails[following[task]] if following[task] >= 0 else 0
        for follower in tables.followers[task]:
            if tails[follower] > longest:
                longest = tails[follower]
        tails[task] = longest + tables.cycles[task]
    return tails


def _live_bytes(
    tables: Tables, position: list[int], uses: list[list[int]], n_steps: int
) -> list[list[int]]:
    changes = [[0] * (n_steps + 2) for _ in tables.scratchpads]
    for root, users in enumerate(uses):
        if not users:
            continue
        touching = [task for task in users if tables.kind[task] == COMPUTE]
        first = position[touching[0]] if touching else position[users[0]]
        last = position[touching[-1]] if touching else first
        size = tables.aligned_bytes[root]
        changes[tables.scratchpad[root]][first] += size
        changes[tables.scratchpad[root]][last + 1] -= size
    return [list(accumulate(change))[: n_steps + 1] for change in changes]

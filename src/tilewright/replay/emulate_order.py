"""In which order the tasks of a timetable start and end."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tilewright.errors import Problem
from tilewright.program.model import Timetable


class Event(NamedTuple):
    """A task starts or ends."""

    task: int
    is_start: bool


def waits_of(timetable: Timetable) -> list[tuple[int, ...]]:
    """By task: those that it waits for, by data or by control."""
    before = [list(task.after) for task in timetable.program.tasks]
    for first, second in timetable.edges:
        before[second].append(first)
    return [tuple(dict.fromkeys(found)) for found in before]


def queues_of(timetable: Timetable) -> dict[tuple[str, int], list[int]]:
    """The tasks of every engine instance, in the order of the timetable."""
    return _queues(timetable, waits_of(timetable))


def _queues(
    timetable: Timetable, before: Sequence[Sequence[int]]
) -> dict[tuple[str, int], list[int]]:
    pairs = zip(timetable.program.tasks, timetable.slots, strict=True)
    rows = [(s.start_cycle, s.end_cycle, task.engine, s.instance) for task, s in pairs]
    # Waits decide only between tasks of one engine that start and end together: such take no time.
    rank: Sequence[int] = range(len(rows))
    if len(set(rows)) < len(rows):
        rank = _ranks(_ordered(before, range(len(rows))))
    queues: dict[tuple[str, int], list[int]] = {}
    for number in sorted(range(len(rows)), key=lambda n: (*rows[n][:2], rank[n])):
        queues.setdefault(rows[number][2:], []).append(number)
    return queues


def predecessors(timetable: Timetable) -> list[tuple[int, ...]]:
    """By task: those that it waits for, and the one before it on its engine."""
    before = waits_of(timetable)
    for queue in _queues(timetable, before).values():
        for first, second in pairwise(queue):
            if first not in before[second]:
                before[second] += (first,)
    return before


def order_problems(timetable: Timetable) -> Iterator[Problem]:
    """Waits for tasks that do not exist or are not over, and engines that do two things at once."""
    tasks, slots = timetable.program.tasks, timetable.slots
    broken = False
    for number, before in enumerate(waits_of(timetable)):
        for other in before:
            if not 0 <= other < len(tasks) or other == number:
                broken = True
                yield Problem(message=f"task {tasks[number].name} waits for task {other}")
            elif slots[other].end_cycle > slots[number].start_cycle:
                yield Problem(
                    message=f"task {tasks[number].name} starts at {slots[number].start_cycle}, "
                    f"before {tasks[other].name}, which it waits for, ends at "
                    f"{slots[other].end_cycle}"
                )
    if broken:
        return
    for (engine, instance), queue in queues_of(timetable).items():
        for first, second in pairwise(queue):
            if slots[first].end_cycle > slots[second].start_cycle:
                yield Problem(
                    message=f"instance {instance} of {engine} starts {tasks[second].name} at "
                    f"{slots[second].start_cycle}, while it works on {tasks[first].name} until "
                    f"{slots[first].end_cycle}"
                )


def events_in_time(timetable: Timetable) -> list[Event]:
    """Starts and ends in the order of the timetable; at one cycle, tasks end before others start.

    Tasks that take no time start in the order of their waits, and end at once.
    """
    slots = timetable.slots
    rank = _ranks(any_order(timetable, None))
    moments: list[tuple[int, int, int, Event]] = []
    for number, slot in enumerate(slots):
        takes_time = slot.end_cycle > slot.start_cycle
        moments.append((slot.start_cycle, 1, 2 * rank[number], Event(number, True)))
        phase, place = (0, 0) if takes_time else (1, 2 * rank[number] + 1)
        moments.append((slot.end_cycle, phase, place, Event(number, False)))
    return [event for *_, event in sorted(moments)]


def any_order(timetable: Timetable, seed: int | None) -> list[int]:
    """Tasks one after the other, in an order that their waits allow.

    Without a seed the task that stands first in the program is taken whenever several could run;
    with one, any. Tasks in a cycle of waits come last.
    """
    before = predecessors(timetable)
    keys: Sequence[int] = range(len(before))
    if seed is not None:
        keys = np.random.default_rng(seed).permutation(len(before)).tolist()
    return _ordered(before, keys)


def _ranks(order: Sequence[int]) -> list[int]:
    """By task: its place in an order."""
    rank = [0] * len(order)
    for place, task in enumerate(order):
        rank[task] = place
    return rank


def _ordered(before: Sequence[Sequence[int]], keys: Sequence[int]) -> list[int]:
    """Tasks behind those before them; of several that could follow, the one with the least key."""
    after: list[list[int]] = [[] for _ in before]
    missing = [0] * len(before)
    for number, found in enumerate(before):
        for other in found:
            after[other].append(number)
            missing[number] += 1
    ready = [(keys[n], n) for n, count in enumerate(missing) if not count]
    heapify(ready)
    order = []
    while ready:
        _, task = heappop(ready)
        order.append(task)
        for other in after[task]:
            missing[other] -= 1
            if not missing[other]:
                heappush(ready, (keys[other], other))
    placed = set(order)
    return order + [n for n in range(len(before)) if n not in placed]


def latest_first(timetable: Timetable) -> list[int]:
    """An order that lets every task run before those that the timetable starts earlier, if it may.

    What the timetable keeps apart by time alone meets here.
    """
    before = predecessors(timetable)
    slots = timetable.slots
    # Placed from the end: of the tasks that nobody still waits for, the earliest goes last.
    waiting = [0] * len(before)
    for found in before:
        for other in found:
            waiting[other] += 1
    ready = [(slots[n].start_cycle, n) for n, count in enumerate(waiting) if not count]
    heapify(ready)
    order = []
    while ready:
        _, task = heappop(ready)
        order.append(task)
        for other in before[task]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, (slots[other].start_cycle, other))
    return order[::-1]

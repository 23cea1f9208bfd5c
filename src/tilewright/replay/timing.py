"""When would a plan's tasks run on a machine that keeps only its order: an event simulation.

Every engine instance takes its tasks in the order of the plan, each as soon as what it waits for
(`after`, control edges) has ended and its ports have a free lane. Nothing is looked up in the
plan's times but that order and the instances, so slower engines and jitter can be tried without
planning again.
"""

import math
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from types import MappingProxyType

import numpy as np

from tilewright.errors import InputError, LimitError, Problem
from tilewright.program.model import Program, Slot, Timetable
from tilewright.replay.emulate_order import queues_of, waits_of

NOTHING_SLOWER: Mapping[str, float] = MappingProxyType({})


def timing(
    timetable: Timetable,
    *,
    slower: Mapping[str, float] = NOTHING_SLOWER,
    jitter: float = 0.0,
    seed: int = 0,
) -> int:
    """Cycles until the last task ends; see `timed_slots`."""
    slots = timed_slots(timetable, slower=slower, jitter=jitter, seed=seed)
    return max((slot.end_cycle for slot in slots), default=0)


def timed_slots(
    timetable: Timetable,
    *,
    slower: Mapping[str, float] = NOTHING_SLOWER,
    jitter: float = 0.0,
    seed: int = 0,
) -> tuple[Slot, ...]:
    """When each task runs if engines are slower by the given factors (1.2: 20 % slower).

    With `jitter`, every task takes up to that share longer, evenly distributed, from the seed.

    Raises:
        InputError: there is no engine of that name, or a factor is not above 0.
        LimitError: the plan's order and its waits contradict each other: nothing can go on.
    """
    _check(timetable.program, slower, jitter)
    tasks = timetable.program.tasks
    factors = np.ones(len(tasks))
    if jitter:
        factors += jitter * np.random.default_rng(seed).random(len(tasks))
    cycles = [
        _scaled(task.cycles, slower.get(task.engine, 1.0) * float(factor))
        for task, factor in zip(tasks, factors, strict=True)
    ]
    return _Simulation(timetable, cycles).run()


def _scaled(cycles: int, factor: float) -> int:
    # Rounded first, so that 100 × 1.1 is 110 cycles and not 111.
    return math.ceil(round(cycles * factor, 6))


def _check(program: Program, slower: Mapping[str, float], jitter: float) -> None:
    names = [engine.name for engine in program.engines]
    problems = [
        Problem(message=f"there is no engine {name!r}", hint=f"there are {', '.join(names)}")
        for name in slower
        if name not in names
    ]
    problems += [
        Problem(message=f"engine {name!r} cannot be {factor} times as slow")
        for name, factor in slower.items()
        if factor <= 0
    ]
    if jitter < 0:
        problems.append(Problem(message=f"a jitter of {jitter} is not possible"))
    if problems:
        raise InputError(*problems)


class _Simulation:
    """Engines, ports and waits while time goes on."""

    def __init__(self, timetable: Timetable, cycles: Sequence[int]) -> None:
        self.timetable = timetable
        self.tasks = timetable.program.tasks
        self.cycles = cycles
        self.lanes = {engine.name: engine.count for engine in timetable.program.engines}
        self.missing, self.users = _waits(timetable)
        self.queues = list(queues_of(timetable).values())
        self.place = [0] * len(self.queues)
        self.busy = [False] * len(self.queues)
        self.queue_of = {task: n for n, queue in enumerate(self.queues) for task in queue}
        self.flows: dict[str, list[tuple[int, int]]] = {}
        """Per port the transfers that hold a lane, or will: from when to when."""
        self.start = [-1] * len(self.tasks)

    def run(self) -> tuple[Slot, ...]:
        """Let every task run."""
        events: list[tuple[int, int]] = [(0, -1)]
        heapify(events)
        while events:
            now = events[0][0]
            while events and events[0][0] == now:
                task = heappop(events)[1]
                if task >= 0:
                    self._end(task)
            self._start_all(now, events)
        stuck = [n for n, start in enumerate(self.start) if start < 0]
        if stuck:
            raise LimitError(self._stuck(stuck))
        slots = zip(self.start, self.cycles, self.timetable.slots, strict=True)
        return tuple(
            Slot(start_cycle=start, end_cycle=start + cycles, instance=slot.instance)
            for start, cycles, slot in slots
        )

    def _start_all(self, now: int, events: list[tuple[int, int]]) -> None:
        """Start what can start, in the order of the plan where tasks compete for a lane."""
        heads = [
            (self.timetable.slots[queue[self.place[n]]].start_cycle, queue[self.place[n]], n)
            for n, queue in enumerate(self.queues)
            if not self.busy[n] and self.place[n] < len(queue)
        ]
        for _, task, number in sorted(heads):
            if self.missing[task]:
                continue
            later = self._port_wait(task, now)
            if later:
                heappush(events, (later, -1))
                continue
            self.start[task] = now
            self.busy[number] = True
            self.place[number] += 1
            end = now + self.cycles[task]
            for port in self.tasks[task].ports:
                self.flows[port].append((now + self.tasks[task].setup_cycles, end))
            heappush(events, (end, task))

    def _port_wait(self, task: int, now: int) -> int:
        """When to ask again because a port has no lane free; 0 if all have."""
        begin = now + self.tasks[task].setup_cycles
        end = now + self.cycles[task]
        ports = self.tasks[task].ports
        for port in ports:
            flows = self.flows.setdefault(port, [])
            flows[:] = [flow for flow in flows if flow[1] > now]
            held = [last for first, last in flows if last > begin and first < end]
            if len(held) + ports.count(port) > self.lanes[port]:
                return max(now + 1, min(held) - self.tasks[task].setup_cycles)
        return 0

    def _end(self, task: int) -> None:
        self.busy[self.queue_of[task]] = False
        for user in self.users[task]:
            self.missing[user] -= 1

    def _stuck(self, stuck: Sequence[int]) -> Problem:
        names = ", ".join(self.tasks[n].name for n in stuck[:5])
        return Problem(
            message=f"{len(stuck)} tasks wait for each other, {names} among them",
            hint="a task waits for one that stands behind it on its engine",
        )


def _waits(timetable: Timetable) -> tuple[list[int], list[list[int]]]:
    """By task: for how many it waits, and who waits for it."""
    before = waits_of(timetable)
    users: list[list[int]] = [[] for _ in before]
    for task, found in enumerate(before):
        for other in found:
            users[other].append(task)
    return [len(found) for found in before], users

"""When would a plan's tasks run on a machine that keeps only its order: an event simulation.

Every engine instance takes its tasks in the order of the plan, each as soon as what it waits for
(`after`, control edges) has ended and its ports have a free lane. Nothing is looked up in the
plan's times but that order and the instances, so slower engines and jitter can be tried without
planning again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from types import MappingProxyType

import numpy as np

from tilewright.errors import InputError, LimitError, Problem
from tilewright.program.model import Program, Slot, Timetable
from tilewright.replay.emulate_order import predecessors

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
    replay = replay_of(timetable)
    starts = start_cycles(replay, cycles, replay.setup_cycles, replay.lanes)
    return tuple(
        Slot(start_cycle=start, end_cycle=start + spent, instance=slot.instance)
        for start, spent, slot in zip(starts, cycles, timetable.slots, strict=True)
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a timetable keeps when its tasks take other times, taken apart to be run often.

    Sequences are by task.
    """

    order: Sequence[int]
    """Every task behind those that it waits for."""
    turns: Sequence[int]
    """Who comes first where tasks compete for a lane: their places in the order of the plan."""
    before: Sequence[Sequence[int]]
    """For whom it waits, the one before it on its engine among them."""
    users: Sequence[Sequence[int]]
    """Who waits for it."""
    ports: Sequence[tuple[str, ...]]
    """Ports that it holds and that may have no lane free for it."""
    scarce: Sequence[str]
    """Ports with fewer lanes than the engine instances that use them can hold at once."""
    setup_cycles: Sequence[int]
    lanes: Mapping[str, int]
    """By port how many transfers it can feed."""


def replay_of(timetable: Timetable) -> Replay:
    """The order, waits and ports of a timetable.

    Raises:
        LimitError: tasks wait for each other.
    """
    program = timetable.program
    before = predecessors(timetable)
    users: list[list[int]] = [[] for _ in before]
    for task, found in enumerate(before):
        for other in found:
            users[other].append(task)
    turns = [0] * len(before)
    planned = sorted((slot.start_cycle, task) for task, slot in enumerate(timetable.slots))
    for turn, (_, task) in enumerate(planned):
        turns[task] = turn
    scarce = _scarce_ports(timetable)
    return Replay(
        order=_order(timetable, before, users),
        turns=turns,
        before=before,
        users=users,
        ports=[tuple(port for port in task.ports if port in scarce) for task in program.tasks],
        scarce=scarce,
        setup_cycles=[task.setup_cycles for task in program.tasks],
        lanes={engine.name: engine.count for engine in program.engines},
    )


def _order(
    timetable: Timetable, before: Sequence[Sequence[int]], users: Sequence[Sequence[int]]
) -> list[int]:
    missing = [len(found) for found in before]
    order = [task for task, count in enumerate(missing) if not count]
    for task in order:
        for user in users[task]:
            missing[user] -= 1
            if not missing[user]:
                order.append(user)
    if len(order) < len(before):
        names = [t.name for t, count in zip(timetable.program.tasks, missing, strict=True) if count]
        message = f"{len(names)} tasks wait for each other, {', '.join(names[:5])} among them"
        hint = "a task waits for one that stands behind it on its engine"
        raise LimitError(Problem(message=message, hint=hint))
    return order


def _scarce_ports(timetable: Timetable) -> list[str]:
    most: dict[str, dict[tuple[str, int], int]] = {}
    for task, slot in zip(timetable.program.tasks, timetable.slots, strict=True):
        for port in task.ports:
            held = most.setdefault(port, {})
            key = task.engine, slot.instance
            held[key] = max(held.get(key, 0), task.ports.count(port))
    lanes = {engine.name: engine.count for engine in timetable.program.engines}
    return [port for port, held in most.items() if sum(held.values()) > lanes[port]]


def start_cycles(
    replay: Replay,
    cycles: Sequence[int],
    setup_cycles: Sequence[int],
    lanes: Mapping[str, int],
) -> list[int]:
    """When each task starts if they take so many cycles and ports have so many lanes."""
    if replay.scarce:
        return _simulated(replay, cycles, setup_cycles, lanes)
    # Nobody competes: a task starts when the last of those that it waits for has ended.
    starts = [0] * len(cycles)
    ends = [0] * len(cycles)
    for task in replay.order:
        start = 0
        for other in replay.before[task]:
            if ends[other] > start:
                start = ends[other]
        starts[task] = start
        ends[task] = start + cycles[task]
    return starts


def _simulated(
    replay: Replay,
    cycles: Sequence[int],
    setup_cycles: Sequence[int],
    lanes: Mapping[str, int],
) -> list[int]:
    missing = [len(found) for found in replay.before]
    starts = [0] * len(missing)
    ready = [task for task, count in enumerate(missing) if not count]
    flows = _Flows(lanes)
    events: list[tuple[int, int]] = []
    now = 0
    while ready or events:
        # In the order of the plan where tasks compete for a lane.
        ready.sort(key=replay.turns.__getitem__)
        waiting = []
        for task in ready:
            end = now + cycles[task]
            later = flows.taken(replay.ports[task], now, setup_cycles[task], end)
            if later:
                heappush(events, (later, -1))
                waiting.append(task)
            else:
                starts[task] = now
                heappush(events, (end, task))
        ready = waiting
        now = events[0][0]
        while events and events[0][0] == now:
            ended = heappop(events)[1]
            for user in replay.users[ended] if ended >= 0 else ():
                missing[user] -= 1
                if not missing[user]:
                    ready.append(user)
    return starts


class _Flows:
    """Transfers that hold a lane of a port, or will: from when to when."""

    def __init__(self, lanes: Mapping[str, int]) -> None:
        self.lanes = lanes
        self.held: dict[str, list[tuple[int, int]]] = {}

    def taken(self, ports: Sequence[str], now: int, setup_cycles: int, end: int) -> int:
        """Take a lane of every port, and answer 0; or when to ask again if one has none free."""
        begin = now + setup_cycles
        for port in ports:
            flows = [flow for flow in self.held.get(port, ()) if flow[1] > now]
            self.held[port] = flows
            meeting = [last for first, last in flows if last > begin and first < end]
            if len(meeting) + ports.count(port) > self.lanes[port]:
                return max(now + 1, min(meeting) - setup_cycles)
        for port in ports:
            self.held[port].append((begin, end))
        return 0

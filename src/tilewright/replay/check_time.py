"""Does everything have a time of its own: slots, engines, ports, and who waits for whom?"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from tilewright.errors import Problem
from tilewright.program.model import Engine, Timetable
from tilewright.replay.check_boxes import Ints
from tilewright.replay.check_kinds import Kinds


def time_problems(timetable: Timetable, kinds: Kinds) -> Iterator[Problem]:
    """Wrong slots, engines and ports that do two things at once, tasks that do not wait."""
    starts, ends = slot_times(timetable)
    yield from _slot_problems(timetable, kinds, starts, ends)
    yield from _engine_problems(timetable, kinds, starts, ends)
    yield from _port_problems(timetable, kinds, starts, ends)
    yield from _order_problems(timetable, starts, ends)


def cycles_text(timetable: Timetable, task: int) -> str:
    """A task with its time: `conv[0] (cycles 10 to 20)`."""
    slot = timetable.slots[task]
    name = timetable.program.tasks[task].name
    return f"{name} (cycles {slot.start_cycle} to {slot.end_cycle})"


def slot_times(timetable: Timetable) -> tuple[Ints, Ints]:
    """By task the cycles of its start and its end."""
    starts = np.array([slot.start_cycle for slot in timetable.slots], dtype=np.int64)
    ends = np.array([slot.end_cycle for slot in timetable.slots], dtype=np.int64)
    return starts, ends


def _slot_problems(
    timetable: Timetable, kinds: Kinds, starts: Ints, ends: Ints
) -> Iterator[Problem]:
    count = {engine.name: engine.count for engine in timetable.program.engines}
    tasks = timetable.program.tasks
    cycles = kinds.ints(lambda task: task.cycles)
    counts = kinds.ints(lambda task: count[task.engine])
    instances = _instances(timetable)
    is_wrong = (starts < 0) | (ends - starts != cycles) | (instances < 0) | (instances >= counts)
    for number in np.flatnonzero(is_wrong).tolist():
        task, slot = tasks[number], timetable.slots[number]
        if slot.start_cycle < 0:
            yield Problem(message=f"{cycles_text(timetable, number)} starts before cycle 0")
        if slot.end_cycle - slot.start_cycle != task.cycles:
            yield Problem(
                message=f"{cycles_text(timetable, number)} has a slot of another length: "
                f"it takes {task.cycles}"
            )
        if not 0 <= slot.instance < count[task.engine]:
            yield Problem(
                message=f"{cycles_text(timetable, number)} runs on instance {slot.instance} "
                f"of {task.engine}, of which there are {count[task.engine]}"
            )


def _instances(timetable: Timetable) -> Ints:
    return np.array([slot.instance for slot in timetable.slots], dtype=np.int64)


def _engine_problems(
    timetable: Timetable, kinds: Kinds, starts: Ints, ends: Ints
) -> Iterator[Problem]:
    """In order of start, a task may only begin when all before it on its instance have ended."""
    names = [engine.name for engine in timetable.program.engines]
    engines, instances = kinds.ints(lambda task: names.index(task.engine)), _instances(timetable)
    in_order = np.lexsort((ends, starts, instances, engines))
    before, behind = in_order[:-1], in_order[1:]
    is_same = (engines[before] == engines[behind]) & (instances[before] == instances[behind])
    # If none begins before its neighbour has ended, all before that one have ended too.
    if not (is_same & (starts[behind] < ends[before])).any():
        return
    queues: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number in range(len(starts)):
        queues[names[engines[number]], int(instances[number])].append(number)
    for (engine, instance), numbers in queues.items():
        times = [(*_times(timetable, number), number) for number in numbers]
        (_, busy_until, latest), *others = sorted(times)
        for start, end, number in others:
            if start < busy_until:
                yield Problem(
                    message=f"{cycles_text(timetable, latest)} and "
                    f"{cycles_text(timetable, number)} are both on {engine} instance {instance} "
                    f"at cycles {start} to {min(end, busy_until)}"
                )
            if end > busy_until:
                busy_until, latest = end, number


def _port_problems(
    timetable: Timetable, kinds: Kinds, starts: Ints, ends: Ints
) -> Iterator[Problem]:
    engine_of = {engine.name: engine for engine in timetable.program.engines}
    setup = kinds.ints(lambda task: task.setup_cycles)
    for port in dict.fromkeys(port for task in kinds.examples for port in task.ports):
        # Who holds an engine has it for itself: those that run on it count as holding it.
        lanes = np.array(
            [max(task.ports.count(port), task.engine == port) for task in kinds.examples],
            dtype=np.int64,
        )
        holding = np.arange(len(starts)).repeat(lanes[kinds.number])
        holding = holding[(starts + setup)[holding] < ends[holding]]
        begins, stops = np.sort((starts + setup)[holding]), np.sort(ends[holding])
        # How many have begun, up to each of them, less how many have ended by then.
        at_work = np.arange(1, len(begins) + 1) - np.searchsorted(stops, begins, side="right")
        if (at_work > engine_of[port].count).any():
            yield from _lane_problems(timetable, engine_of[port], holding.tolist())


def _lane_problems(timetable: Timetable, port: Engine, holding: Sequence[int]) -> Iterator[Problem]:
    """Whoever takes a lane finds fewer than all of them taken by those still at work."""
    working: list[tuple[int, int]] = []
    for begin, end, number in sorted([_hold(timetable, number) for number in holding]):
        working = [hold for hold in working if hold[0] > begin]
        working.append((end, number))
        if len(working) > port.count:
            others = ", ".join(cycles_text(timetable, other) for _, other in working)
            yield Problem(
                message=f"port {port.name} has {port.count} lanes, and {len(working)} transfers "
                f"need one at cycle {begin}: {others}"
            )


def _hold(timetable: Timetable, number: int) -> tuple[int, int, int]:
    """From when to when a task holds its ports."""
    start, end = _times(timetable, number)
    return start + timetable.program.tasks[number].setup_cycles, end, number


def _order_problems(timetable: Timetable, starts: Ints, ends: Ints) -> Iterator[Problem]:
    lists = [task.after for task in timetable.program.tasks]
    counts = np.array(list(map(len, lists)), dtype=np.int64)
    waits = _numbers(lists), np.arange(len(lists)).repeat(counts)
    first, second = _numbers(timetable.edges).reshape(-1, 2).T
    for befores, numbers, why in ((*waits, "`after`"), (first, second, "a control edge")):
        is_early = ends[befores] > starts[numbers]
        for before, number in zip(
            befores[is_early].tolist(), numbers[is_early].tolist(), strict=True
        ):
            yield Problem(
                message=f"{cycles_text(timetable, number)} starts too early: {why} makes it wait "
                f"for {cycles_text(timetable, before)}"
            )


def _numbers(lists: Iterable[Sequence[int]]) -> Ints:
    """All numbers of some lists, one list behind the other."""
    return np.fromiter(chain.from_iterable(lists), dtype=np.int64)


def _times(timetable: Timetable, task: int) -> tuple[int, int]:
    slot = timetable.slots[task]
    return slot.start_cycle, slot.end_cycle

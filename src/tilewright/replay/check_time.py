"""Does everything have a time of its own: slots, engines, ports, and who waits for whom?"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from tilewright.errors import Problem
from tilewright.program.model import Engine, Timetable
from tilewright.replay.check_boxes import Ints


def time_problems(timetable: Timetable) -> Iterator[Problem]:
    """Wrong slots, engines and ports that do two things at once, tasks that do not wait."""
    yield from _slot_problems(timetable)
    yield from _engine_problems(timetable)
    yield from _port_problems(timetable)
    yield from _order_problems(timetable)


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


def _slot_problems(timetable: Timetable) -> Iterator[Problem]:
    count = {engine.name: engine.count for engine in timetable.program.engines}
    for number, (task, slot) in enumerate(
        zip(timetable.program.tasks, timetable.slots, strict=True)
    ):
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


def _engine_problems(timetable: Timetable) -> Iterator[Problem]:
    """In order of start, a task may only begin when all before it on its instance have ended."""
    queues: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, (task, slot) in enumerate(
        zip(timetable.program.tasks, timetable.slots, strict=True)
    ):
        queues[task.engine, slot.instance].append(number)
    for (engine, instance), queue in queues.items():
        queue.sort(key=lambda number: (*_times(timetable, number), number))
        latest = queue[0]
        for number in queue[1:]:
            start, end = _times(timetable, number)
            busy_until = timetable.slots[latest].end_cycle
            if start < busy_until:
                yield Problem(
                    message=f"{cycles_text(timetable, latest)} and "
                    f"{cycles_text(timetable, number)} are both on {engine} instance {instance} "
                    f"at cycles {start} to {min(end, busy_until)}"
                )
            if end > busy_until:
                latest = number


def _port_problems(timetable: Timetable) -> Iterator[Problem]:
    engine_of = {engine.name: engine for engine in timetable.program.engines}
    holders: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for number, task in enumerate(timetable.program.tasks):
        start, end = _times(timetable, number)
        for port in task.ports:
            if start + task.setup_cycles < end:
                holders[port].append((start + task.setup_cycles, end, number))
    for port, holds in holders.items():
        yield from _lane_problems(timetable, engine_of[port], sorted(holds))


def _lane_problems(
    timetable: Timetable, port: Engine, holds: list[tuple[int, int, int]]
) -> Iterator[Problem]:
    """Whoever takes a lane finds fewer than all of them taken by those still at work."""
    working: list[tuple[int, int]] = []
    for begin, end, number in holds:
        working = [hold for hold in working if hold[0] > begin]
        working.append((end, number))
        if len(working) > port.count:
            others = ", ".join(cycles_text(timetable, other) for _, other in working)
            yield Problem(
                message=f"port {port.name} has {port.count} lanes, and {len(working)} transfers "
                f"need one at cycle {begin}: {others}"
            )


def _order_problems(timetable: Timetable) -> Iterator[Problem]:
    tasks, slots = timetable.program.tasks, timetable.slots
    waits = [
        (before, number, "`after`")
        for number, task in enumerate(tasks)
        for before in task.after
        if slots[before].end_cycle > slots[number].start_cycle
    ]
    waits += [
        (before, number, "a control edge")
        for before, number in timetable.edges
        if slots[before].end_cycle > slots[number].start_cycle
    ]
    for before, number, why in waits:
        yield Problem(
            message=f"{cycles_text(timetable, number)} starts too early: {why} makes it wait "
            f"for {cycles_text(timetable, before)}"
        )


def _times(timetable: Timetable, task: int) -> tuple[int, int]:
    slot = timetable.slots[task]
    return slot.start_cycle, slot.end_cycle

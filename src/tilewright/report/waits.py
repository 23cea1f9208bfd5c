"""Why tasks start no earlier: what each one waited for, and who is to blame for idle engines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tilewright.program.model import Slot, Timetable
from tilewright.report.lives import engine_free, is_core, port_holds

Reason = Literal["engine", "data", "room", "port", "choice"]
"""The engine was busy; data was not there; the address was in use; a port had no lane free; or
nothing: the plan lets the task go later than it could."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What held a task up last: the task that ended (-1: none) at `cycle`, and why it mattered."""

    task: int
    reason: Reason
    cycle: int


@dataclass(frozen=True, slots=True)
class Idle:
    """Cycles in which the engine of a compute task stood idle before it, by cause."""

    task: int
    cause: str
    cycles: int


def waits(timetable: Timetable, slots: Sequence[Slot] | None = None) -> list[Wait]:
    """By task what ended last before it could start, at the plan's times or at others."""
    slots = timetable.slots if slots is None else slots
    tasks = timetable.program.tasks
    found = [Wait(-1, "choice", 0)] * len(tasks)

    def consider(number: int, other: int, reason: Reason, cycle: int) -> None:
        if found[number].cycle < cycle <= slots[number].start_cycle:
            found[number] = Wait(other, reason, cycle)

    for number, other in _previous(timetable, slots):
        consider(number, other, "engine", slots[other].end_cycle)
    for number, task in enumerate(tasks):
        for other in task.after:
            consider(number, other, "data", slots[other].end_cycle)
    for other, number in timetable.edges:
        consider(number, other, "room", slots[other].end_cycle)
    for number, other in _lane_before(timetable, slots):
        cycle = slots[other].end_cycle - tasks[number].setup_cycles
        consider(number, other, "port", cycle)
    return found


def idle_cycles(timetable: Timetable) -> Iterator[Idle]:
    """Idle cycles of arrays and vector units before each of their tasks, by cause.

    Going back from the start of the task, a cycle is blamed on what the task waited for then: on
    the transfer that was under way (its bytes or its set-up), on whoever held the address or the
    port, on the core that was still computing; and what is left is nobody's.
    """
    tasks, slots = timetable.program.tasks, timetable.slots
    found = waits(timetable)
    free = engine_free(timetable)
    for number, task in enumerate(tasks):
        start = slots[number].start_cycle
        if not is_core(task.engine) or start <= free[number]:
            continue
        for cause, cycles in _blame(timetable, found, number, free[number]):
            if cycles:
                yield Idle(number, cause, cycles)


def _blame(
    timetable: Timetable, found: Sequence[Wait], number: int, begin: int
) -> Iterator[tuple[str, int]]:
    now = timetable.slots[number].start_cycle
    for _ in timetable.slots:
        if now <= begin:
            return
        wait = found[number]
        if wait.task < 0:
            yield "started later than it could", now - begin
            return
        if wait.cycle < now:
            at = max(begin, wait.cycle)
            yield "started later than it could", now - at
            now = at
        if wait.reason == "room":
            yield f"no room in {_crowded(timetable, number)}", now - begin
            return
        first = min(timetable.slots[wait.task].start_cycle, now)
        yield from _running(timetable, wait, max(begin, first), now)
        now, number = first, wait.task


def _running(timetable: Timetable, wait: Wait, begin: int, end: int) -> Iterator[tuple[str, int]]:
    """Who is to blame while the task that was waited for ran."""
    task = timetable.program.tasks[wait.task]
    if task.kind == "compute":
        yield f"waiting for {task.engine}", end - begin
        return
    flowing = timetable.slots[wait.task].start_cycle + task.setup_cycles
    over = f" over {', '.join(task.ports)}" if task.ports else ""
    yield f"transfers of {task.engine}{over}", max(0, end - max(begin, flowing))
    yield f"set-up of {task.engine}", max(0, min(end, flowing) - begin)


def _crowded(timetable: Timetable, number: int) -> str:
    """The scratchpad whose addresses a task waited for: that of what it writes."""
    program = timetable.program
    spaces = [program.buffers[access.buffer].space for access in program.tasks[number].writes]
    pads = [space for space in spaces if program.space[space].kind == "scratchpad"]
    return program.space[(pads or spaces)[0]].memory if spaces else "a scratchpad"


def _previous(timetable: Timetable, slots: Sequence[Slot]) -> Iterator[tuple[int, int]]:
    """Each task but the first with the one before it on its engine instance."""
    last: dict[tuple[str, int], int] = {}
    for number in sorted(
        range(len(slots)), key=lambda n: (slots[n].start_cycle, slots[n].end_cycle, n)
    ):
        key = timetable.program.tasks[number].engine, slots[number].instance
        if key in last:
            yield number, last[key]
        last[key] = number


def _lane_before(timetable: Timetable, slots: Sequence[Slot]) -> Iterator[tuple[int, int]]:
    """Each transfer with the one that held a lane of its port before it, where all were in use."""
    shown = Timetable(program=timetable.program, slots=tuple(slots), addresses=())
    before: dict[tuple[str, int], int] = {}
    for hold in port_holds(shown):
        if (hold.port, hold.lane) in before:
            yield hold.task, before[hold.port, hold.lane]
        before[hold.port, hold.lane] = hold.task

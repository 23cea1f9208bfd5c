"""When the buffers of a timetable are in use, what each transfer is for, and who holds a port."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate
from typing import Literal

from tilewright.program.model import Timetable
from tilewright.schedule.packed import buffer_lives

Purpose = Literal["array", "vector", "ahead", "waited", "again", "spill", "store", "move"]
"""What a task is for: work of the array or the vector unit; a load while its reader's engine still
works, one that this engine waits for, one of data that was on the chip before; a store of what is
read back, any other store; a move on the chip, also of elements to other places."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A lane of a port in use by a transfer: [start_cycle, end_cycle)."""

    port: str
    lane: int
    task: int
    start_cycle: int
    end_cycle: int


def bytes_in_use(timetable: Timetable) -> dict[str, list[tuple[int, int]]]:
    """By scratchpad, wherever it changes: cycle, and bytes in use from then on."""
    program = timetable.program
    changes: dict[str, dict[int, int]] = {
        space.name: {} for space in program.spaces if space.kind == "scratchpad"
    }
    for number, (start, end) in buffer_lives(timetable).items():
        buffer = program.buffers[number]
        if buffer.space in changes:
            change = changes[buffer.space]
            change[start] = change.get(start, 0) + buffer.size_bytes
            change[end] = change.get(end, 0) - buffer.size_bytes
    curves = {}
    for space, change in changes.items():
        times = sorted(change)
        curves[space] = list(zip(times, accumulate(change[t] for t in times), strict=True))
    return curves


def port_holds(timetable: Timetable) -> Iterator[Hold]:
    """Who holds which lane of which port when; no two holds of a lane overlap."""
    asked: dict[str, list[tuple[int, int, int]]] = {}
    for number, task in enumerate(timetable.program.tasks):
        slot = timetable.slots[number]
        for port in task.ports:
            start = min(slot.start_cycle + task.setup_cycles, slot.end_cycle)
            asked.setdefault(port, []).append((start, slot.end_cycle, number))
    for port, times in asked.items():
        busy: list[tuple[int, int]] = []
        free: list[int] = []
        lanes = 0
        for start, end, number in sorted(times):
            while busy and busy[0][0] <= start:
                heappush(free, heappop(busy)[1])
            if not free:
                free, lanes = [lanes], lanes + 1
            lane = heappop(free)
            heappush(busy, (end, lane))
            yield Hold(port, lane, number, start, end)


def purposes(timetable: Timetable) -> list[Purpose]:
    """What each task is for."""
    program = timetable.program
    tasks = program.tasks
    loaded_roots = {
        program.root(access.buffer)
        for task in tasks
        if task.kind == "load"
        for access in task.reads
    }
    made = {
        program.root(access.buffer)
        for task in tasks
        if task.kind == "store"
        for access in task.writes
    }
    waited = _waited_for(timetable)
    order = sorted(range(len(tasks)), key=lambda n: (timetable.slots[n].start_cycle, n))
    seen: set[tuple[object, ...]] = set()
    found: list[Purpose] = ["array"] * len(tasks)
    for number in order:
        task = tasks[number]
        if task.kind == "compute":
            found[number] = _worker(task.engine)
        elif task.kind == "store":
            spilled = any(program.root(access.buffer) in loaded_roots for access in task.writes)
            found[number] = "spill" if spilled else "store"
        elif task.kind == "move":
            found[number] = "move"
        else:
            roots = [program.root(access.buffer) for access in task.reads]
            spaces = tuple(program.buffers[access.buffer].space for access in task.writes)
            key = (*roots, *(access.box for access in task.reads), *spaces)
            again = key in seen or any(root in made for root in roots)
            seen.add(key)
            found[number] = "again" if again else "waited" if waited[number] else "ahead"
    return found


def is_core(engine: str) -> bool:
    """Whether an engine is an array or a vector unit, not one that moves bytes."""
    return engine.startswith("core[")


def _worker(engine: str) -> Purpose:
    if not is_core(engine):
        return "move"
    return "vector" if engine.endswith(".vector") else "array"


def _waited_for(timetable: Timetable) -> list[bool]:
    """By task: whether somebody who waits for it could have run before it ended."""
    tasks, slots = timetable.program.tasks, timetable.slots
    free_from = engine_free(timetable)
    waited = [False] * len(tasks)
    for number, task in enumerate(tasks):
        if is_core(task.engine):
            for other in task.after:
                waited[other] = waited[other] or slots[other].end_cycle > free_from[number]
    return waited


def engine_free(timetable: Timetable) -> list[int]:
    """By task: when its engine instance had ended the task before it; 0 for the first one."""
    slots = timetable.slots
    ends: dict[tuple[str, int], int] = {}
    free = [0] * len(slots)
    order = sorted(range(len(slots)), key=lambda n: (slots[n].start_cycle, slots[n].end_cycle, n))
    for number in order:
        key = timetable.program.tasks[number].engine, slots[number].instance
        free[number] = ends.get(key, 0)
        ends[key] = slots[number].end_cycle
    return free

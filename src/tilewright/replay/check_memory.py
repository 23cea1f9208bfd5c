"""Does every buffer have a place of its own while it lives?"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from math import prod

from tilewright.errors import Problem
from tilewright.program.model import Buffer, Space, Timetable
from tilewright.replay.check_boxes import shape_of, volume


@dataclass(frozen=True, slots=True, order=True)
class Life:
    """A root's cycles [begin, end) and bytes [address, top) in its space."""

    begin: int
    end: int
    address: int
    top: int
    buffer: int


def memory_problems(timetable: Timetable) -> Iterator[Problem]:
    """Buffers outside their space, misaligned, in reserved ranges, or on top of each other."""
    program = timetable.program
    by_space: dict[str, list[Life]] = defaultdict(list)
    for life in lives(timetable):
        buffer = program.buffers[life.buffer]
        space = program.space[buffer.space]
        if space.kind in ("scratchpad", "external"):
            yield from _place_problems(life, buffer, space)
            by_space[space.name].append(life)
    yield from _view_addresses(timetable)
    for space in program.spaces:
        yield from _clashes(timetable, space, sorted(by_space[space.name]))


def lives(timetable: Timetable) -> list[Life]:
    """The lives of all roots that anything touches, is given or results, in order of number.

    A root lives from the start of its first writer (0 if given) to the end of the last task that
    touches it or a view of it (the end of the timetable if it is a result).
    """
    program = timetable.program
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    for task, slot in zip(program.tasks, timetable.slots, strict=True):
        for access in task.writes:
            root = program.root(access.buffer)
            begins[root] = min(begins.get(root, slot.start_cycle), slot.start_cycle)
        for access in (*task.reads, *task.writes):
            root = program.root(access.buffer)
            ends[root] = max(ends.get(root, 0), slot.end_cycle)
    for buffer in program.given:
        begins[program.root(buffer)] = 0
    for buffer in program.results:
        ends[program.root(buffer)] = timetable.cycles
    return [
        Life(
            begins.get(root, 0),
            end,
            timetable.addresses[root],
            timetable.addresses[root] + program.buffers[root].size_bytes,
            root,
        )
        for root, end in sorted(ends.items())
    ]


def _place_problems(life: Life, buffer: Buffer, space: Space) -> Iterator[Problem]:
    who = f"buffer {buffer.name} at bytes {life.address} to {life.top} of {space.name}"
    if life.address < 0 or life.top > space.size_bytes:
        over = max(-life.address, life.top - space.size_bytes)
        yield Problem(message=f"{who} lies {over} bytes outside its {space.size_bytes} bytes")
    if life.address % space.alignment_bytes:
        yield Problem(message=f"{who} is not aligned to {space.alignment_bytes} bytes")
    for begin, end in space.reserved:
        if life.address < end and begin < life.top:
            yield Problem(message=f"{who} touches the reserved bytes {begin} to {end}")


def _view_addresses(timetable: Timetable) -> Iterator[Problem]:
    """A view has the address of its first element, where that is a whole number of bytes."""
    program = timetable.program
    for buffer, address in zip(program.buffers, timetable.addresses, strict=True):
        space = program.space[buffer.space]
        if buffer.view is None or space.kind in ("source", "sink"):
            continue
        root = program.buffers[buffer.view.buffer]
        at = timetable.addresses[buffer.view.buffer]
        if buffer.view.origin is not None:
            elements = volume(root.box)
            if not elements or root.size_bytes % elements:
                continue
            steps = [prod(shape_of(root.box)[axis + 1 :]) for axis in range(len(root.box))]
            starts = [begin for begin, _ in root.box]
            inside = sum(
                (here - start) * step
                for here, start, step in zip(buffer.view.origin, starts, steps, strict=True)
            )
            at += inside * root.size_bytes // elements
        if address != at:
            yield Problem(
                message=f"buffer {buffer.name}, a view of {root.name}, has address {address}, "
                f"and its first element lies at {at} of {space.name}"
            )


def _clashes(timetable: Timetable, space: Space, lives: list[Life]) -> Iterator[Problem]:
    """In order of birth, each buffer must fit between its neighbours among those still alive.

    One that does not is reported and left out, so those kept never overlap, and two neighbours say
    all there is to say.
    """
    alive: list[tuple[int, Life]] = []
    deaths: list[tuple[int, int, Life]] = []
    for life in lives:
        while deaths and deaths[0][0] <= life.begin:
            _, _, dead = heappop(deaths)
            del alive[bisect_left(alive, (dead.address, dead))]
        if life.address >= life.top:
            continue
        at = bisect_left(alive, (life.address, life))
        near = [other for _, other in alive[max(0, at - 1) : at + 1]]
        clashing = [o for o in near if o.address < life.top and life.address < o.top]
        for other in clashing:
            yield _clash(timetable, space, other, life)
        if not clashing:
            insort(alive, (life.address, life))
            heappush(deaths, (life.end, life.buffer, life))


def _clash(timetable: Timetable, space: Space, one: Life, other: Life) -> Problem:
    names = [timetable.program.buffers[life.buffer].name for life in (one, other)]
    first, last = max(one.address, other.address), min(one.top, other.top)
    return Problem(
        message=f"buffers {names[0]} and {names[1]} lie on the same bytes of {space.name}: "
        f"{first} to {last}, at cycles {max(one.begin, other.begin)} to {min(one.end, other.end)}"
    )

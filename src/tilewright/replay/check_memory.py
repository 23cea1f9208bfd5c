"""Does every buffer have a place of its own while it lives?"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tilewright.errors import Problem
from tilewright.program.model import Buffer, Space, Timetable
from tilewright.records import quickly_made
from tilewright.replay.check_accesses import Accesses
from tilewright.replay.check_boxes import Boxes, Ints, any_overlap, volume
from tilewright.replay.check_kinds import Flags
from tilewright.replay.check_time import slot_times


@quickly_made
class Life(NamedTuple):
    """A root's cycles [begin, end) and bytes [address, top) in its space."""

    begin: int
    end: int
    address: int
    top: int
    buffer: int


def memory_problems(timetable: Timetable, accesses: Accesses) -> Iterator[Problem]:
    """Buffers outside their space, misaligned, in reserved ranges, or on top of each other."""
    program = timetable.program
    begins, ends = lives(timetable, accesses)
    addresses = np.array(timetable.addresses, dtype=np.int64)
    tops = addresses + np.array([b.size_bytes for b in program.buffers], dtype=np.int64)
    numbers = {name: number for number, name in enumerate(program.space)}
    spaces = np.array([numbers[b.space] for b in program.buffers], dtype=np.int64)
    clashing: list[tuple[Space, list[Life]]] = []
    misplaced: list[tuple[Space, Life]] = []
    for space in program.spaces:
        if space.kind not in ("scratchpad", "external"):
            continue
        rows = np.flatnonzero((spaces == numbers[space.name]) & (ends >= 0))
        corners = np.array([[begins[rows], addresses[rows]], [ends[rows], tops[rows]]])
        is_wrong = _is_misplaced(space, *corners[:, 1])
        misplaced += [(space, life) for life in _lives_at(rows[is_wrong], corners[:, :, is_wrong])]
        # What has no bytes touches nobody's.
        takes_room = corners[0, 1] < corners[1, 1]
        if any_overlap(corners[:, :, takes_room]):
            clashing.append((space, sorted(_lives_at(rows, corners))))
    for space, life in sorted(misplaced, key=lambda found: found[1].buffer):
        yield from _place_problems(life, program.buffers[life.buffer], space)
    yield from _view_addresses(timetable, accesses)
    for space, alive in clashing:
        yield from _clashes(timetable, space, alive)


def _lives_at(rows: Ints, corners: Boxes) -> list[Life]:
    (begins, addresses), (ends, tops) = corners.tolist()
    return list(map(Life, begins, ends, addresses, tops, rows.tolist()))


def lives(timetable: Timetable, accesses: Accesses) -> tuple[Ints, Ints]:
    """By buffer when it begins to live, and when it ends; before 0 if nobody touches it, or a view.

    A root lives from the start of its first writer (0 if given, or if nobody writes it) to the end
    of the last task that touches it or a view of it (the end of the timetable if it is a result).
    """
    program = timetable.program
    never = np.iinfo(np.int64).max
    starts, stops = slot_times(timetable)
    roots = accesses.roots
    touched = roots[accesses.buffer]
    begins = np.full(len(roots), never, dtype=np.int64)
    is_write = accesses.is_write
    np.minimum.at(begins, touched[is_write], starts[accesses.task[is_write]])
    begins[roots[list(program.given)]] = 0
    begins[begins == never] = 0
    ends = np.full(len(roots), -1, dtype=np.int64)
    np.maximum.at(ends, touched, np.maximum(0, stops[accesses.task]))
    ends[roots[list(program.results)]] = timetable.cycles
    return begins, ends


def _is_misplaced(space: Space, addresses: Ints, tops: Ints) -> Flags:
    is_wrong: Flags = (addresses < 0) | (tops > space.size_bytes)
    is_wrong |= addresses % space.alignment_bytes != 0
    for begin, end in space.reserved:
        is_wrong |= (addresses < end) & (begin < tops)
    return is_wrong


def _place_problems(life: Life, buffer: Buffer, space: Space) -> Iterator[Problem]:
    is_outside = life.address < 0 or life.top > space.size_bytes
    is_askew = life.address % space.alignment_bytes != 0
    touched = [ends for ends in space.reserved if life.address < ends[1] and ends[0] < life.top]
    who = f"buffer {buffer.name} at bytes {life.address} to {life.top} of {space.name}"
    if is_outside:
        over = max(-life.address, life.top - space.size_bytes)
        yield Problem(message=f"{who} lies {over} bytes outside its {space.size_bytes} bytes")
    if is_askew:
        yield Problem(message=f"{who} is not aligned to {space.alignment_bytes} bytes")
    for begin, end in touched:
        yield Problem(message=f"{who} touches the reserved bytes {begin} to {end}")


def _view_addresses(timetable: Timetable, accesses: Accesses) -> Iterator[Problem]:
    """A view has the address of its first element, where that is a whole number of bytes."""
    program = timetable.program
    for number in np.flatnonzero(accesses.roots != np.arange(len(accesses.roots))).tolist():
        buffer, address = program.buffers[number], timetable.addresses[number]
        space = program.space[buffer.space]
        if buffer.view is None or space.kind in ("source", "sink"):
            continue
        root = program.buffers[buffer.view.buffer]
        at = timetable.addresses[buffer.view.buffer]
        if buffer.view.origin is not None:
            elements = volume(root.box)
            if not elements or root.size_bytes % elements:
                continue
            inside = 0
            for here, (begin, end) in zip(buffer.view.origin, root.box, strict=True):
                inside = inside * (end - begin) + here - begin
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
    addresses: list[int] = []
    alive: dict[int, Life] = {}
    deaths = sorted(lives, key=lambda life: (life.end, life.buffer))
    dead = 0
    for life in lives:
        while deaths[dead].end <= life.begin:
            gone = deaths[dead]
            dead += 1
            if alive.get(gone.address) is gone:
                del alive[gone.address], addresses[bisect_left(addresses, gone.address)]
        if life.address >= life.top:
            continue
        at = bisect_left(addresses, life.address)
        near = [alive[address] for address in addresses[max(0, at - 1) : at + 1]]
        clashing = [o for o in near if o.address < life.top and life.address < o.top]
        for other in clashing:
            yield _clash(timetable, space, other, life)
        if not clashing:
            addresses.insert(at, life.address)
            alive[life.address] = life


def _clash(timetable: Timetable, space: Space, one: Life, other: Life) -> Problem:
    names = [timetable.program.buffers[life.buffer].name for life in (one, other)]
    first, last = max(one.address, other.address), min(one.top, other.top)
    return Problem(
        message=f"buffers {names[0]} and {names[1]} lie on the same bytes of {space.name}: "
        f"{first} to {last}, at cycles {max(one.begin, other.begin)} to {min(one.end, other.end)}"
    )

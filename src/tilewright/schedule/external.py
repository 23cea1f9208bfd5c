"""Addresses outside the scratchpads: a linear scan over the lives of buffers with known times."""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from tilewright.errors import InfeasibleError, Problem
from tilewright.placement.free_list import FreeList
from tilewright.program.model import Program, Slot
from tilewright.schedule.spans import spans_of
from tilewright.units import format_bytes

_NAMED = 5
"""So many buffers are named, the largest first."""


def external_addresses(program: Program, slots: list[Slot]) -> dict[int, int]:
    """An address for every root in an external memory; raises InfeasibleError if one is too small.

    What is given and what is a result lie there the whole time; all else from the start of the
    first task that touches it to the end of the last.
    """
    lives = _lives(program, slots)
    addresses: dict[int, int] = {}
    for space in program.spaces:
        if space.kind != "external":
            continue
        here = [root for root in lives if program.buffers[root].space == space.name]
        here.sort(key=lambda root: (lives[root], root))
        free_list = FreeList(space.size_bytes, space.reserved)
        found = _scan(program, here, lives, free_list)
        if len(found) < len(here):
            unlimited = FreeList(1 << 62, space.reserved)
            _scan(program, here, lives, unlimited)
            largest_gap_bytes = free_list.largest_gap_bytes
            raise _full(program, here[len(found)], largest_gap_bytes, unlimited.high_water_bytes)
        addresses |= found
    return addresses


def too_full(program: Program) -> InfeasibleError | None:
    """The error if what lies in an external memory the whole time is more than it holds."""
    problems = []
    always = dict.fromkeys(program.root(b) for b in (*program.given, *program.results))
    for space in program.spaces:
        here = [root for root in always if program.buffers[root].space == space.name]
        if space.kind != "external" or not here:
            continue
        everything = FreeList(1 << 62, space.reserved)
        _scan(program, here, dict.fromkeys(here, (0, 1)), everything)
        short = everything.high_water_bytes - space.size_bytes
        if short > 0:
            problems.append(_too_small(program, here, everything.high_water_bytes))
    return InfeasibleError(*problems) if problems else None


def _scan(
    program: Program,
    roots: Sequence[int],
    lives: Mapping[int, tuple[int, int]],
    free_list: FreeList,
) -> dict[int, int]:
    """Addresses of roots in order of their lives' beginnings, up to the first without room."""
    addresses: dict[int, int] = {}
    ends: list[tuple[int, int]] = []
    for root in roots:
        buffer = program.buffers[root]
        begin, end = lives[root]
        while ends and ends[0][0] <= begin:
            left = heappop(ends)[1]
            size_bytes = max(1, program.buffers[left].size_bytes)
            free_list.free(addresses[left], addresses[left] + size_bytes)
        alignment_bytes = program.space[buffer.space].alignment_bytes
        address = free_list.allocate(max(1, buffer.size_bytes), alignment_bytes)
        if address is None:
            break
        addresses[root] = address
        heappush(ends, (end, root))
    return addresses


def _lives(program: Program, slots: list[Slot]) -> dict[int, tuple[int, int]]:
    """By root in an external memory: when it is in use."""
    outside = {space.name for space in program.spaces if space.kind == "external"}
    roots = [
        program.root(number) if buffer.space in outside else -1
        for number, buffer in enumerate(program.buffers)
    ]
    last = max((slot.end_cycle for slot in slots), default=0) + 1
    always = {roots[buffer] for buffer in (*program.given, *program.results)} | {-1}
    passing = [-1 if root in always else root for root in roots]
    # Mostly there is nothing else outside, and no task has to be looked at.
    lives = spans_of(program, slots, passing) if max(passing, default=-1) >= 0 else {}
    return lives | dict.fromkeys(sorted(always - {-1}), (0, last))


def _full(
    program: Program, root: int, largest_gap_bytes: int, enough_bytes: int
) -> InfeasibleError:
    buffer = program.buffers[root]
    space = program.space[buffer.space]
    return InfeasibleError(
        Problem(
            message=(
                f"memory '{space.name}' of {format_bytes(space.size_bytes)} is full: "
                f"'{buffer.name}' needs {format_bytes(buffer.size_bytes)}, and the largest free "
                f"range has {format_bytes(largest_gap_bytes)}"
            ),
            hint=f"'{space.name}' of {enough_bytes:,} B would do",
        )
    )


def _too_small(program: Program, roots: Sequence[int], enough_bytes: int) -> Problem:
    space = program.space[program.buffers[roots[0]].space]
    largest = sorted(roots, key=lambda root: (-program.buffers[root].size_bytes, root))
    named = ", ".join(
        f"{program.buffers[root].name} {format_bytes(program.buffers[root].size_bytes)}"
        for root in largest[:_NAMED]
    )
    more = f", {len(roots) - _NAMED} more" if len(roots) > _NAMED else ""
    return Problem(
        message=(
            f"memory '{space.name}' of {space.size_bytes:,} B cannot hold the constants, inputs "
            f"and outputs that lie in it: {enough_bytes - space.size_bytes:,} B short "
            f"({named}{more})"
        ),
        hint=f"'{space.name}' of {enough_bytes:,} B would do, or fewer bits for each weight",
    )

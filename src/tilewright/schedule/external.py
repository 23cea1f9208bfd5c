"""Addresses outside the scratchpads: a linear scan over the lives of buffers with known times."""

from heapq import heappop, heappush

from tilewright.errors import InfeasibleError, Problem
from tilewright.placement.free_list import FreeList
from tilewright.program.model import Program, Slot
from tilewright.units import format_bytes


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
        free_list = FreeList(space.size_bytes, space.reserved)
        ends: list[tuple[int, int]] = []
        here = [root for root in lives if program.buffers[root].space == space.name]
        for root in sorted(here, key=lambda root: (lives[root], root)):
            begin, end = lives[root]
            while ends and ends[0][0] <= begin:
                left = heappop(ends)[1]
                size_bytes = max(1, program.buffers[left].size_bytes)
                free_list.free(addresses[left], addresses[left] + size_bytes)
            size_bytes = max(1, program.buffers[root].size_bytes)
            address = free_list.allocate(size_bytes, space.alignment_bytes)
            if address is None:
                raise _full(program, space.name, root, free_list)
            addresses[root] = address
            heappush(ends, (end, root))
    return addresses


def _lives(program: Program, slots: list[Slot]) -> dict[int, tuple[int, int]]:
    last = max((slot.end_cycle for slot in slots), default=0) + 1
    lives: dict[int, tuple[int, int]] = {}
    for buffer in (*program.given, *program.results):
        lives[program.root(buffer)] = (0, last)
    for task, slot in zip(program.tasks, slots, strict=True):
        for access in (*task.reads, *task.writes):
            root = program.root(access.buffer)
            begin, end = lives.get(root, (slot.start_cycle, slot.end_cycle))
            lives[root] = (min(begin, slot.start_cycle), max(end, slot.end_cycle))
    return lives


def _full(program: Program, name: str, root: int, free_list: FreeList) -> InfeasibleError:
    buffer = program.buffers[root]
    return InfeasibleError(
        Problem(
            message=(
                f"memory '{name}' of {format_bytes(program.space[name].size_bytes)} is full: "
                f"'{buffer.name}' needs {format_bytes(buffer.size_bytes)}, and the largest free "
                f"range has {format_bytes(free_list.largest_gap_bytes)}"
            ),
            hint=f"make '{name}' larger",
        )
    )

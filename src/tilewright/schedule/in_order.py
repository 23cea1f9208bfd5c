"""Program order: addresses first, from lives counted in tasks, then times that keep to them.

Where the simulations find no room, for want of a gap that is long enough, this still does if all
that is alive at any step of the program fits: whoever gets an address waits for all who had it.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate

from tilewright.placement.pack import PackOptions, pack
from tilewright.placement.problem import Buffer, PlacementProblem
from tilewright.program.model import Program, Space, Timetable
from tilewright.schedule.external import external_addresses
from tilewright.schedule.order_times import Stays, slots_in_order
from tilewright.schedule.result import addresses_of
from tilewright.schedule.tables import Tables

Life = tuple[int, int]

NEARLY_PERCENT = 101
"""Of what is alive at once: a placement that takes no more is as good as the tightest."""

PACKED_EXACTLY = 500
"""Buffers for which an exact search looks for a tight placement; it seldom ends with more."""


def in_order(tables: Tables, packing_nodes: int, *, tight: bool = False) -> Timetable | None:
    """The timetable of a program in its own order; None if not everything gets an address.

    Wherever there is room is good enough, unless addresses are to be `tight`.
    """
    program = tables.program
    lives = _lives(tables)
    addresses: dict[int, int] = {}
    for space in program.spaces:
        if space.kind != "scratchpad":
            continue
        here = {n: life for n, life in lives.items() if program.buffers[n].space == space.name}
        most_live = _most_live(tables, here)
        if most_live > tables.room_bytes[tables.scratchpads.index(space.name)]:
            return None
        enough = most_live * NEARLY_PERCENT // 100 if tight else space.size_bytes
        found = _packed(space, program, here, (enough, packing_nodes))
        if found is None:
            return None
        addresses |= found
    slots = slots_in_order(tables, _stays(tables, lives, addresses))
    known = external_addresses(program, slots) | addresses
    return Timetable(program=program, slots=tuple(slots), addresses=addresses_of(program, known))


def _lives(tables: Tables) -> dict[int, Life]:
    """By root in a scratchpad: the first task that touches it, and the one behind the last."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for task, roots in enumerate(tables.touched):
        for root in roots:
            if root not in last:
                first[root] = task
            last[root] = task
    return {root: (task, last[root] + 1) for root, task in first.items()}


def _most_live(tables: Tables, lives: Mapping[int, Life]) -> int:
    """The most bytes that are alive at once."""
    changes = [0] * (len(tables.engine) + 1)
    for root, (first, last) in lives.items():
        changes[first] += tables.size_bytes[root]
        changes[last] -= tables.size_bytes[root]
    return max(accumulate(changes))


def _packed(
    where: Space, program: Program, lives: Mapping[int, Life], wanted: tuple[int, int]
) -> dict[int, int] | None:
    """Addresses that fit, with a peak that is enough or as many nodes of an exact search."""
    enough_bytes, nodes = wanted
    end = max((last for _, last in lives.values()), default=1)
    alignment_bytes, known = where.alignment_bytes, program.buffers
    buffers = [
        Buffer(
            name=str(number),
            lives=(life,),
            size_bytes=known[number].size_bytes,
            alignment_bytes=alignment_bytes,
        )
        for number, life in lives.items()
    ]
    reserved = [
        Buffer(name=f"reserved at {low}", lives=((0, end),), size_bytes=high - low, address=low)
        for low, high in where.reserved
    ]
    capacity = min(enough_bytes, where.size_bytes)
    problem = PlacementProblem(buffers=(*buffers, *reserved), capacity_bytes=capacity)
    options = PackOptions(node_budget=nodes, above_capacity=False)
    if enough_bytes < where.size_bytes:
        options = replace(options, largest_exact_part=PACKED_EXACTLY, settles_largest=True)
    packing = pack(problem, options)
    if packing.peak_bytes > where.size_bytes:
        return None
    return dict(zip(lives, packing.addresses, strict=False))


def _stays(tables: Tables, lives: Mapping[int, Life], addresses: Mapping[int, int]) -> Stays:
    """Where roots lie; whole granules of the alignment are theirs."""
    nowhere = [-1] * len(tables.root)
    stays = Stays(first=nowhere, last=nowhere.copy(), begin=nowhere.copy(), end=nowhere.copy())
    for root, (first, last) in lives.items():
        alignment = tables.alignment[tables.scratchpad[root]]
        end = addresses[root] + max(1, tables.size_bytes[root])
        stays.first[root] = first
        stays.last[root] = last - 1
        stays.begin[root] = addresses[root] // alignment * alignment
        stays.end[root] = -(-end // alignment) * alignment
    return stays

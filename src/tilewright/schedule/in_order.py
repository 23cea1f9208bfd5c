"""Program order: addresses first, from lives counted in tasks, then times that keep to them.

Where the simulations find no room, for want of a gap that is long enough, this still does if all
that is alive at any step of the program fits: whoever gets an address waits for all who had it.
"""

from collections.abc import Mapping
from itertools import accumulate

import numpy as np

from tilewright.placement.pack import PackOptions, pack
from tilewright.placement.problem import Buffer, PlacementProblem
from tilewright.program.model import Program, Slot, Timetable
from tilewright.schedule.external import external_addresses
from tilewright.schedule.result import addresses_of
from tilewright.schedule.tables import Tables

Life = tuple[int, int]


def in_order(tables: Tables, packing_nodes: int) -> Timetable | None:
    """The timetable of a program in its own order; None if not everything gets an address."""
    program = tables.program
    lives = _lives(tables)
    addresses: dict[int, int] = {}
    for space in program.spaces:
        if space.kind != "scratchpad":
            continue
        here = {n: life for n, life in lives.items() if program.buffers[n].space == space.name}
        if _most_live(tables, here) > tables.room_bytes[tables.scratchpads.index(space.name)]:
            return None
        found = _packed(program, space.name, here, packing_nodes)
        if found is None:
            return None
        addresses |= found
    slots = _Clock(tables, lives, addresses).slots()
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
    program: Program, space: str, lives: Mapping[int, Life], nodes: int
) -> dict[int, int] | None:
    where = program.space[space]
    end = max((last for _, last in lives.values()), default=1)
    buffers = [
        Buffer(
            name=str(number),
            lives=(life,),
            size_bytes=program.buffers[number].size_bytes,
            alignment_bytes=where.alignment_bytes,
        )
        for number, life in lives.items()
    ]
    reserved = [
        Buffer(name=f"reserved at {low}", lives=((0, end),), size_bytes=high - low, address=low)
        for low, high in where.reserved
    ]
    problem = PlacementProblem(buffers=(*buffers, *reserved), capacity_bytes=where.size_bytes)
    packing = pack(problem, PackOptions(node_budget=nodes, above_capacity=False))
    if packing.peak_bytes > where.size_bytes:
        return None
    return dict(zip(lives, packing.addresses, strict=False))


class _Clock:
    """Starts every task as soon as its engine, its ports, its inputs and its addresses are free."""

    def __init__(
        self, tables: Tables, lives: Mapping[int, Life], addresses: Mapping[int, int]
    ) -> None:
        self.tables = tables
        self.lives = lives
        self.places = {root: self._granules(root, address) for root, address in addresses.items()}
        self.free = [
            np.zeros(-(-tables.program.space[name].size_bytes // alignment), dtype=np.int64)
            for name, alignment in zip(tables.scratchpads, tables.alignment, strict=True)
        ]
        self.instances = [[0] * count for count in tables.instances]
        self.done = dict.fromkeys(lives, 0)

    def _granules(self, root: int, address: int) -> slice:
        alignment = self.tables.alignment[self.tables.scratchpad[root]]
        size = max(1, self.tables.size_bytes[root])
        return slice(address // alignment, -(-(address + size) // alignment))

    def slots(self) -> list[Slot]:
        """The times of all tasks of the program."""
        tables = self.tables
        ends: list[int] = []
        slots: list[Slot] = []
        for task in range(len(tables.program.tasks)):
            start = self._addresses_free(task)
            for before in tables.after[task]:
                if ends[before] > start:
                    start = ends[before]
            ports = tables.ports[task]
            if ports:
                start = max(start, self._lanes_free(ports) - tables.setup[task])
            engine = self.instances[tables.engine[task]]
            instance = engine.index(min(engine))
            start = max(start, engine[instance])
            end = start + tables.cycles[task]
            engine[instance] = end
            for port in ports:
                times = self.instances[port]
                times[times.index(min(times))] = end
            self._leave(task, end)
            ends.append(end)
            slots.append(Slot(start_cycle=start, end_cycle=end, instance=instance))
        return slots

    def _lanes_free(self, ports: tuple[int, ...]) -> int:
        """When every port has a free lane for each time that it is named."""
        free = 0
        for port in ports:
            times = self.instances[port]
            lane = times[0] if len(times) == 1 else sorted(times)[ports.count(port) - 1]
            if lane > free:
                free = lane
        return free

    def _addresses_free(self, task: int) -> int:
        """When whoever had the addresses before is done with them."""
        free = 0
        for root in self.tables.touched[task]:
            if self.lives[root][0] == task:
                pad = self.free[self.tables.scratchpad[root]]
                free = max(free, int(pad[self.places[root]].max(initial=0)))
        return free

    def _leave(self, task: int, end: int) -> None:
        done = self.done
        for root in self.tables.touched[task]:
            if end > done[root]:
                done[root] = end
            if self.lives[root][1] == task + 1:
                # It came when all before it at this place were done.
                self.free[self.tables.scratchpad[root]][self.places[root]] = done[root]

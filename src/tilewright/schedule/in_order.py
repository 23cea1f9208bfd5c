"""Program order: addresses first, from lives counted in tasks, then times that keep to them.

Where the simulations find no room, for want of a gap that is long enough, this still does if all
that is alive at any step of the program fits: whoever gets an address waits for all who had it.
"""

from collections.abc import Mapping

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
        found = _packed(program, space.name, here, packing_nodes)
        if found is None:
            return None
        addresses |= found
    slots = _Clock(tables, lives, addresses).slots()
    known = external_addresses(program, slots) | addresses
    return Timetable(program=program, slots=tuple(slots), addresses=addresses_of(program, known))


def _lives(tables: Tables) -> dict[int, Life]:
    """By root in a scratchpad: the first task that touches it, and the one behind the last."""
    lives: dict[int, Life] = {}
    for task, roots in enumerate(tables.touched):
        for root in roots:
            lives[root] = (lives.get(root, (task, 0))[0], task + 1)
    return lives


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
        tables, slots = self.tables, list[Slot]()
        for task in range(len(tables.program.tasks)):
            start = max((slots[before].end_cycle for before in tables.after[task]), default=0)
            start = max(start, self._addresses_free(task))
            lanes = [self.instances[port] for port in dict.fromkeys(tables.ports[task])]
            wanted = [tables.ports[task].count(port) for port in dict.fromkeys(tables.ports[task])]
            for times, count in zip(lanes, wanted, strict=True):
                start = max(start, sorted(times)[count - 1] - tables.setup[task])
            engine = self.instances[tables.engine[task]]
            instance = engine.index(min(engine))
            start = max(start, engine[instance])
            end = start + tables.cycles[task]
            engine[instance] = end
            for times, count in zip(lanes, wanted, strict=True):
                for _ in range(count):
                    times[times.index(min(times))] = end
            self._leave(task, end)
            slots.append(Slot(start_cycle=start, end_cycle=end, instance=instance))
        return slots

    def _addresses_free(self, task: int) -> int:
        """When whoever had the addresses before is done with them."""
        free = 0
        for root in self.tables.touched[task]:
            if self.lives[root][0] == task:
                pad = self.free[self.tables.scratchpad[root]]
                free = max(free, int(pad[self.places[root]].max(initial=0)))
        return free

    def _leave(self, task: int, end: int) -> None:
        for root in self.tables.touched[task]:
            self.done[root] = max(self.done[root], end)
            if self.lives[root][1] == task + 1:
                pad = self.free[self.tables.scratchpad[root]]
                place = self.places[root]
                pad[place] = np.maximum(pad[place], self.done[root])

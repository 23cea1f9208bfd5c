"""From loop orders to costs, in one go; and the cost of one mapping in every detail."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, fsum

import numpy as np

from tilewright.machine.model import Direction
from tilewright.mapping.allocate import Allocation, allocate
from tilewright.mapping.attach import Spatial
from tilewright.mapping.batch import Bools, Floats, Orders, orders_of
from tilewright.mapping.cost import Costs, Wiring, costs, wiring
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.imc import cycles_per_op, imc_energy
from tilewright.mapping.kernel import (
    Description,
    allocated_costs,
    cost_details,
    describe,
    greedy_costs,
    with_ports,
)
from tilewright.mapping.movement import Movement, instances_of, movement
from tilewright.mapping.nest import LoopNest
from tilewright.once import once
from tilewright.records import quickly_made


@dataclass(frozen=True)
class Setup:
    """What is fixed while loop orders are tried: the nest, the core's memories, the unrolling."""

    nest: LoopNest
    hierarchy: Hierarchy
    spatial: Spatial

    @once
    def mac_pj(self) -> float:
        """Energy of the multiplications themselves."""
        array = self.hierarchy.array
        if array.in_memory is None:
            return array.mac_pj * self.nest.points
        return imc_energy(self.nest, array, self.spatial.unrolling).total_pj

    @once
    def op_cycles(self) -> float:
        """Cycles of one multiplication: more than 1 where inputs enter bit by bit."""
        return cycles_per_op(self.hierarchy.array)

    @once
    def wiring(self) -> Wiring:
        """Links and ports."""
        return wiring(self.nest.letters, self.hierarchy)

    @once
    def instances(self) -> tuple[int, ...]:
        """Per link, the copies of its memory that are at work."""
        return instances_of(self.wiring.links, self.spatial)

    @once
    def description(self) -> Description | None:
        """All of it in the terms of the compiled kernel; None where NumPy serves."""
        return describe(
            self.nest,
            self.hierarchy,
            self.spatial,
            instances=self.instances,
            op_cycles=self.op_cycles,
        )


@dataclass(frozen=True, eq=False)
class Batch:
    """Orders with their allocation and costs; candidates that do not fit have infinite cost."""

    setup: Setup
    orders: Orders
    allocation: Allocation
    compiled: Floats | None
    """Cycles and energy of the memories by the kernel, (2, N); None where NumPy serves."""

    @once
    def moves(self) -> Movement:
        """What moves, by NumPy."""
        setup = self.setup
        nest, hierarchy, spatial = setup.nest, setup.hierarchy, setup.spatial
        return movement(nest, hierarchy, spatial, self.orders, self.allocation)

    @once
    def costs(self) -> Costs:
        """All parts of the costs, by NumPy."""
        setup, drain = self.setup, self.setup.spatial.drain_cycles
        nest, hierarchy = setup.nest, setup.hierarchy
        return costs(nest, hierarchy, self.moves, drain_cycles=drain, op_cycles=setup.op_cycles)

    @once
    def cycles(self) -> Floats:
        """Cycles of every candidate."""
        cycles: Floats
        if self.compiled is not None:
            cycles = self.compiled[0]
        else:
            good = self.allocation.fits & self.costs.possible
            cycles = np.where(good, self.costs.cycles, np.inf)
        return cycles

    @once
    def energy_pj(self) -> Floats:
        """Energy of every candidate."""
        energy: Floats
        if self.compiled is not None:
            energy = self.compiled[1] + self.setup.mac_pj
        else:
            energy = np.where(self.fits, self.costs.memory_pj + self.setup.mac_pj, np.inf)
        return energy

    @property
    def fits(self) -> Bools:
        """Which candidates are possible."""
        found: Bools = np.isfinite(self.cycles)
        return found


@quickly_made
@dataclass(frozen=True)
class Loops:
    """A temporal mapping: loops innermost first, and per operand where each level ends."""

    order: tuple[tuple[str, int], ...]
    ends: tuple[tuple[str, tuple[int, ...]], ...]


@quickly_made
@dataclass(frozen=True, kw_only=True)
class LinkCost:
    """What one operand does at one memory in one direction."""

    letter: str
    memory: str
    level: int
    direction: Direction
    port: str
    accesses: int
    energy_pj: float
    bits: int
    """All bits moved, over all instances of the memory."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Everything that is known about one mapping. Cycles are of the machine's clock."""

    macs: int
    cycles: float
    ideal_cycles: int
    """With every unit of the array busy all the time."""
    compute_cycles: float
    stall_cycles: float
    onload_cycles: float
    offload_cycles: float
    drain_cycles: int
    energy_pj: float
    mac_pj: float
    links: tuple[LinkCost, ...]
    port_stalls: tuple[tuple[str, str, float], ...]
    """Memory, port and the cycles by which it holds the array up."""
    fill: tuple[tuple[str, str, float], ...]
    """Operand, memory and the share of the memory that it takes."""

    @property
    def utilisation(self) -> float:
        """Busy units over all units and cycles."""
        return self.ideal_cycles / self.cycles


def evaluate(setup: Setup, orders: Orders, *, even: bool = False) -> Batch:
    """Allocate and cost a batch of orders."""
    description = setup.description
    found = None if description is None else greedy_costs(description, orders, even=even)
    if found is not None:
        return Batch(setup, orders, *found)
    nest, hierarchy, spatial = setup.nest, setup.hierarchy, setup.spatial
    allocation = allocate(nest, hierarchy, spatial, orders, even=even)
    return Batch(setup, orders, allocation, None)


def evaluate_allocated(setup: Setup, orders: Orders, allocation: Allocation) -> Batch:
    """Cost a batch of orders whose levels are cut already."""
    description = setup.description
    found = None if description is None else allocated_costs(description, orders, allocation)
    return Batch(setup, orders, allocation, found)


def evaluate_loops(setup: Setup, loops: Loops) -> Batch:
    """A batch of one mapping."""
    return evaluate_allocated(setup, *_only(loops))


def _only(loops: Loops) -> tuple[Orders, Allocation]:
    ends = {letter: np.array(cuts, dtype=np.int64)[:, None] for letter, cuts in loops.ends}
    return orders_of([loops.order]), Allocation(ends, np.ones(1, dtype=np.bool_))


def cycles_with_ports(
    setup: Setup, loops: Loops, hierarchies: Sequence[Hierarchy]
) -> Iterator[float]:
    """Cycles of one mapping on memories that differ in nothing but how wide their ports are."""
    orders, allocation = _only(loops)
    description = setup.description
    for hierarchy in hierarchies:
        compiled = None
        if description is not None:
            other = with_ports(description, setup.nest.letters, hierarchy)
            compiled = allocated_costs(other, orders, allocation)
        batch = Batch(Setup(setup.nest, hierarchy, setup.spatial), orders, allocation, compiled)
        yield float(batch.cycles[0])


def loops_of(batch: Batch, column: int) -> Loops:
    """One candidate of a batch."""
    orders = batch.orders
    return Loops(
        order=tuple(
            (orders.names[loop], int(size))
            for loop, size in zip(orders.loops[:, column], orders.sizes[:, column], strict=True)
        ),
        ends=tuple(
            (letter, tuple(int(end) for end in ends[:, column]))
            for letter, ends in batch.allocation.ends.items()
        ),
    )


@dataclass(frozen=True, eq=False)
class _Details:
    """The cost of one candidate, part by part; links and port groups are those of the setup."""

    cycles: Sequence[float]
    """Computing, stalls, loading, storing."""
    links: Sequence[Sequence[float]]
    """Accesses, pJ, elements a period, periods, and bits per element."""
    port_stalls: Sequence[float]
    held_bits: Sequence[float]
    """Per operand and level."""


def _details(batch: Batch, column: int) -> _Details:
    description = batch.setup.description
    if batch.compiled is None or description is None:
        return _numpy_details(batch, column)
    return _compiled_details(
        batch.setup, cost_details(description, batch.orders, batch.allocation, column)
    )


def _compiled_details(setup: Setup, figures: Sequence[float]) -> _Details:
    behind = 4 + 5 * len(setup.wiring.links)
    held = behind + len(setup.wiring.groups)
    links = [figures[i : i + 5] for i in range(4, behind, 5)]
    return _Details(figures[:4], links, figures[behind:held], figures[held:])


def _numpy_details(batch: Batch, column: int) -> _Details:
    cost, moves = batch.costs, batch.moves
    parts = (cost.compute_cycles, cost.stall_cycles, cost.onload_cycles, cost.offload_cycles)
    figures = (cost.accesses, cost.link_pj, moves.amount, moves.periods, moves.bits)
    return _Details(
        cycles=[float(part[column]) for part in parts],
        links=np.array([part[:, column] for part in figures]).T.tolist(),
        port_stalls=cost.port_stalls[:, column].tolist(),
        held_bits=[
            float(bits)
            for held in moves.held.values()
            for bits in held.elements[:, column] * held.bits[:, column]
        ],
    )


def cost_of(batch: Batch, column: int = 0) -> Cost:
    """The cost of one candidate, part by part."""
    return _cost(batch.setup, _details(batch, column))


def cost_from(setup: Setup, figures: Sequence[float]) -> Cost:
    """The cost of a mapping of which the kernel told everything: see `cost_details`."""
    return _cost(setup, _compiled_details(setup, figures))


def _cost(setup: Setup, details: _Details) -> Cost:
    hierarchy, drain_cycles = setup.hierarchy, setup.spatial.drain_cycles
    links = tuple(_link_costs(setup, details))
    compute, stall, onload, offload = details.cycles
    return Cost(
        macs=setup.nest.points,
        cycles=compute + stall + onload + (offload + drain_cycles),
        ideal_cycles=ceil(ceil(setup.nest.points / hierarchy.array.units) * setup.op_cycles),
        compute_cycles=compute,
        stall_cycles=stall,
        onload_cycles=onload,
        offload_cycles=offload,
        drain_cycles=drain_cycles,
        energy_pj=fsum([setup.mac_pj, *(link.energy_pj for link in links)]),
        mac_pj=setup.mac_pj,
        links=links,
        port_stalls=tuple(
            (group.memory, group.port, stalled)
            for group, stalled in zip(setup.wiring.groups, details.port_stalls, strict=True)
        ),
        fill=tuple(_fills(setup, details)),
    )


def _fills(setup: Setup, details: _Details) -> Iterator[tuple[str, str, float]]:
    held = iter(details.held_bits)
    for operand in setup.nest.operands:
        for index in setup.hierarchy.chains[operand.letter]:
            memory, _ = setup.hierarchy.levels[index]
            yield operand.letter, memory.name, next(held) / memory.size_bits


def _link_costs(setup: Setup, details: _Details) -> Iterator[LinkCost]:
    rows = zip(setup.wiring.links, setup.instances, details.links, strict=True)
    for link, instances, (accesses, energy_pj, elements, periods, bits) in rows:
        if accesses == 0:
            continue
        yield LinkCost(
            letter=link.letter,
            memory=link.memory.name,
            level=link.level,
            direction=link.direction,
            port=link.port.name if link.port else "",
            accesses=int(accesses),
            energy_pj=energy_pj,
            bits=round(elements * periods * bits * instances),
        )

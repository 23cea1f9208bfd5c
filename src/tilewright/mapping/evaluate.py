"""From loop orders to costs, in one go; and the cost of one mapping in every detail."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, fsum

import numpy as np

from tilewright.machine.model import Direction
from tilewright.mapping.allocate import Allocation, allocate
from tilewright.mapping.attach import Spatial
from tilewright.mapping.batch import Bools, Floats, Orders, orders_of
from tilewright.mapping.cost import Costs, costs, port_groups
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.imc import cycles_per_op, imc_energy
from tilewright.mapping.movement import Movement, movement
from tilewright.mapping.nest import LoopNest


@dataclass(frozen=True)
class Setup:
    """What is fixed while loop orders are tried: the nest, the core's memories, the unrolling."""

    nest: LoopNest
    hierarchy: Hierarchy
    spatial: Spatial

    @cached_property
    def mac_pj(self) -> float:
        """Energy of the multiplications themselves."""
        array = self.hierarchy.array
        if array.in_memory is None:
            return array.mac_pj * self.nest.points
        return imc_energy(self.nest, array, self.spatial.unrolling).total_pj

    @cached_property
    def op_cycles(self) -> float:
        """Cycles of one multiplication: more than 1 where inputs enter bit by bit."""
        return cycles_per_op(self.hierarchy.array)


@dataclass(frozen=True, eq=False)
class Batch:
    """Orders with their allocation and costs; candidates that do not fit have infinite cost."""

    setup: Setup
    orders: Orders
    allocation: Allocation
    moves: Movement
    costs: Costs
    cycles: Floats
    energy_pj: Floats

    @property
    def fits(self) -> Bools:
        """Which candidates are possible."""
        found: Bools = np.isfinite(self.cycles)
        return found


@dataclass(frozen=True)
class Loops:
    """A temporal mapping: loops innermost first, and per operand where each level ends."""

    order: tuple[tuple[str, int], ...]
    ends: tuple[tuple[str, tuple[int, ...]], ...]


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
    nest, hierarchy, spatial = setup.nest, setup.hierarchy, setup.spatial
    return evaluate_allocated(setup, orders, allocate(nest, hierarchy, spatial, orders, even=even))


def evaluate_allocated(setup: Setup, orders: Orders, allocation: Allocation) -> Batch:
    """Cost a batch of orders whose levels are cut already."""
    nest, hierarchy, spatial = setup.nest, setup.hierarchy, setup.spatial
    moves = movement(nest, hierarchy, spatial, orders, allocation)
    cost = costs(
        nest, hierarchy, moves, drain_cycles=spatial.drain_cycles, op_cycles=setup.op_cycles
    )
    good = allocation.fits & cost.possible
    return Batch(
        setup,
        orders,
        allocation,
        moves,
        cost,
        cycles=np.where(good, cost.cycles, np.inf),
        energy_pj=np.where(good, cost.memory_pj + setup.mac_pj, np.inf),
    )


def evaluate_loops(setup: Setup, loops: Loops) -> Batch:
    """A batch of one mapping."""
    ends = {letter: np.array(cuts, dtype=np.int64)[:, None] for letter, cuts in loops.ends}
    return evaluate_allocated(
        setup, orders_of([loops.order]), Allocation(ends, np.ones(1, dtype=np.bool_))
    )


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


def cost_of(batch: Batch, column: int = 0) -> Cost:
    """The cost of one candidate, part by part."""
    setup, cost = batch.setup, batch.costs
    hierarchy = setup.hierarchy
    links = tuple(_link_costs(batch, column))
    groups = port_groups(batch.moves.links, hierarchy)
    stalls = cost.port_stalls[:, column]
    return Cost(
        macs=setup.nest.points,
        cycles=float(cost.cycles[column]),
        ideal_cycles=ceil(ceil(setup.nest.points / hierarchy.array.units) * setup.op_cycles),
        compute_cycles=float(cost.compute_cycles[column]),
        stall_cycles=float(cost.stall_cycles[column]),
        onload_cycles=float(cost.onload_cycles[column]),
        offload_cycles=float(cost.offload_cycles[column]),
        drain_cycles=cost.drain_cycles,
        energy_pj=fsum([setup.mac_pj, *(link.energy_pj for link in links)]),
        mac_pj=setup.mac_pj,
        links=links,
        port_stalls=tuple(
            (g.memory, g.port, float(stall)) for g, stall in zip(groups, stalls, strict=True)
        ),
        fill=tuple(_fills(batch, column)),
    )


def _fills(batch: Batch, column: int) -> Iterator[tuple[str, str, float]]:
    hierarchy = batch.setup.hierarchy
    for letter, held in batch.moves.held.items():
        for level, index in enumerate(hierarchy.chains[letter]):
            memory, _ = hierarchy.levels[index]
            bits = float(held.elements[level, column] * held.bits[level, column])
            yield letter, memory.name, bits / memory.size_bits


def _link_costs(batch: Batch, column: int) -> Iterator[LinkCost]:
    moves, cost = batch.moves, batch.costs
    for row, link in enumerate(moves.links):
        if cost.accesses[row, column] == 0:
            continue
        elements = moves.amount[row, column] * moves.periods[row, column]
        yield LinkCost(
            letter=link.letter,
            memory=link.memory.name,
            level=link.level,
            direction=link.direction,
            port=link.port.name if link.port else "",
            accesses=int(cost.accesses[row, column]),
            energy_pj=float(cost.link_pj[row, column]),
            bits=round(float(elements * moves.bits[row, column]) * link.instances),
        )

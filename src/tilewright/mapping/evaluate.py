"""From loop orders to costs, in one go; and the cost of one mapping in every detail."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, fsum

import numpy as np

from tilewright.machine.model import Direction, Memory
from tilewright.mapping.allocate import Allocation, allocate
from tilewright.mapping.attach import Spatial
from tilewright.mapping.batch import Bools, Floats, Orders, orders_of
from tilewright.mapping.cost import Costs, costs, port_groups
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.imc import cycles_per_op, imc_energy_pj
from tilewright.mapping.movement import Held, Movement, movement
from tilewright.mapping.nest import LoopNest


@dataclass(frozen=True, eq=False)
class Batch:
    """Orders with their allocation and costs; candidates that do not fit have infinite cost."""

    orders: Orders
    allocation: Allocation
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


def mac_energy_pj(nest: LoopNest, hierarchy: Hierarchy, spatial: Spatial) -> float:
    """Energy of the multiplications themselves."""
    if hierarchy.array.in_memory is None:
        return hierarchy.array.mac_pj * nest.points
    return imc_energy_pj(nest, hierarchy.array, spatial.unrolling).total_pj


def evaluate(
    nest: LoopNest, hierarchy: Hierarchy, spatial: Spatial, orders: Orders, *, even: bool = False
) -> Batch:
    """Allocate and cost a batch of orders."""
    return evaluate_allocated(
        nest, hierarchy, spatial, orders, allocate(nest, hierarchy, spatial, orders, even=even)
    )


def evaluate_allocated(
    nest: LoopNest, hierarchy: Hierarchy, spatial: Spatial, orders: Orders, allocation: Allocation
) -> Batch:
    """Cost a batch of orders whose levels are cut already."""
    moves = movement(nest, hierarchy, spatial, orders, allocation)
    cost = costs(
        nest,
        hierarchy,
        moves,
        drain_cycles=spatial.drain_cycles,
        op_cycles=cycles_per_op(hierarchy.array),
    )
    good = allocation.fits & cost.possible
    energy = cost.memory_pj + mac_energy_pj(nest, hierarchy, spatial)
    return Batch(
        orders,
        allocation,
        np.where(good, cost.cycles, np.inf),
        np.where(good, energy, np.inf),
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


def cost_of(nest: LoopNest, hierarchy: Hierarchy, spatial: Spatial, loops: Loops) -> Cost:
    """The cost of one mapping, part by part."""
    orders = orders_of([loops.order])
    ends = {letter: np.array(cuts, dtype=np.int64)[:, None] for letter, cuts in loops.ends}
    allocation = Allocation(ends, np.ones(1, dtype=np.bool_))
    moves = movement(nest, hierarchy, spatial, orders, allocation)
    op_cycles = cycles_per_op(hierarchy.array)
    cost = costs(nest, hierarchy, moves, drain_cycles=spatial.drain_cycles, op_cycles=op_cycles)
    mac_pj = mac_energy_pj(nest, hierarchy, spatial)
    links = tuple(_link_costs(cost, moves))
    return Cost(
        macs=nest.points,
        cycles=float(cost.cycles[0]),
        ideal_cycles=ceil(ceil(nest.points / hierarchy.array.units) * op_cycles),
        compute_cycles=float(cost.compute_cycles[0]),
        stall_cycles=float(cost.stall_cycles[0]),
        onload_cycles=float(cost.onload_cycles[0]),
        offload_cycles=float(cost.offload_cycles[0]),
        drain_cycles=cost.drain_cycles,
        energy_pj=fsum([mac_pj, *(link.energy_pj for link in links)]),
        mac_pj=mac_pj,
        links=links,
        port_stalls=tuple(
            (group.memory, group.port, float(stall))
            for group, stall in zip(
                port_groups(moves.links, dict(hierarchy.links)), cost.port_stalls[:, 0], strict=True
            )
        ),
        fill=tuple(
            (letter, memory.name, _share(held, level, memory))
            for letter, held in moves.held.items()
            for level, memory in enumerate(hierarchy.levels[i][0] for i in hierarchy.chains[letter])
        ),
    )


def _share(held: Held, level: int, memory: Memory) -> float:
    return float(held.elements[level, 0] * held.bits[level, 0] / memory.size_bits)


def _link_costs(cost: Costs, moves: Movement) -> Iterator[LinkCost]:
    bits = moves.amount * moves.bits * moves.periods
    for row, link in enumerate(moves.links):
        if cost.accesses[row, 0] == 0:
            continue
        yield LinkCost(
            letter=link.letter,
            memory=link.memory.name,
            level=link.level,
            direction=link.direction,
            port=link.port.name if link.port else "",
            accesses=int(cost.accesses[row, 0]),
            energy_pj=float(cost.link_pj[row, 0]),
            bits=round(float(bits[row, 0]) * link.instances),
        )

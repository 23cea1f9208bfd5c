"""Cost tables: what a cut, the end of a level, costs at every tile where it may lie.

Energy, transfers and sizes of an operand at a level depend only on the tile inside the level's
end, so they are tabulated once and the search only looks them up. The figures come from the cost
model itself, which is shown one artificial order per tile: the tile inside, the rest outside.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.machine.model import Direction
from tilewright.mapping.allocate import Allocation
from tilewright.mapping.batch import Bools, Floats, Orders
from tilewright.mapping.complete.tiles import Lattice, lattice_of
from tilewright.mapping.cost import Costs, PortGroup, costs, port_groups
from tilewright.mapping.evaluate import Setup
from tilewright.mapping.movement import Movement, movement
from tilewright.mapping.nest import NestOperand


@dataclass(frozen=True, eq=False)
class Transfer:
    """One link over a cut, for every tile at which the cut may lie; arrays are (tiles,)."""

    level: int
    direction: Direction
    group: int
    """Number of its physical port; -1 if it has none."""
    place: int
    """Its index among the links of that port."""
    cycles: Floats
    """Cycles of one transfer."""
    period: Floats
    """Iterations between two transfers."""
    count: Floats
    """Number of transfers; 0 where nothing has to move."""
    steady_bits: Floats
    """Bits a cycle that it takes of its port while the array works."""


@dataclass(frozen=True, eq=False)
class Cut:
    """The end of a level of an operand: between arch levels `arch` and `arch - 1`.

    Cut 0 of an input is where the array first needs another element.
    """

    letter: str
    arch: int
    possible: Bools
    """Tiles at which it may lie as far as ports and the operand itself are concerned."""
    stationary: Bools
    """Tiles made only of loops that the operand does not depend on."""
    single_buffered: Bools
    """Tiles that leave no room for a second copy in the memory below the cut."""
    energy_pj: Floats
    transfers: tuple[Transfer, ...]
    first_bits: Floats
    """Bits in one instance of the lowest memory if this is the end of its level, else 0."""


@dataclass(frozen=True, eq=False)
class CutTables:
    """All cuts of all operands, innermost first, for one unrolling."""

    setup: Setup
    lattice: Lattice
    groups: tuple[PortGroup, ...]
    cuts: tuple[tuple[Cut, ...], ...]
    """Per operand in the order of the nest."""
    at_array: tuple[Transfer, ...]
    """Links between the array and the result's lowest memory, which no cut changes; one tile."""
    fixed_pj: float
    """Energy of the multiplications and of those links."""

    @cached_property
    def iterations(self) -> float:
        """All temporal iterations."""
        return float(self.lattice.iterations[-1])

    @cached_property
    def compute_cycles(self) -> float:
        """Cycles of the array at work."""
        return self.iterations * self.setup.op_cycles


def cut_tables(setup: Setup) -> CutTables | None:
    """Tabulate one unrolling; None if some data that always has to move has no port."""
    lattice = lattice_of(setup.spatial.temporal, setup.nest.dims[0][0])
    cuts = []
    at_array: tuple[Transfer, ...] = ()
    fixed_pj = setup.mac_pj
    groups: tuple[PortGroup, ...] = ()
    for operand in setup.nest.operands:
        model = _OperandModel.of(setup, lattice, operand)
        groups = model.groups
        if operand.letter == "O":
            rows = model.rows(0)
            if not model.has_ports(rows)[0]:
                return None
            at_array = tuple(model.transfer(row, slice(0, 1)) for row in rows)
            fixed_pj += float(model.cost.link_pj[rows, 0].sum())
        first = 1 if operand.letter == "O" else 0
        depth = len(setup.hierarchy.chains[operand.letter])
        cuts.append(tuple(model.cut(arch) for arch in range(first, depth)))
    return CutTables(setup, lattice, groups, tuple(cuts), at_array, fixed_pj)


@dataclass(frozen=True, eq=False)
class _OperandModel:
    """What the cost model says of one operand when all its cuts lie at the same tile."""

    setup: Setup
    lattice: Lattice
    operand: NestOperand
    moves: Movement
    cost: Costs
    groups: tuple[PortGroup, ...]

    @staticmethod
    def of(setup: Setup, lattice: Lattice, operand: NestOperand) -> "_OperandModel":
        orders = _one_order_per_tile(setup, lattice, operand)
        half = orders.length // 2
        ends = {}
        for letter, chain in setup.hierarchy.chains.items():
            ends[letter] = np.full((len(chain), lattice.size), half, dtype=np.int64)
            ends[letter][-1] = orders.length
        fits = np.ones(lattice.size, dtype=np.bool_)
        nest, hierarchy, spatial = setup.nest, setup.hierarchy, setup.spatial
        moves = movement(nest, hierarchy, spatial, orders, Allocation(ends, fits))
        cost = costs(nest, hierarchy, moves, drain_cycles=0, op_cycles=setup.op_cycles)
        groups = tuple(port_groups(moves.links, hierarchy))
        return _OperandModel(setup, lattice, operand, moves, cost, groups)

    def rows(self, arch: int) -> list[int]:
        """Links of the operand over the end of the level below `arch`."""
        return [
            row
            for row, link in enumerate(self.moves.links)
            if link.letter == self.operand.letter
            and (link.level if link.is_below else link.level + 1) == arch
        ]

    def has_ports(self, rows: Sequence[int]) -> Bools:
        """Tiles for which all that has to move over the links has a port."""
        moves = self.moves
        result = np.ones(self.lattice.size, dtype=np.bool_)
        for row in rows:
            if moves.links[row].port is None:
                result &= ~(moves.exists[row] & (moves.amount[row] > 0) & (moves.bits[row] > 0))
        return result

    def cut(self, arch: int) -> Cut:
        letter, rows = self.operand.letter, self.rows(arch)
        held = self.moves.whole_held[letter]
        first = held.elements[0] * held.bits[0]
        return Cut(
            letter=letter,
            arch=arch,
            possible=self.has_ports(rows) & (self.stationary if arch == 0 else True),
            stationary=self.stationary,
            single_buffered=self._single_buffered(arch),
            energy_pj=self.cost.link_pj[rows].sum(axis=0),
            transfers=tuple(self.transfer(row, slice(None)) for row in rows),
            first_bits=first if arch == 1 else np.zeros(self.lattice.size),
        )

    @cached_property
    def stationary(self) -> Bools:
        """Tiles made only of loops that the operand does not depend on."""
        same = self.setup.nest.irrelevant(self.operand)
        moving = [i for i, name in enumerate(self.lattice.names) if name not in same]
        stationary: Bools = (self.lattice.extents[moving] == 1).all(axis=0)
        return stationary

    def transfer(self, row: int, tiles: slice) -> Transfer:
        moves, link, op_cycles = self.moves, self.moves.links[row], self.setup.op_cycles
        group = next((i for i, g in enumerate(self.groups) if row in g.rows), -1)
        bits = moves.whole_amount[row] * moves.whole_bits[row]
        cycles = np.ceil(bits / link.port.bits_per_cycle) if link.port else np.zeros_like(bits)
        exists, periods = moves.whole_exists[row], moves.periods[row]
        comes_back = link.letter == "O" and link.direction in ("tl", "fh")
        steady = np.where(
            exists & (periods > 1) & (not comes_back), np.ceil(moves.average[row] / op_cycles), 0.0
        )
        return Transfer(
            level=link.level,
            direction=link.direction,
            group=group,
            place=self.groups[group].rows.index(row) if group >= 0 else -1,
            cycles=np.where(exists, cycles, 0.0)[tiles],
            period=moves.period[row][tiles],
            count=np.where(exists, periods, 0.0)[tiles],
            steady_bits=steady[tiles],
        )

    def _single_buffered(self, arch: int) -> Bools:
        if arch == 0:
            return np.zeros(self.lattice.size, dtype=np.bool_)
        held = self.moves.held[self.operand.letter]
        size = self.setup.hierarchy.memory(self.operand.letter, arch - 1).size_bits
        need = np.floor(held.elements[arch - 1] * held.bits[arch - 1]) / size
        full: Bools = need > 0.5
        return full


def _one_order_per_tile(setup: Setup, lattice: Lattice, operand: NestOperand) -> Orders:
    """Orders of twice as many loops as there are names: a tile, and the rest around it.

    Loops that the operand does not depend on are innermost in the tile and outermost around it, so
    that the model moves none of them over the cut between the two.
    """
    same = setup.nest.irrelevant(operand)
    stationary = [i for i, name in enumerate(lattice.names) if name in same]
    moving = [i for i, name in enumerate(lattice.names) if name not in same]
    loops = np.array([*stationary, *moving, *moving, *stationary], dtype=np.int64)
    inside = lattice.extents[[*stationary, *moving]]
    outside = (lattice.extents[:, -1:] / lattice.extents)[[*moving, *stationary]]
    return Orders(
        lattice.names,
        np.ascontiguousarray(np.broadcast_to(loops[:, None], (loops.size, lattice.size))),
        np.vstack([inside, outside]),
    )

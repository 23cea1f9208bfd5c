"""The relaxed problem: costs of a chain of cuts as sums over its cuts.

A chain gives every cut of every operand a tile, each enclosed by the next. Its *totals* are a row
of sums: energy, and what the cuts ask of ports and loads. Energy is exact. Latency is never above
the cost model's: it is what the model says if every level that can end with a loop that its operand
depends on does so, which is nearly always possible; where the cuts of other operands rule it out,
`single_buffer_delay` adds what that costs. Cuts at the whole nest, over which everything moves only
once, are settled last (`latency`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np

from tilewright.mapping.batch import Bools, Floats, Ints
from tilewright.mapping.complete.capacity import Capacity, capacity_of
from tilewright.mapping.complete.cuts import Cut, CutTables, Transfer, cut_tables
from tilewright.mapping.evaluate import Setup

Stage = tuple[int, ...]
"""How many cuts of each operand lie inside the whole nest."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of the totals; energy is column 0.

    `ports` can stall the array; `hiding` are the ports that may lack the cycles to move, while the
    array computes, all that is moved once.
    """

    ports: tuple[int, ...]
    hiding: tuple[int, ...]
    inputs: int

    def overrun(self, port: int) -> int:
        """Cycles that transfers of a port take beyond their windows."""
        return 1 + self.ports.index(port)

    def busy_cycles(self, port: int) -> int:
        """Cycles that transfers of a port take within their windows."""
        return 1 + len(self.ports) + self.ports.index(port)

    def steady(self, port: int) -> int:
        """Bits a cycle that a port moves while the array computes."""
        return 1 + 2 * len(self.ports) + self.hiding.index(port)

    def first_transfer(self, port: int) -> int:
        """Cycles of one transfer of each link that counts as steady."""
        return 1 + 2 * len(self.ports) + len(self.hiding) + self.hiding.index(port)

    def load(self, number: int, *, together: bool) -> int:
        """Cycles to load an input before the run: over ports shared with the other, or apart."""
        return 1 + 2 * len(self.ports) + 2 * len(self.hiding) + 2 * number + together

    @property
    def store(self) -> int:
        """Cycles to store the result after the run."""
        return self.load(self.inputs, together=False)

    def first(self, operand: int) -> int:
        """Bits of an operand in one instance of its lowest memory."""
        return self.store + 1 + operand

    @property
    def count(self) -> int:
        """Number of columns."""
        return self.first(self.inputs + 1)


@dataclass(frozen=True, slots=True)
class SingleTransfer:
    """What is moved over a cut at the whole nest: once, and maybe while the array computes.

    `column` is where the cycles count; None: they do not. `links` are (port, place, cycles).
    """

    operand: int
    column: int | None
    links: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The problem of finding the best chain of one unrolling."""

    tables: CutTables
    capacity: Capacity
    columns: Columns
    initial_totals: Floats
    """The totals before any cut."""
    possible: tuple[tuple[Bools, ...], ...]
    """Tiles of every cut that fit at least by themselves."""
    increments: tuple[tuple[Floats, ...], ...]
    """What a cut adds to the totals at each tile, (tiles, columns); nothing but energy and first
    bits at the whole nest."""
    single_transfers: tuple[tuple[SingleTransfer | None, ...], ...]

    @property
    def setup(self) -> Setup:
        """The unrolling."""
        return self.tables.setup

    @cached_property
    def depths(self) -> Stage:
        """Cuts per operand."""
        return tuple(len(cuts) for cuts in self.tables.cuts)

    @property
    def run_cycles(self) -> float:
        """Cycles without stalls, loads and stores."""
        return self.tables.compute_cycles + self.setup.spatial.drain_cycles

    @cached_property
    def port_cycles(self) -> float:
        """Most cycles in which a port may work without stalling the array."""
        return ceil(self.setup.op_cycles) * self.tables.iterations

    def width(self, port: int) -> int:
        """Bits a cycle of a port."""
        return self.tables.groups[port].bits_per_cycle

    def may_end(self, stage: Stage) -> bool:
        """Whether all cuts beyond the stage may lie at the whole nest."""
        return all(
            bool(possible[-1])
            for done, masks in zip(stage, self.possible, strict=True)
            for possible in masks[done:]
        )

    @cached_property
    def stationary(self) -> Bools:
        """Which loops leave which operand as it is, (operands, axes)."""
        nest, axes = self.setup.nest, self.tables.lattice.axes
        return np.array(
            [[name in nest.irrelevant(operand) for name, _ in axes] for operand in nest.operands],
            dtype=np.bool_,
        ).reshape(len(nest.operands), len(axes))

    def moved_once(self, stage: Stage) -> list[SingleTransfer]:
        """All that is loaded or stored once if the stage is the last one."""
        loads = zip(stage, self.single_transfers, strict=True)
        return [load for done, mine in loads for load in mine[done:] if load is not None]


def relaxation_of(setup: Setup) -> Relaxation | None:
    """The relaxed problem; None if nothing fits."""
    tables = cut_tables(setup)
    if tables is None:
        return None
    capacity = capacity_of(setup, tables.lattice)
    possible = _possible(tables, capacity)
    if possible is None:
        return None
    inputs = len(setup.nest.inputs)
    columns = Columns(*_ports(tables, possible), inputs)
    kinds = [_load_columns(tables, columns, i) for i in range(inputs + 1)]
    increments, single_transfers = [], []
    for number, cuts in enumerate(tables.cuts):
        increments.append(
            tuple(
                _increments(tables, columns, (number, j), kinds[number][j])
                for j in range(len(cuts))
            )
        )
        single_transfers.append(
            tuple(_single_transfer(cut, number, kinds[number][j]) for j, cut in enumerate(cuts))
        )
    initial_totals = np.zeros((1, columns.count))
    initial_totals[0, 0] = tables.fixed_pj
    for transfer in tables.at_array:
        _add_port(initial_totals, tables, columns, transfer, transfer.period)
    return Relaxation(
        tables,
        capacity,
        columns,
        initial_totals[0],
        possible,
        tuple(increments),
        tuple(single_transfers),
    )


def single_buffer_delay(
    relaxation: Relaxation, place: tuple[int, int], tiles: Ints, reuse: Floats
) -> tuple[Ints, Floats]:
    """Which rows change, and what is added to them, if a level ends with loops that reuse data.

    `reuse` is the iterations of such loops; without a second buffer, data can only be replaced in
    the last of them.
    """
    cut = relaxation.tables.cuts[place[0]][place[1]]
    columns = relaxation.columns
    delayed = np.flatnonzero((reuse > 1) & cut.single_buffered[tiles])
    if not delayed.size:
        return delayed, np.zeros((0, columns.count))
    before = np.zeros((delayed.size, columns.count))
    after = np.zeros((delayed.size, columns.count))
    for transfer in cut.transfers:
        here, longest = _at(transfer, tiles[delayed]), _window(cut, transfer)[tiles[delayed]]
        shorter = np.minimum(np.trunc(here.period / reuse[delayed]), longest)
        _add_port(after, relaxation.tables, columns, here, shorter)
        _add_port(before, relaxation.tables, columns, here, longest)
    return delayed, after - before


def _window(cut: Cut, transfer: Transfer) -> Floats:
    """The longest window that any order of the loops can give a link, for every tile."""
    lowest = cut.single_buffered & cut.stationary & (cut.arch == 1)
    return np.where(lowest, 1.0, transfer.period)


def _at(transfer: Transfer, tiles: Ints) -> Transfer:
    """A transfer at some of the tiles."""
    return replace(
        transfer,
        cycles=transfer.cycles[tiles],
        period=transfer.period[tiles],
        count=transfer.count[tiles],
        steady_bits=transfer.steady_bits[tiles],
    )


def _add_port(
    totals: Floats, tables: CutTables, columns: Columns, transfer: Transfer, window: Floats
) -> None:
    """Add what a link asks of its port, if its transfers may take `window` iterations each."""
    port = transfer.group
    if port in columns.ports:
        again = np.maximum(transfer.count - 1, 0.0)
        allowed = np.ceil(tables.setup.op_cycles * window)
        totals[:, columns.overrun(port)] += np.maximum(transfer.cycles - allowed, 0.0) * again
        if len(tables.groups[port].rows) > 1:
            totals[:, columns.busy_cycles(port)] += np.minimum(transfer.cycles, allowed) * again
    if port in columns.hiding:
        totals[:, columns.steady(port)] += transfer.steady_bits
        totals[:, columns.first_transfer(port)] += np.where(
            transfer.steady_bits > 0, transfer.cycles, 0.0
        )


def _increments(
    tables: CutTables, columns: Columns, place: tuple[int, int], load: int | None
) -> Floats:
    number, j = place
    cut = tables.cuts[number][j]
    result = np.zeros((tables.lattice.size, columns.count))
    for transfer in cut.transfers:
        _add_port(result, tables, columns, transfer, _window(cut, transfer))
    if load is not None:
        result[:, load] = np.max([c.cycles for c in _loading_links(cut)], axis=0)
    result[-1] = 0.0
    result[:, 0] = cut.energy_pj
    result[:, columns.first(number)] = cut.first_bits
    return result


def _loading_links(cut: Cut) -> list[Transfer]:
    """The two links that load an input over a boundary, or store the result."""
    wanted = ("th", "fl") if cut.letter == "O" else ("fh", "tl")
    return [c for c in cut.transfers if c.direction in wanted] if cut.arch > 0 else []


def _single_transfer(cut: Cut, operand: int, column: int | None) -> SingleTransfer | None:
    if cut.arch == 0:
        return None
    links = tuple((c.group, c.place, float(c.cycles[-1])) for c in _loading_links(cut))
    return SingleTransfer(operand, column, links)


def _load_columns(tables: CutTables, columns: Columns, operand: int) -> list[int | None]:
    """Per cut, the column in which its load counts; of loads half apart only the last one does."""
    cuts = tables.cuts[operand]
    if operand == 0:
        return [columns.store] * len(cuts)
    inputs = {other.letter for other in tables.setup.nest.inputs}
    shared = {
        port for port, group in enumerate(tables.groups) if len(inputs & set(group.letters)) > 1
    }
    sharing = [sum(c.group in shared for c in _loading_links(cut)) for cut in cuts]
    last_half = max((j for j, n in enumerate(sharing) if n == 1), default=-1)
    result: list[int | None] = []
    for j, (cut, number) in enumerate(zip(cuts, sharing, strict=True)):
        counts = cut.arch > 0 and operand <= 2 and (number != 1 or j == last_half)
        column = columns.load(operand - 1, together=number == 2)
        result.append(column if counts else None)
    return result


def _ports(
    tables: CutTables, possible: Sequence[Sequence[Bools]]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ports that can stall the array, and ports that may not hide all that is moved once."""
    ports, hiding = [], []
    limit = ceil(tables.setup.op_cycles) * tables.iterations
    busy = ceil(tables.compute_cycles)
    for port, group in enumerate(tables.groups):
        busy_cycles = steady = once = overrun = 0.0
        for transfer, window, mask, loads in _uses(tables, possible, port):
            again = np.maximum(transfer.count - 1, 0.0)
            over = (transfer.cycles - np.ceil(tables.setup.op_cycles * window)) * again
            overrun += float(np.max(over[mask], initial=0.0))
            busy_cycles += float(np.max((transfer.cycles * again)[mask], initial=0.0))
            steady += float(np.max(transfer.steady_bits[mask], initial=0.0))
            once += float(transfer.cycles[-1]) * loads
        if overrun > 0 or (busy_cycles > limit and len(group.rows) > 1):
            ports.append(port)
        if max(0.0, 1 - steady / group.bits_per_cycle) * busy < once:
            hiding.append(port)
    return tuple(ports), tuple(hiding)


def _uses(
    tables: CutTables, possible: Sequence[Sequence[Bools]], port: int
) -> Iterator[tuple[Transfer, Floats, Bools, bool]]:
    """Links of a port, the shortest windows that an order can force upon them, the tiles of their
    cuts, and whether they may move something once."""
    for transfer in tables.at_array:
        if transfer.group == port:
            yield transfer, transfer.period, np.ones(1, dtype=np.bool_), False
    for cuts, masks in zip(tables.cuts, possible, strict=True):
        for cut, mask in zip(cuts, masks, strict=True):
            loading = _loading_links(cut) if mask[-1] else []
            for transfer in cut.transfers:
                if transfer.group == port:
                    window = np.where(cut.single_buffered, 1.0, transfer.period)
                    yield transfer, window, mask, transfer in loading


def _possible(tables: CutTables, capacity: Capacity) -> tuple[tuple[Bools, ...], ...] | None:
    """Tiles of every cut that leave the other operands their least; None if there are none."""
    least = _least_bits(capacity)
    for memory, size in enumerate(capacity.sizes):
        if sum(bits for (_, m), bits in least.items() if m == memory) > size:
            return None
    masks = []
    for number, cuts in enumerate(tables.cuts):
        mine = []
        for cut in cuts:
            mask = cut.possible
            if cut.arch > 0:
                need = capacity.needs[number][cut.arch - 1]
                others = sum(
                    bits for (o, m), bits in least.items() if m == need.memory and o != number
                )
                open_sums = capacity.unfinished if cut.arch > 1 else capacity.unfinished[:1]
                bits = np.where(open_sums, need.wide, need.narrow) if number == 0 else need.wide
                mask = mask & (bits + others <= capacity.sizes[need.memory])
            mine.append(mask)
        masks.append(tuple(mine))
    if not all(mask.any() for mine in masks for mask in mine):
        return None
    return tuple(masks)


def _least_bits(capacity: Capacity) -> dict[tuple[int, int], float]:
    """The least that every operand takes of each of its memories."""
    least = {}
    for number, needs in enumerate(capacity.needs):
        for level, need in enumerate(needs):
            tile = -1 if level == len(needs) - 1 else 0
            wide = number == 0 and level == 0 and bool(capacity.unfinished[0])
            least[(number, need.memory)] = float((need.wide if wide else need.narrow)[tile])
    return least

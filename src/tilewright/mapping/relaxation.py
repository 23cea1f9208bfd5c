"""Costs of chains of cuts as sums over their cuts, never above what the cost model says.

A chain gives every cut of every operand a tile, each inside the next. Its *account* is a row of
sums: energy, and what the cuts ask of ports and loads. Energy is exact. Time is what the model
would say if every level that can end with a loop its operand depends on did so, which is nearly
always possible. Cuts at the whole nest, over which everything moves only once, are settled last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np

from tilewright.mapping.batch import Bools, Floats, Ints
from tilewright.mapping.cuts import Crossing, Cut, CutTables, cut_tables
from tilewright.mapping.evaluate import Setup
from tilewright.mapping.room import Room, room_of

Stage = tuple[int, ...]
"""How many cuts of each operand lie inside the whole nest."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of an account; energy is column 0.

    `ports` can hold the array up; `hiding` are the ports that may lack the cycles to load during
    the run all that is loaded once.
    """

    ports: tuple[int, ...]
    hiding: tuple[int, ...]
    inputs: int

    def overrun(self, port: int) -> int:
        """Cycles that transfers of a port take beyond what they may."""
        return 1 + self.ports.index(port)

    def fill(self, port: int) -> int:
        """Cycles that transfers of a port take within what they may."""
        return 1 + len(self.ports) + self.ports.index(port)

    def steady(self, port: int) -> int:
        """Bits a cycle that a port moves during the run."""
        return 1 + 2 * len(self.ports) + self.hiding.index(port)

    def begun(self, port: int) -> int:
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
class OnceLoad:
    """What is moved over one boundary if its cut is the whole nest: once, and maybe in the shade.

    `column` is where the cycles count; None: they do not. `links` are (port, place, cycles).
    """

    operand: int
    column: int | None
    links: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The problem of finding the best chain for one unrolling."""

    tables: CutTables
    room: Room
    columns: Columns
    base: Floats
    """The account before any cut."""
    possible: tuple[tuple[Bools, ...], ...]
    """Tiles of every cut that fit at least by themselves."""
    adds: tuple[tuple[Floats, ...], ...]
    """What a cut adds to the account at each tile, (tiles, columns); nothing but energy and first
    bits at the whole nest."""
    loads: tuple[tuple[OnceLoad | None, ...], ...]

    @property
    def setup(self) -> Setup:
        """The unrolling."""
        return self.tables.setup

    @property
    def depths(self) -> Stage:
        """Cuts per operand."""
        return tuple(len(cuts) for cuts in self.tables.cuts)

    @property
    def run_cycles(self) -> float:
        """Cycles of a run that nothing holds up."""
        return self.tables.compute_cycles + self.setup.spatial.drain_cycles

    @cached_property
    def port_cycles(self) -> float:
        """Most cycles in which a port may work without holding the array up."""
        return ceil(self.setup.op_cycles) * self.tables.total

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

    def once(self, stage: Stage) -> list[OnceLoad]:
        """All that is loaded or stored once if the stage is the last one."""
        loads = zip(stage, self.loads, strict=True)
        return [load for done, mine in loads for load in mine[done:] if load is not None]


def relaxation_of(setup: Setup, *, timed: bool) -> Relaxation | None:
    """The relaxed problem, without columns for time unless `timed`; None if nothing can fit."""
    tables = cut_tables(setup)
    if tables is None:
        return None
    room = room_of(setup, tables.lattice)
    possible = _possible(tables, room)
    if possible is None:
        return None
    inputs = len(setup.nest.inputs)
    columns = Columns(*_ports(tables, possible), inputs) if timed else Columns((), (), inputs)
    kinds = [_load_columns(tables, columns, i) for i in range(inputs + 1)]
    adds, loads = [], []
    for number, cuts in enumerate(tables.cuts):
        adds.append(
            tuple(_adds(tables, columns, (number, j), kinds[number][j]) for j in range(len(cuts)))
        )
        loads.append(tuple(_once(cut, number, kinds[number][j]) for j, cut in enumerate(cuts)))
    base = np.zeros((1, columns.count))
    base[0, 0] = tables.fixed_pj
    for crossing in tables.at_array:
        _add_port(base, tables, columns, crossing, crossing.period)
    return Relaxation(tables, room, columns, base[0], possible, tuple(adds), tuple(loads))


def time_bound(relaxation: Relaxation, stage: Stage, accounts: Floats) -> Floats:
    """Cycles of complete chains whose other cuts lie at the whole nest, (N,), or a little less.

    A longer stall hides more of what is loaded once. As long as that counts for one port only, the
    sum of both cannot shrink, so the bound lets one port at a time hide as much as it can, and the
    others all; the largest of these bounds holds.
    """
    columns, tables = relaxation.columns, relaxation.tables
    stall = np.zeros(len(accounts))
    for port in columns.ports:
        fill = np.maximum(accounts[:, columns.fill(port)] - relaxation.port_cycles, 0.0)
        stall = np.maximum(stall, accounts[:, columns.overrun(port)] + fill)
    busy = ceil(tables.compute_cycles) + stall
    once = relaxation.once(stage)
    used = {group for load in once for group, _, _ in load.links}
    scarce: list[int | None] = [None, *(port for port in columns.hiding if port in used)]
    result = np.zeros(len(accounts))
    for hiding in scarce:
        loads = accounts.copy()
        times = _once_times(relaxation, once, accounts, busy, hiding)
        for load, time in zip(once, times, strict=True):
            if load.column is not None:
                loads[:, load.column] += time
        result = np.maximum(result, _loading(columns, loads))
    total: Floats = relaxation.run_cycles + stall + result
    return total


def waiting(
    relaxation: Relaxation, place: tuple[int, int], tiles: Ints, runs: Floats
) -> tuple[Ints, Floats]:
    """Which accounts change, and by how much, if a level ends with loops that leave its operand.

    `runs` are the iterations of such loops; without a second buffer, data can only be replaced in
    the last of them.
    """
    cut = relaxation.tables.cuts[place[0]][place[1]]
    columns = relaxation.columns
    late = np.flatnonzero((runs > 1) & cut.crowded[tiles])
    before = np.zeros((late.size, columns.count))
    after = np.zeros((late.size, columns.count))
    for crossing in cut.crossings:
        here, longest = _at(crossing, tiles[late]), _window(cut, crossing)[tiles[late]]
        shorter = np.minimum(np.trunc(here.period / runs[late]), longest)
        _add_port(after, relaxation.tables, columns, here, shorter)
        _add_port(before, relaxation.tables, columns, here, longest)
    return late, after - before


def _window(cut: Cut, crossing: Crossing) -> Floats:
    """The longest window that any order of the loops can give a link, for every tile."""
    lowest = cut.crowded & cut.still & (cut.arch == 1)
    return np.where(lowest, 1.0, crossing.period)


def _at(crossing: Crossing, tiles: Ints) -> Crossing:
    return Crossing(
        level=crossing.level,
        direction=crossing.direction,
        group=crossing.group,
        place=crossing.place,
        real=crossing.real[tiles],
        period=crossing.period[tiles],
        periods=crossing.periods[tiles],
        steady=crossing.steady[tiles],
    )


def _add_port(
    account: Floats, tables: CutTables, columns: Columns, crossing: Crossing, window: Floats
) -> None:
    """Add what a link asks of its port, if its transfers may take `window` iterations each."""
    port = crossing.group
    if port in columns.ports:
        again = np.maximum(crossing.periods - 1, 0.0)
        allowed = np.ceil(tables.setup.op_cycles * window)
        account[:, columns.overrun(port)] += np.maximum(crossing.real - allowed, 0.0) * again
        if len(tables.groups[port].rows) > 1:
            account[:, columns.fill(port)] += np.minimum(crossing.real, allowed) * again
    if port in columns.hiding:
        account[:, columns.steady(port)] += crossing.steady
        account[:, columns.begun(port)] += np.where(crossing.steady > 0, crossing.real, 0.0)


def _adds(tables: CutTables, columns: Columns, place: tuple[int, int], load: int | None) -> Floats:
    number, j = place
    cut = tables.cuts[number][j]
    result = np.zeros((tables.lattice.size, columns.count))
    for crossing in cut.crossings:
        _add_port(result, tables, columns, crossing, _window(cut, crossing))
    if load is not None:
        result[:, load] = np.max([c.real for c in _loading_links(cut)], axis=0)
    result[-1] = 0.0
    result[:, 0] = cut.energy_pj
    result[:, columns.first(number)] = cut.first_bits
    return result


def _loading_links(cut: Cut) -> list[Crossing]:
    """The two links that load an input over a boundary, or store the result."""
    wanted = ("th", "fl") if cut.letter == "O" else ("fh", "tl")
    return [c for c in cut.crossings if c.direction in wanted] if cut.arch > 0 else []


def _once(cut: Cut, operand: int, column: int | None) -> OnceLoad | None:
    if cut.arch == 0:
        return None
    links = tuple((c.group, c.place, float(c.real[-1])) for c in _loading_links(cut))
    return OnceLoad(operand, column, links)


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


def _loading(columns: Columns, loads: Floats) -> Floats:
    """Cycles before and after the run; inputs over ports of their own load side by side."""
    apart = [loads[:, columns.load(i, together=False)] for i in range(columns.inputs)]
    both = [loads[:, columns.load(i, together=True)] for i in range(columns.inputs)]
    store: Floats = loads[:, columns.store]
    if columns.inputs == 1:
        alone: Floats = apart[0] + store
        return alone
    after_a = np.maximum(both[1] + apart[1], apart[0])
    after_b = np.maximum(both[0] + apart[0], apart[1])
    result: Floats = np.minimum(both[0] + after_a, both[1] + after_b) + store
    return result


def _once_times(
    relaxation: Relaxation,
    once: Sequence[OnceLoad],
    accounts: Floats,
    busy: Floats,
    hiding: int | None,
) -> list[Floats]:
    """Cycles of every load that comes once, if the port `hiding` has only its spare cycles."""
    columns = relaxation.columns
    least = [[_least(relaxation, load, link, accounts) for link in load.links] for load in once]
    if hiding is not None:
        width = relaxation.width(hiding)
        surplus = np.maximum(0.0, (width - accounts[:, columns.steady(hiding)]) / width * busy)
        for i, j in _longest_first(once, hiding):
            cycles = once[i].links[j][2]
            gain = np.minimum(cycles - least[i][j], surplus)
            least[i][j] = cycles - gain
            surplus = surplus - gain
    return [np.maximum.reduce(times) for times in least]


def _least(
    relaxation: Relaxation, load: OnceLoad, link: tuple[int, int, float], accounts: Floats
) -> Floats:
    """Cycles that can never be hidden: the first tile of the lowest memory."""
    port, _, cycles = link
    if port < 0:
        return np.full(len(accounts), cycles)
    first = accounts[:, relaxation.columns.first(load.operand)]
    return np.minimum(np.ceil(first / relaxation.width(port)), cycles)


def _longest_first(once: Sequence[OnceLoad], port: int) -> list[tuple[int, int]]:
    """(load, link) of a port in the order in which they are hidden."""
    found = [
        (-cycles, place, i, j)
        for i, load in enumerate(once)
        for j, (group, place, cycles) in enumerate(load.links)
        if group == port
    ]
    return [(i, j) for _, _, i, j in sorted(found)]


def _ports(
    tables: CutTables, possible: Sequence[Sequence[Bools]]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ports that can hold the array up, and ports that may not hide all that is loaded once."""
    ports, hiding = [], []
    limit = ceil(tables.setup.op_cycles) * tables.total
    busy = ceil(tables.compute_cycles)
    for port, group in enumerate(tables.groups):
        fill = steady = once = late = 0.0
        for crossing, window, mask, loads in _uses(tables, possible, port):
            again = np.maximum(crossing.periods - 1, 0.0)
            over = (crossing.real - np.ceil(tables.setup.op_cycles * window)) * again
            late += float(np.max(over[mask], initial=0.0))
            fill += float(np.max((crossing.real * again)[mask], initial=0.0))
            steady += float(np.max(crossing.steady[mask], initial=0.0))
            once += float(crossing.real[-1]) * loads
        if late > 0 or (fill > limit and len(group.rows) > 1):
            ports.append(port)
        if max(0.0, 1 - steady / group.bits_per_cycle) * busy < once:
            hiding.append(port)
    return tuple(ports), tuple(hiding)


def _uses(
    tables: CutTables, possible: Sequence[Sequence[Bools]], port: int
) -> Iterator[tuple[Crossing, Floats, Bools, bool]]:
    """Links of a port, the shortest windows that an order can force upon them, the tiles of their
    cuts, and whether they may load something once."""
    for crossing in tables.at_array:
        if crossing.group == port:
            yield crossing, crossing.period, np.ones(1, dtype=np.bool_), False
    for cuts, masks in zip(tables.cuts, possible, strict=True):
        for cut, mask in zip(cuts, masks, strict=True):
            loading = _loading_links(cut) if mask[-1] else []
            for crossing in cut.crossings:
                if crossing.group == port:
                    window = np.where(cut.crowded, 1.0, crossing.period)
                    yield crossing, window, mask, crossing in loading


def _possible(tables: CutTables, room: Room) -> tuple[tuple[Bools, ...], ...] | None:
    """Tiles of every cut that leave the other operands their least; None if there are none."""
    least = _least_bits(room)
    for memory, size in enumerate(room.sizes):
        if sum(bits for (_, m), bits in least.items() if m == memory) > size:
            return None
    masks = []
    for number, cuts in enumerate(tables.cuts):
        mine = []
        for cut in cuts:
            mask = cut.possible
            if cut.arch > 0:
                shelf = room.shelves[number][cut.arch - 1]
                others = sum(
                    bits for (o, m), bits in least.items() if m == shelf.memory and o != number
                )
                open_sums = room.unfinished if cut.arch > 1 else room.unfinished[:1]
                bits = np.where(open_sums, shelf.wide, shelf.narrow) if number == 0 else shelf.wide
                mask = mask & (bits + others <= room.sizes[shelf.memory])
            mine.append(mask)
        masks.append(tuple(mine))
    if not all(mask.any() for mine in masks for mask in mine):
        return None
    return tuple(masks)


def _least_bits(room: Room) -> dict[tuple[int, int], float]:
    """The least that every operand takes of each of its memories."""
    least = {}
    for number, shelves in enumerate(room.shelves):
        for level, shelf in enumerate(shelves):
            tile = -1 if level == len(shelves) - 1 else 0
            wide = number == 0 and level == 0 and bool(room.unfinished[0])
            least[(number, shelf.memory)] = float((shelf.wide if wide else shelf.narrow)[tile])
    return least

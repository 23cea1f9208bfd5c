"""Search for the best chain of cuts: partial chains, bounded by their best completions.

All partial chains of a stage are kept at once, as rows of arrays; a row is dropped if it cannot
lead below a given value, or if another row of the stage leads at least as far at no more cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilewright.mapping.batch import Bools, Floats, Ints
from tilewright.mapping.bounds import Completions, Ground, Modes, completions
from tilewright.mapping.dominance import Rows, undominated
from tilewright.mapping.judge import Goal, Judge
from tilewright.mapping.relaxation import Relaxation, Stage, time_bound, waiting

_CELLS = 1 << 21
"""Entries of the arrays that are made at a time."""

_MADE = 8
_KEPT = 3
"""Eight partial chains made count as one candidate, and one kept as three: what they take."""


@dataclass(frozen=True, eq=False)
class Partials:
    """Partial chains of one stage, a row each."""

    tiles: Ints
    """The outermost tile so far."""
    accounts: Floats
    used: Floats
    """Bits taken of each contested memory."""
    unfinished: Bools
    """Whether something is added to the result after its last cut."""
    runs: Floats
    """Per operand the iterations at the outer end during which it stays the same, at least."""
    trails: Ints

    def pick(self, rows: Ints | Bools) -> "Partials":
        """Some of the rows."""
        return Partials(
            self.tiles[rows],
            self.accounts[rows],
            self.used[rows],
            self.unfinished[rows],
            self.runs[rows],
            self.trails[rows],
        )


def _joined(parts: Sequence[Partials]) -> Partials:
    """All rows, each chain once."""
    together = Partials(
        np.concatenate([p.tiles for p in parts]),
        np.concatenate([p.accounts for p in parts]),
        np.concatenate([p.used for p in parts]),
        np.concatenate([p.unfinished for p in parts]),
        np.concatenate([p.runs for p in parts]),
        np.concatenate([p.trails for p in parts]),
    )
    _, first = np.unique(together.trails, axis=0, return_index=True)
    return together.pick(np.sort(first))


@dataclass(frozen=True, kw_only=True)
class Hunt:
    """What a search for chains is asked: values below `below`, for at most `budget` candidates, and
    with at most `width` rows per stage if it need not be complete."""

    below: float
    budget: int
    width: int | None = None


@dataclass(frozen=True, eq=False)
class Catch:
    """What a search found: chains with their relaxed values, best first; `least` is the best value.

    If `complete`, no chain has a lower relaxed value than `least`, or than what was asked for.
    """

    complete: bool
    least: float
    trails: tuple[tuple[float, Ints], ...]
    spent: int
    """Candidates that it took."""


@dataclass(frozen=True, eq=False)
class Quarry:
    """A relaxed problem with what the search needs to know about its memories and ports."""

    ground: Ground

    @property
    def relaxation(self) -> Relaxation:
        """The relaxed problem."""
        return self.ground.relaxation

    @cached_property
    def contested(self) -> tuple[int, ...]:
        """Memories that some combination of possible cuts overfills."""
        room = self.relaxation.room
        most = np.zeros(room.sizes.size)
        for operand, shelves in enumerate(room.shelves):
            for level, shelf in enumerate(shelves):
                inside = self._mask(operand, level)
                most[shelf.memory] += float(np.max(shelf.wide[inside], initial=0.0))
        return tuple(int(m) for m in np.flatnonzero(most > room.sizes))

    def _mask(self, operand: int, level: int) -> Bools:
        for cut, mask in zip(
            self.relaxation.tables.cuts[operand], self.relaxation.possible[operand], strict=True
        ):
            if cut.arch == level + 1:
                return mask
        whole = np.zeros(self.relaxation.tables.lattice.size, dtype=np.bool_)
        whole[-1] = True
        return whole

    @cached_property
    def sizes(self) -> Floats:
        """Bits of the contested memories."""
        return self.relaxation.room.sizes[list(self.contested)]

    @cached_property
    def tops(self) -> tuple[int | None, ...]:
        """Per operand the number of its top memory among the contested ones."""
        return tuple(self._slot(shelves[-1].memory) for shelves in self.relaxation.room.shelves)

    def _slot(self, memory: int) -> int | None:
        return self.contested.index(memory) if memory in self.contested else None

    @cached_property
    def still(self) -> Bools:
        """Which loops leave which operand as it is, (operands, axes)."""
        nest, lattice = self.relaxation.setup.nest, self.relaxation.tables.lattice
        return np.array(
            [[name in nest.irrelevant(o) for name, _ in lattice.axes] for o in nest.operands],
            dtype=np.bool_,
        ).reshape(len(nest.operands), len(lattice.axes))

    @cached_property
    def most_fill(self) -> Completions | None:
        """The most that completions can still add to each port's fill, negated."""
        columns = self.relaxation.columns
        if not columns.ports:
            return None
        weights = np.zeros((columns.count, len(columns.ports)))
        for i, port in enumerate(columns.ports):
            weights[columns.fill(port), i] = -1.0
        ends = np.array(
            [[0.0 if self.relaxation.may_end(s) else np.inf] for s in self.ground.stages]
        )
        spread = np.repeat(ends, len(columns.ports), axis=1)
        modes = Modes(weights, np.zeros(len(columns.ports)), spread)
        return completions(self.ground, modes, np.isfinite(spread))

    @cached_property
    def patient(self) -> tuple[tuple[Bools, ...], ...]:
        """Per operand and cuts placed: tiles from which on no cut of it can ever have to wait."""
        lattice, op_cycles = self.relaxation.tables.lattice, self.relaxation.setup.op_cycles
        result = []
        for cuts, masks in zip(self.relaxation.tables.cuts, self.relaxation.possible, strict=True):
            ahead = [np.zeros((lattice.size, 1))]
            for cut, mask in zip(reversed(cuts), reversed(masks), strict=True):
                slow = [
                    (c.real > np.ceil(op_cycles)) & (c.periods > 1)
                    for c in cut.crossings
                    if c.group in self.relaxation.columns.ports
                ]
                waits = mask & cut.crowded & np.any([np.zeros_like(mask), *slow], axis=0)
                here = np.minimum(-waits.astype(np.float64)[:, None], ahead[0])
                lattice.spread_inwards(here)
                ahead.insert(0, here)
            result.append(tuple(rows[:, 0] == 0 for rows in ahead))
        return tuple(result)

    def taken(self, place: tuple[int, int], rows: Partials, tiles: Ints) -> Floats:
        """Bits taken of the contested memories once a cut is placed, (N, memories)."""
        operand, j = place
        relaxation = self.relaxation
        cut = relaxation.tables.cuts[operand][j]
        used = rows.used.copy()
        if cut.arch > 0:
            shelf = relaxation.room.shelves[operand][cut.arch - 1]
            slot = self._slot(shelf.memory)
            if slot is not None:
                wide = rows.unfinished if operand == 0 else np.True_
                used[:, slot] += np.where(wide, shelf.wide[tiles], shelf.narrow[tiles])
        top = self.tops[operand]
        if operand == 0 and j == relaxation.depths[0] - 1 and top is not None:
            shelf = relaxation.room.shelves[0][-1]
            open_sums = relaxation.room.unfinished[tiles]
            used[:, top] += np.where(open_sums, shelf.wide[-1], shelf.narrow[-1])
        return used

    def start(self) -> Partials:
        """The chain without cuts."""
        relaxation = self.relaxation
        used = np.zeros((1, len(self.contested)))
        unfinished = relaxation.room.unfinished[:1]
        for operand, top in enumerate(self.tops):
            shelf = relaxation.room.shelves[operand][-1]
            if top is not None and (operand > 0 or relaxation.depths[0] == 0):
                bits = shelf.wide if operand > 0 or unfinished[0] else shelf.narrow
                used[0, top] += bits[-1]
        whole = relaxation.tables.lattice.size - 1
        return Partials(
            np.zeros(1, dtype=np.int64),
            relaxation.base[None].copy(),
            used,
            unfinished.copy(),
            np.ones((1, len(relaxation.depths))),
            np.full((1, sum(relaxation.depths)), whole, dtype=np.int64),
        )


def hunt(quarry: Quarry, judge: Judge, asked: Hunt) -> Catch:
    """Find the chains of least relaxed value."""
    ground = quarry.ground
    waiting_rows: list[list[Partials]] = [[] for _ in ground.stages]
    waiting_rows[0].append(quarry.start())
    below, spent, complete = asked.below, 0, asked.width is None
    trails: list[tuple[float, Ints]] = []
    for number, stage in enumerate(ground.stages):
        if not waiting_rows[number]:
            continue
        here = _joined(waiting_rows[number])
        waiting_rows[number].clear()
        here = _survivors(quarry, judge, number, here, replace(asked, below=below))
        found = _ended(quarry, judge, number, here)
        trails += [entry for entry in found if entry[0] < below]
        # Values equal to the best stay in play: the model may treat one of them better.
        below = min(below, *(v * (1 + 1e-12) for v, _ in trails)) if trails else below
        spent += _KEPT * len(here.tiles)
        for operand, following in ground.steps(stage):
            rest = replace(asked, below=below, budget=asked.budget - spent)
            grown = _extended(quarry, judge, (operand, following), here, rest)
            waiting_rows[following] += grown
            spent += sum(len(part.tiles) for part in grown) // _MADE
            if spent > asked.budget:
                least = min((v for v, _ in trails), default=np.inf)
                return Catch(False, least, _best_trails(trails), spent)
    return Catch(complete, min((v for v, _ in trails), default=np.inf), _best_trails(trails), spent)


def _best_trails(trails: list[tuple[float, Ints]]) -> tuple[tuple[float, Ints], ...]:
    return tuple(sorted(trails, key=lambda entry: (entry[0], tuple(entry[1]))))[:64]


def _survivors(quarry: Quarry, judge: Judge, number: int, here: Partials, asked: Hunt) -> Partials:
    """Rows that may lead below the value asked for and that no other row makes superfluous."""
    bounds = here.accounts @ judge.found.weights + judge.found.constants
    values = bounds + judge.found.reach[number][here.tiles]
    least = judge.least(values)
    good = np.flatnonzero(least < asked.below)
    lattice = quarry.relaxation.tables.lattice
    order = good[np.lexsort((least[good], lattice.iterations[here.tiles[good]]))]
    here = here.pick(order)
    if len(order) > 1:
        kept = undominated(_compared(quarry, judge.goal, number, here))
        here, order = here.pick(kept), order[kept]
    if asked.width is not None and len(order) > asked.width:
        here = here.pick(_promising(least[order], values[order], asked.width))
    return here


def _promising(least: Floats, values: Floats, width: int) -> Ints:
    """The best rows, in their order; of equally good ones those that are good in every respect."""
    every = np.minimum(values, 1e150).mean(axis=1)
    return np.sort(np.lexsort((every, least))[:width])


def _compared(quarry: Quarry, goal: Goal, number: int, here: Partials) -> Rows:
    """What decides whether one partial chain makes another superfluous."""
    relaxation, columns = quarry.relaxation, quarry.relaxation.columns
    stage = quarry.ground.stages[number]
    costs = [here.unfinished[:, None].astype(np.float64), here.used]
    if goal.counts_energy:
        costs.append(here.accounts[:, :1])
    late = np.zeros((len(here.tiles), 0))
    fill, loads = late, late
    operands: list[int] = []
    if goal.counts_time:
        ending = [columns.first(o) for o, d in enumerate(relaxation.depths) if stage[o] < d]
        costs.append(here.accounts[:, [*(columns.steady(p) for p in columns.hiding), *ending]])
        late = here.accounts[:, [columns.overrun(p) for p in columns.ports]]
        fill = here.accounts[:, [columns.fill(p) for p in columns.ports]]
        if quarry.most_fill is not None:
            # Fill that no completion can raise to the limit is as good as none.
            rise = quarry.most_fill.reach[number][here.tiles]
            fill = np.maximum(fill - relaxation.port_cycles, rise)
        loads = here.accounts @ _load_sums(relaxation)
        operands = [o for o, d in enumerate(relaxation.depths) if stage[o] < d]
    runs = here.runs.copy()
    for operand in operands:
        runs[quarry.patient[operand][stage[operand]][here.tiles], operand] = 0.0
    return Rows(
        lattice=relaxation.tables.lattice,
        tiles=here.tiles,
        costs=np.concatenate(costs, axis=1),
        late=late,
        fill=fill,
        loads=loads,
        runs=runs[:, operands],
        still=quarry.still[operands],
    )


def _load_sums(relaxation: Relaxation) -> Floats:
    """Sums of load columns of which the loading time is always one."""
    columns = relaxation.columns
    apart = [columns.load(i, together=False) for i in range(columns.inputs)]
    both = [columns.load(i, together=True) for i in range(columns.inputs)]
    sums = [[apart[0]]]
    if columns.inputs > 1:
        sums = [
            [*both[:2], apart[1]],
            [*both[:2], apart[0]],
            [both[0], apart[0]],
            [both[1], apart[1]],
        ]
    weights = np.zeros((columns.count, len(sums)))
    for i, members in enumerate(sums):
        weights[[*members, columns.store], i] = 1.0
    return weights


def _ended(quarry: Quarry, judge: Judge, number: int, here: Partials) -> list[tuple[float, Ints]]:
    """Chains that end here, all cuts that are left at the whole nest, with their values."""
    relaxation, stage = quarry.relaxation, quarry.ground.stages[number]
    if not here.tiles.size or not np.isfinite(judge.found.ends[number]).any():
        return []
    whole = np.full(len(here.tiles), relaxation.tables.lattice.size - 1)
    rows = here
    for operand, done in enumerate(stage):
        for j in range(done, relaxation.depths[operand]):
            rows = replace(
                rows,
                accounts=rows.accounts + relaxation.adds[operand][j][-1],
                used=quarry.taken((operand, j), rows, whole),
                unfinished=rows.unfinished & (operand > 0),
            )
    energy = rows.accounts[:, 0]
    time = np.zeros_like(energy)
    if judge.goal.counts_time:
        time = time_bound(relaxation, stage, rows.accounts)
    value = np.where(
        (rows.used <= quarry.sizes).all(axis=1), judge.goal.value(time, energy), np.inf
    )
    best = np.argsort(value, kind="stable")[:64]
    return [(float(value[i]), rows.trails[i]) for i in best if np.isfinite(value[i])]


def _extended(
    quarry: Quarry, judge: Judge, step: tuple[int, int], here: Partials, asked: Hunt
) -> list[Partials]:
    """All rows with the next cut of an operand placed; few more than the budget if too many."""
    operand, following = step
    j = quarry.ground.stages[following][operand] - 1
    ahead = judge.found.steps[operand][j] + judge.found.reach[following]
    tiles = np.flatnonzero(np.isfinite(ahead).any(axis=1))
    ahead = ahead[tiles]
    if not tiles.size or not here.tiles.size:
        return []
    bounds = here.accounts @ judge.found.weights + judge.found.constants
    lattice = quarry.relaxation.tables.lattice
    grown: list[Partials] = []
    count = 0
    block = max(1, _CELLS // (tiles.size * ahead.shape[1]))
    for begin in range(0, len(here.tiles), block):
        rows = np.arange(begin, min(begin + block, len(here.tiles)))
        inner, outer = np.nonzero(lattice.around_each(here.tiles[rows], tiles))
        values = bounds[rows[inner]] + ahead[outer]
        least = judge.least(values)
        good = np.flatnonzero(least < asked.below)
        if asked.width is not None and good.size > asked.width:
            good = good[_promising(least[good], values[good], asked.width)]
        part = _placed(quarry, (operand, j), here.pick(rows[inner[good]]), tiles[outer[good]])
        grown.append(part)
        count += len(part.tiles)
        if count // _MADE > asked.budget:
            break
    return grown


def _placed(quarry: Quarry, place: tuple[int, int], rows: Partials, tiles: Ints) -> Partials:
    """Rows with a cut placed; those that overfill a memory are left out."""
    relaxation = quarry.relaxation
    operand, j = place
    used = quarry.taken(place, rows, tiles)
    fitting = np.flatnonzero((used <= quarry.sizes).all(axis=1))
    rows, tiles, used = rows.pick(fitting), tiles[fitting], used[fitting]
    accounts = rows.accounts + relaxation.adds[operand][j][tiles]
    runs = _runs(quarry, rows, tiles)
    if relaxation.columns.ports:
        late, growth = waiting(relaxation, place, tiles, runs[:, operand])
        accounts[late] += growth
    if relaxation.tables.cuts[operand][j].arch > 0:
        runs[:, operand] = 1.0
    trails = rows.trails.copy()
    trails[:, sum(relaxation.depths[:operand]) + j] = tiles
    unfinished = relaxation.room.unfinished[tiles] if operand == 0 else rows.unfinished
    return Partials(tiles, accounts, used, unfinished, runs, trails)


def _runs(quarry: Quarry, rows: Partials, tiles: Ints) -> Floats:
    """Iterations at the outer end of a chain that surely leave each operand as it is."""
    lattice = quarry.relaxation.tables.lattice
    added = lattice.exponents[:, tiles] > lattice.exponents[:, rows.tiles]
    ratio = lattice.iterations[tiles] / lattice.iterations[rows.tiles]
    runs = np.ones_like(rows.runs)
    for operand, still in enumerate(quarry.still):
        unmoved = ~added[~still].any(axis=0)
        runs[:, operand] = np.where(unmoved, rows.runs[:, operand] * ratio, 1.0)
    return runs


def stage_of(relaxation: Relaxation, trail: Ints) -> Stage:
    """How many cuts of a complete chain lie inside the whole nest, per operand."""
    whole = relaxation.tables.lattice.size - 1
    result, begin = [], 0
    for depth in relaxation.depths:
        result.append(int((trail[begin : begin + depth] != whole).sum()))
        begin += depth
    return tuple(result)

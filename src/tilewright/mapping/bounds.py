"""Lower bounds on how well a partial chain of cuts can be completed, for every tile and stage.

A *mode* is a weighted sum of an account that no complete chain's cost is below. For one weighted
sum the best completion follows exactly by dynamic programming over stages and tiles, outermost
first; several modes together, and mixtures of them, bound the true cost closely.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import ceil

import numpy as np

from tilewright.mapping.batch import Bools, Floats, Ints
from tilewright.mapping.relaxation import Relaxation, Stage


@dataclass(frozen=True, eq=False)
class Modes:
    """Bounds on one cost: `account @ weights + constants + ends[stage]` of a complete chain."""

    weights: Floats
    constants: Floats
    ends: Floats
    """What the cuts at the whole nest add, (stages, modes); infinite where a chain cannot end."""
    families: int = 1
    """Equal shares of the modes, one after the other, that differ in the loads they count."""

    def mixed(self, shares: Floats) -> "Modes":
        """Mixtures of the modes; `shares` is (modes, mixtures), each column adding up to 1."""
        used = np.where(np.isfinite(self.ends), self.ends, 0.0) @ shares
        ends = np.where(np.isfinite(self.ends[:, :1]), used, np.inf)
        return Modes(self.weights @ shares, self.constants @ shares, ends)


@dataclass(frozen=True, eq=False)
class Ground:
    """Stages in an order in which cuts can be placed, and the relaxed problem they belong to."""

    relaxation: Relaxation

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, those with fewer cuts first."""
        found = product(*(range(depth + 1) for depth in self.relaxation.depths))
        return tuple(sorted(found, key=lambda stage: (sum(stage), stage)))

    @cached_property
    def number(self) -> dict[Stage, int]:
        """Index of every stage."""
        return {stage: i for i, stage in enumerate(self.stages)}

    @cached_property
    def groups(self) -> Ints:
        """Per stage a number that says which operands are moved over their top boundary once."""
        tops = [operand for operand, depth in enumerate(self.relaxation.depths) if depth]
        return np.array(
            [
                sum((stage[o] < self.relaxation.depths[o]) << i for i, o in enumerate(tops))
                for stage in self.stages
            ]
        )

    def steps(self, stage: Stage) -> list[tuple[int, int]]:
        """Operands that have a cut left, each with the index of the stage after placing it."""
        return [
            (operand, self.number[(*stage[:operand], done + 1, *stage[operand + 1 :])])
            for operand, done in enumerate(stage)
            if done < self.relaxation.depths[operand]
        ]


@dataclass(frozen=True, eq=False)
class Completions:
    """The least that completes a chain, by stage, tile and column, and what every cut adds."""

    ground: Ground
    weights: Floats
    constants: Floats
    ends: Floats
    reach: Floats
    """(stages, tiles, columns)."""
    steps: tuple[tuple[Floats, ...], ...]
    """What a cut adds at each tile, (tiles, columns); infinite where it cannot lie."""

    @property
    def roots(self) -> Floats:
        """Bounds on all chains, one for each column."""
        base = self.ground.relaxation.base @ self.weights + self.constants
        total: Floats = base + self.reach[0, 0]
        return total

    def trace(self, column: int) -> tuple[Ints, int]:
        """The best chain of one column: a tile for every cut, and the number of its last stage."""
        relaxation = self.ground.relaxation
        whole = relaxation.tables.lattice.size - 1
        trail = [[whole] * depth for depth in relaxation.depths]
        number, tile = 0, 0
        while True:
            value = self.reach[number, tile, column]
            if self.ends[number, column] <= value:
                return np.array([t for tiles in trail for t in tiles], dtype=np.int64), number
            around = relaxation.tables.lattice.around(np.array([tile]))[0]
            stage = self.ground.stages[number]
            options = []
            for operand, following in self.ground.steps(stage):
                costs = (
                    self.steps[operand][stage[operand]][:, column]
                    + self.reach[following, :, column]
                )
                best = int(np.argmin(np.where(around, costs, np.inf)))
                options.append((costs[best], operand, following, best))
            _, operand, number, tile = min(options)
            trail[operand][stage[operand]] = tile


def completions(ground: Ground, modes: Modes, may_end: Bools) -> Completions:
    """The best completions for each mode; `may_end` (stages, modes) says where a chain may end."""
    relaxation = ground.relaxation
    lattice = relaxation.tables.lattice
    steps = []
    for adds, possible in zip(relaxation.adds, relaxation.possible, strict=True):
        mine = []
        for add, mask in zip(adds, possible, strict=True):
            costs = np.where(mask[:, None], add @ modes.weights, np.inf)
            costs[-1] = np.inf
            mine.append(costs)
        steps.append(tuple(mine))
    ends = np.where(may_end, modes.ends, np.inf)
    reach = np.empty((len(ground.stages), lattice.size, modes.constants.size))
    for number in range(len(ground.stages) - 1, -1, -1):
        stage, here = ground.stages[number], reach[number]
        here[:] = np.inf
        for operand, following in ground.steps(stage):
            np.minimum(here, steps[operand][stage[operand]] + reach[following], out=here)
        lattice.spread_inwards(here)
        np.minimum(here, ends[number], out=here)
    return Completions(ground, modes.weights, modes.constants, ends, reach, tuple(steps))


def energy_mode(ground: Ground) -> Modes:
    """The only mode of energy; it is exact."""
    relaxation = ground.relaxation
    weights = np.zeros((relaxation.columns.count, 1))
    weights[0] = 1.0
    ends = [
        sum(
            float(add[-1, 0])
            for done, adds in zip(stage, relaxation.adds, strict=True)
            for add in adds[done:]
        )
        if relaxation.may_end(stage)
        else np.inf
        for stage in ground.stages
    ]
    return Modes(weights, np.zeros(1), np.array(ends)[:, None])


def time_modes(ground: Ground) -> Modes:
    """Modes of time: for every port that may matter and every way of counting loads."""
    relaxation = ground.relaxation
    columns = relaxation.columns
    weights, constants, ends = [], [], []
    shades = [_Shade(relaxation, stage) for stage in ground.stages]
    may_end = [relaxation.may_end(stage) for stage in ground.stages]
    for path in _paths(relaxation):
        for kind, port in _kinds(relaxation):
            row = np.zeros(columns.count)
            row[list(path)] = 1.0
            constant = relaxation.run_cycles
            if kind in ("late", "busy"):
                row[columns.overrun(port)] = 1.0
            if kind == "busy":
                row[columns.fill(port)] = 1.0
                constant -= relaxation.port_cycles
            if kind == "hide":
                work = ceil(relaxation.tables.compute_cycles)
                row[columns.steady(port)] = work / relaxation.width(port)
                row[columns.begun(port)] = -1.0
                constant -= work
            weights.append(row)
            constants.append(constant)
            ends.append(
                [
                    shade.least(path, kind, port) if end else np.inf
                    for shade, end in zip(shades, may_end, strict=True)
                ]
            )
    families = len(_paths(relaxation))
    return Modes(np.array(weights).T, np.array(constants), np.array(ends).T, families)


def _paths(relaxation: Relaxation) -> list[tuple[int, ...]]:
    """Sets of load columns whose sum is never above the loading time."""
    columns = relaxation.columns
    pairs = [
        (columns.load(i, together=False), columns.load(i, together=True), columns.store)
        for i in range(min(columns.inputs, 2))
    ]
    if columns.inputs == 1:
        return [(pairs[0][0], columns.store)]
    both = (pairs[0][1], pairs[1][1], columns.store)
    counted = {load.column for mine in relaxation.loads for load in mine if load is not None}
    return [*pairs, both] if counted & set(both[:2]) else list(pairs)


def _kinds(relaxation: Relaxation) -> list[tuple[str, int]]:
    """What a mode counts besides loads.

    `late` and `busy`: cycles by which a port holds up the array, because single transfers or all
    of them take too long. `hide`: all that a port has to move has to fit into the time there is.
    `hide` needs whole bits a cycle that are not rounded up.
    """
    ports = relaxation.columns.ports
    several = [p for p in ports if len(relaxation.tables.groups[p].rows) > 1]
    hiding = relaxation.columns.hiding if relaxation.setup.op_cycles == 1 else ()
    return [
        ("free", -1),
        *(("late", port) for port in ports),
        *(("busy", port) for port in several),
        *(("hide", port) for port in hiding),
    ]


class _Shade:
    """The least cycles of what is loaded once if a stage is the last one."""

    def __init__(self, relaxation: Relaxation, stage: Stage) -> None:
        self.relaxation = relaxation
        self.work = ceil(relaxation.tables.compute_cycles)
        self.once = relaxation.once(stage)
        first = _first_bits(relaxation, stage)
        self.floors = [
            [self._floor(link, first[load.operand]) for link in load.links] for load in self.once
        ]

    def _floor(self, link: tuple[int, int, float], first_bits: float) -> float:
        port, _, cycles = link
        if port < 0:
            return cycles
        return min(cycles, float(ceil(first_bits / self.relaxation.width(port))))

    def least(self, path: Sequence[int], kind: str, port: int) -> float:
        """Cycles along a path; `free` lets the run be as long as it likes."""
        if kind == "hide":
            return sum(self._through(path, port)[:2])
        floor = sum(
            max(floors)
            for load, floors in zip(self.once, self.floors, strict=True)
            if load.column in path
        )
        if kind != "free":
            return floor
        best = floor
        for hiding in self.relaxation.columns.hiding:
            other, cycles, shortest = self._through(path, hiding)
            best = max(best, other + max(shortest, cycles - self.work))
        return best

    def _through(self, path: Sequence[int], port: int) -> tuple[float, float, float]:
        """Least cycles of loads by other ports; cycles by this one; and the least of those."""
        other = cycles = shortest = 0.0
        for load, floors in zip(self.once, self.floors, strict=True):
            mine = [j for j, link in enumerate(load.links) if link[0] == port]
            if load.column not in path:
                continue
            if mine:
                cycles += sum(load.links[j][2] for j in mine)
                shortest += sum(floors[j] for j in mine)
            else:
                other += max(floors)
        return other, cycles, shortest


def _first_bits(relaxation: Relaxation, stage: Stage) -> list[float]:
    """Per operand the least bits of its lowest memory's first tile."""
    result = []
    for operand, cuts in enumerate(relaxation.tables.cuts):
        found = 0.0
        for j, cut in enumerate(cuts):
            if cut.arch == 1:
                placed = stage[operand] > j
                inside = relaxation.possible[operand][j].copy()
                inside[-1] = False
                bits = cut.first_bits[inside] if placed else cut.first_bits[-1:]
                found = float(np.min(bits, initial=cut.first_bits[-1]))
        result.append(found)
    return result

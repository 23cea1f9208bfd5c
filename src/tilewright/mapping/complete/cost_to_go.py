"""Cost to go: the least that any completion adds to a partial chain, by dynamic programming.

A linear function of a chain's totals is a sum over its cuts, so its least completion follows
exactly from the stages with more cuts and the enclosing tiles:

    least_ahead[s, t] = min(ends[s], min over cuts s -> s' and tiles t' enclosing t of
                                     step[s -> s', t'] + least_ahead[s', t'])
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from tilewright.mapping.batch import Floats, Ints
from tilewright.mapping.complete.relaxation import Relaxation, Stage


@dataclass(frozen=True, eq=False)
class LinearBounds:
    """Lower bounds on the cost of a complete chain, a column each.

    A bound is `totals @ weights + constants + ends[stage]`.
    """

    weights: Floats
    constants: Floats
    ends: Floats
    """What the cuts at the whole nest add, (stages, columns); infinite where a chain cannot end."""
    load_cases: int = 1
    """Number of equal blocks of columns; they differ in the loads that they count."""

    def combined(self, multipliers: Floats) -> "LinearBounds":
        """Convex combinations; `multipliers` is (columns, combinations), with sums of 1."""
        used = np.where(np.isfinite(self.ends), self.ends, 0.0) @ multipliers
        ends = np.where(np.isfinite(self.ends[:, :1]), used, np.inf)
        return LinearBounds(self.weights @ multipliers, self.constants @ multipliers, ends)


@dataclass(frozen=True, eq=False)
class StageGraph:
    """The stages of a relaxed problem, in an order in which cuts can be placed."""

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
    def steps(self) -> dict[Stage, tuple[tuple[int, int], ...]]:
        """Per stage, operands that have a cut left, and the index of the stage after placing it."""
        return {
            stage: tuple(
                (operand, self.number[(*stage[:operand], done + 1, *stage[operand + 1 :])])
                for operand, done in enumerate(stage)
                if done < self.relaxation.depths[operand]
            )
            for stage in self.stages
        }

    @cached_property
    def most_busy_cycles(self) -> Floats:
        """The most that completions can add to each port's busy cycles, (stages, tiles, ports)."""
        relaxation, columns = self.relaxation, self.relaxation.columns
        weights = np.zeros((columns.count, len(columns.ports)))
        for i, port in enumerate(columns.ports):
            weights[columns.busy_cycles(port), i] = -1.0
        ends = [0.0 if relaxation.may_end(stage) else np.inf for stage in self.stages]
        spread = np.repeat(np.array(ends)[:, None], len(columns.ports), axis=1)
        negated = cost_to_go(self, LinearBounds(weights, np.zeros(len(columns.ports)), spread))
        return -negated.least_ahead


@dataclass(frozen=True, eq=False)
class CostToGo:
    """The least that completes a partial chain, by stage, outermost tile and column."""

    graph: StageGraph
    linear: LinearBounds
    least_ahead: Floats
    """(stages, tiles, columns)."""
    steps: tuple[tuple[Floats, ...], ...]
    """What a cut adds at each tile, (tiles, columns); infinite where it cannot lie."""

    @property
    def root_bounds(self) -> Floats:
        """Bounds on all chains, one for each column."""
        start = self.graph.relaxation.initial_totals @ self.linear.weights
        bounds: Floats = start + self.linear.constants + self.least_ahead[0, 0]
        return bounds

    def cheapest_chain(self, column: int) -> tuple[Ints, int]:
        """The best chain of one column: a tile for every cut, and the number of its last stage."""
        relaxation = self.graph.relaxation
        whole = relaxation.tables.lattice.size - 1
        chain = [[whole] * depth for depth in relaxation.depths]
        number, tile = 0, 0
        while True:
            value = self.least_ahead[number, tile, column]
            if self.linear.ends[number, column] <= value:
                return np.array([t for tiles in chain for t in tiles], dtype=np.int64), number
            enclosing = relaxation.tables.lattice.enclosing(np.array([tile]))[0]
            stage = self.graph.stages[number]
            options = []
            for operand, following in self.graph.steps[stage]:
                costs = (
                    self.steps[operand][stage[operand]][:, column]
                    + self.least_ahead[following, :, column]
                )
                best = int(np.argmin(np.where(enclosing, costs, np.inf)))
                options.append((costs[best], operand, following, best))
            _, operand, number, tile = min(options)
            chain[operand][stage[operand]] = tile


def cost_to_go(graph: StageGraph, linear: LinearBounds) -> CostToGo:
    """The least completions of every partial chain under each of the bounds."""
    relaxation = graph.relaxation
    lattice = relaxation.tables.lattice
    steps = []
    for increments, possible in zip(relaxation.increments, relaxation.possible, strict=True):
        mine = []
        for increment, mask in zip(increments, possible, strict=True):
            costs = np.where(mask[:, None], increment @ linear.weights, np.inf)
            costs[-1] = np.inf
            mine.append(costs)
        steps.append(tuple(mine))
    least_ahead = np.empty((len(graph.stages), lattice.size, linear.constants.size))
    for number in range(len(graph.stages) - 1, -1, -1):
        stage, here = graph.stages[number], least_ahead[number]
        here[:] = np.inf
        for operand, following in graph.steps[stage]:
            np.minimum(here, steps[operand][stage[operand]] + least_ahead[following], out=here)
        lattice.minimise_over_enclosing(here)
        np.minimum(here, linear.ends[number], out=here)
    return CostToGo(graph, linear, least_ahead, tuple(steps))

"""Bounds of nodes: what the search minimises, and the least value behind a partial chain.

The bound of a node is the largest of several linear bounds (`dual`, `lower_bounds`), each the
node's own totals plus the cost to go.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tilewright.mapping.batch import Floats, Ints
from tilewright.mapping.complete.cost_to_go import CostToGo, LinearBounds, StageGraph, cost_to_go
from tilewright.mapping.complete.dual import DualSolution, solve_dual
from tilewright.mapping.complete.lower_bounds import energy_bounds, latency_bounds

_FAR = 1e150
"""Stands for what cannot be reached; its square is still finite."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """What is minimised: time, energy or their product; of the first two the other may be limited.

    `slope` is the energy that is worth one cycle where both count.
    """

    kind: Literal["time", "energy", "product"]
    limit: float = np.inf
    slope: float = 1.0

    @property
    def counts_time(self) -> bool:
        """Whether time matters at all."""
        return self.kind != "energy" or self.limit < np.inf

    @property
    def bounds_time(self) -> bool:
        """Whether bounds on time help; limited energy decides more sharply than they do."""
        return self.counts_time and not (self.kind == "time" and self.limit < np.inf)

    @property
    def counts_energy(self) -> bool:
        """Whether energy matters at all."""
        return self.kind != "time" or self.limit < np.inf

    def value(self, time: Floats, energy: Floats) -> Floats:
        """The value of costs, infinite beyond the limit."""
        match self.kind:
            case "time":
                return np.where(energy <= self.limit, time, np.inf)
            case "energy":
                return np.where(time <= self.limit, energy, np.inf)
            case "product":
                return time * energy

    def least(self, time: Floats, energy: Floats, blend: Floats) -> Floats:
        """The least product if time, energy and energy + slope x time are at least these."""
        # Along the line the product is least at one of its ends.
        steep = time * np.maximum(energy, blend - self.slope * time)
        flat = energy * np.maximum(time, (blend - energy) / self.slope)
        return np.minimum(steep, flat)


@dataclass(frozen=True, eq=False)
class NodeBounds:
    """Lower bounds of nodes."""

    criterion: Criterion
    ahead: CostToGo
    columns: tuple[int, ...]
    """How many of its columns are bounds on energy, on time, and on energy + slope x time."""
    chains: tuple[Ints, ...] = ()
    """Chains found while the dual was solved."""

    def so_far(self, totals: Floats) -> Floats:
        """What nodes have added up to under each linear bound, (N, columns)."""
        result: Floats = totals @ self.ahead.linear.weights + self.ahead.linear.constants
        return result

    def least(self, values: Floats) -> Floats:
        """The least value behind nodes whose linear bounds are given, (N, columns)."""
        table = np.minimum(values, _FAR)
        energies, times = self.columns[0], self.columns[1]
        energy = table[:, :energies].max(axis=1, initial=0.0)
        time = table[:, energies : energies + times].max(axis=1, initial=0.0)
        if self.criterion.kind == "product":
            value = self.criterion.least(time, energy, table[:, energies + times :].max(axis=1))
        else:
            value = self.criterion.value(time, energy)
        least: Floats = np.where(table[:, 0] < _FAR, value, np.inf)
        return least

    @property
    def bound(self) -> float:
        """The least value of any chain."""
        return float(self.least(self.ahead.root_bounds[None])[0])


@dataclass(frozen=True, eq=False)
class LatencyDual:
    """Linear bounds on latency and their best combination."""

    linear: LinearBounds
    solution: DualSolution

    def least(self, criterion: Criterion) -> float:
        """The least value of any chain, as far as latency alone says."""
        time = np.array([min(self.solution.bound, _FAR)])
        return float(criterion.value(time, np.zeros(1))[0])


def latency_dual(graph: StageGraph, enough: float) -> LatencyDual:
    """Bounds on latency that try to show that it is at least `enough`."""
    linear = latency_bounds(graph)
    return LatencyDual(linear, solve_dual(graph, linear, enough))


def node_bounds_of(graph: StageGraph, criterion: Criterion, dual: LatencyDual | None) -> NodeBounds:
    """Bounds for a criterion; `dual` is for those in which time decides or is limited."""
    energy = energy_bounds(graph)
    if dual is None:
        ahead = cost_to_go(graph, energy)
        possible = ahead.root_bounds[0] < np.inf
        return NodeBounds(
            criterion, ahead, (1, 0), (ahead.cheapest_chain(0)[0],) if possible else ()
        )
    parts = [_chosen_bounds(dual.linear, dual.solution)]
    chains = dual.solution.chains
    if criterion.kind == "product":
        weighted = _weighted_sum(dual.linear, energy, criterion.slope)
        solution = solve_dual(graph, weighted, np.inf)
        parts.append(_chosen_bounds(weighted, solution))
        chains = (*chains, *solution.chains)
    columns = [part.constants.size for part in parts]
    if criterion.counts_energy:
        parts.insert(0, energy)
    ahead = cost_to_go(graph, _side_by_side(parts))
    return NodeBounds(criterion, ahead, (int(criterion.counts_energy), *columns), chains)


def _weighted_sum(times: LinearBounds, energy: LinearBounds, slope: float) -> LinearBounds:
    """Bounds on energy + slope x time."""
    return LinearBounds(
        slope * times.weights + energy.weights,
        slope * times.constants + energy.constants,
        slope * times.ends + energy.ends,
        times.load_cases,
    )


def _chosen_bounds(linear: LinearBounds, solution: DualSolution) -> LinearBounds:
    """The combination, the bounds of its weightiest load case, and two weighty others."""
    multipliers = solution.multipliers
    blocks = np.arange(multipliers.size).reshape(linear.load_cases, -1)
    mine = blocks[int(np.argmax(multipliers[blocks].sum(axis=1)))].tolist()
    others = [m for m in np.argsort(-multipliers, kind="stable") if m not in mine]
    chosen = np.eye(multipliers.size)[:, [*mine, *others[:2]]]
    return linear.combined(np.column_stack([multipliers, chosen]))


def _side_by_side(parts: Sequence[LinearBounds]) -> LinearBounds:
    return LinearBounds(
        np.concatenate([part.weights for part in parts], axis=1),
        np.concatenate([part.constants for part in parts]),
        np.concatenate([part.ends for part in parts], axis=1),
    )

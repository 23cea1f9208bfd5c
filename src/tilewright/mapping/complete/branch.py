"""Branch and bound over chains of cuts.

The search goes stage by stage, all nodes of a stage at once. A node is dropped if its lower bound
is not below the least value known, or if another node dominates it. The others are completed by
cuts at the whole nest, and branched: every operand's next cut at every enclosing tile.
"""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapping.batch import Floats, Ints
from tilewright.mapping.complete.cost_to_go import StageGraph
from tilewright.mapping.complete.dominance import comparison_of, undominated
from tilewright.mapping.complete.latency import latency_lower_bound
from tilewright.mapping.complete.node_bounds import NodeBounds
from tilewright.mapping.complete.nodes import Nodes, merged, root, with_cut

_CELLS = 1 << 21
"""Entries of the arrays that are made at a time."""

_MADE_PER_CANDIDATE = 8
_CANDIDATES_PER_KEPT = 3
"""Eight nodes made count as one candidate of the budget and one node kept as three, because that
is how their processor time compares with that of a mapping costed."""

_CHAINS = 64
"""Complete chains handed back at most."""


@dataclass(frozen=True, kw_only=True)
class BranchLimits:
    """Only values below `below` are wanted, for at most `budget` candidates.

    With a `width`, a beam search: so many of the best nodes of each stage are branched.
    """

    below: float
    budget: int
    width: int | None = None


@dataclass(frozen=True, eq=False)
class BranchResult:
    """Complete chains with their relaxed values, best first, and the least value.

    If `complete`, no chain has a lower relaxed value than `least`, or than what was wanted.
    """

    complete: bool
    least: float
    chains: tuple[tuple[float, Ints], ...]
    spent: int
    """Candidates of the budget."""


def branch_and_bound(
    graph: StageGraph, node_bounds: NodeBounds, limits: BranchLimits
) -> BranchResult:
    """Find the chains of least relaxed value."""
    open_nodes: list[list[Nodes]] = [[] for _ in graph.stages]
    open_nodes[0].append(root(graph.relaxation))
    below, spent, complete = limits.below, 0, limits.width is None
    chains: list[tuple[float, Ints]] = []
    for number, stage in enumerate(graph.stages):
        if not open_nodes[number]:
            continue
        nodes = merged(open_nodes[number])
        open_nodes[number].clear()
        nodes = _kept(graph, node_bounds, number, nodes, replace(limits, below=below))
        if not nodes.tiles.size:
            continue
        found = _completed(graph, node_bounds, number, nodes)
        chains += [entry for entry in found if entry[0] < below]
        # Values equal to the best stay in play: the model may treat one of them better.
        below = min(below, *(v * (1 + 1e-12) for v, _ in chains)) if chains else below
        spent += _CANDIDATES_PER_KEPT * len(nodes.tiles)
        for operand, following in graph.steps[stage]:
            rest = replace(limits, below=below, budget=limits.budget - spent)
            grown = _branched(graph, node_bounds, (operand, following), nodes, rest)
            open_nodes[following] += grown
            spent += sum(len(part.tiles) for part in grown) // _MADE_PER_CANDIDATE
            if spent > limits.budget:
                return _result(False, chains, spent)
    return _result(complete, chains, spent)


def _result(complete: bool, chains: list[tuple[float, Ints]], spent: int) -> BranchResult:
    best = sorted(chains, key=lambda entry: (entry[0], tuple(entry[1])))[:_CHAINS]
    return BranchResult(complete, best[0][0] if best else np.inf, tuple(best), spent)


def _kept(
    graph: StageGraph, node_bounds: NodeBounds, number: int, nodes: Nodes, limits: BranchLimits
) -> Nodes:
    """Nodes whose bound is below the wanted value and that no other node dominates."""
    values = node_bounds.so_far(nodes.totals) + node_bounds.ahead.least_ahead[number][nodes.tiles]
    least = node_bounds.least(values)
    good = np.flatnonzero(least < limits.below)
    lattice = graph.relaxation.tables.lattice
    order = good[np.lexsort((least[good], lattice.iterations[nodes.tiles[good]]))]
    nodes = nodes.pick(order)
    if len(order) > 1:
        kept = undominated(comparison_of(graph, node_bounds.criterion, number, nodes))
        nodes, order = nodes.pick(kept), order[kept]
    if limits.width is not None and len(order) > limits.width:
        nodes = nodes.pick(_most_promising(least[order], values[order], limits.width))
    return nodes


def _most_promising(least: Floats, values: Floats, width: int) -> Ints:
    """The rows of least bound, in their order; of equal ones those whose bounds are least."""
    every = np.minimum(values, 1e150).mean(axis=1)
    return np.sort(np.lexsort((every, least))[:width])


def _completed(
    graph: StageGraph, node_bounds: NodeBounds, number: int, nodes: Nodes
) -> list[tuple[float, Ints]]:
    """Chains whose open cuts all lie at the whole nest, with their relaxed values."""
    relaxation, stage = graph.relaxation, graph.stages[number]
    if not relaxation.may_end(stage):
        return []
    for operand, done in enumerate(stage):
        for cut in range(done, relaxation.depths[operand]):
            whole = np.full(len(nodes.tiles), relaxation.tables.lattice.size - 1)
            nodes = with_cut(relaxation, (operand, cut), nodes, whole)
    energy = nodes.totals[:, 0]
    time = np.zeros_like(energy)
    if node_bounds.criterion.counts_time:
        time = latency_lower_bound(relaxation, stage, nodes.totals)
    value = node_bounds.criterion.value(time, energy)
    best = np.argsort(value, kind="stable")[:_CHAINS]
    return [(float(value[i]), nodes.chains[i]) for i in best if np.isfinite(value[i])]


def _branched(
    graph: StageGraph,
    node_bounds: NodeBounds,
    step: tuple[int, int],
    nodes: Nodes,
    limits: BranchLimits,
) -> list[Nodes]:
    """All nodes with the next cut of an operand placed; few more than the budget if too many."""
    operand, following = step
    number = graph.stages[following][operand] - 1
    ahead = node_bounds.ahead.steps[operand][number] + node_bounds.ahead.least_ahead[following]
    tiles = np.flatnonzero(np.isfinite(ahead).any(axis=1))
    ahead = ahead[tiles]
    if not tiles.size:
        return []
    so_far = node_bounds.so_far(nodes.totals)
    lattice = graph.relaxation.tables.lattice
    grown: list[Nodes] = []
    count = 0
    block = max(1, _CELLS // (tiles.size * ahead.shape[1]))
    for begin in range(0, len(nodes.tiles), block):
        rows = np.arange(begin, min(begin + block, len(nodes.tiles)))
        inner, outer = np.nonzero(lattice.encloses(nodes.tiles[rows], tiles))
        values = so_far[rows[inner]] + ahead[outer]
        least = node_bounds.least(values)
        good = np.flatnonzero(least < limits.below)
        if limits.width is not None and good.size > limits.width:
            good = good[_most_promising(least[good], values[good], limits.width)]
        parents = nodes.pick(rows[inner[good]])
        part = with_cut(graph.relaxation, (operand, number), parents, tiles[outer[good]])
        if part.tiles.size:
            grown.append(part)
        count += len(part.tiles)
        if count // _MADE_PER_CANDIDATE > limits.budget:
            break
    return grown

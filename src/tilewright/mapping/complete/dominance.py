"""Dominance: which nodes another node of the same stage makes superfluous.

A node dominates another if its outermost tile is the same or enclosed by the other's, it takes no
more of any memory, and it cannot come out worse however both are completed. Stalls and loads may be
traded: a node whose ports are busier by some cycles is no slower if its loads are shorter by as
many.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.mapping.batch import Bools, Floats, Ints
from tilewright.mapping.complete.cost_to_go import StageGraph
from tilewright.mapping.complete.node_bounds import Criterion
from tilewright.mapping.complete.nodes import Nodes, reuse_at
from tilewright.mapping.complete.relaxation import Relaxation

_BLOCK = 256
"""Nodes that are compared at a time, and kept nodes that others are compared with at most: the
first ones, which are the strongest."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What is compared, a row per node: less is better in every column.

    `overrun` and `busy_cycles` have a column per port; the loading time is always the largest or
    least of some of the `loads`.
    """

    relaxation: Relaxation
    tiles: Ints
    costs: Floats
    overrun: Floats
    busy_cycles: Floats
    loads: Floats
    reuse: Floats
    """Of every operand; 0 where it does not matter any more."""


def comparison_of(graph: StageGraph, criterion: Criterion, number: int, nodes: Nodes) -> Comparison:
    """What decides between the nodes of a stage, given by its number."""
    relaxation, columns = graph.relaxation, graph.relaxation.columns
    costs = [nodes.unfinished[:, None].astype(np.float64), nodes.used]
    if criterion.counts_energy:
        costs.append(nodes.totals[:, :1])
    overrun = busy_cycles = loads = np.zeros((len(nodes.tiles), 0))
    reuse = np.zeros_like(nodes.reuse)
    if criterion.counts_time:
        stage = graph.stages[number]
        open_operands = [o for o, depth in enumerate(relaxation.depths) if stage[o] < depth]
        steady = [columns.steady(port) for port in columns.hiding]
        costs.append(nodes.totals[:, [*steady, *(columns.first(o) for o in open_operands)]])
        overrun = nodes.totals[:, [columns.overrun(port) for port in columns.ports]]
        busy_cycles = nodes.totals[:, [columns.busy_cycles(port) for port in columns.ports]]
        # What no completion can raise to the limit is as good as nothing.
        most = graph.most_busy_cycles[number][nodes.tiles]
        busy_cycles = np.maximum(busy_cycles - relaxation.port_cycles, -most)
        loads = nodes.totals @ _load_sums(relaxation)
        reuse[:, open_operands] = nodes.reuse[:, open_operands]
    return Comparison(
        relaxation=relaxation,
        tiles=nodes.tiles,
        costs=np.concatenate(costs, axis=1),
        overrun=overrun,
        busy_cycles=busy_cycles,
        loads=loads,
        reuse=reuse,
    )


def _load_sums(relaxation: Relaxation) -> Floats:
    """Weights of the sums of load columns, one of which is the loading time."""
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


def undominated(rows: Comparison) -> Ints:
    """Rows that no earlier row dominates, in their order; the first ones should be strongest."""
    kept = np.zeros(0, dtype=np.int64)
    # A longer load is never made up for, so loads are compared like costs first.
    limits = np.concatenate([rows.loads, rows.costs], axis=1)
    limits = limits[:, (limits != limits[:1]).any(axis=0)]
    for begin in range(0, rows.tiles.size, _BLOCK):
        block = np.arange(begin, min(begin + _BLOCK, rows.tiles.size))
        block = block[~_dominates(rows, limits, kept[:_BLOCK], block).any(axis=0)]
        inside = _dominates(rows, limits, block, block)
        earlier = np.arange(block.size)[:, None] < np.arange(block.size)[None]
        block = block[~(inside & earlier).any(axis=0)]
        kept = np.concatenate([kept, block])
    return kept


def _dominates(rows: Comparison, limits: Floats, first: Ints, second: Ints) -> Bools:
    """Whether a row of `first` (row) dominates one of `second` (column)."""
    result = rows.relaxation.tables.lattice.encloses(rows.tiles[first], rows.tiles[second])
    for column in range(limits.shape[1]):
        result &= limits[first, column][:, None] <= limits[second, column][None]
    if result.any() and rows.overrun.shape[1]:
        result &= _no_slower(rows, first, second)
    a, b = np.nonzero(result)
    good = _no_more_reuse(rows, first[a], second[b])
    result[a[~good], b[~good]] = False
    return result


def _no_slower(rows: Comparison, first: Ints, second: Ints) -> Bools:
    """Whether a row of `first` cannot come out slower than one of `second`."""
    saved = np.full((first.size, second.size), np.inf)
    for loads in rows.loads.T:
        np.minimum(saved, loads[second][None] - loads[first][:, None], out=saved)
    result = np.ones(saved.shape, dtype=np.bool_)
    for overrun, busy_cycles in zip(rows.overrun.T, rows.busy_cycles.T, strict=True):
        delay = np.maximum(overrun[first][:, None] - overrun[second][None], 0.0)
        delay += np.maximum(busy_cycles[first][:, None] - busy_cycles[second][None], 0.0)
        result &= delay <= saved
    return result


def _no_more_reuse(rows: Comparison, first: Ints, second: Ints) -> Bools:
    """Whether the first, taken to the tile of the second, reuses no operand for longer."""
    inner, outer = rows.tiles[first], rows.tiles[second]
    reuse = reuse_at(rows.relaxation, rows.reuse[first], inner, outer)
    limits = rows.reuse[second]
    result: Bools = ((limits == 0) | (reuse <= limits)).all(axis=1)
    return result

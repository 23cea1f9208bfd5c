"""Which partial chains another one makes superfluous.

One chain replaces another if it ends at the same tile or inside it, takes no more of anything, and
cannot come out slower whatever follows. Stalls and loads may be traded: a chain whose ports are more
in use by some cycles is still no slower if its loads are shorter by as many.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.mapping.batch import Bools, Floats, Ints
from tilewright.mapping.tiles import Lattice

_BLOCK = 128
_REFERENCES = 1024
"""Rows that others are compared with, at most: the first ones, which are the strongest."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What is compared, a row per chain: less is better in every column.

    `loads` are sums of which the loading time is one; `late` and `fill` belong to ports; `runs` are
    iterations during which operands stay as they are, 0 where that can do no harm any more, and
    `still` the axes of their loops.
    """

    lattice: Lattice
    tiles: Ints
    costs: Floats
    late: Floats
    fill: Floats
    loads: Floats
    runs: Floats
    still: Bools


def undominated(rows: Rows) -> Ints:
    """Rows that no earlier row replaces, in their order; the first ones should be the strongest."""
    kept = np.zeros(0, dtype=np.int64)
    columns = np.flatnonzero((rows.costs != rows.costs[:1]).any(axis=0))
    for begin in range(0, rows.tiles.size, _BLOCK):
        block = np.arange(begin, min(begin + _BLOCK, rows.tiles.size))
        block = block[~_replaced(rows, columns, kept[:_REFERENCES], block).any(axis=0)]
        inside = _replaced(rows, columns, block, block)
        earlier = np.arange(block.size)[:, None] < np.arange(block.size)[None]
        block = block[~(inside & earlier).any(axis=0)]
        kept = np.concatenate([kept, block])
    return kept


def _replaced(rows: Rows, columns: Ints, first: Ints, second: Ints) -> Bools:
    """Whether a row of `first` (row) replaces one of `second` (column)."""
    result = rows.lattice.around_each(rows.tiles[first], rows.tiles[second])
    for column in columns:
        result &= rows.costs[first, column][:, None] <= rows.costs[second, column][None]
    a, b = np.nonzero(result)
    if not a.size:
        return result
    a_rows, b_rows = first[a], second[b]
    good = _no_slower(rows, a_rows, b_rows)
    a, b = a[good], b[good]
    good = _no_longer_runs(rows, a_rows[good], b_rows[good])
    result[:] = False
    result[a[good], b[good]] = True
    return result


def _no_slower(rows: Rows, first: Ints, second: Ints) -> Bools:
    """Whether the first cannot come out slower than the second, pair by pair."""
    delay = np.zeros(first.size)
    for port in range(rows.late.shape[1]):
        late = rows.late[first, port] - rows.late[second, port]
        fill = rows.fill[first, port] - rows.fill[second, port]
        delay = np.maximum(delay, np.maximum(late, 0.0) + np.maximum(fill, 0.0))
    if rows.loads.shape[1]:
        load = np.full(first.size, -np.inf)
        for column in range(rows.loads.shape[1]):
            load = np.maximum(load, rows.loads[first, column] - rows.loads[second, column])
        delay = delay + load
    result: Bools = delay <= 0
    return result


def _no_longer_runs(rows: Rows, first: Ints, second: Ints) -> Bools:
    """Whether the first, taken to the tile of the second, leaves no operand unmoved for longer."""
    if not rows.runs.shape[1]:
        return np.ones(first.size, dtype=np.bool_)
    lattice = rows.lattice
    inner, outer = rows.tiles[first], rows.tiles[second]
    added = lattice.exponents[:, outer] > lattice.exponents[:, inner]
    ratio = lattice.iterations[outer] / lattice.iterations[inner]
    result = np.ones(first.size, dtype=np.bool_)
    for operand, still in enumerate(rows.still):
        moved = added[~still].any(axis=0)
        run = np.where(moved, 1.0, rows.runs[first, operand] * ratio)
        second_run = rows.runs[second, operand]
        result &= (second_run == 0) | (run <= second_run)
    return result

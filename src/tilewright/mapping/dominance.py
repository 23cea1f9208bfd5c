"""Which partial chains another one makes superfluous.

One chain replaces another if it ends at the same tile or inside it, takes no more of anything, and
cannot come out slower whatever follows. Stalls and loads may be traded: a chain whose ports are
more in use by some cycles is still no slower if its loads are shorter by as many.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.mapping.batch import Bools, Floats, Ints
from tilewright.mapping.tiles import Lattice

_BLOCK = 256
_REFERENCES = 256
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
    # A longer load is never made up for, so loads are compared like costs first.
    limits = np.concatenate([rows.loads, rows.costs], axis=1)
    limits = limits[:, (limits != limits[:1]).any(axis=0)]
    for begin in range(0, rows.tiles.size, _BLOCK):
        block = np.arange(begin, min(begin + _BLOCK, rows.tiles.size))
        for chunk in range(0, min(kept.size, _REFERENCES), _BLOCK):
            references = kept[chunk : chunk + _BLOCK]
            block = block[~_replaced(rows, limits, references, block).any(axis=0)]
        inside = _replaced(rows, limits, block, block)
        earlier = np.arange(block.size)[:, None] < np.arange(block.size)[None]
        block = block[~(inside & earlier).any(axis=0)]
        kept = np.concatenate([kept, block])
    return kept


def _replaced(rows: Rows, limits: Floats, first: Ints, second: Ints) -> Bools:
    """Whether a row of `first` (row) replaces one of `second` (column)."""
    result = rows.lattice.around_each(rows.tiles[first], rows.tiles[second])
    for column in range(limits.shape[1]):
        result &= limits[first, column][:, None] <= limits[second, column][None]
    if result.any() and rows.late.shape[1]:
        result &= _no_slower(rows, first, second)
    a, b = np.nonzero(result)
    good = _no_longer_runs(rows, first[a], second[b])
    result[a[~good], b[~good]] = False
    return result


def _no_slower(rows: Rows, first: Ints, second: Ints) -> Bools:
    """Whether a row of `first` cannot come out slower than one of `second`."""
    saved = np.full((first.size, second.size), np.inf)
    for loads in rows.loads.T:
        np.minimum(saved, loads[second][None] - loads[first][:, None], out=saved)
    result = np.ones(saved.shape, dtype=np.bool_)
    for late, fill in zip(rows.late.T, rows.fill.T, strict=True):
        delay = np.maximum(late[first][:, None] - late[second][None], 0.0)
        delay += np.maximum(fill[first][:, None] - fill[second][None], 0.0)
        result &= delay <= saved
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

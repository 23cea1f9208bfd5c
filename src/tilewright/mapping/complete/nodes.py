"""Nodes of the search: partial chains, and how they grow by one cut.

A node has placed some cuts of every operand, innermost first, and all of them inside its outermost
tile. Nodes are rows of arrays, never objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.mapping.batch import Bools, Floats, Ints
from tilewright.mapping.complete.relaxation import Relaxation, single_buffer_delay


@dataclass(frozen=True, eq=False)
class Nodes:
    """Partial chains of one stage, a row each."""

    tiles: Ints
    """The outermost tile so far."""
    totals: Floats
    used: Floats
    """Bits taken of each memory."""
    unfinished: Bools
    """Whether something is added to the result after its last cut."""
    reuse: Floats
    """Per operand the iterations at the outer end during which it stays the same, at least."""
    chains: Ints
    """A tile for every cut, operand by operand; the whole nest where none is placed yet."""

    def pick(self, rows: Ints | Bools) -> "Nodes":
        """Some of the rows."""
        return Nodes(
            self.tiles[rows],
            self.totals[rows],
            self.used[rows],
            self.unfinished[rows],
            self.reuse[rows],
            self.chains[rows],
        )


def merged(parts: Sequence[Nodes]) -> Nodes:
    """All rows, each chain once; within a part there are no two of the same."""
    if len(parts) == 1:
        return parts[0]
    together = Nodes(
        np.concatenate([p.tiles for p in parts]),
        np.concatenate([p.totals for p in parts]),
        np.concatenate([p.used for p in parts]),
        np.concatenate([p.unfinished for p in parts]),
        np.concatenate([p.reuse for p in parts]),
        np.concatenate([p.chains for p in parts]),
    )
    _, first = np.unique(together.chains, axis=0, return_index=True)
    return together.pick(np.sort(first))


def root(relaxation: Relaxation) -> Nodes:
    """The chain without cuts."""
    capacity = relaxation.capacity
    used = np.zeros((1, capacity.sizes.size))
    unfinished = capacity.unfinished[:1]
    for operand, needs in enumerate(capacity.needs):
        if operand > 0 or relaxation.depths[0] == 0:
            bits = needs[-1].wide if operand > 0 or unfinished[0] else needs[-1].narrow
            used[0, needs[-1].memory] += bits[-1]
    whole = relaxation.tables.lattice.size - 1
    return Nodes(
        np.zeros(1, dtype=np.int64),
        relaxation.initial_totals[None].copy(),
        used,
        unfinished.copy(),
        np.ones((1, len(relaxation.depths))),
        np.full((1, sum(relaxation.depths)), whole, dtype=np.int64),
    )


def with_cut(relaxation: Relaxation, place: tuple[int, int], nodes: Nodes, tiles: Ints) -> Nodes:
    """Nodes with a cut (operand, number) placed at tiles; those that do not fit are left out."""
    operand, number = place
    used = _used(relaxation, place, nodes, tiles)
    fitting = np.flatnonzero((used <= relaxation.capacity.sizes).all(axis=1))
    nodes, tiles, used = nodes.pick(fitting), tiles[fitting], used[fitting]
    totals = nodes.totals + relaxation.increments[operand][number][tiles]
    reuse = reuse_at(relaxation, nodes.reuse, nodes.tiles, tiles)
    if relaxation.columns.ports:
        delayed, growth = single_buffer_delay(relaxation, place, tiles, reuse[:, operand])
        totals[delayed] += growth
    if relaxation.tables.cuts[operand][number].arch > 0:
        reuse[:, operand] = 1.0
    chains = nodes.chains.copy()
    chains[:, sum(relaxation.depths[:operand]) + number] = tiles
    return Nodes(
        tiles,
        totals,
        used,
        relaxation.capacity.unfinished[tiles] if operand == 0 else nodes.unfinished,
        reuse,
        chains,
    )


def reuse_at(relaxation: Relaxation, reuse: Floats, inner: Ints, outer: Ints) -> Floats:
    """Reuse of every operand after chains that end at tiles `inner` are taken to `outer`."""
    lattice = relaxation.tables.lattice
    added = lattice.exponents[:, outer] > lattice.exponents[:, inner]
    ratio = lattice.iterations[outer] / lattice.iterations[inner]
    result = np.ones_like(reuse)
    for operand, stationary in enumerate(relaxation.stationary):
        moved = added[~stationary].any(axis=0)
        result[:, operand] = np.where(moved, 1.0, reuse[:, operand] * ratio)
    return result


def _used(relaxation: Relaxation, place: tuple[int, int], nodes: Nodes, tiles: Ints) -> Floats:
    """Bits taken of the memories once a cut is placed, (N, memories)."""
    operand, number = place
    capacity = relaxation.capacity
    cut = relaxation.tables.cuts[operand][number]
    used = nodes.used.copy()
    if cut.arch > 0:
        need = capacity.needs[operand][cut.arch - 1]
        wide = nodes.unfinished if operand == 0 else np.True_
        used[:, need.memory] += np.where(wide, need.wide[tiles], need.narrow[tiles])
    if operand == 0 and number == relaxation.depths[0] - 1:
        # The last cut of the result decides how wide the result is in its topmost memory.
        top = capacity.needs[0][-1]
        used[:, top.memory] += np.where(capacity.unfinished[tiles], top.wide[-1], top.narrow[-1])
    return used

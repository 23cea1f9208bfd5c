"""Which points of each op some output depends on, worked out backwards from the outputs."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from tilewright.network.graph import Index, Network, Op, Operand
from tilewright.program.model import Box

Places = npt.NDArray[np.int64]
"""Positions along an axis or a loop, in order."""
Lattice = tuple[Places, ...]
"""All points whose position along every axis is one of those named for it."""

MOST_LATTICES = 8
"""A tensor that is read in more ways is taken to be needed wherever two of them together are."""


def needed_points(network: Network) -> dict[str, list[Lattice]]:
    """By op the points of its loops that the outputs need, in the order of its dims."""
    tensors = {tensor.name: [_whole(tensor.shape)] for tensor in network.outputs}
    made = {operand.tensor for op in network.ops for operand in op.outputs}
    found: dict[str, list[Lattice]] = {}
    for op in reversed(network.ops):
        found[op.name] = _points(op, tensors)
        for points in found[op.name]:
            loops = dict(zip((dim for dim, _ in op.dims), points, strict=True))
            for operand in op.inputs:
                if operand.tensor not in made:
                    continue
                read = touched(operand, loops, network.by_name[operand.tensor].shape)
                known = tensors.setdefault(operand.tensor, [])
                tensors[operand.tensor] = _with(known, read)
    return found


def around(lattices: Sequence[Lattice]) -> Box:
    """The smallest box around some lattices, of which there is at least one."""
    return tuple(
        (int(min(p[0] for p in axis)), int(max(p[-1] for p in axis)) + 1)
        for axis in zip(*lattices, strict=True)
    )


def points_inside(lattices: Sequence[Lattice], box: Box) -> int:
    """How many points of the lattices lie in a box; those of several count more than once."""
    return sum(
        prod(
            int(np.searchsorted(places, end) - np.searchsorted(places, begin))
            for places, (begin, end) in zip(lattice, box, strict=True)
        )
        for lattice in lattices
    )


def _whole(shape: Sequence[int]) -> Lattice:
    return tuple(np.arange(size, dtype=np.int64) for size in shape)


def _points(op: Op, tensors: Mapping[str, list[Lattice]]) -> list[Lattice]:
    """The points that make what is needed of an op's results."""
    wanted = [(o, lattice) for o in op.outputs for lattice in tensors.get(o.tensor, ())]
    found: list[Lattice] = []
    for operand, lattice in wanted:
        loops = {dim: np.arange(size, dtype=np.int64) for dim, size in op.dims}
        for axis, places in zip(operand.index or (), lattice, strict=False):
            # Only where an axis follows one loop, step by step, can points be left out.
            dim = axis.terms[0][0] if axis.terms else ""
            if axis == Index(((dim, 1),)) and dim not in op.coupled:
                loops[dim] = places
        found = _with(found, tuple(loops[dim] for dim, _ in op.dims))
    return found


def touched(operand: Operand, loops: Mapping[str, Places], shape: Sequence[int]) -> Lattice:
    """The elements that some points read; all of them without an index."""
    if operand.index is None:
        return _whole(shape)
    axes = []
    for axis, size in zip(operand.index, shape, strict=True):
        places = axis.offset + np.arange(axis.reach + 1, dtype=np.int64)
        for dim, factor in axis.terms:
            sums = (places[:, None] + factor * loops[dim][None, :]).ravel()
            is_in_order = len(places) == 1 and factor > 0
            places = sums if is_in_order else _distinct(sums)
        places = places[places % axis.divisor == 0] // axis.divisor
        axes.append(places[(places >= 0) & (places < size)])
    return tuple(axes)


def _with(known: list[Lattice], other: Lattice) -> list[Lattice]:
    """Lattices and one more; those that lie in another are left out."""
    if any(not len(places) for places in other) or any(_holds(k, other) for k in known):
        return known
    left = [*(k for k in known if not _holds(other, k)), other]
    if len(left) <= MOST_LATTICES:
        return left
    return [tuple(_distinct(np.concatenate(axis)) for axis in zip(*left, strict=True))]


def _distinct(places: Places) -> Places:
    """The positions in order, each once; numpy's own way loads modules that nothing else needs."""
    places = np.sort(places)
    is_new = np.ones(len(places), dtype=np.bool_)
    is_new[1:] = places[1:] != places[:-1]
    return places[is_new]


def _holds(one: Lattice, other: Lattice) -> bool:
    return all(_holds_all(mine, theirs) for mine, theirs in zip(one, other, strict=True))


def _holds_all(mine: Places, theirs: Places) -> bool:
    """Whether all of the second positions are among the first."""
    if not len(theirs):
        return True
    if len(mine) < len(theirs) or theirs[0] < mine[0] or theirs[-1] > mine[-1]:
        return False
    if mine[-1] - mine[0] + 1 == len(mine):
        return True
    return bool((mine[np.searchsorted(mine, theirs)] == theirs).all())

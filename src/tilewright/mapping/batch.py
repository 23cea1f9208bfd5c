"""Many loop orders at once: a candidate is a column of arrays, never a Python object.

For n temporal loops and N candidates, position p of a candidate is the gap before its p-th loop,
innermost first. Arrays are laid out (position, candidate).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping.nest import LoopNest, NestOperand

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_ONE: Floats = np.ones((1, 1))


@dataclass(frozen=True, eq=False)
class Orders:
    """N orders of n loops: `loops` index `names`, `sizes` are their factors, both (n, N)."""

    names: tuple[str, ...]
    loops: Ints
    sizes: Floats

    @property
    def count(self) -> int:
        """Number of candidates."""
        return int(self.loops.shape[1])

    @property
    def length(self) -> int:
        """Number of loops."""
        return int(self.loops.shape[0])

    @cached_property
    def columns(self) -> Ints:
        """0 … N - 1, to pick one position for every candidate."""
        return np.arange(self.count)

    @cached_property
    def iterations(self) -> Floats:
        """Product of all loops before each position, (n + 1, N)."""
        return _cumulative(self.sizes)

    @cached_property
    def extents(self) -> Mapping[str, Floats]:
        """Per loop name, the product of its factors before each position, (n + 1, N)."""
        return {
            name: _cumulative(np.where(self.loops == i, self.sizes, 1.0))
            for i, name in enumerate(self.names)
            if (self.loops == i).any()
        }

    def is_one_of(self, names: Sequence[str]) -> Bools:
        """Whether the loop at each place is one of these, (n, N)."""
        wanted = np.array([name in names for name in self.names], dtype=np.bool_)
        picked: Bools = wanted[self.loops]
        return picked


def orders_of(rows: Sequence[Sequence[tuple[str, int]]]) -> Orders:
    """Orders from lists of (loop, factor), all of the same length, innermost first."""
    names = tuple(dict.fromkeys(name for row in rows for name, _ in row))
    number = {name: i for i, name in enumerate(names)}
    loops = np.array([[number[name] for name, _ in row] for row in rows], dtype=np.int64)
    sizes = np.array([[size for _, size in row] for row in rows], dtype=np.float64)
    return Orders(names, np.ascontiguousarray(loops.T), np.ascontiguousarray(sizes.T))


def chunks(orders: Orders, size: int = 2048) -> Iterator[Orders]:
    """The orders in portions whose arrays stay in the processor's cache."""
    if 0 < orders.count <= size:
        yield orders
        return
    for start in range(0, orders.count, size):
        part = slice(start, start + size)
        yield Orders(orders.names, orders.loops[:, part], orders.sizes[:, part])


def tensor_elements(
    nest: LoopNest, operand: NestOperand, extents: Mapping[str, Floats], shape: tuple[int, int]
) -> Floats:
    """Elements of an operand when its loops reach as far as `extents`; loops not in it are at 1.

    Factors are multiplied in the order of the operand's axes: with fractional unrollings the last
    bit can decide between allocations that cost the same.
    """
    size: Floats | None = None
    for loop in nest.relevant(operand):
        if loop in extents:
            size = extents[loop] if size is None else size * extents[loop]
    for relation in nest.relations_of(operand):
        (a, ca), (b, cb) = relation.terms
        common = gcd(ca, cb)
        first, second = np.trunc(extents.get(a, _ONE)), np.trunc(extents.get(b, _ONE))
        overlap = np.maximum(0, second - ca // common) * (first - cb // common)
        window = np.minimum(first * second - overlap, relation.size)
        size = window if size is None else size * window
    return np.ones(shape) if size is None else np.broadcast_to(size, shape)


def _cumulative(sizes: Floats) -> Floats:
    result = np.ones((sizes.shape[0] + 1, sizes.shape[1]))
    np.cumprod(sizes, axis=0, out=result[1:])
    return result

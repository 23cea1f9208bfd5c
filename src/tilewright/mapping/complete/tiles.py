"""The space: all tiles of a nest's temporal loops, every loop at every divisor of its size.

A tile is the set of loops inside a level's end. One tile encloses another if each of its extents is
a multiple of the other's; the level ends of one loop order enclose one another. All orders of the
loops between two tiles cost nearly the same, so the search goes over tiles instead of orders.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from tilewright.mapping.batch import Bools, Floats, Ints
from tilewright.mapping.orders import Loop, prime_factors


@dataclass(frozen=True, eq=False)
class Lattice:
    """The divisor lattice of the loop sizes.

    Tiles are numbered: 0 is a single iteration, the last one the whole nest. An axis is one prime
    of one loop; `counts` says how often the loop has that prime.
    """

    names: tuple[str, ...]
    axes: tuple[tuple[str, int], ...]
    counts: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of tiles."""
        return prod(count + 1 for count in self.counts)

    @cached_property
    def exponents(self) -> Ints:
        """How often each axis' prime is in a tile, (axes, tiles)."""
        shape = tuple(count + 1 for count in self.counts)
        return np.indices(shape, dtype=np.int64).reshape(len(shape), self.size)

    @cached_property
    def extents(self) -> Floats:
        """Iterations of every loop in a tile, (names, tiles)."""
        result = np.ones((len(self.names), self.size))
        for (name, prime), exponents in zip(self.axes, self.exponents, strict=True):
            result[self.names.index(name)] *= float(prime) ** exponents
        return result

    @cached_property
    def iterations(self) -> Floats:
        """Iterations of a tile, (tiles,)."""
        product: Floats = self.extents.prod(axis=0)
        return product

    @cached_property
    def codes(self) -> tuple[tuple[Ints, int], ...]:
        """Exponents packed into words, each with a mask of guard bits above every exponent."""
        words = []
        code, guards, used = np.zeros(self.size, dtype=np.int64), 0, 0
        for exponents, count in zip(self.exponents, self.counts, strict=True):
            width = count.bit_length() + 1
            if used + width > 62:
                words.append((code, guards))
                code, guards, used = np.zeros(self.size, dtype=np.int64), 0, 0
            code = code | (exponents << used)
            guards |= 1 << (used + width - 1)
            used += width
        words.append((code, guards))
        return tuple(words)

    def enclosing(self, inner: Ints) -> Bools:
        """Whether a tile (column) encloses each of the tiles `inner` (row), or is that tile."""
        return self.encloses(inner, np.arange(self.size))

    def encloses(self, inner: Ints, outer: Ints) -> Bools:
        """Whether each of the tiles `outer` (column) encloses each of `inner` (row), or is it."""
        result = np.ones((inner.size, outer.size), dtype=np.bool_)
        for code, guards in self.codes:
            # No borrow crosses a guard bit as long as each exponent is at least the inner one.
            difference = (code[outer][None] | guards) - code[inner][:, None]
            result &= difference & guards == guards
        return result

    def minimise_over_enclosing(self, values: Floats) -> None:
        """Replace each tile's value by the least of all enclosing tiles', (tiles, columns)."""
        inner = values.size
        outer = 1
        for count in self.counts:
            inner //= count + 1
            view = values.reshape(outer, count + 1, inner)
            for step in range(count - 1, -1, -1):
                np.minimum(view[:, step], view[:, step + 1], out=view[:, step])
            outer *= count + 1


def lattice_of(loops: Sequence[Loop], first: str) -> Lattice:
    """The tiles of some loops; where there are none, one loop of size 1 over `first`."""
    names = tuple(name for name, _ in loops) or (first,)
    primes = [((name, p), n) for name, size in loops for p, n in _powers(size)]
    return Lattice(names, tuple(axis for axis, _ in primes), tuple(n for _, n in primes))


def _powers(size: int) -> list[tuple[int, int]]:
    return sorted(Counter(prime_factors(size)).items())

"""Tiles: which encloses which, and the least over all that enclose one."""

from itertools import product

import numpy as np

from tilewright.mapping.complete.tiles import lattice_of


def test_a_tile_encloses_another_if_all_its_extents_are_multiples() -> None:
    lattice = lattice_of([("K", 12), ("C", 6)], "K")
    assert lattice.size == 6 * 4
    every = np.arange(lattice.size)
    enclosing = lattice.encloses(every, every)
    for inner, outer in product(every, every):
        ratio = lattice.extents[:, outer] / lattice.extents[:, inner]
        assert enclosing[inner, outer] == (ratio == np.floor(ratio)).all()


def test_tiles_with_many_primes_are_compared_right() -> None:
    # 26 axes of 3 bits and more do not fit one word of 62.
    primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41]
    sizes = [("K", int(np.prod(primes[:8]))), ("C", int(np.prod(primes[:6])))]
    lattice = lattice_of([*sizes, ("B", 2**9)], "K")
    assert len(lattice_of([(f"D{i}", 2**7) for i in range(13)], "D0").axes) == 13
    chosen = np.array([0, 5, 77, lattice.size // 2, lattice.size - 1])
    enclosing = lattice.encloses(chosen, chosen)
    for i, j in product(range(5), range(5)):
        inside = lattice.exponents[:, chosen[i]] <= lattice.exponents[:, chosen[j]]
        assert enclosing[i, j] == inside.all()


def test_each_tile_takes_the_least_of_all_that_enclose_it() -> None:
    lattice = lattice_of([("K", 12), ("C", 6)], "K")
    values = np.random.default_rng(3).integers(0, 99, size=(lattice.size, 2)).astype(np.float64)
    enclosing = lattice.enclosing(np.arange(lattice.size))
    expected = [[values[row, column].min() for column in range(2)] for row in enclosing]
    spread = values.copy()
    lattice.minimise_over_enclosing(spread)
    np.testing.assert_array_equal(spread, expected)

"""No unrolling has fewer steps than the bound, however a nest is cut: all are tried."""

from collections.abc import Iterator
from itertools import product
from math import prod

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.mapping_cases import CARRIERS, machine, memory, product_nest
from tests.property.test_spatial import hierarchies

from tilewright.mapping.attach import Unrolling
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.spatial import violations
from tilewright.mapping.tile_search import fewest_steps, least_steps

SIZES = st.integers(1, 5)


def mixed_unrollings(nest: LoopNest, hierarchy: Hierarchy) -> Iterator[Unrolling]:
    """Every way to put loops, several of them too, over the dims of an array."""
    loops = [loop for loop, _ in nest.dims]
    choices = []
    for dim, units in hierarchy.array.dims:
        factors = product(*(range(1, min(units, nest.sizes[loop]) + 1) for loop in loops))
        pairs = [tuple(zip(loops, found, strict=True)) for found in factors if prod(found) <= units]
        choices.append([(dim, found) for found in pairs])
    for unrolling in product(*choices):
        if not any(violations(nest, hierarchy, unrolling)):
            yield unrolling


def steps(nest: LoopNest, unrolling: Unrolling) -> int:
    total = 1
    for loop, size in nest.dims:
        at_once = prod(n for _, pairs in unrolling for name, n in pairs if name == loop)
        total *= -(-size // at_once)
    return total


def fewest(nest: LoopNest, hierarchy: Hierarchy) -> int:
    return min(steps(nest, unrolling) for unrolling in mixed_unrollings(nest, hierarchy))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data(), SIZES, SIZES, SIZES, st.integers(1, 4))
def test_no_unrolling_of_a_nest_or_of_its_halves_has_fewer_steps(
    data: st.DataObject, one: int, two: int, three: int, cut: int
) -> None:
    nest = product_nest(one, two, three)
    hierarchy = data.draw(hierarchies(nest))
    assume(hierarchy.array.units <= 24)
    least = least_steps(nest, hierarchy)
    assert least <= fewest_steps(nest, hierarchy)
    assert least <= fewest(nest, hierarchy)
    if cut < one:
        halves = [product_nest(size, two, three) for size in (cut, one - cut)]
        assert least <= sum(fewest(half, hierarchy) for half in halves)


def test_two_loops_fill_a_dim_that_neither_fills() -> None:
    """12 x 8 products on 32 units, 12 of them by one loop, 32 by 4 and 8 of both."""
    nest = product_nest(12, 1, 8)
    wide = machine(memory("top", ["I1", "I2", "O"], width=1 << 20), units=32)
    hierarchy = hierarchy_of(wide, wide.cores[0], CARRIERS)
    assert fewest_steps(nest, hierarchy) == 8
    assert least_steps(nest, hierarchy) == fewest(nest, hierarchy) == 3

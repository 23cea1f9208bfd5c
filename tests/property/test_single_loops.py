"""Unrollings of one loop per array dim: the compiled list against Python's."""

import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mapping_cases import conv_nest, product_nest
from tests.search_cases import random_case

from tilewright.machine.load import load_machine
from tilewright.mapping import single_loops
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.tile_search import ranked_unrollings

_unrollings = pytest.importorskip("tilewright.mapping._unrollings")
MACHINES = ("edge_tpu_like", "tpu_like", "ascend_like", "tesla_npu_like", "ethos_u65_256")
SIZES = (1, 2, 3, 7, 12, 30, 75, 129)


def assert_same(nest: LoopNest, hierarchy: Hierarchy) -> None:
    found = ranked_unrollings(nest, hierarchy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single_loops, "is_used", lambda: False)
        assert ranked_unrollings(nest, hierarchy) == found


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_random_machines_have_the_same_unrollings_in_the_same_order(seed: int, primes: int) -> None:
    case = random_case(seed, primes)
    assert_same(case.nest, case.hierarchy)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_machines_of_the_library_have_the_same_unrollings_in_the_same_order(seed: int) -> None:
    chance = random.Random(seed)
    machine = load_machine(chance.choice(MACHINES))
    if chance.random() < 0.3:
        nest = product_nest(*(chance.choice(SIZES) for _ in range(3)))
    else:
        sizes = {name: chance.choice(SIZES) for name in ("B", "K", "C", "OX", "FX")}
        nest = conv_nest(sizes, stride=chance.choice((1, 2)), bits=chance.choice(((32, 8), (8, 8))))
    assert_same(nest, hierarchy_of(machine, machine.cores[0], {"O": "O", "I": "I1", "W": "I2"}))


def test_an_unrolling_that_a_store_cannot_serve_is_told_from_the_others() -> None:
    """K = 6 on 4 units takes 2 passes of 3: a store of 2 elements, one for each K, is too small."""
    numbers = array("q", (1, 1, 1, 1, 6, 1, 0, 4, 1))
    names = (("D1",), ("K",))
    (found,) = _unrollings.single_loops(*names, numbers, array("d", (3.0,)))
    assert found == (2.0, 2, (("D1", (("K", 3),)),))
    (found,) = _unrollings.single_loops(*names, numbers, array("d", (2.0,)))
    assert found == (-1.0, 2, (("D1", (("K", 3),)),))


@pytest.mark.parametrize("place", range(8))
def test_numbers_that_describe_no_nest_are_an_error(place: int) -> None:
    numbers = array("q", (1, 1, 1, 1, 6, 1, 0, 4, 1))
    numbers[place] = 99 if place < 4 else -2
    with pytest.raises(ValueError, match="no nest with an array"):
        _unrollings.single_loops(("D1",), ("K",), numbers, array("d", (3.0,)))

"""The order of least energy of an unrolled nest: the compiled search finds what Python finds."""

import random
from array import array
from dataclasses import replace
from math import inf, nextafter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mapping_cases import conv_nest, product_nest
from tests.search_cases import random_case

from tilewright.machine.load import load_machine
from tilewright.mapping import kernel
from tilewright.mapping.attach import Unrolling, attach
from tilewright.mapping.evaluate import Setup
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of
from tilewright.mapping.kernel_least import Least, frame_of, least_energy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.search import SearchOptions
from tilewright.mapping.tile_search import ranked_unrollings
from tilewright.mapping.timed_search import _Candidate, _least_in_python, _mapped

_kernel = pytest.importorskip("tilewright.mapping._kernel")
pytestmark = pytest.mark.skipif(not kernel.is_used(), reason="the kernel was not built")
MACHINES = ("edge_tpu_like", "tpu_like", "ascend_like", "tesla_npu_like", "ethos_u55_128")
SIZES = (1, 2, 3, 7, 12, 30, 75, 129)


def assert_same(
    nest: LoopNest, hierarchy: Hierarchy, unrolling: Unrolling, options: SearchOptions
) -> None:
    def in_python(at_most_pj: float) -> Least | None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernel, "is_used", lambda: False)
            assert frame_of(nest, hierarchy) is None
            return _least_in_python(nest, hierarchy, unrolling, options, at_most_pj)

    frame = frame_of(nest, hierarchy)
    assert frame is not None
    plain = attach(nest, hierarchy, tuple((dim, ()) for dim, _ in hierarchy.array.dims))
    setup = Setup(nest, hierarchy, plain)
    assert setup.description is not None
    assert frame.description.values == setup.description.values
    assert frame.mac_pj == setup.mac_pj
    expected, found = in_python(inf), least_energy(frame, unrolling, options, inf)
    assert found == expected
    if found is None or expected is None:
        return
    assert _mapped(nest, hierarchy, _Candidate(unrolling, found)) == _mapped(
        nest, hierarchy, _Candidate(unrolling, expected)
    )
    # What may not be exceeded is the best value itself, or just below it.
    for at_most_pj in (expected.energy_pj, nextafter(expected.energy_pj, 0.0)):
        assert least_energy(frame, unrolling, options, at_most_pj) == in_python(at_most_pj)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.booleans())
def test_random_machines_have_the_same_best_orders(seed: int, primes: int, even: bool) -> None:
    case = random_case(seed, primes)
    for limit in (None, 3):
        options = SearchOptions(lpf_limit=limit, even=even)
        for _, unrolling in ranked_unrollings(case.nest, case.hierarchy):
            assert_same(case.nest, case.hierarchy, unrolling, options)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_odd_sizes_on_wide_arrays_have_the_same_best_orders(seed: int) -> None:
    """Fractional factors, loops along several array dims, windows cut by the edge."""
    chance = random.Random(seed)
    machine = load_machine(chance.choice(MACHINES))
    if chance.random() < 0.3:
        nest = product_nest(*(chance.choice(SIZES) for _ in range(3)))
    else:
        sizes = {name: chance.choice(SIZES) for name in ("B", "K", "C", "OX")}
        sizes = {**sizes, "FX": chance.choice((1, 3, 5))}
        nest = conv_nest(sizes, stride=chance.choice((1, 2)), bits=chance.choice(((32, 8), (8, 8))))
    hierarchy = hierarchy_of(machine, machine.cores[0], {"O": "O", "I": "I1", "W": "I2"})
    options = SearchOptions(lpf_limit=chance.choice((4, 5, 6)))
    ranked = ranked_unrollings(nest, hierarchy)
    for _, unrolling in chance.sample(ranked, min(4, len(ranked))):
        assert_same(nest, hierarchy, unrolling, options)


def test_a_nest_whose_points_cannot_be_counted_exactly_is_left_to_python() -> None:
    machine = load_machine("ethos_u55_128")
    hierarchy = hierarchy_of(machine, machine.cores[0], {"O": "O", "I": "I1", "W": "I2"})
    nest = product_nest(2**20, 2**16, 2**15)
    assert frame_of(nest, hierarchy) is not None
    assert frame_of(replace(nest, dims=tuple((d, 2 * n) for d, n in nest.dims)), hierarchy) is None


@pytest.mark.parametrize("broken", ["frame", "places", "figures"])
def test_numbers_that_are_no_unrolling_are_an_error(broken: str) -> None:
    machine = load_machine("ethos_u55_128")
    hierarchy = hierarchy_of(machine, machine.cores[0], {"O": "O", "I": "I1", "W": "I2"})
    frame = frame_of(product_nest(12, 16, 8), hierarchy)
    assert frame is not None
    values, places, figures = frame.values[:], array("d", (0, 1, 4)), array("d", (0.0, inf))
    description = frame.description.values
    assert _kernel.least(description, values, places, 6, 1, figures) is not None
    if broken == "frame":
        values[0] += 1
    elif broken == "places":
        places[1] = 99
    else:
        figures.append(0.0)
    with pytest.raises(ValueError, match="no unrolling of a nest"):
        _kernel.least(description, values, places, 6, 1, figures)

"""The compiled kernel against NumPy: the same answers, to the last bit."""

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mapping_cases import loops_for, nests, product_nest, setup_of, three_levels
from tests.random_cases import examples
from tests.search_cases import random_case

from tilewright.machine.load import load_machine
from tilewright.mapping import kernel
from tilewright.mapping.allocate import Allocation
from tilewright.mapping.attach import attach
from tilewright.mapping.batch import Orders, orders_of
from tilewright.mapping.evaluate import (
    Batch,
    Setup,
    cost_of,
    evaluate,
    evaluate_allocated,
    evaluate_loops,
    loops_of,
)
from tilewright.mapping.hierarchy import hierarchy_of
from tilewright.mapping.nest import LoopNest, NestOperand, Relation, nest_of
from tilewright.mapping.orders import all_orders, cool_lex, loop_factors
from tilewright.mapping.search import Objective, SearchOptions, best_candidate
from tilewright.mapping.spatial import UnrollOptions, unrollings
from tilewright.network.load import load_network

pytestmark = pytest.mark.skipif(not kernel.is_used(), reason="the kernel was not built")
MACHINES = ("edge_tpu_like", "tpu_like", "ascend_like", "npe8", "seneca", "tesla_npu_like")


def numpy_setup(setup: Setup) -> Setup:
    """The same setup, with NumPy made to serve."""
    return setup_with(setup, None)


def setup_with(setup: Setup, description: kernel.Description | None) -> Setup:
    copy = Setup(setup.nest, setup.hierarchy, setup.spatial)
    copy.__dict__["description"] = description
    return copy


def assert_same(compiled: Batch, reference: Batch) -> None:
    assert compiled.compiled is not None
    assert reference.compiled is None
    assert np.array_equal(compiled.cycles, reference.cycles)
    assert np.array_equal(compiled.energy_pj, reference.energy_pj)
    assert np.array_equal(compiled.allocation.fits, reference.allocation.fits)
    good = np.flatnonzero(reference.fits)
    for letter, ends in reference.allocation.ends.items():
        assert np.array_equal(compiled.allocation.ends[letter][:, good], ends[:, good])
    for column in good[:: max(1, good.size // 8)].tolist():
        assert cost_of(compiled, column) == cost_of(reference, column)


def assert_same_greedily(setup: Setup, orders: Orders) -> None:
    plain = numpy_setup(setup)
    for even in (False, True):
        assert_same(evaluate(setup, orders, even=even), evaluate(plain, orders, even=even))


def assert_same_with_any_ends(setup: Setup, orders: Orders, seed: int) -> None:
    chance = np.random.default_rng(seed)
    ends = {}
    for operand in setup.nest.operands:
        shape = (len(setup.hierarchy.chains[operand.letter]), orders.count)
        ends[operand.letter] = np.sort(chance.integers(0, orders.length + 1, shape), axis=0)
        ends[operand.letter][-1] = orders.length
    allocation = Allocation(ends, chance.random(orders.count) < 0.9)
    compiled = evaluate_allocated(setup, orders, allocation)
    assert_same(compiled, evaluate_allocated(numpy_setup(setup), orders, allocation))


def some_orders(setup: Setup, limit: int | None) -> Orders:
    temporal, first = setup.spatial.temporal, setup.nest.dims[0][0]
    return all_orders(loop_factors(temporal, first, limit))


def setups(seed: int, primes: int) -> Iterator[Setup]:
    """A random nest on a random machine in every way of unrolling it, fractional ones too."""
    case = random_case(seed, primes, wired=seed % 2 == 0)
    for unrolling in unrollings(case.nest, case.hierarchy, None, UnrollOptions(mixed=True)):
        yield Setup(case.nest, case.hierarchy, attach(case.nest, case.hierarchy, unrolling))


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_random_machines_cost_the_same(seed: int, primes: int) -> None:
    for setup in setups(seed, primes):
        orders = some_orders(setup, None)
        assert_same_greedily(setup, orders)
        assert_same_with_any_ends(setup, orders, seed)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**6))
def test_uneven_unrolling_on_the_machines_of_the_library_costs_the_same(seed: int) -> None:
    """Odd sizes on wide arrays: 1000 over 32 units, products that depend on their order."""
    chance = random.Random(seed)
    machine = load_machine(chance.choice(MACHINES))
    rows, inner, columns = (chance.choice((7, 12, 75, 100, 129, 1000)) for _ in range(3))
    nest = product_nest(rows, inner, columns)
    links = {"O": "O", "I": "I1", "W": "I2"}
    hierarchy = hierarchy_of(machine, machine.cores[0], links)
    for unrolling in unrollings(nest, hierarchy, None, UnrollOptions(mixed=True))[:3]:
        setup = Setup(nest, hierarchy, attach(nest, hierarchy, unrolling))
        orders = some_orders(setup, 5)
        assert_same_greedily(setup, orders)
        assert_same_with_any_ends(setup, orders, seed)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from(("latency", "energy", "edp")))
def test_the_best_order_is_the_same(seed: int, primes: int, objective: Objective) -> None:
    for even in (False, True):
        options = SearchOptions(objective=objective, even=even)
        for setup in setups(seed, primes):
            orders = some_orders(setup, None)
            assert_same_best(setup, orders, options, np.inf)
            found = best_candidate(setup, orders, options)
            if found is not None:
                # What may not be exceeded is the best value itself, or just below it.
                first = found[2][0]
                assert_same_best(setup, orders, options, first)
                assert_same_best(setup, orders, options, np.nextafter(first, 0.0))


def assert_same_best(setup: Setup, orders: Orders, options: SearchOptions, at_most: float) -> None:
    compiled = best_candidate(setup, orders, options, at_most)
    reference = best_candidate(numpy_setup(setup), orders, options, at_most)
    assert (compiled is None) == (reference is None)
    if compiled is not None and reference is not None:
        assert compiled[2] == reference[2]
        (batch, column, _), (other, best, _) = compiled, reference
        assert loops_of(batch, column) == loops_of(other, best)
        assert cost_of(batch, column) == cost_of(other, best)


@settings(deadline=None)
@given(st.data())
def test_given_mappings_cost_the_same_whatever_the_width_of_ports(data: st.DataObject) -> None:
    width = data.draw(st.sampled_from([8, 24, 64]))
    setup = setup_of(data.draw(nests()), three_levels(width=width))
    loops = data.draw(loops_for(setup))
    assert_same(evaluate_loops(setup, loops), evaluate_loops(numpy_setup(setup), loops))


@pytest.mark.parametrize("op_cycles", [1.0, 8.0, 2.5])
def test_slower_multiplications_cost_the_same(op_cycles: float) -> None:
    for seed in range(40):
        for setup in setups(seed, 4):
            plain = numpy_setup(setup)
            for either in (setup, plain):
                either.__dict__["op_cycles"] = op_cycles
            orders = some_orders(setup, None)
            assert_same(evaluate(setup, orders), evaluate(plain, orders))


@pytest.mark.parametrize("width", [24, 40, 56, 88])
def test_widths_that_are_no_power_of_two_cost_the_same(width: int) -> None:
    """Then a share of an access is no exact number, and the order of its factors decides."""
    setup = setup_of(product_nest(21, 15, 55), three_levels(width=width, bits=1 << 10))
    orders = some_orders(setup, None)
    assert_same_greedily(setup, orders)
    assert_same_with_any_ends(setup, orders, width)


def test_windows_over_the_result_cost_the_same() -> None:
    """A transposed convolution returns to elements of its result."""
    nest = LoopNest(
        dims=(("K", 4), ("C", 6), ("IX", 6), ("FX", 3)),
        operands=(
            NestOperand("O", ("K", "OX"), 16),
            NestOperand("W", ("K", "C", "FX"), 8),
            NestOperand("I", ("C", "IX"), 8),
        ),
        relations=(Relation("OX", (("IX", 2), ("FX", 1)), 13),),
        final_bits=8,
    )
    for units in (1, 2, 4):
        setup = setup_of(nest, three_levels(width=16, bits=1 << 9), [("IX", units)])
        orders = some_orders(setup, None)
        assert_same_greedily(setup, orders)
        assert_same_with_any_ends(setup, orders, units)


def test_a_layer_of_resnet18_costs_the_same() -> None:
    network, machine = load_network("resnet18"), load_machine("edge_tpu_like")
    op = next(op for op in network.ops if op.kind == "conv")
    nest = nest_of(op, network)
    hierarchy = hierarchy_of(machine, machine.cores[0], {"O": "O", "W": "I2", "I": "I1"})
    for unrolling in unrollings(nest, hierarchy, None, UnrollOptions())[:2]:
        setup = Setup(nest, hierarchy, attach(nest, hierarchy, unrolling))
        assert_same_greedily(setup, some_orders(setup, 6))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=7))
def test_arrangements_come_in_the_same_order(items: list[int]) -> None:
    reference = cool_lex(tuple(sorted(items)))
    found = kernel.arrangements(np.array(sorted(items, reverse=True)), len(reference))
    assert [tuple(column) for column in found.T.tolist()] == reference


def test_a_mapping_with_more_loops_than_the_kernel_takes_is_left_to_numpy() -> None:
    setup = setup_of(product_nest(2, 2, 2), three_levels())
    rows = [[*setup.spatial.temporal, *[("K", 1)] * 64]]
    batch = evaluate(setup, orders_of(rows))
    assert batch.compiled is None
    assert batch.fits.all()
    assert cost_of(batch).compute_cycles == 8


def test_what_the_kernel_does_not_understand_is_an_error() -> None:
    setup = setup_of(product_nest(2, 2, 2), three_levels())
    description = setup.description
    assert description is not None
    orders = orders_of([setup.spatial.temporal])
    ends = {o.letter: np.full((3, 1), 4) for o in setup.nest.operands}
    with pytest.raises(ValueError, match="do not belong"):
        evaluate_allocated(setup, orders, Allocation(ends, np.ones(1, dtype=np.bool_)))
    for wrong in (description.values[:-1], description.values[1:]):
        with pytest.raises(ValueError, match="no orders"):
            evaluate(setup_with(setup, replace(description, values=wrong)), orders)
    unknown = replace(description, numbers={"D": 0, "K": 200, "C": 2})
    with pytest.raises(ValueError, match="no orders"):
        evaluate(setup_with(setup, unknown), orders)

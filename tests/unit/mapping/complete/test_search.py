"""The complete search on nests small enough to know the answer."""

from dataclasses import replace

import numpy as np
import pytest
from tests.mapping_cases import CARRIERS, memory, product_nest, setup_of, three_levels
from tests.mapping_cases import machine as machine_of
from tests.search_cases import every_mapping, random_case, setups_of

from tilewright.mapping.allocate import Allocation
from tilewright.mapping.batch import orders_of
from tilewright.mapping.complete.search import complete
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.evaluate import Setup, evaluate_allocated
from tilewright.mapping.hierarchy import hierarchy_of
from tilewright.mapping.search import Objective, SearchOptions, loma

OBJECTIVES: tuple[Objective, ...] = ("latency", "energy", "edp")


def test_levels_end_where_greedy_allocation_would_not_end_them() -> None:
    # Eight products are added up. LOMA puts all of both inputs into the memory next to the array,
    # because they fit, and waits 8 cycles for them; with a level that ends at once each element
    # arrives while the one before is in use. Both take 8 cycles to compute and 1 to store.
    nest = product_nest(1, 8, 1)
    where = machine_of(
        memory("near", ("I1", "I2"), bits=256, width=8),
        memory("accumulator", ("O",), bits=16, width=16),
        memory("far", ("I1", "I2", "O"), width=8),
    )
    links = {o.letter: CARRIERS[o.letter] for o in nest.operands}
    hierarchy = hierarchy_of(where, where.cores[0], links)
    free = complete(nest, hierarchy, None, SearchOptions())
    greedy = loma(nest, hierarchy, None, SearchOptions(lpf_limit=None))
    assert free is not None
    assert greedy is not None
    assert greedy.cost.cycles == 8 + 8 + 1
    assert free.cost.cycles == 8 + 1 + 1
    assert free.proven


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_search_repeats_itself(objective: Objective) -> None:
    case = random_case(7, primes=5)
    options = SearchOptions(objective=objective)
    first = complete(case.nest, case.hierarchy, None, options)
    assert first is not None
    assert complete(case.nest, case.hierarchy, None, options) == first


def test_of_equally_fast_mappings_the_leanest_is_taken() -> None:
    checked = 0
    for seed in (0, 1, 4, 6):
        case = random_case(seed, primes=2)
        found = complete(case.nest, case.hierarchy, None, SearchOptions())
        if found is None or not found.proven:
            continue
        leanest = min(lean(setup, found.cost.cycles) for setup in setups_of(case))
        assert found.cost.energy_pj == pytest.approx(leanest, rel=1e-9)
        checked += 1
    assert checked == 4


def lean(setup: Setup, cycles: float) -> float:
    """The least energy of all mappings that take so many cycles."""
    rows = list(every_mapping(setup))
    if not rows:
        return float("inf")
    ends = {
        o.letter: np.array([e[o.letter] for _, e in rows], dtype=np.int64).T
        for o in setup.nest.operands
    }
    allocation = Allocation(ends, np.ones(len(rows), dtype=np.bool_))
    batch = evaluate_allocated(setup, orders_of([order for order, _ in rows]), allocation)
    return float(np.min(batch.energy_pj[batch.cycles <= cycles * (1 + 1e-9)], initial=np.inf))


def test_nothing_fits() -> None:
    nest = product_nest(4, 4, 4)
    machine = three_levels(bits=4)
    links = {o.letter: CARRIERS[o.letter] for o in nest.operands}
    assert (
        complete(nest, hierarchy_of(machine, machine.cores[0], links), None, SearchOptions())
        is None
    )


def test_a_nest_without_loops_left_has_one_mapping() -> None:
    setup = setup_of(product_nest(1, 1, 1), three_levels())
    found = complete(setup.nest, setup.hierarchy, None, SearchOptions())
    assert found is not None
    assert found.proven
    assert found.cost.compute_cycles == 1


def test_a_given_order_is_kept() -> None:
    setup = setup_of(product_nest(4, 4, 2), three_levels())
    order = (("C", 4), ("K", 2), ("D", 4))
    given = Constraint(name="default", order=order)
    found = complete(setup.nest, setup.hierarchy, given, SearchOptions())
    assert found is not None
    assert found.loops.order == order
    assert found.proven


def test_a_partly_given_order_is_proven_only_if_all_of_it_was_tried() -> None:
    # 2^3 x 2^2 x 2 has 60 orders of its factors, of which those with D 2 innermost remain.
    setup = setup_of(product_nest(8, 4, 2), three_levels())
    given = Constraint(name="default", order=(("D", 2), ("*", None)))
    options = SearchOptions(budget=60, unrollings=1)
    found = complete(setup.nest, setup.hierarchy, given, options)
    assert found is not None
    assert found.loops.order[0] == ("D", 2)
    assert found.proven
    assert found.bound == found.cost.cycles
    short = complete(setup.nest, setup.hierarchy, given, replace(options, budget=20))
    assert short is not None
    assert short.loops.order[0] == ("D", 2)
    assert not short.proven
    assert short.bound is None


def test_even_levels_are_as_good_as_the_best_even_order() -> None:
    case = random_case(3, primes=5)
    options = SearchOptions(even=True)
    found = complete(case.nest, case.hierarchy, None, options)
    every = loma(case.nest, case.hierarchy, None, replace(options, lpf_limit=None))
    assert (found is None) == (every is None)
    if found is not None and every is not None:
        assert found.cost.cycles == every.cost.cycles


def test_lattices_too_large_for_tables_still_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(7, primes=5)
    usual = complete(case.nest, case.hierarchy, None, SearchOptions())
    monkeypatch.setattr("tilewright.mapping.complete.search._CELLS", 0)
    found = complete(case.nest, case.hierarchy, None, SearchOptions())
    assert found is not None
    assert usual is not None
    assert found.bound is not None
    assert usual.proven
    assert found.bound <= usual.cost.cycles <= found.cost.cycles

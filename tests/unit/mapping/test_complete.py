"""The complete search and its parts, on nests small enough to know the answer."""

import random
from dataclasses import replace
from itertools import pairwise, product
from typing import Literal

import numpy as np
import pytest
from tests.mapping_cases import CARRIERS, memory, product_nest, setup_of, three_levels
from tests.mapping_cases import machine as machine_of
from tests.search_cases import Case, every_mapping, optimum, prime_orders, random_case

from tilewright.mapping.allocate import Allocation
from tilewright.mapping.batch import Floats, orders_of
from tilewright.mapping.bounds import Ground, energy_mode, time_modes
from tilewright.mapping.chains import Hunt, Quarry, hunt
from tilewright.mapping.complete import complete
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.cuts import cut_tables
from tilewright.mapping.dominance import Rows, undominated
from tilewright.mapping.evaluate import Loops, Setup, evaluate_allocated, evaluate_loops
from tilewright.mapping.hierarchy import hierarchy_of
from tilewright.mapping.judge import Goal, judge_of, tuned_for_time
from tilewright.mapping.mixtures import account_of, balanced, mixtures
from tilewright.mapping.polish import polish
from tilewright.mapping.relaxation import Relaxation, relaxation_of, time_bound
from tilewright.mapping.room import fits
from tilewright.mapping.search import Objective, SearchOptions, loma, loma_candidates
from tilewright.mapping.tiles import lattice_of

OBJECTIVES: tuple[Objective, ...] = ("latency", "energy", "edp")


def setups_of(case: Case) -> list[Setup]:
    found = loma_candidates(case.nest, case.hierarchy, None, SearchOptions(lpf_limit=1))
    return [setup for setup, _ in found]


def sampled(setup: Setup, seed: int, count: int = 15) -> tuple[list[Loops], random.Random]:
    """Random orders with random level ends, whether they fit or not."""
    chance = random.Random(seed)
    orders = prime_orders(setup)
    result = []
    for _ in range(count):
        order = chance.choice(orders)
        ends = []
        for operand in setup.nest.operands:
            depth = len(setup.hierarchy.chains[operand.letter])
            cuts = sorted(chance.randint(0, len(order)) for _ in range(depth - 1))
            ends.append((operand.letter, (*cuts, len(order))))
        result.append(Loops(order, tuple(ends)))
    return result, chance


def trail_of(relaxation: Relaxation, loops: Loops) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The tiles at which the cuts of a mapping lie once stationary loops are merged."""
    lattice, nest = relaxation.tables.lattice, relaxation.setup.nest
    tiles = []
    for operand, cuts in zip(nest.operands, relaxation.tables.cuts, strict=True):
        for cut in cuts:
            end = 0 if cut.arch == 0 else dict(loops.ends)[operand.letter][cut.arch - 1]
            while end < len(loops.order) and loops.order[end][0] in nest.irrelevant(operand):
                end += 1
            inside = [loops.order[:end].count(axis) for axis in lattice.axes]
            tiles.append(
                int(np.flatnonzero((np.array(inside) == lattice.exponents.T).all(axis=1))[0])
            )
    return np.array(tiles, dtype=np.int64)


def test_a_tile_lies_around_another_if_all_its_extents_are_multiples() -> None:
    lattice = lattice_of([("K", 12), ("C", 6)], "K")
    assert lattice.size == 6 * 4
    every = np.arange(lattice.size)
    around = lattice.around_each(every, every)
    for inner, outer in product(every, every):
        ratio = lattice.extents[:, outer] / lattice.extents[:, inner]
        assert around[inner, outer] == (ratio == np.floor(ratio)).all()


def test_tiles_with_many_primes_are_compared_right() -> None:
    # 26 axes of 3 bits and more do not fit one word of 62.
    primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41]
    sizes = [("K", int(np.prod(primes[:8]))), ("C", int(np.prod(primes[:6])))]
    lattice = lattice_of([*sizes, ("B", 2**9)], "K")
    assert len(lattice_of([(f"D{i}", 2**7) for i in range(13)], "D0").axes) == 13
    chosen = np.array([0, 5, 77, lattice.size // 2, lattice.size - 1])
    around = lattice.around_each(chosen, chosen)
    for i, j in product(range(5), range(5)):
        inside = lattice.exponents[:, chosen[i]] <= lattice.exponents[:, chosen[j]]
        assert around[i, j] == inside.all()


def test_spreading_inwards_takes_the_least_of_all_tiles_around() -> None:
    lattice = lattice_of([("K", 12), ("C", 6)], "K")
    values = np.random.default_rng(3).integers(0, 99, size=(lattice.size, 2)).astype(np.float64)
    around = lattice.around(np.arange(lattice.size))
    expected = [[values[row, column].min() for column in range(2)] for row in around]
    spread = values.copy()
    lattice.spread_inwards(spread)
    np.testing.assert_array_equal(spread, expected)


@pytest.mark.parametrize("seed", range(8))
def test_energy_is_a_sum_over_cuts(seed: int) -> None:
    for setup in setups_of(random_case(seed)):
        relaxation = relaxation_of(setup, timed=False)
        if relaxation is None:
            continue
        for loops in sampled(setup, seed)[0]:
            batch = evaluate_loops(setup, loops)
            account = account_of(Ground(relaxation), trail_of(relaxation, loops))
            if np.isfinite(batch.energy_pj[0]):
                assert account[0] == pytest.approx(batch.energy_pj[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_no_mapping_is_faster_than_its_relaxed_time(seed: int) -> None:
    exact = total = 0
    for setup in setups_of(random_case(seed)):
        relaxation = relaxation_of(setup, timed=True)
        if relaxation is None:
            continue
        whole = relaxation.tables.lattice.size - 1
        for loops in sampled(setup, seed)[0]:
            cycles = evaluate_loops(setup, loops).cycles[0]
            trail = trail_of(relaxation, loops)
            begins = np.cumsum([0, *relaxation.depths])
            stage = tuple(int((trail[a:b] != whole).sum()) for a, b in pairwise(begins))
            account = account_of(Ground(relaxation), trail)[None]
            if np.isfinite(cycles):
                relaxed = time_bound(relaxation, stage, account)[0]
                assert relaxed <= cycles * (1 + 1e-9)
                total += 1
                exact += relaxed >= cycles * (1 - 1e-9)
    assert exact > total / 2


@pytest.mark.parametrize("seed", range(4))
def test_every_mode_and_mixture_is_a_lower_bound(seed: int) -> None:
    for setup in setups_of(random_case(seed, primes=3)):
        relaxation = relaxation_of(setup, timed=True)
        if relaxation is None:
            continue
        ground = Ground(relaxation)
        best = optimum(setup)
        times = time_modes(ground)
        found = mixtures(ground, times, np.inf)
        assert found.bounds.min() <= best.cycles * (1 + 1e-9)
        energy = mixtures(ground, energy_mode(ground), np.inf)
        assert energy.bounds.min() <= best.energy_pj * (1 + 1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2, 12, 16, 21])
def test_what_fits_is_what_a_plain_count_of_bits_says(seed: int) -> None:
    for setup in setups_of(random_case(seed, primes=3)):
        good = {(order, tuple(ends.items())) for order, ends in every_mapping(setup)}
        loops, _ = sampled(setup, seed, count=60)
        orders = orders_of([mapping.order for mapping in loops])
        ends = {
            o.letter: np.array([dict(m.ends)[o.letter] for m in loops], dtype=np.int64).T
            for o in setup.nest.operands
        }
        fitting = fits(setup, orders, ends)
        assert [(m.order, m.ends) in good for m in loops] == fitting.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_loma_finds_fits(seed: int) -> None:
    case = random_case(seed, primes=5)
    found = loma(case.nest, case.hierarchy, None, SearchOptions(lpf_limit=None))
    if found is not None:
        ends = {x: np.array(cuts, dtype=np.int64)[:, None] for x, cuts in found.loops.ends}
        assert fits(found.setup, orders_of([found.loops.order]), ends)[0]


# In cases 50, 129 and 139 levels have to end with loops that leave their operand as it is.
@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6, 50, 129, 139])
@pytest.mark.parametrize("kind", ["time", "energy", "product"])
def test_a_hunt_from_nothing_loses_no_mapping(
    kind: Literal["time", "energy", "product"], seed: int
) -> None:
    goal = Goal(kind, slope=3.0)
    for setup in setups_of(random_case(seed, primes=3)):
        relaxation = relaxation_of(setup, timed=goal.counts_time)
        best = optimum(setup)
        value = {"time": best.cycles, "energy": best.energy_pj, "product": best.product}[kind]
        if relaxation is None:
            assert value == np.inf
            continue
        ground = Ground(relaxation)
        tuning = tuned_for_time(ground, np.inf) if goal.tunes_time else None
        judge = judge_of(ground, goal, tuning, np.inf)
        assert judge is not None
        assert judge.bound <= value * (1 + 1e-9)
        catch = hunt(Quarry(ground), judge, Hunt(below=np.inf, budget=10**9))
        assert catch.complete
        assert catch.least <= value * (1 + 1e-9)
        if kind == "energy" and value < np.inf:
            assert catch.least == pytest.approx(value, rel=1e-9)


def rows_at_random(seed: int) -> Rows:
    """Few different values, so that many rows can replace others."""
    chance = np.random.default_rng(seed)
    lattice = lattice_of([("K", 4), ("C", 6)], "K")
    count = 60

    def draw(columns: int) -> Floats:
        return chance.integers(0, 3, size=(count, columns)).astype(np.float64)

    return Rows(
        lattice=lattice,
        tiles=chance.integers(0, lattice.size, size=count),
        costs=draw(2),
        late=draw(2),
        fill=draw(2),
        loads=draw(2),
        runs=draw(1),
        still=np.array([[name == "C" for name, _ in lattice.axes]]),
    )


def replaces(rows: Rows, a: int, b: int) -> bool:
    """Whether row a makes row b superfluous, straight from what that means."""
    lattice = rows.lattice
    inner, outer = rows.tiles[a], rows.tiles[b]
    ratio = lattice.extents[:, outer] / lattice.extents[:, inner]
    delay = max(
        max(rows.late[a, p] - rows.late[b, p], 0) + max(rows.fill[a, p] - rows.fill[b, p], 0)
        for p in range(2)
    )
    # K moves the operand and C does not: its run goes on only as long as K stays.
    run = rows.runs[a, 0] * ratio[1] if ratio[0] == 1 else 1.0
    return bool(
        (ratio == np.floor(ratio)).all()
        and (rows.costs[a] <= rows.costs[b]).all()
        and delay + (rows.loads[a] - rows.loads[b]).max() <= 0
        and (rows.runs[b, 0] == 0 or run <= rows.runs[b, 0])
    )


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_dropped_exactly_if_an_earlier_one_replaces_them(seed: int) -> None:
    rows = rows_at_random(seed)
    kept: list[int] = []
    for row in range(rows.tiles.size):
        if not any(replaces(rows, earlier, row) for earlier in kept):
            kept.append(row)
    assert undominated(rows).tolist() == kept
    assert len(kept) < rows.tiles.size


def test_a_mixture_makes_the_cheapest_chain_dearest() -> None:
    # Chains cost (4, 1) and (1, 2) by two modes: shares (1/4, 3/4) make both cost 7/4.
    shares, value = balanced(np.array([[4.0, 1.0], [1.0, 2.0]]))
    assert shares == pytest.approx([0.25, 0.75])
    assert value == pytest.approx(1.75)


def test_a_product_is_least_at_an_end_of_the_line() -> None:
    # Time >= 2, energy >= 3, energy + 2 time >= 10: ends (2, 6) and (3.5, 3), products 12 and 10.5.
    goal = Goal("product", slope=2.0)
    least = goal.least(np.array([2.0]), np.array([3.0]), np.array([10.0]))
    assert least[0] == 10.5


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


def test_polishing_never_worsens_and_stays_within_its_budget() -> None:
    case = random_case(5, primes=5)
    setup = setups_of(case)[0]
    fitting = next(every_mapping(setup))
    loops = Loops(fitting[0], tuple(fitting[1].items()))
    before = evaluate_loops(setup, loops).cycles[0]
    same, spent = polish(setup, loops, "latency", budget=0)
    assert same == loops
    assert spent == 0
    better, spent = polish(setup, loops, "latency", budget=5000)
    assert evaluate_loops(setup, better).cycles[0] < before
    assert 0 < spent <= 5000


def test_lattices_too_large_for_tables_still_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(7, primes=5)
    usual = complete(case.nest, case.hierarchy, None, SearchOptions())
    monkeypatch.setattr("tilewright.mapping.complete._CELLS", 0)
    found = complete(case.nest, case.hierarchy, None, SearchOptions())
    assert found is not None
    assert usual is not None
    assert found.bound is not None
    assert usual.proven
    assert found.bound <= usual.cost.cycles <= found.cost.cycles


def test_tables_say_which_data_has_no_way() -> None:
    setup = setup_of(product_nest(2, 2, 2), three_levels())
    hierarchy = setup.hierarchy
    levels = tuple(
        (replace(m, ports=tuple(p for p in m.ports if p.name != "O_fl")), held)
        for m, held in hierarchy.levels
    )
    blocked = replace(setup, hierarchy=replace(hierarchy, levels=levels))
    assert cut_tables(setup) is not None
    assert cut_tables(blocked) is None

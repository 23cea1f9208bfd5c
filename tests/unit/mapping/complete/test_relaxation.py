"""The relaxed problem never costs more than the model says, and fits what fits."""

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.mapping_cases import product_nest, setup_of, three_levels
from tests.search_cases import every_mapping, prime_orders, random_case, setups_of

from tilewright.mapping.batch import orders_of
from tilewright.mapping.complete.capacity import fits
from tilewright.mapping.complete.cost_to_go import StageGraph
from tilewright.mapping.complete.cuts import cut_tables
from tilewright.mapping.complete.dual import totals_of
from tilewright.mapping.complete.latency import latency_lower_bound
from tilewright.mapping.complete.relaxation import Relaxation, relaxation_of
from tilewright.mapping.evaluate import Loops, Setup, evaluate_loops
from tilewright.mapping.search import SearchOptions, loma


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


def chain_of(relaxation: Relaxation, loops: Loops) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
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


@pytest.mark.parametrize("seed", range(8))
def test_energy_is_a_sum_over_cuts(seed: int) -> None:
    for setup in setups_of(random_case(seed)):
        relaxation = relaxation_of(setup)
        if relaxation is None:
            continue
        for loops in sampled(setup, seed)[0]:
            batch = evaluate_loops(setup, loops)
            totals = totals_of(StageGraph(relaxation), chain_of(relaxation, loops))
            if np.isfinite(batch.energy_pj[0]):
                assert totals[0] == pytest.approx(batch.energy_pj[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_no_mapping_is_faster_than_its_relaxed_time(seed: int) -> None:
    exact = total = 0
    for setup in setups_of(random_case(seed)):
        relaxation = relaxation_of(setup)
        if relaxation is None:
            continue
        whole = relaxation.tables.lattice.size - 1
        for loops in sampled(setup, seed)[0]:
            cycles = evaluate_loops(setup, loops).cycles[0]
            chain = chain_of(relaxation, loops)
            begins = np.cumsum([0, *relaxation.depths])
            stage = tuple(int((chain[a:b] != whole).sum()) for a, b in pairwise(begins))
            totals = totals_of(StageGraph(relaxation), chain)[None]
            if np.isfinite(cycles):
                relaxed = latency_lower_bound(relaxation, stage, totals)[0]
                assert relaxed <= cycles * (1 + 1e-9)
                total += 1
                exact += relaxed >= cycles * (1 - 1e-9)
    assert exact > total / 2


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

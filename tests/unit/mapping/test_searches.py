"""Searches beside LOMA: annealing, and the front between speed and energy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mapping_cases import CARRIERS, conv_nest, memory, product_nest, three_levels
from tests.mapping_cases import machine as machine_of

from tilewright.mapping.anneal import anneal
from tilewright.mapping.evaluate import evaluate
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.pareto import front, pareto_front
from tilewright.mapping.search import Objective, SearchOptions, loma, loma_candidates

NEST = conv_nest({"B": 1, "K": 4, "C": 6, "OX": 8, "FX": 3})


def small(nest: LoopNest) -> Hierarchy:
    """Memories too small to hold everything, so that the order matters."""
    operands = ("I1", "I2", "O")
    registers = (memory(f"reg_{o}", [o], bits=32, width=16, pj=0.1) for o in operands)
    sram = memory("sram", operands, bits=640, width=16)
    machine = machine_of(*registers, sram, memory("dram", operands, width=16, pj=10.0))
    links = {o.letter: CARRIERS[o.letter] for o in nest.operands}
    return hierarchy_of(machine, machine.cores[0], links)


@pytest.mark.parametrize("objective", ["latency", "energy", "edp"])
def test_annealing_finds_what_enumeration_finds(objective: Objective) -> None:
    # 7 prime factors: at most 7! / (2! 3!) = 420 orders, which 20,000 steps cover many times over.
    every = loma(NEST, small(NEST), None, SearchOptions(objective=objective, lpf_limit=None))
    options = SearchOptions(objective=objective, budget=20_000)
    found = anneal(NEST, small(NEST), None, options)
    assert every is not None
    assert found is not None
    assert found.cost.cycles == every.cost.cycles
    assert found.cost.energy_pj == pytest.approx(every.cost.energy_pj, rel=1e-12)
    assert found.candidates <= options.budget


def test_annealing_repeats_itself_and_depends_on_its_seed() -> None:
    def run(seed: int) -> object:
        mapped = anneal(NEST, small(NEST), None, SearchOptions(budget=64, seed=seed))
        assert mapped is not None
        return mapped.loops

    assert run(1) == run(1)
    assert len({run(seed) for seed in range(8)}) > 1


def test_annealing_says_none_where_nothing_fits() -> None:
    machine = three_levels(bits=4)
    links = {o.letter: CARRIERS[o.letter] for o in NEST.operands}
    where = hierarchy_of(machine, machine.cores[0], links)
    assert anneal(NEST, where, None, SearchOptions(budget=640)) is None


def test_the_front_holds_both_ends_and_nothing_that_is_beaten() -> None:
    options = SearchOptions(lpf_limit=5)
    found = pareto_front(NEST, small(NEST), None, options)
    pairs = [(m.cost.cycles, m.cost.energy_pj) for m in found]
    everything = []
    for setup, orders in loma_candidates(NEST, small(NEST), None, options):
        batch = evaluate(setup, orders)
        everything += [p for p in zip(batch.cycles, batch.energy_pj, strict=True) if p[0] < np.inf]
    unbeaten = {
        (c, e)
        for c, e in everything
        if not any((x <= c and y < e) or (x < c and y <= e) for x, y in everything)
    }
    assert [c for c, _ in pairs] == sorted(c for c, _ in pairs)
    assert [c for c, _ in pairs] == sorted(c for c, _ in unbeaten)
    fastest = loma(NEST, small(NEST), None, SearchOptions(lpf_limit=5))
    assert fastest is not None
    assert pairs[0][0] == fastest.cost.cycles


def test_nothing_fits_nothing_on_the_front() -> None:
    nest = product_nest(64, 64, 64)
    machine = three_levels(bits=4)
    links = {o.letter: CARRIERS[o.letter] for o in nest.operands}
    where = hierarchy_of(machine, machine.cores[0], links)
    assert pareto_front(nest, where, None, SearchOptions(lpf_limit=4)) == ()


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12))
def test_a_front_is_what_no_pair_beats(pairs: list[tuple[int, int]]) -> None:
    cycles, energy = (np.array(values, dtype=np.float64) for values in zip(*pairs, strict=True))
    kept = {pairs[i] for i in front(cycles, energy).tolist()}
    assert kept == {
        (c, e)
        for c, e in pairs
        if not any((x <= c and y < e) or (x < c and y <= e) for x, y in pairs)
    }

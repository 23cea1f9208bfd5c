"""The complete search against trying every mapping of small nests."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.random_cases import examples
from tests.search_cases import optimum, random_case

from tilewright.mapping.anneal import anneal
from tilewright.mapping.complete.search import complete
from tilewright.mapping.search import Objective, SearchOptions, loma, loma_candidates

FEW = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
OBJECTIVES: tuple[Objective, ...] = ("latency", "energy", "edp")


def value(objective: Objective, cycles: float, energy_pj: float) -> float:
    return {"latency": cycles, "energy": energy_pj, "edp": cycles * energy_pj}[objective]


@pytest.mark.slow
@FEW
@given(seed=st.integers(0, 10**6), budget=st.sampled_from([0, 50, 200_000]))
def test_what_is_proven_is_the_best_of_all_mappings(seed: int, budget: int) -> None:
    case = random_case(seed, wired=seed % 2 == 0)
    found = loma_candidates(case.nest, case.hierarchy, None, SearchOptions(lpf_limit=1))
    every = [optimum(setup) for setup, _ in found]
    least = {
        "latency": min(o.cycles for o in every),
        "energy": min(o.energy_pj for o in every),
        "edp": min(o.product for o in every),
    }
    for objective in OBJECTIVES:
        options = SearchOptions(objective=objective, budget=budget)
        mapped = complete(case.nest, case.hierarchy, None, options)
        best = least[objective]
        if mapped is None:
            assert best == float("inf")
            continue
        mine = value(objective, mapped.cost.cycles, mapped.cost.energy_pj)
        assert mapped.bound is not None
        assert mapped.bound <= best * (1 + 1e-9)
        assert mine >= best * (1 - 1e-9)
        if mapped.proven:
            assert mine == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(
    "objective",
    [pytest.param(one, marks=() if one == "latency" else pytest.mark.slow) for one in OBJECTIVES],
)
@FEW
@given(seed=st.integers(0, 10**6), budget=st.sampled_from([1, 100, 10_000]))
def test_it_is_never_worse_than_loma_whatever_the_budget(
    objective: Objective, seed: int, budget: int
) -> None:
    case = random_case(seed, primes=6)
    options = SearchOptions(objective=objective, budget=budget)
    found = complete(case.nest, case.hierarchy, None, options)
    for limit in (6, 8):
        other = loma(
            case.nest, case.hierarchy, None, SearchOptions(objective=objective, lpf_limit=limit)
        )
        if other is None:
            continue
        assert found is not None
        mine = value(objective, found.cost.cycles, found.cost.energy_pj)
        theirs = value(objective, other.cost.cycles, other.cost.energy_pj)
        assert mine <= theirs * (1 + 1e-12)
        assert found.bound is not None
        assert found.bound <= mine * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_nearly_all_small_nests_are_proven(objective: Objective) -> None:
    found = []
    for seed in range(30):
        case = random_case(seed, primes=5)
        found.append(complete(case.nest, case.hierarchy, None, SearchOptions(objective=objective)))
    known = [mapped for mapped in found if mapped is not None]
    assert len(known) >= 20
    assert sum(mapped.proven for mapped in known) >= 0.9 * len(known)


@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(FEW, max_examples=examples(12))
@given(seed=st.integers(0, 10**6))
def test_annealing_never_beats_what_is_proven(objective: Objective, seed: int) -> None:
    case = random_case(seed, primes=6)
    options = SearchOptions(objective=objective, budget=4_000)
    best = complete(case.nest, case.hierarchy, None, options)
    other = anneal(case.nest, case.hierarchy, None, options)
    if other is None:
        return
    assert best is not None
    assert best.bound is not None
    theirs = value(objective, other.cost.cycles, other.cost.energy_pj)
    assert best.bound <= theirs * (1 + 1e-9)
    if best.proven:
        mine = value(objective, best.cost.cycles, best.cost.energy_pj)
        assert mine <= theirs * (1 + 1e-9)

"""The complete search against trying every mapping of small nests."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.search_cases import optimum, random_case

from tilewright.mapping.complete import complete
from tilewright.mapping.search import Objective, SearchOptions, loma, loma_candidates

FEW = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
OBJECTIVES: tuple[Objective, ...] = ("latency", "energy", "edp")


def value(objective: Objective, cycles: float, energy_pj: float) -> float:
    return {"latency": cycles, "energy": energy_pj, "edp": cycles * energy_pj}[objective]


@pytest.mark.parametrize("objective", OBJECTIVES)
@FEW
@given(seed=st.integers(0, 10**6))
def test_what_is_proven_is_the_best_of_all_mappings(objective: Objective, seed: int) -> None:
    case = random_case(seed)
    options = SearchOptions(objective=objective)
    found = complete(case.nest, case.hierarchy, None, options)
    setups = [setup for setup, _ in loma_candidates(case.nest, case.hierarchy, None, options)]
    every = [optimum(setup) for setup in setups]
    best = min(
        {"latency": o.cycles, "energy": o.energy_pj, "edp": o.product}[objective] for o in every
    )
    if found is None:
        assert best == float("inf")
        return
    mine = value(objective, found.cost.cycles, found.cost.energy_pj)
    assert found.bound is not None
    assert found.bound <= best * (1 + 1e-9)
    assert mine >= best * (1 - 1e-9)
    if found.proven:
        assert mine == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES)
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

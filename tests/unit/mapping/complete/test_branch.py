"""Bounds, dominance and branching lose no mapping."""

from typing import Literal

import numpy as np
import pytest
from tests.mapping_cases import product_nest, setup_of, three_levels
from tests.random_cases import first_few
from tests.search_cases import optimum, random_case, setups_of

from tilewright.mapping.batch import Floats
from tilewright.mapping.complete.branch import BranchLimits, branch_and_bound
from tilewright.mapping.complete.cost_to_go import StageGraph
from tilewright.mapping.complete.dominance import Comparison, undominated
from tilewright.mapping.complete.dual import solve_dual, solve_matrix_game
from tilewright.mapping.complete.lower_bounds import energy_bounds, latency_bounds
from tilewright.mapping.complete.node_bounds import Criterion, latency_dual, node_bounds_of
from tilewright.mapping.complete.relaxation import relaxation_of


@pytest.mark.parametrize("seed", range(4))
def test_the_dual_is_a_lower_bound(seed: int) -> None:
    for setup in setups_of(random_case(seed, primes=3)):
        relaxation = relaxation_of(setup)
        if relaxation is None:
            continue
        graph = StageGraph(relaxation)
        best = optimum(setup)
        times = latency_bounds(graph)
        found = solve_dual(graph, times, np.inf)
        assert found.bound <= best.cycles * (1 + 1e-9)
        energy = solve_dual(graph, energy_bounds(graph), np.inf)
        assert energy.bound <= best.energy_pj * (1 + 1e-9)


def test_multipliers_make_the_least_row_largest() -> None:
    # Chains cost (4, 1) and (1, 2) by two bounds: multipliers (1/4, 3/4) make both cost 7/4.
    multipliers, value = solve_matrix_game(np.array([[4.0, 1.0], [1.0, 2.0]]))
    assert multipliers == pytest.approx([0.25, 0.75])
    assert value == pytest.approx(1.75)


def test_a_product_is_least_at_an_end_of_the_line() -> None:
    # Time >= 2, energy >= 3, energy + 2 time >= 10: ends (2, 6) and (3.5, 3), products 12 and 10.5.
    criterion = Criterion("product", slope=2.0)
    least = criterion.least(np.array([2.0]), np.array([3.0]), np.array([10.0]))
    assert least[0] == 10.5


def rows_at_random(seed: int) -> Comparison:
    """Few different values, so that many rows dominate others."""
    chance = np.random.default_rng(seed)
    relaxation = relaxation_of(setup_of(product_nest(2, 6, 4), three_levels()))
    assert relaxation is not None
    count = 60

    def draw(columns: int) -> Floats:
        return chance.integers(0, 3, size=(count, columns)).astype(np.float64)

    return Comparison(
        relaxation=relaxation,
        tiles=chance.integers(0, relaxation.tables.lattice.size, size=count),
        costs=draw(2),
        overrun=draw(2),
        busy_cycles=draw(2),
        loads=draw(2),
        reuse=draw(3),
    )


def dominates(rows: Comparison, a: int, b: int) -> bool:
    """Whether row a makes row b superfluous, straight from what that means."""
    lattice, nest = rows.relaxation.tables.lattice, rows.relaxation.setup.nest
    ratio = lattice.extents[:, rows.tiles[b]] / lattice.extents[:, rows.tiles[a]]
    delay = max(
        max(rows.overrun[a, p] - rows.overrun[b, p], 0)
        + max(rows.busy_cycles[a, p] - rows.busy_cycles[b, p], 0)
        for p in range(2)
    )
    for number, operand in enumerate(nest.operands):
        # Reuse goes on only as long as every loop that moves the operand stays.
        same = nest.irrelevant(operand)
        stays = all(r == 1 or n in same for n, r in zip(lattice.names, ratio, strict=True))
        reuse = rows.reuse[a, number] * np.prod(ratio) if stays else 1.0
        if 0 < rows.reuse[b, number] < reuse:
            return False
    return bool(
        (ratio == np.floor(ratio)).all()
        and (rows.costs[a] <= rows.costs[b]).all()
        and delay + (rows.loads[a] - rows.loads[b]).max() <= 0
    )


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_dropped_exactly_if_an_earlier_one_dominates_them(seed: int) -> None:
    rows = rows_at_random(seed)
    kept: list[int] = []
    for row in range(rows.tiles.size):
        if not any(dominates(rows, earlier, row) for earlier in kept):
            kept.append(row)
    assert undominated(rows).tolist() == kept
    assert len(kept) < rows.tiles.size


# In cases 50, 129 and 139 levels have to end with loops that leave their operand as it is.
@pytest.mark.parametrize("seed", first_few([50, 1, 2, 4, 5, 6, 0, 129, 139], 6))
@pytest.mark.parametrize("kind", ["time", "energy", "product"])
def test_a_search_without_an_incumbent_loses_no_mapping(
    kind: Literal["time", "energy", "product"], seed: int
) -> None:
    criterion = Criterion(kind, slope=3.0)
    for setup in setups_of(random_case(seed, primes=3)):
        relaxation = relaxation_of(setup)
        best = optimum(setup)
        value = {"time": best.cycles, "energy": best.energy_pj, "product": best.product}[kind]
        if relaxation is None:
            assert value == np.inf
            continue
        graph = StageGraph(relaxation)
        dual = latency_dual(graph, np.inf) if criterion.bounds_time else None
        node_bounds = node_bounds_of(graph, criterion, dual)
        assert node_bounds.bound <= value * (1 + 1e-9)
        result = branch_and_bound(graph, node_bounds, BranchLimits(below=np.inf, budget=10**9))
        assert result.complete
        assert result.least <= value * (1 + 1e-9)
        if kind == "energy" and value < np.inf:
            assert result.least == pytest.approx(value, rel=1e-9)

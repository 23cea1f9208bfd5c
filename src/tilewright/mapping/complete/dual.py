"""The Lagrangian dual: the convex combination of linear bounds whose least chain costs most.

    max over multipliers m >= 0, sum m = 1, of  min over chains c of  sum_k m[k] * bound_k(c)

Solved by cutting planes: each round finds the cheapest chain of the present combination by dynamic
programming, then the combination under which the cheapest of all chains found so far costs most.
Any multipliers give a valid bound, so the rounds may stop at any time.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.mapping.batch import Floats, Ints
from tilewright.mapping.complete.cost_to_go import LinearBounds, StageGraph, cost_to_go

_ROUNDS = 12
_DAMPING = 0.2
"""Part of the best multipliers so far in the next ones, against going back and forth."""


@dataclass(frozen=True, eq=False)
class DualSolution:
    """The best multipliers of the linear bounds, their bound, and the chains found on the way."""

    multipliers: Floats
    bound: float
    chains: tuple[Ints, ...]


def solve_dual(graph: StageGraph, linear: LinearBounds, enough: float) -> DualSolution:
    """Raise the bound until it reaches `enough` or rises no more."""
    count = linear.constants.size
    multipliers = np.full(count, 1.0 / count)
    best, best_multipliers = -np.inf, multipliers
    planes: list[Floats] = []
    chains: dict[bytes, Ints] = {}
    for _ in range(_ROUNDS if count > 1 else 1):
        found = cost_to_go(graph, linear.combined(multipliers[:, None]))
        bound = float(found.root_bounds[0])
        if bound > best:
            best, best_multipliers = bound, multipliers
        if not best < min(enough, np.inf):
            break
        chain, stage = found.cheapest_chain(0)
        chains.setdefault(chain.tobytes(), chain)
        totals = totals_of(graph, chain)
        planes.append(totals @ linear.weights + linear.constants + linear.ends[stage])
        reply, value = solve_matrix_game(np.array(planes))
        if best >= value - 1e-6 * abs(value):
            break
        multipliers = _DAMPING * best_multipliers + (1 - _DAMPING) * reply
    return DualSolution(best_multipliers, best, tuple(chains.values()))


def totals_of(graph: StageGraph, chain: Ints) -> Floats:
    """The totals of a complete chain, its loads at the whole nest left out."""
    relaxation = graph.relaxation
    totals = relaxation.initial_totals.copy()
    tiles = iter(chain)
    for increments in relaxation.increments:
        for increment in increments:
            totals += increment[next(tiles)]
    return totals


def solve_matrix_game(rows: Floats) -> tuple[Floats, float]:
    """Multipliers of the columns under which the least row is largest, and its value.

    The linear programme of a matrix game (Dantzig, 1951): with all figures positive, maximise the
    sum of y under y @ rows <= 1; the prices of these limits are the multipliers, up to a factor.
    """
    low, span = float(rows.min()), float(np.ptp(rows)) or 1.0
    game = (rows - low) / span + 1.0
    n_rows, n_columns = game.shape
    table = np.zeros((n_columns + 1, n_rows + n_columns + 1))
    table[:-1, :n_rows] = game.T
    table[:-1, n_rows:-1] = np.eye(n_columns)
    table[:-1, -1] = 1.0
    table[-1, :n_rows] = -1.0
    for _ in range(4 * (n_rows + n_columns)):
        entering = np.flatnonzero(table[-1, :-1] < -1e-10)
        if not entering.size:
            break
        column = int(entering[0])
        rising = np.flatnonzero(table[:-1, column] > 1e-12)
        leaving = int(rising[np.argmin(table[rising, -1] / table[rising, column])])
        table[leaving] /= table[leaving, column]
        rest = np.arange(n_columns + 1) != leaving
        table[rest] -= table[rest, column, None] * table[leaving]
    prices = np.maximum(table[-1, n_rows:-1], 0.0)
    return prices / prices.sum(), low + span * (1.0 / prices.sum() - 1.0)

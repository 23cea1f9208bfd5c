"""The best ways to fill the array dims that a user leaves open: exact branch and bound.

The score is ZigZag 3.9's: `U + U/M - 1` with U units in use and M the largest total unrolling of
one loop. Ties go to the choice that was listed first, array dim by array dim.
"""

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import inf, isqrt, prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

Pairs = tuple[tuple[str, int], ...]
"""Loops unrolled over one array dim, each with its factor."""

CANDIDATES: Final = 200_000
"""Budget of one search: whole and partial candidates looked at, plus `_PER_STEP` for each step."""

_PER_STEP: Final = 200
"""What a step costs before it looks at its first candidate, in candidates (measured in 2025)."""

_MOST_BANDS: Final = 48


def divisors(number: int) -> tuple[int, ...]:
    """Divisors in ascending order; none of zero."""
    low = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    return (*low, *(number // d for d in reversed(low) if d * d != number))


def fillings(
    loops: Sequence[str], most: Mapping[str, int], size: int, *, mixed: bool
) -> tuple[Pairs, ...]:
    """All ways to fill one array dim of a size: one loop each, then, if mixed, several at once.

    A factor divides the most that its loop may have here. Loops come in the given order, factors
    of a single loop largest first, those of several ascending.
    """
    known = [loop for loop in loops if loop in most]
    single = [((loop, factor),) for loop in known for factor in reversed(divisors(most[loop]))]
    several = _mixtures(known, most, size) if mixed else ()
    # A port narrower than one element of some loop allows no factor: one element is fed slowly.
    return (*single, *several) or tuple(((loop, 1),) for loop in known[:1])


def _mixtures(loops: Sequence[str], most: Mapping[str, int], size: int) -> Iterator[Pairs]:
    factors = {loop: divisors(most[loop])[1:] for loop in loops}
    varied = [loop for loop in loops if factors[loop]]
    for count in range(2, len(varied) + 1):
        for chosen in combinations(varied, count):
            yield from _products([(loop, factors[loop]) for loop in chosen], size)


def _products(chosen: Sequence[tuple[str, tuple[int, ...]]], size: int) -> Iterator[Pairs]:
    """Combinations of one factor per loop whose product is at most `size`, in ascending order."""
    (loop, factors), *rest = chosen
    least = prod(others[0] for _, others in rest)
    for factor in factors:
        if factor * least > size:
            return
        if not rest:
            yield ((loop, factor),)
            continue
        for tail in _products(rest, size // factor):
            yield ((loop, factor), *tail)


@dataclass(frozen=True)
class _Problem:
    """What the search knows from the start.

    Solutions fall into bands by M, the largest total of a loop. In band b, M is `least[b]` or more,
    no total is above `most[b]`, all totals multiply to no more than `capacity[b]`, and the array
    dims from the d-th on contribute no more than `rest[d, b]`.
    """

    sizes: NDArray[np.int64]
    factors: tuple[NDArray[np.int64], ...]
    """Per array dim a row for each of its fillings, with a factor for every loop."""
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    capacity: NDArray[np.float64]
    rest: NDArray[np.float64]
    limit: int


@dataclass
class _Found:
    """The search so far: solutions as (negated score, positions), best first, and its effort."""

    kept: list[tuple[float, tuple[int, ...]]]
    looked_at: int


def best_fillings(
    sizes: Mapping[str, int],
    unrolled: Mapping[str, int],
    options: Sequence[Sequence[Pairs]],
    limit: int,
) -> tuple[tuple[Pairs, ...], ...]:
    """The `limit` best choices of one filling per array dim, best first.

    `unrolled` is what other array dims unroll already; no loop is unrolled beyond its size. Exact
    unless the budget of `CANDIDATES` is used up: then the best so far count. One loop per array dim
    stays far below that; several loops at once on three or more array dims may not.
    """
    start = np.array([unrolled.get(loop, 1) for loop in sizes], np.int64)
    found = _Found([], 0)
    _search(_problem(sizes, start, options, limit), start, (), found)
    return tuple(
        tuple(option[i] for option, i in zip(options, chosen, strict=True))
        for _, chosen in found.kept
    )


def _search(
    problem: _Problem, totals: NDArray[np.int64], chosen: tuple[int, ...], found: _Found
) -> None:
    """Add to `found` all of the best solutions that start with the chosen fillings."""
    kept = found.kept
    factors = problem.factors[len(chosen)]
    found.looked_at += len(factors) + _PER_STEP
    if kept and found.looked_at > CANDIDATES:
        return
    extended = totals * factors
    legal = np.flatnonzero((extended <= problem.sizes).all(axis=1))
    extended = extended[legal]
    is_last = len(chosen) + 1 == len(problem.factors)
    values = _scores(extended) if is_last else _bounds(problem, extended, len(chosen) + 1)
    for i in np.argsort(-values, kind="stable"):
        key = (-float(values[i]), (*chosen, int(legal[i])))
        if len(kept) == problem.limit:
            worst_score, worst = kept[-1]
            if key[0] > worst_score:
                return
            if key > (worst_score, worst[: len(key[1])]):
                continue
        if is_last:
            insort(kept, key)
            del kept[problem.limit :]
        else:
            _search(problem, extended[i], key[1], found)


def _scores(totals: NDArray[np.int64]) -> NDArray[np.float64]:
    units = totals.prod(axis=1).astype(np.float64)
    scores: NDArray[np.float64] = units + (units / totals.max(axis=1) - 1)
    return scores


def _bounds(problem: _Problem, totals: NDArray[np.int64], depth: int) -> NDArray[np.float64]:
    """No solution that extends these totals by the array dims from `depth` on scores more."""
    units = totals.prod(axis=1).astype(np.float64)[:, None]
    peaks = totals.max(axis=1)[:, None]
    room = (problem.sizes // totals).astype(np.float64).prod(axis=1)[:, None]
    most_units = np.minimum(units * np.minimum(problem.rest[depth], room), problem.capacity)
    values = most_units + (most_units / np.maximum(problem.least, peaks) - 1)
    bounds: NDArray[np.float64] = np.where(problem.most >= peaks, values, -1.0).max(axis=1)
    return bounds


def _problem(
    sizes: Mapping[str, int],
    start: NDArray[np.int64],
    options: Sequence[Sequence[Pairs]],
    limit: int,
) -> _Problem:
    reach = _reachable_totals(sizes, start, options)
    bands = sorted({total for totals in reach for total in totals})
    bands = bands[:: -(-len(bands) // _MOST_BANDS)]
    most = [above - 1 for _, above in pairwise(bands)] + [inf]
    capacity = [
        prod(totals[bisect_right(totals, m) - 1] if totals[0] <= m else 0 for totals in reach)
        for m in most
    ]
    factors = tuple(_rows(list(sizes), option) for option in options)
    rest = np.ones((len(options) + 1, len(bands)))
    for depth in reversed(range(len(options))):
        fits = factors[depth].max(axis=1)[:, None] <= np.array(most)
        units = np.where(fits, factors[depth].prod(axis=1)[:, None], 0)
        rest[depth] = rest[depth + 1] * units.max(axis=0)
    return _Problem(
        sizes=np.array(list(sizes.values()), np.int64),
        factors=factors,
        least=np.array(bands, np.float64),
        most=np.array(most),
        capacity=np.array(capacity, np.float64),
        rest=rest,
        limit=limit,
    )


def _rows(loops: list[str], option: Sequence[Pairs]) -> NDArray[np.int64]:
    columns = {loop: i for i, loop in enumerate(loops)}
    rows = np.ones((len(option), len(loops)), np.int64)
    for row, pairs in zip(rows, option, strict=True):
        for loop, factor in pairs:
            row[columns[loop]] = factor
    return rows


def _reachable_totals(
    sizes: Mapping[str, int], start: NDArray[np.int64], options: Sequence[Sequence[Pairs]]
) -> list[list[int]]:
    """Per loop, ascending, the totals that its factors on all array dims can multiply to."""
    totals = {loop: {int(total)} for loop, total in zip(sizes, start, strict=True)}
    for option in options:
        factors: dict[str, set[int]] = {}
        for pairs in option:
            for loop, factor in pairs:
                factors.setdefault(loop, set()).add(factor)
        for loop, known in factors.items():
            more = {t * f for t in totals[loop] for f in known if t * f <= sizes[loop]}
            totals[loop] |= more
    return [sorted(reachable) for reachable in totals.values()]

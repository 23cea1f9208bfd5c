"""Addresses for all buffers of a memory: heuristics first, then exact search part by part."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from tilewright.errors import InputError
from tilewright.placement.bounds import granularity, simple_bound
from tilewright.placement.climb import hill_climb
from tilewright.placement.exact import Range, place_lowest, place_within
from tilewright.placement.heuristics import Candidate, peak_bytes, portfolio
from tilewright.placement.meetings import meetings_of
from tilewright.placement.pieces import in_pieces
from tilewright.placement.problem import (
    Buffer,
    Packing,
    PlacementProblem,
    fixed_clashes,
    without_groups,
)
from tilewright.placement.search import Status
from tilewright.placement.sections import instance_of, time_parts

_EXACT = "exact search"
_MOST_PAIRS_TO_CLIMB = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PackOptions:
    """How much work may be done: nodes of the exact search, orders of the hill climb."""

    node_budget: int = 1_000_000
    climb_evaluations: int = 50
    seed: int = 0
    above_capacity: bool = True
    """Whether to look for the lowest placement if none fits, to say how much more would do."""
    # Beyond this many buffers that hang together only the heuristics are tried.
    largest_exact_part: int = 4_000
    settles_largest: bool = False
    """Whether these also try to place the largest buffers exactly, and others around them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Needs:
    """A peak below which nothing more is wanted, and one that no placement is below."""

    goal_bytes: int
    bound_bytes: int
    is_capacity: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartResult:
    candidate: Candidate
    bound_bytes: int
    nodes: int


def pack(problem: PlacementProblem, options: PackOptions | None = None) -> Packing:
    """A placement of every buffer and a bound of the peak, whatever the budget.

    With a capacity it stops at the first placement that fits; ask `fits` whether there was one.
    Raises InputError if fixed addresses contradict each other.
    """
    options = options or PackOptions()
    merged, stands_for = without_groups(problem)
    clashes = tuple(fixed_clashes(merged))
    if clashes:
        raise InputError(*clashes)
    solid = [j for j, buffer in enumerate(merged.buffers) if buffer.size_bytes]
    parts = [[solid[k] for k in part] for part in time_parts([merged.buffers[j] for j in solid])]
    empty_ends = [b.address or 0 for b in merged.buffers if not b.size_bytes]
    addresses = [buffer.address or 0 for buffer in merged.buffers]
    results = _pack_parts(merged, parts, max(empty_ends, default=0), options)
    for part, result in zip(parts, results, strict=True):
        for j, address in zip(part, result.candidate.addresses, strict=True):
            addresses[j] = address
    highest = max((r.candidate for r in results), key=lambda c: c.peak_bytes, default=None)
    return Packing(
        problem=problem,
        addresses=tuple(addresses[j] for j in stands_for),
        bound_bytes=max([*(r.bound_bytes for r in results), *empty_ends], default=0),
        method=highest.method if highest else "nothing to place",
        nodes=sum(r.nodes for r in results),
    )


def _pack_parts(
    problem: PlacementProblem, parts: Sequence[Sequence[int]], goal: int, options: PackOptions
) -> list[_PartResult]:
    """Hardest part first: the peak that it cannot avoid is good enough for all the others."""
    bounds = [simple_bound([problem.buffers[j] for j in part]) for part in parts]
    capacity = problem.capacity_bytes
    goal = max([goal, *bounds] if capacity is None else [goal, capacity], default=0)
    results: dict[int, _PartResult] = {}
    for number in sorted(range(len(parts)), key=lambda p: (-bounds[p], p)):
        needs = _Needs(
            goal_bytes=max(goal, bounds[number]),
            bound_bytes=bounds[number],
            is_capacity=goal == capacity and bounds[number] <= goal,
        )
        result = _pack_part([problem.buffers[j] for j in parts[number]], needs, options)
        results[number] = result
        goal = max(goal, result.candidate.peak_bytes)
        options = replace(options, node_budget=options.node_budget - result.nodes)
    return [results[number] for number in range(len(parts))]


def _pack_part(buffers: Sequence[Buffer], needs: _Needs, options: PackOptions) -> _PartResult:
    if len(buffers) == 1 and buffers[0].address is None and len(buffers[0].lives) == 1:
        # Nothing is in its way, and there may be hundreds of such parts.
        alone = Candidate(method="linear scan", addresses=(0,), peak_bytes=buffers[0].size_bytes)
        return _PartResult(candidate=alone, bound_bytes=needs.bound_bytes, nodes=0)
    is_large = len(buffers) > options.largest_exact_part
    settle = partial(_settled, options=options) if is_large and options.settles_largest else None
    best = portfolio(buffers, needs.goal_bytes, settle)
    if best.peak_bytes <= needs.goal_bytes:
        return _PartResult(candidate=best, bound_bytes=needs.bound_bytes, nodes=0)
    bound, nodes = needs.bound_bytes, 0
    if is_large:
        addresses = in_pieces(
            buffers, partial(_fitting, goal_bytes=needs.goal_bytes, options=options)
        )
        if addresses is not None:
            peak = peak_bytes(buffers, addresses)
            best = Candidate(method="piece by piece", addresses=addresses, peak_bytes=peak)
            return _PartResult(candidate=best, bound_bytes=bound, nodes=0)
    else:
        best, bound, nodes = _improved(buffers, needs, options, best)
    if nodes == 0 or best.method != _EXACT:
        best = _climbed(buffers, needs, options, best)
    return _PartResult(candidate=best, bound_bytes=bound, nodes=nodes)


def _fitting(
    buffers: Sequence[Buffer], goal_bytes: int, options: PackOptions
) -> Sequence[int] | None:
    """Addresses of a piece that stay below a peak; None if none are found."""
    bound = simple_bound(buffers)
    if bound > goal_bytes:
        return None
    needs = _Needs(goal_bytes=goal_bytes, bound_bytes=bound, is_capacity=True)
    few = replace(options, climb_evaluations=0, above_capacity=False)
    found = _pack_part(buffers, needs, few).candidate
    return found.addresses if found.peak_bytes <= goal_bytes else None


def _settled(buffers: Sequence[Buffer], options: PackOptions) -> tuple[int, ...]:
    """Addresses of the largest buffers of a part, packed as tightly as if there were no others."""
    few = replace(options, climb_evaluations=0, largest_exact_part=len(buffers))
    return pack(PlacementProblem(buffers=tuple(buffers)), few).addresses


def _improved(
    buffers: Sequence[Buffer], needs: _Needs, options: PackOptions, best: Candidate
) -> tuple[Candidate, int, int]:
    """A lower placement if the exact search finds one, the bound it proves, and its nodes."""
    instance = instance_of(buffers)
    bound, nodes = needs.bound_bytes, 0
    floor = needs.goal_bytes
    if needs.is_capacity:
        # The rest of the budget says how much more memory would do.
        budget = options.node_budget * 3 // 4
        outcome = place_within(buffers, instance, floor, budget, options.seed)
        nodes = outcome.nodes
        if outcome.status is Status.FOUND:
            return _exact(buffers, outcome.addresses), bound, nodes
        if outcome.status is Status.EXHAUSTED:
            bound = floor + 1
        if not options.above_capacity:
            return best, bound, nodes
        floor += 1
    step = granularity(buffers)
    known = Range(peak_bytes=best.peak_bytes, bound_bytes=floor, step_bytes=step)
    smallest = place_lowest(buffers, instance, known, options.node_budget - nodes, options.seed)
    nodes += smallest.nodes
    tried_from = -(-floor // step) * step
    if smallest.bound_bytes > tried_from or bound >= floor:
        bound = max(bound, smallest.bound_bytes)
    if smallest.addresses:
        best = _exact(buffers, smallest.addresses)
    return best, bound, nodes


def _exact(buffers: Sequence[Buffer], addresses: tuple[int, ...]) -> Candidate:
    return Candidate(method=_EXACT, addresses=addresses, peak_bytes=peak_bytes(buffers, addresses))


def _climbed(
    buffers: Sequence[Buffer], needs: _Needs, options: PackOptions, best: Candidate
) -> Candidate:
    if not options.climb_evaluations or meetings_of(buffers, _MOST_PAIRS_TO_CLIMB) is None:
        return best
    climbed = hill_climb(
        buffers,
        needs.goal_bytes,
        evaluations=options.climb_evaluations,
        seed=options.seed,
    )
    return min(best, climbed, key=lambda candidate: candidate.peak_bytes)

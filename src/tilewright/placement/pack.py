"""Addresses for all buffers of a memory: heuristics first, then exact search part by part."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.errors import InputError
from tilewright.placement.bounds import granularity, simple_bound
from tilewright.placement.climb import hill_climb
from tilewright.placement.exact import Range, place_lowest, place_within
from tilewright.placement.heuristics import Candidate, portfolio
from tilewright.placement.problem import (
    Buffer,
    Packing,
    PlacementProblem,
    fixed_clashes,
    without_groups,
)
from tilewright.placement.search import Status
from tilewright.placement.sections import Instance, instance_of, time_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class PackOptions:
    """How much work may be done: nodes of the exact search, orders of the hill climb."""

    node_budget: int = 1_000_000
    climb_evaluations: int = 50
    seed: int = 0
    # Beyond this many buffers that hang together only the heuristics are tried.
    largest_exact_part: int = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartResult:
    addresses: tuple[int, ...]
    peak_bytes: int
    bound_bytes: int
    method: str
    nodes: int


def pack(problem: PlacementProblem, options: PackOptions | None = None) -> Packing:
    """A placement of every buffer and a bound of the peak, whatever the budget.

    With a capacity it stops at the first placement that fits; ask `fits` whether there was one.
    Raises InputError if fixed addresses contradict each other.
    """
    options = options or PackOptions()
    clashes = tuple(fixed_clashes(problem)) if not problem.groups else ()
    merged, stands_for = without_groups(problem)
    clashes = clashes or tuple(fixed_clashes(merged))
    if clashes:
        raise InputError(*clashes)
    addresses = [buffer.address or 0 for buffer in merged.buffers]
    solid = [j for j, buffer in enumerate(merged.buffers) if buffer.size_bytes]
    parts = [
        [solid[k] for k in part] for part in time_parts([merged.buffers[j] for j in solid])
    ]
    bounds = [simple_bound([merged.buffers[j] for j in part]) for part in parts]
    empty_ends = [b.address or 0 for b in merged.buffers if not b.size_bytes]
    goal = max([*bounds, *empty_ends, merged.capacity_bytes or 0], default=0)
    results = []
    # Hardest part first: the peak that it cannot avoid is good enough for all the others.
    for number in sorted(range(len(parts)), key=lambda p: (-bounds[p], p)):
        part = parts[number]
        result = _pack_part([merged.buffers[j] for j in part], goal, bounds[number], options)
        goal = max(goal, result.peak_bytes)
        options = replace(options, node_budget=options.node_budget - result.nodes)
        results.append(result)
        for j, address in zip(part, result.addresses, strict=True):
            addresses[j] = address
    last = max(results, key=lambda r: r.peak_bytes, default=None)
    return Packing(
        problem=problem,
        addresses=tuple(addresses[j] for j in stands_for),
        bound_bytes=max([*(r.bound_bytes for r in results), *empty_ends], default=0),
        method=last.method if last else "nothing to place",
        nodes=sum(r.nodes for r in results),
    )


def _pack_part(
    buffers: Sequence[Buffer], goal: int, bound: int, options: PackOptions
) -> _PartResult:
    best = portfolio(buffers, goal)
    if best.peak_bytes <= goal or len(buffers) > options.largest_exact_part:
        return _result(best, bound, 0)
    instance = instance_of(buffers)
    outcome = place_within(buffers, instance, goal, options.node_budget, options.seed)
    if outcome.status is Status.FOUND:
        peak = max(a + b.size_bytes for a, b in zip(outcome.addresses, buffers, strict=True))
        found = Candidate(method="exact search", addresses=outcome.addresses, peak_bytes=peak)
        return _result(found, bound, outcome.nodes)
    if outcome.status is Status.EXHAUSTED:
        bound = max(bound, goal + 1)
    return _lowered(buffers, instance, best, bound, (options, outcome.nodes))

"""Placement against brute force, against itself without the kernel, and against its checker."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from tests.placement_cases import random_buffers, smallest_peak
from tests.random_cases import first_few

from tilewright.placement.bounds import granularity, simple_bound
from tilewright.placement.check import violations
from tilewright.placement.climb import hill_climb
from tilewright.placement.exact import Range, place_lowest
from tilewright.placement.fit import first_fit, linear_scan, scan_both_ends, times_of
from tilewright.placement.heuristics import Candidate, greedy_orders, peak_bytes, portfolio
from tilewright.placement.meetings import is_compiled as fit_is_compiled
from tilewright.placement.meetings import meetings_of
from tilewright.placement.pack import PackOptions, pack
from tilewright.placement.pieces import in_pieces
from tilewright.placement.problem import Buffer, PlacementProblem, meet
from tilewright.placement.search import Rule, Status, is_compiled, search
from tilewright.placement.sections import instance_of

BATCHES = 20
PER_BATCH = 100


def faults(buffers: list[Buffer], addresses: tuple[int, ...] | list[int]) -> list[str]:
    problem = PlacementProblem(buffers=tuple(buffers))
    names = (buffer.name for buffer in buffers)
    return [str(p) for p in violations(problem, dict(zip(names, addresses, strict=True)))]


@pytest.mark.parametrize("batch", first_few(range(BATCHES), 4))
def test_the_exact_peak_is_that_of_brute_force(batch: int) -> None:
    for seed in range(batch * PER_BATCH, (batch + 1) * PER_BATCH):
        buffers = random_buffers(seed)
        smallest = smallest_peak(buffers)
        packing = pack(PlacementProblem(buffers=tuple(buffers)))
        assert packing.peak_bytes == smallest, seed
        assert packing.proven, seed
        assert faults(buffers, packing.addresses) == [], seed
        if smallest == 0:
            continue
        tight = pack(PlacementProblem(buffers=tuple(buffers), capacity_bytes=smallest - 1))
        assert not tight.fits, seed
        assert tight.impossible, seed
        exactly = pack(PlacementProblem(buffers=tuple(buffers), capacity_bytes=smallest))
        assert exactly.fits, seed


@pytest.mark.parametrize("batch", range(4))
def test_the_search_alone_finds_the_smallest_peak_under_any_rule(batch: int) -> None:
    for seed in range(batch * PER_BATCH, (batch + 1) * PER_BATCH):
        buffers = random_buffers(seed)
        smallest = smallest_peak(buffers)
        instance = instance_of(buffers)
        order = list(range(len(buffers)))
        random.Random(seed).shuffle(order)
        for lowest_section_first in (False, True):
            rule = Rule(order=tuple(order), lowest_section_first=lowest_section_first)
            found = search(instance, rule, smallest, 100_000)
            assert found.status is Status.FOUND, seed
            assert faults(buffers, found.addresses) == [], seed
            below = search(instance, rule, smallest - 1, 100_000)
            assert below.status is Status.EXHAUSTED, seed


@pytest.mark.skipif(not is_compiled(), reason="the kernel is not compiled here")
@pytest.mark.parametrize("seed", range(60))
def test_the_kernel_and_python_take_the_same_nodes_to_the_same_addresses(seed: int) -> None:
    chance = random.Random(seed)
    buffers = random_buffers(seed, most=chance.choice([8, 16, 30]))
    instance = instance_of(buffers)
    bound = simple_bound(buffers)
    order = list(range(len(buffers)))
    chance.shuffle(order)
    for capacity in (bound, bound + 1, bound + 4):
        for lowest_section_first in (False, True):
            rule = Rule(order=tuple(order), lowest_section_first=lowest_section_first)
            assert search(instance, rule, capacity, 500) == search(
                instance, rule, capacity, 500, engine="python"
            )


@pytest.mark.parametrize("batch", range(4))
def test_heuristics_are_always_feasible_and_report_their_peak(batch: int) -> None:
    for seed in range(batch * PER_BATCH, (batch + 1) * PER_BATCH):
        buffers = random_buffers(seed, most=20)
        for candidate in candidates(buffers, seed):
            assert faults(buffers, candidate.addresses) == [], (seed, candidate.method)
            ends = [a + b.size_bytes for a, b in zip(candidate.addresses, buffers, strict=True)]
            assert candidate.peak_bytes == max(ends), (seed, candidate.method)
            assert candidate.peak_bytes >= simple_bound(buffers)


def candidates(buffers: list[Buffer], seed: int) -> list[Candidate]:
    found = [portfolio(buffers, 0), hill_climb(buffers, 0, evaluations=5, seed=seed)]
    meetings = meetings_of(buffers)
    assert meetings is not None
    placed = {
        method: first_fit(buffers, order, meetings) for method, order in greedy_orders(buffers)
    }
    if all(b.address is None and len(b.lives) == 1 for b in buffers):
        placed["linear scan"] = linear_scan(times_of(buffers))
        both = scan_both_ends(times_of(buffers), 2 * simple_bound(buffers))
        if both is not None:
            placed["both ends"] = both
    for method, addresses in placed.items():
        peak = max(a + b.size_bytes for a, b in zip(addresses, buffers, strict=True))
        found.append(Candidate(method=method, addresses=tuple(addresses), peak_bytes=peak))
    return found


def buffers_of_many_kinds(seed: int) -> list[Buffer]:
    """Up to 120 buffers, every fourth one with an address that it would like."""
    chance = random.Random(seed)
    buffers = random_buffers(seed, most=chance.choice([10, 40, 120]))
    return [
        replace(b, hint=b.alignment_bytes * chance.randrange(8)) if chance.random() < 0.25 else b
        for b in buffers
    ]


@pytest.mark.skipif(not fit_is_compiled(), reason="the kernel is not compiled here")
@pytest.mark.parametrize("seed", range(100))
def test_the_kernel_and_python_put_every_buffer_at_the_same_address(seed: int) -> None:
    buffers = buffers_of_many_kinds(seed)
    meetings = meetings_of(buffers)
    assert meetings is not None
    assert meetings == meetings_of(buffers, engine="python")
    for _, order in greedy_orders(buffers):
        by_kernel = first_fit(buffers, order, meetings)
        assert list(by_kernel) == list(first_fit(buffers, order, meetings, engine="python"))
    single = [replace(b, lives=b.lives[:1], address=None) for b in buffers]
    assert meetings_of(single) == meetings_of(single, engine="python")
    times = times_of(single)
    assert list(linear_scan(times)) == list(linear_scan(times, engine="python"))
    for percent in (90, 100, 104, 130, 200):
        capacity = simple_bound(single) * percent // 100
        found = [scan_both_ends(times, capacity, engine) for engine in ("fastest", "python")]
        assert list(found[0] or ()) == list(found[1] or ())
        assert (found[0] is None) == (found[1] is None)


@pytest.mark.parametrize("seed", range(40))
def test_those_that_meet_are_counted_and_listed_as_lives_say(seed: int) -> None:
    buffers = random_buffers(seed, most=30)
    meetings = meetings_of(buffers)
    assert meetings is not None
    for j, buffer in enumerate(buffers):
        others = [k for k, other in enumerate(buffers) if k != j and meet(buffer, other)]
        assert sorted(meetings.of(j)) == others
    single = [replace(b, lives=b.lives[:1]) for b in buffers]
    pairs = sum(meet(one, other) for one, other in combinations(single, 2))
    assert meetings_of(single, pairs) is not None
    assert pairs == 0 or meetings_of(single, pairs - 1) is None


@pytest.mark.parametrize("seed", range(40))
def test_input_order_names_and_scale_do_not_matter(seed: int) -> None:
    buffers = random_buffers(seed)
    peak = pack(PlacementProblem(buffers=tuple(buffers))).peak_bytes
    shuffled = [replace(b, name=f"other {b.name}") for b in buffers]
    random.Random(seed).shuffle(shuffled)
    assert pack(PlacementProblem(buffers=tuple(shuffled))).peak_bytes == peak
    scaled = [
        replace(
            b,
            size_bytes=64 * b.size_bytes,
            alignment_bytes=64 * b.alignment_bytes,
            address=None if b.address is None else 64 * b.address,
        )
        for b in buffers
    ]
    assert pack(PlacementProblem(buffers=tuple(scaled))).peak_bytes == 64 * peak


@pytest.mark.parametrize("seed", range(30))
def test_with_any_budget_the_answer_is_a_placement_and_a_bound_below_it(seed: int) -> None:
    buffers = random_buffers(seed, most=25)
    problem = PlacementProblem(buffers=tuple(buffers))
    best = pack(problem, PackOptions(node_budget=5_000))
    for budget in (0, 1, 10, 100):
        packing = pack(problem, PackOptions(node_budget=budget))
        assert faults(buffers, packing.addresses) == []
        assert packing.bound_bytes <= best.peak_bytes <= packing.peak_bytes
        assert packing.nodes <= budget


@pytest.mark.parametrize("seed", range(30))
def test_the_smallest_capacity_does_not_depend_on_where_the_search_starts(seed: int) -> None:
    buffers = random_buffers(seed)
    instance = instance_of(buffers)
    smallest = smallest_peak(buffers)
    known = Range(
        peak_bytes=10_000, bound_bytes=simple_bound(buffers), step_bytes=granularity(buffers)
    )
    found = place_lowest(buffers, instance, known, 1_000_000, seed)
    assert (found.peak_bytes, found.bound_bytes) == (smallest, smallest)


def in_a_row(seed: int) -> list[Buffer]:
    """Random buffers one after the other, and two that live all the time."""
    shifted = [
        replace(
            buffer,
            name=f"{buffer.name} of {number}",
            lives=tuple((start + 20 * number, end + 20 * number) for start, end in buffer.lives),
        )
        for number in range(5)
        for buffer in random_buffers(5 * seed + number)
    ]
    long = [Buffer(name=f"long {size}", lives=((0, 100),), size_bytes=size) for size in (2, 3)]
    return [*shifted, *long]


@pytest.mark.parametrize("batch", first_few(range(BATCHES), 4))
def test_what_is_placed_piece_by_piece_stays_apart_and_within_the_capacity(batch: int) -> None:
    found = 0
    for seed in range(batch * PER_BATCH // 5, (batch + 1) * PER_BATCH // 5):
        buffers = in_a_row(seed)
        capacity = simple_bound(buffers) + seed % 3

        def place(part: Sequence[Buffer], capacity: int = capacity) -> tuple[int, ...] | None:
            packing = pack(PlacementProblem(buffers=tuple(part), capacity_bytes=capacity))
            return packing.addresses if packing.fits else None

        addresses = in_pieces(buffers, place)
        if addresses is not None:
            found += 1
            assert faults(buffers, addresses) == [], seed
            assert peak_bytes(buffers, addresses) <= capacity, seed
    assert found

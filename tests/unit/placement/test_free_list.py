"""The free list: which gap is taken, what is left, and that nothing is lost on the way."""

import random
from typing import Any

import pytest
from tests.reference_data import reference_cases

from tilewright.placement.eviction import HeldRange, LinearScan
from tilewright.placement.free_list import FreeList, Request


@pytest.mark.parametrize("case", reference_cases("allocator"))
def test_the_allocator_does_what_the_reference_does(case: dict[str, Any]) -> None:
    free = FreeList(case["capacity"])
    held: dict[str, tuple[int, int]] = {}
    for step in case["steps"]:
        match step["do"]:
            case "alloc":
                address = free.allocate(
                    step["size"], step.get("align", 1), step.get("dir") == "down"
                )
                assert address == step["expect"]
                if address is not None:
                    held[step["id"]] = (address, address + step["size"])
            case "fixed":
                held[step["id"]] = (step["addr"], step["addr"] + step["size"])
                free.take(*held[step["id"]])
            case "free":
                free.free(*held.pop(step["id"]))
            case _:
                assert free.free_bytes == step.get("total_free", free.free_bytes)
                assert len(free.gaps()) == step.get("gaps", len(free.gaps()))


@pytest.mark.parametrize("case", reference_cases("linear_scan"))
def test_the_linear_scan_does_what_the_reference_does(case: dict[str, Any]) -> None:
    scan = LinearScan(FreeList(case["capacity"]))
    for step in case["steps"]:
        batch = [
            HeldRange(
                name=item["id"],
                request=Request(size_bytes=item["size"]),
                weight=item.get("weight", 0),
            )
            for item in step["ranges"]
        ]
        result = scan.place(batch, may_evict=step["allow_spill"])
        assert (result is not None) == step["ok"]
        if result is not None:
            names = [item["id"] for item in step["ranges"]]
            assert dict(zip(names, result.addresses, strict=True)) == step["addr"]
            assert list(result.evicted) == step["spilled"]


def test_the_smallest_gap_is_taken_and_the_topmost_only_if_no_other_holds_it() -> None:
    free = FreeList(100)
    # Gaps: [0, 10), [20, 25), [30, 40), [90, 100).
    for begin, end in ((10, 20), (25, 30), (40, 90)):
        free.take(begin, end)
    assert free.allocate(5) == 20
    assert free.allocate(6) == 0  # the first of the two gaps of ten bytes
    assert free.allocate(10) == 30
    assert free.allocate(4) == 6
    assert free.allocate(4) == 90
    assert free.gaps() == ((94, 100),)


def test_from_the_top_the_lowest_gap_is_the_last_resort() -> None:
    free = FreeList(100)
    # Gaps: [0, 5), [30, 40), [60, 70).
    for begin, end in ((5, 30), (40, 60), (70, 100)):
        free.take(begin, end)
    assert free.allocate(5, from_top=True) == 65
    assert free.allocate(5, from_top=True) == 60
    assert free.allocate(10, from_top=True) == 30
    assert free.allocate(3, from_top=True) == 2


def test_alignment_leaves_gaps_on_both_sides() -> None:
    free = FreeList(64)
    assert free.allocate(3) == 0
    assert free.allocate(8, alignment_bytes=16) == 16
    assert free.gaps() == ((3, 16), (24, 64))
    assert free.allocate(10, alignment_bytes=16, from_top=True) == 48
    assert free.gaps() == ((3, 16), (24, 48), (58, 64))
    # The gap of thirteen bytes is large enough, but holds no multiple of sixteen.
    assert free.allocate(6, alignment_bytes=16) == 32


def test_a_freed_range_joins_both_neighbours() -> None:
    free = FreeList(30)
    for begin in (0, 10, 20):
        free.take(begin, begin + 10)
    assert free.gaps() == ()
    free.free(0, 10)
    free.free(20, 30)
    assert free.gaps() == ((0, 10), (20, 30))
    free.free(10, 20)
    assert free.gaps() == ((0, 30),)
    assert (free.free_bytes, free.largest_gap_bytes) == (30, 30)


def test_reserved_bytes_are_never_handed_out_and_do_not_count_as_used() -> None:
    free = FreeList(20, reserved=[(4, 6), (18, 20)])
    assert free.high_water_bytes == 0
    assert free.allocate(4) == 0
    assert free.allocate(12) == 6
    assert free.allocate(1) is None
    assert free.high_water_bytes == 18


def test_a_batch_is_placed_whole_or_not_at_all() -> None:
    free = FreeList(16)
    requests = [Request(size_bytes=8), Request(size_bytes=4, address=0)]
    assert free.allocate_all(requests) == (4, 0)
    before = free.gaps()
    assert free.allocate_all([Request(size_bytes=4), Request(size_bytes=1)]) is None
    assert free.gaps() == before
    assert free.high_water_bytes == 12


def test_asking_whether_a_batch_fits_changes_nothing() -> None:
    free = FreeList(16)
    free.take(4, 8)
    before = free.gaps()
    assert free.fits([Request(size_bytes=4), Request(size_bytes=8)])
    assert not free.fits([Request(size_bytes=5), Request(size_bytes=5)])
    assert not free.fits([Request(size_bytes=2, address=7)])
    assert free.gaps() == before
    assert free.high_water_bytes == 8


@pytest.mark.parametrize(("begin", "end"), [(0, 4), (2, 3), (3, 9), (-1, 1), (8, 40), (6, 6)])
def test_freeing_what_is_not_all_taken_is_refused(begin: int, end: int) -> None:
    free = FreeList(20)
    free.take(4, 12)
    with pytest.raises(ValueError, match="not all taken"):
        free.free(begin, end)


@pytest.mark.parametrize(("begin", "end"), [(3, 5), (0, 20), (11, 12), (12, 30), (2, 2)])
def test_taking_what_is_not_all_free_is_refused(begin: int, end: int) -> None:
    free = FreeList(20)
    free.take(4, 12)
    with pytest.raises(ValueError, match="not all free"):
        free.take(begin, end)


def expected_address(taken: list[bool], size: int, alignment: int, from_top: bool) -> int | None:
    """The rule read literally from a map of bytes."""
    gaps = []
    begin = None
    for position, is_taken in enumerate([*taken, True]):
        if not is_taken and begin is None:
            begin = position
        if is_taken and begin is not None:
            gaps.append((begin, position))
            begin = None
    if from_top:
        gaps.reverse()
    best: tuple[int, int] | None = None
    for number, (low, high) in enumerate(gaps):
        addresses = [a for a in range(low, high - size + 1) if a % alignment == 0]
        if not addresses:
            continue
        address = addresses[-1] if from_top else addresses[0]
        is_last_resort = number == len(gaps) - 1
        if best is None or (high - low < best[0] and not is_last_resort):
            best = (high - low, address)
    return None if best is None else best[1]


@pytest.mark.parametrize("seed", range(20))
def test_random_operations_agree_with_a_map_of_bytes(seed: int) -> None:
    chance = random.Random(seed)
    capacity = chance.randrange(20, 120)
    free = FreeList(capacity)
    taken = [False] * capacity
    held: list[tuple[int, int]] = []
    for _ in range(150):
        if held and chance.random() < 0.45:
            begin, end = held.pop(chance.randrange(len(held)))
            free.free(begin, end)
            taken[begin:end] = [False] * (end - begin)
            continue
        size, alignment = chance.randrange(1, 20), chance.choice([1, 1, 2, 3, 8])
        from_top = chance.random() < 0.5
        address = free.allocate(size, alignment, from_top)
        assert address == expected_address(taken, size, alignment, from_top)
        if address is not None:
            held.append((address, address + size))
            taken[address : address + size] = [True] * size
        assert free.free_bytes == taken.count(False)

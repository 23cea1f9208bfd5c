"""Packing: hand-made problems whose smallest peak can be seen."""

from dataclasses import replace

import pytest

from tilewright.errors import InfeasibleError, InputError
from tilewright.placement.bounds import granularity, max_live, simple_bound
from tilewright.placement.check import violations
from tilewright.placement.diagnose import packed_within, shortage
from tilewright.placement.pack import PackOptions, pack
from tilewright.placement.problem import Buffer, Packing, PlacementProblem, in_one_memory
from tilewright.placement.search import Rule, Status, search
from tilewright.placement.sections import instance_of, live_sets, time_parts


def buffer(name: str, start: int, end: int, size: int) -> Buffer:
    return Buffer(name=name, lives=((start, end),), size_bytes=size)


# Four bytes alive in each of the cycles 0 (a b), 1 (b c e) and 2 (c d).
PUZZLE = (
    Buffer(name="a", lives=((0, 1),), size_bytes=3),
    Buffer(name="b", lives=((0, 2),), size_bytes=1),
    Buffer(name="c", lives=((1, 3),), size_bytes=2),
    Buffer(name="d", lives=((2, 3),), size_bytes=2),
    Buffer(name="e", lives=((1, 2),), size_bytes=1),
)

# Three bytes alive in cycles 0 (w p), 1 (w x y), 3 (x q) and 5 (y r). Within three bytes, one byte
# beside two must lie at address 0 or 2; so must w, x and y, which are alive together in cycle 1.
FRAGMENTED = tuple(
    [Buffer(name=n, lives=lives, size_bytes=1) for n, lives in (
        ("w", ((0, 2),)), ("x", ((1, 2), (3, 4))), ("y", ((1, 2), (5, 6))),
    )]
    + [Buffer(name=n, lives=((c, c + 1),), size_bytes=2) for n, c in (("p", 0), ("q", 3), ("r", 5))]
)  # fmt: skip


def checked(packing: Packing) -> Packing:
    assert list(violations(packing.problem, packing.address_of())) == []
    return packing


def test_the_smallest_peak_is_the_volume_where_that_can_be() -> None:
    packing = checked(pack(PlacementProblem(buffers=PUZZLE)))
    assert (packing.peak_bytes, packing.bound_bytes, packing.proven) == (4, 4, True)


def test_fragmentation_is_proven_where_the_volume_would_fit() -> None:
    assert simple_bound(FRAGMENTED) == 3
    packing = checked(pack(PlacementProblem(buffers=FRAGMENTED)))
    assert (packing.peak_bytes, packing.bound_bytes, packing.proven) == (4, 4, True)
    tight = pack(PlacementProblem(buffers=FRAGMENTED, capacity_bytes=3))
    assert not tight.fits
    assert tight.impossible


def test_whether_all_fits_is_known_without_looking_above_the_capacity() -> None:
    options = PackOptions(above_capacity=False)
    tight = pack(PlacementProblem(buffers=FRAGMENTED, capacity_bytes=3), options)
    assert (tight.fits, tight.impossible) == (False, True)
    assert checked(pack(PlacementProblem(buffers=FRAGMENTED, capacity_bytes=4), options)).fits


def test_without_any_budget_there_is_still_a_placement_and_a_bound() -> None:
    options = PackOptions(node_budget=0, climb_evaluations=0)
    packing = checked(pack(PlacementProblem(buffers=FRAGMENTED), options))
    assert packing.bound_bytes == 3
    assert packing.peak_bytes >= 4
    assert not packing.proven


def test_others_come_around_the_largest_which_are_placed_exactly() -> None:
    # All but c meet in cycle 2: 1300 bytes, e and d at the bottom, f, a and b above them. In
    # cycle 3 then c has the 500 bytes of e and d. At every moment there is one byte more.
    sizes = [("a", 2, 4, 4), ("b", 2, 4, 2), ("c", 3, 4, 4), ("d", 2, 3, 2), ("e", 0, 3, 3)]
    sizes.append(("f", 2, 5, 2))
    large = [buffer(name, 100 * start, 100 * end, 100 * size) for name, start, end, size in sizes]
    small = [buffer(str(cycle), cycle, cycle + 1, 1) for cycle in range(500)]
    problem = PlacementProblem(buffers=(*large, *small))
    heuristics = PackOptions(largest_exact_part=250, climb_evaluations=0)
    assert pack(problem, heuristics).peak_bytes > 1301
    settled = replace(heuristics, settles_largest=True)
    assert checked(pack(problem, settled)).peak_bytes == 1301


def test_a_small_buffer_that_has_its_address_is_not_built_over() -> None:
    fixed = Buffer(name="fixed", lives=((0, 300),), size_bytes=1, address=0)
    large = [buffer(str(cycle), cycle, cycle + 1, 2) for cycle in range(300)]
    options = PackOptions(largest_exact_part=250, climb_evaluations=0, settles_largest=True)
    assert checked(pack(PlacementProblem(buffers=(fixed, *large)), options)).peak_bytes == 3


def test_nothing_to_place_has_no_peak() -> None:
    packing = pack(PlacementProblem(buffers=()))
    assert (packing.peak_bytes, packing.bound_bytes, packing.addresses) == (0, 0, ())


def test_empty_buffers_get_an_address_and_take_no_place() -> None:
    packing = checked(pack(PlacementProblem(buffers=(buffer("a", 0, 9, 0), buffer("b", 0, 9, 5)))))
    assert packing.peak_bytes == 5


def test_a_fixed_buffer_stays_and_others_go_around_it() -> None:
    fixed = Buffer(name="f", lives=((0, 9),), size_bytes=4, address=6)
    packing = checked(pack(PlacementProblem(buffers=(fixed, buffer("a", 0, 9, 6)))))
    assert packing.address_of() == {"f": 6, "a": 0}
    above = checked(pack(PlacementProblem(buffers=(fixed, buffer("a", 0, 9, 7)))))
    assert above.address_of() == {"f": 6, "a": 10}
    assert above.proven


def test_fixed_addresses_that_contradict_each_other_are_the_users_fault() -> None:
    fixed = [
        Buffer(name=n, lives=((0, 2),), size_bytes=4, address=a) for n, a in (("a", 0), ("b", 2))
    ]
    with pytest.raises(InputError, match="a and b are alive together"):
        pack(PlacementProblem(buffers=tuple(fixed)))


def test_a_group_lies_in_one_place_for_all_its_lives() -> None:
    problem = PlacementProblem(
        buffers=(buffer("in", 0, 3, 8), buffer("out", 2, 6, 8), buffer("other", 0, 6, 4)),
        groups=(("in", "out"),),
    )
    packing = checked(pack(problem))
    assert packing.peak_bytes == 12
    apart = pack(PlacementProblem(buffers=problem.buffers))
    assert apart.peak_bytes == 20


def test_a_hint_is_taken_where_it_costs_nothing() -> None:
    liked = Buffer(name="a", lives=((0, 2),), size_bytes=4, hint=8)
    problem = PlacementProblem(buffers=(liked, buffer("b", 4, 6, 12)), capacity_bytes=12)
    assert checked(pack(problem)).fits


def test_each_memory_is_a_problem_of_its_own() -> None:
    buffers = [
        Buffer(name=n, lives=((0, 1),), size_bytes=4, memory=m)
        for n, m in (("a", "l1"), ("b", "l2"), ("c", "l1"))
    ]
    problems = in_one_memory(buffers, {"l1": 16})
    assert {m: [b.name for b in p.buffers] for m, p in problems.items()} == {
        "l1": ["a", "c"],
        "l2": ["b"],
    }
    assert (problems["l1"].capacity_bytes, problems["l2"].capacity_bytes) == (16, None)


def test_sections_are_the_largest_sets_alive_together() -> None:
    # a b at 0..2, b c at 2..4; at 4..5 only c, which is no largest set.
    buffers = [buffer("a", 0, 2, 1), buffer("b", 1, 4, 1), buffer("c", 2, 5, 1)]
    assert live_sets(buffers) == [(0, 1), (1, 2)]
    instance = instance_of(buffers)
    assert instance.neighbours == ((1,), (0, 2), (1,))


def test_time_falls_into_parts_where_nothing_is_alive_across() -> None:
    buffers = [buffer("a", 4, 6, 1), buffer("b", 0, 2, 1), buffer("c", 1, 4, 1)]
    assert time_parts(buffers) == [(1, 2), (0,)]


def test_the_volume_is_the_most_alive_in_a_cycle() -> None:
    assert max_live([buffer("a", 0, 2, 3), buffer("b", 1, 4, 2), buffer("c", 2, 5, 2)]) == (5, 1)
    assert granularity([buffer("a", 0, 1, 12), buffer("b", 0, 1, 18)]) == 6


def test_the_search_stops_at_its_budget() -> None:
    instance = instance_of(FRAGMENTED)
    rule = Rule(order=tuple(range(len(FRAGMENTED))))
    assert search(instance, rule, 3, 2).status is Status.OUT_OF_BUDGET
    assert search(instance, rule, 3, 2).nodes == 2
    assert search(instance, rule, 3, 10_000).status is Status.EXHAUSTED


def test_what_does_not_fit_by_volume_says_who_is_alive_and_what_would_help() -> None:
    # In cycle 2 a, b and c are alive: 20 bytes, without a 10; halving a changes nothing.
    problem = PlacementProblem(
        buffers=(buffer("a", 0, 5, 10), buffer("b", 2, 3, 6), buffer("c", 2, 4, 4)),
        capacity_bytes=16,
    )
    found = shortage(pack(problem))
    assert (found.live_bytes, found.live_cycle, found.is_volume) == (20, 2, True)
    assert [b.name for b in found.alive] == ["a", "b", "c"]
    assert found.missing_bytes == 4
    # Spilled, a is there in cycles 0 and 4 only: b and c make 10, and so does a alone or with c.
    assert {(r.remedy, r.buffer, r.peak_bytes) for r in found.reliefs} == {
        ("remove", "a", 10),
        ("spill", "a", 10),
    }
    with pytest.raises(InfeasibleError) as error:
        packed_within(problem, "lives.csv")
    assert str(error.value) == (
        "lives.csv: does not fit the capacity of 16 B: 20 B are alive in cycle 2, 4 B too many "
        "(volume); alive then: a (10 B), b (6 B), c (4 B)\n"
        "  hint: a capacity of 20 B (20 B) is the smallest\n"
        "  hint: without a: 10 B, which fits\n"
        "  hint: with a spilled across the peak: 10 B, which fits"
    )


def test_what_does_not_fit_by_fragmentation_says_so() -> None:
    problem = PlacementProblem(buffers=FRAGMENTED, capacity_bytes=3)
    with pytest.raises(InfeasibleError, match=r"stays below 4 B \(fragmentation, proven"):
        packed_within(problem)


def test_a_group_counts_once_in_what_is_missing() -> None:
    # `in` and `out` are one place of 8 bytes; with `other` 12 bytes are alive.
    problem = PlacementProblem(
        buffers=(buffer("in", 0, 3, 8), buffer("out", 2, 6, 8), buffer("other", 0, 6, 4)),
        capacity_bytes=10,
        groups=(("in", "out"),),
    )
    found = shortage(pack(problem))
    assert (found.live_bytes, found.missing_bytes) == (12, 2)
    assert [b.name for b in found.alive] == ["in", "other"]
    # The peak is there from the first cycle on, so there is nothing to spill across.
    assert [(r.remedy, r.buffer, r.peak_bytes) for r in found.reliefs] == [("remove", "in", 4)]

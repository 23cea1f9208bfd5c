"""Pieces between which only the longest lives go on, by hand."""

from collections.abc import Sequence

from tilewright.placement.check import violations
from tilewright.placement.pack import PackOptions, pack
from tilewright.placement.pieces import in_pieces
from tilewright.placement.problem import Buffer, PlacementProblem

# 1,300 bytes are alive in cycle 2, and the 500 of b and e's place then serve for c. The heuristics
# take more: see `test_others_come_around_the_largest_which_are_placed_exactly`.
HARD = (("a", 2, 4, 400), ("b", 2, 4, 200), ("c", 3, 4, 400), ("d", 2, 3, 200), ("e", 0, 3, 300))
HARD_BYTES = 1_300
CYCLES = 5


def buffer(name: str, start: int, end: int, size: int) -> Buffer:
    return Buffer(name=name, lives=((start, end),), size_bytes=size)


def hard_piece(number: int) -> list[Buffer]:
    first = number * CYCLES
    parts = (*HARD, ("f", 2, 5, 200))
    return [buffer(f"{n}{number}", first + s, first + e, size) for n, s, e, size in parts]


def test_pieces_are_placed_with_what_lives_on_around_them() -> None:
    long = buffer("long", 1, 8, 10)
    others = [
        buffer("a", 0, 3, 2),
        buffer("b", 2, 4, 2),
        buffer("c", 4, 6, 2),
        buffer("d", 5, 9, 2),
    ]
    asked: list[list[tuple[str, tuple[tuple[int, int], ...], int | None]]] = []

    def place(buffers: Sequence[Buffer]) -> list[int]:
        asked.append([(b.name, b.lives, b.address) for b in buffers])
        return [b.address or 100 * len(asked) for b in buffers]

    # All addresses are those of the question in which a buffer was asked for first.
    assert in_pieces((others[0], long, *others[1:]), place) == (200, 100, 200, 300, 300)
    assert asked == [
        [("long", ((1, 8),), None)],
        [("long", ((1, 4),), 100), ("a", ((0, 3),), None), ("b", ((2, 4),), None)],
        [("long", ((4, 8),), 100), ("c", ((4, 6),), None), ("d", ((5, 9),), None)],
    ]


def test_a_long_buffer_that_rests_during_a_piece_is_not_there() -> None:
    long = Buffer(name="long", lives=((0, 3), (6, 9)), size_bytes=1)
    others = [buffer(str(cycle), cycle, cycle + 3, 1) for cycle in (0, 3, 6)]
    counts: list[int] = []

    def place(buffers: Sequence[Buffer]) -> list[int]:
        counts.append(len(buffers))
        return [0] * len(buffers)

    assert in_pieces((long, *others), place) is not None
    assert counts == [1, 2, 1, 2]


def test_there_are_no_addresses_if_one_piece_has_none() -> None:
    others = [buffer(str(cycle), cycle, cycle + 1, 1) for cycle in range(9)]
    long = buffer("long", 0, 9, 1)

    def place(buffers: Sequence[Buffer]) -> list[int] | None:
        return None if buffers[-1].name == "4" else [0] * len(buffers)

    assert in_pieces((long, *others), place) is None


def test_what_hangs_together_without_its_longest_lives_has_no_pieces() -> None:
    chain = [buffer(str(cycle), cycle, cycle + 2, 1) for cycle in range(200)]
    assert in_pieces(chain, lambda _: None) is None


def test_a_hard_problem_many_times_over_is_solved_piece_by_piece() -> None:
    pieces = [part for number in range(20) for part in hard_piece(number)]
    long = buffer("long", 0, 20 * CYCLES, 1_000)
    problem = PlacementProblem(buffers=(*pieces, long), capacity_bytes=HARD_BYTES + 1_000)
    options = PackOptions(largest_exact_part=10, climb_evaluations=0)
    packing = pack(problem, options)
    assert (packing.method, packing.peak_bytes) == ("piece by piece", HARD_BYTES + 1_000)
    assert list(violations(problem, packing.address_of())) == []
    # A byte less cannot do.
    short = PlacementProblem(buffers=problem.buffers, capacity_bytes=HARD_BYTES + 999)
    assert not pack(short, options).fits

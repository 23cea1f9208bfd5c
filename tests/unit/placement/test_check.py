"""The checker: right placements pass, every fault is named with its bytes and cycles."""

from tilewright.placement.check import violations
from tilewright.placement.problem import Buffer, PlacementProblem


def buffer(name: str, start: int, end: int, size: int, **more: int) -> Buffer:
    return Buffer(
        name=name,
        lives=((start, end),),
        size_bytes=size,
        alignment_bytes=more.get("alignment_bytes", 1),
        address=more.get("address"),
    )


def told(problem: PlacementProblem, **addresses: int) -> list[str]:
    return [str(found) for found in violations(problem, addresses)]


def test_buffers_that_never_meet_may_share_an_address() -> None:
    problem = PlacementProblem(
        buffers=(buffer("a", 0, 5, 10), buffer("b", 5, 9, 10), buffer("c", 0, 9, 3))
    )
    assert told(problem, a=0, b=0, c=10) == []


def test_a_clash_names_both_buffers_the_bytes_and_the_cycles() -> None:
    problem = PlacementProblem(buffers=(buffer("a", 0, 5, 10), buffer("b", 3, 9, 10)))
    assert told(problem, a=0, b=6) == ["a and b both hold bytes [6, 10) in cycles [3, 5)"]
    assert told(problem, a=0, b=10) == []


def test_in_a_gap_between_lives_the_place_is_free() -> None:
    resting = Buffer(name="a", lives=((0, 2), (6, 8)), size_bytes=4)
    fitting = PlacementProblem(buffers=(resting, buffer("b", 2, 6, 4)))
    assert told(fitting, a=0, b=0) == []
    late = PlacementProblem(buffers=(resting, buffer("b", 2, 7, 4)))
    assert told(late, a=0, b=1) == ["a and b both hold bytes [1, 4) in cycles [6, 7)"]


def test_alignment_fixed_address_capacity_and_sign_are_checked() -> None:
    problem = PlacementProblem(
        buffers=(
            buffer("a", 0, 1, 4, alignment_bytes=8),
            buffer("b", 1, 2, 4, address=8),
            buffer("c", 2, 3, 4),
            buffer("d", 3, 4, 4),
        ),
        capacity_bytes=16,
    )
    assert told(problem, a=4, b=0, c=14, d=-1) == [
        "a: its address 4 is no multiple of its alignment 8",
        "b: lies at 0 and is fixed at 8",
        "c: ends at 18, 2 B beyond the capacity",
        "d: its address -1 is negative",
    ]


def test_a_group_shares_one_address_and_does_not_clash_with_itself() -> None:
    problem = PlacementProblem(
        buffers=(buffer("a", 0, 5, 10), buffer("b", 4, 9, 10)), groups=(("a", "b"),)
    )
    assert told(problem, a=3, b=3) == []
    assert told(problem, a=0, b=3) == [
        "a at 0 and b at 3 belong to one group and must have one address"
    ]

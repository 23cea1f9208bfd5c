"""Lower bounds of the peak, by hand."""

import pytest

from tilewright.placement.bounds import granularity, max_live, simple_bound
from tilewright.placement.problem import Buffer, Life


def buffer(
    size_bytes: int, *lives: Life, alignment_bytes: int = 1, address: int | None = None
) -> Buffer:
    return Buffer(
        name=f"b{size_bytes}",
        lives=lives,
        size_bytes=size_bytes,
        alignment_bytes=alignment_bytes,
        address=address,
    )


def test_nothing_is_alive_without_buffers() -> None:
    assert max_live([]) == (0, 0)
    assert simple_bound([]) == 0


def test_what_ends_when_another_begins_is_not_alive_with_it() -> None:
    assert max_live([buffer(5, (0, 4)), buffer(7, (4, 6)), buffer(2, (5, 9))]) == (9, 5)


def test_the_first_of_the_cycles_with_the_most_bytes_counts() -> None:
    assert max_live([buffer(3, (2, 5)), buffer(3, (7, 9))]) == (3, 2)


def test_between_two_lives_a_buffer_takes_no_room() -> None:
    twice = buffer(8, (0, 2), (6, 8))
    assert max_live([twice, buffer(5, (2, 6))]) == (8, 0)
    assert max_live([twice, buffer(5, (2, 7))]) == (13, 6)


@pytest.mark.parametrize(
    ("buffers", "expected"),
    [
        ([], 1),
        ([buffer(12, (0, 1)), buffer(18, (0, 1))], 6),
        # Without alignment any address will do; one of 4 bytes, or a fixed place, may leave gaps.
        ([buffer(12, (0, 1), alignment_bytes=4), buffer(24, (0, 1))], 4),
        ([buffer(12, (0, 1), alignment_bytes=2), buffer(24, (0, 1))], 2),
        ([buffer(12, (0, 1), address=9), buffer(24, (0, 1))], 3),
        ([buffer(0, (0, 1))], 1),
    ],
)
def test_addresses_and_ends_are_multiples(buffers: list[Buffer], expected: int) -> None:
    assert granularity(buffers) == expected


def test_a_fixed_buffer_ends_where_it_ends() -> None:
    fixed = buffer(6, (8, 9), address=20)
    assert simple_bound([fixed, buffer(10, (0, 4)), buffer(9, (1, 3))]) == 26
    assert simple_bound([fixed, buffer(20, (0, 4)), buffer(9, (1, 3))]) == 29

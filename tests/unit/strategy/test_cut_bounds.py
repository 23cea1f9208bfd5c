"""What cutting a stage into tiles takes at least: by hand, and against all ways to cut."""

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest
from tests.nest_ops import op_of

from tilewright.network.graph import Index, Operand
from tilewright.network.nests import elementwise
from tilewright.program.work import Tenant, Work
from tilewright.strategy.cut_bounds import LeastMoved, least_moved


def tenant(
    index: tuple[Index, ...] | None,
    shape: tuple[int, ...],
    *,
    bits: int = 8,
    bytes_per_cycle: float = 1.0,
    setup_cycles: int = 0,
) -> Tenant:
    return Tenant(
        operand=Operand(name="I", tensor="x", index=index),
        shape=shape,
        bits=bits,
        memory="bank",
        bytes_per_cycle=bytes_per_cycle,
        setup_cycles=setup_cycles,
        pj_per_byte=0.0,
    )


def moved(lengths: dict[str, int], *tenants: Tenant, lead_cycles: int = 0) -> LeastMoved:
    op = op_of("relu", elementwise((1,)))
    work = Work(
        op=op,
        lengths=lengths,
        tenants=tenants,
        room={"bank": 1 << 20},
        unrolled={},
        lead_cycles=lead_cycles,
    )
    return least_moved(work)


A, B = Index((("A", 1),)), Index((("B", 1),))


@pytest.mark.parametrize(
    ("index", "shape", "expected"),
    [
        ((A, B), (6, 5), 6 * 5),
        # No more than there is, or than the part of the loop that is left.
        ((A, B), (4, 9), 4 * 5),
        # A window of 5 that goes on by 2 for every one of 6 steps: 6 positions that none shares.
        ((Index((("A", 2), ("B", 1))),), (15,), 6),
        # Every position serves two steps, and the last one of 5 has one for itself.
        ((Index((("B", 1),), divisor=2),), (9,), 3),
        # The second axis follows the first one: a position for each step.
        ((A, A), (6, 6), 6),
        # A loop that does not move the operand, and an axis without any loop.
        ((Index((("A", 0), ("B", 1))), Index(())), (9, 7), 5),
        (None, (3, 4), 12),
    ],
)
def test_bytes_by_hand(
    index: tuple[Index, ...] | None, shape: tuple[int, ...], expected: int
) -> None:
    lengths = {"A": 6, "B": 5}
    assert moved(lengths, tenant(index, shape)).size_bytes == expected
    assert moved(lengths, tenant(index, shape, bits=4)).size_bytes == expected // 2


class TestCycles:
    """24 bytes of 4 a cycle with a set-up of 10, and 8 bytes of 2 a cycle with a set-up of 5."""

    TENANTS = (
        tenant((A,), (24,), bytes_per_cycle=4.0, setup_cycles=10),
        tenant((B,), (8,), bytes_per_cycle=2.0, setup_cycles=5),
        # What lies there already.
        tenant((A,), (24,), bytes_per_cycle=0.0, setup_cycles=99),
    )

    @pytest.mark.parametrize(
        ("lead", "cycles", "setup"), [(0, 6 + 10 + 4 + 5, 15), (12, 13, 3), (20, 5, 0), (99, 0, 0)]
    )
    def test_what_came_before_is_not_waited_for(self, lead: int, cycles: int, setup: int) -> None:
        found = moved({"A": 24, "B": 8}, *self.TENANTS, lead_cycles=lead)
        assert found == LeastMoved(32, cycles, setup)

    def test_the_shorter_of_computing_and_moving_is_hidden_but_for_an_eighth(self) -> None:
        found = moved({"A": 24, "B": 8}, *self.TENANTS)
        assert found.cycles_with(40) == 40 + 25 / 8 + 15 / 2
        assert found.cycles_with(24) == 25 + 24 / 8 + 15 / 2
        # Nothing takes longer than one after the other.
        assert found.cycles_with(2) == 25 + 2


def cuts(length: int) -> Iterator[list[tuple[int, int]]]:
    """A loop in tiles of each length."""
    for step in range(1, length + 1):
        yield [(at, min(at + step, length)) for at in range(0, length, step)]


def test_no_way_to_cut_moves_less() -> None:
    chance = Random(5)
    for _ in range(60):
        lengths = {"A": chance.randint(1, 5), "B": chance.randint(1, 4)}
        axis = Index(
            tuple((dim, chance.randint(1, 3)) for dim in ("A", "B")),
            divisor=chance.choice((1, 1, 2)),
        )
        size = 1 + chance.randint(3, 20)
        least = moved(lengths, tenant((axis,), (size,))).size_bytes
        for tiles in product(cuts(lengths["A"]), cuts(lengths["B"])):
            total = sum(_touched(axis, size, *tile) for tile in product(*tiles))
            if _touches_all(axis, size, lengths):
                assert total >= least


def _positions(axis: Index, size: int, a: tuple[int, int], b: tuple[int, int]) -> set[int]:
    (_, first), (_, second) = axis.terms
    points = (first * x + second * y for x in range(*a) for y in range(*b))
    return {p // axis.divisor for p in points if p % axis.divisor == 0 and p // axis.divisor < size}


def _touched(axis: Index, size: int, a: tuple[int, int], b: tuple[int, int]) -> int:
    """Elements of the box around what a tile touches."""
    found = _positions(axis, size, a, b)
    return max(found) - min(found) + 1 if found else 0


def _touches_all(axis: Index, size: int, lengths: dict[str, int]) -> bool:
    """Whether no point of the loops lies beyond the end."""
    return sum(f * (lengths[dim] - 1) for dim, f in axis.terms) // axis.divisor < size

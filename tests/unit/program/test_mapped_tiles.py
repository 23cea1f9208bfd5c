"""Tilings that are looked at again because their mappings take longer than was thought."""

from collections.abc import Mapping
from dataclasses import replace

from tests.nest_ops import op_of

from tilewright.network import nests
from tilewright.network.graph import Op
from tilewright.program.mapped_tiles import MOST_MAPPED, MappedCycles, as_mapped
from tilewright.program.tile import Tenant, Tiling, Work, choose


def product_op() -> Op:
    """64 results of sums over 64, of one row."""
    return op_of("matmul", nests.matmul((1, 64), (64, 64)))


def work(room: int = 1 << 20) -> Work:
    op = product_op()
    weights = Tenant(
        operand=op.inputs[1],
        shape=(64, 64),
        bits=8,
        memory="bank",
        bytes_per_cycle=4.0,
        setup_cycles=0,
        pj_per_byte=1.0,
        constant=True,
    )
    return Work(op=op, lengths=op.sizes, tenants=(weights,), room={"bank": room}, unrolled={"K": 8})


def cut(of: Work, length: int) -> Tiling:
    """The tiling with columns cut, whatever else would be chosen."""
    found = choose(of, "latency")
    assert found is not None
    column = next(d for d in found.order)
    return Tiling(
        lengths={**found.lengths, column: length},
        order=(column,),
        cycles=600.0,
        moving_cycles=found.moving_cycles,
        moved_bytes=found.moved_bytes,
        value=600.0,
        doubled=True,
    )


def by_points(per_point: Mapping[int, int], column: str) -> MappedCycles:
    """Cycles of a tile from a price for a point that depends on the columns in it."""

    def cycles(lengths: Mapping[str, int]) -> int:
        points = 1
        for length in lengths.values():
            points *= length
        return points * per_point.get(lengths[column], 90)

    return cycles


def test_longer_tiles_are_taken_where_their_mappings_stall_less() -> None:
    of = work()
    tiling = cut(of, 8)
    column = tiling.order[0]
    cheaper = by_points({8: 2, 16: 1}, column)
    assert as_mapped(of, tiling, cheaper, cheaper).lengths[column] == 16


def test_what_the_better_mappings_do_not_confirm_is_not_taken() -> None:
    of = work()
    tiling = cut(of, 8)
    column = tiling.order[0]
    quick = by_points({8: 2, 16: 1}, column)
    exact = by_points({8: 1, 16: 1}, column)
    assert as_mapped(of, tiling, quick, exact) is tiling


def test_a_tiling_as_good_as_its_estimate_stays_and_nothing_else_is_mapped() -> None:
    of = work()
    tiling = cut(of, 8)
    asked: list[Mapping[str, int]] = []

    def cycles(lengths: Mapping[str, int]) -> int:
        asked.append(lengths)
        return 1

    slow = replace(tiling, cycles=1e9)
    assert as_mapped(of, slow, cycles, cycles) is slow
    assert len(asked) == 1


def test_tiles_that_do_not_fit_twice_are_not_proposed() -> None:
    # Columns of 64 B: two tiles of 16 columns are 2,048 B, which is more than 7/8 of the room.
    of = work(2048)
    tiling = cut(of, 8)
    column = tiling.order[0]
    cheaper = by_points({8: 20, 16: 10, 32: 5, 64: 2}, column)
    assert as_mapped(of, tiling, cheaper, cheaper) is tiling


def test_few_tilings_are_mapped() -> None:
    of = work()
    tiling = cut(of, 8)
    other = next(d for d, size in of.op.dims if size > 1 and d not in tiling.order)
    tiling = replace(tiling, order=(*tiling.order, other))
    asked: dict[tuple[int, ...], None] = {}

    def cycles(lengths: Mapping[str, int]) -> int:
        asked[tuple(lengths.values())] = None
        return 1_000_000 >> len(asked)

    as_mapped(of, tiling, cycles, cycles)
    assert len(asked) == 1 + MOST_MAPPED

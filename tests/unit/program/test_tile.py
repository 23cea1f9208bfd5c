"""The choice of tiles against all combinations of its own candidate lengths."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from math import ceil, prod

import pytest
from tests.nest_ops import op_of

from tilewright.network import moves, nests, windows
from tilewright.network.graph import Op
from tilewright.program.tile import (
    Goal,
    Tenant,
    Tiling,
    Work,
    choose,
    lengths_to_try,
    smallest,
    tile_bytes,
    tileable,
)
from tilewright.program.work import Known

GOALS: tuple[Goal, ...] = ("latency", "energy", "traffic")


def conv_op(data: tuple[int, int, int], kernels: int, kernel: int, *, group: int = 1) -> Op:
    """A convolution of channels x rows x columns that keeps rows and columns."""
    pad = kernel // 2
    window = windows.Window(kernel=kernel, pad_begin=pad, pad_end=pad)
    nest = windows.conv((1, *data), kernels, group, [window, window], windows.ONNX_CONV)
    return op_of("conv", nest)


def shapes(op: Op) -> dict[str, tuple[int, ...]]:
    sizes = op.sizes
    return {
        operand.tensor: tuple(
            sum(factor * (sizes[dim] - 1) for dim, factor in axis.terms) + 1 + 2 * axis.offset
            for axis in operand.index or ()
        )
        for operand in op.operands
    }


def work_of(op: Op, room: int, *, partial: bool = True) -> Work:
    """Every operand a tenant of one memory, a byte an element, four bytes a partial sum."""
    size = shapes(op)
    tenants = [
        Tenant(
            operand=operand,
            shape=size[operand.tensor],
            bits=8,
            memory="bank",
            bytes_per_cycle=4.0,
            setup_cycles=0,
            pj_per_byte=1.0 if operand.name == "I" else 3.0,
            constant=operand.name == "W",
            result=operand.name == "O",
        )
        for operand in (*op.inputs, *op.outputs)
    ]
    sums = replace(tenants[-1], bits=32, bytes_per_cycle=0.0, result=False)
    return Work(
        op=op,
        lengths=op.sizes,
        tenants=tuple(tenants),
        room={"bank": room},
        unrolled={"K": 8, "C": 4},
        partial=sums if partial else None,
    )


def need(work: Work, lengths: dict[str, int]) -> int:
    """Bytes of one tile of everything, partial sums included where a sum is cut."""
    tenants = list(work.tenants)
    if work.partial and any(lengths[d] < work.lengths[d] for d in tileable(work.op)[2]):
        tenants.append(work.partial)
    total = 0
    for tenant in tenants:
        sides = [
            min(size, sum(abs(f) * (lengths[d] - 1) for d, f in axis.terms) // axis.divisor + 1)
            for axis, size in zip(tenant.operand.index or (), tenant.shape, strict=True)
        ]
        total += ceil(ceil(prod(sides) * tenant.bits / 8) / work.alignment) * work.alignment
    return total


def combinations(work: Work) -> Iterator[dict[str, int]]:
    loops = [d for group in tileable(work.op) for d in group]
    for lengths in product(
        *(lengths_to_try(work.lengths[d], work.unrolled.get(d, 1)) for d in loops)
    ):
        yield {**work.lengths, **dict(zip(loops, lengths, strict=True))}


OPS = {
    "conv": conv_op((4, 5, 3), 6, 3),
    "pointwise": conv_op((12, 4, 4), 16, 1),
    "depthwise": conv_op((8, 6, 6), 8, 3, group=8),
    "matmul": op_of("matmul", nests.matmul((10, 12), (12, 9))),
    "softmax": op_of("softmax", nests.along((6, 5), [-1])),
}


@cache
def least_bytes(name: str) -> int:
    """The least that any combination of tile lengths needs."""
    work = work_of(OPS[name], 0)
    return min(need(work, lengths) for lengths in combinations(work))


@pytest.mark.parametrize("name", OPS)
def test_a_tiling_is_found_exactly_when_some_combination_fits(name: str) -> None:
    least, most = least_bytes(name), need(work_of(OPS[name], 0), dict(OPS[name].sizes))
    rooms = (least - 1, least, least + 1, (least + most) // 3, most - 1, most, 3 * most)
    for room, goal in product(rooms, GOALS):
        work = work_of(OPS[name], room)
        found = choose(work, goal)
        assert (found is not None) == (room >= least), (room, goal)
        if found is not None:
            assert need(work, dict(found.lengths)) <= room


@pytest.mark.parametrize("name", OPS)
def test_the_smallest_tiles_are_what_is_needed_at_least(name: str) -> None:
    work = work_of(OPS[name], 0)
    tenants, lengths = smallest(work)
    total = sum(int(tile_bytes(t, lengths, work.alignment)) for t in tenants)
    assert total == least_bytes(name)


def test_weights_of_one_output_channel_that_do_not_fit_have_their_sum_cut() -> None:
    # 64 x 9 B of weights for one output channel, in 200 B.
    work = work_of(conv_op((64, 4, 4), 8, 3), 200)
    found = choose(work, "latency")
    assert found is not None
    assert found.lengths["C"] < 64
    assert found.order[-1] == "C"
    # Without a place for partial sums, or the means to cut, it cannot be done.
    pool = replace(work.op, kind="max_pool")
    assert choose(replace(work, op=pool, partial=None, known=Known()), "latency") is None


def test_alignment_counts() -> None:
    work = work_of(OPS["matmul"], 0)
    # 1 B each of both inputs and the result, 4 B of partial sums; or a row and a column of 12.
    assert least_bytes("matmul") == 7
    assert choose(replace(work, room={"bank": 7}), "latency") is not None
    aligned = replace(work, alignment=16)
    assert choose(replace(aligned, room={"bank": 47}), "latency") is None
    assert choose(replace(aligned, room={"bank": 48}), "latency") is not None


def test_with_room_for_everything_there_is_one_tile() -> None:
    goals: tuple[Goal, ...] = ("energy", "traffic")
    for goal in goals:
        found = choose(work_of(OPS["pointwise"], 10**6), goal)
        assert found is not None
        assert found.lengths == OPS["pointwise"].sizes


def tilings(op: Op, room: int) -> dict[Goal, Tiling]:
    found = {goal: choose(work_of(op, room), goal) for goal in GOALS}
    return {goal: tiling for goal, tiling in found.items() if tiling is not None}


@pytest.mark.parametrize("name", OPS)
def test_each_goal_is_best_at_what_it_makes_small(name: str) -> None:
    op = OPS[name]
    found = tilings(op, need(work_of(op, 0), dict(op.sizes)) // 2)
    # Within 2 % of the best the tiling with the fewest tasks is taken.
    nearly = 1.02
    assert found["latency"].cycles <= nearly * min(t.cycles for t in found.values())
    moved = {goal: tiling.moved_bytes for goal, tiling in found.items()}
    assert moved["traffic"] <= nearly * min(moved.values())


def test_lengths_go_down_to_one_in_whole_units() -> None:
    assert lengths_to_try(1, 8) == [1]
    assert lengths_to_try(7, 1)[0] == 7
    for length, unit in product((2, 7, 30, 56, 1000), (1, 3, 8, 16)):
        found = lengths_to_try(length, unit)
        assert (found[0], found[-1]) == (length, 1)
        assert found == sorted(set(found), reverse=True)
        assert all(n % unit == 0 for n in found if unit <= n < length)


def test_loops_that_may_be_cut() -> None:
    assert tileable(OPS["conv"]) == (["K"], ["OY", "OX"], ["C", "FY", "FX"])
    assert tileable(OPS["depthwise"])[0] == ["G"]
    # A softmax needs its whole row; nothing is known of a reshape's result but its own axes.
    assert tileable(OPS["softmax"])[1] == [OPS["softmax"].dims[0][0]]
    blocks = moves.space_blocks((1, 8, 3, 4), 2, to_space=True, columns=True, channels_last=False)
    weights, rest, sums = tileable(op_of("depth_to_space", blocks))
    # Rows are OY * 2 + FY: tiles of OY are boxes of rows, tiles of FY are not.
    assert (weights, rest, sums) == ([], ["G", "OY", "OX"], [])


def test_a_length_that_should_not_be_exceeded_is_not() -> None:
    work = replace(work_of(OPS["softmax"], 10**6), at_most={OPS["softmax"].dims[0][0]: 2})
    found = choose(work, "latency")
    assert found is not None
    assert found.lengths[OPS["softmax"].dims[0][0]] <= 2

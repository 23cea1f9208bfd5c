"""Kernels within groups: cut where a tile has one group, and nowhere else."""

from dataclasses import replace

import pytest
from tests.nest_ops import op_of
from tests.small_machines import Small, small_machine

import tilewright
from tilewright.network import moves, nests, windows
from tilewright.network.graph import Op
from tilewright.network.zoo import layers
from tilewright.program.nested import nested, one_box
from tilewright.program.tile import Tenant, Work, choose, same_with


def grouped(channels: int, kernels: int, group: int) -> Op:
    """A convolution of 1 x 1 over 4 rows of 4."""
    window = windows.Window(kernel=1)
    shape = (1, channels, 4, 4)
    nest = windows.conv(shape, kernels, group, [window, window], windows.ONNX_CONV)
    return op_of("conv", nest)


def weights_only(op: Op, room: int) -> Work:
    """Weights come through a memory, 4 B a cycle; data and results lie elsewhere."""
    tenant = Tenant(
        operand=op.inputs[1],
        shape=(op.sizes["G"] * op.sizes["K"], op.sizes["C"], 1, 1),
        bits=8,
        memory="weights",
        bytes_per_cycle=4.0,
        setup_cycles=0,
        pj_per_byte=1.0,
        constant=True,
    )
    return Work(
        op=op, lengths=op.sizes, tenants=(tenant,), room={"weights": room}, unrolled={"K": 4}
    )


def test_kernels_lie_within_their_group() -> None:
    assert nested(grouped(16, 24, 2)) == {"K": "G"}


def test_without_groups_or_with_one_kernel_each_there_is_nothing_within() -> None:
    assert nested(grouped(16, 24, 1)) == {}
    assert nested(grouped(16, 16, 16)) == {}


def test_other_ops_have_no_such_loops() -> None:
    assert nested(op_of("matmul", nests.matmul((10, 12), (12, 9)))) == {}
    assert nested(op_of("add", nests.elementwise((2, 6, 3)))) == {}
    assert nested(op_of("transpose", moves.transpose((2, 6, 3), (0, 2, 1)))) == {}


def transposed(window: windows.Window) -> Op:
    """A transposed convolution of 8 channels, 4 x 4, into 6."""
    nest = windows.conv_transpose((1, 8, 4, 4), 6, 1, [window, window], windows.ONNX_CONV_TRANSPOSE)
    return op_of("conv_transpose", nest)


def test_taps_lie_within_positions_where_they_fill_the_gap_between_them() -> None:
    beside = windows.Window(kernel=2, stride=2)
    assert nested(transposed(beside)) == {"FX": "IX", "FY": "IY"}
    # Rows 2, 5 … belong to no tap; with taps two rows apart row 1 does not.
    assert nested(transposed(windows.Window(kernel=2, stride=3))) == {}
    assert nested(transposed(windows.Window(kernel=2, stride=3, dilation=2))) == {}


@pytest.mark.parametrize("room", [8, 16, 24])
def test_taps_are_cut_for_one_position_at_a_time(room: int) -> None:
    """A kernel has 8 x 2 x 2 = 32 B; all its rows' first taps together are no box of the result."""
    op = transposed(windows.Window(kernel=2, stride=2))
    tenant = replace(weights_only(grouped(2, 24, 2), room).tenants[0], operand=op.inputs[1])
    tenant = replace(tenant, shape=(8, 6, 2, 2))
    work = Work(op=op, lengths=op.sizes, tenants=(tenant,), room={"weights": room}, unrolled={})
    found = choose(work, "latency")
    assert found is not None
    assert found.lengths["FX"] * found.lengths["FY"] < 4
    assert one_box(found.lengths, op)


def test_a_tile_with_kernels_of_two_groups_is_no_box() -> None:
    op = grouped(16, 24, 2)
    assert one_box(op.sizes, op)
    assert one_box({**op.sizes, "G": 1, "K": 4}, op)
    assert not one_box({**op.sizes, "G": 2, "K": 4}, op)


@pytest.mark.parametrize("room", [1, 4, 7, 10])
def test_kernels_are_cut_where_a_group_does_not_fit(room: int) -> None:
    """A group has 12 kernels of a byte, and no sums that could be cut instead."""
    found = choose(weights_only(grouped(2, 24, 2), room), "latency")
    assert found is not None
    assert found.lengths["G"] == 1
    assert found.lengths["K"] <= room


def test_lengths_that_are_no_box_are_refused() -> None:
    work = weights_only(grouped(2, 24, 2), 100)
    found = choose(work, "latency")
    assert found is not None
    both = replace(found, order=("G", "K"))
    assert same_with(work, both, (1, 4)) is not None
    assert same_with(work, both, (2, 12)) is not None
    assert same_with(work, both, (2, 4)) is None


def test_a_plan_of_groups_larger_than_the_scratchpad_is_sound() -> None:
    net = layers.draft("grouped", 8)
    data = layers.given(net, "x", (1, 32, 5, 5))
    window = replace(layers.square(3, 1, 1), group=2)
    made = layers.conv(net, "conv", data, 64, window)
    network = net.builder.finish([made.name])
    # A group has 32 x 16 x 9 = 4,608 B of weights.
    machine = small_machine(Small(kind="split", size_bytes=2048))
    plan = tilewright.plan(network, machine)
    kernels = {span[2] - span[1] for t in plan.program.tasks for span in t.tile if span[0] == "K"}
    assert plan.options.checked
    assert max(kernels) < 32

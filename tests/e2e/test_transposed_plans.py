"""Transposed convolutions: every element of the result is written, and windows that overlap are
made row by row."""

from pathlib import Path

import pytest
from tests.small_machines import Small, small_machine
from tests.strip_cases import in_strips, stretches

import tilewright
from tilewright.network import windows
from tilewright.network.counts import macs
from tilewright.network.graph import Network
from tilewright.network.windows import Window
from tilewright.network.zoo import layers
from tilewright.replay.check import problems
from tilewright.replay.verify import verify
from tilewright.report.cascades import cascades_of
from tilewright.report.plan_replay import replayed
from tilewright.report.record import read_record
from tilewright.strategy.patches import patched

SHAPES = {
    "one window beside the other": Window(kernel=2, stride=2),
    "one beside the other, and room behind": Window(kernel=2, stride=2, pad_end=-1),
    "one beside the other, the last one cropped": Window(kernel=2, stride=2, pad_end=1),
    "windows overlap": Window(kernel=3, stride=2, pad_begin=1),
    "a gap between windows": Window(kernel=2, stride=3),
    "single taps far apart": Window(kernel=1, stride=4),
    "room behind the last window": Window(kernel=3, stride=2, pad_end=-1),
    "gaps and more room than a gap behind": Window(kernel=2, stride=3, pad_end=-2),
    "gaps between taps": Window(kernel=2, stride=3, dilation=2),
    "gaps, the first and the last window cropped": Window(
        kernel=2, stride=4, pad_begin=1, pad_end=1
    ),
    "windows overlap twice": Window(kernel=5, stride=2, pad_begin=2, pad_end=1),
    "windows overlap in every row": Window(kernel=3, stride=1),
    "taps between those of the next window": Window(kernel=3, stride=3, dilation=2, pad_begin=1),
    "windows overlap, and rows behind that none reaches": Window(kernel=3, stride=2, pad_end=-3),
}


OVERLAPPING = {
    "kernel 3, stride 2": Window(kernel=3, stride=2, pad_begin=1),
    "kernel 4, stride 2": Window(kernel=4, stride=2, pad_begin=1, pad_end=1),
    "kernel 5, stride 3": Window(kernel=5, stride=3, pad_end=-1),
}


def transposed(window: Window, channels: int, kernels: int, size: int = 3) -> Network:
    net = layers.draft("transposed", 8)
    data = layers.given(net, "x", (1, channels, size, size))
    weights = layers.constant(net, "w", (channels, kernels, window.kernel, window.kernel))
    bias = layers.bias(net, "b", kernels)
    nest = windows.conv_transpose(
        data.shape, kernels, 1, [window, window], windows.ONNX_CONV_TRANSPOSE, bias=True
    )
    inputs = [tensor.name for tensor in (data, weights, bias)]
    net.builder.op("up", "conv_transpose", nest, inputs, {"y": (8, "")})
    return net.builder.finish(["y"])


@pytest.mark.parametrize("window", SHAPES.values(), ids=SHAPES.keys())
def test_a_plan_writes_all_of_the_result(window: Window) -> None:
    machine = small_machine(Small(size_bytes=200))
    network = transposed(window, channels=4, kernels=2)
    plan = tilewright.plan(network, machine)
    found = verify(plan.timetable, network)
    assert found.problems == ()
    assert found.agrees


@pytest.mark.parametrize("window", OVERLAPPING.values(), ids=OVERLAPPING.keys())
def test_windows_that_overlap_are_cut_along_rows_and_columns(window: Window) -> None:
    """Neither the input of 8 x 12 x 12 = 1,152 bytes nor a plane of the result fits."""
    network = transposed(window, channels=8, kernels=4, size=12)
    plan = tilewright.plan(network, small_machine(Small(size_bytes=400)))
    found = verify(plan.timetable, network)
    assert found.problems == ()
    assert found.agrees
    # Every tap of every window but those that land in what is cropped: no zero is multiplied.
    size = network.by_name["y"].shape[2]
    places = [
        window.stride * i + window.dilation * f - window.pad_begin
        for i in range(12)
        for f in range(window.kernel)
    ]
    assert macs(network.ops[0], network) == 8 * 4 * sum(0 <= at < size for at in places) ** 2


@pytest.mark.parametrize("window", OVERLAPPING.values(), ids=OVERLAPPING.keys())
def test_a_replay_accepts_the_file_of_a_plan_that_passed_its_check(
    window: Window, tmp_path: Path
) -> None:
    """A mapping goes over the input: it has fewer points than its tile."""
    network = transposed(window, channels=8, kernels=4, size=12)
    plan = tilewright.plan(network, small_machine(Small(size_bytes=400)))
    plan.save(tmp_path)
    assert replayed(read_record(tmp_path), network, plan.machine).problems == ()


def decoder(window: Window, rows: int = 12, columns: int = 12) -> Network:
    """A convolution, a transposed one, and another convolution behind it."""
    net = layers.draft("decoder", 8)
    given = layers.given(net, "x", (1, 4, rows, columns))
    data = layers.conv(net, "first", given, 4, layers.square(3))
    weights = layers.constant(net, "w", (4, 4, window.kernel, window.kernel))
    nest = windows.conv_transpose(data.shape, 4, 1, [window, window], windows.ONNX_CONV_TRANSPOSE)
    inputs = [data.name, weights.name]
    large = net.builder.op("up", "conv_transpose", nest, inputs, {"large": (8, "")})
    return net.builder.finish([layers.conv(net, "last", large, 2, layers.square(3)).name])


@pytest.mark.parametrize("window", OVERLAPPING.values(), ids=OVERLAPPING.keys())
def test_cascades_lead_through_windows_that_overlap(window: Window) -> None:
    """Without a DRAM, what lies between the ops is never there as a whole: it has no room."""
    network = decoder(window)
    size_bytes = network.by_name["large"].size_bytes * 3 // 4
    machine = small_machine(Small(kind="ends", size_bytes=size_bytes))
    # For the least latency there are strips besides.
    plan = tilewright.plan(network, machine, tilewright.PlanOptions(objective="traffic"))
    assert not plan.strips
    assert any({"up", "last"} <= {*cascade.ops} for cascade in cascades_of(plan))
    found = verify(plan.timetable, network)
    assert found.problems == ()
    assert found.agrees


@pytest.mark.parametrize("window", OVERLAPPING.values(), ids=OVERLAPPING.keys())
def test_strips_lead_through_windows_that_overlap(window: Window) -> None:
    network = decoder(window, 6, 8)
    machine = small_machine(Small(kind="ends", size_bytes=16 * 1024))
    found = stretches(network)
    through = [s for s in found if "up" in [walk.op.name for walk in s.walks]]
    assert len(through) == 4
    for stretch in through:
        made = in_strips(network, machine, ((stretch, 3),))
        assert made is not None
        assert problems(made.timetable, network, machine) == []
        assert verify(made.timetable, network).agrees


@pytest.mark.parametrize("window", OVERLAPPING.values(), ids=OVERLAPPING.keys())
def test_strips_of_the_op_alone_multiply_nothing_twice(window: Window) -> None:
    network = transposed(window, channels=4, kernels=2, size=7)
    (stretch,) = stretches(network)
    patches = patched(network, network.ops, ((stretch, 5),))
    assert patches is not None
    strips = [op for op in patches.network.ops if op.kind == "conv_transpose"]
    assert len(strips) == 5
    once = macs(network.ops[0], network)
    assert sum(macs(op, patches.network) for op in strips) == once


@pytest.mark.parametrize("window", [Window(kernel=3, dilation=2), Window(kernel=2, dilation=4)])
def test_rows_between_the_taps_of_the_only_window_are_written(window: Window) -> None:
    """A tile of one tap would make its own row and leave those behind it to nobody: taps are not
    cut. That takes 4 x 3 x 3 weights (or 4 x 2 x 2) and 25 results at once."""
    network = transposed(window, channels=4, kernels=3, size=1)
    plan = tilewright.plan(network, small_machine(Small(size_bytes=80)))
    found = verify(plan.timetable, network)
    assert found.problems == ()
    assert found.agrees


def test_a_tile_may_make_nothing_but_what_is_cropped() -> None:
    """The last column of taps lands outside the result, and a clip is applied to nothing."""
    net = layers.draft("cropped", 8)
    data = layers.given(net, "x", (1, 2, 3, 4))
    weights, bias = layers.constant(net, "w", (2, 1, 1, 2)), layers.bias(net, "b", 2)
    shape = [Window(kernel=1, stride=3), Window(kernel=2, stride=2, pad_end=1)]
    nest = windows.conv_transpose(data.shape, 2, 2, shape, windows.ONNX_CONV_TRANSPOSE, bias=True)
    names = [tensor.name for tensor in (data, weights, bias)]
    made = net.builder.op("up", "conv_transpose", nest, names, {"y": (8, "")})
    network = net.finish(layers.relu6(net, "clip", made))
    machine = small_machine(Small(kind="streamed", size_bytes=48, alignment_bytes=16, dma=True))
    found = tilewright.plan(network, machine, tilewright.PlanOptions(objective="memory"))
    assert any(
        ("IX", 3, 4) in task.tile and ("FX", 1, 2) in task.tile for task in found.program.tasks
    )
    assert verify(found.timetable, network).agrees

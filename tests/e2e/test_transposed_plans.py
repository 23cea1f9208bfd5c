"""Transposed convolutions whose windows leave gaps: every element of the result is written."""

import pytest
from tests.small_machines import Small, small_machine

import tilewright
from tilewright.network import windows
from tilewright.network.graph import Network
from tilewright.network.windows import Window
from tilewright.network.zoo import layers
from tilewright.replay.verify import verify

SHAPES = {
    "one window beside the other": Window(kernel=2, stride=2),
    "windows overlap": Window(kernel=3, stride=2, pad_begin=1),
    "a gap between windows": Window(kernel=2, stride=3),
    "single taps far apart": Window(kernel=1, stride=4),
    "room behind the last window": Window(kernel=3, stride=2, pad_end=-1),
    "gaps and more room than a gap behind": Window(kernel=2, stride=3, pad_end=-2),
    "gaps between taps": Window(kernel=2, stride=3, dilation=2),
    "gaps, the first and the last window cropped": Window(
        kernel=2, stride=4, pad_begin=1, pad_end=1
    ),
}


def transposed(window: Window, channels: int, kernels: int) -> Network:
    net = layers.draft("transposed", 8)
    data = layers.given(net, "x", (1, channels, 3, 3))
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

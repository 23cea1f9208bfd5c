"""Slices that are made on demand: as long as there is room for the constants of who makes them."""

from tests.cascade_cases import prepared
from tests.small_machines import Small, small_machine

from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.cascade import Cascade, Strategy
from tilewright.program.lower import laid_out

ROWS = 2
"""The axis of rows in batch, channels, rows, columns."""


def separable() -> Network:
    """A depthwise convolution behind one with large weights: 160 bytes for each channel."""
    net = layers.draft("separable", 8)
    data = layers.conv(net, "expand", layers.given(net, "x", (1, 160, 4, 3)), 320, layers.square(1))
    data = layers.conv(net, "depthwise", data, 320, layers.square(3, 1, 1, group=320))
    return net.finish(layers.conv(net, "project", data, 8, layers.square(1)))


def slice_length(size_bytes: int) -> int:
    """Channels of the depthwise convolution at once, in a scratchpad of some size."""
    on = prepared(separable(), small_machine(Small(size_bytes=size_bytes)))
    cascade = Cascade(first=0, last=2, axis=ROWS, step=1, eager=False, on_demand=(0,))
    layout = laid_out(on, "latency", Strategy(cascades=(cascade,), gone=("x",)))
    return layout.tilings[1].lengths["G"]


def test_slices_are_short_where_long_ones_take_too_many_constants() -> None:
    # In 10,000 B a slice of 80 channels is an eighth of the room at most, but it takes 80 x 160 B
    # of weights. One of 16 channels takes 2,560 B.
    assert slice_length(10_000) == 16


def test_slices_are_long_where_there_is_room() -> None:
    assert slice_length(64 * 1024) > 16

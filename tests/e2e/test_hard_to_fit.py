"""Networks that fit, but not in the first way that is tried, are planned and not refused."""

import pytest
from tests.ladder_cases import one_memory

from tilewright import load_machine, plan
from tilewright.machine.limits import with_memory_limits
from tilewright.network import windows
from tilewright.network.graph import Network, Tensor
from tilewright.network.windows import Window
from tilewright.network.zoo import layers
from tilewright.planner import plan_that_fits
from tilewright.replay.verify import verify
from tilewright.strategy.ladder.fit import fit
from tilewright.strategy.ladder.rungs import ladder


def twice_as_large(net: layers.Draft, name: str, data: Tensor, channels: int) -> Tensor:
    """A transposed convolution whose windows lie one beside the other."""
    window = Window(kernel=2, stride=2)
    weights = layers.constant(net, f"{name}.w", (data.shape[1], channels, 2, 2))
    form = windows.ONNX_CONV_TRANSPOSE
    nest = windows.conv_transpose(data.shape, channels, 1, [window, window], form, bias=False)
    net.builder.op(name, "conv_transpose", nest, [data.name, weights.name], {name: (8, "")})
    return net.builder.tensors[name]


def hourglass() -> Network:
    """Smaller in two steps and larger again, with what was there before beside it."""
    net = layers.draft("hourglass", 8)
    wide, half = layers.square(3, 1, 1), layers.square(2, 2)
    first = layers.conv(net, "first", layers.given(net, "x", (1, 1, 24, 24)), 8, wide)
    second = layers.conv(net, "second", layers.max_pool(net, "down", first, half), 12, wide)
    third = layers.conv(net, "third", layers.max_pool(net, "deeper", second, half), 16, wide)
    joined = layers.concat(net, "joined", [twice_as_large(net, "up", third, 12), second], 1)
    fourth = layers.conv(net, "fourth", joined, 12, wide)
    last = layers.concat(net, "top", [first, twice_as_large(net, "higher", fourth, 8)], 1)
    return net.finish(layers.conv(net, "last", last, 1, wide))


@pytest.mark.parametrize("size_bytes", [16_384, 13_000, 12_151])
def test_room_in_two_memories_is_not_room_for_all_in_one(size_bytes: int) -> None:
    # All tensors would have room in both memories together, but only in another order in each.
    names = ("input_memory", "weight_output_memory")
    machine = with_memory_limits(load_machine("npe8"), tuple((n, size_bytes) for n in names))
    made = plan(hourglass(), machine)
    assert all(made.peak_bytes[name] <= size_bytes for name in names)
    assert verify(made.timetable, made.network, machine=machine).agrees


def test_where_a_rung_has_too_many_steps_an_ordinary_plan_serves() -> None:
    net = layers.draft("deep", 8)
    data = layers.given(net, "x", (1, 32, 6, 40))
    for name in ("first", "second", "third", "fourth"):
        data = layers.conv(net, name, data, 32, layers.square(3, 1, 1, group=32))
    network = net.finish(data)
    size = ladder(network).rung("recompute").total_bytes
    found = fit(network, one_memory(size))
    assert found.first is not None
    assert found.first.name == "recompute"
    made = plan_that_fits(found)
    assert made.peak_bytes["memory"] <= size
    assert verify(made.timetable, network, machine=made.machine).agrees


def branches() -> Network:
    """Four ways through small maps, side by side."""
    net = layers.draft("branches", 8)
    data = layers.given(net, "x", (1, 6, 12, 12))

    def narrow(name: str, read: Tensor) -> Tensor:
        return layers.conv(net, name, read, 4, layers.square(1))

    ways = [
        narrow("a", data),
        layers.conv(net, "b3", narrow("b", data), 4, layers.square(3, 1, 1)),
        layers.conv(net, "c5", narrow("c", data), 4, layers.square(5, 1, 2)),
        narrow("d", layers.max_pool(net, "d3", data, layers.square(3, 1, 1))),
    ]
    joined = layers.concat(net, "joined", ways, 1)
    return net.finish(layers.max_pool(net, "last", joined, layers.square(5, 4, 2)))


def test_tiles_without_addresses_are_not_all_that_is_tried() -> None:
    # For 3,440 B, ops one by one seemed to fit and did not, and the one other choice was slow.
    less, more = (plan(branches(), one_memory(size)).cycles for size in (3_400, 3_440))
    assert more <= 1.001 * less

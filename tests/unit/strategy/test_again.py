"""What could be made again instead of waiting, by hand, and networks with copies of ops."""

from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.strategy.again import Again, Waits, unchanged

WAITING = 4
"""The place of the gate, behind which the depthwise convolution's result waits for the sum."""


def gated() -> Network:
    """A wide map of 4,096 B, made of a narrow one of 256 B, to which something is added that is
    made of its mean."""
    net = layers.draft("gated", 8)
    data = layers.given(net, "x", (1, 3, 8, 8))
    data = layers.conv(net, "narrow", data, 4, layers.square(1))
    data = layers.conv(net, "wide", data, 64, layers.square(1))
    data = layers.conv(net, "depthwise", data, 64, layers.square(1, group=64))
    mean = layers.global_average_pool(net, "mean", data)
    gate = layers.conv(net, "gate", mean, 64, layers.square(1))
    data = layers.add(net, "sum", data, gate)
    return net.finish(layers.conv(net, "end", data, 4, layers.square(1)))


def ways(network: Network, place: int) -> list[Again]:
    return Waits(network=network, order=network.ops).ways(place)


def test_the_more_ops_run_again_the_less_waits_for_them() -> None:
    # 8 x 8 results of 4 products for each of 64 channels, and of one; 3 products for 4 channels.
    wide, depthwise, narrow = 64 * 64 * 4, 64 * 64, 64 * 4 * 3
    assert ways(gated(), WAITING) == [
        Again(
            tensor="depthwise",
            ops=("wide", "depthwise"),
            readers=("sum",),
            freed_bytes=4096 - 256,
            waiting_bytes=256,
            macs=wide + depthwise,
        ),
        Again(
            tensor="depthwise",
            ops=("narrow", "wide", "depthwise"),
            readers=("sum",),
            freed_bytes=4096,
            waiting_bytes=0,
            macs=narrow + wide + depthwise,
        ),
    ]


def test_what_waits_anyway_need_not_be_made_again() -> None:
    net = layers.draft("fork", 8)
    data = layers.conv(net, "narrow", layers.given(net, "x", (1, 3, 8, 8)), 4, layers.square(1))
    wide = layers.conv(net, "wide", data, 64, layers.square(1))
    mean = layers.conv(
        net, "gate", layers.global_average_pool(net, "mean", wide), 64, layers.square(1)
    )
    narrow = layers.conv(net, "end", layers.add(net, "sum", wide, mean), 4, layers.square(1))
    network = net.finish(layers.add(net, "residual", narrow, data))
    # The narrow map waits for the last sum, so that the wide one can be made of it at any time.
    found = [(way.tensor, way.ops, way.waiting_bytes) for way in ways(network, 3)]
    assert found == [("narrow", ("narrow",), 0), ("wide", ("wide",), 0)]


def test_something_small_may_wait_beside_a_long_way_to_the_inputs() -> None:
    net = layers.draft("joined", 8)
    data = layers.conv(net, "first", layers.given(net, "x", (1, 3, 8, 8)), 64, layers.square(1))
    data = layers.conv(net, "skip", data, 64, layers.square(1))
    mean = layers.global_average_pool(net, "mean", data)
    data = layers.add(net, "joined", data, layers.conv(net, "scale", mean, 64, layers.square(1)))
    near = layers.conv(net, "near", data, 4, layers.square(1))
    network = net.finish(
        layers.add(net, "end", layers.conv(net, "far", data, 4, layers.square(1)), near)
    )
    found = [(way.ops, way.waiting_bytes) for way in ways(network, 5) if way.tensor == "joined"]
    # The 64 numbers to be added may wait, or be made again as well.
    assert found == [
        (("first", "skip", "joined"), 64),
        (("first", "skip", "mean", "scale", "joined"), 0),
    ]


def test_what_nobody_has_read_could_be_made_later() -> None:
    net = layers.draft("late", 8)
    x = layers.given(net, "x", (1, 3, 8, 8))
    early = layers.conv(net, "early", x, 4, layers.square(1))
    other = layers.conv(net, "other", x, 4, layers.square(1))
    network = net.finish(layers.add(net, "sum", early, other))
    assert ways(network, 0) == []


def test_late_readers_read_what_copies_make() -> None:
    network = gated()
    copied = unchanged(network).with_copies(ways(network, WAITING)[0])
    ops = {op.name: op for op in copied.patches.network.ops}
    assert [*ops] == [
        *("narrow", "wide", "depthwise", "mean", "gate"),
        *("wide again", "depthwise again", "sum", "end"),
    ]
    reads = {name: op.inputs[0].tensor for name, op in ops.items()}
    assert reads["wide again"] == "narrow"
    assert reads["depthwise again"] == "wide again"
    assert (reads["mean"], reads["sum"]) == ("depthwise", "depthwise again")
    assert [way.tensor for way in copied.again] == ["depthwise"]


def test_ops_that_run_again_are_numbered() -> None:
    network = gated()
    once = unchanged(network).with_copies(ways(network, WAITING)[0])
    found = {name: (part.op, part.strip) for name, part in once.patches.ops.items()}
    assert found == {
        "wide": ("wide", 1),
        "wide again": ("wide", 2),
        "depthwise": ("depthwise", 1),
        "depthwise again": ("depthwise", 2),
    }
    assert {name: part.tensor for name, part in once.patches.tensors.items()} == {
        "wide again": "wide",
        "depthwise again": "depthwise",
    }

"""Who has to make a tensor again because it is too large to wait for him, by hand."""

from tests.cascade_cases import prepared

from tilewright.machine.limits import with_memory_limits
from tilewright.machine.load import load_machine
from tilewright.network.graph import Network, Tensor
from tilewright.network.zoo import layers
from tilewright.network.zoo.layers import Draft
from tilewright.strategy.again import Again
from tilewright.strategy.apart import Apart

MAP_BYTES = 8 * 16 * 16


def apart(network: Network, size_bytes: int, part: float) -> Apart:
    machine = with_memory_limits(load_machine("ethos_u55_128"), (("sram", size_bytes),))
    return Apart(
        network=network,
        order=network.ops,
        prepared=prepared(network, machine),
        room=size_bytes,
        most_stages=16,
        part=part,
    )


def first(network: Network, size_bytes: int, part: float = 0.5) -> Again | None:
    return apart(network, size_bytes, part).first()


def start(name: str) -> tuple[Draft, Tensor]:
    """A map of 2,048 B that is made of an input."""
    net = layers.draft(name, 8)
    data = layers.given(net, "x", (1, 3, 16, 16))
    return net, layers.conv(net, "map", data, 8, layers.square(3, 1, 1))


def scaled(net: Draft, name: str, data: Tensor, of: Tensor) -> Tensor:
    """Data to which something is added that is made of the mean of others."""
    mean = layers.global_average_pool(net, f"{name} mean", of)
    return layers.add(net, name, data, layers.conv(net, f"{name} gate", mean, 8, layers.square(1)))


def scaled_by_mean(net: Draft, data: Tensor) -> Tensor:
    """Data with something added to 16 channels that is made of their own mean."""
    mean = layers.global_average_pool(net, "mean", data)
    return layers.add(net, "sum", data, layers.conv(net, "gate", mean, 16, layers.square(1)))


def test_who_waits_for_the_mean_of_a_map_makes_it_again() -> None:
    net, data = start("gated")
    network = net.finish(scaled(net, "sum", data, data))
    way = first(network, 2 * MAP_BYTES - 1)
    assert way is not None
    assert (way.tensor, way.ops, way.readers) == ("map", ("map",), ("sum",))
    # If it takes half of the room it may wait, or more if more is allowed.
    assert first(network, 2 * MAP_BYTES) is None
    assert first(network, 2 * MAP_BYTES - 1, part=0.6) is None
    assert first(network, MAP_BYTES, part=0.6) == first(network, MAP_BYTES)


def test_what_is_made_again_may_come_from_what_waits_if_that_is_small_enough() -> None:
    net, data = start("behind")
    wide = layers.conv(net, "wide", data, 16, layers.square(1))
    network = net.finish(layers.conv(net, "end", scaled_by_mean(net, wide), 8, layers.square(1)))
    # The wide map takes all of the room and the narrow one, which it is made of, half of it.
    room = 2 * MAP_BYTES
    ways = [first(network, room, part) for part in (0.5, 0.4)]
    assert [way.ops for way in ways if way is not None] == [("wide",), ("map", "wide")]


def test_readers_that_a_cascade_reaches_together_are_not_apart() -> None:
    net, data = start("residual")
    inner = layers.conv(net, "inner", data, 8, layers.square(3, 1, 1))
    network = net.finish(layers.add(net, "sum", inner, data))
    assert first(network, MAP_BYTES) is None


def test_late_readers_that_go_together_share_what_is_made_again() -> None:
    net, data = start("late")
    gate = layers.conv(
        net, "gate", layers.global_average_pool(net, "mean", data), 8, layers.square(1)
    )
    inner = layers.conv(
        net, "inner", layers.add(net, "both", data, gate), 8, layers.square(3, 1, 1)
    )
    network = net.finish(layers.add(net, "sum", inner, data))
    way = first(network, MAP_BYTES)
    assert way is not None
    assert way.readers == ("both", "sum")


def test_every_reader_behind_another_mean_is_apart() -> None:
    net, data = start("twice")
    one = scaled(net, "one", data, data)
    network = net.finish(scaled(net, "two", data, one))
    way = first(network, MAP_BYTES)
    assert way is not None
    assert way.readers == ("one",)

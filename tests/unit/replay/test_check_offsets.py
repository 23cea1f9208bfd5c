"""Positions of the same element in tensors that are parts of each other."""

from tests.small_networks import op

from tilewright.network import moves
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.replay.check_offsets import offsets_of


def apart(network: Network, one: str, other: str) -> tuple[int, ...] | None:
    """What to add to a position in one tensor to get it in another; None if that is not known."""
    known = offsets_of(network)
    if one not in known or other not in known or known[one][0] != known[other][0]:
        return None
    return tuple(a - b for a, b in zip(known[one][1], known[other][1], strict=True))


def test_parts_of_a_concatenation_lie_behind_each_other() -> None:
    net = layers.draft("t", 8)
    data = layers.given(net, "x", (1, 4, 6, 6))
    a, b, c = (layers.activation(net, name, data, "exp") for name in "abc")
    inner = layers.concat(net, "inner", [a, b], 1)
    network = net.finish(layers.concat(net, "outer", [c, inner], 1))
    assert apart(network, "a", "inner") == (0, 0, 0, 0)
    assert apart(network, "b", "inner") == (0, 4, 0, 0)
    assert apart(network, "b", "outer") == (0, 8, 0, 0)
    assert apart(network, "c", "outer") == (0, 0, 0, 0)
    assert apart(network, "outer", "a") == (0, -4, 0, 0)
    assert apart(network, "x", "a") is None


def test_a_slice_of_a_slice_lies_at_the_sum_of_their_beginnings() -> None:
    net = layers.draft("t", 8)
    data = layers.given(net, "x", (1, 4, 6, 6))
    part = layers.take(net, "part", data, 2, (1, 6))
    again = layers.take(net, "again", part, 2, (2, 4))
    network = net.finish(layers.activation(net, "last", again, "exp"))
    assert apart(network, "again", "x") == (0, 0, 3, 0)
    assert apart(network, "again", "last") is None


def test_nothing_is_said_of_what_lies_in_several_places() -> None:
    net = layers.draft("t", 8)
    data = layers.given(net, "x", (1, 4, 6, 6))
    low = layers.take(net, "low", data, 1, (0, 2))
    high = layers.take(net, "high", data, 1, (2, 4))
    other = layers.take(net, "other", layers.activation(net, "y", data, "exp"), 1, (1, 3))
    turned = layers.concat(net, "turned", [high, low], 1)
    network = net.finish(turned, layers.activation(net, "last", other, "exp"))
    for name in ("low", "high", "turned"):
        assert apart(network, name, "x") is None
    assert apart(network, "other", "y") == (0, 1, 0, 0)


def test_nothing_is_said_of_what_is_turned_stretched_or_in_another_shape() -> None:
    net = layers.draft("t", 8)
    data = layers.given(net, "x", (1, 4, 6, 6))
    nest = moves.slice_axes(data.shape, (0, 0, 0, 0), (1, 2, 6, 6), (1, 2, 1, 1))
    results = [
        op(net, "odd", "slice", nest, data),
        layers.transpose(net, "turned", data, (0, 1, 3, 2)),
        layers.reshape(net, "flat", data, (1, 144, 1, 1)),
    ]
    network = net.finish(*results)
    assert [apart(network, tensor.name, "x") for tensor in results] == [None] * 3

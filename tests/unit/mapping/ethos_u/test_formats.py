"""Which feature maps lie in bricks, and where ops that touch them may be cut."""

import pytest

from tilewright.mapping.ethos_u.formats import brick_axes, whole_brick_multiples
from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import Index, Network, Operand
from tilewright.network.moves import concat
from tilewright.network.nests import elementwise
from tilewright.network.zoo import layers


def joined(axis: int, channels: int) -> Network:
    """Two maps of 4 x 4, put together along an axis, and a map made of that."""
    builder = NetworkBuilder("joined")
    shape = (1, channels, 4, 4)
    builder.tensor("x", shape, bits=8, role="input")
    for name in ("a", "b"):
        builder.op(f"make_{name}", "relu", elementwise(shape), ["x"], {name: (8, "")})
    builder.op("join", "concat", concat([shape, shape], axis), ["a", "b"], {"whole": (8, "")})
    whole = tuple(2 * size if at == axis else size for at, size in enumerate(shape))
    builder.op("last", "relu", elementwise(whole), ["whole"], {"y": (8, "")})
    return builder.finish(["y"])


@pytest.mark.parametrize(
    ("axis", "channels", "expected"),
    [
        (3, 32, {"a": 1, "b": 1, "whole": 1}),  # columns beside columns
        (3, 24, {}),  # no multiple of 16
        (1, 32, {}),  # channels behind channels
    ],
)
def test_parts_lie_as_the_whole_does(axis: int, channels: int, expected: dict[str, int]) -> None:
    assert brick_axes(joined(axis, channels)) == expected


def test_what_others_than_the_hardware_touch_lies_linear() -> None:
    net = layers.draft("net", 8)
    data = layers.given(net, "x", (1, 16, 4, 4))
    first = layers.relu6(net, "first", data)
    second = layers.relu6(net, "second", first)
    net.builder.op("third", "exp", elementwise(second.shape), ["second"], {"third": (8, "")})
    # The input and the output of the network are the host's, and the hardware knows no "exp".
    assert brick_axes(net.finish(net.builder.tensors["third"])) == {"first": 1}


def test_loops_are_cut_at_multiples_that_lead_to_whole_bricks() -> None:
    def channels(*terms: tuple[str, int]) -> Operand:
        return Operand(name="I", tensor="map", index=(Index((("B", 1),)), Index(terms)))

    axes = {"map": 1}
    assert whole_brick_multiples([channels(("K", 1))], axes) == {"K": 16}
    # Groups of 12 channels: four are the first that end where a brick does.
    assert whole_brick_multiples([channels(("G", 12), ("K", 1))], axes) == {"G": 4, "K": 16}
    # Groups of whole bricks may be cut anywhere.
    assert whole_brick_multiples([channels(("G", 32))], axes) == {}
    assert whole_brick_multiples([channels(("K", 1))], {}) == {}

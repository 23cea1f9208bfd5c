"""Transposed convolutions walk over their result where windows overlap, and count as before."""

from itertools import product

import pytest

from tilewright.network import windows
from tilewright.network.build import NetworkBuilder
from tilewright.network.counts import macs, tile_macs
from tilewright.network.graph import Network
from tilewright.network.windows import Window, interleaved


def transposed(window: Window, size: int) -> Network:
    """One axis, 3 channels into 2."""
    nest = windows.conv_transpose((1, 3, size), 2, 1, [window], windows.ONNX_CONV_TRANSPOSE)
    builder = NetworkBuilder("transposed")
    builder.tensor("x", (1, 3, size), bits=8, role="input")
    builder.tensor("w", (3, 2, window.kernel), bits=8, role="constant")
    builder.op("up", "conv_transpose", nest, ["x", "w"], {"y": (8, "")})
    return builder.finish(["y"])


def indices(network: Network) -> list[str]:
    """Those of result, data and weights along the one spatial axis."""
    return [str((operand.index or ())[2]) for operand in network.ops[0].operands]


def test_windows_that_overlap_are_gathered() -> None:
    network = transposed(Window(kernel=3, stride=2, pad_begin=1, pad_end=-1), 4)
    # (4 - 1) x 2 + 3 - 1 + 1 = 9.
    assert dict(network.ops[0].dims) == {"B": 1, "K": 2, "C": 3, "OX": 9, "FX": 3}
    assert indices(network) == ["OX", "(OX - FX + 1) / 2", "FX"]
    dilated = transposed(Window(kernel=2, stride=3, dilation=3), 4)
    assert indices(dilated) == ["OX", "(OX - 3*FX) / 3", "FX"]


@pytest.mark.parametrize(
    ("window", "size"),
    [
        (Window(kernel=2, stride=2), 4),
        (Window(kernel=2, stride=3), 4),
        (Window(kernel=4, stride=1), 1),
    ],
    ids=["beside each other", "gaps", "a single one"],
)
def test_windows_that_do_not_overlap_are_scattered(window: Window, size: int) -> None:
    network = transposed(window, size)
    assert network.ops[0].sizes["IX"] == size
    assert interleaved(network.ops[0], network) == ()


def test_every_product_is_counted_once() -> None:
    """Against counting where the taps of every window land."""
    sizes = product(range(1, 6), range(1, 4), range(1, 3), range(3), range(-2, 2), range(1, 5))
    for kernel, stride, dilation, before, behind, size in sizes:
        window = Window(
            kernel=kernel, stride=stride, dilation=dilation, pad_begin=before, pad_end=behind
        )
        full = (size - 1) * stride + window.reach - before - behind
        if full < 1:
            continue
        places = [i * stride + f * dilation - before for i in range(size) for f in range(kernel)]
        network = transposed(window, size)
        inside = sum(0 <= place < full for place in places)
        assert macs(network.ops[0], network) == 3 * 2 * inside, (window, size)


def test_steps_over_the_input_hold_all_products_of_a_tile() -> None:
    """However a tile lies: no tap reaches more of its elements than there are steps."""
    for kernel, stride, dilation, before in product(
        range(2, 6), range(1, 4), range(1, 3), range(3)
    ):
        window = Window(kernel=kernel, stride=stride, dilation=dilation, pad_begin=before)
        network = transposed(window, 4)
        for axis in interleaved(network.ops[0], network):
            size = network.by_name["y"].shape[2]
            taps = [[i * stride + f * dilation - before for i in range(4)] for f in range(kernel)]
            for begin, end in product(range(size), range(size + 1)):
                if begin < end:
                    most = max(sum(begin <= at < end for at in places) for places in taps)
                    assert most <= axis.steps(end - begin) <= 4
                    read = [i for i in range(4) for places in taps if begin <= places[i] < end]
                    seen = max(read) - min(read) + 1 if read else 0
                    assert seen <= axis.seen(end - begin, kernel)


@pytest.mark.parametrize("size", [4, 7])
@pytest.mark.parametrize("stride", [2, 3])
def test_tiles_together_have_as_many_products_as_the_whole(stride: int, size: int) -> None:
    network = transposed(Window(kernel=4, stride=stride, pad_begin=1), size)
    (op,) = network.ops
    (loop,) = (dim for dim in ("OX", "IX") if dim in op.sizes)
    whole = {dim: (0, length) for dim, length in op.dims}
    steps = [(start, min(start + 3, op.sizes[loop])) for start in range(0, op.sizes[loop], 3)]
    tiles = [tile_macs(op, network, whole | {loop: span}) for span in steps]
    assert sum(tiles) == macs(op, network)
    # Each tap of a result reads an element or none: of the taps of one, every stride-th.
    assert tiles[1] == sum(
        2 * 3
        for x in range(*steps[1])
        for tap in range(4)
        if (x - tap + 1) % stride == 0 and 0 <= (x - tap + 1) // stride < size
    )

"""The capacity ladder: rungs by hand, what is alive, and what runs where."""

import pytest
from tests.ladder_cases import Layer, chain

from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.network.zoo import layers
from tilewright.strategy.ladder.cells import work_of
from tilewright.strategy.ladder.rungs import RUNGS, RungName, granularity_of, ladder

WEIGHTS = 46_368
"""notes_cnn at 16 bit: 2 B x 9 taps x (1 x 16 + 16 x 32 + 32 x 64 filters)."""

NOTES_CNN: tuple[tuple[RungName, int], ...] = (
    # conv1 and its pooled result: 30 x 30 x 16 and 15 x 15 x 16 words.
    ("layer_by_layer", 28_800 + 7_200),
    # conv1 beside the input; the pool takes conv1's room.
    ("in_place", 28_800 + 2_048),
    # pool1 and pool2 whole, 6 accumulators of pool2 and a pixel of conv2.
    ("fused_pools", 7_200 + 2_304 + 6 * 64 + 64),
    # 66 pixels of the input, 47 of pool1 and conv1 at 32 B, 18 of pool2 at 64 B.
    ("line_buffered", 66 * 2 + 47 * 32 + 18 * 64),
    # Two columns less of the input and of conv1, one less of pool1.
    ("line_buffered_cropped", 62 * 2 + 44 * 32 + 18 * 64),
    # The input whole; accumulators of conv3, pool2, conv2 and pool1, and a pixel of conv1.
    ("recompute", 2_048 + 128 + 64 + 64 + 32 + 32),
    ("weights", 0),
)


@pytest.mark.parametrize(("name", "activation_bytes"), NOTES_CNN)
def test_the_ladder_of_notes_cnn(name: RungName, activation_bytes: int) -> None:
    rung = ladder(load_network("notes_cnn")).rung(name)
    assert rung.activation_bytes == activation_bytes
    assert rung.total_bytes == WEIGHTS + activation_bytes
    assert sum(alive.size_bytes for alive in rung.alive) == activation_bytes


def test_what_is_alive_at_the_peak_of_line_buffers() -> None:
    rung = ladder(load_network("notes_cnn")).rung("line_buffered")
    found = {(alive.tensor, alive.is_sum): alive.chunks for alive in rung.alive}
    # While pixel 0 of a pooled row is computed: 15 accumulators of pool1 and 6 of pool2 are open.
    assert found[("pool1", True)] == 15
    assert found[("pool2", True)] == 6
    assert found[("input", False)] == 66


def test_dead_rows_cost_multiplications() -> None:
    # conv1 needs 28 x 28 of 30 x 30 pixels, conv2 12 x 12 of 13 x 13, conv3 all:
    # (784 * 144 + 144 * 4608 + 16 * 18432) / (900 * 144 + 169 * 4608 + 16 * 18432)
    rung = ladder(load_network("notes_cnn")).rung("line_buffered_cropped")
    assert rung.macs_factor == pytest.approx(1_071_360 / 1_203_264)


def test_recomputing_multiplies_the_multiplications() -> None:
    # A pixel of conv3 takes 9 pixels of pool2, each 4 of conv2, each 9 of pool1, each 4 of conv1:
    # 16 * (18432 + 36 * (4608 + 36 * 144)) = 5,935,104 multiplications.
    rung = ladder(load_network("notes_cnn")).rung("recompute")
    assert rung.macs_factor == pytest.approx(5_935_104 / 1_203_264)


def test_rungs_have_the_documented_names() -> None:
    assert [rung.name for rung in ladder(load_network("notes_cnn")).rungs] == list(RUNGS)


@pytest.mark.parametrize("network", ["lenet5", "vit_tiny", "gpt2_block", "squeezenet"])
def test_a_rung_that_needs_more_than_the_one_before_it_is_left_out(network: str) -> None:
    rungs = ladder(load_network(network)).rungs
    sizes = [(rung.total_bytes, rung.activation_bytes) for rung in rungs]
    assert sizes == sorted(sizes, reverse=True)
    # With lines every pixel is made once, and the input need not be there as a whole.
    assert "recompute" not in [rung.name for rung in rungs]
    assert rungs[-1].name == "weights"


def test_bits_shrink_everything() -> None:
    rung = ladder(load_network("notes_cnn", bits=8)).rung("line_buffered")
    assert rung.total_bytes == (WEIGHTS + 2_788) // 2


def test_a_single_convolution_keeps_its_window() -> None:
    network = chain((4, 5), 1, (Layer(is_pool=False, channels=3, kernel=3, stride=1, pad=0),))
    # Two rows of 5 pixels and 3 more, and a pixel of 3 words.
    assert ladder(network).rung("line_buffered").activation_bytes == 2 * 13 + 6


def test_a_join_waits_for_its_slower_branch() -> None:
    net = layers.draft("branch", 8)
    data = layers.given(net, "input", (1, 2, 4, 4))
    slow = layers.conv(net, "slow", data, 2, layers.square(3, 1, 1))
    network = net.finish(layers.add(net, "sum", slow, data))
    # slow[y, x] takes input up to [y + 1, x + 1]: 4 + 4 + 2 pixels are there when slow[1, 0] is
    # made, none of them free before; its own pixel makes 11. From [1, 1] on 4 + 2 + 4 + ... stay
    # alive: input [y - 1, x - 1] is the oldest, so that 2 * 4 + 3 pixels and one of slow are.
    assert ladder(network).rung("line_buffered").activation_bytes == 2 * (2 * 4 + 3 + 1)


def test_an_element_wise_op_takes_the_place_of_its_input() -> None:
    net = layers.draft("gate", 8)
    data = layers.given(net, "input", (1, 4, 3, 3))
    made = layers.conv(net, "conv", data, 8, layers.square(1))
    network = net.finish(layers.activation(net, "gate", made, "sigmoid"))
    found = ladder(network)
    # conv and gate are 72 B each; in place, the most is conv beside the input of 36 B.
    assert found.rung("layer_by_layer").activation_bytes == 144
    assert found.rung("in_place").activation_bytes == 108


def test_parts_of_a_concatenation_live_by_themselves() -> None:
    net = layers.draft("parts", 8)
    data = layers.given(net, "input", (1, 1, 1, 4))
    left = layers.conv(net, "left", data, 2, layers.square(1))
    right = layers.conv(net, "right", data, 3, layers.square(1))
    network = net.finish(layers.concat(net, "both", [left, right], 1))
    # One pixel of the input, of 2 and of 3 bytes; the first ones are handed out before the next.
    assert ladder(network).rung("line_buffered").activation_bytes <= 6


def test_repeated_elements_come_row_by_row() -> None:
    net = layers.draft("magnified", 8)
    data = layers.given(net, "input", (1, 1, 8, 8))
    network = net.finish(layers.upsample(net, "up", data, 2))
    # Rows are handed out one by one, so that a row of pixels waits for its second time.
    rung = ladder(network).rung("line_buffered")
    assert rung.activation_bytes < 64 + 256
    assert ladder(network, granularity="row").rung("line_buffered").activation_bytes == 8 + 16


def big(network: Network) -> str:
    return granularity_of(work_of(network))


def test_many_pixels_are_looked_at_by_rows() -> None:
    assert big(load_network("notes_cnn")) == "pixel"
    assert big(load_network("resnet18")) == "row"


def test_what_cannot_be_cut_is_whole() -> None:
    net = layers.draft("dense", 8)
    data = layers.gemm(net, "dense", layers.given(net, "input", (1, 20)), 30)
    rungs = {r.name: r for r in ladder(net.finish(layers.activation(net, "a", data, "tanh"))).rungs}
    # 30 values and their 30 results; in place, 20 inputs beside 30 results are more than those.
    assert rungs["layer_by_layer"].activation_bytes == 60
    assert rungs["in_place"].activation_bytes == 50
    # Line by line 60 are there again: no rung.
    assert "line_buffered" not in rungs

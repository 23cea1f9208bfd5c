"""What one tile costs, by hand."""

from math import prod

import pytest
from tests.e2e.test_transposed_plans import transposed
from tests.small_machines import Small, small_machine

from tilewright.errors import InfeasibleError
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.network.windows import Window
from tilewright.network.zoo import layers
from tilewright.program.places import places_of
from tilewright.program.tile_cost import Sums, TileCosts


def product_network() -> Network:
    """16 x 8 times 8 x 32, everything of a byte."""
    net = layers.draft("product", 8)
    data = layers.given(net, "x", (16, 8))
    weights = layers.constant(net, "w", (8, 32))
    return net.finish(layers.matmul(net, "y", data, weights))


def costs_of(network: Network, small: Small) -> TileCosts:
    options = SearchOptions(lpf_limit=4, unrollings=6)
    return TileCosts(network=network, places=places_of(small_machine(small)), options=options)


def test_tiles_of_one_shape_are_mapped_once() -> None:
    network = product_network()
    costs = costs_of(network, Small())
    first = costs.on_array(network.ops[0], {"D": 4, "K": 8, "C": 8})
    again = costs.on_array(network.ops[0], {"D": 4, "K": 8, "C": 8})
    other = costs.on_array(network.ops[0], {"D": 8, "K": 8, "C": 8})
    assert first is again
    assert (first.mapping, other.mapping) == (0, 1)
    assert len(costs.mappings) == 2


def test_multiplications_cost_their_energy_and_at_least_their_steps() -> None:
    network = product_network()
    costs = costs_of(network, Small())
    found = costs.on_array(network.ops[0], {})
    # 16 * 8 * 32 multiplications of 0.05 pJ on 8 x 4 units.
    (array,) = [charge for charge in found.charges if charge.memory == "array"]
    assert array.energy_pj == pytest.approx(4096 * 0.05)
    assert costs.fewest_steps(network.ops[0]) == 4096 // 32
    assert found.cycles >= 4096 // 32
    # Every element is read from the scratchpad once at least, and every result written there.
    (bank,) = [charge for charge in found.charges if charge.memory == "bank"]
    assert bank.read_bytes >= 16 * 8 + 8 * 32
    assert bank.write_bytes >= 16 * 32
    assert {charge.memory for charge in found.charges} <= {"array", "reg", "bank"}


def test_going_on_from_partial_sums_takes_reading_them() -> None:
    network = product_network()
    costs = costs_of(network, Small())
    tile = {"D": 4, "K": 8, "C": 4}
    whole = costs.on_array(network.ops[0], tile)
    last = costs.on_array(network.ops[0], tile, Sums(continued=True))
    # 4 * 8 partial sums of 32 bit through a port of 128 bit at 12.8 pJ.
    assert last.cycles == whole.cycles + 8
    assert last.charges[-1].read_bytes == 128
    assert last.charges[-1].energy_pj == pytest.approx(8 * 12.8)
    assert last.charges[:-1] == whole.charges
    # What is left unfinished is written at its full width: 4 B instead of 1.
    left = costs.on_array(network.ops[0], tile, Sums(unfinished=True))
    written = [sum(c.write_bytes for c in x.charges if c.memory == "bank") for x in (whole, left)]
    assert written[1] >= written[0] + 3 * 32


def test_windows_that_overlap_cost_no_products_with_zeros() -> None:
    window = Window(kernel=3, stride=2, pad_begin=1)
    network = transposed(window, channels=4, kernels=2, size=6)
    op, costs = network.ops[0], costs_of(network, Small())
    found = costs.on_array(op, {**op.sizes, "OY": 4, "OX": 2})
    # Two windows along rows and one along columns, each of 9 taps, for 4 x 2 pairs of channels.
    (array,) = [charge for charge in found.charges if charge.memory == "array"]
    assert array.energy_pj == pytest.approx(2 * 9 * 8 * 0.05)
    assert costs.on_array(op, {}) == costs.on_array(op, op.sizes)
    # Estimates that go through the result take two of its rows and columns for one step.
    unrolled = costs.unrolled(op)
    assert "IY" not in unrolled
    steps = prod(-(-size // unrolled.get(dim, 1)) for dim, size in op.dims)
    assert unrolled["OY"] % 2 == unrolled["OX"] % 2 == 0
    assert costs.fewest_steps(op) <= steps <= 6 * 6 * 9 * 8


def test_the_vector_unit_is_as_slow_as_its_lanes_or_its_memory() -> None:
    costs = costs_of(product_network(), Small())
    # 16 lanes are assumed; 128 bit a cycle of a single port are read and written in turn.
    found = costs.on_vector_unit(640, {"bank": 64}, {"bank": 64})
    assert found.cycles == 640 // 16
    assert found.charges[0].energy_pj == pytest.approx(640 * 0.05)
    found = costs.on_vector_unit(64, {"bank": 1024}, {"bank": 512})
    assert found.cycles == 1024 // 16 + 512 // 16
    assert found.charges[1].energy_pj == pytest.approx((64 + 32) * 12.8)
    assert costs.on_vector_unit(1, {}, {}).cycles == 1
    assert costs.in_passing(100).energy_pj == pytest.approx(5.0)


def test_streamed_weights_are_read_from_outside() -> None:
    network = product_network()
    found = costs_of(network, Small(kind="streamed")).on_array(network.ops[0], {})
    (ddr,) = [charge for charge in found.charges if charge.memory == "ddr"]
    assert ddr.read_bytes >= 8 * 32
    # 32 bit a cycle: 8 * 32 B take 64 cycles at least.
    assert found.cycles >= 64


def test_what_has_no_mapping_says_why() -> None:
    net = layers.draft("wide", 64)
    data = layers.given(net, "x", (4, 4))
    network = net.finish(layers.matmul(net, "y", data, layers.constant(net, "w", (4, 4))))
    # A register of 8 bit holds no weight of 64.
    with pytest.raises(InfeasibleError, match="op 'y' cannot be mapped: "):
        costs_of(network, Small()).on_array(network.ops[0], {})

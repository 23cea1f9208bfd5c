"""What results depend on, worked out by hand."""

from math import ceil

from tests.small_machines import Small, small_machine

from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.lower import prepare
from tilewright.program.needed import needed_of


def with_a_stride() -> Network:
    """Windows of 3 x 3 over 8 x 8 elements, and such windows with a stride of 2 over their 6 x 6.

    The second ones take rows 0 to 2 and 2 to 4, so the first ones rows 0 to 6 for 5 x 5 results.
    """
    net = layers.draft("stride", 8)
    data = layers.given(net, "x", (1, 1, 8, 8))
    data = layers.conv(net, "first", data, 1, layers.square(3))
    return net.finish(layers.conv(net, "second", data, 1, layers.square(3, 2)))


def test_rows_that_a_stride_leaves_out_are_not_needed() -> None:
    found = needed_of(with_a_stride())
    assert found.boxes["x"] == ((0, 1), (0, 1), (0, 7), (0, 7))
    assert found.boxes["first"] == ((0, 1), (0, 1), (0, 5), (0, 5))
    assert found.points == {"first": 5 * 5 * 3 * 3, "second": 2 * 2 * 3 * 3}


def test_bounds_do_not_count_them() -> None:
    network = with_a_stride()
    machine = small_machine(Small())
    options = SearchOptions(lpf_limit=3, unrollings=2)
    prepared = prepare(network, machine, network.ops, options)
    # Two kernels of nine weights and a bias of 4 B each; 7 x 7 elements come, 2 x 2 go.
    assert prepared.bounds.traffic_bytes == 2 * (9 + 4) + 7 * 7 + 2 * 2
    first, second = (prepared.costs.fewest_steps(op) for op in network.ops)
    assert prepared.bounds.array_cycles == ceil(first * 25 / 36 + second)

"""What results depend on, worked out by hand."""

from math import ceil

import pytest
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
    assert found.elements["x"] == 7 * 7
    assert found.elements["first"] == 5 * 5
    assert found.points == {"first": 5 * 5 * 3 * 3, "second": 2 * 2 * 3 * 3}


def with_gaps(kernel: int, *, beside: bool) -> Network:
    """Pixels of 10 x 10, one by one, of which windows with a stride of 3 take some; beside them,
    another op takes all."""
    net = layers.draft("gaps", 8)
    data = layers.given(net, "x", (1, 1, 10, 10))
    data = layers.conv(net, "first", data, 1, layers.square(1))
    results = [layers.conv(net, "second", data, 1, layers.square(kernel, 3))]
    if beside:
        results.append(layers.relu6(net, "third", data))
    return net.builder.finish([made.name for made in results])


@pytest.mark.parametrize(("kernel", "rows"), [(1, 4), (2, 6)])
def test_pixels_between_windows_are_not_needed(kernel: int, rows: int) -> None:
    # Windows of 1 begin at 0, 3, 6 and 9, windows of 2 at 0, 3 and 6.
    found = needed_of(with_gaps(kernel, beside=False))
    assert found.elements["x"] == found.elements["first"] == rows * rows
    assert found.points["first"] == rows * rows


def test_they_are_if_another_op_reads_them() -> None:
    found = needed_of(with_gaps(1, beside=True))
    assert found.elements["x"] == found.elements["first"] == 100


def test_bounds_do_not_count_them() -> None:
    network = with_a_stride()
    machine = small_machine(Small())
    options = SearchOptions(lpf_limit=3, unrollings=2)
    prepared = prepare(network, machine, network.ops, options)
    # Two kernels of nine weights and a bias of 4 B each; 7 x 7 elements come, 2 x 2 go.
    assert prepared.bounds.traffic_bytes == 2 * (9 + 4) + 7 * 7 + 2 * 2
    # 25 pixels of 9 products on 8 x 4 units; then 2 x 2 on 4 x 4 units, as the 8 share a weight.
    assert prepared.bounds.array_cycles == ceil(25 * 9 / 32) + ceil(4 * 9 / 16) == 8 + 3

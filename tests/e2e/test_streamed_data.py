"""Networks on machines whose scratchpads hold no data, or that have none."""

import pytest
from tests.small_machines import Kind, Small, small_machine

import tilewright
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import plan
from tilewright.replay.verify import verify


def residual_block() -> Network:
    """Work of the array and of the vector unit, with data of the network as both its operands."""
    net = layers.draft("block", 8)
    data = layers.given(net, "x", (1, 4, 8, 8))
    made = layers.conv(net, "conv", data, 4, layers.square(3, 1, 1))
    return net.finish(layers.softmax(net, "softmax", layers.add(net, "add", data, made)))


@pytest.mark.parametrize("kind", ["streamed", "weights", "none"])
def test_data_that_no_scratchpad_holds_are_read_outside(kind: Kind) -> None:
    network = residual_block()
    assert verify(plan(network, small_machine(Small(kind=kind))).timetable, network).agrees


def test_sums_are_finished_where_no_scratchpad_holds_results() -> None:
    # The weights of a product, 300 x 120 B, do not fit at once.
    machine = small_machine(Small(kind="weights", size_bytes=4096, dma=True))
    made = plan(tilewright.load_network("lenet5"), machine)
    assert not any("partial sums" in buffer.name for buffer in made.program.buffers)

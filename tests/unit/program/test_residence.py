"""What stays in which core's scratchpad."""

from tests.small_machines import Small, small_machine
from tests.small_networks import op

from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine
from tilewright.mapping.search import SearchOptions
from tilewright.network import moves, nests
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.layout import Layout
from tilewright.program.places import places_of
from tilewright.program.residence import Residence
from tilewright.program.stages import stages_of, storages
from tilewright.program.tile_cost import TileCosts


def layout_of(network: Network, machine: Machine) -> Layout:
    places = places_of(machine)
    storage, stages = storages(network, stages_of(network, network.ops, joins_on_array=True))
    options = SearchOptions(lpf_limit=3, unrollings=2)
    costs = TileCosts(network=network, places=places, options=options)
    return Residence(network, places, costs, stages, storage, "latency").layout()


def two_convolutions(rows: int) -> Network:
    net = layers.draft("two", 8)
    data = layers.given(net, "x", (1, 4, rows, 8))
    first = layers.conv(net, "first", data, 4, layers.square(1))
    return net.finish(layers.conv(net, "second", first, 4, layers.square(3, 1, 1)))


def test_inputs_come_tile_by_tile_unless_they_come_only_once() -> None:
    network = two_convolutions(8)
    assert list(layout_of(network, small_machine(Small())).kept) == [("first", 0)]
    # npe8 takes its input from a sensor.
    assert ("x", 0) in layout_of(network, load_machine("npe8")).kept


def test_there_is_a_tiling_for_every_stage_that_is_left() -> None:
    for size in (256, 300, 512, 1024, 4096):
        found = layout_of(two_convolutions(8), small_machine(Small(size_bytes=size)))
        assert len(found.tilings) == len(found.parts) == 2


def test_a_tensor_is_kept_exactly_where_there_is_room() -> None:
    # 4 * 16 * 8 B = 512 B between the two.
    network = two_convolutions(16)
    assert layout_of(network, small_machine(Small(size_bytes=2048))).kept
    assert not layout_of(network, small_machine(Small(size_bytes=500))).kept


def test_rows_that_nobody_reads_are_kept_beside_those_that_are_read() -> None:
    net = layers.draft("every second row", 8)
    data = layers.conv(net, "data", layers.given(net, "x", (1, 4, 16, 8)), 4, layers.square(1))
    nest = moves.slice_axes(data.shape, (0, 0, 1, 0), (1, 4, 6, 8), (1, 1, 2, 1))
    network = net.finish(op(net, "odd", "slice", nest, data))
    for cores in (1, 2, 3):
        kept = layout_of(network, small_machine(Small(cores=cores))).kept
        rows = {row for box in kept.values() for row in range(*box[2])}
        assert rows == set(range(16))


def test_activations_are_kept_where_only_weights_stream() -> None:
    net = layers.draft("sum", 8)
    data = layers.given(net, "x", (1, 4, 8, 8))
    one = layers.activation(net, "one", data, "exp")
    both = op(net, "both", "mul", nests.elementwise(data.shape, data.shape), one, data)
    network = net.finish(both)
    streamed = layout_of(network, small_machine(Small(kind="streamed")))
    # Results have a scratchpad there: only weights stream.
    assert list(streamed.kept) == [("one", 0)]

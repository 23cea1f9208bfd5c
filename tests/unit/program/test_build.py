"""Putting a program together: sizes, views, and who waits for whom."""

import pytest
from tests.machine_builder import machine_of, marked, sound_machine
from tests.small_machines import Small, small_machine

from tilewright.errors import InfeasibleError
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.build import Builder
from tilewright.program.model import Access, Box, Task, View
from tilewright.program.places import places_of
from tilewright.program.stages import stages_of, storages

WHOLE: Box = ((0, 1), (0, 5), (0, 4), (0, 4))


def network(bits: int = 8) -> Network:
    """Two convolutions, side by side in a concatenation of 2 + 3 channels."""
    net = layers.draft("pair", bits)
    data = layers.given(net, "x", (1, 3, 4, 4))
    parts = [
        layers.conv(net, name, data, channels, layers.square(1))
        for name, channels in (("a", 2), ("b", 3))
    ]
    both = layers.concat(net, "both", parts, 1)
    return net.finish(layers.activation(net, "last", both, "exp"))


def builder_of(network: Network, machine: Machine) -> Builder:
    storage, _ = storages(network, stages_of(network, network.ops, joins_on_array=True))
    return Builder(network, places_of(machine), storage)


def compute(*, reads: list[Access], writes: list[Access], after: tuple[int, ...] = ()) -> Task:
    return Task(
        name="t",
        kind="compute",
        engine="core[0]",
        cycles=1,
        reads=tuple(reads),
        writes=tuple(writes),
        after=after,
        op="op",
    )


def rows(start: int, stop: int, channels: tuple[int, int] = (0, 5)) -> Box:
    return ((0, 1), channels, (start, stop), (0, 4))


def test_a_part_of_a_concatenation_is_a_window_of_it() -> None:
    builder = builder_of(network(), small_machine(Small()))
    bank = builder.places.named("bank", 0)
    both = builder.buffer("both", WHOLE, bank)
    view = builder.buffers[builder.view(both, "b")]
    assert view.view == View(both, (0, 2, 0, 0))
    assert view.box == ((0, 1), (0, 3), (0, 4), (0, 4))
    assert view.size_bytes == 48
    assert builder.view(both, "b") == builder.view(both, "b")
    assert builder.view(both, "both") == both


def test_a_part_of_a_core_is_a_window_of_what_the_core_keeps() -> None:
    builder = builder_of(network(), small_machine(Small()))
    kept = builder.buffer("both", ((0, 1), (1, 4), (2, 4), (0, 4)), builder.places.named("bank", 0))
    view = builder.buffers[builder.view(kept, "b")]
    # Channels 1 to 3 of the whole: b has 0 and 1 of its own there, from channel 2 on.
    assert view.box == ((0, 1), (0, 2), (2, 4), (0, 4))
    assert view.view == View(kept, (0, 2, 2, 0))


def test_sizes_are_packed_bits() -> None:
    builder = builder_of(network(4), small_machine(Small()))
    bank = builder.places.named("bank", 0)
    box: Box = ((0, 1), (0, 1), (0, 1), (0, 3))
    assert builder.buffers[builder.buffer("a", box, bank)].size_bytes == 2
    # Three partial sums of 20 bit are 60 bit.
    sums = builder.buffer("a", box, bank, name="a partial sums", bits=20)
    assert builder.buffers[sums].size_bytes == 8


def test_a_task_waits_for_the_last_tiles_that_wrote_what_it_reads() -> None:
    builder = builder_of(network(), small_machine(Small(cores=2)))
    both = builder.buffer("both", WHOLE, builder.places.named("bank", 0))
    a, b = builder.view(both, "a"), builder.view(both, "b")
    last = None
    for start in (0, 2):
        box = rows(start, start + 2, (0, 2))
        after = () if last is None else (last,)
        last = builder.add(compute(reads=[], writes=[Access(a, box)], after=after))
    other = builder.add(compute(reads=[], writes=[Access(b, rows(0, 4, (0, 3)))]))
    assert (last, other) == (1, 2)
    # Rows 2 and 3 of a were written by task 1, which runs behind task 0; b by task 2.
    top = builder.add(compute(reads=[Access(both, rows(0, 1))], writes=[]))
    bottom = builder.add(compute(reads=[Access(both, rows(1, 4))], writes=[]))
    only_b = builder.add(compute(reads=[Access(both, rows(0, 4, (2, 5)))], writes=[]))
    assert builder.tasks[top].after == (0, 2)
    assert builder.tasks[bottom].after == (1, 2)
    assert builder.tasks[only_b].after == (2,)


def test_tiles_of_two_cores_on_one_engine_are_waited_for_both() -> None:
    # A DMA engine that rearranges elements for two cores runs their tiles in any order.
    builder = builder_of(network(), small_machine(Small(cores=2)))
    both = builder.buffer("both", WHOLE, builder.places.named("bank", 0))
    for start in (0, 2):
        builder.add(compute(reads=[], writes=[Access(both, rows(start, start + 2))]))
    reader = builder.add(compute(reads=[Access(both, WHOLE)], writes=[]))
    assert builder.tasks[reader].after == (0, 1)


def test_a_broadcast_is_read_once_and_written_to_each_core() -> None:
    builder = builder_of(network(), small_machine(Small(cores=2)))
    box: Box = ((0, 2), (0, 3), (0, 1), (0, 1))
    outside = builder.outside("a.weight", builder.places.named("ddr", 0))
    near = [builder.buffer("a.weight", box, builder.places.named("bank", c)) for c in (0, 1)]
    copy = builder.copy(Access(outside, box), tuple(Access(n, box) for n in near), "load")
    number = builder.transfer([copy], name="a.weight in")
    task = builder.tasks[number]
    # 6 B at 32 bit a cycle.
    assert task.cycles == 2
    assert [(c.memory, c.read_bytes, c.write_bytes) for c in task.charges] == [
        ("ddr", 6, 0),
        ("bank", 0, 6),
        ("bank", 0, 6),
    ]
    assert task.ports == ("ddr.both",)
    assert builder.given == [outside]


def test_in_place_shares_the_bytes_of_what_it_replaces() -> None:
    builder = builder_of(network(), small_machine(Small()))
    both = builder.buffer("both", WHOLE, builder.places.named("bank", 0))
    last = builder.in_place("last", both)
    assert builder.buffers[last].view == View(both, (0, 0, 0, 0))
    builder.add(compute(reads=[], writes=[Access(both, WHOLE)]))
    builder.add(compute(reads=[Access(both, WHOLE)], writes=[Access(last, WHOLE)]))
    reader = builder.add(compute(reads=[Access(last, WHOLE)], writes=[]))
    assert 1 in builder.tasks[reader].after


def test_where_nothing_moves_bytes_a_transfer_is_refused() -> None:
    data = marked(sound_machine())
    engine = {"name": "in", "width": "16 bit", "ports": 1, "queues": 1, "setup": 3}
    data["dma"] = [engine | {"routes": [["ddr", "bank"]]}]
    builder = builder_of(network(), machine_of(data))
    near = builder.buffer("last", WHOLE, builder.places.named("bank", 0))
    far = builder.outside("last", builder.places.named("ddr", 0))
    copy = builder.copy(Access(near, WHOLE), (Access(far, WHOLE),), "store")
    with pytest.raises(InfeasibleError, match="nothing moves 'last' from bank to ddr") as refused:
        builder.transfer([copy], name="last out")
    assert refused.value.problems[0].hint == "let a DMA engine serve the route [bank, ddr]"

"""Rolling buffers that several tensors share: who waits for whom."""

from tests.cascade_cases import QUICK, cascaded
from tests.program_faults import faults
from tests.small_machines import Small, small_machine

from tilewright.network.graph import Network, Tensor
from tilewright.network.zoo import layers
from tilewright.network.zoo.layers import Draft
from tilewright.program.cascade import Cascade, Strategy
from tilewright.program.lower import lower, prepare
from tilewright.program.model import Program

COLUMNS, CHANNELS = 3, 1
ORDER = ("before", "made", "last", "after", "joined", "end")


def exp(net: Draft, name: str, data: Tensor) -> Tensor:
    return layers.activation(net, name, data, "exp")


def program(network: Network, cores: int, cascade: Cascade, *, size_bytes: int = 4096) -> Program:
    machine = small_machine(Small(size_bytes=size_bytes, cores=cores, dma=True))
    made = cascaded(network, machine, cascade)
    assert made.lowered.layout.rings
    return made.lowered.program


def test_readers_of_a_slice_wait_for_the_makers_of_its_rows() -> None:
    net = layers.draft("sliced", 8)
    made = exp(net, "made", layers.given(net, "x", (1, 4, 14, 6)))
    network = net.finish(exp(net, "last", layers.take(net, "part", made, 2, (5, 14))))
    for axis in (CHANNELS, COLUMNS):
        cascade = Cascade(first=0, last=1, axis=axis, step=1)
        assert faults(program(network, 3, cascade), network) == []


def test_readers_of_a_part_of_a_concatenation_wait_for_its_maker() -> None:
    net = layers.draft("joined", 8)
    data = layers.given(net, "x", (1, 4, 9, 6))
    joined = layers.concat(net, "joined", [exp(net, "a", data), exp(net, "b", data)], 1)
    # Each of two cores reads the channels of one part, counted from the first of all; of four
    # cores, two read nothing that is near the other part.
    network = net.finish(layers.max_pool(net, "pool", joined, layers.square(3, 1)))
    cascade = Cascade(first=0, last=2, axis=2, step=1)
    for cores in (2, 4):
        assert faults(program(network, cores, cascade), network) == []


def test_whoever_writes_over_a_row_waits_for_its_last_reader() -> None:
    net = layers.draft("chain", 8)
    data = exp(net, "a", layers.given(net, "x", (1, 2, 12, 6)))
    network = net.finish(layers.max_pool(net, "pool", data, layers.square(3, 1)))
    found = program(network, 1, Cascade(first=0, last=1, axis=2, step=1))
    assert faults(found, network) == []
    at = {task.name: number for number, task in enumerate(found.tasks)}
    # A ring of three rows: row 3 takes the place of row 0, which the pool reads for its row 0.
    assert at["pool [OY0:1]"] in found.tasks[at["a [OY3:4]"]].after


def test_only_what_a_cascade_reads_comes_through_its_ring() -> None:
    net = layers.draft("half", 8)
    data = layers.given(net, "x", (1, 4, 13, 4))
    early = exp(net, "early", data)
    late = exp(net, "late", exp(net, "b", exp(net, "a", early)))
    network = net.finish(layers.concat(net, "joined", [late, early], 2))
    # `early` lies behind `late`, which is not there yet when `a` reads `early`.
    found = program(network, 1, Cascade(first=1, last=2, axis=CHANNELS, step=1), size_bytes=256)
    reads = [
        access.box[2]
        for task in found.tasks
        for access in task.reads
        if task.kind == "load" and found.buffers[access.buffer].tensor == "joined"
    ]
    assert reads
    assert set(reads) == {(13, 26)}


def test_what_passes_through_a_ring_is_read_there_only_while_the_ring_is() -> None:
    # All three read all of x; the cascade of the second and what follows it takes it in one step.
    net = layers.draft("thrice", 8)
    data = layers.given(net, "x", (1, 2, 4, 6))
    before, made, after = (exp(net, name, data) for name in ("before", "made", "after"))
    last = layers.max_pool(net, "last", made, layers.square(1))
    joined = layers.concat(net, "joined", [before, last, after], 1)
    network = net.finish(exp(net, "end", joined))
    order = [next(op for op in network.ops if op.name == name) for name in ORDER]
    found = lower(
        prepare(network, small_machine(Small()), order, QUICK),
        "latency",
        Strategy(cascades=(Cascade(first=1, last=2, axis=2, step=4),)),
    ).program
    assert faults(found, network) == []
    reads = {task.op: found.buffers[task.reads[0].buffer] for task in found.tasks if task.op}
    ring = {name: buffer.view is not None for name, buffer in reads.items()}
    assert (ring["before"], ring["made"], ring["after"]) == (False, True, False)

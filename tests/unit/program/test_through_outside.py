"""Tensors that get from one scratchpad to another only by way of the external memory."""

from collections import Counter
from dataclasses import replace

import pytest
from tests.cascade_cases import prepared
from tests.small_machines import Small, small_machine

from tilewright import plan
from tilewright.errors import InfeasibleError
from tilewright.machine.model import DmaEngine, Machine
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.lower import laid_out, lower
from tilewright.program.model import Program
from tilewright.replay.verify import verify

INWARDS = (("ddr", "inputs"), ("ddr", "weights"), ("ddr", "results"))
OUTWARDS = (("results", "ddr"),)


def apart(*routes: tuple[str, str], cores: int = 1) -> Machine:
    """A scratchpad for each operand, and an engine of one byte a cycle that serves some routes."""
    small = Small(kind="split", size_bytes=4096, cores=cores)
    engine = DmaEngine(
        name="dma", ports=1, queues=1, bits_per_cycle=8, setup_cycles=0, routes=routes
    )
    return replace(small_machine(small), dma=(engine,))


def two_convolutions() -> Network:
    """x -> first -> second, with 256 B each and weights of 16 B."""
    net = layers.draft("two", 8)
    first = layers.conv(net, "first", layers.given(net, "x", (1, 4, 8, 8)), 4, layers.square(1))
    return net.finish(layers.conv(net, "second", first, 4, layers.square(1)))


def moved(program: Program) -> Counter[tuple[str, str, str]]:
    """Bytes by tensor, and by the memories from which and to which they go."""
    memory = {space.name: space.memory for space in program.spaces}
    found: Counter[tuple[str, str, str]] = Counter()
    for task in program.tasks:
        if task.kind != "compute":
            source, target = (program.buffers[a[0].buffer] for a in (task.reads, task.writes))
            ends = memory[source.space], memory[target.space]
            found[(target.tensor, *ends)] += sum(c.read_bytes for c in task.charges)
    return found


def test_it_is_sent_out_and_comes_in_again() -> None:
    found = lower(prepared(two_convolutions(), apart(*INWARDS, *OUTWARDS)), "latency")
    ways = moved(found.program)
    assert ways["first", "results", "ddr"] == ways["first", "ddr", "inputs"] == 256


def test_what_can_be_moved_at_once_is_kept() -> None:
    machine = apart(*INWARDS, *OUTWARDS, ("results", "inputs"))
    ways = moved(lower(prepared(two_convolutions(), machine), "latency").program)
    assert ways["first", "results", "inputs"] == 256
    assert not ways["first", "results", "ddr"]


def test_what_is_read_where_it_lies_is_kept() -> None:
    # The array reads the result of the first sum in another memory, the second sum reads it there.
    net = layers.draft("sums", 8)
    data = layers.given(net, "x", (1, 4, 8, 8))
    made = layers.activation(net, "a", data, "exp")
    again = layers.activation(net, "b", made, "exp")
    network = net.finish(layers.conv(net, "c", again, 4, layers.square(1)))
    on = prepared(network, apart(*INWARDS, *OUTWARDS))
    assert list(laid_out(on, "latency").kept) == [("a", 0)]


def test_without_a_way_back_it_is_refused_as_before() -> None:
    # The second factor has to get to the weights, and nothing comes to them from outside.
    net = layers.draft("squares", 8)
    data = layers.given(net, "x", (8, 8))
    made = layers.activation(net, "a", data, "exp")
    network = net.finish(layers.matmul(net, "c", data, made))
    with pytest.raises(InfeasibleError, match="nothing moves 'a' from results to weights"):
        lower(prepared(network, apart(("ddr", "inputs"), *OUTWARDS)), "latency")
    with pytest.raises(InfeasibleError, match="nothing moves 'a' from results to"):
        lower(prepared(network, apart(*INWARDS)), "latency")


@pytest.mark.parametrize("cores", [1, 2])
def test_its_values_arrive(cores: int) -> None:
    # A result of the network that is read as data, as a second factor, and where it lies: 4 B.
    net = layers.draft("more", 8)
    data = layers.global_average_pool(net, "a", layers.given(net, "x", (1, 4, 8, 8)))
    again = layers.conv(net, "b", data, 4, layers.square(1))
    product = layers.matmul(net, "p", again, data)
    network = net.finish(layers.add(net, "sum", product, data), data)
    found = plan(network, apart(*INWARDS, *OUTWARDS, cores=cores))
    assert verify(found.timetable, network, machine=found.machine).agrees
    ways = moved(found.program)
    assert ways["a", "ddr", "inputs"] >= 4
    assert ways["a", "ddr", "weights"] >= 4

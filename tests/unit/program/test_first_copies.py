"""What the very first tile waits for: its own data, where the rest can come beside it."""

from dataclasses import replace

from tests.small_machines import Small, small_machine

from tilewright.machine.model import Machine
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.lower import lower, prepare

QUICK = SearchOptions(lpf_limit=3, unrollings=2)


def chain(*channels: int) -> Network:
    """Convolutions of 1 x 1 over 16 points of one channel, a bias of 4 B for every kernel."""
    net = layers.draft("chain", 8)
    made = layers.given(net, "x", (1, 1, 4, 4))
    for number, kernels in enumerate(channels):
        made = layers.conv(net, f"c{number}", made, kernels, layers.square(1))
    return net.builder.finish([made.name])


def loads(network: Network, machine: Machine) -> list[list[str]]:
    """Tensors of each load."""
    program = lower(prepare(network, machine, network.ops, QUICK), "latency").program
    return [
        sorted(program.buffers[access.buffer].tensor for access in task.writes)
        for task in program.tasks
        if task.kind == "load"
    ]


def with_ports(ports: int) -> Machine:
    machine = small_machine(Small(dma=True))
    return replace(machine, dma=(replace(machine.dma[0], ports=ports),))


def test_constants_of_later_ops_do_not_delay_the_first_tile() -> None:
    # While a transfer is set up, in 20 cycles, another one moves 80 B. The second and third op have
    # 2 x 4 + 16 and 4 x 4 + 16 B of constants, 56 B: that is more than half of it.
    assert loads(chain(2, 4, 4), with_ports(2)) == [
        ["c0.bias", "c0.weight", "x"],
        ["c1.bias", "c1.weight", "c2.bias", "c2.weight"],
    ]


def test_all_come_at_once_where_the_rest_is_little() -> None:
    # The second op has 2 x 2 + 8 B of constants.
    found = loads(chain(2, 2), with_ports(2))
    assert found == [["c0.bias", "c0.weight", "c1.bias", "c1.weight", "x"]]


def test_all_come_at_once_where_transfers_wait_for_each_other() -> None:
    assert len(loads(chain(2, 4, 4), with_ports(1))) == 1

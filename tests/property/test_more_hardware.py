"""More of a machine hardly ever makes a plan slower: cores, wider transfers, a larger array.

A schedule is found by rules, so that a little more can come to a little less. How much is said
with each property; what is far beyond it is a fault.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pytest
from tests.small_machines import Small, small_machine

from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine, Memory
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.network.zoo import layers
from tilewright.planner import plan

pytestmark = pytest.mark.slow


@cache
def product() -> Network:
    net = layers.draft("product", 8)
    return net.finish(layers.gemm(net, "fc", layers.given(net, "x", (1, 64)), 200))


@cache
def mixed() -> Network:
    """Windows with ever fewer points and ever more weights."""
    net = layers.draft("mixed", 8)
    data = layers.given(net, "x", (1, 8, 16, 16))
    for number, channels in enumerate((16, 32, 32)):
        window = layers.square(3, 2 if number else 1, 1)
        data = layers.relu6(
            net, f"relu{number}", layers.conv(net, f"conv{number}", data, channels, window)
        )
    return net.finish(layers.gemm(net, "fc", layers.flatten(net, "flat", data), 40))


NETWORKS = [product, mixed]


def with_width(memory: Memory, bits: int) -> Memory:
    return replace(memory, ports=tuple(replace(p, bits_per_cycle=bits) for p in memory.ports))


def on_ways(engine_bits: int, port_bits: int) -> Machine:
    """Two cores, and two transfers at once of such an engine to and from such a DRAM."""
    machine = small_machine(Small(cores=2, dma=True))
    return replace(
        machine,
        shared=tuple(with_width(memory, port_bits) for memory in machine.shared),
        dma=tuple(replace(engine, bits_per_cycle=engine_bits) for engine in machine.dma),
    )


def worst(cycles: Sequence[int]) -> float:
    """How much longer one takes than the best of those before it."""
    return max(cycles[at] / min(cycles[:at]) for at in range(1, len(cycles)))


@pytest.mark.parametrize("network", NETWORKS)
def test_more_cores_cost_no_more_than_a_twentieth(network: Callable[[], Network]) -> None:
    machines = [small_machine(Small(cores=n, dma=True)) for n in (1, 2, 4, 6, 8, 16)]
    assert worst([plan(network(), machine).cycles for machine in machines]) <= 1.05


@pytest.mark.parametrize("network", NETWORKS)
def test_a_wider_engine_costs_no_more_than_a_hundredth(network: Callable[[], Network]) -> None:
    # Of the third, two whole ones have no room in the port any more.
    machines = [on_ways(engine_bits, 128) for engine_bits in (32, 64, 96, 128)]
    assert worst([plan(network(), machine).cycles for machine in machines]) <= 1.01


@pytest.mark.parametrize("network", NETWORKS)
def test_a_wider_memory_costs_no_more_than_a_hundredth(network: Callable[[], Network]) -> None:
    machines = [on_ways(64, port_bits) for port_bits in (32, 64, 80, 128)]
    assert worst([plan(network(), machine).cycles for machine in machines]) <= 1.01


def test_a_wider_engine_moves_as_much_where_transfers_decide() -> None:
    # A product of 64 x 200 that waits for its weights: 12,800 bytes, at 8 bytes a cycle and two at
    # once, take 800 cycles.
    narrow, wide = (plan(product(), on_ways(bits, 128)).roofline for bits in (64, 96))
    assert narrow.transfer_cycles == wide.transfer_cycles
    assert narrow.transfer_cycles >= 800


def test_an_array_of_twice_the_size_costs_no_more_than_a_fiftieth() -> None:
    """Twice as much along its first dim, with ports as they were."""
    machine = load_machine("edge_tpu_like")
    core = machine.cores[0]
    (first, size), *rest = core.array.dims
    array = replace(core.array, dims=((first, size * 2), *rest))
    larger = replace(machine, cores=(replace(core, array=array),))
    network = load_network("resnet18")
    assert plan(network, larger).cycles <= 1.02 * plan(network, machine).cycles


def test_a_faster_scratchpad_costs_no_more_than_a_hundredth() -> None:
    # What comes as early as it can finds no addresses in all of the faster one, and does in less.
    machine = load_machine("npu_37xx")
    (core,) = machine.cores
    memories = tuple(
        replace(
            m, ports=tuple(replace(p, bits_per_cycle=p.bits_per_cycle * 3 // 2) for p in m.ports)
        )
        if m.role == "scratchpad"
        else m
        for m in core.memories
    )
    faster = replace(machine, cores=(replace(core, memories=memories),))
    network = load_network("resnet18")
    assert plan(network, faster).cycles <= 1.01 * plan(network, machine).cycles

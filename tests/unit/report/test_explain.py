"""Machines on which one thing is slow by construction: the explanation must name that thing.

The machine to start from has ports 64 times as wide as those of `npu_37xx`, and a DMA engine to
match: its array is all that takes time. Each other machine makes one thing slower by so much that
the array's cycles no longer matter.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import pytest
from tests.small_machines import Small, small_machine

from tilewright.errors import InputError
from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine, Memory
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.network.zoo import layers
from tilewright.planner import plan
from tilewright.report.explain import Explanation, explain
from tilewright.report.plan import plan_figures
from tilewright.report.record import PlanRecord, record_of


def chain(size: int, channels: int) -> Network:
    """Four convolutions with many activations and few weights."""
    net = layers.draft("chain", 8)
    data = layers.given(net, "input", (1, channels, size, size))
    for number in range(4):
        data = layers.conv(net, f"conv{number}", data, channels, layers.square(3, 1, 1))
    return net.finish(data)


def sigmoids(size: int, channels: int) -> Network:
    """Activations that only a vector unit computes."""
    net = layers.draft("sigmoids", 8)
    data = layers.given(net, "input", (1, channels, size, size))
    data = layers.conv(net, "conv", data, channels, layers.square(1))
    for number in range(2):
        data = layers.activation(net, f"sigmoid{number}", data, "sigmoid")
    return net.finish(data)


def with_memories(machine: Machine, change: Callable[[Memory], Memory]) -> Machine:
    return replace(
        machine,
        cores=tuple(replace(c, memories=tuple(map(change, c.memories))) for c in machine.cores),
        shared=tuple(map(change, machine.shared)),
    )


def with_ports(machine: Machine, widths: Mapping[str, int]) -> Machine:
    """The machine with other widths, in bits a cycle by `memory.port`."""

    def changed(memory: Memory) -> Memory:
        ports = []
        for port in memory.ports:
            bits = widths.get(f"{memory.name}.{port.name}", port.bits_per_cycle)
            least = min(port.granularity_bits, bits)
            ports.append(replace(port, bits_per_cycle=bits, granularity_bits=least))
        return replace(memory, ports=tuple(ports))

    return with_memories(machine, changed)


@cache
def fast() -> Machine:
    machine = load_machine("npu_37xx")
    wide = {f"{m.name}.{p.name}": 64 * p.bits_per_cycle for m in machine.memories for p in m.ports}
    core = machine.cores[0]
    assert core.vector is not None
    machine = with_ports(machine, wide)
    return replace(
        machine,
        cores=(replace(machine.cores[0], count=1, vector=replace(core.vector, lanes=4096)),),
        dma=(replace(machine.dma[0], bits_per_cycle=8192, setup_cycles=0),),
    )


def small_cmx(machine: Machine, size_bytes: int) -> Machine:
    return with_memories(
        machine, lambda m: replace(m, size_bits=8 * size_bytes) if m.name == "cmx" else m
    )


def slow_vector(machine: Machine) -> Machine:
    core = machine.cores[0]
    assert core.vector is not None
    return replace(machine, cores=(replace(core, vector=replace(core.vector, lanes=1)),))


def slow_rom() -> Machine:
    machine = small_machine(Small(kind="ends", size_bytes=512 * 1024))
    widths = {"rom": 1, "data": 4096}
    sources = tuple(replace(s, bits_per_cycle=widths[s.name]) for s in machine.sources)
    return replace(machine, sources=sources)


def record(network: Network, machine: Machine) -> PlanRecord:
    made = plan(network, machine)
    return record_of(made, plan_figures(made))


MACHINES: Mapping[str, Callable[[], tuple[Network, Machine]]] = {
    "array": lambda: (chain(32, 16), fast()),
    "vector": lambda: (sigmoids(16, 4), slow_vector(fast())),
    "ddr.port": lambda: (chain(32, 16), with_ports(fast(), {"ddr.port": 1})),
    "dma": lambda: (
        chain(32, 16),
        replace(fast(), dma=(replace(fast().dma[0], bits_per_cycle=1, ports=1),)),
    ),
    "dma set-up": lambda: (
        chain(32, 16),
        replace(fast(), dma=(replace(fast().dma[0], setup_cycles=50_000),)),
    ),
    "cmx": lambda: (chain(64, 16), small_cmx(with_ports(fast(), {"ddr.port": 16}), 12 * 1024)),
    "cmx.dpu_read": lambda: (chain(32, 16), with_ports(fast(), {"cmx.dpu_read": 8})),
    "cmx.dpu_write": lambda: (chain(32, 16), with_ports(fast(), {"cmx.dpu_write": 8})),
    # Narrower than an element: no unrolling can live with that.
    "input_buffer.read": lambda: (chain(32, 16), with_ports(fast(), {"input_buffer.read": 4})),
    "weight_buffer.write": lambda: (
        load_network("lenet5"),
        with_ports(fast(), {"weight_buffer.write": 1}),
    ),
    "rom": lambda: (load_network("lenet5"), slow_rom()),
}


@cache
def explained(name: str) -> Explanation:
    return explain(record(*MACHINES[name]()))


@pytest.mark.parametrize("name", MACHINES)
def test_what_was_made_slow_is_named_first(name: str) -> None:
    found = explained(name)
    assert found.bottleneck is not None
    assert found.bottleneck.name == name
    # It takes nearly all of the time, so half of it gives more than a third; room gives more.
    assert found.bottleneck.cycles < 0.66 * found.replay_cycles
    # A port of a memory inside a core is to blame while the core is busy: the summary names it too.
    assert found.record.figures["bound_by"].startswith(f"{name}; ")


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_that_is_improved_makes_a_plan_slower(name: str) -> None:
    found = explained(name)
    assert all(remedy.cycles <= found.replay_cycles for remedy in found.remedies)


def test_the_critical_path_has_no_gap_and_ends_with_the_plan() -> None:
    found = explained("ddr.port")
    assert found.path[0].start_cycle == 0
    assert found.path[-1].end_cycle == found.replay_cycles
    pairs = zip(found.path, found.path[1:], strict=False)
    assert all(before.end_cycle == after.start_cycle for before, after in pairs)
    assert sum(cycles for _, cycles in found.path_cycles) == found.replay_cycles


def test_one_op_is_explained_by_its_own_waits() -> None:
    made = record(*MACHINES["ddr.port"]())
    found = explain(made, "conv1")
    assert found.row is not None
    assert found.row.name == "conv1"
    assert dict(found.idle) == dict(found.row.idle_causes)
    with pytest.raises(InputError, match="no op 'conv9'"):
        explain(made, "conv9")

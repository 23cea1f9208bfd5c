"""Weights that the array reads where they lie, past the scratchpad: plans and replays."""

from dataclasses import replace
from functools import cache

import pytest
from tests.brought import without_bypass

from tilewright import load_machine, load_network, plan
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.model import Machine, Memory
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import Plan, PlanOptions
from tilewright.program.model import Task
from tilewright.replay.verify import verify


def with_sram(size_bytes: int, name: str = "ethos_u55_128") -> Machine:
    return with_memory_limits(load_machine(name), (("sram", size_bytes),))


def product() -> Network:
    """64 x 256 weights, which take 16,384 cycles to come out of the flash."""
    net = layers.draft("product", 8)
    return net.finish(layers.gemm(net, "scores", layers.given(net, "x", (1, 64)), 256))


@cache
def tight() -> Plan:
    return plan(product(), with_sram(512))


def streams(task: Task) -> bool:
    return task.kind == "compute" and bool(task.ports)


def test_weights_for_which_there_is_no_room_stream() -> None:
    tasks = [task for task in tight().program.tasks if task.op]
    assert all(map(streams, tasks))
    assert {task.ports for task in tasks} == {("flash.axi",)}
    # A byte a cycle: the weights, and a scale of 10 B for each output.
    assert sum(task.cycles for task in tasks) == 64 * 256 + 10 * 256
    charges = [charge for task in tasks for charge in task.charges]
    # The weights, and the biases of 4 B.
    read = sum(charge.read_bytes for charge in charges if charge.memory == "flash")
    assert read == 64 * 256 + 4 * 256
    assert verify(tight().timetable, product()).agrees


def test_no_room_is_taken_by_what_streams() -> None:
    # The input, and the results.
    assert tight().peak_bytes["sram"] <= 64 + 256


def test_nothing_streams_where_the_machine_does_not_say_so() -> None:
    found = plan(product(), without_bypass(with_sram(4096)))
    assert not any(map(streams, found.program.tasks))
    assert any(task.kind == "load" for task in found.program.tasks)


@pytest.mark.parametrize(
    ("network", "size_bytes"), [("lenet5", 2_000), ("ds_cnn", 12_000), ("notes_cnn", 7_000)]
)
def test_plans_in_little_memory_stream_and_compute_the_same(network: str, size_bytes: int) -> None:
    made = plan(load_network(network), with_sram(size_bytes))
    brought = plan(load_network(network), without_bypass(with_sram(size_bytes)))
    assert any(map(streams, made.program.tasks))
    assert len(made.program.tasks) < len(brought.program.tasks)
    assert verify(made.timetable, made.network).agrees


@pytest.mark.parametrize("network", ["lenet5", "ds_cnn", "resnet18"])
def test_with_room_enough_plans_are_as_fast_as_if_all_weights_were_brought(network: str) -> None:
    machine = load_machine("ethos_u55_256")
    made = plan(load_network(network), machine)
    assert made.cycles <= plan(load_network(network), without_bypass(machine)).cycles


def test_less_memory_is_needed_for_the_least() -> None:
    options = PlanOptions(objective="memory")
    machine = load_machine("ethos_u55_128")
    made = plan(load_network("ds_cnn"), machine, options)
    brought = plan(load_network("ds_cnn"), without_bypass(machine), options)
    assert made.peak_bytes["sram"] < brought.peak_bytes["sram"]
    assert made.cycles < brought.cycles


def test_weights_stream_where_no_scratchpad_holds_them() -> None:
    def kept(memory: Memory) -> Memory:
        operands = tuple(operand for operand in memory.operands if operand != "I2")
        return replace(memory, operands=operands) if memory.role == "scratchpad" else memory

    whole = without_bypass(load_machine("ethos_u55_128"))
    cores = tuple(replace(c, memories=tuple(map(kept, c.memories))) for c in whole.cores)
    machine = replace(whole, cores=cores, shared=tuple(map(kept, whole.shared)))
    made = plan(product(), machine)
    assert verify(made.timetable, product()).agrees
    # As above: a byte a cycle, and weights cannot come sooner.
    cycles = sum(task.cycles for task in made.program.tasks if task.op)
    assert cycles == 64 * 256 + 10 * 256


@pytest.mark.parametrize("bits", [4, 8])
def test_by_a_mapping_weights_take_no_less_than_their_way_does(bits: int) -> None:
    def passed_by(memory: Memory) -> Memory:
        is_passed = memory.role == "scratchpad" and "I2" in memory.operands
        return replace(memory, bypass=("I2",)) if is_passed else memory

    whole = load_machine("edge_tpu_like")
    (core,) = whole.cores
    core = replace(core, memories=tuple(map(passed_by, core.memories)))
    machine = replace(whole, cores=(core,), shared=tuple(map(passed_by, whole.shared)))
    net = layers.draft("product", bits)
    network = net.finish(layers.gemm(net, "scores", layers.given(net, "x", (1, 30)), 70))
    made = plan(network, machine)
    tasks = [task for task in made.program.tasks if task.op]
    assert all(task.mapping is not None for task in tasks)
    assert all(map(streams, tasks))
    # 64 bits a cycle.
    assert sum(task.cycles for task in tasks) >= 30 * 70 * bits / 64
    assert made.cycles >= made.roofline.cycles
    assert verify(made.timetable, network, machine=machine).agrees


def test_a_charge_has_the_energy_of_its_bytes() -> None:
    (flash,) = [m for m in load_machine("ethos_u55_128").memories if m.name == "flash"]
    charges = [charge for task in tight().program.tasks for charge in task.charges]
    outside = [charge for charge in charges if charge.memory == "flash"]
    # A read moves a byte.
    energy = flash.read_pj * sum(charge.read_bytes for charge in outside)
    assert sum(charge.energy_pj for charge in outside) == pytest.approx(energy, rel=1e-9)


def test_what_is_not_in_strips_is_checked_as_what_is() -> None:
    """Where some ops run in strips, the model of the core is asked about none of them."""
    made = plan(load_network("notes_cnn"), without_bypass(with_sram(7_000)))
    assert made.strips
    assert verify(made.timetable, made.network).agrees


def test_cascades_leave_room_for_weights_that_are_brought() -> None:
    # With smaller steps all weights would fit only if they streamed, and data would come again:
    # 1.7 times what has to be moved.
    machine = with_sram(128 * 1024, "ethos_u65_256")
    made = plan(load_network("tiny_yolov2", bits=8), machine, PlanOptions(objective="traffic"))
    assert made.outside_bytes < 1.3 * made.roofline.traffic_bytes


def test_weights_stream_where_it_would_take_longer_to_compute_with_those_that_are_brought() -> None:
    net = layers.draft("wide", 8)
    data = layers.given(net, "x", (1, 128, 8, 8))
    network = net.finish(layers.conv(net, "wide", data, 128, layers.square(3, 1, 1)))
    # Of 147,456 B of weights a part fits at a time, and smaller tiles take the array longer.
    machine = with_sram(64 * 1024, "ethos_u65_256")
    made, brought = plan(network, machine), plan(network, without_bypass(machine))
    assert all(streams(task) for task in made.program.tasks if task.op)
    assert made.cycles < 0.9 * brought.cycles

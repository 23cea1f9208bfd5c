"""Inputs that the array reads past the scratchpads: from a DRAM, a source, or another memory."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st
from tests.random_cases import examples, first_few, repeatable
from tests.small_networks import networks
from tests.streamed_machines import eight_units, streaming_machines

import tilewright
from tilewright.errors import InfeasibleError
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import Plan, PlanObjective, PlanOptions, plan
from tilewright.program.model import Task
from tilewright.replay.check import problems
from tilewright.replay.verify import verify
from tilewright.report import plan_files
from tilewright.report.plan_replay import replayed
from tilewright.report.record import read_record


def product(inputs: int, outputs: int) -> Network:
    net = layers.draft("product", 8)
    return net.finish(layers.gemm(net, "fc", layers.given(net, "x", (1, inputs)), outputs))


def two_products() -> Network:
    net = layers.draft("products", 8)
    data = layers.gemm(net, "first", layers.given(net, "x", (1, 32)), 16)
    return net.finish(layers.gemm(net, "second", data, 8))


def window() -> Network:
    net = layers.draft("window", 8)
    data = layers.given(net, "x", (1, 4, 10, 10))
    return net.finish(layers.conv(net, "conv", data, 16, layers.square(3, 1, 1)))


def verified(network: Network, machine: Machine) -> Plan:
    made = plan(network, machine)
    assert verify(made.timetable, network, machine=machine).agrees
    return made


def tasks_of(made: Plan, op: str) -> list[Task]:
    return [task for task in made.program.tasks if task.op == op]


def read_bytes(made: Plan, memory: str) -> int:
    charges = [charge for task in made.program.tasks for charge in task.charges]
    return sum(charge.read_bytes for charge in charges if charge.memory == memory)


@pytest.mark.parametrize("kind", first_few([None, "host"], 1))
def test_a_network_runs_where_inputs_go_straight_into_a_register(kind: str | None) -> None:
    made = verified(tilewright.load_network("lenet5", bits=8), eight_units(kind))
    assert made.cycles >= made.roofline.cycles


def test_what_is_read_from_a_source_holds_it() -> None:
    made = verified(window(), eight_units("host"))
    assert all(task.ports == ("input",) for task in tasks_of(made, "conv"))
    # Each of 4 x 10 x 10 bytes is read once at least, and windows of 3 x 3 read them again.
    assert read_bytes(made, "input") > 400
    # 1 pJ a bit.
    charges = [c for task in tasks_of(made, "conv") for c in task.charges if c.memory == "input"]
    assert sum(c.energy_pj for c in charges) == 8 * read_bytes(made, "input")
    # 64 bit a cycle.
    assert sum(t.cycles for t in tasks_of(made, "conv")) >= read_bytes(made, "input") / 8


@pytest.mark.parametrize("kind", first_few(["noc", "sensor"], 1))
def test_what_comes_once_is_read_once(kind: str) -> None:
    made = verified(product(64, 40), eight_units(kind))
    assert read_bytes(made, "input") == 64


def test_a_plan_from_a_file_is_replayed(tmp_path: Path) -> None:
    # Inputs stream from a source, and what the first op makes over the engine: the levels of both
    # mappings are found again.
    network, machine = two_products(), eight_units("host")
    plan_files.save(plan(network, machine), tmp_path)
    found = replayed(read_record(tmp_path), network, machine)
    assert found.problems == ()
    assert found.agrees


def test_a_task_that_does_not_hold_what_it_reads_is_found() -> None:
    made = plan(two_products(), eight_units("host"))
    tasks = tuple([replace(t, ports=()) if t.op == "first" else t for t in made.program.tasks])
    forged = replace(made.timetable, program=replace(made.program, tasks=tasks))
    said = {p.message.partition(" reads ")[2] for p in problems(forged, made.network, made.machine)}
    assert said == {"input and holds the ports of no way there, such as input"}


def test_a_task_that_does_not_hold_the_engine_that_brings_something_is_found() -> None:
    made = plan(two_products(), eight_units("host"))
    tasks = tuple([replace(t, ports=()) if t.op == "second" else t for t in made.program.tasks])
    forged = replace(made.timetable, program=replace(made.program, tasks=tasks))
    said = {p.message.partition(" reads ")[2] for p in problems(forged, made.network, made.machine)}
    assert said == {"I1 from pad and does not hold dma, which brings it"}


def test_a_task_that_is_quicker_than_what_comes_to_it_is_found() -> None:
    made = plan(product(8, 1), eight_units("host"))
    (task,) = tasks_of(made, "fc")
    ends = [replace(end, bits_per_cycle=1) for end in made.machine.sources]
    slower = replace(made.machine, sources=tuple(ends))
    said = [problem.message for problem in problems(made.timetable, made.network, slower)]
    # 8 B, a bit a cycle.
    assert said == [f"task fc takes {task.cycles} cycles, and 8 bytes of I1 from input take 64"]


def test_what_comes_once_and_would_be_read_again_is_refused() -> None:
    with pytest.raises(InfeasibleError) as refused:
        plan(window(), eight_units("noc"))
    assert str(refused.value) == (
        "op 'conv' reads more than once, past all scratchpads, what comes once from input\n"
        "  hint: write kind: host for input if it can be read again, or give it a scratchpad to "
        "fill"
    )


def test_a_result_gets_to_the_register_by_the_dma_engine() -> None:
    made = verified(two_products(), eight_units("noc"))
    assert all(task.ports == ("input",) for task in tasks_of(made, "first"))
    # None is declared: one serves, and is held while the op runs.
    assert all(task.ports == ("dma",) for task in tasks_of(made, "second"))
    (read,) = {
        made.program.buffers[access.buffer].space
        for task in tasks_of(made, "second")
        for access in task.reads
        if made.program.buffers[access.buffer].tensor == "first"
    }
    assert read == "pad"


def test_a_table_is_looked_up_in_the_source_where_it_lies() -> None:
    # 4 rows of 16 B of a table of 1,024 rows.
    net = layers.draft("table", 8)
    table = layers.constant(net, "table", (1024, 16))
    places = layers.given_indices(net, "places", (4,))
    network = net.finish(layers.look_up(net, "gather", table, places))
    # What the ROM fills is not where results lie: the vector unit reads it, and holds it.
    made = verified(network, eight_units("host", apart=True))
    tasks = tasks_of(made, "gather")
    assert {task.engine for task in tasks} == {"core[0].vector"}
    assert {task.ports for task in tasks} <= {("input", "weights"), ("weights", "input")}
    assert read_bytes(made, "weights") == 4 * 16


@settings(repeatable, max_examples=examples(24))
@given(networks(), streaming_machines(), st.sampled_from(("latency", "memory", "energy")))
def test_drawn_machines_get_a_plan_that_is_right_or_a_reason(
    network: Network, machine: Machine | None, objective: PlanObjective
) -> None:
    if machine is None:
        reject()
    options = PlanOptions(objective=objective, lpf_limit=3)
    try:
        made = plan(network, machine, options)
    except InfeasibleError as refused:
        event(refused.problems[0].message)
        return
    assert made.cycles >= made.roofline.cycles
    assert verify(made.timetable, network, machine=machine).agrees

"""What sums tell before anything is planned, and the hint that most users need first."""

import subprocess
import sys
from dataclasses import replace

import pytest

from tilewright.errors import InfeasibleError, Problem
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.load import load_machine
from tilewright.mapping.check import all_problems
from tilewright.mapping.network import map_network
from tilewright.mapping.obstacles import refuse_impossible
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.planner import plan

FIRST_HINT = "--bits 8: as if the network were quantised to 8 bit"


def refusal(network: Network, machine: str, *limits: tuple[str, int]) -> Problem:
    with pytest.raises(InfeasibleError) as refused:
        refuse_impossible(network, with_memory_limits(load_machine(machine), limits))
    return refused.value.problems[0]


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        # Vela leaves floats to the CPU.
        ("ethos_u55_256", "an Ethos-U multiplies no elements of more than 16 bit"),
        ("npu_40xx", "the multipliers take 8 x 8 bit"),
        # No `input_precision` here, but a register of 1 B for a weight of 4.
        ("edge_tpu_like", "memory rf_1B has 1 B and needs at least 4 B (W 4 B): 24 bits short"),
        # And one of 2 B for a result of 4.
        ("tpu_like", "memory rf_2B has 2 B and needs at least 4 B (O 4 B): 16 bits short"),
    ],
)
def test_a_float_network_is_told_first_to_be_made_narrower(machine: str, why: str) -> None:
    problem = refusal(load_network("lenet5", bits=32), machine)
    assert why in problem.message
    assert problem.hint.splitlines()[0] == FIRST_HINT


@pytest.mark.parametrize("machine", ["ethos_u55_256", "edge_tpu_like"])
def test_planning_begins_with_what_sums_tell(machine: str) -> None:
    steps: list[str] = []
    with pytest.raises(InfeasibleError) as refused:
        plan(load_network("lenet5", bits=32), load_machine(machine), watcher=steps.append)
    assert refused.value.problems[0].hint.startswith(FIRST_HINT)
    assert steps == []


def test_mapping_refuses_what_the_multipliers_do_not_take() -> None:
    with pytest.raises(InfeasibleError) as refused:
        map_network(load_network("lenet5", bits=16), load_machine("ascend_like"))
    assert str(refused.value).startswith(
        "the multipliers take 8 x 8 bit, and op 'conv1' and 4 more need 16 x 16 bit"
    )


def test_one_op_of_floats_does_not_keep_an_ethos_u_from_the_others() -> None:
    network = load_network("lenet5")
    last = network.ops[-1].inputs[0].tensor
    wide = tuple(replace(t, bits=32) if t.name == last else t for t in network.tensors)
    refuse_impossible(replace(network, tensors=wide), load_machine("ethos_u55_256"))


def test_constants_larger_than_the_memory_that_they_come_from() -> None:
    # LeNet-5: 61,470 weights, and 236 biases of 32 bit.
    constants = 61_470 + 236 * 4
    network = load_network("lenet5")
    problem = refusal(network, "npu_40xx", ("ddr", constants - 1))
    assert problem.message.endswith(": 1 B short")
    assert problem.hint == f"ddr would have to hold at least {constants:,} B"
    refuse_impossible(network, with_memory_limits(load_machine("npu_40xx"), (("ddr", constants),)))


def test_constants_that_would_fit_with_8_bit_are_told_so_first() -> None:
    network = load_network("lenet5", bits=16)
    problem = refusal(network, "tpu_like", ("dram", 100_000))
    assert problem.hint.splitlines()[0] == FIRST_HINT


def test_check_says_so_too() -> None:
    problems = all_problems("ascend_like", "lenet5", None, dims={}, bits=16)
    errors = [p for p in problems if p.severity == "error"]
    assert {p.hint.splitlines()[0] for p in errors} == {FIRST_HINT}
    assert "the multipliers take 8 x 8 bit" in errors[0].message


def test_a_refusal_by_a_sum_does_not_wait_for_the_planner() -> None:
    # Importing it takes several times as long as reading the network.
    program = (
        "import sys; from tilewright.cli import tilewright\n"
        "try: tilewright(['plan', 'resnet18', '--bits', '32', '--on', 'tpu_like'])\n"
        "except SystemExit as end: print(end.code, 'tilewright.planner' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "3 False"

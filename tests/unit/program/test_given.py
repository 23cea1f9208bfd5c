"""Inputs that lie in a scratchpad from the start, and outputs that stay there."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tests.machine_builder import machine_of, marked, messages, sound_machine

from tilewright.errors import InfeasibleError
from tilewright.machine.load import load_machine
from tilewright.machine.model import Given, Machine
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.plan_fit import fit
from tilewright.planner import Plan, PlanObjective, PlanOptions, plan
from tilewright.program.model import Program
from tilewright.replay.check import problems
from tilewright.replay.verify import refuse, verify
from tilewright.schedule.packed import buffer_lives

ONE_CORE = Path(__file__).parents[2] / "one_core.yaml"

NOTHING = Given()
INPUTS, OUTPUTS = Given(inputs="buffer"), Given(outputs="buffer")
BOTH = Given(inputs="buffer", outputs="buffer")

MOVED = [(NOTHING, 1_072), (INPUTS, 560), (OUTPUTS, 816), (BOTH, 304)]
"""Two inputs of 256 B, an output of 256 B, 4 x 4 x 3 x 3 weights of 16 bit, 4 biases of 32."""


@cache
def network(bits: int = 16) -> Network:
    """A convolution of one input, to which another one is added: 4 x 4 x 8 values."""
    net = layers.draft("late", bits)
    first, late = (layers.given(net, name, (1, 4, 4, 8)) for name in ("first", "late"))
    made = layers.conv(net, "conv", first, 4, layers.square(3, pad=1))
    return net.finish(layers.add(net, "sum", made, late))


@cache
def machine(given: Given, size_bytes: int = 64 * 1024) -> Machine:
    whole = load_machine(str(ONE_CORE))
    (core,) = whole.cores
    buffer = replace(core.memories[0], size_bits=8 * size_bytes)
    core = replace(core, memories=(buffer, *core.memories[1:]))
    return replace(whole, cores=(core,), given=given)


@cache
def planned(given: Given, objective: PlanObjective = "latency") -> Plan:
    return plan(network(), machine(given), PlanOptions(objective=objective))


def spaces_of(program: Program, tensor: str) -> set[str]:
    return {buffer.space for buffer in program.buffers if buffer.tensor == tensor}


@pytest.mark.parametrize(("given", "moved"), MOVED)
def test_what_lies_inside_is_not_moved(given: Given, moved: int) -> None:
    found = planned(given, "traffic")
    assert found.outside_bytes == found.roofline.traffic_bytes == moved


@pytest.mark.parametrize("objective", ["energy", "traffic", "memory"])
@pytest.mark.parametrize("given", [INPUTS, OUTPUTS, BOTH])
def test_every_objective_knows(given: Given, objective: PlanObjective) -> None:
    found = planned(given, objective)
    program = found.program
    if given.inputs is not None:
        # All of both inputs at cycle 0.
        assert found.peak_bytes["buffer"] >= 512
        assert spaces_of(program, "first") == {"buffer"}
    if given.outputs is not None:
        assert found.peak_bytes["buffer"] >= 256
        assert spaces_of(program, network().outputs[0].name) == {"buffer"}
    assert found.cycles >= found.roofline.cycles
    refuse(verify(found.timetable, network(), machine=found.machine))


def test_energy_is_that_of_the_weights_alone() -> None:
    """288 B of weights and 16 B of biases come over 8 B of the DRAM's port at 700 pJ."""
    assert planned(BOTH).energy_pj["dram"] == pytest.approx(304 / 8 * 700)


def test_inputs_are_there_until_they_were_read() -> None:
    found = planned(BOTH, "latency")
    program, lives = found.program, buffer_lives(found.timetable)
    inside = {program.buffers[n].tensor: n for n in program.given if n in lives}
    readers = {
        name: max(
            slot.end_cycle
            for task, slot in zip(program.tasks, found.timetable.slots, strict=True)
            if any(program.root(access.buffer) == inside[name] for access in task.reads)
        )
        for name in ("first", "late")
    }
    assert {name: lives[inside[name]] for name in readers} == {
        name: (0, end) for name, end in readers.items()
    }
    assert readers["first"] <= readers["late"] <= found.cycles


def test_outputs_are_there_to_the_end() -> None:
    found = planned(OUTPUTS)
    (result,) = {found.program.root(number) for number in found.program.results}
    assert found.program.buffers[result].space == "buffer"
    assert buffer_lives(found.timetable)[result][1] == found.cycles


def test_a_plan_for_one_machine_is_none_for_the_other() -> None:
    here, elsewhere = planned(BOTH), planned(NOTHING)
    told = [p.message for p in problems(here.timetable, network(), machine(NOTHING))]
    assert told == [
        "no result in an external memory or a sink holds [0:1, 0:4, 0:4, 0:8] of the output "
        f"{network().outputs[0].name}",
        *(
            f"buffer {name} in buffer (scratchpad) is given, and only what lies in an external "
            "memory or a source is there from the start"
            for name in ("first", "late")
        ),
    ]
    told = [p.message for p in problems(elsewhere.timetable, network(), machine(BOTH))]
    assert told == [
        f"no result in buffer holds [0:1, 0:4, 0:4, 0:8] of the output {network().outputs[0].name}",
        *(
            f"buffer {name} in dram is given, and the machine's inputs lie in buffer"
            for name in ("first", "late")
        ),
    ]


def test_what_does_not_fit_whole_is_refused() -> None:
    """An input of 256 B and the smallest tiles beside it; row by row less would do."""
    small = machine(INPUTS, 200)
    assert plan(network(), machine(NOTHING, 200)).peak_bytes["buffer"] <= 200
    with pytest.raises(InfeasibleError, match="first 256 B"):
        plan(network(), small)


def test_inputs_that_do_not_fit_together_are_refused() -> None:
    """Each of them fits, with its op beside it."""
    with pytest.raises(InfeasibleError) as refusal:
        plan(network(), machine(INPUTS, 480))
    assert str(refusal.value).splitlines() == [
        "the inputs that lie there from the start need 512 B of 'buffer' at once, 32 B more than "
        "it has (480 B): first 256 B, late 256 B",
        "  hint: 'buffer' would have to be 512 B at least",
        "  hint: or let them come from outside: leave `inputs` out of `given` in the machine file",
    ]


def test_an_input_that_is_read_late_may_wait_outside_and_that_is_counted() -> None:
    """700 B hold both inputs, and not what is made of the first one beside them."""
    found = plan(network(), machine(BOTH, 700))
    refuse(verify(found.timetable, network(), machine=found.machine))
    program = found.program
    given = [n for n in program.given if program.buffers[n].space == "buffer"]
    assert [program.buffers[n].name for n in given] == ["first", "late"]
    assert all(buffer_lives(found.timetable)[n][0] == 0 for n in given)
    # The late one goes and comes back.
    assert found.outside_bytes == 304 + 2 * 256


def test_cores_with_scratchpads_of_their_own_have_no_place_for_it() -> None:
    data = marked(sound_machine()) | {
        "core_count": 2,
        "given": {"inputs": "bank", "outputs": "bank"},
    }
    data["memories"]["ddr"]["shared"] = True
    text = "in bank: each of the 2 cores has its own"
    assert messages(data)[:2] == [
        f"given.inputs: inputs cannot lie {text}",
        f"given.outputs: outputs cannot stay {text}",
    ]


def test_cores_may_share_it() -> None:
    data = marked(sound_machine()) | {
        "core_count": 2,
        "given": {"inputs": "bank", "outputs": "bank"},
    }
    for name in ("bank", "ddr"):
        data["memories"][name]["shared"] = True
    found = plan(network(8), machine_of(data))
    refuse(verify(found.timetable, network(8), machine=found.machine))
    assert found.outside_bytes == 144 + 16


def test_a_source_beside_it_is_told() -> None:
    source = {"name": "camera", "kind": "host", "memory": "bank", "operands": ["I1"]}
    data = marked(sound_machine()) | {"given": {"inputs": "bank"}, "sources": [source]}
    assert messages(data) == [
        "warning: sources[0]: is not used for I1: inputs come from bank",
    ]


def test_fit_says_that_rungs_are_not_tried() -> None:
    found = fit(network(), machine(BOTH))
    others = {verdict.obstacle for name, verdict in found.verdicts.items() if name != "cascades"}
    assert others == {
        "not tried: inputs or outputs lie whole in a scratchpad (`given`)",
    }

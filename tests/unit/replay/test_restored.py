"""Mappings of a plan file, worked out again from their text."""

from dataclasses import replace
from functools import cache

import pytest
from tests.small_machines import Small, small_machine

import tilewright
from tilewright.machine.model import Machine
from tilewright.mapping.text import mapping_text
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import Plan
from tilewright.replay.restored import Restored, restored


def network() -> Network:
    net = layers.draft("one", 8)
    data = layers.given(net, "x", (1, 4, 10, 10))
    return net.builder.finish([layers.conv(net, "first", data, 8, layers.square(3, pad=1)).name])


def with_blanks(machine: Machine) -> Machine:
    """The machine with memories whose names are of two words."""
    (core,) = machine.cores
    named = tuple(replace(m, name=f"the {m.name}") for m in core.memories)
    shared = tuple(replace(m, name=f"the {m.name}") for m in machine.shared)
    return replace(machine, cores=(replace(core, memories=named),), shared=shared)


@cache
def planned(*, has_blanks: bool = False) -> Plan:
    machine = small_machine(Small(size_bytes=900))
    return tilewright.plan(network(), with_blanks(machine) if has_blanks else machine)


def texts(plan: Plan) -> list[str]:
    return [mapping_text("m", mapped.setup, mapped.loops) for mapped in plan.program.mappings]


def found(plan: Plan, said: list[str]) -> Restored:
    program = replace(plan.program, mappings=())
    return restored(program, said, plan.network, plan.machine)


@pytest.mark.parametrize("has_blanks", [False, True])
def test_a_mapping_costs_what_it_cost_when_it_was_planned(*, has_blanks: bool) -> None:
    plan = planned(has_blanks=has_blanks)
    again = found(plan, texts(plan))
    assert again.problems == ()
    for one, other in zip(again.mappings, plan.program.mappings, strict=True):
        assert one is not None
        assert (one.cost.cycles, one.cost.energy_pj) == (other.cost.cycles, other.cost.energy_pj)
    assert len(again.program_of(plan.program).mappings) == len(plan.program.mappings)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text.replace("nest B 1", "nest B 2"), "that runs loops of B 1, "),
        (lambda text: text.rsplit("\n", 2)[0] + "\n", " steps, and "),
        (lambda text: "nothing", "cannot be read"),
        (lambda text: text.replace("D1: ", "D1: K 99, "), " units, "),
        (lambda text: text.replace("unroll", "unrolled"), "cannot be read"),
    ],
)
def test_a_text_that_is_no_mapping_of_its_tile_is_told(change: object, why: str) -> None:
    plan = planned()
    first, *others = texts(plan)
    assert callable(change)
    again = found(plan, [change(first), *others])
    assert again.mappings[0] is None
    assert why in again.problems[0].message
    assert again.program_of(plan.program) is plan.program


def test_a_mapping_that_nobody_names_does_not_matter() -> None:
    """On a rung of a ladder there are some, where the model of a core says how long tasks take."""
    plan = planned()
    again = found(plan, [*texts(plan), texts(plan)[0]])
    assert again.problems == ()
    assert again.mappings[-1] is None
    assert len(again.program_of(plan.program).mappings) == len(texts(plan)) + 1


def test_without_a_machine_it_is_seen_whose_nest_a_text_is_of() -> None:
    plan = planned()
    program = replace(plan.program, mappings=())
    said = texts(plan)
    assert restored(program, said, plan.network, None).problems == ()
    wrong = [said[0].replace("nest B 1", "nest B 2"), *said[1:]]
    (problem,) = restored(program, wrong, plan.network, None).problems
    assert "that runs loops of B 1, " in problem.message

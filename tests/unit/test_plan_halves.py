"""The best of the plans for all of the scratchpads, half of them and so on."""

from tilewright.errors import InfeasibleError, Problem
from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine
from tilewright.network.load import load_network
from tilewright.plan_halves import best_of_halves
from tilewright.plan_memory import cut_to
from tilewright.planner import Plan, PlanOptions, plan
from tilewright.program.places import places_of


def test_a_better_plan_for_half_of_the_scratchpads_is_one_for_all_of_them() -> None:
    whole = cut_to(load_machine("eyeriss_like"), 0.5)
    half = cut_to(whole, 0.5)
    made: list[Plan] = []

    def plan_on(machine: Machine) -> Plan:
        if machine not in (whole, half):
            raise InfeasibleError(Problem(message="two sizes are enough"))
        made.append(plan(load_network("lenet5"), machine, PlanOptions(smaller_tasks=0)))
        return made[-1]

    found = best_of_halves(plan_on, whole)
    for_whole, for_half = made
    assert for_half.cycles < for_whole.cycles, "larger tiles are no longer worse: take another case"
    assert found.cycles == for_half.cycles
    assert found.timetable.slots == for_half.timetable.slots
    assert found.machine == whole
    assert found.program.spaces == places_of(whole).spaces
    assert found.roofline == for_whole.roofline
    assert found.bounds.cycles <= for_half.bounds.cycles


def test_the_plan_for_all_of_them_stays_if_none_is_better() -> None:
    machine = load_machine("seneca")
    halves = machine, cut_to(machine, 0.5)
    plans = {on: plan(load_network("lenet5"), on) for on in halves}

    def plan_on(other: Machine) -> Plan:
        if other not in plans:
            raise InfeasibleError(Problem(message="two sizes are enough"))
        return plans[other]

    assert best_of_halves(plan_on, machine) is plans[machine]

"""Plans for ever smaller scratchpads, all of them: more memory is then never worse than half of it.

A plan for half of the scratchpads is one for all of them, too. What is best among the plans for
all, half, a quarter and so on is therefore no worse than the best among those for half and less.
"""

from collections.abc import Callable
from dataclasses import replace

from tilewright.errors import InfeasibleError
from tilewright.machine.model import Machine
from tilewright.plan_memory import cut_to
from tilewright.plan_model import Plan
from tilewright.replay.check import check
from tilewright.schedule.bounds import bounds


def best_of_halves(plan_on: Callable[[Machine], Plan], machine: Machine) -> Plan:
    """The best of the plans for the scratchpads, half of them and so on, until there is none.

    Raises:
        InfeasibleError: there is no plan for the scratchpads as they are.
        LimitError: the plan did not pass its check, which is a fault of Tilewright.
    """
    best = whole = plan_on(machine)
    size, share = machine, 0.5
    while (smaller := cut_to(machine, share)) != size:
        try:
            best = min(best, plan_on(smaller), key=value_of)
        except InfeasibleError:
            break
        size, share = smaller, share / 2
    return best if best is whole else _in_place_of(whole, best)


def value_of(plan: Plan) -> tuple[float, ...]:
    """What the objective of a plan makes small."""
    match plan.options.objective:
        case "traffic":
            return plan.outside_bytes, plan.cycles
        case "energy":
            return sum(plan.energy_pj.values()), plan.cycles
        case _:
            return plan.cycles, plan.outside_bytes


def _in_place_of(whole: Plan, smaller: Plan) -> Plan:
    """A plan for smaller scratchpads as one of the machine that another plan is for."""
    spaces = whole.program.spaces
    program = replace(smaller.program, spaces=spaces)
    timetable = replace(smaller.timetable, program=program)
    if whole.options.checked:
        check(timetable, whole.network)
    return replace(
        smaller,
        machine=whole.machine,
        timetable=timetable,
        bounds=bounds(replace(smaller.bounds.tables.program, spaces=spaces)),
        roofline=whole.roofline,
    )

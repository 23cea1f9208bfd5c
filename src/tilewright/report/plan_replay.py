"""A plan file replayed, and everything in it compared with the network and the machine it names."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tilewright.errors import InputError, Problem
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.model import Machine
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.planner import Plan
from tilewright.program.lower import prepare
from tilewright.replay.verify import Verified, verify
from tilewright.report.plan_bounds import overstated_bounds
from tilewright.report.plan_files import plan_json
from tilewright.report.plan_machine import machine_problems
from tilewright.report.plan_mappings import mapping_problems, restored_mappings, with_mappings
from tilewright.report.plan_operators import operator_problems
from tilewright.report.plan_ops import assumption_problems, name_problems, op_problems
from tilewright.report.plan_totals import total_problems
from tilewright.report.record import PlanRecord, record_in


def replayed(
    record: PlanRecord,
    network: Network,
    machine: Machine | None,
    *,
    seed: int = 0,
    input_file: Path | None = None,
) -> Verified:
    """What a replay of a plan file finds, with all that is wrong with its figures.

    Mappings are worked out again from their text, so that a plan from a file is asked all that one
    was asked when it was made. Without a machine nothing is known of what things cost there.

    Raises:
        InputError: the plan is of another network, a value is missing, or an op is not emulated.
    """
    limited, wrong = _as_planned(record, machine)
    found = restored_mappings(record, network, limited)
    timetable = with_mappings(record.timetable, found)
    verified = verify(timetable, network, machine=limited, seed=seed, input_file=input_file)
    problems = (
        *verified.problems,
        *wrong,
        *mapping_problems(record, found),
        *_problems(record, network, limited),
    )
    return replace(verified, problems=problems)


def replayed_plan(
    plan: Plan, network: Network | None = None, *, seed: int = 0, input_file: Path | None = None
) -> Verified:
    """What a replay of a plan would find in its file.

    Raises:
        InputError: the plan is of another network, a value is missing, or an op is not emulated.
    """
    record = record_in(json.loads(json.dumps(plan_json(plan))))
    graph = plan.network if network is None else network
    return replayed(record, graph, plan.machine, seed=seed, input_file=input_file)


def _as_planned(
    record: PlanRecord, machine: Machine | None
) -> tuple[Machine | None, tuple[Problem, ...]]:
    """The machine with the sizes that a plan was asked for with."""
    limits = record.figures["source"].get("memory_limits", {})
    if machine is None:
        return None, ()
    try:
        return with_memory_limits(machine, tuple(limits.items())), ()
    except InputError as error:
        return machine, error.problems


def _problems(record: PlanRecord, network: Network, machine: Machine | None) -> Iterator[Problem]:
    yield from total_problems(record, network)
    yield from name_problems(record, network, machine)
    yield from op_problems(record, network)
    yield from operator_problems(record, network)
    if machine is not None:
        prepared = prepare(network, machine, network.ops, SearchOptions())
        yield from assumption_problems(record, prepared)
        yield from overstated_bounds(record, prepared.bounds)
        yield from machine_problems(record, machine)

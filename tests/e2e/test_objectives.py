"""What an objective promises: less of what it asks for than another, and never more with room."""

import json
from functools import cache
from itertools import product

import pytest
from click.testing import CliRunner

from tilewright.cli import tilewright
from tilewright.errors import InfeasibleError
from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.plan_model import PlanObjective
from tilewright.planner import Plan, PlanOptions, plan, with_memory_limits

NETWORKS = ("lenet5", "ds_cnn", "notes_cnn")
MACHINES = ("edge_tpu_like", "ethos_u65_256", "meta_prototype_like", "npu_37xx")
CUTS = (4, 2, 1)


@cache
def planned(network: str, on: str, objective: PlanObjective, cut: int) -> Plan | None:
    """The plan with scratchpads of a part of their size; None if there is none."""
    machine = load_machine(on)
    limits = tuple(
        (m.name, m.size_bytes // cut) for m in machine.memories if m.role == "scratchpad"
    )
    options = PlanOptions(objective=objective, memory_limits=limits, checked=False)
    try:
        return plan(load_network(network), machine, options)
    except InfeasibleError:
        return None


def every_size(network: str, on: str, objective: PlanObjective) -> list[Plan]:
    found = [planned(network, on, objective, cut) for cut in CUTS]
    first = next((n for n, p in enumerate(found) if p is not None), len(found))
    fitting = [p for p in found[first:] if p is not None]
    assert len(fitting) == len(found) - first, "a smaller scratchpad held a plan"
    return fitting


@pytest.mark.parametrize(
    ("network", "on"),
    [
        *product(NETWORKS, MACHINES),
        pytest.param("mobilenetv2", "ethos_u65_256", marks=pytest.mark.slow),
    ],
)
def test_traffic(network: str, on: str) -> None:
    moved = [p.outside_bytes for p in every_size(network, on, "traffic")]
    assert moved == sorted(moved, reverse=True)
    for cut in CUTS:
        least, fastest = (planned(network, on, aim, cut) for aim in ("traffic", "latency"))
        if least is not None and fastest is not None:
            assert least.outside_bytes <= fastest.outside_bytes


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("network", NETWORKS)
def test_latency(network: str, on: str) -> None:
    cycles = [p.cycles for p in every_size(network, on, "latency")]
    assert cycles == sorted(cycles, reverse=True)


def test_a_plan_made_for_less_memory_has_the_bounds_of_the_machine() -> None:
    network, machine = load_network("lenet5"), load_machine("npu_37xx")
    found = plan(network, machine, PlanOptions(objective="memory"))
    alone = plan(network, machine, PlanOptions(smaller_tasks=0))
    sizes = {space.name: space.size_bytes for space in alone.program.spaces}
    assert found.peak_bytes["cmx"] < alone.peak_bytes["cmx"] / 4
    assert found.roofline == alone.roofline
    assert found.machine == machine
    assert {space.name: space.size_bytes for space in found.program.spaces} == sizes


def in_small(objective: PlanObjective, size_bytes: int, *, thorough: bool) -> Plan | None:
    """The plan of a small network in a scratchpad of a few bytes; None if there is none."""
    options = PlanOptions(
        objective=objective, memory_limits=(("cmx", size_bytes),), thorough=thorough
    )
    try:
        return plan(load_network("lenet5"), load_machine("npu_37xx"), options)
    except InfeasibleError:
        return None


@pytest.mark.parametrize(
    "objective",
    ["latency", *(pytest.param(aim, marks=pytest.mark.slow) for aim in ("traffic", "energy"))],
)
def test_a_thorough_plan_is_the_best_of_those_for_all_halves(objective: PlanObjective) -> None:
    def value(made: Plan) -> float:
        match objective:
            case "traffic":
                return made.outside_bytes
            case "energy":
                return sum(made.energy_pj.values())
            case _:
                return made.cycles

    sizes = (1024, 512, 256)
    alone = [in_small(objective, size, thorough=False) for size in sizes]
    fitting = [made for made in alone if made is not None]
    assert fitting == alone[: len(fitting)], "a smaller scratchpad held a plan"
    assert len(fitting) < len(sizes), "the halves do not go down to where nothing fits"
    found = [in_small(objective, size, thorough=True) for size in sizes[: len(fitting)]]
    for at, made in enumerate(found):
        assert made is not None
        assert value(made) == min(map(value, fitting[at:]))
        assert made.machine == with_memory_limits(load_machine("npu_37xx"), (("cmx", sizes[at]),))


def test_the_command_plans_thoroughly_if_asked() -> None:
    arguments = ["plan", "lenet5", "--on", "seneca", "--json"]
    plans = [CliRunner().invoke(tilewright, [*arguments, *more]) for more in ([], ["--thorough"])]
    quick, thorough = (json.loads(done.stdout)["totals"]["cycles"] for done in plans)
    assert thorough <= quick

"""What an objective promises: less of what it asks for than another, and never more with room."""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from tests.small_machines import Kind, Small, small_machine

from tilewright.cli import tilewright
from tilewright.errors import InfeasibleError
from tilewright.machine.load import load_machine
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.network.zoo import layers
from tilewright.plan_model import PlanObjective
from tilewright.planner import Plan, PlanOptions, plan, with_memory_limits

MACHINES = ("edge_tpu_like", "ethos_u65_256", "meta_prototype_like", "npu_37xx")
QUICK = "ethos_u65_256"
"""The machine for which plans are found soonest."""
CASES: list[Any] = [
    *(("lenet5", machine) for machine in MACHINES),
    *(
        pytest.param(name, machine, marks=[] if machine == QUICK else [pytest.mark.slow])
        for name, machine in product(("ds_cnn", "notes_cnn"), MACHINES)
    ),
]
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


def scratchpads(made: Plan) -> dict[str, int]:
    pads = [memory.name for memory in made.machine.memories if memory.role == "scratchpad"]
    return {name: made.peak_bytes[name] for name in pads}


@pytest.mark.parametrize(
    ("network", "on"),
    [*CASES, pytest.param("mobilenetv2", "ethos_u65_256", marks=pytest.mark.slow)],
)
def test_traffic(network: str, on: str) -> None:
    moved = [p.outside_bytes for p in every_size(network, on, "traffic")]
    assert moved == sorted(moved, reverse=True)
    for cut in CUTS:
        least, fastest = (planned(network, on, aim, cut) for aim in ("traffic", "latency"))
        if least is not None and fastest is not None:
            assert least.outside_bytes <= fastest.outside_bytes


@pytest.mark.parametrize("kind", ["one", "ends"])
@pytest.mark.parametrize("size_bytes", [256, 1024, 4096])
@pytest.mark.parametrize("kernel", [1, 2])
def test_traffic_where_pixels_are_left_out(kernel: int, size_bytes: int, kind: Kind) -> None:
    """Cascades leave out what lies between windows, ops one after the other do not."""
    net = layers.draft("gaps", 8)
    data = layers.given(net, "x", (1, 4, 14, 14))
    data = layers.conv(net, "first", data, 4, layers.square(1))
    network = net.finish(layers.conv(net, "second", data, 4, layers.square(kernel, 3)))
    machine = small_machine(Small(kind=kind, size_bytes=size_bytes))
    least, fastest = (
        plan(network, machine, PlanOptions(objective=aim)) for aim in ("traffic", "latency")
    )
    bound = least.roofline.traffic_bytes
    assert bound <= least.outside_bytes <= fastest.outside_bytes


@pytest.mark.parametrize(("network", "on"), CASES)
def test_latency(network: str, on: str) -> None:
    cycles = [p.cycles for p in every_size(network, on, "latency")]
    assert cycles == sorted(cycles, reverse=True)


@pytest.mark.parametrize(("network", "on"), CASES)
def test_energy(network: str, on: str) -> None:
    energies = [value_of(p, "energy") for p in every_size(network, on, "energy")]
    # They are sums of floats, in an order of their own for every plan.
    assert all(more <= less * (1 + 1e-9) for less, more in pairwise(energies))
    for cut, aim in product(CUTS, ("latency", "traffic")):
        least, other = planned(network, on, "energy", cut), planned(network, on, aim, cut)
        if least is not None and other is not None:
            assert value_of(least, "energy") <= value_of(other, "energy") * (1 + 1e-9)


@pytest.mark.parametrize(("network", "on"), CASES)
def test_memory(network: str, on: str) -> None:
    peaks = [scratchpads(p) for p in every_size(network, on, "memory")]
    assert all(less == more for less, more in pairwise(peaks))


def test_a_plan_for_less_latency_does_not_take_less_memory() -> None:
    """In smaller scratchpads than the search for little memory ends at there are too many tiles to
    be worth it, and yet those of cascades are soon done."""
    net = layers.draft("larger", 8)
    data = layers.max_pool(
        net, "pool", layers.given(net, "x", (2, 12, 8, 16)), layers.square(3, pad=1)
    )
    network = net.finish(layers.upsample(net, "larger", data, 2))
    machine = small_machine(Small(kind="ends", size_bytes=2048, cores=2))
    least, fastest = (
        plan(network, machine, PlanOptions(objective=aim)) for aim in ("memory", "latency")
    )
    assert least.peak_bytes["bank"] <= fastest.peak_bytes["bank"]
    assert least.options.objective == "memory"


@pytest.mark.parametrize("on", ["ethos_u55_128", "npu_37xx"])
def test_the_least_memory_is_the_same_wherever_it_fits(
    on: str,
) -> None:
    network, machine = load_network("lenet5"), load_machine(on)
    least = PlanOptions(objective="memory")
    whole = plan(network, machine, least)
    sizes = scratchpads(whole)
    enough = replace(least, memory_limits=tuple(sizes.items()))
    found = plan(network, machine, enough)
    assert scratchpads(found) == sizes
    assert found.cycles == whole.cycles
    assert found.machine == with_memory_limits(machine, enough.memory_limits)
    assert found.options == enough
    little = tuple((name, size - 1) for name, size in sizes.items())
    try:
        tight = plan(network, machine, replace(least, memory_limits=little))
    except InfeasibleError:
        return
    assert all(peak < sizes[name] for name, peak in scratchpads(tight).items())


@pytest.mark.slow
def test_a_plan_made_for_less_memory_has_the_bounds_of_the_machine() -> None:
    network, machine = load_network("lenet5"), load_machine("npu_37xx")
    found = plan(network, machine, PlanOptions(objective="memory"))
    alone = plan(network, machine, PlanOptions(smaller_tasks=0))
    sizes = {space.name: space.size_bytes for space in alone.program.spaces}
    assert found.peak_bytes["cmx"] < alone.peak_bytes["cmx"] / 4
    assert found.roofline == alone.roofline
    assert found.machine == machine
    assert {space.name: space.size_bytes for space in found.program.spaces} == sizes


def two_convolutions() -> Network:
    """Small enough for a few bytes; and less room may lead to a plan that takes less energy."""
    net = layers.draft("two_convolutions", 8)
    data = layers.given(net, "x", (1, 2, 8, 8))
    data = layers.conv(net, "first", data, 8, layers.square(3, 1, 1))
    data = layers.max_pool(net, "pool", data, layers.square(2, 2))
    return net.finish(layers.conv(net, "second", data, 4, layers.square(3, 1, 1)))


def random_convolutions(chance: Random) -> Network:
    """A few convolutions of small feature maps."""
    net = layers.draft("random_convolutions", 8)
    data = layers.given(net, "x", (1, chance.randint(1, 4), 8, 8))
    for number in range(chance.randint(2, 4)):
        size = chance.choice((1, 3))
        channels = chance.randint(2, 12)
        window = layers.square(size, 1, size // 2)
        data = layers.conv(net, f"conv{number}", data, channels, window)
    return net.finish(data)


def in_small(network: Network, options: PlanOptions, size_bytes: int) -> Plan | None:
    """The plan in a scratchpad of a few bytes; None if there is none."""
    limits = (("cmx", size_bytes),)
    try:
        return plan(network, load_machine("npu_37xx"), replace(options, memory_limits=limits))
    except InfeasibleError:
        return None


def value_of(made: Plan, objective: PlanObjective) -> float:
    match objective:
        case "traffic":
            return made.outside_bytes
        case "energy":
            return sum(made.energy_pj.values())
        case _:
            return made.cycles


@pytest.mark.parametrize(
    "objective",
    ["latency", *(pytest.param(name, marks=pytest.mark.slow) for name in ("traffic", "energy"))],
)
def test_a_thorough_plan_is_the_best_of_those_for_all_smaller_sizes(
    objective: PlanObjective,
) -> None:
    network = two_convolutions()
    # Below 32 times the alignment of 64 B, its multiples are the sizes that are looked at.
    sizes = [64 * units for units in range(13, 3, -1)]
    options = PlanOptions(objective=objective, checked=False)
    alone = [in_small(network, options, size) for size in sizes]
    assert alone[-1] is None, "the sizes do not go down to where nothing fits"
    values = [value_of(made, objective) for made in alone if made is not None]
    found = in_small(network, PlanOptions(objective=objective, thorough=True), sizes[0])
    assert found is not None
    assert value_of(found, objective) == min(values)
    assert found.machine == with_memory_limits(load_machine("npu_37xx"), (("cmx", sizes[0]),))


def test_the_case_of_two_convolutions_needs_thoroughness() -> None:
    options = PlanOptions(checked=False)
    more, less = (in_small(two_convolutions(), options, size) for size in (832, 768))
    assert more is not None
    assert less is not None
    assert less.cycles < more.cycles, "take another size"


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["latency", "traffic", "energy"])
@pytest.mark.parametrize("seed", range(2))
def test_more_memory_of_any_size_is_never_worse(objective: PlanObjective, seed: int) -> None:
    chance = Random(seed)
    network = random_convolutions(chance)
    options = PlanOptions(objective=objective, checked=False, thorough=True)
    sizes = sorted(chance.sample(range(600, 2_000), 5))
    made = [in_small(network, options, size) for size in sizes]
    fitting = [found for found in made if found is not None]
    assert made[len(made) - len(fitting) :] == fitting, "a smaller scratchpad held a plan"
    assert len(fitting) > 2
    values = [value_of(found, objective) for found in fitting]
    assert values == sorted(values, reverse=True)


@pytest.mark.slow
def test_the_command_plans_thoroughly_if_asked() -> None:
    arguments = ["plan", "lenet5", "--on", "seneca", "--json"]
    plans = [CliRunner().invoke(tilewright, [*arguments, *more]) for more in ([], ["--thorough"])]
    quick, thorough = (json.loads(done.stdout)["totals"]["cycles"] for done in plans)
    assert thorough <= quick

"""Sharing stages out over cores."""

from dataclasses import replace

import pytest
from tests.small_machines import Small, small_machine

from tilewright.machine.load import load_machine
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import PlanObjective, PlanOptions, plan
from tilewright.program.cascade import PLAIN, Strategy
from tilewright.program.layout import Layout
from tilewright.program.lower import laid_out, prepare


def layout_on(network: Network, cores: int, strategy: Strategy = PLAIN) -> Layout:
    machine = small_machine(Small(cores=cores, dma=True))
    options = SearchOptions(lpf_limit=3, unrollings=2)
    return laid_out(prepare(network, machine, network.ops, options), "latency", strategy)


def product(features: int = 64) -> Network:
    net = layers.draft("product", 8)
    return net.finish(layers.gemm(net, "fc", layers.given(net, "x", (1, 64)), features))


def convolution() -> Network:
    net = layers.draft("convolution", 8)
    data = layers.given(net, "x", (1, 8, 32, 32))
    first = layers.conv(net, "first", data, 8, layers.square(1))
    second = layers.conv(net, "second", first, 8, layers.square(3, 1, 1))
    return net.finish(layers.conv(net, "third", second, 8, layers.square(1)))


@pytest.mark.parametrize(("cores", "parts"), [(1, 1), (2, 2), (4, 4), (8, 7), (64, 7)])
def test_weights_go_to_as_many_cores_as_transfers_can_be_set_up_for(cores: int, parts: int) -> None:
    # The array takes 4 of the 64 inputs at once: 16 steps for each of the 64 outputs. Two engines
    # take 20 cycles to set up a transfer: one for the input, which all cores get, and two for each
    # core, for its weights and its results. On 6 cores of 11 outputs it is 176 steps, 130 cycles of
    # set-up; on 7 of 10, 160 and 150; on 8 of 8, 128 and 170.
    assert len(layout_on(product(), cores).parts[0]) == parts


def test_rows_are_shared_out_over_all_cores_if_all_get_the_same_weights() -> None:
    # Nothing but the weights comes from outside, in one transfer.
    assert len(layout_on(convolution(), 32).parts[1]) == 32


def test_a_strategy_leaves_cores_without_work() -> None:
    few = layout_on(convolution(), 32, Strategy(cores=3))
    assert max(len(parts) for parts in few.parts) == 3
    assert {core for _, core in few.kept} <= {0, 1, 2}


def test_many_cores_are_not_slower_than_few() -> None:
    few, many = (
        plan(product(128), small_machine(Small(cores=cores, dma=True))) for cores in (4, 64)
    )
    assert many.cycles <= 1.03 * few.cycles


def windows(first: int) -> Network:
    """Two convolutions, the first with windows of so many rows and columns."""
    net = layers.draft("windows", 8)
    data = layers.given(net, "x", (1, 8, 32, 32))
    made = layers.conv(net, "first", data, 8, layers.square(first, 1, first // 2))
    return net.finish(layers.conv(net, "second", made, 8, layers.square(3, 1, 1)))


@pytest.mark.parametrize(("first", "at_once"), [(1, 1), (3, 2)])
def test_what_comes_only_once_is_read_once_for_all_cores(first: int, at_once: int) -> None:
    # Events come over the network of `seneca` once. Rows of two cores would overlap in windows of
    # 3 x 3: there each core makes other channels of all that has come to both.
    machine = load_machine("seneca")
    one, two = (
        plan(windows(first), replace(machine, cores=(replace(machine.cores[0], count=count),)))
        for count in (1, 2)
    )
    brought = [task for task in two.program.tasks if task.engine == "events_in"]
    assert sum(task.cycles for task in brought) == 8 * 32 * 32 * 8 // 32
    engines = {
        op: {t.engine for t in two.program.tasks if t.op == op} for op in ("first", "second")
    }
    assert {len(used) for used in engines.values()} == {2}
    assert {len(task.writes) for task in brought} == {at_once}
    assert two.cycles < 0.8 * one.cycles


@pytest.mark.parametrize("objective", ["energy", "traffic"])
def test_cores_stay_idle_where_sharing_costs_much(objective: PlanObjective) -> None:
    # Every core that has a row of its own reads the four around it, too.
    net = layers.draft("wide", 8)
    data = layers.given(net, "x", (1, 8, 32, 32))
    network = net.finish(layers.conv(net, "conv", data, 8, layers.square(5, 1, 2)))
    options = PlanOptions(objective=objective)
    one, many = (
        plan(network, small_machine(Small(cores=cores, dma=True)), options) for cores in (1, 32)
    )
    if objective == "energy":
        assert sum(many.energy_pj.values()) <= 1.031 * sum(one.energy_pj.values())
    else:
        assert sum(many.traffic_bytes["ddr"]) <= 1.031 * sum(one.traffic_bytes["ddr"])

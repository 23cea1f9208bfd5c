"""Wrong plans with rolling buffers: checker and replay together accept none of them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest
from tests.cascade_cases import Cascaded, cascaded
from tests.cascade_faults import (
    CASCADE_FAULTS,
    reads_beside,
    starts_a_lap_early,
    writes_beside,
)
from tests.e2e.test_cascades import NCHW_HEIGHT, STEP_BY_STEP, in_cascades
from tests.plan_faults import Fault, wrong_plans
from tests.small_machines import Small, small_machine

from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.cascade import Cascade, Flow, Roll, flow_of
from tilewright.program.model import Timetable
from tilewright.replay.check import problems
from tilewright.replay.emulate import replay
from tilewright.replay.kernels.tile import Array
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import Values, values_of

PLANS = ("chain", "branches", "wide")


def chain() -> Network:
    """Windows of several sizes and strides, one behind the other."""
    net = layers.draft("chain", 8)
    data = layers.given(net, "x", (1, 3, 20, 8))
    data = layers.conv(net, "first", data, 6, layers.square(3, 1, 1))
    data = layers.max_pool(net, "pool", data, layers.square(3, 2, 1))
    data = layers.conv(net, "depthwise", data, 6, layers.square(3, 1, 1, group=6))
    data = layers.conv(net, "last", data, 5, layers.square(2))
    return net.finish(layers.activation(net, "end", data, "sigmoid"))


def branches() -> Network:
    """A way around two convolutions, and parts of a concatenation made by different stages."""
    net = layers.draft("branches", 8)
    start = layers.conv(
        net, "start", layers.given(net, "x", (1, 2, 14, 6)), 4, layers.square(3, 1, 1)
    )
    far = layers.conv(net, "near", start, 4, layers.square(3, 1, 1))
    far = layers.conv(net, "far", far, 4, layers.square(3, 1, 1))
    total = layers.add(net, "total", far, start)
    left = layers.conv(net, "left", total, 3, layers.square(3, 1, 1))
    right = layers.activation(net, "right", total, "exp")
    joined = layers.concat(net, "joined", [left, right], 1)
    return net.finish(layers.conv(net, "end", joined, 3, layers.square(3, 2, 1)))


def wide() -> Network:
    """Enough channels to keep the cores of a large machine busy."""
    net = layers.draft("wide", 8)
    data = layers.conv(
        net, "first", layers.given(net, "x", (1, 48, 11, 16)), 64, layers.square(3, 1, 1)
    )
    data = layers.conv(net, "depthwise", data, 64, layers.square(3, 1, 1, group=64))
    return net.finish(layers.conv(net, "last", data, 64, layers.square(3, 1, 1)))


def planned(name: str) -> Cascaded:
    """One of the plans: a network on one small core, one on two, one on the cores of an NPU."""
    if name == "wide":
        return in_cascades(wide(), "npu_37xx", NCHW_HEIGHT, 2, STEP_BY_STEP)
    network, stages, cores = {"chain": (chain(), 5, 1), "branches": (branches(), 7, 2)}[name]
    machine = small_machine(Small(size_bytes=4096, cores=cores, dma=True))
    return cascaded(network, machine, Cascade(first=0, last=stages - 1, axis=NCHW_HEIGHT, step=1))


@cache
def case(name: str) -> tuple[Cascaded, Values, dict[str, Array]]:
    """A plan, values, and every tensor that they make."""
    made = planned(name)
    values = values_of(made.network, seed=1)
    return made, values, computed(made.network, values.arrays, values.quantisation)


def is_refused(wrong: Timetable, name: str) -> bool:
    made, values, expected = case(name)
    return bool(
        problems(wrong, made.network)
        or replay(wrong, made.network, values, expected=expected).problems
    )


@pytest.mark.parametrize("name", PLANS)
def test_the_plans_that_are_made_wrong_are_right(name: str) -> None:
    made, _, _ = case(name)
    assert made.lowered.layout.rings
    assert not is_refused(made.timetable, name)


@pytest.mark.parametrize("fault", CASCADE_FAULTS, ids=lambda fault: fault.__name__)
def test_no_wrong_plan_with_a_cascade_is_accepted(fault: Fault) -> None:
    wrong = wrong_plans(case("chain")[0].timetable, fault, 6)
    assert len(wrong) == 6
    assert all(is_refused(plan, "chain") for plan in wrong)


@pytest.mark.parametrize("fault", [reads_beside, writes_beside, starts_a_lap_early])
def test_the_checker_alone_sees_rows_of_another_place(fault: Fault) -> None:
    made = case("branches")[0]
    wrong = wrong_plans(made.timetable, fault, 25)
    assert len(wrong) == 25
    assert all(problems(plan, made.network) for plan in wrong)


def sizes_too_small(name: str) -> list[tuple[str, int]]:
    """Every rolling buffer of a plan, with every number of rows that is less than it has."""
    rolls = case(name)[0].lowered.layout.rings
    return [(root, rows) for (_, root), roll in rolls.items() for rows in range(1, roll.rows)]


def with_smaller_ring(flow: Flow | None, root: str, rows: int) -> Flow | None:
    """A cascade that holds fewer rows of one tensor."""
    if flow is None:
        return None

    def smaller(rolls: Mapping[str, Roll]) -> dict[str, Roll]:
        return {n: replace(roll, rows=rows) if n == root else roll for n, roll in rolls.items()}

    return replace(flow, rolls=smaller(flow.rolls), inputs=smaller(flow.inputs))


@pytest.mark.parametrize(
    "name", ["chain", *(pytest.param(name, marks=pytest.mark.slow) for name in PLANS[1:])]
)
def test_no_ring_can_do_with_fewer_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    too_small = sizes_too_small(name)
    assert len(too_small) > 5
    for root, rows in too_small:
        with monkeypatch.context() as patch:
            patch.setattr(
                "tilewright.program.lower.flow_of",
                lambda *known, root=root, rows=rows: with_smaller_ring(flow_of(*known), root, rows),
            )
            wrong = planned(name)
        assert is_refused(wrong.timetable, name), f"{rows} rows of {root}"


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("fault", CASCADE_FAULTS, ids=lambda fault: fault.__name__)
def test_none_of_many_wrong_plans_with_a_cascade_is_accepted(fault: Fault, name: str) -> None:
    wrong = wrong_plans(case(name)[0].timetable, fault, 50)
    if not wrong:
        pytest.skip("this plan has no place for that fault")
    assert all(is_refused(plan, name) for plan in wrong)

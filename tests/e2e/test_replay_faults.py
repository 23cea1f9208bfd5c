"""Wrong plans of every sort: checker and replay together accept none of them."""

import pytest
from tests.e2e.test_replay import planned
from tests.plan_faults import FAULTS, Fault, wrong_plans

from tilewright.network.load import load_network
from tilewright.replay.check import problems
from tilewright.replay.emulate import replay
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import values_of

PLANS = (("lenet5", "edge_tpu_like", 4), ("ds_cnn", "npu_40xx", 1), ("lenet5", "ethos_u55_128", 1))


def unnoticed(fault: Fault, case: tuple[str, str, int], count: int) -> tuple[int, int]:
    """How many wrong plans there were, and how many of them nobody complained about."""
    name, machine, share = case
    network = load_network(name)
    values = values_of(network, seed=1)
    expected = computed(network, values.arrays, values.quantisation)
    plan = planned(network, machine, share)
    made = plan.timetable
    assert problems(made, network, plan.machine) == []
    assert replay(made, network, values, expected=expected).problems == ()
    wrong = wrong_plans(made, fault, count)
    missed = [
        w
        for w in wrong
        if not problems(w, network, plan.machine)
        and not replay(w, network, values, expected=expected).problems
    ]
    return len(wrong), len(missed)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_no_wrong_plan_is_accepted(fault: Fault) -> None:
    assert unnoticed(fault, PLANS[0], 8) == (8, 0)


@pytest.mark.slow
@pytest.mark.parametrize("case", PLANS, ids=lambda case: f"{case[0]} on {case[1]}")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_none_of_many_wrong_plans_is_accepted(fault: Fault, case: tuple[str, str, int]) -> None:
    tried, missed = unnoticed(fault, case, 50)
    assert missed == 0
    if tried == 0:
        pytest.skip("this plan has no place for that fault")

"""What a layout computes at least is what the tasks made from it compute."""

import pytest
from tests.cascade_cases import prepared

from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.plan_drafts import Candidate
from tilewright.planner import with_memory_limits
from tilewright.program.cascade import PLAIN, Cascade, Strategy
from tilewright.program.layout_cycles import least_compute_cycles
from tilewright.program.lower import lower

ROW_BY_ROW = Strategy(cascades=(Cascade(first=0, last=2, axis=2, step=1),))


@pytest.mark.parametrize("strategy", [PLAIN, ROW_BY_ROW])
@pytest.mark.parametrize("size_bytes", [1536, 2048, 8192])
def test_cycles_are_those_of_the_tasks(size_bytes: int, strategy: Strategy) -> None:
    machine = with_memory_limits(load_machine("ethos_u65_256"), (("sram", size_bytes),))
    on = prepared(load_network("lenet5"), machine)
    lowered = lower(on, "latency", strategy)
    made = Candidate(strategy=strategy, lowered=lowered)
    assert bool(lowered.layout.flows) == bool(strategy.cascades)
    assert least_compute_cycles(on, lowered.layout) == made.compute_cycles


def test_nothing_is_told_of_a_core_without_a_model() -> None:
    on = prepared(load_network("lenet5"), load_machine("edge_tpu_like"))
    assert least_compute_cycles(on, lower(on, "latency").layout) == 0

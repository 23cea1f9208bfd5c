"""Which candidates a search for the best plan makes, and which it leaves out."""

import pytest
from tests.cascade_cases import prepared

from tilewright import plan_drafts
from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine
from tilewright.network.load import load_network
from tilewright.plan_drafts import Drafts
from tilewright.planner import PlanOptions, plan, with_memory_limits
from tilewright.program.cascade import PLAIN
from tilewright.strategy.choose import Aim, ChooseOptions, Chosen, choose
from tilewright.strategy.scene import Scene


def small_machine(size_bytes: int) -> Machine:
    return with_memory_limits(load_machine("ethos_u65_256"), (("sram", size_bytes),))


def test_a_layout_that_moves_too_much_is_not_made_into_a_program() -> None:
    on = prepared(load_network("lenet5"), small_machine(2 * 1024))
    drafts = Drafts(on, PlanOptions(), lambda step: None, {})
    made = drafts.candidate("traffic", PLAIN)
    assert made is not None
    least = on.bounds.traffic_bytes
    assert made.outside_bytes > 1.02 * least
    assert drafts.candidate("traffic", PLAIN, most_bytes=least) is None
    assert drafts.candidate("traffic", PLAIN, most_bytes=2 * made.outside_bytes) is not None
    assert drafts.refusals == []


def test_plain_candidates_serve_where_there_are_no_cascades() -> None:
    options = PlanOptions(objective="traffic", cascades=False)
    found = plan(load_network("lenet5"), small_machine(2 * 1024), options)
    assert found.strategy == PLAIN
    assert found.outside_bytes > 1.02 * found.roofline.traffic_bytes


def test_nothing_is_looked_for_any_further_when_nothing_is_moved_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choices: list[tuple[Aim, int]] = []

    def counted(scene: Scene, aim: Aim, options: ChooseOptions) -> Chosen | None:
        choices.append((aim, options.most_stages))
        return choose(scene, aim, options)

    monkeypatch.setattr(plan_drafts, "choose", counted)
    options = PlanOptions(objective="traffic")
    found = plan(load_network("mobilenetv2"), small_machine(384 * 1024), options)
    assert found.strategy.cascades
    assert found.outside_bytes == found.roofline.traffic_bytes
    assert choices == [("traffic", options.quick_choose.most_stages)]

"""Buffers that never change are looked at all at once: it must find what the walk would find."""

import random
from collections.abc import Iterable, Sequence
from functools import cache

import pytest
from tests.property.test_plan_check import (
    KINDS,
    changed_access,
    dropped_task,
    moved_slot,
    not_given,
    swapped_slots,
)
from tests.timetable_builder import views_draft, views_network

from tilewright import load_machine, load_network
from tilewright.network.graph import Network
from tilewright.planner import plan
from tilewright.program.model import Timetable
from tilewright.replay import check_data
from tilewright.replay.check import problems
from tilewright.replay.check_accesses import Accesses
from tilewright.replay.check_settled import UNSETTLED, Settled, settled_buffers


def nothing_settled(
    timetable: Timetable, accesses: Accesses, order: Sequence[int], unfinished: Iterable[int]
) -> Settled:
    """As if every buffer could change at any time."""
    found = settled_buffers(timetable, accesses, order, unfinished)
    return Settled(
        makers=[UNSETTLED] * len(found.makers),
        boxes=found.boxes,
        walked_tasks=[True] * len(found.walked_tasks),
    )


def assert_same_problems(
    timetable: Timetable, network: Network, monkeypatch: pytest.MonkeyPatch
) -> bool:
    found = problems(timetable, network)
    with monkeypatch.context() as patch:
        patch.setattr(check_data, "settled_buffers", nothing_settled)
        assert problems(timetable, network) == found
    return not found


@cache
def lenet5_plan() -> tuple[Timetable, Network]:
    network = load_network("lenet5")
    return plan(network, load_machine("ethos_u55_128")).timetable, network


@pytest.mark.parametrize("seed", range(8))
def test_in_a_changed_plan_the_same_problems_are_found(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = random.Random(seed)
    accepted = 0
    for turn in range(80):
        timetable = KINDS[turn % len(KINDS)](views_draft().timetable(), generator)
        accepted += assert_same_problems(timetable, views_network(), monkeypatch)
    timetable, network = lenet5_plan()
    for change in (changed_access, moved_slot, swapped_slots, not_given, dropped_task):
        changed = change(timetable, generator)
        accepted += assert_same_problems(changed, network, monkeypatch)
    assert 0 < accepted < 80


def test_most_buffers_of_a_plan_are_settled() -> None:
    timetable, network = lenet5_plan()
    seen: list[Settled] = []
    patch = pytest.MonkeyPatch()

    def watched(*given: object) -> Settled:
        seen.append(settled_buffers(*given))  # type: ignore[arg-type]  # passed through
        return seen[-1]

    with patch.context() as context:
        context.setattr(check_data, "settled_buffers", watched)
        assert problems(timetable, network) == []
    n_settled = sum(maker != UNSETTLED for maker in seen[0].makers)
    assert 2 * n_settled > len(timetable.program.buffers)

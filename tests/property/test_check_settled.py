"""Buffers that never change are looked at all at once: it must find what the walk would find."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal

import pytest
from tests.property.test_plan_check import (
    KINDS,
    changed_access,
    dropped_task,
    moved_slot,
    not_given,
    swapped_slots,
)
from tests.timetable_builder import Draft, rows, views_draft, views_network

from tilewright import load_machine, load_network
from tilewright.network.graph import Network
from tilewright.planner import PlanOptions, plan
from tilewright.program.model import Access, TaskKind, Timetable, View
from tilewright.replay import check_data
from tilewright.replay.check import problems
from tilewright.replay.check_accesses import Accesses
from tilewright.replay.check_settled import Settled, settled_buffers


def nothing_settled(
    timetable: Timetable, accesses: Accesses, order: Sequence[int], unfinished: Iterable[int]
) -> Settled:
    """As if every buffer could change at any time."""
    found = settled_buffers(timetable, accesses, order, unfinished)
    return replace(
        found,
        is_settled=[False] * len(found.is_settled),
        walked_tasks=[True] * len(found.walked_tasks),
    )


def assert_same_problems(
    timetable: Timetable, network: Network | None, monkeypatch: pytest.MonkeyPatch
) -> bool:
    found = problems(timetable, network)
    with monkeypatch.context() as patch:
        patch.setattr(check_data, "settled_buffers", nothing_settled)
        assert problems(timetable, network) == found
    return not found


@cache
def lenet5_plan(objective: Literal["latency", "memory"]) -> tuple[Timetable, Network]:
    network = load_network("lenet5")
    options = PlanOptions(objective=objective)
    return plan(network, load_machine("ethos_u55_128"), options).timetable, network


def random_accesses(generator: random.Random, draft: Draft, buffers: range) -> tuple[Access, ...]:
    found = []
    for _ in range(generator.randint(1, 2)):
        buffer = generator.choice(buffers)
        box = draft.buffers[buffer].box
        (begin, end), columns = box
        low = generator.randrange(begin, end)
        part = (low, generator.randint(low + 1, end)), columns
        found.append(Access(buffer, box if generator.random() < 0.5 else part))
    return tuple(found)


def random_timetable(generator: random.Random) -> Timetable:
    """Copies and ops, one after the other, on buffers that are views of two roots."""
    draft = Draft()
    draft.given.append(draft.buffer("x@dram", rows(0, 8), 0))
    draft.buffer("y@dram", rows(0, 8), 32)
    for root in range(2, 4):
        draft.buffer(f"{'xy'[root - 2]}@cmx[0]", rows(0, 4), 16 * root)
    for _ in range(4):
        root, row = generator.choice([2, 3]), generator.randrange(3)
        tensor = generator.choice("xy")
        draft.buffer(f"{tensor}@cmx[0]", rows(row, row + 2), 0, View(root, (row, 0)))
    for number in range(generator.randint(2, 12)):
        inside, outside = range(2, len(draft.buffers)), range(2)
        kind: TaskKind = generator.choice(["compute", "compute", "load", "store"])
        reads = random_accesses(generator, draft, outside if kind == "load" else inside)
        if kind == "compute":
            writes = random_accesses(generator, draft, inside)
        else:
            target = generator.choice(outside if kind == "store" else inside)
            writes = tuple(Access(target, box) for _, box in reads)
        engine = "core[0]" if kind == "compute" else "dma"
        draft.task(f"op{number % 5}[{number}]", (engine, 4 * number, 4), reads, writes, kind=kind)
    if generator.random() < 0.3:
        draft.results.append(1)
    return draft.timetable()


@pytest.mark.parametrize("seed", range(10))
def test_in_random_programs_the_same_problems_are_found(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = random.Random(seed)
    for _ in range(60):
        assert_same_problems(random_timetable(generator), None, monkeypatch)


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))]
)
def test_in_a_changed_plan_the_same_problems_are_found(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = random.Random(seed)
    accepted = 0
    for turn in range(80):
        timetable = KINDS[turn % len(KINDS)](views_draft().timetable(), generator)
        accepted += assert_same_problems(timetable, views_network(), monkeypatch)
    for change in (changed_access, moved_slot, swapped_slots, not_given, dropped_task):
        timetable, network = lenet5_plan(generator.choice(["latency", "memory"]))
        changed = change(timetable, generator)
        accepted += assert_same_problems(changed, network, monkeypatch)
    assert 0 < accepted < 80


def test_most_buffers_of_a_plan_are_settled() -> None:
    timetable, network = lenet5_plan("memory")
    seen: list[Settled] = []
    patch = pytest.MonkeyPatch()

    def watched(*given: object) -> Settled:
        seen.append(settled_buffers(*given))  # type: ignore[arg-type]  # passed through
        return seen[-1]

    with patch.context() as context:
        context.setattr(check_data, "settled_buffers", watched)
        assert problems(timetable, network) == []
    assert 2 * sum(seen[0].is_settled) > len(timetable.program.buffers)

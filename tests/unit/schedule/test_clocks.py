"""Who waits for whom, however indirectly: what follows from other waits is left out."""

import json
import random
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from tests.reference_data import ABSENT, REFERENCE_DATA

from tilewright.schedule.clocks import Clocks

CASES_FILE = REFERENCE_DATA / "oracle" / "vpux_cases.json"


def reference_cases() -> list[Any]:
    if not CASES_FILE.is_file():
        return [pytest.param({}, marks=pytest.mark.skip(reason=ABSENT))]
    cases = json.loads(CASES_FILE.read_text("utf-8"))["cases"]
    return [pytest.param(c, id=c["id"]) for c in cases if c["kind"] == "deps_reduction"]


def needed(waits: Sequence[Sequence[int]], queues: Sequence[int]) -> list[list[int]]:
    """By turn those of its waits that do not follow from others and from the queues."""
    clocks = Clocks(queues)
    found = []
    for before in waits:
        clocks.begin([])
        found.append(sorted(clocks.add(before)))
    return found


def waits_by_path(waits: Sequence[Sequence[int]], queues: Sequence[int]) -> list[int]:
    """By turn the turns, as bits, that it waits for: over `waits` and the order of its queue."""
    paths: list[int] = []
    for turn, before in enumerate(waits):
        ahead = [other for other in range(turn) if queues[other] == queues[turn]]
        paths.append(0)
        for first in (*before, *ahead):
            paths[turn] |= 1 << first | paths[first]
    return paths


@pytest.mark.parametrize("case", reference_cases())
def test_the_reduction_is_that_of_the_reference(case: dict[str, Any]) -> None:
    names = case["ops"]
    waits = [[names.index(other) for other in case["deps"].get(name, [])] for name in names]
    found = needed(waits, range(len(names)))
    assert {name: [names[n] for n in found[at]] for at, name in enumerate(names)} == case["expect"]


def test_what_follows_from_other_waits_goes() -> None:
    #  0 -> 1 -> 2 -> 3, and shortcuts 0 -> 2, 0 -> 3, 1 -> 3; each in a queue of its own.
    assert needed([[], [0], [0, 1], [2, 1, 0]], range(4)) == [[], [0], [1], [2]]


def test_what_follows_from_the_order_of_a_queue_goes() -> None:
    # 0, 1, 3 and 2, 4 are queues: 4 waits for 1, so for 0, and 3 waits for 0 anyway.
    assert needed([[], [], [], [0], [0, 1]], [0, 0, 1, 0, 1]) == [[], [], [], [], [1]]


def test_what_a_task_waits_for_from_the_start_is_known() -> None:
    clocks = Clocks([0, 1, 2])
    assert clocks.begin([]) == [0, -1, -1]
    assert clocks.begin([0]) == [0, 1, -1]
    assert clocks.begin([1]) == [0, 1, 2]
    assert clocks.add([0, 1]) == []


@pytest.mark.parametrize("seed", range(50))
def test_the_reduction_keeps_all_paths_and_no_wait_too_many(seed: int) -> None:
    generator = random.Random(seed)
    count = generator.randint(1, 14)
    numbers = [generator.randrange(4) for _ in range(count)]
    queues = [sorted(set(numbers)).index(number) for number in numbers]
    waits: list[list[int]] = [[] for _ in range(count)]
    for one, other in combinations(range(count), 2):
        if generator.random() < 0.3:
            waits[other].append(one)
    kept = needed(waits, queues)
    paths = waits_by_path(waits, queues)
    assert waits_by_path(kept, queues) == paths
    for turn, before in enumerate(kept):
        assert set(before) <= set(waits[turn])
        for first in before:
            without = [[f for f in w if (f, t) != (first, turn)] for t, w in enumerate(kept)]
            assert waits_by_path(without, queues) != paths

"""Control edges: who waits for whom because addresses are used again."""

import json
import random
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from tests.reference_data import ABSENT, REFERENCE_DATA
from tests.timetable_builder import views_draft

from tilewright.program.model import Box, Slot
from tilewright.schedule.control_edges import control_edges, reduced
from tilewright.schedule.place_edges import PlaceUse, place_edges

CASES_FILE = REFERENCE_DATA / "oracle" / "vpux_cases.json"


def cases(kind: str) -> list[Any]:
    if not CASES_FILE.is_file():
        return [pytest.param({}, marks=pytest.mark.skip(reason=ABSENT))]
    found = json.loads(CASES_FILE.read_text("utf-8"))["cases"]
    return [pytest.param(case, id=case["id"]) for case in found if case["kind"] == kind]


def reference_use(entry: list[Any]) -> PlaceUse:
    """The reference gives last addresses, and a view as a buffer, offsets and sizes."""
    task, begin, last, role, view = entry
    name, offsets, sizes = view if view is not None else (None, [], [])
    box = tuple((at, at + size) for at, size in zip(offsets, sizes, strict=True))
    return PlaceUse(task, begin, last + 1, role == "P", (name, begin, last), box or None)


@pytest.mark.parametrize("case", cases("control_edges"))
def test_the_edges_are_those_of_the_reference(case: dict[str, Any]) -> None:
    uses = [reference_use(entry) for entry in case["accesses"]]
    assert place_edges(uses) == sorted(tuple(edge) for edge in case["expect"])


@pytest.mark.parametrize("case", cases("deps_reduction"))
def test_the_reduction_is_that_of_the_reference(case: dict[str, Any]) -> None:
    number = {name: at for at, name in enumerate(case["ops"])}
    waits = [[number[n] for n in case["deps"].get(name, [])] for name in case["ops"]]
    kept = reduced(waits)
    assert {name: [case["ops"][n] for n in kept[number[name]]] for name in case["ops"]} == case[
        "expect"
    ]


def read(task: int, begin: int, end: int, holder: str = "", box: Box | None = None) -> PlaceUse:
    return PlaceUse(task, begin, end, False, holder, box)


def write(task: int, begin: int, end: int, holder: str = "", box: Box | None = None) -> PlaceUse:
    return PlaceUse(task, begin, end, True, holder, box)


def test_two_readers_do_not_wait_for_each_other() -> None:
    assert place_edges([write(0, 0, 8), read(1, 0, 8), read(2, 0, 8)]) == [(0, 1), (0, 2)]


def test_a_new_buffer_waits_for_the_last_readers_of_what_it_covers() -> None:
    uses = [write(0, 0, 8, "a"), write(1, 8, 16, "b"), read(2, 0, 8, "a"), read(3, 8, 16, "b")]
    assert place_edges([*uses, write(4, 4, 12, "c")]) == [(0, 2), (1, 3), (2, 4), (3, 4)]


def test_the_second_writer_of_a_new_buffer_waits_as_the_first_does() -> None:
    left, right = ((0, 1),), ((1, 2),)
    uses = [write(0, 0, 8, "a"), write(1, 0, 8, "b", left), write(2, 0, 8, "b", right)]
    assert place_edges(uses) == [(0, 1), (0, 2)]


def test_a_writer_waits_for_a_writer_that_came_between_it_and_a_reader() -> None:
    # 1 reads all; 2 then overwrites half; 3 overwrites all and must wait for 2, not only for 1.
    whole, half = ((0, 8),), ((0, 4),)
    uses = [write(0, 0, 8, "a", whole), read(1, 0, 8, "a", whole), write(2, 0, 8, "a", half)]
    assert place_edges([*uses, write(3, 0, 8, "a", whole)]) == [(0, 1), (1, 2), (2, 3)]


def test_half_overwritten_data_still_counts_where_it_is_left() -> None:
    uses = [write(0, 0, 8, "a", ((0, 8),)), write(1, 0, 8, "a", ((0, 4),))]
    assert place_edges([*uses, read(2, 0, 8, "a", ((4, 8),))]) == [(0, 1), (0, 2)]


def test_a_task_does_not_wait_for_itself() -> None:
    assert place_edges([write(0, 0, 8), read(1, 0, 8), write(1, 0, 8)]) == [(0, 1)]


def reachable(count: int, edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """All pairs that a path connects; tasks are numbered in their order."""
    found: set[tuple[int, int]] = set()
    for second in range(count):
        for first in range(second - 1, -1, -1):
            if (first, second) in edges or any(
                (first, between) in edges and (between, second) in found
                for between in range(first + 1, second)
            ):
                found.add((first, second))
    return found


def must_wait(one: PlaceUse, other: PlaceUse) -> bool:
    """Stated as plainly as possible: shared addresses, a write, and not two parts of one buffer."""
    if one.begin >= other.end or other.begin >= one.end or one.task == other.task:
        return False
    if one.holder != other.holder:
        return True
    if not (one.is_write or other.is_write):
        return False
    if one.box is None or other.box is None:
        return True
    return all(a < d and c < b for (a, b), (c, d) in zip(one.box, other.box, strict=True))


def random_uses(generator: random.Random) -> list[PlaceUse]:
    holders = []
    for name in range(4):
        begin = generator.randrange(6)
        holders.append((name, begin, begin + generator.randint(1, 4)))
    uses = []
    for task in range(generator.randint(2, 9)):
        for _ in range(generator.randint(1, 2)):
            # A holder comes after the one before it, now and then the same again.
            name, begin, end = holders[min(3, task // 2 if generator.random() < 0.8 else task // 3)]
            low = generator.randrange(3)
            box = ((low, generator.randint(low + 1, 3)),) if generator.random() < 0.7 else None
            uses.append(PlaceUse(task, begin, end, generator.random() < 0.5, name, box))
    return uses


@pytest.mark.parametrize("seed", range(400))
def test_every_pair_that_must_wait_is_ordered_and_nothing_else_is_said(seed: int) -> None:
    uses = random_uses(random.Random(seed))
    count = uses[-1].task + 1
    edges = set(place_edges(uses))
    wanted = {
        (one.task, other.task) for one, other in combinations(uses, 2) if must_wait(one, other)
    }
    assert wanted <= reachable(count, edges)
    assert edges <= wanted


def test_what_follows_from_other_dependencies_goes() -> None:
    #  0 -> 1 -> 2 -> 3, and shortcuts 0 -> 2, 0 -> 3, 1 -> 3; numbers need not be in order.
    assert reduced([[], [0], [0, 1], [0, 1, 2]]) == ((), (0,), (1,), (2,))
    assert reduced([[1, 2], [], [1]]) == ((2,), (), (1,))


def test_a_circle_of_dependencies_is_refused() -> None:
    with pytest.raises(ValueError, match="task 0 waits for itself through others"):
        reduced([[1], [0]])


@pytest.mark.parametrize("seed", range(50))
def test_the_reduction_keeps_all_paths_and_no_edge_too_many(seed: int) -> None:
    generator = random.Random(seed)
    count = generator.randint(1, 12)
    numbers = generator.sample(range(count), count)
    waits: list[list[int]] = [[] for _ in range(count)]
    edges = {
        (one, other) for one, other in combinations(range(count), 2) if generator.random() < 0.4
    }
    for one, other in sorted(edges):
        waits[numbers[other]].append(numbers[one])
    place = {number: at for at, number in enumerate(numbers)}
    paths = reachable(count, edges)

    def kept(window: int) -> set[tuple[int, int]]:
        found = reduced(waits, window=window)
        return {(place[a], place[number]) for number in range(count) for a in found[number]}

    exact = kept(count)
    assert reachable(count, exact) == paths
    assert all((a, b) not in reachable(count, exact - {(a, b)}) for a, b in exact)
    assert exact <= kept(3) <= edges


def test_edges_of_a_timetable_are_between_users_of_the_same_bytes() -> None:
    timetable = views_draft().timetable()
    names = [task.name for task in timetable.program.tasks]
    found = [f"{names[a]} > {names[b]}" for a, b in control_edges(timetable)]
    # On core[0] relu[0], relu[1], add[0], add[1], exp[0] follow each other anyway. So the first of
    # each pair waits for its copy; exp overwrites x, which neg reads beside them, and reads what
    # neg wrote; and the result leaves when it is there.
    assert found == [
        "load x > relu[0]",
        "load x > neg[0]",
        "load w > add[0]",
        "neg[0] > exp[0]",
        "exp[0] > store e",
    ]
    assert "relu[0] > relu[1]" not in found


def test_tasks_that_wait_anyway_and_those_at_the_same_time_get_no_edge() -> None:
    draft = views_draft()
    exp, store = draft.tasks[7], draft.tasks[8]
    draft.tasks[7] = replace(exp, after=(5,))
    draft.tasks[8] = replace(store, after=(7,))
    draft.slots[2] = Slot(start_cycle=17, end_cycle=20)
    edges = control_edges(draft.timetable())
    assert (7, 8) not in edges, "it waits already"
    assert (5, 7) not in edges
    assert (4, 7) in edges, "neg[0] runs beside the others"
    assert not any(2 in edge and 7 in edge for edge in edges), "relu[0] runs into exp[0]"

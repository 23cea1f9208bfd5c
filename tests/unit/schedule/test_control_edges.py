"""Control edges: who waits for whom because addresses are used again."""

import random
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from tests.place_runs import PlaceUse, place_edges
from tests.reference_data import reference_cases
from tests.timetable_builder import Draft, views_draft

from tilewright.program.model import Access, Box, Slot
from tilewright.schedule.control_edges import control_edges


def reference_use(entry: list[Any]) -> PlaceUse:
    """The reference gives last addresses, and a view as a buffer, offsets and sizes."""
    task, begin, last, role, view = entry
    name, offsets, sizes = view if view is not None else (None, [], [])
    box = tuple((at, at + size) for at, size in zip(offsets, sizes, strict=True))
    return PlaceUse(task, begin, last + 1, role == "P", (name, begin, last), box or None)


@pytest.mark.parametrize("case", reference_cases("control_edges"))
def test_the_edges_are_those_of_the_reference(case: dict[str, Any]) -> None:
    uses = [reference_use(entry) for entry in case["accesses"]]
    assert place_edges(uses) == sorted(tuple(edge) for edge in case["expect"])


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


def test_tasks_that_take_no_time_are_ordered_by_whom_they_wait_for() -> None:
    # At cycle 0 the second one writes before the first one reads, as only `after` says.
    draft = Draft()
    x = draft.buffer("x@cmx[0]", ((0, 8),), 0)
    reader = draft.task("exp[0]", ("core[0]", 0, 0), (Access(x, ((0, 8),)),), ())
    writer = draft.task("neg[0]", ("core[0].vector", 0, 0), (), (Access(x, ((0, 8),)),))
    draft.tasks[reader] = replace(draft.tasks[reader], after=(writer,))
    assert control_edges(draft.timetable()) == ()
    draft.tasks[reader] = replace(draft.tasks[reader], after=())
    assert control_edges(draft.timetable()) == ((reader, writer),)


def test_a_circle_of_tasks_that_take_no_time_is_refused() -> None:
    draft = Draft()
    one = draft.task("exp[0]", ("core[0]", 0, 0), (), ())
    other = draft.task("neg[0]", ("core[0].vector", 0, 0), (), ())
    draft.tasks[one] = replace(draft.tasks[one], after=(other,))
    draft.tasks[other] = replace(draft.tasks[other], after=(one,))
    with pytest.raises(ValueError, match="task 0 waits for itself through others"):
        control_edges(draft.timetable())


def test_no_edge_between_tasks_that_run_at_the_same_time() -> None:
    # `neg` still writes x when `exp` starts to read it; `abs` writes it before and has ended.
    draft, whole = Draft(), ((0, 8),)
    x = draft.buffer("x@cmx[0]", whole, 0)
    first = draft.task("abs[0]", ("dma", 0, 2), (), (Access(x, whole),))
    draft.task("neg[0]", ("core[0].vector", 2, 4), (), (Access(x, whole),))
    draft.task("exp[0]", ("core[0]", 5, 2), (Access(x, whole),), ())
    assert control_edges(draft.timetable()) == ((first, first + 1),)


def test_boxes_with_gaps_count_for_all_addresses_of_their_buffer() -> None:
    # The row alone is bytes 0 to 4 of x; but the column has gaps, so both are taken as boxes of
    # all 16 bytes, and y, which gets the last 8 of them, waits for both.
    draft = Draft()
    x = draft.buffer("x@cmx[0]", ((0, 4), (0, 4)), 0)
    y = draft.buffer("y@cmx[0]", ((0, 8),), 8)
    row = draft.task("exp[0]", ("core[0]", 0, 2), (), (Access(x, ((0, 1), (0, 2))),))
    column = draft.task("neg[0]", ("core[0].vector", 0, 2), (), (Access(x, ((0, 4), (2, 4))),))
    load = draft.task("load y", ("dma", 4, 4), (), (Access(y, ((0, 8),)),), kind="load")
    assert control_edges(draft.timetable()) == ((row, load), (column, load))


def test_boxes_without_gaps_count_for_their_own_addresses() -> None:
    draft = Draft()
    x = draft.buffer("x@cmx[0]", ((0, 4), (0, 4)), 0)
    y = draft.buffer("y@cmx[0]", ((0, 8),), 8)
    draft.task("exp[0]", ("core[0]", 0, 2), (), (Access(x, ((0, 1), (0, 2))),))
    rows = draft.task("neg[0]", ("core[0].vector", 0, 2), (), (Access(x, ((1, 4), (0, 4))),))
    load = draft.task("load y", ("dma", 4, 4), (), (Access(y, ((0, 8),)),), kind="load")
    assert control_edges(draft.timetable()) == ((rows, load),)

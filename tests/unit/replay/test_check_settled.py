"""Which buffers need no walk: a given one, its copy, and what an op makes of that.

Buffer 0 is x in the dram, given; task 0 copies it to buffer 1, and task 1 makes buffer 2, y, of
which task 2 reads a part.
"""

from dataclasses import replace

import pytest
from tests.timetable_builder import Draft, rows

from tilewright.program.model import Access, View
from tilewright.replay.check_accesses import accesses_of
from tilewright.replay.check_data import start_order
from tilewright.replay.check_settled import GIVEN, Settled, settled_buffers


@pytest.fixture
def draft() -> Draft:
    draft = Draft()
    for number, name in enumerate(("x@dram", "x@cmx[0]", "y@cmx[0]")):
        draft.buffer(name, rows(0, 4), 16 * number)
    draft.given.append(0)
    whole = rows(0, 4)
    draft.task("load", ("dma", 0, 4), (Access(0, whole),), (Access(1, whole),), kind="load")
    draft.task("relu[0]", ("core[0]", 4, 4), (Access(1, whole),), (Access(2, whole),))
    draft.task("user[0]", ("core[0]", 8, 4), (Access(2, rows(1, 3)),), ())
    return draft


def settled(draft: Draft, unfinished: tuple[int, ...] = ()) -> Settled:
    timetable = draft.timetable()
    accesses = accesses_of(timetable.program)
    return settled_buffers(timetable, accesses, start_order(timetable), unfinished)


def test_a_copy_holds_what_was_given_and_an_op_makes_its_own(draft: Draft) -> None:
    found = settled(draft)
    assert found.is_settled == [True, True, True]
    assert found.walked_tasks == [False, False, False]
    # The copy reads and writes, relu reads and writes, the user reads.
    assert found.makers[:5] == [GIVEN, GIVEN, GIVEN, 1, 1]
    assert found.first_access == [0, 2, 4]


def test_what_is_read_outside_of_what_was_written_is_not_settled(draft: Draft) -> None:
    half = rows(0, 2)
    reads, writes = (Access(0, half),), (Access(1, half),)
    draft.tasks[0] = replace(draft.tasks[0], reads=reads, writes=writes)
    found = settled(draft)
    assert found.is_settled == [True, False, True]
    assert found.walked_tasks == [True, True, False]


def test_what_is_read_before_it_is_written_is_not_settled(draft: Draft) -> None:
    draft.slots[2] = replace(draft.slots[2], start_cycle=2, end_cycle=6)
    assert settled(draft).is_settled == [True, True, False]


def test_a_result_must_be_written_as_a_whole(draft: Draft) -> None:
    draft.results.append(2)
    assert settled(draft).is_settled == [True, True, True]
    relu = draft.tasks[1]
    draft.tasks[1] = replace(relu, writes=(Access(2, rows(0, 3)),))
    assert settled(draft).is_settled == [True, True, False]


@pytest.mark.parametrize(("begin", "end"), [(1, 3), (2, 3), (3, 4)])
def test_parts_must_fill_what_is_read_and_not_overlap(draft: Draft, begin: int, end: int) -> None:
    # The user reads rows 1 and 2; row 1 and something else are written.
    relu = draft.tasks[1]
    parts = Access(2, rows(1, 2)), Access(2, rows(begin, end))
    draft.tasks[1] = replace(relu, writes=parts)
    assert settled(draft).is_settled[2] == ((begin, end) == (2, 3))


def test_what_is_written_over_is_not_settled_nor_its_copies(draft: Draft) -> None:
    draft.buffer("y@dram", rows(0, 4), 64)
    whole = rows(0, 4)
    draft.task("store", ("dma", 12, 4), (Access(2, whole),), (Access(3, whole),), kind="store")
    assert settled(draft).is_settled == [True, True, True, True]
    draft.task("more[0]", ("core[0]", 16, 4), (), (Access(2, rows(0, 1)),))
    assert settled(draft).is_settled == [True, True, False, False]


def test_a_copy_of_another_part_is_not_settled(draft: Draft) -> None:
    draft.buffer("x@cmx[0]", rows(0, 4), 48)
    reads, writes = (Access(0, rows(0, 2)),), (Access(3, rows(2, 4)),)
    draft.task("load again", ("dma", 4, 4), reads, writes, kind="load")
    assert settled(draft).is_settled == [True, True, True, False]


def test_a_copy_of_another_tensor_is_not_settled(draft: Draft) -> None:
    draft.buffer("z@cmx[0]", rows(0, 4), 48)
    whole = rows(0, 4)
    draft.task("load z", ("dma", 4, 4), (Access(0, whole),), (Access(3, whole),), kind="load")
    assert settled(draft).is_settled == [True, True, True, False]


def test_a_partial_sum_is_not_settled(draft: Draft) -> None:
    assert settled(draft, unfinished=(1,)).is_settled == [True, True, False]


def test_what_is_read_under_another_shape_is_not_settled(draft: Draft) -> None:
    view = draft.buffer("v@cmx[0]", ((0, 16),), 32, View(2))
    draft.task("reader[0]", ("core[0]", 20, 4), (Access(view, ((0, 16),)),), ())
    assert settled(draft).is_settled == [True, True, False, False]


@pytest.mark.parametrize(("start", "row", "is_right"), [(20, 0, True), (6, 1, False), (6, 3, True)])
def test_another_view_may_only_write_over_what_is_read_no_more(
    draft: Draft, start: int, row: int, is_right: bool
) -> None:
    # The user reads rows 1 and 2 of y at cycle 8; at 6 or at 20 one row is written as another one.
    view = draft.buffer("z@cmx[0]", rows(0, 1), 32 + 4 * row, View(2, (row, 0)))
    draft.task("other[0]", ("core[0].vector", start, 1), (), (Access(view, rows(0, 1)),))
    assert settled(draft).is_settled[2:] == [is_right, is_right]


def test_what_is_written_under_another_shape_is_not_settled(draft: Draft) -> None:
    # Elements 6 and 7 of the view are row 1, columns 2 and 3 of its root, written over at cycle 16.
    flat = Access(draft.buffer("v@cmx[0]", ((0, 16),), 32, View(2)), ((0, 16),))
    draft.task("writer[0]", ("core[0]", 12, 4), (), (flat,))
    draft.task("other[0]", ("core[0]", 16, 4), (), (Access(2, ((1, 2), (2, 4))),))
    draft.task("reader[0]", ("core[0]", 20, 4), (flat,), ())
    relu = draft.tasks[1]
    draft.tasks[1] = replace(relu, writes=(Access(2, rows(2, 4)), Access(2, rows(0, 1))))
    draft.tasks[2] = replace(draft.tasks[2], reads=(Access(2, rows(2, 3)),))
    assert settled(draft).is_settled == [True, True, False, False]

"""Which buffers never change: a given one, its copy, and what an op makes of that.

Buffer 0 is x in the dram, given; task 0 copies it to buffer 1, and task 1 makes buffer 2, y.
"""

from dataclasses import replace

import pytest
from tests.timetable_builder import Draft, rows

from tilewright.program.model import Access, View
from tilewright.replay.check_accesses import accesses_of
from tilewright.replay.check_data import start_order
from tilewright.replay.check_settled import GIVEN, UNSETTLED, settled_buffers


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


def makers(draft: Draft, unfinished: tuple[int, ...] = ()) -> list[int]:
    timetable = draft.timetable()
    accesses = accesses_of(timetable.program)
    return settled_buffers(timetable, accesses, start_order(timetable), unfinished).makers


def test_a_copy_holds_what_was_given_and_an_op_makes_its_own(draft: Draft) -> None:
    assert makers(draft) == [GIVEN, GIVEN, 1]


def test_what_is_read_outside_of_what_was_written_is_not_settled(draft: Draft) -> None:
    half = rows(0, 2)
    reads, writes = (Access(0, half),), (Access(1, half),)
    draft.tasks[0] = replace(draft.tasks[0], reads=reads, writes=writes)
    assert makers(draft) == [GIVEN, UNSETTLED, 1]


def test_what_is_read_before_it_is_written_is_not_settled(draft: Draft) -> None:
    draft.slots[2] = replace(draft.slots[2], start_cycle=2, end_cycle=6)
    assert makers(draft) == [GIVEN, GIVEN, UNSETTLED]


def test_what_is_written_twice_is_not_settled_nor_its_copies(draft: Draft) -> None:
    draft.buffer("y@dram", rows(0, 4), 64)
    whole = rows(0, 4)
    draft.task("store", ("dma", 12, 4), (Access(2, whole),), (Access(3, whole),), kind="store")
    assert makers(draft) == [GIVEN, GIVEN, 1, 1]
    draft.task("more[0]", ("core[0]", 16, 4), (), (Access(2, rows(0, 1)),))
    assert makers(draft) == [GIVEN, GIVEN, UNSETTLED, UNSETTLED]


def test_a_copy_of_another_part_is_not_settled(draft: Draft) -> None:
    draft.buffer("x@cmx[0]", rows(0, 4), 48)
    reads, writes = (Access(0, rows(0, 2)),), (Access(3, rows(2, 4)),)
    draft.task("load again", ("dma", 4, 4), reads, writes, kind="load")
    assert makers(draft) == [GIVEN, GIVEN, 1, UNSETTLED]


def test_a_copy_of_another_tensor_is_not_settled(draft: Draft) -> None:
    draft.buffer("z@cmx[0]", rows(0, 4), 48)
    whole = rows(0, 4)
    draft.task("load z", ("dma", 4, 4), (Access(0, whole),), (Access(3, whole),), kind="load")
    assert makers(draft) == [GIVEN, GIVEN, 1, UNSETTLED]


def test_a_partial_sum_is_not_settled(draft: Draft) -> None:
    assert makers(draft, unfinished=(1,)) == [GIVEN, GIVEN, UNSETTLED]


@pytest.mark.parametrize("is_given", [False, True])
def test_what_is_touched_or_given_through_a_view_is_not_settled(
    draft: Draft, is_given: bool
) -> None:
    view = draft.buffer("v@cmx[0]", ((0, 16),), 32, View(2))
    if is_given:
        draft.given.append(view)
    else:
        draft.task("reader[0]", ("core[0]", 20, 4), (Access(view, ((0, 16),)),), ())
    assert makers(draft) == [GIVEN, GIVEN, UNSETTLED, UNSETTLED]

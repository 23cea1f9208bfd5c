"""Plans that are just right, and those that are wrong by one: a byte, a task, an axis."""

from dataclasses import replace

import numpy as np
import pytest
from tests.draft_changes import change_task, messages, move_to, number, task
from tests.timetable_builder import CMX, DRAM, Draft, rows, views_draft

from tilewright.program.model import Access, Slot, View
from tilewright.replay.check_boxes import FEW_BOXES, fill
from tilewright.replay.check_needed import around


@pytest.fixture
def draft() -> Draft:
    return views_draft()


@pytest.mark.parametrize("wrong", [-1, 9])
def test_of_several_tasks_to_wait_for_only_the_one_that_is_not_there_is_named(
    draft: Draft, wrong: int
) -> None:
    assert len(draft.tasks) == 9
    change_task(draft, "store e", replace(task(draft, "store e"), after=(7, wrong)))
    assert messages(draft) == [f"task store e waits for task {wrong}, which does not exist"]


def test_an_engine_that_does_nothing_but_two_tasks_at_once() -> None:
    draft = Draft()
    x = draft.buffer("x@cmx[0]", ((0, 4),), 0)
    draft.given.append(x)
    for name, start in (("first", 0), ("second", 4)):
        draft.task(name, ("core[0]", start, 5), (Access(x, ((0, 4),)),), ())
    assert messages(draft) == [
        "first (cycles 0 to 5) and second (cycles 4 to 9) are both on core[0] instance 0 "
        "at cycles 4 to 5"
    ]
    draft.slots[1] = Slot(start_cycle=5, end_cycle=10)
    assert messages(draft) == []


@pytest.mark.parametrize(
    ("read", "write", "is_same"), [((0, 2), (2, 4), False), ((1, 3), (1, 3), True)]
)
def test_a_copy_along_the_only_axis(
    read: tuple[int, int], write: tuple[int, int], is_same: bool
) -> None:
    draft = Draft()
    far, near = (draft.buffer(name, ((0, 4),), 0) for name in ("x@dram", "x@cmx[0]"))
    draft.given.append(far)
    reads, writes = (Access(far, (read,)),), (Access(near, (write,)),)
    draft.task("load x", ("dma", 0, 5), reads, writes, kind="load")
    assert [m.endswith("another part of the tensor") for m in messages(draft)] == (
        [] if is_same else [True]
    )


@pytest.mark.parametrize(
    ("reserved", "expected"),
    [((64, 72), []), ((64, 73), ["64 to 73"]), ((88, 96), []), ((87, 96), ["87 to 96"])],
)
def test_a_buffer_may_lie_between_reserved_ranges(
    draft: Draft, reserved: tuple[int, int], expected: list[str]
) -> None:
    """w at 72 to 88."""
    draft.spaces = (DRAM, replace(CMX, reserved=(reserved,)))
    move_to(draft, "w@cmx[0]", 72)
    assert [message.split("reserved bytes ")[-1] for message in messages(draft)] == expected


def test_a_view_in_a_buffer_that_begins_further_on() -> None:
    """Rows 4 to 8 of four bytes lie at 32; row 6 of them two rows further on."""
    draft = Draft()
    root = draft.buffer("c@cmx[0]", rows(4, 8), 32)
    draft.buffer("d@cmx[0]", rows(0, 2), 32 + 2 * 4, View(root, (6, 0)))
    assert messages(draft) == []
    move_to(draft, "d@cmx[0]", 32 + 6 * 4)
    assert messages(draft) == [
        "buffer d@cmx[0], a view of c@cmx[0], has address 56, and its first element lies at 40 of "
        "cmx[0]"
    ]


def test_a_buffer_of_nothing_is_in_nobodys_way(draft: Draft) -> None:
    """It lies in the middle of x while that is read."""
    nothing = draft.buffer("n@cmx[0]", ((0, 0),), 8)
    relu = task(draft, "relu[0]")
    change_task(draft, "relu[0]", replace(relu, reads=(*relu.reads, Access(nothing, ((0, 0),)))))
    assert number(draft, "n@cmx[0]") == nothing
    assert messages(draft) == []


def test_boxes_that_reach_below_do_not_fill_one() -> None:
    """As many elements as the box has, one of them before it begins."""
    boxes = [((begin, begin + 1),) for begin in range(-1, FEW_BOXES + 3)]
    whole = ((0, FEW_BOXES + 4),)
    assert len(boxes) == FEW_BOXES + 4
    assert not fill(whole, boxes)
    assert fill(whole, [*boxes[1:], ((FEW_BOXES + 3, FEW_BOXES + 4),)])


def test_the_box_around_lattices_reaches_from_the_first_to_the_last_of_all() -> None:
    one = np.array([2, 5]), np.array([4])
    other = np.array([3]), np.array([0, 1, 2])
    assert around([one, other]) == ((2, 6), (0, 5))

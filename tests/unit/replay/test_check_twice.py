"""Tasks on arrays that write an element to two places of one scratchpad."""

from dataclasses import replace

from tests.timetable_builder import CMX, DRAM, Draft

from tilewright.program.model import Access
from tilewright.replay.check_accesses import accesses_of
from tilewright.replay.check_twice import twice_problems

SECOND = replace(CMX, name="cmx[1]", core=1)
WHOLE, FRONT, BACK = (((0, 8),), ((0, 4),), ((4, 8),))


def said(*targets: tuple[str, tuple[tuple[int, int], ...]], mapping: int | None = 0) -> list[str]:
    """What is said of a task that writes boxes of y to buffers of their own."""
    draft = Draft(spaces=(DRAM, CMX, SECOND))
    writes = tuple(
        Access(draft.buffer(f"y@{space}", box, 8 * at), box)
        for at, (space, box) in enumerate(targets)
    )
    draft.task("relu[0]", ("core[0]", 0, 4), (), writes)
    draft.tasks[0] = replace(draft.tasks[0], mapping=mapping)
    program = draft.timetable().program
    return [problem.message for problem in twice_problems(program, accesses_of(program))]


def test_two_copies_in_one_scratchpad_are_one_too_many() -> None:
    expected = (
        "task relu[0] writes elements of [4:8] of y to cmx[0] twice, in the time of once",
        "task relu[0] writes elements of [0:8] of y to cmx[0] twice, in the time of once",
    )
    (message,) = said(("cmx[0]", WHOLE), ("cmx[0]", BACK))
    assert message in expected


def test_a_copy_for_each_of_two_scratchpads_is_none_too_many() -> None:
    assert said(("cmx[0]", WHOLE), ("cmx[1]", WHOLE)) == []


def test_parts_that_share_nothing_are_no_copies() -> None:
    assert said(("cmx[0]", FRONT), ("cmx[0]", BACK)) == []


def test_a_vector_unit_takes_the_time_of_both() -> None:
    assert said(("cmx[0]", WHOLE), ("cmx[0]", WHOLE), mapping=None) == []

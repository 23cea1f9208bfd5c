"""What a plan begins with: inputs and constants, where they come from, and how often."""

from dataclasses import replace

import pytest
from tests.draft_changes import number
from tests.timetable_builder import Draft, rows, views_draft, views_network

from tilewright.program.model import Access, Space
from tilewright.replay.check import problems

SENSOR = Space(name="sensor", memory="sensor", kind="source", size_bytes=0, rereadable=False)


@pytest.fixture
def draft() -> Draft:
    return views_draft()


def found(draft: Draft) -> list[str]:
    return [p.message for p in problems(draft.timetable(), views_network())]


def test_nothing_lies_in_a_scratchpad_from_the_start(draft: Draft) -> None:
    """Without this, a plan could leave out all of its loads."""
    load = number(draft, "load w")
    del draft.tasks[load], draft.slots[load]
    draft.given.append(number(draft, "w@cmx[0]"))
    assert found(draft) == [
        "buffer w@cmx[0] in cmx[0] (scratchpad) is given, and only what lies in an external memory "
        "or a source is there from the start"
    ]


def test_what_is_computed_is_not_given(draft: Draft) -> None:
    """The result is there before anything was computed, and the store only writes it again."""
    draft.given.append(number(draft, "e@dram"))
    assert found(draft) == ["buffer e@dram is given, and e has to be computed first"]


def sensing(draft: Draft, *, rereadable: bool = False) -> None:
    """x comes from a sensor, its first three rows and then the rest."""
    at, near = number(draft, "x@dram"), number(draft, "x@cmx[0]")
    draft.spaces = (*draft.spaces, replace(SENSOR, rereadable=rereadable))
    draft.buffers[at] = replace(draft.buffers[at], name="x@sensor", space="sensor")
    draft.addresses[at] = 0
    load = draft.tasks[0]
    part, rest = rows(0, 3), rows(3, 4)
    draft.tasks[0] = replace(
        load, reads=(Access(at, part),), writes=(Access(near, part),), cycles=4
    )
    draft.slots[0] = replace(draft.slots[0], end_cycle=4)
    reads, writes = (Access(at, rest),), (Access(near, rest),)
    draft.task("load rest", ("dma", 4, 3), reads, writes, kind="load")
    for task in ("load w", "relu[0]", "relu[1]", "neg[0]", "add[0]", "add[1]", "exp[0]", "store e"):
        slot = draft.slots[number(draft, task)]
        later = replace(slot, start_cycle=slot.start_cycle + 3, end_cycle=slot.end_cycle + 3)
        draft.slots[number(draft, task)] = later


def test_what_comes_once_may_be_read_in_parts(draft: Draft) -> None:
    sensing(draft)
    assert found(draft) == []


@pytest.mark.parametrize("rereadable", [False, True])
def test_what_comes_once_is_read_once(draft: Draft, rereadable: bool) -> None:
    sensing(draft, rereadable=rereadable)
    at = number(draft, "load rest")
    again = rows(2, 4)
    rest = draft.tasks[at]
    reads, writes = (Access(rest.reads[0].buffer, again),), (Access(rest.writes[0].buffer, again),)
    draft.tasks[at] = replace(rest, reads=reads, writes=writes)
    once = (
        "tasks load x and load rest both read [2:3, 0:4] of buffer x@sensor, and what sensor "
        "brings comes once"
    )
    assert found(draft) == ([] if rereadable else [once])

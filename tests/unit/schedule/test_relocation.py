"""Spills that only move a result."""

import json
from typing import Any

import pytest
from tests.reference_data import ABSENT, REFERENCE_DATA

from tilewright.schedule.relocation import Piece, Step, StepKind, relocated

CASES_FILE = REFERENCE_DATA / "oracle" / "vpux_cases.json"
KINDS: dict[str, StepKind] = {"OP": "compute", "SW": "spill_write", "SR": "spill_read"}


def cases() -> list[Any]:
    if not CASES_FILE.is_file():
        return [pytest.param({}, marks=pytest.mark.skip(reason=ABSENT))]
    found = json.loads(CASES_FILE.read_text("utf-8"))["cases"]
    return [pytest.param(c, id=c["id"]) for c in found if c["kind"] == "spill_relocation"]


@pytest.mark.parametrize("case", cases())
def test_a_relocation_ends_as_in_the_reference(case: dict[str, Any]) -> None:
    names = sorted({p for s in case["steps"] for _, p in (*s.get("ins", ()), *s.get("outs", ()))})
    address = {name: 100 * at for at, name in enumerate(names)}

    def pieces(entries: list[list[str]]) -> tuple[Piece, ...]:
        return tuple(Piece(b, address[place], address[place] + 100) for b, place in entries)

    log = [
        Step(
            name=str(step["op"]),
            kind=KINDS[step["kind"]],
            start_cycle=step["b"],
            end_cycle=step["e"],
            reads=pieces(step.get("ins", [])),
            writes=pieces(step.get("outs", [])),
        )
        for step in case["steps"]
    ]
    left = relocated(log)
    expect = case["expect"]
    assert len(left) == expect["remaining"]
    (last,) = (step for step in left if step.name == "2")
    assert last.writes[0].begin == address[expect["op2_output_place"]]
    assert last.reads[0].begin == address[expect["op2_input_place"]]
    assert last.is_in_place == expect["inplace"]


OLD, NEW = Piece("r", 0, 10), Piece("r", 50, 60)


def step(name: str, start: int, reads: tuple[Piece, ...], writes: tuple[Piece, ...]) -> Step:
    kinds: dict[str, StepKind] = {"save": "spill_write", "fetch": "spill_read"}
    kind = kinds.get(name, "compute")
    end = start + 1
    return Step(name=name, kind=kind, start_cycle=start, end_cycle=end, reads=reads, writes=writes)


MAKE = step("make", 1, (Piece("x", 20, 30),), (OLD,))
SAVE, FETCH = step("save", 2, (OLD,), ()), step("fetch", 3, (), (NEW,))
USE = step("use", 4, (NEW,), (Piece("y", 0, 10),))


def names(log: tuple[Step, ...]) -> list[str]:
    return [entry.name for entry in log]


def test_the_result_is_written_where_it_would_have_been_fetched_to() -> None:
    left = relocated([MAKE, SAVE, FETCH, USE])
    assert names(left) == ["make", "use"]
    assert left[0].writes == (NEW,)


def test_a_spill_in_whose_course_something_else_starts_stays() -> None:
    between = step("other", 3, (Piece("x", 20, 30),), ())
    late = step("fetch", 4, (), (NEW,))
    log = [MAKE, SAVE, between, late]
    assert names(relocated(log)) == ["make", "save", "other", "fetch"]


def test_a_spill_stays_while_the_new_place_is_in_use() -> None:
    guest = step("guest", 2, (Piece("z", 55, 58),), ())
    assert len(relocated([MAKE, SAVE, guest, FETCH])) == 4


def test_a_spill_stays_if_another_task_reads_the_old_place() -> None:
    reader = step("reader", 2, (OLD,), ())
    assert len(relocated([MAKE, SAVE, reader, FETCH])) == 4


def test_a_spill_stays_if_the_buffer_has_two_writers() -> None:
    first = step("first", 0, (), (OLD,))
    assert len(relocated([first, MAKE, SAVE, FETCH])) == 4


def test_a_spill_stays_if_the_new_place_overlaps_what_is_overwritten() -> None:
    again = step("make", 1, (OLD,), (OLD,))
    near = step("fetch", 3, (), (Piece("r", 5, 15),))
    assert len(relocated([again, SAVE, near])) == 3


def test_a_spill_stays_if_the_new_place_is_an_input_of_the_maker() -> None:
    reader = step("make", 1, (Piece("x", 52, 54),), (OLD,))
    assert len(relocated([reader, SAVE, FETCH])) == 3


def test_a_result_that_moves_a_little_is_relocated_too() -> None:
    near = Piece("r", 5, 15)
    left = relocated([MAKE, SAVE, step("fetch", 3, (), (near,))])
    assert [entry.writes for entry in left] == [(near,)]

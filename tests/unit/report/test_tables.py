"""Piped tables, laid out without rich: the same as rich lays them out, or left to it."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.report.tables import (
    PIPED_WIDTH,
    Grid,
    Heading,
    View,
    heading,
    plain_text,
    show,
    table,
)
from tilewright.report.terminal import rich_text

CELLS = st.text("ab 1.,%µ×…─", max_size=12).map(str.strip)
COLUMNS = st.tuples(st.sampled_from(["", ">", "?", "?>"]), CELLS).map("".join)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    grid = table(*draw(st.lists(COLUMNS, min_size=1, max_size=6)))
    for _ in range(draw(st.integers(0, 5))):
        grid.add_row(*(draw(CELLS) for _ in grid.columns))
    return grid


HEADINGS = st.builds(Heading, CELLS, st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
VIEWS = st.lists(st.one_of(grids(), HEADINGS), min_size=1, max_size=3)


@pytest.fixture(autouse=True)
def piped(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def example() -> View:
    grid = table("op", ">cycles", "?note")
    grid.add_row("conv1", "1,024", "")
    grid.add_row("relu", "7", "cheap")
    return [heading("lenet on wren", [("ops", "2"), ("energy", "5 pJ")]), grid]


def test_a_view_is_a_title_with_facts_and_columns_three_spaces_apart() -> None:
    assert plain_text(example()) == (
        "lenet on wren\n"
        "ops     2\n"
        "energy  5 pJ\n"
        "\n"
        " op      cycles   note\n"
        " ──────────────────────\n"
        " conv1    1,024\n"
        " relu         7   cheap\n"
        "\n"
    )


@given(VIEWS)
def test_plain_text_is_what_rich_writes(view: View) -> None:
    assert plain_text(view) == rich_text(view)


@pytest.mark.parametrize(
    "text", ["x" * PIPED_WIDTH, "漢字", "a\tb", "a\nb", "a\u0301"], ids=lambda text: repr(text[:3])
)
def test_what_must_be_wrapped_or_measured_is_left_to_rich(text: str) -> None:
    grid = table("op")
    grid.add_row(text)
    assert plain_text([grid]) is None
    assert plain_text([heading("title", [("name", text)])]) is None


def test_a_view_is_written_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    show(example())
    assert capsys.readouterr().out == plain_text(example())


def test_colour_that_is_forced_is_had(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not sys.stdout.isatty()
    show(example())
    assert "\x1b[1m" in capsys.readouterr().out

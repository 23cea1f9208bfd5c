"""Tables for people, alike everywhere: plain text when piped, with emphasis on a terminal."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

PIPED_WIDTH = 220
_LONGEST_NAME = 44
_ONE_CELL_EACH = re.compile(r"[ -~\xa1-\xac\xae-\xff…─]*")
"""Texts of which every character is as wide as every other."""


@dataclass
class Grid:
    """Rows under columns; made into a table when the width to fill is known.

    A column `>name` is right-aligned; one that starts with `?` is left out where it does not fit,
    the last of them first.
    """

    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def add_row(self, *cells: str) -> None:
        """Add a row, one cell per column."""
        self.rows.append(list(cells))


@dataclass
class Heading:
    """A title and a few lines of `what: value`."""

    title: str
    facts: Sequence[tuple[str, str]]


View = Sequence[Heading | Grid]
"""Parts to show one below the other."""


def table(*columns: str) -> Grid:
    """An empty table."""
    return Grid(list(columns))


def shortened(name: str) -> str:
    """A name cut at the front, where generated names are least telling."""
    return name if len(name) <= _LONGEST_NAME else f"…{name[-_LONGEST_NAME + 1 :]}"


def heading(title: str, facts: Sequence[tuple[str, str]]) -> Heading:
    """A title and a few lines of `what: value`."""
    return Heading(title, facts)


def show(view: View) -> None:
    """Write a view to standard output."""
    text = None if _needs_rich() else plain_text(view)
    if text is None:
        from tilewright.report.terminal import rich_text

        text = rich_text(view)
    sys.stdout.write(_writable(text, sys.stdout.encoding))


def _writable(text: str, encoding: str | None) -> str:
    """The text with `u` for `µ`, as in `uJ`, where an encoding does not have that letter."""
    try:
        "µ".encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return text.replace("µ", "u")
    return text


def plain_text(view: View) -> str | None:
    """A view as rich lays it out where nothing must be wrapped or left out; None elsewhere.

    Most output is piped and fits; it need not wait for rich, which takes 40 ms to import.
    """
    lines = [line for part in view for line in _lines(part)]
    if any(len(line) > PIPED_WIDTH or not _ONE_CELL_EACH.fullmatch(line) for line in lines):
        return None
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _needs_rich() -> bool:
    """Whether rich would write escape codes, or lines of other characters than ours."""
    forced = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    has_lines = (sys.stdout.encoding or "").lower().startswith("utf")
    return sys.stdout.isatty() or not has_lines or any(name in os.environ for name in forced)


def _lines(part: Heading | Grid) -> Iterator[str]:
    if isinstance(part, Heading):
        yield part.title
        width = max((len(name) for name, _ in part.facts), default=0)
        yield from (f"{name.ljust(width)}  {value}" for name, value in part.facts)
        return
    columns = [column.removeprefix("?") for column in part.columns]
    adjusts = [str.rjust if column.startswith(">") else str.ljust for column in columns]
    names = [column.removeprefix(">") for column in columns]
    sizes = [max(map(len, column)) for column in zip(names, *part.rows, strict=True)]
    yield ""
    for place, row in enumerate([names, *part.rows]):
        cells = zip(row, sizes, adjusts, strict=True)
        yield " " + "   ".join(adjust(cell, size) for cell, size, adjust in cells) + " "
        if place == 0:
            yield " " + "─" * max(1, sum(sizes) + 3 * (len(sizes) - 1)) + " "
    yield ""

"""Tables for the terminal, alike everywhere; plain text when piped."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_PIPED_WIDTH = 220
_LONGEST_NAME = 44


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


View = Sequence[RenderableType | Grid]
"""Parts to show one below the other."""


def table(*columns: str) -> Grid:
    """An empty table."""
    return Grid(list(columns))


def shortened(name: str) -> str:
    """A name cut at the front, where generated names are least telling."""
    return name if len(name) <= _LONGEST_NAME else f"…{name[-_LONGEST_NAME + 1 :]}"


def heading(title: str, facts: Sequence[tuple[str, str]]) -> RenderableType:
    """A title and a few lines of `what: value`."""
    grid = Table.grid(padding=(0, 2))
    for name, value in facts:
        grid.add_row(Text(name, style="dim"), Text(value))
    return Group(Text(title, style="bold"), grid)


def show(view: View) -> None:
    """Write a view to standard output."""
    terminal = sys.stdout.isatty()
    console = Console(
        file=sys.stdout, width=None if terminal else _PIPED_WIDTH, highlight=False, soft_wrap=False
    )
    with console.capture() as capture:
        for part in view:
            console.print(_table(part, console) if isinstance(part, Grid) else part)
    lines = (line.rstrip() if not terminal else line for line in capture.get().splitlines())
    sys.stdout.write("\n".join(lines) + "\n")


def _table(grid: Grid, console: Console) -> Table:
    """The table with as many of its optional columns as the console is wide enough for."""
    kept = list(range(len(grid.columns)))
    made = _made(grid, kept)
    unlimited = console.options.update(width=10_000)
    for place in reversed(range(len(grid.columns))):
        if Measurement.get(console, unlimited, made).maximum <= console.width:
            break
        if grid.columns[place].startswith("?"):
            kept.remove(place)
            made = _made(grid, kept)
    return made


def _made(grid: Grid, kept: Sequence[int]) -> Table:
    result = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for place in kept:
        name = grid.columns[place].removeprefix("?")
        right = name.startswith(">")
        result.add_column(
            name.removeprefix(">"),
            justify="right" if right else "left",
            no_wrap=right,
            overflow="fold",
        )
    for row in grid.rows:
        result.add_row(*(Text(row[place]) for place in kept))
    return result

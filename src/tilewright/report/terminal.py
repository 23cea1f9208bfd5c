"""Views laid out by rich: emphasis on a terminal, and columns that fit its width."""

import sys
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from tilewright.printable import printable
from tilewright.report.tables import PIPED_WIDTH, Grid, Heading, View


def rich_text(view: View) -> str:
    """A view as text for standard output, with escape codes on a terminal."""
    terminal = sys.stdout.isatty()
    console = Console(
        file=sys.stdout, width=None if terminal else PIPED_WIDTH, highlight=False, soft_wrap=False
    )
    with console.capture() as capture:
        for part in view:
            console.print(_table(part, console) if isinstance(part, Grid) else _heading(part))
    lines = (line.rstrip() if not terminal else line for line in capture.get().splitlines())
    return "\n".join(lines) + "\n"


def _heading(heading: Heading) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for name, value in heading.facts:
        grid.add_row(Text(printable(name), style="dim"), Text(printable(value)))
    return Group(Text(printable(heading.title), style="bold"), grid)


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
        result.add_row(*(Text(printable(row[place])) for place in kept))
    return result

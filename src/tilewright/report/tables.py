"""Tables for the terminal, alike everywhere; plain text when piped."""

import sys
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

_PIPED_WIDTH = 220
_LONGEST_NAME = 44


def shortened(name: str) -> str:
    """A name cut at the front, where generated names are least telling."""
    return name if len(name) <= _LONGEST_NAME else f"…{name[-_LONGEST_NAME + 1 :]}"


def table(*columns: str) -> Table:
    """An empty table; a column whose name starts with `>` is right-aligned."""
    result = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        right = column.startswith(">")
        result.add_column(
            column.removeprefix(">"),
            justify="right" if right else "left",
            no_wrap=right,
            overflow="fold",
        )
    return result


def heading(title: str, facts: Sequence[tuple[str, str]]) -> RenderableType:
    """A title and a few lines of `what: value`."""
    grid = Table.grid(padding=(0, 2))
    for name, value in facts:
        grid.add_row(Text(name, style="dim"), Text(value))
    return Group(Text(title, style="bold"), grid)


def stacked(*parts: RenderableType) -> RenderableType:
    """Parts one below the other."""
    return Group(*parts)


def show(view: RenderableType) -> None:
    """Write a view to standard output."""
    terminal = sys.stdout.isatty()
    console = Console(
        file=sys.stdout, width=None if terminal else _PIPED_WIDTH, highlight=False, soft_wrap=False
    )
    with console.capture() as capture:
        console.print(view)
    lines = (line.rstrip() if not terminal else line for line in capture.get().splitlines())
    sys.stdout.write("\n".join(lines) + "\n")

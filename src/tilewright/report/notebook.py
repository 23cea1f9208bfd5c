"""Networks, machines, mappings and plans as HTML for notebooks."""

from dataclasses import dataclass
from html import escape
from typing import Any

from tilewright.report.tables import Grid, Heading, View, plain_text

_MOST_ROWS = 200
_STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px;margin:0.4em 0"


@dataclass(frozen=True, repr=False)
class Summary:
    """A view that `print` and a notebook show as its tables."""

    view: View

    def __str__(self) -> str:
        text = plain_text(self.view)
        if text is None:
            from tilewright.report.terminal import rich_text

            text = rich_text(self.view)
        return text.rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return view_html(self.view)


def view_html(view: View) -> str:
    """What a terminal shows, as HTML that follows the notebook's theme."""
    return "".join(_part(part) for part in view)


def notebook_html(value: Any) -> str:
    """The HTML of a network, a machine, a mapped network or a plan."""
    from tilewright.machine.model import Machine
    from tilewright.mapping.network import MappedNetwork
    from tilewright.network.graph import Network

    match value:
        case Network():
            from tilewright.report.network import network_view

            return view_html(network_view(value))
        case Machine():
            from tilewright.report.machine import machine_view

            return view_html(machine_view(value))
        case MappedNetwork():
            from tilewright.report.mapping import mapping_view

            return view_html(mapping_view(value))
        case _:
            from tilewright.report.plan import plan_view

            return view_html(plan_view(value))


def _part(part: Heading | Grid) -> str:
    if isinstance(part, Heading):
        rows = "".join(
            f'<tr><td style="text-align:left;opacity:0.7">{escape(name)}</td>'
            f'<td style="text-align:left">{escape(value)}</td></tr>'
            for name, value in part.facts
        )
        return f'<h4>{escape(part.title)}</h4><table style="{_STYLE}">{rows}</table>'
    names = [column.removeprefix("?") for column in part.columns]
    sides = ["right" if name.startswith(">") else "left" for name in names]
    head = _row("th", [name.removeprefix(">") for name in names], sides)
    body = "".join(_row("td", row, sides) for row in part.rows[:_MOST_ROWS])
    left = len(part.rows) - _MOST_ROWS
    more = f"<p>and {left:,} more</p>" if left > 0 else ""
    return f'<table style="{_STYLE}"><thead>{head}</thead><tbody>{body}</tbody></table>{more}'


def _row(tag: str, cells: list[str], sides: list[str]) -> str:
    made = "".join(
        f'<{tag} style="text-align:{side};padding:2px 8px">{escape(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{made}</tr>"

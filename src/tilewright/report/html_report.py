"""`report.html`: a plan to look at, in one file that needs no network and no server."""

import json
from html import escape
from importlib import resources

from tilewright.planner import Plan
from tilewright.report.html_data import report_data

SCRIPTS = (
    "data.js",
    "viewport.js",
    "detail.js",
    "timeline.js",
    "memory.js",
    "ops.js",
    "charts.js",
    "machine.js",
    "cascades.js",
    "network.js",
    "why.js",
    "together.js",
    "main.js",
)
"""In the order in which they need each other."""


def report_html(plan: Plan) -> str:
    """The whole report as one page."""
    data = json.dumps(report_data(plan), separators=(",", ":"), ensure_ascii=False)
    page = _file("page.html")
    title = f"{plan.network.name} on {plan.machine.name}"
    scripts = "\n".join(_file(name) for name in SCRIPTS)
    parts = {
        "{{title}}": escape(title),
        "{{style}}": _file("report.css"),
        "{{script}}": f"(() => {{\n'use strict';\n{scripts}}})();",
        # `</script>` and `<!--` in a name would end the element early.
        "{{data}}": data.replace("<", "\\u003c"),
    }
    for mark, text in parts.items():
        page = page.replace(mark, text)
    return page


def _file(name: str) -> str:
    return resources.files("tilewright.report").joinpath("html", name).read_text("utf-8")

from html.parser import HTMLParser

import pytest
from tests.report_plans import small_plan

from tilewright.machine.load import load_machine
from tilewright.mapping.network import map_network
from tilewright.network.load import load_network
from tilewright.report.notebook import view_html
from tilewright.report.tables import heading, table


class Outline(HTMLParser):
    """Counts cells, and fails where elements do not close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells = 0
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.cells += tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    assert found.open == []
    return found


def test_a_view_becomes_tables_with_nothing_left_unescaped() -> None:
    grid = table("name", ">size")
    grid.add_row("<b>&", "1")
    found = outline(view_html([heading("a < b", [("what", "<script>")]), grid]))
    assert found.cells == 2 + 2 + 2
    assert "a < b" in found.text
    assert "<script>" in found.text


@pytest.mark.parametrize("name", ["network", "machine", "mappings", "plan"])
def test_what_a_notebook_shows_is_named_in_it(name: str) -> None:
    network, machine = load_network("lenet5"), load_machine("npu_37xx")
    shown = {
        "network": lambda: network._repr_html_(),
        "machine": lambda: machine._repr_html_(),
        "mappings": lambda: map_network(network, machine)._repr_html_(),
        "plan": lambda: small_plan("lenet5")._repr_html_(),
    }[name]()
    found = outline(shown)
    assert found.cells > 20
    assert ("npu_37xx" if name == "machine" else "lenet5") in found.text

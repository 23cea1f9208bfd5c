"""The page as text; what it does is tested in a browser."""

import json
import re
from dataclasses import replace
from math import fsum
from pathlib import Path
from typing import Any

import pytest
from tests.report_plans import small_plan
from tests.small_machines import Small, small_machine

from tilewright.network.nests import elementwise
from tilewright.network.zoo import layers
from tilewright.planner import Plan, plan
from tilewright.report import html_report
from tilewright.report.html_data import energy_by_operand, report_data
from tilewright.report.html_report import SCRIPTS, report_html
from tilewright.report.record import record_of

FOLDER = Path(html_report.__file__).parent / "html"
FUNCTION = re.compile(r"^(?:async )?function (\w+)\(.*?^}", re.DOTALL | re.MULTILINE)


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_every_script_is_part_of_the_page() -> None:
    assert sorted(SCRIPTS) == sorted(path.name for path in FOLDER.glob("*.js"))


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_files_and_functions_are_short_and_ask_for_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) < 500
    for function in FUNCTION.finditer(text):
        assert len(function[0].splitlines()) <= 60, function[1]
    links = re.findall(r"\bhttps?://[^'\"` ]+", text)
    assert links in ([], ["http://www.w3.org/2000/svg"])


def test_names_cannot_break_out_of_the_page() -> None:
    made = small_plan("lenet5")
    bad = "</script><script>alert(1)</script><!--"
    page = report_html(replace(made, network=replace(made.network, name=bad)))
    assert bad not in page
    assert data_of(page)["network"] == bad


def test_the_data_has_every_task_and_every_placed_buffer() -> None:
    made = small_plan("lenet5")
    data = data_of(report_html(made))
    slots = made.timetable.slots
    assert data["tasks"]["name"] == [task.name for task in made.program.tasks]
    assert data["tasks"]["start"] == [slot.start_cycle for slot in slots]
    assert data["tasks"]["cycles"] == [task.cycles for task in made.program.tasks]
    assert len({len(column) for column in data["tasks"].values()}) == 1
    assert len({len(column) for column in data["buffers"].values()}) == 1
    roots = [n for n, buffer in enumerate(made.program.buffers) if buffer.view is None]
    assert data["buffers"]["number"] == roots
    assert data["buffers"]["address"] == [made.timetable.addresses[n] for n in roots]


@pytest.mark.parametrize("machine", ["npu_37xx", "ethos_u55_128", "tpu_like", "seneca"])
def test_energy_by_operand_adds_up_to_the_energy_by_memory(machine: str) -> None:
    made = small_plan("lenet5", machine)
    rows = energy_by_operand(made, record_of(made, {}))
    found = {row["memory"]: fsum(row["operands"].values()) for row in rows}
    for memory, energy in made.energy_pj.items():
        assert found.get(memory, 0.0) == pytest.approx(energy, rel=1e-9, abs=1e-3)


def test_a_transfer_of_weights_and_inputs_is_shared_by_their_bytes() -> None:
    made = small_plan("ds_cnn")
    loads = [task for task in made.program.tasks if task.kind == "load"]
    roles = made.network.by_name
    mixed = {roles[made.program.buffers[a.buffer].tensor].role for a in loads[0].reads}
    # One transfer brings what the first op reads and one the rest, each byte once, at one price.
    assert (len(loads), mixed) == (2, {"input", "constant"})
    sizes = {"input": 0, "constant": 0}
    for access in (access for task in loads for access in task.reads):
        tensor = roles[made.program.buffers[access.buffer].tensor]
        sizes[tensor.role] += tensor.size_bytes
    rows = energy_by_operand(made, record_of(made, {}))
    found = next(row["operands"] for row in rows if row["memory"] == "ddr")
    assert found["W"] / found["I"] == pytest.approx(sizes["constant"] / sizes["input"], rel=1e-9)


@pytest.mark.parametrize("machine", ["npu_37xx", "ethos_u55_128", "tpu_like", "seneca"])
def test_no_figure_of_the_headline_is_below_its_bound(machine: str) -> None:
    made: Plan = small_plan("lenet5", machine)
    for card in report_data(made)["cards"]:
        assert card["value"] >= card["bound"], card["name"]
        also = card.get("also", card)
        assert card["value"] >= also["bound"] >= card["bound"], card["name"]


def test_a_scratchpad_that_holds_nothing_is_no_figure_of_the_headline() -> None:
    net = layers.draft("no weights", 8)
    data = layers.given(net, "x", (1, 4, 6, 6))
    net.builder.op("relu", "relu", elementwise(data.shape), [data.name], {"y": (8, "")})
    made = plan(net.builder.finish(["y"]), small_machine(Small(kind="split")))
    assert made.peak_bytes["weights"] == 0
    names = [card["name"] for card in report_data(made)["cards"]]
    assert "Peak of inputs" in names
    assert "Peak of weights" not in names

"""Figures of a plan file that somebody changed."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tilewright.cli import tilewright
from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.planner import plan
from tilewright.report.plan_files import plan_json
from tilewright.report.plan_totals import total_problems
from tilewright.report.record import read_record

Data = dict[str, Any]


@cache
def text() -> str:
    return json.dumps(plan_json(plan(load_network("lenet5"), load_machine("edge_tpu_like"))))


def said(folder: Path, change: Callable[[Data], object]) -> list[str]:
    data: Data = json.loads(text())
    change(data)
    (folder / "plan.json").write_text(json.dumps(data), "utf-8")
    return [problem.message for problem in total_problems(read_record(folder))]


def first_mapped(data: Data) -> Data:
    found: Data = next(task for task in data["task_list"] if "mapping" in task)
    return found


def longer(data: Data) -> None:
    """The last task ends a cycle later."""
    max(data["task_list"], key=lambda task: task["end_cycle"])["end_cycle"] += 1


def another_byte(data: Data) -> None:
    """The first task reads a byte more than it did."""
    data["task_list"][0]["charges"][0][1] += 1


def higher(data: Data) -> None:
    """The buffer that reaches highest in a scratchpad lies a byte higher."""
    inside = [b for b in data["buffer_list"] if b["space"] == "sram_32KB"]
    max(inside, key=lambda buffer: buffer["address"] + buffer["size_bytes"])["address"] += 1


def test_the_file_as_it_was_written_is_right(tmp_path: Path) -> None:
    assert said(tmp_path, lambda data: None) == []


@pytest.mark.parametrize("key", ["cycles", "energy_pj"])
def test_a_total_of_another_number(tmp_path: Path, key: str) -> None:
    def change(data: Data) -> None:
        data["totals"][key] *= 0.999

    (message,) = said(tmp_path, change)
    assert message.startswith(f"totals.{key} of the plan file is ")


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (longer, ["cycles"]),
        (another_byte, ["traffic_bytes"]),
        (higher, ["peak_bytes"]),
        (lambda data: data["totals"]["peak_bytes"].pop("dram"), ["peak_bytes"]),
        (lambda data: data["totals"].pop("energy_pj_by_memory"), ["energy_pj_by_memory"]),
    ],
)
def test_a_total_that_other_tasks_come_to(
    tmp_path: Path, change: Callable[[Data], object], keys: list[str]
) -> None:
    found = said(tmp_path, change)
    assert [message.split()[0] for message in found] == [f"totals.{key}" for key in keys]


def test_no_totals_at_all(tmp_path: Path) -> None:
    assert said(tmp_path, lambda data: data.pop("totals")) == ["the plan file has no totals"]


def test_a_tile_that_is_quicker_than_its_mapping(tmp_path: Path) -> None:
    def change(data: Data) -> None:
        first_mapped(data)["end_cycle"] -= 1

    assert [m.partition(" cycles, and its ")[2][:13] for m in said(tmp_path, change)] == [
        "mapping takes"
    ]


def test_a_tile_that_is_cheaper_than_its_mapping(tmp_path: Path) -> None:
    def change(data: Data) -> None:
        first_mapped(data)["charges"] = []

    assert said(tmp_path, change)[-1].partition(", and its ")[2].startswith("mapping costs")


def test_a_replay_refuses_a_file_with_another_total(tmp_path: Path) -> None:
    said(tmp_path, lambda data: data["totals"].update(cycles=1))
    found = CliRunner().invoke(tilewright, ["replay", str(tmp_path), "--json"])
    assert found.exit_code == 4
    assert "totals.cycles of the plan file is 1" in found.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(tasks=1), "tasks of the plan file is 1, and there are "),
        (lambda data: data.update(buffers=1), "buffers of the plan file is 1, and there are "),
        (
            lambda data: data["bounds"].update(cycles=10**6),
            "bounds.cycles of the plan is 1000000, and the plan takes ",
        ),
        (
            lambda data: data["bounds"]["peak_bytes"].update(dram=10**6),
            "bounds.peak_bytes.dram of the plan is 1000000, and the plan takes ",
        ),
        (
            lambda data: data["bounds"].update(path_cycles=10**6),
            "bounds.path_cycles of the plan is 1000000, and the plan takes ",
        ),
        (
            lambda data: data["bounds"].update(roofline_cycles=10**6),
            "bounds.roofline_cycles of the plan is 1000000, and the plan takes ",
        ),
        (
            lambda data: data["bounds"]["engine_cycles"].update(dma=10**6),
            "bounds.engine_cycles.dma of the plan is 1000000, and the plan takes ",
        ),
        (
            lambda data: data["bounds"].update(traffic_bytes=10**6),
            "bounds.traffic_bytes of the plan is 1000000, and the plan takes ",
        ),
        (
            lambda data: data["bounds"]["machine"].update(cycles=10**6),
            "bounds.machine.cycles of the plan is 1000000, and the plan takes ",
        ),
        (
            lambda data: data["bounds"]["machine"].update(energy_pj=10**12),
            "bounds.machine.energy_pj of the plan is 1000000000000, and the plan takes ",
        ),
        (
            lambda data: data["bounds"]["these_tiles"]["engine_cycles"].update(dma=10**6),
            "bounds.these_tiles.engine_cycles.dma of the plan is 1000000, and the plan takes ",
        ),
        (
            lambda data: data["bounds"]["these_lives"]["peak_bytes"].update(dram=10**6),
            "bounds.these_lives.peak_bytes.dram of the plan is 1000000, and the plan takes ",
        ),
    ],
)
def test_counts_and_bounds_that_no_plan_goes_with(
    tmp_path: Path, change: Callable[[Data], object], message: str
) -> None:
    found = said(tmp_path, change)
    assert found
    assert all(message in text for text in found)


def test_figures_of_another_op(tmp_path: Path) -> None:
    data: Data = json.loads(text())
    data["op_list"][0]["macs"] -= 1
    (tmp_path / "plan.json").write_text(json.dumps(data), "utf-8")
    (problem,) = total_problems(read_record(tmp_path), load_network("lenet5"))
    # Six kernels of 5 x 5 at 28 x 28 places.
    assert problem.message == (
        "op conv1 of the plan file has loops and products ({'B': 1, 'K': 6, 'C': 1, 'OY': 28, "
        "'OX': 28, 'FY': 5, 'FX': 5}, 117599), not ({'B': 1, 'K': 6, 'C': 1, 'OY': 28, 'OX': 28, "
        "'FY': 5, 'FX': 5}, 117600)"
    )


def test_a_tensor_that_the_network_has_otherwise(tmp_path: Path) -> None:
    data: Data = json.loads(text())
    data["tensors"][0]["bits"] = 4
    (tmp_path / "plan.json").write_text(json.dumps(data), "utf-8")
    (problem,) = total_problems(read_record(tmp_path), load_network("lenet5"))
    assert problem.message == (
        "tensor input of the plan file is ((1, 1, 32, 32), 4, 'input'), not "
        "((1, 1, 32, 32), 8, 'input')"
    )

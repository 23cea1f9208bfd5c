"""Plan files that tell of a larger, faster or cheaper machine than they were made for."""

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
from tilewright.planner import PlanOptions, plan
from tilewright.report.plan_files import plan_json
from tilewright.report.plan_machine import machine_problems
from tilewright.report.record import read_record

Data = dict[str, Any]


@cache
def text(*limits: tuple[str, int]) -> str:
    network, machine = load_network("lenet5"), load_machine("edge_tpu_like")
    return json.dumps(plan_json(plan(network, machine, PlanOptions(memory_limits=limits))))


def said(folder: Path, made: str, change: Callable[[Data], object]) -> list[str]:
    data: Data = json.loads(made)
    change(data)
    (folder / "plan.json").write_text(json.dumps(data), "utf-8")
    found = machine_problems(read_record(folder), load_machine("edge_tpu_like"))
    return [problem.message for problem in found]


def named(data: Data, key: str, name: str) -> Data:
    found: Data = next(part for part in data[key] if part["name"] == name)
    return found


def way(data: Data) -> Data:
    ends = "dram", "sram_2MB"
    found: Data = next(r for r in data["routes"] if (r["source"], r["target"]) == ends)
    return found


def test_the_file_as_it_was_written_tells_of_its_machine(tmp_path: Path) -> None:
    assert said(tmp_path, text(), lambda data: None) == []


def test_sizes_that_a_plan_was_asked_for_are_the_machines(tmp_path: Path) -> None:
    twice = text(("sram_32KB", 64 * 1024))
    assert said(tmp_path, twice, lambda data: None) == []
    assert said(tmp_path, twice, lambda data: data["source"].pop("memory_limits")) == [
        "space sram_32KB of the plan file has size_bytes 65536, and that of edge_tpu_like "
        "size_bytes 32768"
    ]
    assert said(
        tmp_path, twice, lambda data: data["source"].update(memory_limits={"attic": 8})
    ) == ["--memory-limit: machine 'edge_tpu_like' has no memory 'attic'"]


def test_a_scratchpad_may_be_smaller(tmp_path: Path) -> None:
    def smaller(data: Data) -> None:
        named(data, "spaces", "sram_2MB")["size_bytes"] -= 1

    assert said(tmp_path, text(), smaller) == []


# The port of that machine's DRAM has 64 bits, and so has the engine that is assumed.
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda data: way(data).update(bits_per_cycle=128),
            "route from dram to sram_2MB of the plan file has bits_per_cycle 128, and that of "
            "edge_tpu_like bits_per_cycle 64",
        ),
        (
            lambda data: way(data).update(ports=[]),
            "route from dram to sram_2MB of the plan file has ports (), and that of edge_tpu_like "
            "ports ('dram.rw_port_1',)",
        ),
        (
            lambda data: way(data).update(source="sram_2MB"),
            "route from sram_2MB to sram_2MB of the plan file: edge_tpu_like has none",
        ),
        (
            lambda data: named(data, "engines", "dma").update(count=2),
            "engine dma of the plan file has count 2, and that of edge_tpu_like count 1",
        ),
        (
            lambda data: named(data, "engines", "dma").update(name="second"),
            "engine second of the plan file: edge_tpu_like has none",
        ),
        (
            lambda data: named(data, "spaces", "sram_2MB").update(size_bytes=2**21 + 1),
            "space sram_2MB of the plan file has size_bytes 2097153, and that of edge_tpu_like "
            "size_bytes 2097152",
        ),
    ],
)
def test_another_machine_is_told(
    tmp_path: Path, change: Callable[[Data], object], told: str
) -> None:
    assert said(tmp_path, text(), change) == [told]


def test_a_replay_refuses_wider_ways(tmp_path: Path) -> None:
    said(tmp_path, text(), lambda data: way(data).update(bits_per_cycle=128))
    found = CliRunner().invoke(tilewright, ["replay", str(tmp_path)])
    assert found.exit_code == 4
    assert "dram to sram_2MB of the plan file has bits_per_cycle 128" in found.stderr


def test_a_replay_says_when_it_has_no_machine_to_compare_with(tmp_path: Path) -> None:
    said(tmp_path, text(), lambda data: data["source"].update(machine="elsewhere.yaml"))
    runner = CliRunner()
    assert "its file was not found" in runner.invoke(tilewright, ["replay", str(tmp_path)]).stdout
    found = runner.invoke(tilewright, ["replay", str(tmp_path), "--json"])
    assert json.loads(found.stdout)["machine"] is None

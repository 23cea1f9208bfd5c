"""`tilewright fit`: the ladder, what a machine makes of it, and the plan that proves it."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.ladder_cases import ONE_MEMORY

import tilewright
from tilewright.cli import tilewright as command
from tilewright.machine.limits import with_memory_limits
from tilewright.report.fit import answer
from tilewright.strategy.ladder.fit import Fit
from tilewright.strategy.ladder.remedies import remedies
from tilewright.strategy.ladder.rungs import with_rung


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["fit", *arguments])


@cache
def figures(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def rungs(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {rung["name"]: rung for rung in data["rungs"]}


def test_the_ladder_has_the_documented_keys() -> None:
    data = figures("notes_cnn")
    keys = {"name", "activation_bytes", "total_bytes", "macs_factor", "fits"}
    assert all(keys <= set(rung) for rung in data["rungs"])
    assert [rung["total_bytes"] for rung in data["rungs"]] == [
        82_368,
        77_216,
        56_320,
        49_156,
        49_052,
        48_736,
        46_368,
    ]
    assert {rung["fits"] for rung in data["rungs"]} == {None}


def too_small() -> Fit:
    """A network on two memories in which it has no plan at all."""
    sizes = (("input_memory", 256), ("weight_output_memory", 256))
    machine = with_memory_limits(tilewright.load_machine("npe8"), sizes)
    return tilewright.fit(tilewright.load_network("notes_cnn"), machine)


def test_without_a_dram_two_memories_can_never_hold_the_weights() -> None:
    data = figures("notes_cnn", "--on", "npe8")
    resident = [rung for rung in data["rungs"] if rung["name"] != "cascades"]
    assert not any(rung["fits"] or rung["fits_together"] for rung in resident)
    assert answer(too_small())[0] == (
        "no: weights alone take 46,368 B, a hard floor, and all scratchpads (input_memory "
        "256 B, weight_output_memory 256 B) hold 512 B, 45,856 B less"
    )


@pytest.mark.parametrize(
    ("network", "machine"),
    [("lenet5", "ethos_u55_128"), ("notes_cnn", "npe8"), ("ds_cnn", "ethos_u55_128")],
)
def test_the_last_rung_is_the_plan_in_the_least_memory(network: str, machine: str) -> None:
    data = figures(network, "--on", machine)
    sizes = [rung["total_bytes"] for rung in data["rungs"]]
    assert sizes == sorted(sizes, reverse=True)
    options = tilewright.PlanOptions(objective="memory")
    made = tilewright.plan(network, machine, options=options)
    pads = [m.name for m in made.machine.memories if m.role == "scratchpad"]
    least = data["rungs"][-1]
    assert (least["name"], least["fits"]) == ("cascades", True)
    assert least["total_bytes"] == sum(made.peak_bytes[pad] for pad in pads)
    assert 0 < least["activation_bytes"] <= least["total_bytes"]
    assert sum(alive["size_bytes"] for alive in least["alive"]) == least["activation_bytes"]


def test_a_plan_that_takes_more_than_lines_with_all_weights_is_no_rung() -> None:
    found = tilewright.fit("lenet5", "ethos_u55_128")
    *resident, least = found.ladder.rungs
    sizes = (70_000, 63_000, 1_000)
    ladders = [with_rung(resident, replace(least, total_bytes=size)) for size in sizes]
    names = [[rung.name for rung in rungs[-2:]] for rungs in ladders]
    assert names == [
        ["line_buffered_cropped", "weights"],
        ["cascades", "weights"],
        ["weights", "cascades"],
    ]


def test_what_would_make_it_fit_is_told() -> None:
    found = {r["kind"]: r for r in reversed(figures("notes_cnn", "--on", "npe8")["remedies"])}
    # Four cores hold a quarter of the filters each, and all line buffers: 46,368 / 4 + 2,684.
    assert found["cores"]["what"].startswith("4 such cores")
    assert found["cores"]["total_bytes"] == 4 * (11_592 + 2_684)
    assert found["memory"]["total_bytes"] == 49_052


def test_weights_of_eight_bit_fit_the_union_but_not_the_partition() -> None:
    network, machine = tilewright.load_network("notes_cnn"), tilewright.load_machine("npe8")
    listed = remedies(tilewright.fit(network, machine))
    (narrow,) = [r for r in listed if r.kind == "weight_bits" and "8 bit" in r.what]
    # 23,184 B of weights and 2,788 B of activations are 25,972 B; cropped 104 B less.
    assert "25,972 B" in narrow.what
    assert narrow.total_bytes == 23_184 + 2_684
    assert narrow.verdict.fits_together
    assert not narrow.verdict.fits
    assert narrow.verdict.memory == "weight_output_memory"
    assert narrow.verdict.short_bytes == 23_184 + 2_684 - 16_384


def test_what_fits_is_ranked_first() -> None:
    fits = [remedy["fits"] for remedy in figures("notes_cnn", "--on", "npe8")["remedies"]]
    assert fits == sorted(fits, reverse=True)
    assert fits[0]


def test_eight_bits_halve_the_ladder() -> None:
    assert rungs(figures("notes_cnn", "--bits", "8"))["line_buffered"]["total_bytes"] == 24_578


@pytest.mark.slow
def test_with_one_memory_that_is_just_large_enough_it_runs(tmp_path: Path) -> None:
    data = figures("notes_cnn", "--on", str(ONE_MEMORY), "-o", str(tmp_path))
    assert data["first"] == "line_buffered_cropped"
    assert data["plan"]["peak_bytes"] == {"memory": 49_052}
    assert (tmp_path / "report.html").is_file()
    saved = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    assert saved["totals"]["peak_bytes"] == {"memory": 49_052}
    replayed = CliRunner().invoke(command, ["replay", str(tmp_path), "--json"])
    assert replayed.exit_code == 0, replayed.output
    assert json.loads(replayed.stdout)["agrees"]


@pytest.mark.parametrize("network", ["resnet18", "mobilenetv2", "tiny_yolov2"])
def test_line_buffers_take_a_part_of_the_activations(network: str) -> None:
    found = rungs(figures(network, "--bits", "8"))
    lines, whole = found["line_buffered"], found["layer_by_layer"]
    assert lines["activation_bytes"] * 4 < whole["activation_bytes"]
    assert lines["granularity"] == "row"


def test_the_table_says_what_is_alive() -> None:
    text = run("notes_cnn").output
    assert "alive at the peak of line_buffered_cropped" in text
    assert "pool1, accumulators, 14 pieces" in text


def test_a_plan_needs_a_machine(golden: Callable[[str, str], None]) -> None:
    result = run("notes_cnn", "-o", "folder")
    assert result.exit_code == 2
    golden("errors/fit_without_machine.txt", result.stderr)


def test_where_no_rung_fits_weights_may_still_come_when_needed(tmp_path: Path) -> None:
    data = figures("notes_cnn", "--on", "npe8", "-o", str(tmp_path))
    assert data["first"] == "cascades"
    assert "weights come in pieces from weights" in data["answer"][0]
    assert sum(data["plan"]["peak_bytes"].values()) == data["rungs"][-1]["total_bytes"]
    assert all(size <= 16_384 for size in data["plan"]["peak_bytes"].values())
    assert (tmp_path / "plan.json").is_file()


def test_a_machine_with_a_dram_gets_the_plan_of_a_rung(tmp_path: Path) -> None:
    data = figures("lenet5", "--on", "ethos_u55_128", "-o", str(tmp_path))
    assert data["first"] == "layer_by_layer"
    replayed = CliRunner().invoke(command, ["replay", str(tmp_path), "--json"])
    assert json.loads(replayed.stdout)["agrees"]

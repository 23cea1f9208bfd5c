"""`tilewright map`, from files and names to tables, JSON and saved mappings."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tilewright import InfeasibleError, MapOptions, SearchOptions, load_machine, load_network
from tilewright import map_network as mapped
from tilewright.cli import tilewright
from tilewright.errors import Problem
from tilewright.machine.load import library_names, machine_path
from tilewright.network.zoo import names

TOTALS = {"cycles", "energy_pj", "macs", "candidates"}
OF_AN_OP = {
    "name",
    "cycles",
    "energy_pj",
    "compute_cycles",
    "stall_cycles",
    "onload_cycles",
    "offload_cycles",
    "bound_by",
    "mapping",
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(tilewright, ["map", *arguments])


def result(*arguments: str) -> dict[str, Any]:
    outcome = run(*arguments, "--json")
    assert outcome.exit_code == 0, outcome.output
    data: dict[str, Any] = json.loads(outcome.stdout)
    return data


def test_json_has_the_promised_keys() -> None:
    data = result("lenet5", "--on", "edge_tpu_like")
    assert data["totals"].keys() >= TOTALS
    assert all(op.keys() >= OF_AN_OP for op in data["ops"])
    assert data["totals"]["macs"] == 416_520
    assert data["totals"]["cycles"] == sum(op["cycles"] for op in data["ops"])


def test_saved_mappings_read_back_cost_the_same(tmp_path: Path) -> None:
    file = tmp_path / "mappings.txt"
    arguments = ("lenet5", "--on", "meta_prototype_like")
    first = result(*arguments, "--objective", "energy", "-o", str(file))
    again = result(*arguments, "--mapping", str(file))
    for before, after in zip(first["ops"], again["ops"], strict=True):
        assert (before["cycles"], before["mapping"]) == (after["cycles"], after["mapping"])
        assert before["energy_pj"] == after["energy_pj"]
    assert again["totals"]["candidates"] < first["totals"]["candidates"]


def test_a_mapping_of_another_network_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mappings.txt"
    assert run("lenet5", "--on", "edge_tpu_like", "-o", str(file)).exit_code == 0
    text = file.read_text("utf-8").replace("K 6,", "K 7,")
    file.write_text(text, "utf-8")
    outcome = run("lenet5", "--on", "edge_tpu_like", "--mapping", str(file))
    assert outcome.exit_code == 3
    assert "other loops" in outcome.output


def test_what_does_not_fit_says_which_memory_and_how_much() -> None:
    outcome = run("notes_cnn", "--on", "npe8")
    assert outcome.exit_code == 3
    # conv3: 64 x 32 x 3 x 3 weights and 64 x 4 x 4 results of 16 bit in 16 KiB:
    # 36,864 + 2,048 - 16,384 B = 22,528 B = 180,224 bits too many.
    assert "weight_output_memory has 16 KiB and needs at least 38 KiB" in outcome.output
    assert "180,224 bits short" in outcome.output


@pytest.mark.parametrize("search", ["loma", "anneal", "complete"])
def test_every_search_gives_every_op_a_mapping(search: str) -> None:
    data = result("notes_cnn", "--on", "eyeriss_like", "--search", search, "--budget", "20000")
    assert len(data["ops"]) == 5
    assert all(op["mapping"] for op in data["ops"])


def test_the_model_of_zigzag_counts_only_what_zigzag_counts() -> None:
    kinds = {op["kind"] for op in result("lenet5", "--on", "edge_tpu_like")["ops"]}
    assert {"conv", "matmul", "relu", "max_pool", "reshape"} <= kinds
    counted = result("lenet5", "--on", "edge_tpu_like", "--model", "zigzag-3.9")["ops"]
    assert {op["kind"] for op in counted} == {"conv", "matmul"}


def test_piped_output_is_a_plain_table() -> None:
    outcome = run("ds_cnn", "--on", "edge_tpu_like")
    assert "\x1b" not in outcome.stdout
    assert outcome.stdout.startswith("ds_cnn on edge_tpu_like\n")
    assert outcome.stderr == ""


def test_same_input_gives_the_same_bytes() -> None:
    arguments = ("ds_cnn", "--on", "ascend_like", "--json")
    assert run(*arguments).stdout == run(*arguments).stdout


@pytest.mark.slow
@pytest.mark.parametrize("machine", library_names())
def test_the_whole_zoo_maps_or_says_why_not(machine: str) -> None:
    how = MapOptions(options=SearchOptions(lpf_limit=4))
    where = load_machine(machine)
    refused: list[Problem] = []
    for name in names():
        network = load_network(name)
        try:
            found = mapped(network, where, how)
        except InfeasibleError as error:
            refused += error.problems
            continue
        assert len(found.ops) == len(network.ops)
        assert found.cycles * where.cores[0].array.units >= sum(op.macs for op in found.ops)
    told = ("bits short", "the multipliers take 8 x 8 bit")
    assert [p.message for p in refused if not any(text in p.message for text in told)] == []


ROWS = "- name: default\n  spatial_mapping: {D1: ['OY, 14'], D2: ['FY, 3']}\n"


def test_row_stationary_takes_what_zigzag_counts_where_its_wires_serve(tmp_path: Path) -> None:
    """Rows of the result along D1 and of the kernel along D2: unit (d1, d2) gets row d1 + d2."""
    mapping = tmp_path / "rows.yaml"
    mapping.write_text(ROWS, encoding="utf-8")
    library = machine_path("row_stationary").read_text(encoding="utf-8")
    unwired = tmp_path / "unwired.yaml"
    unwired.write_text(library.replace("    sharing: {I1: D1 + D2}\n", ""), encoding="utf-8")
    how = ("--mapping", str(mapping), "--bits", "8", "--lpf-limit", "4")
    wired, union, without, zigzag, unwired_zigzag = (
        {op["name"]: op for op in result("resnet18", "--on", machine, *how, *model)["ops"]}
        for machine, *model in (
            ("row_stationary",),
            ("eyeriss_like",),
            (str(unwired),),
            ("eyeriss_like", "--model", "zigzag-3.9"),
            (str(unwired), "--model", "zigzag-3.9"),
        )
    )
    figures = ("cycles", "energy_pj")
    windows = {"layer1.0.conv1": 1, "layer2.0.conv1": 2, "layer2.0.conv2": 1}
    for name, stride in windows.items():
        same = [wired[name][key] == union[name][key] for key in figures]
        assert all(same) == (stride == 1)
        assert wired[name]["energy_pj"] <= without[name]["energy_pj"]
        assert union[name]["energy_pj"] < without[name]["energy_pj"]
    for name in windows:
        assert all(zigzag[name][key] == unwired_zigzag[name][key] for key in figures)


def test_ops_that_cannot_use_wires_are_told_with_a_reason(tmp_path: Path) -> None:
    mapping = tmp_path / "corner.yaml"
    mapping.write_text(
        "- name: default\n  spatial_mapping: {D1: ['OX, 8'], D2: ['OY, 8']}\n", encoding="utf-8"
    )
    machine = Path(__file__).parents[2] / "examples" / "my_npu" / "6_sharing.yaml"
    outcome = run("lenet5", "--on", str(machine), "--mapping", str(mapping), "--lpf-limit", "4")
    assert outcome.exit_code == 0, outcome.output
    assert (
        "not used by conv1 and 3 more: I over D1 + D2: units (D1 0, D2 1) and (D1 1, D2 0) on one"
        in " ".join(outcome.output.split())
    )


def test_a_zigzag_file_says_that_units_are_assumed_to_share() -> None:
    zigzag = Path(__file__).parents[2] / "examples" / "zigzag" / "fixed" / "machine.yaml"
    (line,) = result("lenet5", "--on", str(zigzag), "--bits", "8")["assumptions"]
    assert "I1, I2, O get it together, wherever they stand, as ZigZag counts" in line
    assert result("lenet5", "--on", "edge_tpu_like")["assumptions"] == []

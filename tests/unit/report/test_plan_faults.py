"""Plan files that another tool changed: faults are told with their place."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.report_plans import small_plan

from tilewright.cli import tilewright
from tilewright.errors import InputError
from tilewright.report.plan_faults import faults_told, plan_faults
from tilewright.report.plan_files import plan_json
from tilewright.report.record import read_record


def changed(path: Sequence[int | str], value: Any) -> Any:
    """The plan file of lenet5 with one value replaced."""
    data = json.loads(json.dumps(plan_json(small_plan("lenet5"))))
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return data


def test_a_file_of_ours_has_no_faults() -> None:
    assert list(plan_faults(changed(["network"], "lenet5"))) == []


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (["source"], True, "source: expected an object"),
        (["source", "dims"], [2], "source.dims: expected an object"),
        (["source", "dims"], {"rows": "2"}, "source.dims.rows: expected a whole number"),
        (["source", "bits"], "8", "source.bits: expected a whole number"),
        (["source", "bits"], 0.5, "source.bits: expected a whole number or null"),
        (["totals", "cycles"], None, "totals.cycles: expected a whole number"),
        (["bounds", "peak_bytes"], 8, "bounds.peak_bytes: expected an object"),
        (["spaces", 0, "kind"], "attic", "spaces[0].kind: expected one of scratchpad, external"),
        (["spaces", 0, "alignment_bytes"], 0, "spaces[0].alignment_bytes: expected a whole number"),
        (["spaces", 0, "reserved"], [[]], "spaces[0].reserved[0]: expected a list of 2"),
        (["engines", 0, "count"], 0.5, "engines[0].count: expected a whole number from 1 on"),
        (["mapping_costs", 0, "compute_cycles"], float("inf"), "mapping_costs[0].compute_cycles: "),
        (["tensors", 0, "bits"], None, "tensors[0].bits: expected a whole number"),
        (["task_list", 0, "kind"], "steal", "task_list[0].kind: expected one of compute, load"),
        (["task_list", 0, "reads"], [], "task_list[0].reads: a load moves something, and this is"),
        (["task_list", 0, "setup_cycles"], None, "task_list[0].setup_cycles: expected a whole"),
        (["task_list", 0, "ports"], ["air"], "task_list[0].ports: there is no engine 'air'"),
        (["task_list", 0, "end_cycle"], -1, "task_list[0].end_cycle: -1 is before start_cycle 0"),
        (["task_list", 3, "fused"], [["x"]], "task_list[3].fused[0]: expected a text"),
        (["given"], 3, "given: expected a list"),
        (["buffer_list", 2], 0, "buffer_list[2]: expected an object"),
        (["buffer_list", 1, "box", 0], [1], "buffer_list[1].box[0]: expected a list of 2"),
        (["task_list", 1, "start_cycle"], "x", "task_list[1].start_cycle: expected a whole number"),
        (["task_list", 1, "start_cycle"], True, "task_list[1].start_cycle: expected a whole"),
        (["task_list", 0, "charges", 0, 3], None, "task_list[0].charges[0][3]: expected a number"),
        (["buffer_list", 0, "space"], "attic", "buffer_list[0].space: there is no space 'attic'"),
        (["task_list", 2, "engine"], "steam", "task_list[2].engine: there is no engine 'steam'"),
        (["task_list", 2, "after"], [999], "task_list[2].after: there is no task 999: there are"),
        (["routes", 1, "engine"], "steam", "routes[1].engine: there is no engine 'steam'"),
        (["routes", 0, "ports"], ["air"], "routes[0].ports: there is no engine 'air'"),
        (["routes", 0, "source"], "attic", "routes[0].source: there is no space 'attic'"),
        (["results"], [-1], "results: there is no buffer -1: there are"),
        (["task_list", 3, "mapping"], 99, "task_list[3].mapping: there is no mapping 99: there"),
        (["task_list", 3, "tile", 0, 2], 0, "task_list[3].tile: "),
    ],
)
def test_a_fault_is_told_with_its_place(path: list[int | str], value: Any, told: str) -> None:
    data = changed(path, value)
    assert data["task_list"][3]["kind"] == "compute"
    (fault,) = plan_faults(data)
    assert fault.startswith(told)


def test_a_failure_is_told_as_a_fault_of_the_file_if_it_has_one(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(changed(["given"], 3)), "utf-8")
    with pytest.raises(InputError, match="given: expected a list"), faults_told(tmp_path):
        raise TypeError
    path.write_text(json.dumps(changed(["network"], "lenet5")), "utf-8")
    with pytest.raises(TypeError), faults_told(tmp_path):
        raise TypeError


def test_what_is_no_number_is_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(changed(["totals", "cycles"], float("nan"))), "utf-8")
    with pytest.raises(InputError, match="can be read: there is NaN where a number should be"):
        read_record(path)


def test_what_is_no_number_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(changed(["task_list", 1, "start_cycle"], "0")), "utf-8")
    with pytest.raises(InputError, match=r"task_list\[1\]\.start_cycle: expected a whole number"):
        read_record(path)


def test_another_schema_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(changed(["schema"], "tilewright-plan-9")), "utf-8")
    told = "its schema is 'tilewright-plan-9', and not 'tilewright-plan-1'"
    with pytest.raises(InputError, match=told):
        read_record(path)


@pytest.mark.parametrize(
    "command", [["explain"], ["replay"], ["compare", "."], ["export", "--to", "csv", "-o", "out"]]
)
def test_commands_refuse_a_buffer_that_is_not_there(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.json").write_text(json.dumps(changed(["buffer_list", 2], 0)), "utf-8")
    result = CliRunner().invoke(tilewright, [*command, "plan.json"])
    assert result.exit_code == 2
    assert "plan.json: buffer_list[2]: expected an object" in result.stderr

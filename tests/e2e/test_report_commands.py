"""`explain`, `compare` and `export` on plans that `plan` wrote."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tilewright.cli import tilewright


def run(*arguments: str) -> Result:
    return CliRunner().invoke(tilewright, list(arguments), prog_name="tilewright")


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two plans of one network, the second with less memory."""
    folder = tmp_path_factory.mktemp("plans")
    assert run("plan", "lenet5", "--on", "npu_37xx", "-o", str(folder / "roomy")).exit_code == 0
    limit = "cmx=16 KiB"
    small = run("plan", "lenet5", "--on", "npu_37xx", "--memory-limit", limit, "-o",
                str(folder / "small"))  # fmt: skip
    assert small.exit_code == 0
    return folder


def test_a_plan_leaves_three_files(plans: Path) -> None:
    names = sorted(path.name for path in (plans / "roomy").iterdir())
    assert names == ["plan.json", "report.html", "trace.json"]


def test_explain_answers_in_words_and_as_json(plans: Path) -> None:
    told = run("explain", str(plans / "roomy"))
    assert told.exit_code == 0
    assert "lenet5 on npu_37xx" in told.stdout
    assert "critical path" in told.stdout
    data = json.loads(run("explain", str(plans / "roomy" / "plan.json"), "--json").stdout)
    totals = json.loads((plans / "roomy" / "plan.json").read_text("utf-8"))["totals"]
    assert data["cycles"] == totals["cycles"]
    assert data["replay_cycles"] <= data["cycles"]
    assert data["critical_path"][-1]["end_cycle"] == data["replay_cycles"]
    one = json.loads(run("explain", str(plans / "roomy"), "--op", "conv1", "--json").stdout)
    assert one["op"] == "conv1"


def test_explain_refuses_what_is_no_plan_and_ops_that_are_not_there(plans: Path) -> None:
    assert run("explain", str(plans)).exit_code == 2
    found = run("explain", str(plans / "roomy"), "--op", "conv99")
    assert found.exit_code == 2
    assert "no op 'conv99'" in found.stderr


def test_compare_fails_only_beyond_a_limit(plans: Path) -> None:
    roomy, small = str(plans / "roomy"), str(plans / "small")
    told = run("compare", roomy, small)
    assert told.exit_code == 0
    assert "peak_bytes.cmx" in told.stdout
    assert run("compare", roomy, roomy, "--fail-if", "cycles>+0%").exit_code == 0
    assert run("compare", roomy, small, "--fail-if", "peak_bytes.cmx>+0%").exit_code == 0
    broken = run("compare", small, roomy, "--fail-if", "peak_bytes.cmx>+0%")
    assert broken.exit_code == 4
    assert "beyond 'peak_bytes.cmx>+0%'" in broken.stderr
    assert "What changed" in broken.stdout
    assert run("compare", roomy, small, "--fail-if", "nonsense").exit_code == 2
    data = json.loads(run("compare", roomy, small, "--json").stdout)
    assert {op["name"] for op in data["ops"]} >= {"conv1", "fc5"}


@pytest.mark.parametrize(
    ("to", "names"),
    [
        ("csv", ["buffers.csv", "ops.csv", "tasks.csv"]),
        ("minimalloc", ["cmx[0].csv", "cmx[1].csv"]),
        ("model-explorer", ["cycles.json", "energy.json", "traffic.json", "waiting.json"]),
    ],
)
def test_export_writes_into_the_folder_it_is_given(
    plans: Path, tmp_path: Path, to: str, names: list[str]
) -> None:
    target = tmp_path / "exported"
    done = run("export", str(plans / "roomy"), "--to", to, "-o", str(target))
    assert done.exit_code == 0
    assert sorted(path.name for path in target.iterdir()) == names
    assert sorted(done.stdout.split()) == [str(target / name) for name in names]


def test_exported_live_ranges_can_be_placed(plans: Path, tmp_path: Path) -> None:
    run("export", str(plans / "roomy"), "--to", "minimalloc", "-o", str(tmp_path))
    placed = run("place", str(tmp_path / "cmx[0].csv"), "--json")
    assert placed.exit_code == 0
    totals = json.loads((plans / "roomy" / "plan.json").read_text("utf-8"))["totals"]
    assert json.loads(placed.stdout)["peak_bytes"] <= totals["peak_bytes"]["cmx"]


def test_a_zoo_network_has_no_onnx_copy(plans: Path, tmp_path: Path) -> None:
    done = run("export", str(plans / "roomy"), "--to", "onnx", "-o", str(tmp_path))
    assert done.exit_code == 2
    assert "no ONNX file" in done.stderr

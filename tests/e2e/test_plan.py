"""`tilewright plan`, from names to tables, JSON and files."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from tests.machine_builder import marked, sound_machine

from tilewright import load_machine, load_network, plan
from tilewright.cli import tilewright
from tilewright.errors import InfeasibleError, InputError
from tilewright.machine.load import library_names
from tilewright.planner import PlanOptions
from tilewright.program.places import places_of

TOTALS = {"cycles", "energy_pj", "traffic_bytes", "peak_bytes", "macs_executed"}
BOUNDS = {"cycles", "peak_bytes"}
KEYS = {"totals", "bounds", "tasks", "buffers", "checked", "verified"}
QUICK = [
    ("lenet5", "edge_tpu_like"),
    ("lenet5", "npu_37xx"),
    ("lenet5", "ethos_u55_128"),
    ("ds_cnn", "tpu_like"),
    ("ds_cnn", "npu_40xx"),
    ("ds_cnn", "ethos_u65_256"),
]
WHOLE_LIBRARY = ("lenet5", "ds_cnn", "squeezenet", "gpt2_block")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(tilewright, ["plan", *arguments])


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(tilewright, arguments)


def figures(*arguments: str) -> dict[str, Any]:
    outcome = run(*arguments, "--json")
    assert outcome.exit_code == 0, outcome.output
    data: dict[str, Any] = json.loads(outcome.stdout)
    return data


def sound(data: dict[str, Any], machine: str) -> None:
    """What any plan's figures must say of each other."""
    assert data.keys() >= KEYS
    assert data["totals"].keys() >= TOTALS
    assert data["bounds"].keys() >= BOUNDS
    assert data["checked"] is True
    assert data["totals"]["cycles"] >= data["bounds"]["cycles"] > 0
    assert data["totals"]["energy_pj"] > 0
    size = {memory.name: memory.size_bytes for memory in load_machine(machine).memories}
    for memory, peak in data["totals"]["peak_bytes"].items():
        assert data["bounds"]["peak_bytes"].get(memory, 0) <= peak <= size[memory]
    assert all(t.keys() == {"read", "write"} for t in data["totals"]["traffic_bytes"].values())


@pytest.mark.parametrize(("network", "machine"), QUICK)
def test_a_plan_has_the_promised_figures(network: str, machine: str) -> None:
    sound(figures(network, "--on", machine), machine)


def test_files_agree_with_the_figures_and_with_each_other(tmp_path: Path) -> None:
    told = figures("lenet5", "--on", "npu_37xx", "-o", str(tmp_path))
    made = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    assert made["schema"] == "tilewright-plan-1"
    assert made["totals"] == told["totals"]
    assert len(made["task_list"]) == made["tasks"] == told["tasks"]
    assert len(made["buffer_list"]) == made["buffers"] == told["buffers"]
    assert max(task["end_cycle"] for task in made["task_list"]) == told["totals"]["cycles"]
    for memory, moved in told["totals"]["traffic_bytes"].items():
        charges = [c for task in made["task_list"] for c in task["charges"] if c[0] == memory]
        assert sum(c[1] for c in charges) == moved["read"]
        assert sum(c[2] for c in charges) == moved["write"]
    counts = {engine["name"]: engine["count"] for engine in made["engines"]}
    for task in made["task_list"]:
        assert 0 <= task["instance"] < counts[task["engine"]]
        assert all(made["task_list"][n]["end_cycle"] <= task["start_cycle"] for n in task["after"])


def test_the_trace_has_a_slice_for_every_task_and_none_overlap_on_a_track(tmp_path: Path) -> None:
    figures("ds_cnn", "--on", "npu_40xx", "-o", str(tmp_path))
    made = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    trace = json.loads((tmp_path / "trace.json").read_text("utf-8"))
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    tracks = {(e["pid"], e["tid"]) for e in slices}
    lengths = [task["end_cycle"] - task["start_cycle"] for task in made["task_list"]]
    groups = [e for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "process_name"]
    (engines,) = [e["pid"] for e in groups if e["args"]["name"] == "engines"]
    at_work = [event["dur"] for event in slices if event["pid"] == engines]
    assert len(at_work) == len(lengths)
    assert sum(at_work) == sum(lengths)
    for track in sorted(tracks):
        own = sorted((e["ts"], e["dur"]) for e in slices if (e["pid"], e["tid"]) == track)
        assert all(start + length <= later for (start, length), (later, _) in pairwise(own))
    named = [e for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"]
    assert {(e["pid"], e["tid"]) for e in named} >= tracks
    counters = [e for e in trace["traceEvents"] if e["ph"] == "C"]
    size = {space["name"]: space["size_bytes"] for space in made["spaces"]}
    assert "cmx[0]" in {e["name"] for e in counters} <= size.keys()
    assert all(0 <= e["args"]["bytes"] <= size[e["name"]] for e in counters)


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("cmx=12 KiB", "machine 'edge_tpu_like' has no memory 'cmx'"),
        ("sram_2MB", "'sram_2MB': expected the name of a memory and a size"),
        ("=12 KiB", "'=12 KiB': expected the name of a memory and a size"),
        ("sram_2MB=much", "--memory-limit 'sram_2MB=much'"),
        ("sram_2MB=much", "hint: write it as sram_2MB='512 KiB'"),
        ("sram_2MB=65536", "hint: write it as sram_2MB='65536 B'"),
    ],
)
def test_a_bad_memory_limit_is_bad_input(limit: str, text: str) -> None:
    outcome = run("lenet5", "--on", "edge_tpu_like", "--memory-limit", limit)
    assert outcome.exit_code == 2
    assert text in outcome.stderr
    assert "hint: " in outcome.stderr


def test_what_does_not_fit_is_an_answer() -> None:
    arguments = ("lenet5", "--on", "edge_tpu_like", "--memory-limit", "sram_2MB=2 B")
    outcome = run(*arguments)
    assert outcome.exit_code == 3
    assert "does not fit in sram_2MB: it needs " in outcome.stderr
    assert "hint: sram_2MB would have to hold at least " in outcome.stderr
    told = json.loads(run(*arguments, "--json").stdout)
    assert [problem["severity"] for problem in told["problems"]] == ["error"]


def test_a_limit_is_kept() -> None:
    data = figures("ds_cnn", "--on", "edge_tpu_like", "--memory-limit", "sram_2MB=12 KiB")
    assert data["totals"]["peak_bytes"]["sram_2MB"] <= 12 * 1024


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    def bytes_of(seed: str) -> bytes:
        folder = tmp_path / seed
        command = [sys.executable, "-m", "tilewright", "plan", "lenet5", "--on", "npu_37xx"]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run(
            [*command, "-o", str(folder)], env=environment, check=True, capture_output=True
        )
        return (folder / "plan.json").read_bytes() + (folder / "trace.json").read_bytes()

    assert bytes_of("1") == bytes_of("2")


@pytest.mark.parametrize("network", ["lenet5", "ds_cnn", "squeezenet"])
def test_a_plan_is_no_longer_than_its_ops_one_by_one(network: str) -> None:
    one_by_one = CliRunner().invoke(
        tilewright, ["map", network, "--on", "edge_tpu_like", "--lpf-limit", "4", "--json"]
    )
    total = json.loads(one_by_one.stdout)["totals"]["cycles"]
    assert figures(network, "--on", "edge_tpu_like")["totals"]["cycles"] <= total


def scratchpads(machine: str, share: int) -> tuple[tuple[str, int], ...]:
    """A share of each scratchpad's size as a memory limit."""
    spaces = [s for s in places_of(load_machine(machine)).spaces if s.kind == "scratchpad"]
    return tuple({s.memory: s.size_bytes // share for s in spaces}.items())


@pytest.mark.slow
@pytest.mark.parametrize("share", [1, 4])
@pytest.mark.parametrize("machine", library_names())
def test_the_zoo_is_planned_on_the_whole_library(machine: str, share: int) -> None:
    on = load_machine(machine)
    options = PlanOptions(memory_limits=scratchpads(machine, share) if share > 1 else ())
    for name in WHOLE_LIBRARY:
        try:
            # A plan is checked task by task before it is returned.
            found = plan(load_network(name), on, options)
        except InfeasibleError as refused:
            # Where activations can wait outside, every op can be cut until it fits.
            if places_of(on).overflow() is not None or not refused.problems[0].hint:
                raise
            continue
        assert found.cycles >= found.roofline.cycles


def test_a_plan_is_replayed_from_its_file_and_before_it_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    made = invoke(
        "plan", "lenet5", "--on", "edge_tpu_like", "--verify", "-o", str(folder), "--json"
    )
    assert json.loads(made.stdout)["verified"] is True
    found = invoke("replay", str(folder / "plan.json"), "--json")
    assert found.exit_code == 0
    data = json.loads(found.stdout)
    assert data["agrees"] is True
    assert [output["name"] for output in data["outputs"]] == ["fc5"]
    traffic = json.loads(made.stdout)["totals"]["traffic_bytes"]
    assert data["traffic_bytes"]["dram"] == traffic["dram"]


def _open_batch(folder: Path) -> str:
    """A model of one product whose number of rows is left open."""
    rows, result = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["rows", 4])
        for name in ("x", "y")
    )
    weights = onnx.numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    graph = onnx.helper.make_graph(nodes, "open", [rows], [result], [weights])
    file = folder / "open.onnx"
    onnx.save(onnx.helper.make_model(graph), file)
    return str(file)


def test_a_replay_reads_the_network_as_the_plan_did(tmp_path: Path) -> None:
    model = _open_batch(tmp_path)
    plans = {
        "zoo": ("lenet5", "--bits", "4", "--dim", "batch=2"),
        "file": (model, "--bits", "8", "--dim", "rows=3"),
    }
    for name, given in plans.items():
        folder = str(tmp_path / name)
        assert run(*given, "--on", "edge_tpu_like", "-o", folder).exit_code == 0
        assert invoke("replay", folder).exit_code == 0
        assert invoke("replay", folder, *given[1:]).exit_code == 0
    other = invoke("replay", str(tmp_path / "file"), "--dim", "rows=2")
    assert (other.exit_code, "that 'open' lacks" in other.stderr) == (2, True)
    # Of a model that is given, only what is given with it counts.
    folder = str(tmp_path / "file")
    assert "rows" in invoke("replay", folder, "--model", model).stderr
    assert invoke("replay", folder, "--model", *plans["file"]).exit_code == 0


def test_a_wrong_plan_is_refused_by_a_replay(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    invoke("plan", "lenet5", "--on", "edge_tpu_like", "-o", str(folder))
    file = folder / "plan.json"
    plan = json.loads(file.read_text("utf-8"))
    task = next(t for t in plan["task_list"] if t["kind"] == "compute" and t["op"] == "conv2")
    task["start_cycle"] = task["end_cycle"] = 0
    file.write_text(json.dumps(plan), "utf-8")
    assert invoke("replay", str(file)).exit_code == 4
    told = invoke("replay", str(file), "--json")
    assert told.exit_code == 4
    # One object, not a second one for the problems.
    assert json.loads(told.stdout)["problems"]
    assert invoke("replay", str(file), "--model", "ds_cnn").exit_code == 2


@pytest.mark.slow
def test_a_plan_of_more_than_a_megabyte_is_read_back(tmp_path: Path) -> None:
    limit = ("--memory-limit", "sram_2MB=512 B")
    run("ds_cnn", "--on", "edge_tpu_like", *limit, "-o", str(tmp_path))
    assert (tmp_path / "plan.json").stat().st_size > 2**20
    assert invoke("explain", str(tmp_path), "--json").exit_code == 0


def test_the_tiles_of_a_plan_take_what_units_get_together_once(tmp_path: Path) -> None:
    """The plan of a machine whose units share no windows of inputs takes longer, and more."""
    apart = Path(__file__).parents[2] / "examples" / "my_npu" / "7_input_buffer.yaml"
    text = apart.read_text(encoding="utf-8")
    head, buffer, rest = text.partition("  input_buffer:\n")
    together = tmp_path / "together.yaml"
    together.write_text(f"{head}{buffer}    sharing: {{I1: union}}\n{rest}", encoding="utf-8")
    slower, faster = (plan("ds_cnn", str(machine)) for machine in (apart, together))
    assert faster.cycles < slower.cycles
    assert sum(faster.energy_pj.values()) < sum(slower.energy_pj.values())


def test_a_machine_that_nothing_can_fill_is_refused_as_check_refuses_it(tmp_path: Path) -> None:
    data = marked(sound_machine())
    uses = data["memories"]["bank"]["ports"][0]["allocation"]
    uses.remove("I1, fh")
    path = tmp_path / "unfilled.yaml"
    path.write_text(json.dumps(data))
    missing = "no `fh` port: nothing can fill it with inputs from ddr"
    for outcome in (invoke("check", str(path)), run("lenet5", "--on", str(path), "--bits", "8")):
        assert outcome.exit_code == 2
        assert missing in outcome.output
    with pytest.raises(InputError, match="nothing can fill it with inputs from ddr"):
        plan("lenet5", path)
    # What else asks for the machine may read it.
    assert load_machine(path).name == "plover"

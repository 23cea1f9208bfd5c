import csv
import io
import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from tests.report_plans import small_plan
from tests.report_timetables import by_hand

from tilewright.errors import InputError
from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.placement.files import read_csv
from tilewright.planner import plan
from tilewright.report.exports import csv_tables, export, live_ranges, node_data
from tilewright.report.plan import plan_figures
from tilewright.report.record import OpFigures, PlanRecord, read_record


def op_figures(name: str, reads: str, writes: str) -> OpFigures:
    return OpFigures(
        name=name, kind="add", worker="array", fused=(), macs=0, dims=(), reads=(reads,),
        writes=(writes,),
    )  # fmt: skip


def record() -> PlanRecord:
    return PlanRecord(
        figures={"network": "n", "machine": "m"},
        timetable=by_hand(),
        tiles=(),
        ops=(
            op_figures("first", "x", "a"),
            op_figures("second", "y", "b"),
            op_figures("third", "b", "c"),
        ),
        limits={},
    )


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_tables_hold_every_op_task_and_buffer() -> None:
    tables = {name: rows(text) for name, text in csv_tables(record()).items()}
    ops = [(r["name"], r["busy_cycles"], r["idle_cycles"]) for r in tables["ops.csv"]]
    assert ops == [("first", "5", "10"), ("second", "10", "15"), ("third", "10", "40")]
    # `first` has its own pJ and the 88 of the load of x, which reads 8 bytes outside.
    assert (tables["ops.csv"][0]["energy_pj"], tables["ops.csv"][0]["traffic_bytes"]) == (
        "89.0",
        "8",
    )
    tasks = [(r["name"], r["op"], r["start_cycle"], r["end_cycle"]) for r in tables["tasks.csv"]]
    assert tasks[2] == ("load y", "second", "20", "30")
    assert tasks[5] == ("store c", "third", "50", "56")
    assert len(tables["buffers.csv"]) == 8
    assert tables["buffers.csv"][4] == {
        "buffer": "4", "name": "a", "tensor": "a", "space": "cmx[0]", "address": "8",
        "size_bytes": "8", "start_cycle": "10", "end_cycle": "40", "view_of": "",
    }  # fmt: skip


def test_live_ranges_are_read_by_our_own_placement(tmp_path: Path) -> None:
    texts = live_ranges(record())
    assert list(texts) == ["cmx[0].csv"]
    assert texts["cmx[0].csv"].splitlines() == [
        "id,lower,upper,size",
        "1,0,15,8",
        "3,20,40,8",
        "4,10,40,8",
        "5,30,50,8",
        "6,40,56,8",
    ]
    file = tmp_path / "ranges.csv"
    file.write_text(texts["cmx[0].csv"], "utf-8")
    assert len(read_csv(str(file), None).buffers) == 5


def test_node_data_has_a_value_for_every_op_and_what_it_makes() -> None:
    """Model Explorer reads a bare set of values, or one for each graph by its name; the graph's
    name is the reader's, so that sets are bare. It finds a node by its name, or by its results."""
    data = node_data(record())
    assert list(data) == ["cycles.json", "energy.json", "waiting.json", "traffic.json"]
    assert all(set(values) == {"name", "results", "gradient"} for values in data.values())
    cycles = data["cycles.json"]
    assert cycles["name"] == "cycles, n on m"
    assert {key: value["value"] for key, value in cycles["results"].items()} == {
        "first": 5,
        "second": 10,
        "third": 10,
        "a": 5,
        "b": 10,
        "c": 10,
    }
    assert [set(stop) for stop in cycles["gradient"]] == [{"stop", "bgColor"}] * 5


def onnx_file(path: Path) -> Path:
    weight = helper.make_tensor("w", TensorProto.FLOAT, (4, 3, 3, 3), [0.0] * 108)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="act"),
        helper.make_node("MaxPool", ["r"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 4, 4))],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))
    return path


def test_an_onnx_copy_says_at_each_node_what_it_costs(tmp_path: Path) -> None:
    source = onnx_file(tmp_path / "small.onnx")
    made = plan(load_network(str(source), bits=8), load_machine("npu_37xx"))
    made.save(tmp_path / "out")
    (path,) = export(read_record(tmp_path / "out"), "onnx", tmp_path / "exported")
    model = onnx.load(str(path))
    onnx.checker.check_model(model)
    assert model.ir_version >= 10
    found = [{p.key: p.value for p in node.metadata_props} for node in model.graph.node]
    conv = [t for t in made.program.tasks if t.op == "conv"]
    assert found[0]["tilewright.cycles"] == str(sum(task.cycles for task in conv))
    assert found[1] == {"tilewright.applied_to": "conv"}
    assert "tilewright.cycles" in found[2]


def test_a_network_that_is_no_file_has_no_onnx_copy(tmp_path: Path) -> None:
    made = small_plan("lenet5")
    made.save(tmp_path)
    with pytest.raises(InputError, match="no ONNX file"):
        export(read_record(tmp_path), "onnx", tmp_path / "exported")


def test_a_plan_read_back_is_the_plan_that_was_saved(tmp_path: Path) -> None:
    made = small_plan("lenet5")
    made.save(tmp_path)
    found = read_record(tmp_path / "plan.json")
    assert found.timetable.slots == made.timetable.slots
    assert found.timetable.addresses == made.timetable.addresses
    assert found.timetable.edges == made.timetable.edges
    assert found.timetable.program.tasks == made.program.tasks
    assert found.timetable.program.buffers == made.program.buffers
    assert found.timetable.program.spaces == made.program.spaces
    assert found.figures["totals"] == json.loads(json.dumps(plan_figures(made)["totals"]))


def test_what_is_no_plan_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    for text in ("{}", "[1]", "no json", '{"schema": "other"}'):
        file.write_text(text, "utf-8")
        with pytest.raises(InputError, match="no plan that can be read"):
            read_record(file)
    with pytest.raises(InputError, match=r"(?s)cannot be read.*hint: write one with `tilewright"):
        read_record(tmp_path / "nothing.json")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"(?s)is no text file.*hint: write one with `tilewright"):
        read_record(file)

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report_plans import cascaded_plan, small_plan

from tilewright.network.graph import Network, Tensor
from tilewright.program.model import Buffer, Program, Slot, Task, Timetable, View
from tilewright.report.cascades import (
    RollingBuffer,
    cascades_of,
    ops_taking_turns,
    rolling_buffers,
    several_ops,
    short_name,
    strategy_json,
)
from tilewright.report.compare import compare, comparison_json, comparison_view
from tilewright.report.explain import explain, explanation_json, explanation_view
from tilewright.report.exports import csv_tables
from tilewright.report.html_data import report_data, rolling_texts
from tilewright.report.plan import plan_figures
from tilewright.report.plan_files import plan_json
from tilewright.report.record import PlanRecord, read_record, record_of
from tilewright.report.tables import plain_text
from tilewright.report.trace import CASCADES, trace_events


def record() -> PlanRecord:
    made = cascaded_plan()
    return record_of(made, plan_figures(made))


def test_a_cascade_is_told_by_its_ops_and_its_rows() -> None:
    first, second = cascades_of(cascaded_plan())
    assert (first.ops, second.ops) == (("conv1", "pool1"), ("conv2", "pool2"))
    assert (first.tensor, first.axis, first.along) == ("pool1", 2, "rows")
    assert (first.rows, first.step_rows) == (15, 4)
    assert second.text == "2 ops, conv2 to pool2: 2 of 6 rows a step"


def test_what_only_passes_through_rolling_buffers_does_not_wait_outside() -> None:
    made = cascaded_plan()
    names = tuple(tensor.name for tensor in made.network.tensors if tensor.role != "constant")
    everything = replace(made, strategy=replace(made.strategy, gone=names))
    assert strategy_json(made)["waits_outside"] == ["input"]
    # The input comes from outside and the result of conv3 goes there; all else stays on the chip.
    assert strategy_json(everything)["waits_outside"] == ["input", "conv3"]
    assert strategy_json(small_plan("lenet5")) == {
        "cascades": [],
        "waits_outside": None,
        "frugal": False,
        "strips": [],
        "again": [],
        "macs_made_again": 0,
    }


def test_rolling_buffers_hold_the_rows_that_a_step_takes() -> None:
    """A step of 4 rows of pool1 takes 8 of conv1's 30, and these 10 of the input's 32."""
    program, network = cascaded_plan().program, cascaded_plan().network
    found = {program.buffers[r.buffer].tensor: r for r in rolling_buffers(program, network)}
    held = {name: (rolling.rows, rolling.of_rows) for name, rolling in found.items()}
    # A step of 2 rows of pool2 takes 4 of conv2's 13, the last of which nobody reads.
    assert held == {"input": (10, 32), "conv1": (8, 30), "conv2": (4, 13)}
    assert set(rolling_texts(cascaded_plan(), record()).values()) == {
        "10 of 32 rows",
        "8 of 30 rows",
        "4 of 13 rows",
    }


def lap(rows: tuple[int, int], tensor: str = "t") -> Buffer:
    view = View(0, (0, 0))
    return Buffer(name="", tensor=tensor, box=(rows, (0, 5)), space="", size_bytes=1, view=view)


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        (
            [lap((0, 3)), lap((3, 6)), lap((6, 8))],
            [RollingBuffer(buffer=0, axis=0, rows=3, of_rows=8)],
        ),
        ([lap((0, 3))], []),
        ([lap((0, 3)), lap((0, 3), "other")], []),
        ([lap((0, 3)), replace(lap((0, 3)), view=View(0))], []),
    ],
)
def test_only_a_buffer_for_several_parts_of_one_tensor_rolls(
    views: list[Buffer], expected: list[RollingBuffer]
) -> None:
    root = Buffer(name="", tensor="t", box=((0, 3), (0, 5)), space="", size_bytes=15)
    program = Program(name="", spaces=(), engines=(), routes=(), buffers=(root, *views), tasks=())
    tensor = Tensor(name="t", shape=(8, 5), bits=8, role="input")
    network = Network(name="", tensors=(tensor,), ops=())
    assert list(rolling_buffers(program, network)) == expected


def test_plan_json_has_the_strategy_and_is_read_back(tmp_path: Path) -> None:
    made = cascaded_plan()
    data = json.loads(json.dumps(plan_json(made)))
    assert [cascade["step_rows"] for cascade in data["strategy"]["cascades"]] == [4, 2]
    rows = {
        data["buffer_list"][rolling["buffer"]]["tensor"]: rolling["rows"]
        for rolling in data["rolling_buffers"]
    }
    assert rows == {"input": 10, "conv1": 8, "conv2": 4}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(data), "utf-8")
    assert read_record(path).cascades == cascades_of(made)


def test_a_plan_file_from_before_cascades_has_none(tmp_path: Path) -> None:
    data = plan_json(small_plan("lenet5"))
    del data["strategy"], data["rolling_buffers"]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(data), "utf-8")
    assert read_record(path).cascades == ()


def test_an_op_by_itself_is_no_cascade_to_speak_of() -> None:
    first, second = cascades_of(cascaded_plan())
    alone = replace(first, ops=("conv1",))
    assert several_ops([alone, second]) == [second]
    assert alone.text == "conv1: 4 of 15 rows a step"


def test_joined_names_are_told_by_the_first_of_them() -> None:
    assert short_name("net/conv/relu;net/conv/add;net/conv/bias") == "net/conv/relu"
    assert short_name("a" * 40) == "…" + "a" * 29


def test_explain_names_the_cascade_of_an_op() -> None:
    found = explain(record(), "pool2")
    assert explanation_json(found)["cascade"]["ops"] == ["conv2", "pool2"]
    text = plain_text(explanation_view(found))
    assert text is not None
    assert "cascade        2 ops, conv2 to pool2: 2 of 6 rows a step" in text
    assert explanation_json(explain(record(), "conv3"))["cascade"] is None


def test_compare_says_which_ops_changed_their_cascade() -> None:
    after = record()
    first, second = after.cascades
    before = replace(after, cascades=(replace(first, step_rows=2),))
    comparison = compare(before, after)
    text = plain_text(comparison_view(comparison))
    assert text is not None
    assert "2 ops now in one, 2 ops in another one" in text
    assert "2 of 15 rows a step" in text
    assert "conv3" not in text
    ops = {op["name"]: op for op in comparison_json(comparison)["ops"]}
    assert ops["pool2"]["before"]["cascade"] is None
    assert ops["pool2"]["after"]["cascade"]["ops"] == list(second.ops)
    back = plain_text(comparison_view(compare(after, replace(after, cascades=()))))
    assert back is not None
    assert "4 ops no longer in one" in back


def test_the_trace_has_a_slice_for_each_cascade() -> None:
    made = cascaded_plan()
    events = [e for e in trace_events(made)["traceEvents"] if e["pid"] == CASCADES]
    slices = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in slices] == ["conv1 to pool1", "conv2 to pool2"]
    times = [
        (slot.start_cycle, slot.end_cycle)
        for task, slot in zip(made.program.tasks, made.timetable.slots, strict=True)
        if task.op in ("conv1", "pool1")
    ]
    assert slices[0]["ts"] == min(start for start, _ in times)
    assert slices[0]["ts"] + slices[0]["dur"] == max(end for _, end in times)


def test_tables_of_ops_have_their_cascade() -> None:
    lines = csv_tables(record())["ops.csv"].splitlines()
    assert lines[0].endswith(",cascade")
    cells = {line.split(",")[0]: line for line in lines}
    assert cells["conv1"].endswith('"2 ops, conv1 to pool1: 4 of 15 rows a step"')
    assert cells["conv3"].endswith(",")


def test_the_report_numbers_cascades_of_several_ops() -> None:
    made = cascaded_plan()
    data = report_data(made)
    assert [data["ops"]["name"][op] for op in data["cascades"][1]["numbers"]] == ["conv2", "pool2"]
    places = dict(zip(data["ops"]["name"], data["ops"]["cascade"], strict=True))
    assert places == {"conv1": 0, "pool1": 0, "conv2": 1, "pool2": 1, "conv3": None}


def timetable(queue: str, engines: str = "") -> Timetable:
    """Ops named by single letters, one task each, one after the other; engines by digit."""
    engines = engines or "0" * len(queue)
    tasks = tuple(
        Task(name=op, kind="compute", engine=f"core[{engine}]", cycles=1, op=op)
        for op, engine in zip(queue, engines, strict=True)
    )
    slots = tuple(Slot(start_cycle=at, end_cycle=at + 1) for at in range(len(queue)))
    program = Program(name="", spaces=(), engines=(), routes=(), buffers=(), tasks=tasks)
    return Timetable(program=program, slots=slots, addresses=())


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("aabbcc", []),
        ("ababcc", ["ab"]),
        ("abcabcd", ["abc"]),
        ("abacbc", ["abc"]),
        ("abadcdc", ["ab", "dc"]),
        ("abcbca", ["abc"]),
    ],
)
def test_ops_whose_tiles_take_turns_belong_together(queue: str, expected: list[str]) -> None:
    assert ["".join(ops) for ops in ops_taking_turns(timetable(queue))] == expected


def test_ops_on_different_cores_take_no_turns() -> None:
    assert ops_taking_turns(timetable("abab", "0101")) == []

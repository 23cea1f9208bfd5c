"""Ops that run together: what reports say of the memory that saves and of what is done again."""

import json
from pathlib import Path

from tests.report_plans import cascaded_plan, small_plan

from tilewright.report.explain import explain, explanation_json, explanation_view
from tilewright.report.html_data import report_data
from tilewright.report.plan import plan_figures, plan_view
from tilewright.report.plan_files import plan_json
from tilewright.report.record import PlanRecord, read_record, record_of
from tilewright.report.tables import plain_text
from tilewright.report.together import (
    MOST_ROWS,
    OpsTogether,
    together_of,
    together_table,
    together_text,
)

IN_STRIPS = OpsTogether(
    ops=("conv", "pool", "add"),
    strips=3,
    pace="1 of 7 rows a step",
    layer_by_layer_bytes=4096,
    held_bytes=512,
    scratchpads=1,
    macs=1000,
    macs_again=125,
)
ON_TWO_CORES = OpsTogether(
    ops=("first", "second"),
    strips=1,
    pace="2 of 8 channels a step",
    layer_by_layer_bytes=2048,
    held_bytes=1024,
    scratchpads=2,
    macs=500,
    macs_again=0,
)


def record() -> PlanRecord:
    made = cascaded_plan()
    return record_of(made, plan_figures(made))


def shown(*found: OpsTogether) -> list[str]:
    text = plain_text([together_table(found)])
    assert text is not None
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_what_runs_together_holds_rows_instead_of_whole_tensors() -> None:
    """Elements of notes_cnn have 2 B."""
    first, second = together_of(cascaded_plan())
    assert (first.ops, second.ops) == (("conv1", "pool1"), ("conv2", "pool2"))
    # All of conv1 (16 x 30 x 30) and pool1 (16 x 15 x 15); pool1 and conv2 (32 x 13 x 13).
    assert first.layer_by_layer_bytes == 2 * (16 * 30 * 30 + 16 * 15 * 15)
    assert second.layer_by_layer_bytes == 2 * (16 * 15 * 15 + 32 * 13 * 13)
    # 10 of 32 rows of the input, 8 of 30 of conv1, and all of pool1, which conv2 takes next.
    assert first.held_bytes == 2 * (10 * 32 + 16 * 8 * 30 + 16 * 15 * 15)
    # All of pool1, 4 of 13 rows of conv2, and all of pool2 (32 x 6 x 6).
    assert second.held_bytes == 2 * (16 * 15 * 15 + 32 * 4 * 13 + 32 * 6 * 6)
    assert (first.strips, first.scratchpads, first.macs_again) == (1, 1, 0)
    assert together_of(small_plan("lenet5")) == ()


def test_a_sentence_says_what_is_saved_and_what_is_done_again() -> None:
    assert together_text([IN_STRIPS], 5, 2500, 0) == (
        "3 of 5 ops, some rows, columns or channels at a time: at most 512 B of feature maps "
        "at once, 4,096 B layer by layer; 5.0% more multiplications at the borders of strips"
    )
    assert together_text([ON_TWO_CORES], 5, 2500, 0) == (
        "2 of 5 ops, some rows, columns or channels at a time: at most 1,024 B of feature maps "
        "at once in 2 scratchpads, 2,048 B layer by layer; nothing is done again"
    )
    assert together_text([], 5, 2500, 0) == ""


def test_the_table_has_a_column_for_what_is_done_again_only_where_something_is() -> None:
    head, _, row = shown(IN_STRIPS)
    assert head.endswith("done again")
    assert row.split("   ")[0] == "conv to add"
    assert "3 strips of columns, 1 of 7 rows a step" in row
    assert row.endswith("12.5%")
    assert shown(ON_TWO_CORES)[0].endswith("held")


def test_of_many_groups_those_with_the_most_to_hold_are_shown() -> None:
    groups = [
        OpsTogether(
            ops=(f"a{number}", f"b{number}"),
            strips=1,
            pace="",
            layer_by_layer_bytes=number,
            held_bytes=1,
            scratchpads=1,
            macs=0,
            macs_again=0,
        )
        for number in range(MOST_ROWS + 2)
    ]
    rows = shown(*groups)[2:]
    assert [row.split()[0] for row in rows[:-1]] == [f"a{n}" for n in range(2, MOST_ROWS + 2)]
    assert rows[-1] == "… and 2 more"


def test_the_summary_of_a_plan_tells_of_it_only_where_there_is_something_to_tell() -> None:
    text = plain_text(plan_view(cascaded_plan()))
    assert text is not None
    assert (
        "together        4 of 5 ops, some rows, columns or channels at a time: at most 15.2 KiB"
        in text
    )
    assert "conv1 to pool1     2   4 of 15 rows a step" in text
    plain = plain_text(plan_view(small_plan("lenet5")))
    assert plain is not None
    assert "together" not in plain


def test_a_plan_file_keeps_it(tmp_path: Path) -> None:
    made = cascaded_plan()
    path = tmp_path / "plan.json"
    data = plan_json(made)
    path.write_text(json.dumps(data), "utf-8")
    assert read_record(path).together == together_of(made)
    del data["strategy"]["together"]
    path.write_text(json.dumps(data), "utf-8")
    assert read_record(path).together == ()


def test_explain_tells_of_the_plan_and_of_the_group_of_an_op() -> None:
    found = explain(record())
    assert [group["ops"][0] for group in explanation_json(found)["together"]] == ["conv1", "conv2"]
    text = plain_text(explanation_view(found))
    assert text is not None
    assert "together       4 of 5 ops" in text
    found = explain(record(), "pool2")
    assert [group["ops"][0] for group in explanation_json(found)["together"]] == ["conv2"]
    text = plain_text(explanation_view(found))
    assert text is not None
    assert "conv2 to pool2" in text
    assert "conv1 to pool1" not in text
    assert explanation_json(explain(record(), "conv3"))["together"] == []


def test_the_report_has_the_sentence_and_a_row_for_each_group() -> None:
    data = report_data(cascaded_plan())
    assert data["together"]["text"].startswith("4 of 5 ops, ")
    first = data["together"]["groups"][0]
    assert [data["ops"]["name"][op] for op in first["numbers"]] == ["conv1", "pool1"]
    assert (first["layer_by_layer"], first["held"]) == ("35.2 KiB", "15.2 KiB")
    assert report_data(small_plan("lenet5"))["together"] == {"text": "", "groups": []}

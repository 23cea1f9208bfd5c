"""What a plan file says of ops, buffers and products, and files that somebody changed."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.ladder_cases import Layer, chain, prepared_on

from tilewright.machine.load import load_machine
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.plan_model import PlanOptions
from tilewright.plan_rungs import plan_of_rung
from tilewright.planner import plan
from tilewright.program.executed import macs_executed
from tilewright.report.plan_files import plan_json
from tilewright.report.plan_operators import operator_problems, products_of
from tilewright.report.record import read_record
from tilewright.strategy.ladder.rungs import RungName

Data = dict[str, Any]
LENET_MACS = 416_520


@cache
def text() -> str:
    return json.dumps(plan_json(plan(load_network("lenet5"), load_machine("edge_tpu_like"))))


def said(folder: Path, change: Callable[[Data], object]) -> list[str]:
    data: Data = json.loads(text())
    change(data)
    (folder / "plan.json").write_text(json.dumps(data), "utf-8")
    found = operator_problems(read_record(folder), load_network("lenet5"))
    return [problem.message for problem in found]


def op(data: Data, name: str) -> Data:
    return next(op for op in (*data["op_list"], *data["fused_list"]) if op["name"] == name)


def test_an_op_and_what_is_applied_to_it_are_told_with_attributes_and_operands() -> None:
    data: Data = json.loads(text())
    conv = op(data, "conv1")
    windows = {"kernel_shape": [5, 5], "strides": [1, 1], "pads": [0, 0, 0, 0]}
    assert conv["attributes"] == {"dilations": [1, 1], "group": 1, **windows}
    letters = [(o["operand"], o["tensor"]) for o in (*conv["inputs"], *conv["outputs"])]
    assert letters == [
        ("I", "input"), ("W", "conv1.weight"), ("B", "conv1.bias"), ("O", "conv1"),
    ]  # fmt: skip
    assert conv["inputs"][0]["index"][2] == {"terms": [["OY", 1], ["FY", 1]]}
    assert conv["fused"] == ["relu1"]
    assert op(data, "relu1")["kind"] == "relu"
    assert {(b["tensor"], b["bits"]) for b in data["buffer_list"]} >= {
        ("conv1.weight", 8),
        ("conv1.bias", 32),
    }


def test_the_file_as_it_was_written_is_right(tmp_path: Path) -> None:
    assert said(tmp_path, lambda data: None) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda data: data["totals"].update(macs_executed=LENET_MACS - 1),
            f"totals.macs_executed of the plan file is {LENET_MACS - 1:d}, and its tasks come to "
            f"{LENET_MACS}",
        ),
        (
            lambda data: op(data, "conv1")["attributes"].update(strides=[2, 1]),
            "op conv1 of the plan file has the attributes",
        ),
        (
            lambda data: op(data, "conv1")["inputs"][0]["index"][2].update(offset=1),
            "op conv1 of the plan file has the inputs",
        ),
        (
            lambda data: op(data, "conv1")["inputs"][0].pop("index"),
            "op conv1 of the plan file has the inputs",
        ),
        (
            lambda data: op(data, "relu1").update(kind="relu6"),
            "op relu1 of the plan file has the kind relu6, not relu",
        ),
        (
            lambda data: op(data, "relu1").update(name="tanh"),
            "op tanh of the plan file is none of lenet5",
        ),
        (
            lambda data: data["buffer_list"][0].update(bits=4),
            "has elements of 4 bits, and input of 8",
        ),
    ],
)
def test_what_the_network_has_otherwise(
    tmp_path: Path, change: Callable[[Data], object], message: str
) -> None:
    (found,) = said(tmp_path, change)
    assert message in found


def test_products_are_those_of_the_network_where_nothing_is_done_again() -> None:
    assert json.loads(text())["totals"]["macs_executed"] == LENET_MACS


def small(size: int) -> Network:
    """A convolution, a pool and a convolution, 2 x 2 each: 3 channels, then 2."""
    layers = (
        Layer(is_pool=False, channels=3, kernel=2, stride=1, pad=0),
        Layer(is_pool=True, channels=0, kernel=2, stride=2, pad=0),
        Layer(is_pool=False, channels=2, kernel=2, stride=1, pad=0),
    )
    return chain((size, size), 1, layers)


@pytest.mark.parametrize(
    ("size", "rung", "products"),
    [
        # Of 6 x 6 elements 5 x 5 sums of 3 channels and 4 taps, and one of 2 channels and 12 taps.
        (6, "line_buffered", 25 * 3 * 4 + 2 * 12),
        # The pool reads 4 x 4 of them.
        (6, "line_buffered_cropped", 16 * 3 * 4 + 2 * 12),
        # 7 x 7 elements make 2 x 2 results, each of 4 pixels of the pool, each of 4 sums.
        (7, "recompute", 4 * 4 * 4 * 3 * 4 + 4 * 2 * 12),
    ],
)
def test_what_runs_again_or_is_left_out_counts_as_it_is_done(
    size: int, rung: RungName, products: int
) -> None:
    prepared, options = prepared_on(small(size), 4_096), PlanOptions(checked=False)
    made = plan_of_rung(prepared, rung, options, lambda step: None)
    assert macs_executed(made.program, made.network) == products
    assert products_of(made.program, made.network) == products

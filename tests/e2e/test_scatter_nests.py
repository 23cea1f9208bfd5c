"""ZigZag workloads whose loops walk over inputs are planned as what they stand for."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.reference_data import ABSENT, REFERENCE_DATA

from tilewright.cli import tilewright
from tilewright.mapping.check import nest_problems
from tilewright.network.graph import Index, Network
from tilewright.network.load import load_network

LAYER = """\
- id: {id}
  name: layer{id}
  operator_type: {kind}
  equation: O[b][{out}][oy][ox]+=W{weights}[fy][fx]*I[b][{into}][iy][ix]
  dimension_relations: [{x}={stride}*{over_x}+1*fx, {y}={stride}*{over_y}+1*fy]
  loop_dims: [B, {channels}, {over_y}, {over_x}, FY, FX]
  loop_sizes: [1, {counts}, {size}, {size}, {taps}, {taps}]
  operand_precision: {{W: 16, I: 16, O: 32, O_final: 16}}
  operand_source: {{I: {source}, W: {id}}}
"""
SHAPES = (("Conv", 8, 1, 10, 1, 3), ("Pooling", 8, 8, 8, 2, 2), ("Conv", 4, 8, 4, 1, 3))
"""Type, channels out and in, columns of the input, stride and taps."""


def layers(*, scattered: bool) -> str:
    """Two convolutions with a pool between them, with loops over inputs or over results."""
    text = ""
    for number, (kind, out, into, size, stride, taps) in enumerate(SHAPES):
        pools = kind == "Pooling"
        loops = ("ix", "iy", "ox", "oy") if scattered else ("ox", "oy", "ix", "iy")
        text += LAYER.format(
            id=number,
            kind=kind,
            out="g" if pools else "k",
            weights="" if pools else "[k][c]",
            into="g" if pools else "c",
            channels="G" if pools else "K, C",
            counts=out if pools else f"{out}, {into}",
            **dict(zip(("over_x", "over_y", "x", "y"), loops, strict=True)),
            stride=stride,
            size=size if scattered else (size - taps) // stride + 1,
            taps=taps,
            source=max(number - 1, 0),
        )
    return text


@pytest.fixture
def scatter(tmp_path: Path) -> str:
    path = tmp_path / "scatter.yaml"
    path.write_text(layers(scattered=True), encoding="utf-8")
    return str(path)


@pytest.fixture
def gather(tmp_path: Path) -> str:
    path = tmp_path / "gather.yaml"
    path.write_text(layers(scattered=False), encoding="utf-8")
    return str(path)


def answer(*arguments: str) -> dict[str, Any]:
    outcome = CliRunner().invoke(tilewright, [*arguments, "--json"])
    assert outcome.exit_code == 0, outcome.output
    data: dict[str, Any] = json.loads(outcome.stdout)
    return data


def test_both_forms_are_one_plan(scatter: str, gather: str) -> None:
    plans = [answer("plan", n, "--on", "eyeriss_like", "--verify") for n in (scatter, gather)]
    assert [plan["verified"] for plan in plans] == [True, True]
    for key in ("totals", "bounds", "tasks", "buffers"):
        assert plans[0][key] == plans[1][key], key


def test_both_forms_have_one_mapping(scatter: str, gather: str) -> None:
    maps = [answer("map", n, "--on", "npe8") for n in (scatter, gather)]
    assert maps[0]["totals"] == maps[1]["totals"]
    assert [op["mapping"] for op in maps[0]["ops"]] == [op["mapping"] for op in maps[1]["ops"]]


def test_both_forms_have_one_ladder(scatter: str, gather: str) -> None:
    # Layer by layer the first result and the pool's lie side by side: 8 x 8 x 8 and 8 x 4 x 4
    # of 2 B. Rung by rung less is kept.
    ladders = [answer("fit", n, "--on", "npe8")["rungs"] for n in (scatter, gather)]
    assert ladders[0] == ladders[1]
    kept = {rung["name"]: rung["activation_bytes"] for rung in ladders[0]}
    assert kept["layer_by_layer"] == 2 * (8 * 8 * 8 + 8 * 4 * 4)
    names = ("layer_by_layer", "in_place", "fused_pools", "line_buffered")
    assert sorted({kept[name] for name in names}, reverse=True) == [kept[name] for name in names]


def test_for_zigzag_the_nest_is_as_written(scatter: str, gather: str) -> None:
    # 10 x 10 inputs with 9 taps, not 8 x 8 results: 8 x 100 x 9 of the first layer's points.
    how = ("--on", "eyeriss_like", "--model", "zigzag-3.9")
    maps = [answer("map", n, *how) for n in (scatter, gather)]
    assert [m["ops"][0]["macs"] for m in maps] == [8 * 100 * 9, 8 * 64 * 9]


def test_a_plan_from_a_file_is_replayed(scatter: str, tmp_path: Path) -> None:
    answer("plan", scatter, "--on", "eyeriss_like", "-o", str(tmp_path / "plan"))
    assert answer("replay", str(tmp_path / "plan"), "--model", scatter)["agrees"]


@pytest.mark.parametrize(
    ("key", "value", "done"),
    [
        ("spatial_mapping", "{D1: ['IX, 8']}", "unrolled"),
        ("temporal_ordering", "[[IX, '*'], ['*', '*']]", "ordered"),
    ],
)
def test_loops_of_the_written_nest_in_a_mapping_file_are_explained(
    key: str, value: str, done: str, scatter: str, tmp_path: Path
) -> None:
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(
        f"- name: default\n  {key}: {value}\n  memory_operand_links: {{O: O, W: I2, I: I1}}\n",
        encoding="utf-8",
    )
    found = answer("check", "npe8", scatter, "--mapping", str(mapping))["problems"]
    (problem,) = [p for p in found if p["file"] == str(mapping)]
    assert "no op of scatter has a loop IX, which are read as gathers" in problem["message"]
    assert f"with --model zigzag-3.9 alone IX is {done} here" in problem["message"]
    assert problem["hint"] == "write OX for plans and our own model"


def test_an_order_of_loops_that_no_op_has_is_not_ignored_in_silence(
    gather: str, tmp_path: Path
) -> None:
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(
        "- name: default\n  temporal_ordering: [[OZ, 4], ['*', '*']]\n"
        "  memory_operand_links: {O: O, W: I2, I: I1}\n",
        encoding="utf-8",
    )
    found = answer("check", "npe8", gather, "--mapping", str(mapping))["problems"]
    (problem,) = [p for p in found if p["file"] == str(mapping)]
    assert (problem["severity"], problem["line"]) == ("warning", 2)
    assert "no op of gather has a loop OZ, so nothing is ordered here" in problem["message"]


def with_index(network: Network, index: Index) -> Network:
    """The network whose first op writes its last axis at another index."""
    op = network.ops[0]
    result = op.outputs[0]
    assert result.index is not None
    outputs = (replace(result, index=(*result.index[:-1], index)),)
    return replace(network, ops=(replace(op, outputs=outputs), *network.ops[1:]))


def test_check_refuses_a_nest_that_no_mapping_has(gather: str) -> None:
    network = load_network(gather)
    assert list(nest_problems(network)) == []
    (problem,) = nest_problems(with_index(network, Index((("OX", 1), ("FX", -1)))))
    assert problem.severity == "error"
    assert problem.message == ("op 'layer0' cannot be mapped: index OX - FX of O cannot be mapped")


CASES = REFERENCE_DATA / "cases"


@pytest.mark.skipif(not CASES.is_dir(), reason=ABSENT)
def test_the_users_workload_has_the_ladder_that_was_worked_out_for_it() -> None:
    ladder = answer("fit", str(CASES / "npe8_workload.yaml"))["rungs"]
    totals = {rung["name"]: rung["total_bytes"] for rung in ladder}
    assert totals["layer_by_layer"] == 82_368
    assert totals["fused_pools"] == 56_320
    assert totals["line_buffered"] == 49_156
    assert totals["line_buffered_cropped"] == 49_052
    assert totals["recompute"] == 48_736


@pytest.mark.skipif(not CASES.is_dir(), reason=ABSENT)
@pytest.mark.slow
def test_the_users_workload_plans() -> None:
    plan = answer("plan", str(CASES / "npe8_workload.yaml"), "--on", "npe8", "--verify")
    assert plan["verified"]
    # Eight multipliers, and three convolutions with 9 taps: 30 results a side, 12 of 13 that the
    # pool behind them reads, and 4.
    macs = 16 * 900 * 9 + 32 * 16 * 144 * 9 + 64 * 32 * 16 * 9
    assert plan["totals"]["cycles"] >= macs / 8


def test_inputs_that_come_past_the_scratchpads_are_paid_for_beside_padding(tmp_path: Path) -> None:
    """Convolutions whose inputs stream from a DRAM: tiles at borders read less than others."""
    head = "equation: O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]"
    tail = "operand_precision: {W: 8, I: 8, O: 16, O_final: 8}"
    path = tmp_path / "layers.yaml"
    path.write_text(
        f"""
- id: 0
  operator_type: Conv
  {head}
  dimension_relations: [ox=2*ix+1*fx, oy=2*iy+1*fy]
  loop_dims: [B, K, C, IY, IX, FY, FX]
  loop_sizes: [1, 8, 3, 16, 16, 3, 3]
  {tail}
  operand_source: {{I: 0, W: 0}}
- id: 1
  operator_type: Conv
  {head}
  dimension_relations: [ix=1*ox+1*fx, iy=1*oy+1*fy]
  loop_dims: [B, K, C, OY, OX, FY, FX]
  loop_sizes: [1, 8, 8, 7, 7, 3, 3]
  {tail}
  operand_source: {{I: 0, W: 1}}
""",
        encoding="utf-8",
    )
    machine = Path(__file__).parents[1] / "inputs_past_scratchpads.yaml"
    assert answer("plan", str(path), "--on", str(machine), "--objective", "memory")["checked"]

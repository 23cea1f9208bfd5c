"""Agreement with ZigZag 3.9.1, layer by layer, through the API that stands in for its own.

The runs of ZigZag lie outside the repository: machines with plain, even and mixed mappings, with
data locality, and one that computes in memory, on several networks.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.reference_data import ABSENT, REFERENCE_DATA

from tilewright.compat.zigzag import Evaluations, get_hardware_performance_zigzag
from tilewright.compat.zigzag_results import CostModelEvaluation

ORACLE = REFERENCE_DATA / "oracle" / "zigzag"
RUNS = sorted(path.stem for path in ORACLE.glob("*.json"))
QUICK = [run for run in RUNS if "resnet18" in run and run.endswith("latency")]

pytestmark = [
    pytest.mark.skipif(not RUNS, reason=ABSENT),
    pytest.mark.usefixtures("both_evaluations"),
]


@cache
def expected(run: str) -> Any:
    return json.loads((ORACLE / f"{run}.json").read_text(encoding="utf-8"))


def answer(run: str, folder: Path) -> tuple[list[float], Evaluations]:
    told = expected(run)
    files = [str(ORACLE / told[key]) for key in ("workload", "hw", "mapping")]
    *totals, evaluations = get_hardware_performance_zigzag(
        files[0], files[1], files[2], dump_folder=str(folder), **told["opts"]
    )
    return totals, evaluations


def assert_same(cost: CostModelEvaluation, told: Any) -> None:
    assert cost.energy_total == pytest.approx(told["energy_total"], rel=1e-9)
    assert cost.mac_energy == pytest.approx(told["mac_energy"], rel=1e-9)
    assert cost.mem_energy == pytest.approx(told["mem_energy"], rel=1e-9)
    cycles = {
        "ideal_cycle": cost.ideal_cycle,
        "ideal_temporal_cycle": cost.ideal_temporal_cycle,
        "stall": cost.stall_slack_comb,
        "onload": cost.data_onloading_cycle,
        "offload": cost.data_offloading_cycle,
        "systolic_drain": cost.systolic_drain_cycle,
        "latency_total0": cost.latency_total0,
        "latency_total1": cost.latency_total1,
        "latency_total2": cost.latency_total2,
    }
    assert cycles == {key: told[key] for key in cycles}
    for letter, levels in told["mem"].items():
        energies = [level["energy"] for level in levels]
        assert cost.mem_energy_breakdown[letter] == pytest.approx(energies, rel=1e-9)


def assert_run_is_zigzags(run: str, folder: Path) -> None:
    told = expected(run)
    totals, evaluations = answer(run, folder)
    wanted = [told["energy_total"], told["latency_total2"]]
    wanted += [told[key] for key in ("tclk", "area") if key in told]
    assert totals == pytest.approx(wanted, rel=1e-9)
    costs = {layer.name: cost for cost, (layer, _) in evaluations[0][1]}
    assert costs.keys() == {layer["name"] for layer in told["layers"]}
    for layer in told["layers"]:
        assert_same(costs[layer["name"]], layer)


@pytest.mark.parametrize("run", QUICK)
def test_resnet18_costs_what_zigzag_says(run: str, tmp_path: Path) -> None:
    assert_run_is_zigzags(run, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("run", [run for run in RUNS if run not in QUICK])
def test_every_network_and_objective_costs_what_zigzag_says(run: str, tmp_path: Path) -> None:
    assert_run_is_zigzags(run, tmp_path)

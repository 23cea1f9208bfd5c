"""Plans against the schedules of Arm's Vela 5.2.0 (its Python core): memory, traffic and limits.

Networks and runs of Vela lie outside the repository. Its figures are those of its own summary;
ours are of plans whose replay computes what the network computes. `benchmarks/vela.py` compares all
networks.
"""

import csv
from fractions import Fraction
from functools import cache
from math import ceil, prod

import pytest
from tests.reference_data import ABSENT, REFERENCE_DATA

import tilewright
from tilewright.planner import Plan, PlanObjective, PlanOptions, plan
from tilewright.program.model import Box
from tilewright.replay.verify import verify

SUMMARY = REFERENCE_DATA / "oracle" / "vela" / "summary.csv"
MODELS = REFERENCE_DATA / "models"
KIB = 1024

pytestmark = pytest.mark.skipif(not SUMMARY.is_file(), reason=ABSENT)


@cache
def vela_row(network: str, accelerator: str, setting: str) -> dict[str, str]:
    """The summary of one run."""
    with SUMMARY.open(encoding="utf-8", newline="") as lines:
        rows = [
            row
            for row in csv.DictReader(lines)
            if (row["model"], row["core"]) == (f"{network}.tflite", "legacy")
            and (row["accelerator"], row["setting"]) == (accelerator, setting)
            and row["memory_mode"] != "Sram_Only"
        ]
    assert len(rows) == 1
    return rows[0]


def planned(
    network: str, machine: str, objective: PlanObjective, sram_bytes: int | None = None
) -> Plan:
    limits = () if sram_bytes is None else (("sram", sram_bytes),)
    return plan(
        tilewright.load_network(str(MODELS / f"{network}.tflite")),
        tilewright.load_machine(machine),
        PlanOptions(objective=objective, memory_limits=limits),
    )


def assert_computes_the_network(found: Plan) -> None:
    verified = verify(found.timetable, found.network)
    assert verified.problems == ()
    assert [output.max_error for output in verified.outputs] == [0] * len(verified.outputs)


def feature_map_bytes(found: Plan) -> int:
    """Bytes of inputs, outputs and activations that are read from and written to the DRAM."""
    program = found.program
    roles = {tensor.name: tensor.role for tensor in found.network.tensors}
    bytes_of = {True: 0, False: 0}
    for task in program.tasks:
        for access in (*task.reads, *task.writes):
            buffer = program.buffers[access.buffer]
            if buffer.space == "dram":
                # Partial sums are wider than the tensor's elements.
                share = Fraction(elements(access.box), elements(buffer.box))
                bytes_of[roles[buffer.tensor] == "constant"] += ceil(buffer.size_bytes * share)
    # What is counted here is all that the tasks are charged for.
    assert sum(bytes_of.values()) == sum(found.traffic_bytes["dram"])
    return bytes_of[False]


def elements(box: Box) -> int:
    return prod(end - start for start, end in box)


@pytest.mark.slow
@pytest.mark.parametrize(
    "network",
    [
        "mlperf_tiny_kws_dscnn_int8",
        "mlperf_tiny_resnet8_int8",
        "mlperf_tiny_vww96_int8",
        "tflm_person_detect",
    ],
)
def test_the_least_memory_is_below_that_of_vela_even_with_input_and_output_whole(
    network: str,
) -> None:
    found = planned(network, "ethos_u55_128", "memory")
    vela = float(vela_row(network, "ethos-u55-128", "size")["sram_memory_used"]) * KIB
    # Vela's arena holds the whole input and output; ours come and leave piece by piece.
    whole = sum(t.size_bytes for t in found.network.tensors if t.role in ("input", "output"))
    assert found.peak_bytes["sram"] + whole < vela
    assert_computes_the_network(found)


@pytest.mark.parametrize("kibibytes", [pytest.param(384, marks=pytest.mark.slow), 128, 64])
@pytest.mark.parametrize(
    "network",
    [
        "mlperf_tiny_resnet8_int8",
        "mlperf_tiny_vww96_int8",
        pytest.param("tflm_person_detect", marks=pytest.mark.slow),
    ],
)
def test_no_more_of_the_feature_maps_goes_through_dram_than_with_vela(
    network: str, kibibytes: int
) -> None:
    # 384 KiB are what Vela gives the U65 if nothing is said.
    setting = "perf-default" if kibibytes == 384 else f"perf-{kibibytes}k"
    row = vela_row(network, "ethos-u65-256", setting)
    found = planned(network, "ethos_u65_256", "traffic", kibibytes * KIB)
    vela = float(row["dram_feature_map_read_bytes"]) + float(row["dram_feature_map_write_bytes"])
    assert feature_map_bytes(found) <= vela
    assert found.peak_bytes["sram"] <= kibibytes * KIB
    assert_computes_the_network(found)


@pytest.mark.slow
def test_there_is_a_plan_in_an_sram_in_which_vela_has_none() -> None:
    network = "coral_mobilenet_v1_0.5_160_quant"
    assert vela_row(network, "ethos-u55-128", "perf-64k")["rc"] != "0"
    found = planned(network, "ethos_u55_128", "latency", 64 * KIB)
    assert found.peak_bytes["sram"] <= 64 * KIB
    assert_computes_the_network(found)


@pytest.mark.slow
def test_the_least_memory_is_enough_as_a_limit() -> None:
    least = planned("tflm_person_detect", "ethos_u55_128", "memory").peak_bytes["sram"]
    found = planned("tflm_person_detect", "ethos_u55_128", "latency", least)
    assert found.peak_bytes["sram"] <= least

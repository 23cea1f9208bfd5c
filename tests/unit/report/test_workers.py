"""Ops that an array cannot run are said to run where they do."""

from dataclasses import replace

import tilewright
from tilewright.report.exports import csv_tables
from tilewright.report.plan import plan_figures
from tilewright.report.workers import left_to_vector


def planned(network: tilewright.Network) -> tilewright.Plan:
    return tilewright.plan(network, tilewright.load_machine("ethos_u55_128"))


def test_what_is_too_wide_for_the_multipliers_of_an_ethos_u_runs_on_its_vector_unit() -> None:
    # It multiplies elements of 8 and 16 bit; those of 32 bit it only adds and compares.
    network = tilewright.load_network("lenet5", bits=8)
    wide = [replace(t, bits=32) if t.role == "input" else t for t in network.tensors]
    made = planned(replace(network, tensors=tuple(wide)))
    assert left_to_vector(made) == ("conv1",)
    said = "op 'conv1': the array cannot run this, the vector unit does"
    assert said in plan_figures(made)["assumptions"]
    header, *rows = (line.split(",") for line in csv_tables(made.record)["ops.csv"].splitlines())
    by_name = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert by_name["conv1"]["worker"] == "vector"
    # 117,600 multiplications of the first convolution on 4 lanes.
    assert int(by_name["conv1"]["busy_cycles"]) >= 117_600 / 4


def test_what_an_ethos_u_multiplies_is_its_own_work() -> None:
    made = planned(tilewright.load_network("lenet5", bits=8))
    assert left_to_vector(made) == ()
    assert not [text for text in plan_figures(made)["assumptions"] if "vector unit does" in text]

"""ZigZag 3.9.1's choice of unrolling is among our candidates, and its in-memory figures are ours.

The runs of ZigZag lie outside the repository; each layer tells its loops, its equation and the
unrolling that ZigZag chose.
"""

import json
import re
from functools import cache
from math import prod
from typing import Any

import pytest
from tests.reference_data import ABSENT, REFERENCE_DATA

from tilewright.document import read_document
from tilewright.machine.load import load_machine
from tilewright.machine.model import Core, Machine
from tilewright.mapping.attach import Unrolling
from tilewright.mapping.constraints import Constraint, read_constraints
from tilewright.mapping.hierarchy import hierarchy_of
from tilewright.mapping.imc import cycles_per_op, imc_area_mm2, imc_clock_ns, imc_delay, imc_energy
from tilewright.mapping.nest import LoopNest, NestOperand, Relation
from tilewright.mapping.spatial import UnrollOptions, unrollings

ORACLE = REFERENCE_DATA / "oracle" / "zigzag"
RUNS = sorted(path.stem for path in ORACLE.glob("*.json"))

pytestmark = pytest.mark.skipif(not RUNS, reason=ABSENT)


@cache
def told(run: str) -> Any:
    return json.loads((ORACLE / f"{run}.json").read_text(encoding="utf-8"))


@cache
def machine(file: str) -> Machine:
    return load_machine(ORACLE / file)


@cache
def constraints(file: str) -> dict[str, Constraint]:
    reading = read_constraints(read_document(ORACLE / file))
    return {constraint.name: constraint for constraint in reversed(reading.constraints)}


def constraint_of(run: str, layer: Any) -> Constraint:
    entries = constraints(told(run)["mapping"])
    keys = (layer["name"], layer["type"], "default")
    return next(entries[key] for key in keys if key in entries)


def nest_of(layer: Any) -> LoopNest:
    """`O[b][k] = W[k][c] * I[b][c]` and `IX = 2*OX + 1*FX` as a nest."""
    bits = layer["prec"]
    operands = tuple(
        NestOperand(letter, tuple(axis.upper() for axis in re.findall(r"\w+", axes)), bits[letter])
        for letter, axes in re.findall(r"([OWI])((?:\[\w+\])*)", layer["equation"])
    )
    relations = []
    for text in layer["pr"]:
        target, sums = text.split(" = ")
        first, second = (part.split("*") for part in sums.split(" + "))
        terms = ((first[1], int(first[0])), (second[1], int(second[0])))
        relations.append(Relation(target, terms, layer["pr_sizes"][target]))
    dims = tuple(layer["dims"].items())
    return LoopNest(dims, operands, tuple(relations), bits["O_final"])


def chosen(layer: Any, core: Core) -> Unrolling:
    """`{D1: {K: 64}, D2: {FX: 7, FY: 7}}` in the order of the array's dims."""
    found = {
        dim: tuple((loop, int(factor)) for loop, factor in re.findall(r"(\w+): (\d+)", pairs))
        for dim, pairs in re.findall(r"(\w+): \{([^{}]*)\}", layer["spatial_mapping_user"])
    }
    return tuple((dim, found[dim]) for dim, _ in core.array.dims)


@pytest.mark.parametrize("run", RUNS)
def test_zigzags_unrolling_is_a_candidate(run: str) -> None:
    where = machine(told(run)["hw"])
    (core,) = where.cores
    switches = told(run)["opts"]
    mixed = "in_memory_compute" in switches or "enable_mix_spatial_mapping" in switches
    for layer in told(run)["layers"]:
        nest, constraint = nest_of(layer), constraint_of(run, layer)
        links = dict(constraint.links)
        hierarchy = hierarchy_of(where, core, {o.letter: links[o.letter] for o in nest.operands})
        found = unrollings(nest, hierarchy, constraint, UnrollOptions(mixed=mixed))
        assert chosen(layer, core) in found, layer["name"]
        if {dim for dim, _ in constraint.spatial} >= set(core.array.sizes):
            assert len(found) == 1, layer["name"]


@pytest.mark.parametrize("run", [run for run in RUNS if run.startswith("aimc")])
def test_computing_in_memory_costs_what_zigzag_says(run: str) -> None:
    (core,) = machine(told(run)["hw"]).cores
    array = core.array
    clock = imc_delay(array)
    for layer in told(run)["layers"]:
        energy = imc_energy(nest_of(layer), array, chosen(layer, core))
        assert energy.total_pj == pytest.approx(layer["mac_energy"], rel=1e-9)
        parts = {
            "local_bl_precharging": energy.precharge_pj,
            "dacs": energy.dac_pj,
            "adcs": energy.adc_pj,
            "mults": energy.multiplier_pj,
            "analog_bl_addition": energy.bit_line_pj,
            "adders_regular": energy.adder_tree_pj,
            "adders_pv": energy.place_value_pj,
            "accumulators": energy.accumulator_pj,
        }
        assert parts == pytest.approx(layer["mac_energy_breakdown"], rel=1e-9)
        delays = {
            "cells": 0,
            "dacs": 0,
            "adcs": clock.adc_ns,
            "mults": clock.multiplier_ns,
            "adders_regular": clock.adder_tree_ns,
            "adders_pv": clock.place_value_ns,
            "accumulators": clock.accumulator_ns,
        }
        assert delays == pytest.approx(layer["tclk_breakdown"], rel=1e-9)
        assert imc_clock_ns(array) == pytest.approx(layer["tclk"], rel=1e-9)
        # The file gives all memories an area of 0: the macro is all there is.
        assert imc_area_mm2(array) == pytest.approx(layer["area_total"], rel=1e-9)
        steps = prod(int(loop.split()[1]) for level in layer["temporal"]["O"] for loop in level)
        assert layer["ideal_temporal_cycle"] == steps * cycles_per_op(array)

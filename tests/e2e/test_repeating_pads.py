"""Pads with elements of their input are cut into tiles like other ops."""

from pathlib import Path

import numpy as np
import pytest
from tests.onnx_models import Given, integers, model, node, saved

import tilewright
from tilewright.network.load import load_network
from tilewright.planner import PlanOptions
from tilewright.replay.verify import verify


@pytest.mark.parametrize("mode", ["reflect", pytest.param("edge", marks=pytest.mark.slow)])
def test_an_input_that_does_not_fit_is_padded_piece_by_piece(mode: str, tmp_path: Path) -> None:
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Pad", ["r", "pads"], ["p"], {"mode": mode}),
        node("Conv", ["p", "w"], ["y"]),
    ]
    constants = {"pads": integers(0, 0, 1, 1, 0, 0, 2, 1), "w": np.ones((2, 2, 3, 3), np.float32)}
    proto = model(nodes, {"x": Given(shape=(1, 2, 16, 12))}, ["y"], constants)
    network = load_network(saved(proto, tmp_path), bits=16)
    # All of the input has 768 B.
    options = PlanOptions(memory_limits=(("sram", 512),))
    plan = tilewright.plan(network, tilewright.load_machine("ethos_u65_256"), options)
    assert verify(plan.timetable, network).agrees

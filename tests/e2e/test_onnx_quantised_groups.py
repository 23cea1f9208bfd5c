"""Operators between dequantisers and quantisers are read as operators on whole numbers."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.e2e.test_onnx_shapes import session
from tests.onnx_models import Array, Given, model, node, saved

from tilewright.mapping.nest import runs_on_array
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import values_of

CONSTANTS: Mapping[str, Array] = {
    "s": np.array(0.05, np.float32),
    "other s": np.array(0.07, np.float32),
    "z": np.array(3, np.uint8),
    "lowest": np.array(0, np.uint8),
    "w": (np.arange(4 * 3 * 9) * 37 % 251 - 125).reshape(4, 3, 3, 3).astype(np.int8),
    "w s": np.array([0.01, 0.02, 0.005, 0.015], np.float32),
    "w z": np.zeros(4, np.int8),
    "b": np.array([10, -300, 77, 0], np.int32),
    "b s": np.array([0.01, 0.02, 0.005, 0.015], np.float32) * np.float32(0.05),
    "b z": np.zeros(4, np.int32),
    "real b": np.array([0.5, -0.25, 0.1, 0], np.float32),
    "v": (np.arange(4 * 5) * 31 % 255).reshape(4, 5).astype(np.uint8),
    "v s": np.array(0.02, np.float32),
    "v z": np.array(128, np.uint8),
    "four": np.array([1, 4], np.int64),
    "six": np.array(6, np.float32),
    "much": np.array(13, np.float32),
    "none": np.array(0, np.float32),
    "real w": (np.arange(4 * 3 * 9) % 17 - 8).reshape(4, 3, 3, 3).astype(np.float32) / 10,
    "three": np.array([0.01, 0.02, 0.015], np.float32),
    "three z": np.zeros(3, np.int8),
}
DATA = [
    node("QuantizeLinear", ["x", "s", "z"], ["x q"]),
    node("DequantizeLinear", ["x q", "s", "z"], ["x r"]),
]
WEIGHTS = node("DequantizeLinear", ["w", "w s", "w z"], ["w r"], {"axis": 0})
BIAS = node("DequantizeLinear", ["b", "b s", "b z"], ["b r"], {"axis": 0})
CONV = node("Conv", ["x r", "w r"], ["c"], {"pads": [1, 1, 1, 1]}, name="conv")


def ended(source: str, scale: str = "s", zero_point: str = "z") -> list[onnx.NodeProto]:
    """What quantises a tensor and hands it out as reals."""
    return [
        node("QuantizeLinear", [source, scale, zero_point], ["y q"]),
        node("DequantizeLinear", ["y q", scale, zero_point], ["y"]),
    ]


GROUPS = {
    "conv": ([*DATA, WEIGHTS, CONV, *ended("c")], ["conv"]),
    "conv with a bias": (
        [*DATA, WEIGHTS, BIAS, node("Conv", ["x r", "w r", "b r"], ["c"]), *ended("c")],
        ["conv"],
    ),
    "conv with a real bias": (
        [*DATA, WEIGHTS, node("Conv", ["x r", "w r", "real b"], ["c"]), *ended("c")],
        ["conv"],
    ),
    "conv and an activation that quantising does": (
        [*DATA, WEIGHTS, CONV, node("Relu", ["c"], ["r"]), *ended("r", zero_point="lowest")],
        ["conv"],
    ),
    "conv and an activation that cuts off more": (
        [*DATA, WEIGHTS, CONV, node("Relu", ["c"], ["r"]), *ended("r")],
        ["conv", "max"],
    ),
    "conv and bounds within what bytes can hold": (
        [*DATA, WEIGHTS, CONV, node("Clip", ["c", "none", "six"], ["r"]), *ended("r")],
        ["dequantize", "conv", "clip", "quantize"],
    ),
    "conv and bounds of which bytes hold the upper": (
        [*DATA, WEIGHTS, CONV, node("Clip", ["c", "none", "much"], ["r"]), *ended("r")],
        ["conv", "max"],
    ),
    "conv with weights that are quantised in the file": (
        [
            *DATA,
            node("QuantizeLinear", ["real w", "w s", "w z"], ["w q"], {"axis": 0}),
            node("DequantizeLinear", ["w q", "w s", "w z"], ["w r"], {"axis": 0}),
            CONV,
            *ended("c"),
        ],
        ["conv"],
    ),
    "conv with a scale for each column": (
        [
            *DATA,
            node("DequantizeLinear", ["w", "three", "three z"], ["w r"], {"axis": 1}),
            CONV,
            *ended("c"),
        ],
        ["dequantize", "conv", "quantize"],
    ),
    "sum": ([*DATA, node("Add", ["x r", "x r"], ["c"]), *ended("c", "other s")], ["add"]),
    "moves of data of the same scale": (
        [*DATA, node("Transpose", ["x r"], ["t"], {"perm": [0, 2, 3, 1]}), *ended("t")],
        ["transpose"],
    ),
    "moves of data of another scale": (
        [*DATA, node("Transpose", ["x r"], ["t"], {"perm": [0, 2, 3, 1]}), *ended("t", "other s")],
        ["dequantize", "transpose", "quantize"],
    ),
    "a pool, a reshape and a product": (
        [
            *DATA,
            WEIGHTS,
            CONV,
            node("QuantizeLinear", ["c", "s", "z"], ["c q"]),
            node("DequantizeLinear", ["c q", "s", "z"], ["c r"]),
            node("GlobalAveragePool", ["c r"], ["p"]),
            node("QuantizeLinear", ["p", "s", "z"], ["p q"]),
            node("DequantizeLinear", ["p q", "s", "z"], ["p r"]),
            node("Reshape", ["p r", "four"], ["f"]),
            node("DequantizeLinear", ["v", "v s", "v z"], ["v r"]),
            node("MatMul", ["f", "v r"], ["m"]),
            *ended("m"),
        ],
        ["conv", "average_pool", "reshape", "matmul"],
    ),
}


def written(nodes: list[onnx.NodeProto], folder: Path, outputs: tuple[str, ...] = ("y",)) -> Path:
    given = {"x": Given(shape=(1, 3, 6, 6))}
    return saved(model(nodes, given, list(outputs), CONSTANTS), folder)


def kinds(network: Network) -> list[str]:
    """Kinds of what lies between the first quantiser and the last dequantiser."""
    return [op.kind for op in network.ops][1:-1]


@pytest.mark.parametrize(("nodes", "expected"), GROUPS.values(), ids=GROUPS.keys())
def test_a_group_is_one_op_and_computes_the_same(
    nodes: list[onnx.NodeProto], expected: list[str], tmp_path: Path
) -> None:
    path = written(nodes, tmp_path)
    network = load_network(path)
    assert kinds(network) == expected
    values = values_of(network, path)
    found = computed(network, values.arrays, values.quantisation)["y"]
    (real,) = session(onnx.load(path)).run(["y"], {"x": values.arrays["x"]})
    steps = np.abs(found - real) / float(CONSTANTS["s"])
    # A sum that lies between two steps may be rounded to either: by one step, and seldom.
    assert steps.max() <= 1.5
    assert (steps > 0.5).mean() < 0.02


def test_what_others_read_in_reals_is_not_replaced(tmp_path: Path) -> None:
    nodes = [*DATA, WEIGHTS, CONV, node("Tanh", ["c"], ["t"]), *ended("c")]
    network = load_network(written(nodes, tmp_path, ("y", "t")))
    assert [op.kind for op in network.ops].count("conv") == 1
    assert {"dequantize", "tanh", "quantize"} <= {op.kind for op in network.ops}


def test_a_sum_of_two_activations_is_the_arrays_work_whatever_their_scales(tmp_path: Path) -> None:
    nodes = [*DATA, node("Add", ["x r", "x r"], ["c"]), *ended("c", "other s")]
    network = load_network(written(nodes, tmp_path))
    assert [runs_on_array(op, network) for op in network.ops if op.kind == "add"] == [True]


def test_parts_of_a_split_are_bytes(tmp_path: Path) -> None:
    parts = [
        *DATA,
        node("Split", ["x r", "sizes"], ["a", "b"], {"axis": 1}),
        *(node("QuantizeLinear", [name, "s", "z"], [f"{name} q"]) for name in "ab"),
    ]
    constants = {**CONSTANTS, "sizes": np.array([1, 2], np.int64)}
    given = {"x": Given(shape=(1, 3, 6, 6))}
    path = saved(model(parts, given, ["a q", "b q"], constants), tmp_path)
    network = load_network(path)
    assert [op.kind for op in network.ops] == ["quantize", "slice", "slice"]
    assert [tensor.shape for tensor in network.outputs] == [(1, 1, 6, 6), (1, 2, 6, 6)]

"""Ops that lead to no output are no part of the network."""

from pathlib import Path

import numpy as np
import pytest
from tests.onnx_models import Given, model, node, saved

from tilewright.errors import InputError
from tilewright.network.load import load_network
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import values_of

X = {"x": Given(shape=(1, 2, 4, 4))}


def test_ops_that_lead_to_no_output_are_left_out_with_their_constants(tmp_path: Path) -> None:
    nodes = [
        node("Relu", ["x"], ["a"], name="kept"),
        node("Conv", ["a", "w"], ["b"], name="unused"),
        node("Sigmoid", ["b"], ["c"], name="unused too"),
        node("Neg", ["a"], ["y"], name="last"),
    ]
    weights = {"w": np.zeros((3, 2, 1, 1), np.float32)}
    network = load_network(saved(model(nodes, X, ["y"], weights), tmp_path))
    assert [op.name for op in network.ops] == ["kept", "last"]
    assert [tensor.name for tensor in network.tensors] == ["x", "a", "y"]


@pytest.mark.parametrize("outputs", [["best"], ["best", "where"]])
def test_a_second_result_is_kept_where_somebody_asks_for_it(
    outputs: list[str], tmp_path: Path
) -> None:
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [node("MaxPool", ["x"], ["best", "where"], pool)]
    network = load_network(saved(model(nodes, X, outputs), tmp_path))
    assert [operand.tensor for operand in network.ops[0].outputs] == outputs
    assert [tensor.name for tensor in network.outputs] == outputs


def test_inputs_that_nobody_reads_stay_inputs(tmp_path: Path) -> None:
    given = {**X, "idle": Given(shape=(3,))}
    network = load_network(saved(model([node("Relu", ["x"], ["y"])], given, ["y"]), tmp_path))
    assert [tensor.name for tensor in network.inputs] == ["x", "idle"]


def test_a_file_whose_outputs_are_constants_is_refused(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["a"]), node("Neg", ["w"], ["y"])]
    path = saved(model(nodes, X, ["y"], {"w": np.ones(3, np.float32)}), tmp_path)
    with pytest.raises(InputError, match="no node computes an output from an input"):
        load_network(path)


def test_an_output_that_is_a_constant_is_copied_to_come_out_beside_the_others(
    tmp_path: Path,
) -> None:
    nodes = [node("Relu", ["x"], ["y"]), node("Neg", ["w"], ["z"])]
    stored = np.arange(3, dtype=np.float32)
    path = saved(model(nodes, X, ["z", "y", "w"], {"w": stored}), tmp_path)
    network = load_network(path)
    assert [tensor.name for tensor in network.outputs] == ["z", "y", "w"]
    assert [op.kind for op in network.ops] == ["relu", "identity", "identity"]
    found = computed(network, values_of(network, path).arrays, {})
    np.testing.assert_array_equal(found["z"], -stored)
    np.testing.assert_array_equal(found["w"], stored)

from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.network.nest_numbers import run_nests
from tests.unit.network.tflite_case import Case
from tests.unit.network.tflite_cases import CASES
from tests.unit.network.tflite_models import ModelSpec, TensorSpec, constant, model_bytes, single

from tilewright.errors import InputError
from tilewright.network.counts import macs, weight_bytes
from tilewright.network.tflite_reader import read_tflite

each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@each_case
def test_the_result_has_the_shape_worked_out_by_hand(case: Case, tmp_path: Path) -> None:
    network = read_tflite(_unrecorded(case.model).save(tmp_path), dims={})
    shapes = {tensor.name: tensor.shape for tensor in network.outputs}
    assert shapes == {key: case.model.tensors[str(key)].shape for key in case.model.outputs}
    assert len(network.ops) == case.n_ops
    assert network.ops[-1].kind == case.kind
    assert network.ops[-1].attribute("tflite_op") == case.model.operators[0].op


@each_case
def test_a_recorded_shape_that_is_right_is_no_problem(case: Case, tmp_path: Path) -> None:
    assert read_tflite(case.model.save(tmp_path), dims={}).outputs


@each_case
def test_a_recorded_shape_that_is_wrong_is_a_problem(case: Case, tmp_path: Path) -> None:
    path = _with_shape(case.model, lambda shape: (*shape[:-1], shape[-1] + 1)).save(tmp_path)
    with pytest.raises(InputError, match="but the file records"):
        read_tflite(path, dims={})


@each_case
def test_the_interpreter_reports_the_same_shape(case: Case) -> None:
    interpreter = _interpreter(case.model)
    details = {entry["name"]: tuple(entry["shape"]) for entry in interpreter.get_output_details()}
    assert details == {key: case.model.tensors[str(key)].shape for key in case.model.outputs}


@pytest.mark.parametrize(
    "case",
    [case for case in CASES.values() if case.is_affine],
    ids=[key for key, case in CASES.items() if case.is_affine],
)
def test_the_nests_alone_give_the_interpreters_numbers(case: Case, tmp_path: Path) -> None:
    interpreter = _interpreter(case.model)
    generator = np.random.default_rng(7)
    given: dict[str, Any] = dict(case.model.values)
    for entry in interpreter.get_input_details():
        given[entry["name"]] = generator.integers(0, 9, entry["shape"]).astype(entry["dtype"])
        interpreter.set_tensor(entry["index"], given[entry["name"]])
    interpreter.invoke()
    computed = run_nests(read_tflite(case.model.save(tmp_path), dims={}), given)
    for entry in interpreter.get_output_details():
        expected = interpreter.get_tensor(entry["index"])
        np.testing.assert_allclose(computed[entry["name"]], expected, rtol=1e-6)


def test_a_convolution_counts_its_taps_in_the_padding(tmp_path: Path) -> None:
    network = read_tflite(CASES["conv same"].model.save(tmp_path), dims={})
    # 7 * 6 positions, 5 kernels of 3 * 3 * 4.
    assert macs(network.ops[0], network) == 7 * 6 * 5 * 3 * 3 * 4
    assert weight_bytes(network) == 5 * 3 * 3 * 4 * 4


def test_a_depthwise_convolution_multiplies_one_channel_per_result(tmp_path: Path) -> None:
    network = read_tflite(CASES["depthwise multiplier 2"].model.save(tmp_path), dims={})
    # 4 * 3 positions, 8 kernels of 3 * 3.
    assert macs(network.ops[0], network) == 4 * 3 * 8 * 3 * 3
    assert network.ops[0].attribute("group") == 4


def test_a_transposed_convolution_counts_only_what_lands_in_its_result(tmp_path: Path) -> None:
    same = read_tflite(CASES["transpose conv same"].model.save(tmp_path), dims={})
    # Rows: 4 inputs scatter 3 taps each; (4 - 1) * 2 + 3 = 9 is one more than 8, and the odd
    # one falls off behind: 12 - 1 taps land. Columns: 3 * 3 - 1. Channels: 2 in, 5 out.
    assert macs(same.ops[0], same) == 11 * 8 * 2 * 5


def test_windows_stand_in_the_attributes_with_explicit_pads(tmp_path: Path) -> None:
    op = read_tflite(CASES["conv same stride 2"].model.save(tmp_path), dims={}).ops[0]
    # Rows: (4 - 1) * 2 + 3 - 7 = 2 to pad; columns: (3 - 1) * 2 + 3 - 6 = 1, behind.
    assert op.attribute("pads") == (1, 0, 1, 1)
    assert op.attribute("strides") == (2, 2)
    assert op.attribute("dilations") == (1, 1)
    assert op.attribute("kernel_shape") == (3, 3)


def test_a_fused_activation_is_an_attribute(tmp_path: Path) -> None:
    op = read_tflite(CASES["fully connected with relu"].model.save(tmp_path), dims={}).ops[0]
    assert op.attribute("activation") == "relu"


def test_numbers_of_an_operator_are_attributes(tmp_path: Path) -> None:
    op = read_tflite(CASES["leaky relu"].model.save(tmp_path), dims={}).ops[0]
    assert op.attribute("alpha") == 0.25


def test_operands_come_in_the_order_data_weights_bias(tmp_path: Path) -> None:
    op = read_tflite(CASES["transpose conv valid"].model.save(tmp_path), dims={}).ops[0]
    assert [(o.name, o.tensor) for o in op.inputs] == [("I", "x"), ("W", "w"), ("B", "b")]


def test_softmax_couples_the_channels(tmp_path: Path) -> None:
    op = read_tflite(CASES["softmax"].model.save(tmp_path), dims={}).ops[0]
    assert op.coupled == ("G",)


def test_dims_of_images_are_named_with_the_channels_last(tmp_path: Path) -> None:
    op = read_tflite(CASES["concatenation"].model.save(tmp_path), dims={}).ops[0]
    assert op.dims == (("B", 1), ("OY", 3), ("OX", 3), ("G", 7))


def test_top_k_makes_values_and_positions(tmp_path: Path) -> None:
    model = single(
        "TOPK_V2",
        {"x": TensorSpec(shape=(2, 9)), "k": constant(3)},
        {"v": TensorSpec(shape=(2, 3)), "i": TensorSpec(shape=(2, 3), dtype="int32")},
    )
    network = read_tflite(model.save(tmp_path), dims={})
    assert [(o.name, o.shape, o.dtype) for o in network.outputs] == [
        ("v", (2, 3), "float32"),
        ("i", (2, 3), "int32"),
    ]
    assert len(network.ops) == 1


def _interpreter(model: ModelSpec) -> Any:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter = litert.Interpreter(model_content=model_bytes(model))
    interpreter.allocate_tensors()
    return interpreter


def _unrecorded(model: ModelSpec) -> ModelSpec:
    """The model with nothing said about the shapes of results."""
    return _with_shape(model, lambda shape: ())


def _with_shape(
    model: ModelSpec, change: Callable[[tuple[int, ...]], tuple[int, ...]]
) -> ModelSpec:
    assert all(prod(model.tensors[str(key)].shape) for key in model.outputs)
    changed = {
        str(key): replace(model.tensors[str(key)], shape=change(model.tensors[str(key)].shape))
        for key in model.outputs
    }
    return replace(model, tensors={**model.tensors, **changed})

import importlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.network.tflite_cases import CASES
from tests.unit.network.tflite_models import (
    ModelSpec,
    OperatorSpec,
    TensorSpec,
    chain,
    constant,
    model_bytes,
    single,
)

from tilewright.errors import InputError
from tilewright.network.counts import constant_bytes, weight_bytes
from tilewright.network.graph import Network
from tilewright.network.kinds import KIND_CLASSES
from tilewright.network.tflite_reader import read_tflite, supported_ops

Read = Callable[..., Network]


def test_names_that_repeat_or_are_missing_become_unique(read: Read) -> None:
    model = chain("RELU", "TANH", "EXP", names=("same", "same", "", "same"))
    network = read(model)
    assert [t.name for t in network.tensors] == ["same", "same:2", "tensor_2", "same:3"]
    assert [op.name for op in network.ops] == ["same:2", "tensor_2", "same:3"]


def test_a_number_behind_a_name_that_is_taken_is_skipped(read: Read) -> None:
    network = read(chain("RELU", "TANH", names=("a:2", "a", "a")))
    assert [t.name for t in network.tensors] == ["a:2", "a", "a:3"]


def test_roles_and_element_types_are_read(read: Read) -> None:
    weights = TensorSpec(shape=(2, 1, 1, 4), dtype="int4", data=b"\x12\x34\x56\x78")
    model = single(
        "CONV_2D",
        {"x": TensorSpec(shape=(1, 3, 3, 4), dtype="int8"), "w": weights, "b": constant([1, 2])},
        {"y": TensorSpec(shape=(1, 3, 3, 2), dtype="int8")},
        ("Conv2DOptions", {"StrideH": 1, "StrideW": 1}),
    )
    tensors = {t.name: (t.role, t.dtype, t.bits) for t in read(model).tensors}
    assert tensors == {
        "x": ("input", "int8", 8),
        "w": ("constant", "int4", 4),
        "b": ("constant", "int32", 32),
        "y": ("output", "int8", 8),
    }


def test_parameters_such_as_axes_and_paddings_are_no_operands(read: Read) -> None:
    network = read(CASES["pad"].model)
    assert [t.name for t in network.tensors] == ["x", "y0"]
    assert network.ops[0].attribute("pads") == (0, 1, 0, 0, 0, 2, 3, 0)


def test_a_dequantized_constant_is_read_as_it_is_stored(read: Read) -> None:
    half = np.ones((3, 6), dtype="float16")
    model = ModelSpec(
        tensors={
            "x": TensorSpec(shape=(2, 6)),
            "half": constant(half, "float16"),
            "w": TensorSpec(shape=(3, 6)),
            "y": TensorSpec(shape=(2, 3)),
        },
        operators=(
            OperatorSpec(op="DEQUANTIZE", inputs=("half",), outputs=("w",)),
            OperatorSpec(op="FULLY_CONNECTED", inputs=("x", "w", -1), outputs=("y",)),
        ),
        inputs=("x",),
        outputs=("y",),
    )
    network = read(model)
    assert [op.kind for op in network.ops] == ["matmul"]
    assert weight_bytes(network) == constant_bytes(network) == 3 * 6 * 2


def test_an_activation_is_dequantized_by_an_op(read: Read) -> None:
    model = single(
        "DEQUANTIZE", {"x": TensorSpec(shape=(2,), dtype="int8")}, {"y": TensorSpec(shape=(2,))}
    )
    assert [op.kind for op in read(model).ops] == ["dequantize"]


@pytest.mark.parametrize(("dtype", "kind"), [("float32", "quantize"), ("uint8", "requantize")])
def test_quantize_from_integers_is_a_requantize(read: Read, dtype: str, kind: str) -> None:
    source = TensorSpec(shape=(2,), dtype=dtype)
    model = single("QUANTIZE", {"x": source}, {"y": TensorSpec(shape=(2,), dtype="int8")})
    assert [op.kind for op in read(model).ops] == [kind]


def test_arithmetic_on_shapes_is_worked_out_and_leaves_no_ops(read: Read) -> None:
    network = read(_flatten_by_shape(batch=2))
    assert [op.kind for op in network.ops] == ["reshape"]
    assert network.outputs[0].shape == (2, 12)


def test_a_resized_batch_reaches_the_result_through_arithmetic_on_shapes(read: Read) -> None:
    network = read(_flatten_by_shape(batch=2), {"x.0": 5})
    assert network.inputs[0].shape == (5, 3, 4)
    assert network.outputs[0].shape == (5, 12)


def test_a_worked_out_constant_is_an_attribute_of_who_reads_it(read: Read) -> None:
    model = ModelSpec(
        tensors={
            "x": TensorSpec(shape=(4,), dtype="int32"),
            "start": constant(1),
            "limit": constant(9),
            "step": constant(2),
            "range": TensorSpec(shape=(4,), dtype="int32"),
            "y": TensorSpec(shape=(4,), dtype="int32"),
        },
        operators=(
            OperatorSpec(op="RANGE", inputs=("start", "limit", "step"), outputs=("range",)),
            OperatorSpec(op="ADD", inputs=("x", "range"), outputs=("y",)),
        ),
        inputs=("x",),
        outputs=("y",),
    )
    network = read(model)
    assert [op.kind for op in network.ops] == ["add"]
    assert network.by_name["range"].role == "constant"
    assert network.ops[0].attribute("constant_input_1") == (1, 3, 5, 7)


def test_a_shape_that_other_operators_compute_is_taken_from_the_file(read: Read) -> None:
    model = single(
        "SLICE",
        {
            "x": TensorSpec(shape=(6, 4)),
            "begin": TensorSpec(shape=(2,), dtype="int32"),
            "size": constant([2, 4]),
        },
        {"y": TensorSpec(shape=(2, 4))},
    )
    network = read(model)
    assert network.outputs[0].shape == (2, 4)
    assert [operand.tensor for operand in network.ops[0].inputs] == ["x", "begin", "size"]
    assert network.ops[0].inputs[0].index is None


def test_an_axis_that_may_change_has_the_recorded_size(read: Read) -> None:
    model = single(
        "RELU",
        {"x": TensorSpec(shape=(1, 5), signature=(-1, 5))},
        {"y": TensorSpec(shape=(1, 5), signature=(-1, 5))},
    )
    assert read(model).outputs[0].shape == (1, 5)
    assert read(model, {"x.0": 8}).outputs[0].shape == (8, 5)


def test_a_resized_input_overrules_the_shapes_in_the_file(read: Read) -> None:
    network = read(chain("RELU", names=("x", "y")), {"x.0": 9})
    assert network.outputs[0].shape == (9, 3)


def test_data_behind_the_flatbuffer_is_a_constant(tmp_path: Path) -> None:
    def model(start: int) -> ModelSpec:
        axes = TensorSpec(shape=(1,), dtype="int32", behind_at=(start, 4))
        x, y = TensorSpec(shape=(2, 3)), TensorSpec(shape=(2,))
        spec = single("SUM", {"x": x, "axes": axes}, {"y": y})
        return replace(spec, inputs=("x",))

    length = len(model_bytes(model(1000)))
    path = tmp_path / "model.tflite"
    path.write_bytes(model_bytes(model(length)) + bytes([1, 0, 0, 0]))
    assert read_tflite(path, dims={}).ops[0].attribute("axes") == (1,)
    path.write_bytes(model_bytes(model(length)) + bytes([1, 0, 0]))
    with pytest.raises(InputError, match="behind the file"):
        read_tflite(path, dims={})


def test_a_result_whose_axis_may_change_has_the_computed_size(read: Read) -> None:
    wide = TensorSpec(shape=(1, 5), signature=(-1, 5))
    model = single("RELU", {"x": TensorSpec(shape=(7, 5))}, {"y": wide})
    assert read(model).outputs[0].shape == (7, 5)


def test_a_slice_says_where_it_starts_and_what_it_takes(read: Read) -> None:
    backwards = read(CASES["strided slice backwards"].model).ops[0]
    assert backwards.attribute("starts") == (3, 5)
    assert backwards.attribute("sizes") == (2, 3)
    assert backwards.attribute("steps") == (-1, -2)
    second = read(CASES["split v"].model).ops[1]
    assert (second.attribute("starts"), second.attribute("sizes")) == ((0, 1), (2, 3))


def test_an_output_that_is_an_input_or_a_constant_is_left_out_with_a_warning(
    read: Read, caplog: pytest.LogCaptureFixture
) -> None:
    model = chain("RELU", names=("x", "y"))
    tensors = {**model.tensors, "c": constant([1])}
    network = read(replace(model, tensors=tensors, outputs=("c", "y", "x")))
    assert [t.name for t in network.outputs] == ["y"]
    assert caplog.text.count("needs no op and is left out") == 2


def test_more_subgraphs_than_one_are_only_worth_a_warning(
    read: Read, caplog: pytest.LogCaptureFixture
) -> None:
    assert read(replace(chain("RELU", names=("x", "y")), extra_subgraphs=2)).ops
    assert "of 3 subgraphs only the first is read" in caplog.text


def test_every_supported_operator_has_a_kind() -> None:
    kinds = set(supported_ops().values())
    assert kinds - {"constant"} <= KIND_CLASSES.keys()
    assert supported_ops()["CONV_2D"] == "conv"
    assert supported_ops()["SHAPE"] == "constant"


def test_every_supported_operator_is_one_of_the_schemas() -> None:
    module = importlib.import_module("tflite.BuiltinOperator")
    assert supported_ops().keys() <= vars(module.BuiltinOperator).keys()


def test_asking_what_is_supported_loads_neither_tflite_nor_numpy() -> None:
    code = (
        "import sys; from tilewright.network.tflite_reader import supported_ops; supported_ops(); "
        "sys.exit(bool({'tflite', 'flatbuffers', 'numpy'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_reading_the_same_file_twice_gives_the_same_network(read: Read) -> None:
    assert read(CASES["pack"].model) == read(CASES["pack"].model)


def _flatten_by_shape(batch: int) -> ModelSpec:
    """x -> reshape(x, (shape(x)[0], -1)), as Keras's Flatten is converted."""
    integers: dict[str, Any] = {"dtype": "int32"}
    return ModelSpec(
        tensors={
            "x": TensorSpec(shape=(batch, 3, 4), signature=(-1, 3, 4)),
            "shape": TensorSpec(shape=(3,), dtype="int32"),
            "begin": constant([0]),
            "end": constant([1]),
            "stride": constant([1]),
            "batch": TensorSpec(shape=(), **integers),
            "rest": constant(-1),
            "target": TensorSpec(shape=(2,), **integers),
            "y": TensorSpec(shape=(batch, 12), signature=(-1, 12)),
        },
        operators=(
            OperatorSpec(op="SHAPE", inputs=("x",), outputs=("shape",)),
            OperatorSpec(
                op="STRIDED_SLICE",
                inputs=("shape", "begin", "end", "stride"),
                outputs=("batch",),
                options=("StridedSliceOptions", {"ShrinkAxisMask": 1}),
            ),
            OperatorSpec(
                op="PACK",
                inputs=("batch", "rest"),
                outputs=("target",),
                options=("PackOptions", {"ValuesCount": 2}),
            ),
            OperatorSpec(op="RESHAPE", inputs=("x", "target"), outputs=("y",)),
        ),
        inputs=("x",),
        outputs=("y",),
    )

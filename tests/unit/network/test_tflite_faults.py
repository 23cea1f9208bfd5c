from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

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
from tilewright.network.graph import Network
from tilewright.network.tflite_reader import read_tflite


@pytest.fixture
def messages(tmp_path: Path) -> Callable[..., list[str]]:
    """What is said of a model that cannot be read; every fault names the file."""

    def fault_messages(model: ModelSpec, dims: Mapping[str, int] | None = None) -> list[str]:
        path = model.save(tmp_path)
        with pytest.raises(InputError) as caught:
            read_tflite(path, dims=dims or {})
        assert all(problem.file == str(path) for problem in caught.value.problems)
        return [problem.message for problem in caught.value.problems]

    return fault_messages


Read = Callable[..., Network]
Messages = Callable[..., list[str]]


def test_a_shape_that_nobody_knows_is_a_problem(messages: Messages) -> None:
    model = single(
        "RESHAPE",
        {"x": TensorSpec(shape=(6, 4)), "shape": TensorSpec(shape=(2,), dtype="int32")},
        {"y": TensorSpec(shape=())},
    )
    assert messages(model) == [
        "operator 0 (RESHAPE): the shape of its result is not known before the network runs"
    ]


@pytest.mark.parametrize("key", ["y.0", "x.2", "x", "x.-1", "0"])
def test_a_dim_that_no_input_has_is_a_problem(messages: Messages, key: str) -> None:
    model = chain("RELU", names=("x", "y"))
    assert messages(model, {key: 2}) == [f"no input has an axis {key!r}"]


@pytest.mark.parametrize("size", [0, -3, 2**50])
def test_a_dim_needs_a_size_that_is_possible(messages: Messages, size: int) -> None:
    model = chain("RELU", names=("x", "y"))
    assert messages(model, {"x.0": size}) == [f"input 'x': axis 0 has size {size}"]


def test_an_input_without_a_size_asks_for_one(messages: Messages, read: Read) -> None:
    model = single("RELU", {"x": TensorSpec(shape=(0, 5))}, {"y": TensorSpec(shape=())})
    assert messages(model) == ["input 'x': axis 0 has size 0"]
    assert read(model, {"x.0": 3}).outputs[0].shape == (3, 5)


def test_operators_that_cannot_be_read_are_reported_once_each(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    ops = ["IF", "LSTM", "CUSTOM", "CUSTOM", "RELU", "CUSTOM", "CUSTOM", "CUSTOM", "UNIQUE"]
    model = chain(*ops, names=tuple(f"t{i}" for i in range(10)))
    operators = tuple(
        replace(operator, custom_code="Detect" if operator.op == "CUSTOM" else "")
        for operator in model.operators
    )
    path = replace(model, operators=operators).save(tmp_path)
    with pytest.raises(InputError) as caught:
        read_tflite(path, dims={})
    text = str(caught.value).replace(str(path), "model.tflite")
    golden("errors/tflite_unsupported.txt", text + "\n")


def test_all_problems_of_a_file_are_reported_at_once(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    path = _many_faults().save(tmp_path)
    with pytest.raises(InputError) as caught:
        read_tflite(path, dims={})
    text = str(caught.value).replace(str(path), "model.tflite")
    golden("errors/tflite_problems.txt", text + "\n")


def test_a_thousand_problems_are_counted_not_listed(messages: Messages) -> None:
    count = 1000
    tensors = {f"t{i}": TensorSpec(shape=(2,)) for i in range(count + 1)}
    operators = tuple(
        OperatorSpec(op="ADD", inputs=(f"t{i}",), outputs=(f"t{i + 1}",)) for i in range(count)
    )
    model = ModelSpec(tensors=tensors, operators=operators, inputs=("t0",), outputs=("t1000",))
    said = messages(model)
    assert len(said) == 51
    assert said[-1] == "950 more problems are left out"


def test_what_follows_a_result_of_unknown_shape_is_not_blamed(messages: Messages) -> None:
    model = ModelSpec(
        tensors={
            "x": TensorSpec(shape=(2, 3)),
            "odd": TensorSpec(shape=()),
            "axes": constant([1]),
            "y": TensorSpec(shape=(2,)),
        },
        operators=(
            OperatorSpec(op="CUSTOM", custom_code="Odd", inputs=("x",), outputs=("odd",)),
            OperatorSpec(op="SUM", inputs=("odd", "axes"), outputs=("y",)),
        ),
        inputs=("x",),
        outputs=("y",),
    )
    assert len(messages(model)) == 1


def test_an_operator_that_makes_an_input_or_a_tensor_twice_is_a_problem(
    messages: Messages,
) -> None:
    model = chain("RELU", "RELU", names=("x", "y", "z"))
    again = replace(model.operators[1], outputs=("y",))
    onto_input = replace(model.operators[1], outputs=("x",))
    assert messages(replace(model, operators=(model.operators[0], again), outputs=("y",))) == [
        "operator 1 (RELU): makes tensor 'y', which is there already"
    ]
    both = (model.operators[0], onto_input)
    assert messages(replace(model, operators=both, outputs=("y",))) == [
        "operator 1 (RELU): makes tensor 'x', which is there already"
    ]


@pytest.mark.parametrize("op", ["RELU", "SHAPE", "DEQUANTIZE", "PACK"])
def test_an_operator_that_makes_too_many_tensors_is_a_problem(messages: Messages, op: str) -> None:
    model = chain(op, names=("x", "y"))
    two = replace(model.operators[0], outputs=("y", "z"))
    tensors = {**model.tensors, "z": TensorSpec(shape=(2, 3))}
    assert messages(replace(model, tensors=tensors, operators=(two,))) == [
        f"operator 0 ({op}): makes 2 tensors, not 1"
    ]


def test_operators_in_a_circle_are_a_problem(messages: Messages) -> None:
    model = chain("RELU", "RELU", names=("x", "y", "z"))
    first = replace(model.operators[0], inputs=("z",))
    assert messages(replace(model, operators=(first, model.operators[1]))) == [
        "operator 0 (RELU): reads 'z' before operator 1 makes it"
    ]


def test_a_network_that_hands_its_input_out_has_nothing_to_run(messages: Messages) -> None:
    model = chain("RELU", names=("x", "y"))
    assert messages(replace(model, operators=(), outputs=("x",))) == [
        "no operator makes an output: there is nothing to run"
    ]


def test_an_output_that_nobody_makes_is_a_problem(messages: Messages) -> None:
    model = chain("RELU", "RELU", names=("x", "y", "z"))
    model = replace(model, operators=model.operators[:1], outputs=("y", "z"))
    assert messages(model) == ["output: no operator makes 'z'"]


def test_options_of_another_operator_are_a_problem(messages: Messages) -> None:
    model = CASES["conv same"].model
    wrong = replace(model.operators[0], options=("Pool2DOptions", {"StrideH": 1}))
    assert messages(replace(model, operators=(wrong,))) == [
        "operator 0 (CONV_2D): carries Pool2DOptions where Conv2DOptions belong"
    ]


def test_missing_options_mean_the_schemas_defaults(messages: Messages) -> None:
    model = CASES["conv same"].model
    bare = replace(model.operators[0], options=None)
    assert messages(replace(model, operators=(bare,))) == [
        "operator 0 (CONV_2D): kernel 3, stride 0 and dilation 1 must each be at least 1"
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "bytes 4 to 8"),
        (b"TFL3", "bytes 4 to 8"),
        (b"\x00\x00\x00\x00ONNX" + bytes(64), "bytes 4 to 8"),
        (b"\xff\xff\xff\x7fTFL3" + bytes(64), "points outside the file"),
    ],
)
def test_what_is_no_tflite_file_is_said_so(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint):
        read_tflite(path, dims={})


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_a_file_that_is_not_there_is_an_input_error(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "model.tflite"
    make(path)
    with pytest.raises(InputError, match="cannot be opened"):
        read_tflite(path, dims={})


def test_another_version_of_the_schema_is_refused(messages: Messages) -> None:
    said = messages(replace(chain("RELU", names=("x", "y")), version=4))
    assert said == ["cannot be read as a TFLite model: schema version 4; only 3 is known"]


def test_every_truncation_of_a_file_is_an_input_error(tmp_path: Path) -> None:
    content = model_bytes(CASES["conv same"].model)
    path = tmp_path / "model.tflite"
    for end in range(0, len(content) - 3, 7):  # The last bytes may be padding.
        path.write_bytes(content[:end])
        with pytest.raises(InputError):
            read_tflite(path, dims={})


def _many_faults() -> ModelSpec:
    image = TensorSpec(shape=(1, 4, 4, 3))
    conv = ("Conv2DOptions", {"StrideH": 1, "StrideW": 1})
    return ModelSpec(
        tensors={
            "x": image,
            "w": constant(np.zeros((2, 3, 3, 2)), "float32"),
            "short": TensorSpec(shape=(2, 3, 3, 3), data=bytes(10)),
            "empty": TensorSpec(shape=(4,)),
            "state": TensorSpec(shape=(4,), is_variable=True),
            "words": TensorSpec(shape=(4,), dtype="text"),
            "axes": constant([7]),
            **{f"y{i}": image for i in range(9)},
        },
        operators=(
            OperatorSpec(op="CONV_2D", inputs=("x", "w"), outputs=("y0",), options=conv),
            OperatorSpec(op="CONV_2D", inputs=("x", "short"), outputs=("y1",), options=conv),
            OperatorSpec(op="ADD", inputs=("x", "empty"), outputs=("y2",)),
            OperatorSpec(op="ADD", inputs=("y2", "state"), outputs=("y3",)),
            OperatorSpec(op="SUM", inputs=("y3", "axes"), outputs=("y4",)),
            OperatorSpec(op="ADD", inputs=("y4", 99), outputs=("y5",)),
            OperatorSpec(op="RELU", inputs=("y8",), outputs=("y6",)),
            OperatorSpec(op="RELU", inputs=("y6",), outputs=("words",)),
            OperatorSpec(op="RELU", inputs=("y6",), outputs=(-5,)),
            OperatorSpec(op="RELU", inputs=("y6",), outputs=()),
            OperatorSpec(op="SUM", inputs=("y6",), outputs=("y7",)),
            OperatorSpec(op="ADD", inputs=("y6", "x"), outputs=("y8",)),
        ),
        inputs=("x", 77),
        outputs=("y8", 78),
    )

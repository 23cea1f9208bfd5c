"""What is worked out while reading is what the interpreter would have computed."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.unit.network.tflite_models import (
    ModelSpec,
    OperatorSpec,
    Options,
    TensorSpec,
    constant,
    model_bytes,
)

from tilewright.network.tflite_reader import read_tflite

Folding = tuple[str, Mapping[str, TensorSpec], tuple[int, ...], Options | None]

_LEFT = constant([7, -7, 9, -2])
_RIGHT = constant([2, 2, -4, -4])
_TABLE = constant([[1, 2, 3], [4, 5, 6]])
_KEEP: Options = ("ReducerOptions", {"KeepDims": True})

FOLDINGS: dict[str, Folding] = {
    **{
        op.lower(): (op, {"a": _LEFT, "b": _RIGHT}, (4,), None)
        for op in ("ADD", "SUB", "MUL", "DIV", "FLOOR_DIV", "FLOOR_MOD", "MINIMUM", "MAXIMUM")
    },
    "three summands": ("ADD_N", {"a": _LEFT, "b": _RIGHT, "c": _LEFT}, (4,), None),
    "broadcast": ("MUL", {"a": _TABLE, "b": constant([[10], [20]])}, (2, 3), None),
    "negated": ("NEG", {"a": _LEFT}, (4,), None),
    "absolute": ("ABS", {"a": _LEFT}, (4,), None),
    "cast": ("CAST", {"a": constant([2.9, -2.9, 0.5], "float32")}, (3,), None),
    "product": ("REDUCE_PROD", {"a": _TABLE, "axes": constant([1])}, (2,), None),
    "sum": ("SUM", {"a": _TABLE, "axes": constant([0])}, (1, 3), _KEEP),
    "largest": ("REDUCE_MAX", {"a": _TABLE, "axes": constant([0, 1])}, (), None),
    "gather": ("GATHER", {"a": _LEFT, "i": constant([2, 0])}, (2,), None),
    "backwards": (
        "STRIDED_SLICE",
        {"a": _LEFT, "from": constant([3]), "to": constant([0]), "by": constant([-2])},
        (2,),
        None,
    ),
    "joined": ("CONCATENATION", {"a": _LEFT, "b": _RIGHT}, (8,), None),
    "packed": (
        "PACK",
        {"a": _LEFT, "b": _RIGHT},
        (4, 2),
        ("PackOptions", {"ValuesCount": 2, "Axis": 1}),
    ),
    "transposed": ("TRANSPOSE", {"a": _TABLE, "order": constant([1, 0])}, (3, 2), None),
    "reversed": ("REVERSE_V2", {"a": _TABLE, "axes": constant([1])}, (2, 3), None),
    "chosen": (
        "SELECT_V2",
        {"c": constant([True, False, False, True], "bool"), "a": _LEFT, "b": _RIGHT},
        (4,),
        None,
    ),
    "range": ("RANGE", {"a": constant(9), "b": constant(-4), "s": constant(-3)}, (5,), None),
}


@pytest.mark.parametrize("folding", FOLDINGS.values(), ids=FOLDINGS.keys())
def test_an_operator_on_constants_is_worked_out_as_the_interpreter_does(
    folding: Folding, tmp_path: Path
) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    op, inputs, shape, options = folding
    result = TensorSpec(shape=shape, dtype="int32")
    model = ModelSpec(
        tensors={**inputs, "x": result, "folded": result, "y": result},
        operators=(
            OperatorSpec(op=op, inputs=tuple(inputs), outputs=("folded",), options=options),
            OperatorSpec(op="ADD", inputs=("x", "folded"), outputs=("y",)),
        ),
        inputs=("x",),
        outputs=("y",),
    )
    network = read_tflite(model.save(tmp_path), dims={})
    interpreter = litert.Interpreter(model_content=model_bytes(model))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.zeros(shape, "int32"))
    interpreter.invoke()
    expected = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert [op.kind for op in network.ops] == ["add"]
    assert network.ops[0].attribute("constant_input_1") == tuple(expected.flatten().tolist())


@pytest.mark.parametrize(
    ("op", "left", "right"),
    [
        ("DIV", 1, 0),
        ("FLOOR_DIV", 1, 0),
        ("FLOOR_MOD", 1, 0),
        ("MUL", 2**30, 2),
        ("ADD", 2**31 - 1, 1),
    ],
)
def test_what_has_no_result_or_too_large_a_one_stays_an_op(
    op: str, left: int, right: int, tmp_path: Path
) -> None:
    number = TensorSpec(shape=(1,), dtype="int32")
    model = ModelSpec(
        tensors={
            "x": number,
            "a": constant([left]),
            "b": constant([right]),
            "c": number,
            "y": number,
        },
        operators=(
            OperatorSpec(op=op, inputs=("a", "b"), outputs=("c",)),
            OperatorSpec(op="ADD", inputs=("x", "c"), outputs=("y",)),
        ),
        inputs=("x",),
        outputs=("y",),
    )
    assert len(read_tflite(model.save(tmp_path), dims={}).ops) == 2


def test_a_sum_of_one_is_worked_out(tmp_path: Path) -> None:
    vector = TensorSpec(shape=(4,), dtype="int32")
    model = ModelSpec(
        tensors={"a": _LEFT, "x": vector, "b": vector, "y": vector},
        operators=(
            OperatorSpec(op="ADD_N", inputs=("a",), outputs=("b",)),
            OperatorSpec(op="ADD", inputs=("x", "b"), outputs=("y",)),
        ),
        inputs=("x",),
        outputs=("y",),
    )
    op = read_tflite(model.save(tmp_path), dims={}).ops[0]
    assert op.attribute("constant_input_1") == (7, -7, 9, -2)


def test_an_operator_that_makes_an_output_stays_an_op(tmp_path: Path) -> None:
    model = ModelSpec(
        tensors={"a": _LEFT, "y": TensorSpec(shape=(4,), dtype="int32")},
        operators=(OperatorSpec(op="NEG", inputs=("a",), outputs=("y",)),),
        inputs=(),
        outputs=("y",),
    )
    assert [op.kind for op in read_tflite(model.save(tmp_path), dims={}).ops] == ["neg"]

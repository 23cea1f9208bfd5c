"""Hostile files: whatever the bytes, reading ends soon, with a network or an InputError.

TILEWRIGHT_FUZZ sets the number of examples.
"""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.random_cases import examples
from tests.unit.network.tflite_cases import CASES
from tests.unit.network.tflite_models import (
    ModelSpec,
    OperatorSpec,
    TensorSpec,
    constant,
    model_bytes,
)

from tilewright.errors import InputError
from tilewright.network.graph import Network
from tilewright.network.tflite_reader import read_tflite, supported_ops
from tilewright.network.tflite_reader.decode import MAX_OPERANDS, MAX_OPERATORS
from tilewright.network.tflite_reader.options import OPTIONS_TABLES, VECTOR_FIELDS
from tilewright.network.tflite_reader.raw import MAX_RANK

CONTENTS = [model_bytes(case.model) for case in CASES.values()]
EXTREMES = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 4]
ANY_EXAMPLES = settings(
    max_examples=int(os.environ.get("TILEWRIGHT_FUZZ", examples(200))),
    deadline=10_000,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def _read(folder: Path, content: bytes) -> Network | None:
    path = folder / "model.tflite"
    path.write_bytes(content)
    try:
        return read_tflite(path, dims={})
    except InputError:
        return None


@ANY_EXAMPLES
@given(st.sampled_from(CONTENTS), st.data())
def test_bytes_that_change_end_in_a_network_or_an_input_error(
    tmp_path: Path, content: bytes, data: st.DataObject
) -> None:
    mutated = bytearray(content)
    places = st.integers(8, len(content) - 5)
    for place in data.draw(st.lists(places, min_size=1, max_size=4)):
        width = data.draw(st.sampled_from([1, 2, 4]))
        number = data.draw(st.one_of(st.sampled_from(EXTREMES), st.integers(0, 2**32 - 1)))
        mutated[place : place + width] = number.to_bytes(4, "little")[:width]
    _read(tmp_path, bytes(mutated))


@ANY_EXAMPLES
@given(st.sampled_from(CONTENTS), st.data())
def test_words_that_change_places_end_in_a_network_or_an_input_error(
    tmp_path: Path, content: bytes, data: st.DataObject
) -> None:
    words = [content[i : i + 4] for i in range(0, len(content), 4)]
    places = st.integers(2, len(words) - 1)
    for _ in range(data.draw(st.integers(1, 3))):
        words[data.draw(places)] = words[data.draw(places)]
    _read(tmp_path, b"".join(words))


@ANY_EXAMPLES
@given(st.sampled_from(CONTENTS), st.integers(0, 100_000), st.binary(max_size=64))
def test_files_that_are_cut_and_continued_end_in_a_network_or_an_input_error(
    tmp_path: Path, content: bytes, cut: int, tail: bytes
) -> None:
    _read(tmp_path, content[: cut % len(content)] + tail)


YES_OR_NO = {
    "AdjX",
    "AdjY",
    "AlignCorners",
    "Approximate",
    "Exclusive",
    "HalfPixelCenters",
    "KeepDims",
    "KeepNumDims",
    "Offset",
    "Reverse",
}


@st.composite
def _operators(draw: st.DrawFn) -> OperatorSpec:
    """Any operator on any of eight tensors, with any options."""
    op = draw(st.sampled_from(sorted(supported_ops())))
    table = OPTIONS_TABLES.get(op)
    fields: dict[str, int | list[int]] = {}
    for field, _ in table.fields if table else ():
        if field in VECTOR_FIELDS:
            fields[field] = draw(st.lists(st.integers(-2, 4), max_size=3))
        else:
            fields[field] = draw(st.integers(0, 1) if field in YES_OR_NO else st.integers(-2, 5))
    tensors = st.one_of(st.integers(0, 7), st.integers(-2, 9))
    return OperatorSpec(
        op=op,
        inputs=tuple(draw(st.lists(tensors, max_size=4))),
        outputs=tuple(draw(st.lists(tensors, min_size=1, max_size=2))),
        options=(table.schema_class, fields) if table else None,
    )


@ANY_EXAMPLES
@given(
    st.lists(_operators(), max_size=6),
    st.lists(st.lists(st.integers(-1, 4), max_size=5), min_size=5, max_size=5),
    st.lists(st.lists(st.integers(-3, 5), max_size=4), min_size=3, max_size=3),
)
def test_operators_on_any_tensors_end_in_a_network_or_an_input_error(
    tmp_path: Path,
    operators: list[OperatorSpec],
    shapes: list[list[int]],
    constants: list[list[int]],
) -> None:
    tensors = {
        f"t{i}": TensorSpec(shape=tuple(shape), dtype="float32" if i < 3 else "int32")
        for i, shape in enumerate(shapes)
    }
    tensors |= {f"c{i}": constant(numbers) for i, numbers in enumerate(constants)}
    model = ModelSpec(tensors=tensors, operators=tuple(operators), inputs=(0, 1), outputs=(2, 3))
    _read(tmp_path, model_bytes(model))


ONE_BYTE = {"FusedActivationFunction", "Mode", "OutputType", "Padding", "WeightsFormat"}
BYTES = st.integers(-2, 6)
NUMBERS = st.one_of(st.integers(-4, 9), st.sampled_from([-(2**31), 2**31 - 1, 1000, -1000]))


@ANY_EXAMPLES
@given(st.sampled_from(sorted(CASES)), st.data())
def test_operators_with_a_few_things_changed_end_in_a_network_or_an_input_error(
    tmp_path: Path, key: str, data: st.DataObject
) -> None:
    model = CASES[key].model
    operator = model.operators[0]
    tensors = dict(model.tensors)
    for name in data.draw(st.lists(st.sampled_from(sorted(tensors)), max_size=3)):
        spec = tensors[name]
        if spec.data and spec.dtype == "int32" and data.draw(st.booleans()):
            count = len(spec.data) // 4
            numbers = data.draw(st.lists(NUMBERS, min_size=count, max_size=count))
            tensors[name] = replace(constant(numbers), shape=spec.shape)
        elif spec.data:
            tensors[name] = replace(spec, shape=tuple(data.draw(st.permutations(spec.shape))))
        else:
            shape = data.draw(st.lists(st.integers(-1, 9), max_size=5))
            tensors[name] = replace(spec, shape=tuple(shape))
    inputs = data.draw(st.permutations([*operator.inputs, -1]))[: data.draw(st.integers(1, 5))]
    options = operator.options
    if options is not None:
        changeable = sorted(options[1].keys() - YES_OR_NO - VECTOR_FIELDS)
        fields = {field: data.draw(BYTES if field in ONE_BYTE else NUMBERS) for field in changeable}
        options = (options[0], {**options[1], **fields} if data.draw(st.booleans()) else options[1])
    keeps = data.draw(st.booleans())
    operator = replace(operator, inputs=operator.inputs if keeps else tuple(inputs))
    operator = replace(operator, options=options)
    _read(tmp_path, model_bytes(replace(model, tensors=tensors, operators=(operator,))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "n_operators", "n_inputs", "shape"),
    [
        ("ADD_N", MAX_OPERATORS - 1, 1, (1, 1, 1)),
        ("ADD_N", MAX_OPERANDS // 20, 18, (1, 1, 1)),
        ("CONCATENATION", MAX_OPERANDS // 200, 190, (190, *[1] * (MAX_RANK - 1))),
        ("PACK", MAX_OPERANDS // 400, 390, (390, *[1] * (MAX_RANK - 1))),
    ],
)
def test_the_largest_files_that_are_accepted_are_read_within_ten_seconds(
    tmp_path: Path, op: str, n_operators: int, n_inputs: int, shape: tuple[int, ...]
) -> None:
    rank = len(shape) - 1 if op == "PACK" else len(shape)
    tensors = {"t0": TensorSpec(shape=(1,) * rank)}
    tensors |= {f"t{i + 1}": TensorSpec(shape=shape) for i in range(n_operators)}
    operators = tuple(
        OperatorSpec(op=op, inputs=(0,) * n_inputs, outputs=(i + 1,)) for i in range(n_operators)
    )
    model = ModelSpec(tensors=tensors, operators=operators, inputs=(0,), outputs=(n_operators,))
    content = model_bytes(model)
    start = time.process_time()
    network = _read(tmp_path, content)
    assert time.process_time() - start < 10
    assert network is not None


@pytest.mark.slow
def test_an_operator_with_the_most_results_is_read_within_ten_seconds(tmp_path: Path) -> None:
    count = MAX_OPERANDS - 100
    results = {f"t{i}": TensorSpec(shape=(1,)) for i in range(count)}
    model = ModelSpec(
        tensors={**results, "x": TensorSpec(shape=(count,)), "axis": constant([0])},
        operators=(OperatorSpec(op="SPLIT", inputs=("axis", "x"), outputs=tuple(results)),),
        inputs=("x",),
        outputs=("t0",),
    )
    content = model_bytes(model)
    start = time.process_time()
    network = _read(tmp_path, content)
    assert time.process_time() - start < 10
    assert network is not None


@pytest.mark.parametrize(
    ("op", "n_inputs"), [("PACK", 2), ("PACK", 390), ("CONCATENATION", 2), ("CONCATENATION", 190)]
)
def test_shapes_that_grow_from_operator_to_operator_are_stopped(
    tmp_path: Path, op: str, n_inputs: int
) -> None:
    n_operators = 300
    tensors = {f"t{i}": TensorSpec(shape=(1, 1, 1) if i == 0 else ()) for i in range(301)}
    operators = tuple(
        OperatorSpec(op=op, inputs=(i,) * n_inputs, outputs=(i + 1,)) for i in range(n_operators)
    )
    model = ModelSpec(tensors=tensors, operators=operators, inputs=(0,), outputs=(n_operators,))
    start = time.process_time()
    assert _read(tmp_path, model_bytes(model)) is None
    assert time.process_time() - start < 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "n_operators", "n_inputs"),
    [("RELU", MAX_OPERATORS + 1, 1), ("CONCATENATION", 3, MAX_OPERANDS // 2)],
)
def test_files_beyond_all_measure_are_refused(
    tmp_path: Path, op: str, n_operators: int, n_inputs: int
) -> None:
    tensors = {f"t{i}": TensorSpec(shape=(1,)) for i in range(n_operators + 1)}
    operators = tuple(
        OperatorSpec(op=op, inputs=(0,) * n_inputs, outputs=(i + 1,)) for i in range(n_operators)
    )
    model = ModelSpec(tensors=tensors, operators=operators, inputs=(0,), outputs=(1,))
    assert _read(tmp_path, model_bytes(model)) is None

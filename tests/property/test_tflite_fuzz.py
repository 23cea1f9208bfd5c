"""Hostile files: whatever the bytes, reading ends soon, with a network or an InputError.

TILEWRIGHT_FUZZ sets the number of examples.
"""

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.network.tflite_cases import CASES
from tests.unit.network.tflite_models import ModelSpec, OperatorSpec, TensorSpec, model_bytes

from tilewright.errors import InputError
from tilewright.network.graph import Network
from tilewright.network.tflite_reader import read_tflite, supported_ops
from tilewright.network.tflite_reader.decode import MAX_OPERANDS, MAX_OPERATORS
from tilewright.network.tflite_reader.raw import MAX_RANK

CONTENTS = [model_bytes(case.model) for case in CASES.values()]
EXTREMES = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 4]
ANY_EXAMPLES = settings(
    max_examples=int(os.environ.get("TILEWRIGHT_FUZZ", "200")),
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


@ANY_EXAMPLES
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(supported_ops())),
            st.lists(st.integers(-2, 9), max_size=4),
            st.lists(st.integers(-2, 9), max_size=2),
        ),
        max_size=6,
    ),
    st.lists(st.lists(st.integers(-1, 4), max_size=5), min_size=8, max_size=8),
)
def test_operators_on_any_tensors_end_in_a_network_or_an_input_error(
    tmp_path: Path,
    wiring: list[tuple[str, list[int], list[int]]],
    shapes: list[list[int]],
) -> None:
    tensors = {
        f"t{i}": TensorSpec(
            shape=tuple(shape),
            dtype="int32" if i % 2 else "float32",
            data=bytes([1, 0, 0, 0] * 4) if i >= 4 else b"",
        )
        for i, shape in enumerate(shapes)
    }
    operators = tuple(
        OperatorSpec(op=op, inputs=tuple(inputs), outputs=tuple(outputs))
        for op, inputs, outputs in wiring
    )
    model = ModelSpec(tensors=tensors, operators=operators, inputs=(0, 1), outputs=(2, 3))
    _read(tmp_path, model_bytes(model))


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

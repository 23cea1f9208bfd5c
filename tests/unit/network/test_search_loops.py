"""Look-ups in data that are made while the network runs have loops through what they search."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.onnx_models import Case, Given, saved, single
from tests.unit.network.tflite_case import data
from tests.unit.network.tflite_models import ModelSpec, OperatorSpec, TensorSpec

from tilewright.network.graph import Index, Network, Op
from tilewright.network.onnx_reader import read_onnx

Read = Callable[[ModelSpec], Network]
K = Index((("K", 1),))


def from_onnx(folder: Path, op: str, *shapes: tuple[int, ...], **attributes: int) -> Op:
    operands = (Given(shape=shapes[0]), Given(shape=shapes[1], dtype="int64"))
    case = Case(name=op, op=op, operands=operands, attributes=attributes)
    return read_onnx(saved(single(case), folder)).ops[0]


def from_tflite(read: Read, op: str, table: TensorSpec, places: TensorSpec, **options: int) -> Op:
    result = TensorSpec(shape=(7, 3))
    operator = OperatorSpec(
        op=op,
        inputs=("table", "places"),
        outputs=("y",),
        options=("GatherOptions", options) if op == "GATHER" else None,
    )
    given = tuple(n for n, t in (("table", table), ("places", places)) if not t.data)
    tensors = {"table": table, "places": places, "y": result}
    model = ModelSpec(tensors=tensors, operators=(operator,), inputs=given, outputs=("y",))
    return read(model).ops[0]


def searched(axis: int) -> Index:
    return Index(((f"S{axis}", 1),))


def test_entries_along_an_axis_are_looked_for_in_a_loop_through_it(tmp_path: Path) -> None:
    op = from_onnx(tmp_path, "Gather", (9, 5), (4,), axis=0)
    assert op.dims == (("D", 4), ("K", 5), ("S0", 9))
    assert op.inputs[0].index == (searched(0), K)
    assert (op.searched, op.searches(op.inputs[0]), op.searches(op.inputs[1])) == (
        ("S0",),
        True,
        False,
    )
    # A step for each of the 4 x 5 elements that are found, none for those that are passed over.
    assert op.points == 20


def test_elements_by_places_along_several_axes_have_a_loop_for_each(tmp_path: Path) -> None:
    op = from_onnx(tmp_path, "GatherND", (1, 6, 5, 3), (7, 3))
    # The first axis has but one place to look at.
    assert op.dims == (("D", 7), ("K", 3), ("S1", 6), ("S2", 5))
    assert op.inputs[0].index == (Index(()), searched(1), searched(2), K)


def test_an_element_for_every_place_has_a_loop_through_its_axis(tmp_path: Path) -> None:
    op = from_onnx(tmp_path, "GatherElements", (2, 6), (2, 4), axis=1)
    assert op.dims == (("D", 2), ("K", 4), ("S1", 6))
    assert op.inputs[0].index == (Index((("D", 1),)), searched(1))


@pytest.mark.parametrize(
    ("op", "places", "loops"),
    [("GATHER", (7,), (("S0", 9),)), ("GATHER_ND", (7, 1), (("S0", 9),))],
)
def test_a_tflite_look_up_has_the_same_loops(
    read: Read, op: str, places: tuple[int, ...], loops: tuple[tuple[str, int], ...]
) -> None:
    found = from_tflite(read, op, data(9, 3), data(*places, dtype="int32"))
    assert found.dims == (("D", 7), ("K", 3), *loops)
    assert found.inputs[0].index == (searched(0), K)
    assert found.points == 21


def test_a_table_that_is_known_is_read_where_it_lies(read: Read) -> None:
    table = TensorSpec(shape=(9, 3), data=np.zeros((9, 3), np.float32).tobytes())
    found = from_tflite(read, "GATHER", table, data(7, dtype="int32"))
    assert found.dims == (("D", 7), ("K", 3))
    assert found.inputs[0].index == (Index((), reach=8), K)
    assert found.searches(found.inputs[0])

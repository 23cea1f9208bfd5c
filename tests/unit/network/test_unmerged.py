"""The best of several axes, which a file merges to one before it asks for its place."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.onnx_models import Given, model, node, saved
from tests.unit.network.tflite_models import ModelSpec, OperatorSpec, TensorSpec

from tilewright.network.graph import Index, Network
from tilewright.network.load import load_network
from tilewright.replay.kernels.whole import computed


def loaded(
    folder: Path,
    shape: tuple[int, ...],
    merged: Sequence[int],
    axis: int,
    further: Sequence[onnx.NodeProto] = (),
) -> Network:
    """A reshape and an ArgMax behind it; `further` nodes make the output z."""
    nodes = [
        node("Relu", ["x"], ["a"], name="relu"),
        node("Reshape", ["a", "shape"], ["b"], name="merge"),
        node("ArgMax", ["b"], ["y"], {"axis": axis, "keepdims": 0}, name="best"),
        *further,
    ]
    outputs = ["y", "z"] if further else ["y"]
    constants = {"shape": np.array(merged, np.int64)}
    return load_network(saved(model(nodes, {"x": Given(shape=shape)}, outputs, constants), folder))


def test_the_best_of_merged_axes_is_looked_for_along_these(tmp_path: Path) -> None:
    network = loaded(tmp_path, (1, 4, 6, 3), (1, 24, 3), 1)
    assert [op.name for op in network.ops] == ["relu", "best"]
    best = network.ops[1]
    assert best.dims == (("B", 1), ("D0", 4), ("D1", 6), ("K", 3))
    assert best.inputs[0].tensor == "a"
    dims = ("B", "D0", "D1", "K")
    assert best.inputs[0].index == tuple(Index(((dim, 1),)) for dim in dims)
    assert best.points == 1 * 24 * 3
    # Neither the merged tensor nor the shape that it was given is there any more.
    assert [tensor.name for tensor in network.tensors] == ["x", "a", "y"]


def test_its_place_is_counted_through_all_of_them(tmp_path: Path) -> None:
    network = loaded(tmp_path, (2, 4, 6, 3), (2, 24, 3), 1)
    data = np.random.default_rng(0).permutation(2 * 4 * 6 * 3).reshape(2, 4, 6, 3)
    arrays = {"x": data.astype(np.float32)}
    expected = data.reshape(2, 24, 3).argmax(axis=1)
    np.testing.assert_array_equal(computed(network, arrays, {})["y"], expected)


def test_a_tflite_file_is_read_alike(tmp_path: Path) -> None:
    tensors = {
        "x": TensorSpec(shape=(1, 4, 6, 3), dtype="int8"),
        "shape": TensorSpec(
            shape=(3,), dtype="int32", data=np.array([1, 24, 3], np.int32).tobytes()
        ),
        "b": TensorSpec(shape=(1, 24, 3), dtype="int8"),
        "axis": TensorSpec(shape=(), dtype="int32", data=np.array(1, np.int32).tobytes()),
        "y": TensorSpec(shape=(1, 3), dtype="int32"),
    }
    operators = (
        OperatorSpec(op="RESHAPE", inputs=("x", "shape"), outputs=("b",)),
        OperatorSpec(
            op="ARG_MAX",
            inputs=("b", "axis"),
            outputs=("y",),
            options=("ArgMaxOptions", {"OutputType": 2}),
        ),
    )
    made = ModelSpec(tensors=tensors, operators=operators, inputs=("x",), outputs=("y",))
    network = load_network(made.save(tmp_path))
    (best,) = network.ops
    assert best.kind == "arg_max"
    assert best.dims == (("B", 1), ("D0", 4), ("D1", 6), ("K", 3))


@pytest.mark.parametrize(
    ("shape", "merged", "axis"),
    [
        # The axes behind the one compared, or before it, are merged; one is split; nothing is.
        ((1, 4, 6, 3), (1, 4, 18), 1),
        ((2, 4, 6, 3), (8, 6, 3), 1),
        ((1, 4, 6), (1, 4, 2, 3), 3),
        ((1, 4, 6), (4, 6), 1),
        # More than the compared axis is merged: 2 x 4 and 6 x 3.
        ((2, 4, 6, 3), (8, 18), 0),
    ],
)
def test_a_reshape_that_does_more_stays(
    tmp_path: Path, shape: tuple[int, ...], merged: tuple[int, ...], axis: int
) -> None:
    network = loaded(tmp_path, shape, merged, axis)
    assert [op.name for op in network.ops] == ["relu", "merge", "best"]


def test_a_reshape_that_others_read_stays(tmp_path: Path) -> None:
    network = loaded(
        tmp_path, (1, 4, 6, 3), (1, 24, 3), 1, [node("Neg", ["b"], ["z"], name="other")]
    )
    assert [op.name for op in network.ops] == ["relu", "merge", "best", "other"]


def test_a_reshape_that_is_handed_out_stays(tmp_path: Path) -> None:
    nodes = [
        node("Reshape", ["x", "shape"], ["b"], name="merge"),
        node("ArgMax", ["b"], ["y"], {"axis": 1}, name="best"),
    ]
    shape = {"shape": np.array((1, 24, 3), np.int64)}
    given = {"x": Given(shape=(1, 4, 6, 3))}
    network = load_network(saved(model(nodes, given, ["b", "y"], shape), tmp_path))
    assert [op.name for op in network.ops] == ["merge", "best"]

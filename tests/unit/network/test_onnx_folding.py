"""Constants: worked out where shapes hang on them, never turned into ops."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from tests.onnx_models import Array, Given, integers, model, node, reals, saved

from tilewright.errors import InputError
from tilewright.network.counts import weight_bytes
from tilewright.network.graph import Network
from tilewright.network.onnx_reader import read_onnx

X = {"x": Given(shape=(2, 3, 4, 5))}


def read(
    tmp_path: Path,
    nodes: list[onnx.NodeProto],
    constants: dict[str, Array | onnx.TensorProto] | None = None,
    opset: int = 13,
) -> Network:
    return read_onnx(saved(model(nodes, X, ["y"], constants, opset=opset), tmp_path))


def test_the_flatten_that_torch_exports_is_one_reshape(tmp_path: Path) -> None:
    # x.view(x.size(0), -1): Shape -> Gather -> Unsqueeze -> Concat -> Reshape; 3 x 4 x 5 = 60.
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Constant", [], ["zero"], {"value": onnx.numpy_helper.from_array(np.array(0))}),
        node("Gather", ["shape", "zero"], ["batch"]),
        node("Unsqueeze", ["batch", "axis"], ["batch_list"]),
        node("Concat", ["batch_list", "rest"], ["wanted"], {"axis": 0}),
        node("Reshape", ["x", "wanted"], ["y"]),
    ]
    network = read(tmp_path, nodes, {"axis": integers(0), "rest": integers(-1)})
    assert [op.kind for op in network.ops] == ["reshape"]
    assert network.by_name["y"].shape == (2, 60)
    assert network.by_name.keys() == {"x", "y"}


def test_a_size_written_into_a_shape_is_worked_out(tmp_path: Path) -> None:
    # index_copy of torch: the shape 2 x 3 x 4 x 5 with 6 in place of its last size but one.
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("ScatterElements", ["shape", "last_but_one", "six"], ["wanted"], {"axis": 0}),
        node("Slice", ["x", "zero", "one", "last_but_one"], ["row"]),
        node("Expand", ["row", "wanted"], ["y"]),
    ]
    constants: dict[str, Array | onnx.TensorProto] = {
        "last_but_one": integers(-2),
        "six": integers(6),
        "zero": integers(0),
        "one": integers(1),
    }
    assert read(tmp_path, nodes, constants).by_name["y"].shape == (2, 3, 6, 5)


def test_arithmetic_on_shapes_is_worked_out(tmp_path: Path) -> None:
    # 5 // 2 = 2 columns; -7 / 2 is rounded towards zero (-3), so 5 + -3 = 2 as well.
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Slice", ["shape", "three", "four"], ["width"]),
        node("Div", ["width", "two"], ["half"]),
        node("Div", ["minus_seven", "two"], ["minus_three"]),
        node("Add", ["width", "minus_three"], ["again"]),
        node("Concat", ["half", "again", "minus_one"], ["wanted"], {"axis": 0}),
        node("Reshape", ["x", "wanted"], ["y"]),
    ]
    constants: dict[str, Array | onnx.TensorProto] = {
        "two": integers(2),
        "three": integers(3),
        "four": integers(4),
        "minus_seven": integers(-7),
        "minus_one": integers(-1),
    }
    assert read(tmp_path, nodes, constants).by_name["y"].shape == (2, 2, 30)


def test_an_expand_by_where_equal_and_constant_of_shape(tmp_path: Path) -> None:
    # torch.expand(-1, 3, 4, 5) replaces -1 by 1 with Equal, ConstantOfShape, Mul and Where.
    minus_one = onnx.numpy_helper.from_array(integers(-1))
    one = onnx.numpy_helper.from_array(integers(1))
    nodes = [
        node("ConstantOfShape", ["rank"], ["ones"], {"value": one}),
        node("ConstantOfShape", ["rank"], ["minus"], {"value": minus_one}),
        node("Equal", ["sizes", "minus"], ["is_open"]),
        node("Where", ["is_open", "ones", "sizes"], ["wanted"]),
        node("Expand", ["x", "wanted"], ["y"]),
    ]
    network = read(tmp_path, nodes, {"rank": integers(5), "sizes": integers(6, -1, 3, 4, 5)})
    assert network.by_name["y"].shape == (6, 2, 3, 4, 5)


def test_a_resize_by_sizes_that_are_computed_in_floats(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Slice", ["shape", "two", "four"], ["spatial"]),
        node("Cast", ["spatial"], ["real"], {"to": 1}),
        node("Mul", ["real", "factor"], ["scaled"]),
        node("Floor", ["scaled"], ["whole"]),
        node("Cast", ["whole"], ["sizes"], {"to": 7}),
        node("Slice", ["shape", "zero", "two"], ["outer"]),
        node("Concat", ["outer", "sizes"], ["wanted"], {"axis": 0}),
        node("Resize", ["x", "", "", "wanted"], ["y"]),
    ]
    constants: dict[str, Array | onnx.TensorProto] = {
        "zero": integers(0),
        "two": integers(2),
        "four": integers(4),
        "factor": reals(2.3, 2.3),
    }
    # 4 x 2.3 = 9.2, 5 x 2.3 = 11.5.
    assert read(tmp_path, nodes, constants).by_name["y"].shape == (2, 3, 9, 11)


def test_range_reduce_and_tile_are_worked_out(tmp_path: Path) -> None:
    # Range(0, 10, 3) has 0, 3, 6, 9, whose sum is 18.
    nodes = [
        node("Range", ["start", "limit", "delta"], ["steps"]),
        node("ReduceSum", ["steps"], ["total"], {"keepdims": 1}),
        node("Concat", ["total", "minus_one"], ["pair"], {"axis": 0}),
        node("Concat", ["pair", "one"], ["wanted"], {"axis": 0}),
        node("Tile", ["x", "repeats"], ["tiled"]),
        node("Reshape", ["tiled", "wanted"], ["y"]),
    ]
    constants: dict[str, Array | onnx.TensorProto] = {
        "start": np.array(0, np.int64),
        "limit": np.array(10, np.int64),
        "delta": np.array(3, np.int64),
        "minus_one": integers(-1),
        "one": integers(1),
        "repeats": integers(3, 1, 1, 1),
    }
    # 3 x 120 elements in 18 rows.
    assert read(tmp_path, nodes, constants).by_name["y"].shape == (18, 20, 1)


def test_weights_made_by_constant_of_shape_have_a_shape_and_no_op(tmp_path: Path) -> None:
    nodes = [
        node("ConstantOfShape", ["sizes"], ["w"]),
        node("Conv", ["x", "w"], ["y"]),
    ]
    network = read(tmp_path, nodes, {"sizes": integers(7, 3, 2, 2)})
    assert [op.kind for op in network.ops] == ["conv"]
    assert (network.by_name["w"].role, network.by_name["w"].shape) == ("constant", (7, 3, 2, 2))


def test_huge_constants_are_never_made(tmp_path: Path) -> None:
    nodes = [
        node("ConstantOfShape", ["sizes"], ["ones"]),
        node("Range", ["start", "limit", "delta"], ["steps"]),
        node("Reshape", ["steps", "column"], ["steps_2d"]),
        node("Tile", ["steps_2d", "repeats"], ["tiled"]),
        node("ReduceMax", ["tiled"], ["top"], {"keepdims": 0}),
        node("ReduceMax", ["ones"], ["one"], {"keepdims": 0}),
        node("Cast", ["top"], ["top_real"], {"to": 1}),
        node("Add", ["top_real", "one"], ["both"]),
        node("Mul", ["x", "both"], ["y"]),
    ]
    constants: dict[str, Array | onnx.TensorProto] = {
        "sizes": integers(2**20, 2**20),
        "start": np.array(0, np.int64),
        "limit": np.array(2**36, np.int64),
        "delta": np.array(1, np.int64),
        "column": integers(-1, 1),
        "repeats": integers(1, 2**30),
    }
    network = read(tmp_path, nodes, constants)
    assert [op.kind for op in network.ops] == ["mul"]


def test_a_shape_that_hangs_on_a_huge_constant_says_why_it_is_not_known(tmp_path: Path) -> None:
    nodes = [
        node("ConstantOfShape", ["sizes"], ["zeros"]),
        node("ReduceSum", ["zeros"], ["total"], {"keepdims": 0}),
        node("Cast", ["total"], ["wanted"], {"to": 7}),
        node("Reshape", ["x", "wanted"], ["y"]),
    ]
    with pytest.raises(InputError, match=r"\(Reshape\): the values of 'wanted' are needed, but"):
        read(tmp_path, nodes, {"sizes": integers(2**17)})


def test_a_shape_that_is_computed_from_data_is_refused(tmp_path: Path) -> None:
    nodes = [
        node("ReduceSum", ["x"], ["total"], {"keepdims": 0}),
        node("Cast", ["total"], ["wanted"], {"to": 7}),
        node("Reshape", ["x", "wanted"], ["y"]),
    ]
    with pytest.raises(InputError, match="computed at run time\n  hint: shapes and axes must not"):
        read(tmp_path, nodes)


def test_a_branch_with_a_constant_condition_is_read_in_its_place(tmp_path: Path) -> None:
    branches = {}
    for name, op in (("then_branch", "Relu"), ("else_branch", "Tanh")):
        inner = node(op, ["x"], [f"{op}_result"])
        outputs = [onnx.ValueInfoProto(name=f"{op}_result")]
        branches[name] = helper.make_graph([inner], name, [], outputs)
    nodes = [
        node("Size", ["x"], ["elements"]),
        node("Equal", ["elements", "wanted"], ["is_wanted"]),
        node("If", ["is_wanted"], ["chosen"], branches),
        node("Exp", ["chosen"], ["y"]),
    ]
    network = read(tmp_path, nodes, {"wanted": np.array(2 * 3 * 4 * 5)})
    assert [op.kind for op in network.ops] == ["relu", "identity", "exp"]


def test_dropout_does_nothing_and_its_mask_is_a_constant(tmp_path: Path) -> None:
    nodes = [
        node("Dropout", ["x"], ["kept", "mask"]),
        node("Where", ["mask", "kept", "zero"], ["y"]),
    ]
    network = read(tmp_path, nodes, {"zero": np.array(0, np.float32)})
    assert [op.kind for op in network.ops] == ["identity", "where"]
    assert (network.by_name["mask"].role, network.by_name["mask"].bits) == ("constant", 8)


def test_weights_that_are_dequantised_when_used_keep_their_stored_width(tmp_path: Path) -> None:
    # 8 kernels of 3 x 1 x 1 at 8 bit: 24 B of weights, not the 96 B that they have as floats.
    nodes = [
        node("DequantizeLinear", ["packed", "scale", "zero"], ["flat"]),
        node("Reshape", ["flat", "wanted"], ["weights"]),
        node("Conv", ["x", "weights"], ["y"]),
    ]
    constants: dict[str, Array | onnx.TensorProto] = {
        "packed": np.zeros((8, 3), dtype=np.int8),
        "scale": np.array(0.5, dtype=np.float32),
        "zero": np.array(0, dtype=np.int8),
        "wanted": integers(8, 3, 1, 1),
    }
    network = read(tmp_path, nodes, constants)
    assert [op.kind for op in network.ops] == ["conv"]
    assert network.by_name["weights"].bits == 8
    assert network.by_name["y"].bits == 32
    assert weight_bytes(network) == 24

"""What is wrong with a file is told all at once, in words."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from tests.onnx_models import Given, integers, model, node, saved, zeros

from tilewright.errors import InputError, Problem
from tilewright.network.load import load_network
from tilewright.network.onnx_reader import read_onnx

X = {"x": Given(shape=(2, 3))}


def problems(path: Path, dims: dict[str, int] | None = None) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        read_onnx(path, dims=dims or {})
    return caught.value.problems


def messages(
    proto: onnx.ModelProto, tmp_path: Path, dims: dict[str, int] | None = None
) -> list[str]:
    return [problem.message for problem in problems(saved(proto, tmp_path), dims)]


def test_all_unknown_operators_and_other_faults_come_at_once(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    nodes = [
        *(node("Frobnicate", ["x"], [f"f{i}"], name=f"frob{i}") for i in range(5)),
        node("Loop", ["", "", "x"], ["looped"], name="loop"),
        node("NonMaxSuppression", ["x", "x"], ["boxes"], name="nms"),
        node("MoE", ["x"], ["a"], domain="com.microsoft", name="experts"),
        node("Conv", ["x"], ["n"], domain="com.microsoft.nchwc", name="blocked"),
        node("RandomNormalLike", ["x"], ["noise"], name="noise"),
        node("DeformConv", ["x", "x"], ["h"], name="deformed"),
        node("Conv", ["x", "w"], ["c"], name="conv"),
        node("Relu", ["f0"], ["r"], name="after_unknown"),
        node("MatMul", ["x", "w2"], ["m"], name="product"),
        node("Add", ["m", "nowhere"], ["s"], name="sum"),
        node("Concat", ["x", "s"], ["y"], {"axis": 5}, name="join"),
    ]
    constants = {"w": zeros(4, 3, 3, 3), "w2": zeros(4, 5)}
    path = saved(model(nodes, X, ["y", "r"], constants), tmp_path)
    text = "\n".join(str(problem) for problem in problems(path)) + "\n"
    golden("errors/onnx_problems.txt", text.replace(str(path), "model.onnx"))


def test_reading_goes_on_with_the_shapes_that_the_model_gives(tmp_path: Path) -> None:
    nodes = [
        node("Frobnicate", ["x"], ["f"]),
        node("MatMul", ["f", "w"], ["y"], name="product"),
    ]
    proto = model(nodes, X, ["y"], {"w": zeros(9, 5)})
    proto.graph.value_info.append(helper.make_tensor_value_info("f", 1, [2, 7]))
    found = messages(proto, tmp_path)
    assert len(found) == 2
    assert found[0].startswith("node 'product' (MatMul): ")
    assert "7 against 9" in found[0]


@pytest.mark.parametrize(
    "content", [b"", b"\x08", b"hello, world\n", b"version https://git-lfs", b"\0" * 9]
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    (problem,) = problems(path)
    assert problem.message.startswith("not an ONNX model")
    assert problem.file == str(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert "No such file" in problems(tmp_path / "none.onnx")[0].message
    assert "directory" in problems(tmp_path)[0].message


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "expected"),
    [
        ("Conv", ["image", "w"], {"strides": [0, 1]}, "must each be at least 1"),
        ("Conv", ["image", "w"], {"strides": [1]}, "'strides' has 1 entries for 2 spatial axes"),
        ("Conv", ["image", "w"], {"strides": "big"}, "'strides' is 'big'; whole numbers"),
        ("Conv", ["image", "w"], {"group": 3}, "need 12 input channels"),
        ("Conv", ["image", "w"], {"kernel_shape": [5, 5]}, "'kernel_shape' is (5, 5)"),
        ("Conv", ["image", "w"], {"auto_pad": "SOME"}, "not one of NOTSET, SAME_UPPER"),
        ("Conv", ["image"], {}, "input 1 is missing"),
        ("MaxPool", ["image"], {"kernel_shape": [9, 9]}, "does not fit into 6"),
        ("MaxPool", ["image"], {}, "'kernel_shape' is None"),
        ("MatMul", ["x", "x"], {}, "do not agree: 3 against 2"),
        ("Add", ["x", "w"], {}, "do not broadcast"),
        ("Softmax", ["x"], {"axis": 2}, "axis 2 of a tensor with 2 axes"),
        ("Transpose", ["x"], {"perm": [0, 0]}, "no order of the axes"),
        ("Concat", ["x", "x"], {}, "attribute 'axis' is missing"),
        ("Einsum", ["x"], {"equation": "ii->i"}, "a label repeats within one operand"),
        ("Einsum", ["x", "x"], {"equation": "ij,ij,ij->i"}, "has 3 operands, not 2"),
        ("Einsum", ["x", "x", "x"], {"equation": "ij,ij,jk->i"}, "do not agree"),
        ("Reshape", ["x", "seven"], {}, "6 elements of (2, 3) do not make (7,)"),
        ("Reshape", ["x", "x"], {}, "the values of 'x' are needed, but they are computed at"),
        ("Split", ["x"], {"axis": 1}, "cannot be cut into 2 equal parts"),
        ("Cast", ["x"], {"to": 99}, "element type 99 is not one of ONNX's"),
        ("Gather", ["x", "seven"], {}, "index 7 into an axis of 2 elements"),
        ("TopK", ["x", "seven"], {}, "7 elements are wanted of an axis with 3"),
        ("Relu", ["x"], {}, "it has no result 'b': Relu makes fewer"),
    ],
)
def test_a_node_that_makes_no_sense_says_why(
    tmp_path: Path, op: str, inputs: list[str], attributes: dict[str, Any], expected: str
) -> None:
    outputs = ["a", "b"] if op in ("Split", "Relu") else ["a"]
    proto = model(
        [node(op, inputs, outputs, attributes, name="it")],
        {**X, "image": Given(shape=(1, 3, 6, 6))},
        ["a"],
        {"w": zeros(5, 4 if "group" in attributes else 3, 3, 3), "seven": integers(7)},
    )
    (message,) = messages(proto, tmp_path)
    assert message.startswith(f"node 'it' ({op}): ")
    assert expected in message


def test_nodes_out_of_order_are_sorted(tmp_path: Path) -> None:
    nodes = [node("Relu", ["b"], ["y"]), node("Exp", ["a"], ["b"]), node("Tanh", ["x"], ["a"])]
    network = read_onnx(saved(model(nodes, X, ["y"]), tmp_path))
    assert [op.kind for op in network.ops] == ["tanh", "exp", "relu"]


def test_a_node_waits_for_all_that_it_reads(tmp_path: Path) -> None:
    nodes = [node("Add", ["a", "b"], ["y"]), node("Exp", ["a"], ["b"]), node("Tanh", ["x"], ["a"])]
    network = read_onnx(saved(model(nodes, X, ["y"]), tmp_path))
    assert [op.kind for op in network.ops] == ["tanh", "exp", "add"]


def test_a_cycle_is_told_by_its_nodes(tmp_path: Path) -> None:
    nodes = [
        node("Add", ["x", "b"], ["a"], name="one"),
        node("Relu", ["a"], ["b"], name="two"),
        node("Exp", ["b"], ["y"], name="behind"),
    ]
    (message,) = messages(model(nodes, X, ["y"]), tmp_path)
    assert message == "nodes feed each other in a cycle: node 'two' (Relu), node 'one' (Add)"


def test_names_must_be_made_once_and_outputs_at_all(tmp_path: Path) -> None:
    nodes = [
        node("Relu", ["x"], ["y"], name="one"),
        node("Exp", ["x"], ["y"], name="two"),
        node("Exp", ["x"], ["w"], name="three"),
    ]
    found = messages(model(nodes, X, ["y", "z"], {"w": zeros(2)}), tmp_path)
    assert found == [
        "node 'two' (Exp): makes 'y', which is made already",
        "node 'three' (Exp): makes 'w', which is made already",
        "output 'z' is made by no node",
    ]


def test_a_graph_needs_outputs_and_work(tmp_path: Path) -> None:
    relu = [node("Relu", ["x"], ["y"])]
    assert messages(model(relu, X, []), tmp_path) == ["the graph has no outputs"]
    idle = [node("Shape", ["x"], ["y"])]
    (message,) = messages(model(idle, X, ["y"]), tmp_path)
    assert message == "no node computes an output from an input"


def test_training_graphs_and_sparse_weights_are_refused(tmp_path: Path) -> None:
    proto = model(
        [
            node("BatchNormalization", ["x", *["w"] * 4], ["b"], {"training_mode": 1}, name="norm"),
            node("Dropout", ["x", "half", "yes"], ["c"], name="drop"),
            node("Add", ["c", "thin"], ["y"]),
        ],
        X,
        ["y"],
        {"w": zeros(3), "half": np.array(0.5, np.float32), "yes": np.array(True)},
        opset=15,
    )
    proto.graph.sparse_initializer.append(
        helper.make_sparse_tensor(
            helper.make_tensor("thin", 1, [1], [1.0]), helper.make_tensor("at", 7, [1], [2]), [3]
        )
    )
    found = problems(saved(proto, tmp_path))
    assert [problem.message.split(";")[0] for problem in found] == [
        "initialiser 'thin': sparse tensors are not read",
        "node 'norm' (BatchNormalization): it is in training mode",
        "node 'drop' (Dropout): it drops elements",
    ]


def with_function(opset: int) -> onnx.ModelProto:
    """A model of opset 15 that calls a function of its own, which is written for `opset`."""
    proto = model([node("Own", ["x"], ["y"], domain="mine")], X, ["y"], opset=15)
    body = [node("Flatten", ["i"], ["flat"]), node("Relu", ["flat"], ["o"])]
    proto.functions.append(
        helper.make_function("mine", "Own", ["i"], ["o"], body, [helper.make_opsetid("", opset)])
    )
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    return proto


def test_functions_that_the_model_defines_are_read_in_place(tmp_path: Path) -> None:
    network = load_network(saved(with_function(15), tmp_path))
    assert [op.kind for op in network.ops] == ["reshape", "relu"]


def test_functions_that_cannot_be_inlined_are_refused(tmp_path: Path) -> None:
    (found,) = problems(saved(with_function(21), tmp_path))
    assert found.message.startswith("operator 'Own' of domain 'mine' is not supported")
    assert "onnx.inliner" in found.hint


def test_dynamic_dims_without_a_size_are_told_once_with_what_to_write(tmp_path: Path) -> None:
    given = {
        "ids": Given(shape=("batch", "seq"), dtype="int64"),
        "image": Given(shape=("batch", 3, None, 0)),
    }
    proto = model([node("Relu", ["image"], ["y"])], given, ["y"])
    (problem,) = problems(saved(proto, tmp_path))
    assert problem.message == (
        "dynamic dims need a size: batch (input 'ids', axis 0); seq (input 'ids', axis 1); "
        "image.2 (input 'image', axis 2); image.3 (input 'image', axis 3)"
    )
    assert problem.hint == "--dim batch=1 --dim seq=128 --dim image.2=128 --dim image.3=128"


def test_a_shape_that_hangs_on_a_missing_size_is_no_second_fault(tmp_path: Path) -> None:
    # torch records that the shape is a list of two, which says nothing of its values.
    nodes = [node("Shape", ["x"], ["shape"]), node("Expand", ["token", "shape"], ["y"])]
    proto = model(nodes, {"x": Given(shape=("batch", 3))}, ["y"], {"token": zeros(1, 3)})
    recorded = helper.make_tensor_value_info("shape", onnx.TensorProto.INT64, [2])
    proto.graph.value_info.append(recorded)
    (problem,) = problems(saved(proto, tmp_path))
    assert problem.message == "dynamic dims need a size: batch (input 'x', axis 0)"


def test_dynamic_dims_get_their_sizes_by_name_or_by_axis(tmp_path: Path) -> None:
    given = {"x": Given(shape=("batch", 3, None))}
    path = saved(model([node("Relu", ["x"], ["y"])], given, ["y"]), tmp_path)
    assert read_onnx(path, dims={"batch": 2, "x.2": 7}).by_name["y"].shape == (2, 3, 7)


def test_a_dim_that_the_model_lacks_is_an_error_that_lists_its_dims(tmp_path: Path) -> None:
    given = {"x": Given(shape=("batch", 3, None))}
    path = saved(model([node("Relu", ["x"], ["y"])], given, ["y"]), tmp_path)
    (problem,) = problems(path, {"batch": 1, "x.2": 4, "bach": 3})
    assert problem.message == "the model has no dynamic dim 'bach'"
    assert problem.hint == "its dynamic dims are: batch, x.2"
    (problem,) = problems(path, {"batch": 0, "x.2": 4})
    assert problem.message == "dim 'batch' cannot have size 0"


def test_initialisers_that_are_listed_as_inputs_are_constants(tmp_path: Path) -> None:
    proto = model([node("MatMul", ["x", "w"], ["y"])], X, ["y"], {"w": zeros(3, 4)})
    proto.graph.input.append(helper.make_tensor_value_info("w", 1, [3, 4]))
    network = read_onnx(saved(proto, tmp_path))
    assert [tensor.name for tensor in network.inputs] == ["x"]
    assert network.by_name["w"].role == "constant"


def test_inputs_without_a_shape_or_of_strings_are_told(tmp_path: Path) -> None:
    proto = model([node("Relu", ["x"], ["y"])], X, ["y"])
    proto.graph.input.append(helper.make_tensor_value_info("shapeless", 1, None))
    proto.graph.input.append(helper.make_tensor_value_info("text", 8, [2]))
    assert messages(proto, tmp_path) == [
        "input 'shapeless' has no shape",
        "input 'text' is no tensor of numbers",
    ]


def test_strings_that_are_no_utf8_are_shown_escaped(tmp_path: Path) -> None:
    proto = model([node("Frobnicate", ["x"], ["y"], name="nodename")], X, ["y"])
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString().replace(b"nodename", b"\xff\xfedename"))
    assert r"\\xff\\xfedename" in problems(path)[0].message


def test_a_model_without_an_opset_is_told(tmp_path: Path) -> None:
    proto = model([node("Relu", ["x"], ["y"])], X, ["y"])
    del proto.opset_import[:]
    (message,) = messages(proto, tmp_path)
    assert message == "the model does not say which version of ONNX's operators it uses"


def test_listing_operators_needs_no_onnx() -> None:
    code = (
        "import sys\n"
        "from tilewright.network.onnx_reader import supported_ops\n"
        "assert len(supported_ops()) > 150\n"
        "assert 'onnx' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_cannot_be_counted_is_refused_with_its_sizes(tmp_path: Path) -> None:
    # 2^30 x 2^30 elements of 4 B are 2^62 B: a sum of a few of them leaves 64 bit.
    size = 2**30
    proto = model([node("Relu", ["x"], ["y"])], {"x": Given(shape=(size, size))}, ["y"])
    with pytest.raises(InputError) as refused:
        load_network(saved(proto, tmp_path))
    told = [problem.message for problem in refused.value.problems]
    assert len(told) == 3  # both tensors and the op
    assert told[0].startswith(
        f"tensor 'x' of shape ({size}, {size}) is not possible: {2**62:,} bytes"
    )


def test_a_folder_is_no_network(tmp_path: Path) -> None:
    folder = tmp_path / "model.onnx"
    folder.mkdir()
    with pytest.raises(InputError, match="cannot be read: it is a folder"):
        load_network(folder)


def test_sequences_of_different_lengths_are_not_reversed(tmp_path: Path) -> None:
    nodes = [node("ReverseSequence", ["x", "lengths"], ["y"], name="turn")]
    proto = model(nodes, X, ["y"], {"lengths": integers(2, 1, 2)})
    (message,) = messages(proto, tmp_path)
    assert message.endswith("its sequences are shorter than the 2 steps of their axis")

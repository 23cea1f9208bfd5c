"""Where values come from: a seed, a model's file, an archive of inputs."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.onnx_models import Given, integers, model, node, reals, saved
from tests.unit.network.tflite_models import TensorSpec, constant, single

from tilewright.errors import InputError
from tilewright.network.kinds import KIND_CLASSES
from tilewright.network.load import load_network
from tilewright.replay.kernels.fixed_point import divided_away, multiplied, quantised_multiplier
from tilewright.replay.kernels.table import KERNELS
from tilewright.replay.values import values_of


def test_every_kind_of_op_has_a_kernel() -> None:
    assert KERNELS.keys() == KIND_CLASSES.keys()


def test_a_seed_gives_every_input_and_constant_the_same_values_each_time() -> None:
    network = load_network("lenet5")
    first, second = (values_of(network, seed=3).arrays for _ in range(2))
    assert first.keys() == {t.name for t in network.tensors if t.role in ("input", "constant")}
    for name, array in first.items():
        assert array.shape == network.by_name[name].shape
        np.testing.assert_array_equal(array, second[name])
    other = values_of(network, seed=4).arrays
    assert any((first[name] != other[name]).any() for name in first)


@pytest.mark.slow
def test_positions_in_a_table_lie_in_the_table() -> None:
    network = load_network("bert_base", dims={"sequence": 8})
    ids = values_of(network).arrays["token_type_ids"]
    assert ids.dtype.kind == "i"
    assert set(np.unique(ids)) <= {0, 1}


def test_positions_lie_in_every_table_that_they_reach_by_moves_and_casts(tmp_path: Path) -> None:
    path = saved(
        model(
            [
                node("Slice", ["ids", "zero", "one", "one"], ["first"]),
                node("Cast", ["real"], ["counted"], {"to": 7}),
                node("Less", ["counted", "zero"], ["is_from_the_end"]),
                node("Add", ["counted", "seven"], ["from_the_end"]),
                node("Where", ["is_from_the_end", "from_the_end", "counted"], ["whole"]),
                node("Gather", ["small", "whole"], ["d"]),
                node("Cast", ["first"], ["wide"], {"to": 7}),
                node("Gather", ["large", "wide"], ["a"]),
                node("Unsqueeze", ["wide", "two"], ["deep"]),
                node("GatherND", ["small", "deep"], ["b"]),
                node("ScatterND", ["large", "pairs", "updates"], ["c"]),
            ],
            {
                "ids": Given(shape=(50, 2), dtype="int32"),
                "pairs": Given(shape=(50, 2), dtype="int64"),
                "updates": Given(shape=(50,)),
                "real": Given(shape=(50,)),
            },
            ["a", "b", "c", "d"],
            {
                "large": np.zeros((9, 5), dtype=np.float32),
                "small": np.zeros((7, 4), dtype=np.float32),
                "zero": integers(0),
                "one": integers(1),
                "two": integers(2),
                "seven": integers(7),
            },
        ),
        tmp_path,
    )
    found = values_of(load_network(path), path).arrays
    # Table `small` has 7 rows; pairs of positions go into a table of 9 x 5.
    assert set(np.unique(found["ids"])) == set(range(7))
    assert set(np.unique(found["pairs"])) == set(range(5))
    assert found["real"].dtype == np.float32
    assert set(np.unique(found["real"])) == set(range(7))


def test_constants_of_an_onnx_file_are_stored_or_computed(tmp_path: Path) -> None:
    # The weights are stored as bytes and unpacked by a node: (5 - 3) x 0.5 and so on.
    path = saved(
        model(
            [
                node("DequantizeLinear", ["bytes", "scale", "zero"], ["w"]),
                node("MatMul", ["x", "w"], ["y"]),
            ],
            {"x": Given(shape=(1, 2))},
            ["y"],
            {
                "bytes": np.array([[5], [1]], dtype=np.uint8),
                "scale": np.array(0.5, dtype=np.float32),
                "zero": np.array(3, dtype=np.uint8),
            },
        ),
        tmp_path,
    )
    network = load_network(path)
    np.testing.assert_array_equal(values_of(network, path).arrays["w"], [[1.0], [-1.0]])


def test_constants_that_hang_on_shapes_follow_dynamic_dims(tmp_path: Path) -> None:
    # Of 3 rows the product has 3 rows, too: what is added to them counts up to 2.
    path = saved(
        model(
            [
                node("MatMul", ["x", "w"], ["a"]),
                node("Shape", ["a"], ["sizes"]),
                node("Gather", ["sizes", "first"], ["rows"]),
                node("Range", ["zero", "rows", "one"], ["counted"]),
                node("Cast", ["counted"], ["numbers"], {"to": 1}),
                node("Unsqueeze", ["numbers", "last"], ["column"]),
                node("Add", ["a", "column"], ["y"]),
            ],
            {"x": Given(shape=("rows", 2))},
            ["y"],
            {
                "w": reals(1, 2, 3, 4).reshape(2, 2),
                "first": np.array(0, dtype=np.int64),
                "zero": np.array(0, dtype=np.int64),
                "one": np.array(1, dtype=np.int64),
                "last": integers(1),
            },
        ),
        tmp_path,
    )
    network = load_network(path, dims={"rows": 3})
    np.testing.assert_array_equal(values_of(network, path).arrays["column"], [[0], [1], [2]])


def test_constants_of_the_branch_that_is_taken_are_found(tmp_path: Path) -> None:
    def branch(name: str, factor: float) -> onnx.GraphProto:
        # The factor is stored, what is added is made by a node of the branch.
        nodes = [
            node("Mul", ["x", f"{name}_factor"], [f"{name}_product"]),
            node("Neg", [f"{name}_factor"], [f"{name}_less"]),
            node("Add", [f"{name}_product", f"{name}_less"], [f"{name}_result"]),
        ]
        stored = onnx.numpy_helper.from_array(reals(factor), f"{name}_factor")
        result = onnx.ValueInfoProto(name=f"{name}_result")
        return onnx.helper.make_graph(nodes, name, [], [result], [stored])

    branches = {"then_branch": branch("yes", 5), "else_branch": branch("no", 7)}
    path = saved(
        model(
            [node("If", ["decided"], ["y"], branches)],
            {"x": Given(shape=(2,))},
            ["y"],
            {"decided": np.array(True)},
        ),
        tmp_path,
    )
    arrays = values_of(load_network(path), path).arrays
    assert (float(arrays["yes_factor"][0]), float(arrays["yes_less"][0])) == (5, -5)


def test_a_model_of_another_shape_is_an_input_error(tmp_path: Path) -> None:
    def written(size: int, name: str) -> Path:
        proto = model(
            [node("Add", ["x", "w"], ["y"])],
            {"x": Given(shape=(size,))},
            ["y"],
            {"w": reals(*range(size))},
        )
        return saved(proto, tmp_path, name)

    network = load_network(written(3, "a.onnx"))
    with pytest.raises(InputError, match=r"constant 'w' has shape \(4,\), not \(3,\)"):
        values_of(network, written(4, "b.onnx"))


def test_a_model_without_the_constant_is_an_input_error(tmp_path: Path) -> None:
    def written(name: str, constants: str) -> Path:
        proto = model(
            [node("Add", ["x", constants], ["y"])],
            {"x": Given(shape=(2,))},
            ["y"],
            {constants: integers(1, 2).astype(np.float32)},
        )
        return saved(proto, tmp_path, name)

    network = load_network(written("a.onnx", "w"))
    with pytest.raises(InputError, match="constant 'w' is neither stored"):
        values_of(network, written("b.onnx", "v"))


def test_constants_of_a_tflite_file_have_their_bytes(tmp_path: Path) -> None:
    spec = single(
        "ADD",
        {"x": TensorSpec(shape=(2,)), "w": constant([1.5, -2.5], "float32")},
        {"y": TensorSpec(shape=(2,))},
    )
    path = spec.save(tmp_path)
    values = values_of(load_network(path), path)
    np.testing.assert_array_equal(values.arrays["w"], [1.5, -2.5])
    assert values.quantisation == {}


def test_constants_of_a_tflite_file_have_their_bytes_in_a_network_made_narrower(
    tmp_path: Path,
) -> None:
    spec = single(
        "ADD",
        {"x": TensorSpec(shape=(2,), dtype="int8"), "w": constant([3, -4], "int8")},
        {"y": TensorSpec(shape=(2,), dtype="int8")},
    )
    path = spec.save(tmp_path)
    for bits in (4, 8):
        network = load_network(path, bits=bits)
        np.testing.assert_array_equal(values_of(network, path).arrays["w"], [3, -4])
        # What is that wide already keeps its type.
        assert network.by_name["y"].dtype == ("int8" if bits == 8 else "")


def test_inputs_come_from_an_archive(tmp_path: Path) -> None:
    network = load_network("lenet5")
    shape = network.inputs[0].shape
    path = tmp_path / "inputs.npz"
    assert network.inputs[0].name == "input"
    np.savez(path, input=np.full(shape, 7.0))
    arrays = values_of(network, input_file=path).arrays
    assert (arrays["input"] == 7).all()
    np.savez(path, wrong=np.zeros(3))
    with pytest.raises(InputError, match="the network has no input 'wrong'"):
        values_of(network, input_file=path)
    np.savez(path, input=np.zeros(3))
    with pytest.raises(InputError, match="has shape"):
        values_of(network, input_file=path)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut short"])
def test_what_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "inputs.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read: it is no archive of arrays"):
        values_of(load_network("lenet5"), input_file=path)


def test_an_array_without_a_name_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "input.npy"
    np.save(path, np.zeros(3))
    with pytest.raises(InputError, match="cannot be read: it is no archive of arrays"):
        values_of(load_network("lenet5"), input_file=path)


def test_a_constant_without_elements_has_values_like_any_other(tmp_path: Path) -> None:
    proto = model(
        [node("Concat", ["x", "none"], ["y"], {"axis": 0})],
        {"x": Given(shape=(3, 4))},
        ["y"],
        {"none": np.zeros((0, 4), np.float32)},
    )
    arrays = values_of(load_network(saved(proto, tmp_path))).arrays
    assert arrays["none"].shape == (0, 4)


def test_missing_external_data_are_told_with_the_name_of_the_model(tmp_path: Path) -> None:
    proto = model([node("Add", ["x", "w"], ["y"])], {"x": Given(shape=(4,))}, ["y"])
    weight = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[4])
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="gone.bin")
    proto.graph.initializer.append(weight)
    path = saved(proto, tmp_path)
    network = load_network(path)
    with pytest.raises(InputError, match="external data must lie beside the model") as refused:
        values_of(network, path)
    assert refused.value.problems[0].file == str(path)


def test_a_file_of_another_kind_holds_no_values(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no values"):
        values_of(load_network("lenet5"), tmp_path / "weights.bin")


def test_fixed_point_factors_are_31_bits_and_a_power_of_two() -> None:
    # 0.3 = 0.6 x 2^-1; 0.6 x 2^31 = 1288490188.8.
    assert quantised_multiplier(0.3) == (1288490189, -1)
    assert quantised_multiplier(0.0) == (0, 0)


def test_fixed_point_products_are_rounded_twice() -> None:
    # 2548 x 0.020993464 = 53.49, but first 2548 x 0.6718 = 1711.7 becomes 1712, and 1712 / 32 is a
    # tie, which goes away from zero.
    found = multiplied(np.array([2548, -2548]), np.asarray(0.020993464087911067))
    assert found.tolist() == [54, -54]


def test_averages_are_rounded_away_from_zero() -> None:
    assert divided_away(np.array([5, -5, 3, -3]), np.array([2])).tolist() == [3, -3, 2, -2]

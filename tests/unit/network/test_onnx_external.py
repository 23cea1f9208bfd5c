"""Weights that lie beside the model are read only where a shape hangs on them."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.onnx_models import Array, Given, model, node, saved

from tilewright.errors import InputError
from tilewright.network.onnx_reader import read_onnx


def external(
    name: str, array: Array, location: str, offset: int | str = 0, shape: tuple[int, ...] = ()
) -> onnx.TensorProto:
    """A tensor whose values are said to lie in a file."""
    tensor = onnx.TensorProto(
        name=name,
        data_type=onnx.helper.np_dtype_to_tensor_dtype(array.dtype),
        dims=shape or array.shape,
        data_location=onnx.TensorProto.EXTERNAL,
    )
    for key, value in (("location", location), ("offset", str(offset))):
        tensor.external_data.add(key=key, value=value)
    return tensor


def reshaping(tmp_path: Path, wanted: onnx.TensorProto) -> Path:
    """x (4, 6) reshaped to external sizes and multiplied by external weights that are missing."""
    weights = external("w", np.zeros(0, np.float32), "missing.bin", shape=(12, 2**20))
    nodes = [
        node("Reshape", ["x", "wanted"], ["r"], name="shaped"),
        node("MatMul", ["r", "w"], ["y"]),
    ]
    given = {"x": Given(shape=(4, 6))}
    return saved(model(nodes, given, ["y"], {"wanted": wanted, "w": weights}), tmp_path)


def test_a_small_shape_is_read_from_its_file_and_missing_weights_do_not_matter(
    tmp_path: Path,
) -> None:
    sizes = np.array([2, 12], np.int64)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sizes.bin").write_bytes(b"\xff" * 16 + sizes.tobytes() + b"\xff" * 8)
    path = reshaping(tmp_path, external("wanted", sizes, "data/sizes.bin", 16))
    network = read_onnx(path)
    assert network.by_name["r"].shape == (2, 12)
    assert network.by_name["y"].shape == (2, 2**20)
    # 48 MiB of weights that were never there.
    assert network.by_name["w"].size_bytes == 12 * 2**20 * 4


@pytest.mark.parametrize(
    ("location", "offset", "expected"),
    [
        ("missing.bin", 0, "its external data, 'missing.bin', is not beside the model"),
        ("here.bin", 8, "its external data, 'here.bin', ends before byte 24"),
        ("here.bin", -8, "offset -8 of its external data is not possible"),
        ("here.bin", "much", "invalid literal for int"),
        ("../outside.bin", 0, "its external data lie outside the model's folder"),
        ("/etc/passwd", 0, "its external data lie outside the model's folder"),
        ("C:\\secret.bin", 0, "its external data lie outside the model's folder"),
        ("a/../../outside.bin", 0, "its external data lie outside the model's folder"),
        ("", 0, "its external data lie outside the model's folder"),
        ("a\0b", 0, "its external data lie outside the model's folder"),
        (".", 0, "is not beside the model"),
    ],
)
def test_a_shape_that_cannot_be_read_says_why(
    tmp_path: Path, location: str, offset: int | str, expected: str
) -> None:
    sizes = np.array([2, 12], np.int64)
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "here.bin").write_bytes(sizes.tobytes())
    (tmp_path / "outside.bin").write_bytes(sizes.tobytes())
    path = reshaping(folder, external("wanted", sizes, location, offset))
    with pytest.raises(InputError) as caught:
        read_onnx(path)
    (problem,) = caught.value.problems
    assert problem.message.startswith("node 'shaped' (Reshape): the values of 'wanted' are needed")
    assert expected in problem.message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_place_of_data_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.bin")
    path = reshaping(tmp_path, external("wanted", np.array([2, 12], np.int64), "pipe.bin"))
    with pytest.raises(InputError, match="is not beside the model"):
        read_onnx(path)


def test_stripped_initialisers_matter_only_where_they_are_needed(tmp_path: Path) -> None:
    stripped = onnx.TensorProto(name="w", data_type=1, dims=[6, 5])
    proto = model(
        [node("MatMul", ["x", "w"], ["y"])], {"x": Given(shape=(4, 6))}, ["y"], {"w": stripped}
    )
    assert read_onnx(saved(proto, tmp_path)).by_name["y"].shape == (4, 5)
    wanted = onnx.TensorProto(name="wanted", data_type=7, dims=[2])
    with pytest.raises(InputError, match=r"0 values are stored for shape \(2,\)"):
        read_onnx(reshaping(tmp_path, wanted))


@pytest.mark.parametrize(
    ("number", "field", "values"),
    [(6, "int32_data", [2, 12]), (7, "int64_data", [2, 12]), (12, "uint64_data", [2, 12])],
)
def test_values_in_typed_fields_are_read(
    tmp_path: Path, number: int, field: str, values: list[int]
) -> None:
    wanted = onnx.TensorProto(name="wanted", data_type=number, dims=[2])
    getattr(wanted, field).extend(values)
    assert read_onnx(reshaping(tmp_path, wanted)).by_name["r"].shape == (2, 12)


def test_half_precision_bits_are_read_as_numbers(tmp_path: Path) -> None:
    # 0x4000 is 2.0 and 0x4A00 is 12.0 in half precision.
    half = onnx.TensorProto(name="half", data_type=10, dims=[2], int32_data=[0x4000, 0x4A00])
    nodes = [node("Cast", ["half"], ["wanted"], {"to": 7}), node("Reshape", ["x", "wanted"], ["y"])]
    proto = model(nodes, {"x": Given(shape=(4, 6))}, ["y"], {"half": half})
    assert read_onnx(saved(proto, tmp_path)).by_name["y"].shape == (2, 12)

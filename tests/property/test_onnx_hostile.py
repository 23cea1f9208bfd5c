"""Files made to hurt cost bounded time and memory."""

import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.onnx_models import Array, Given, integers, model, node, saved

from tilewright.errors import InputError
from tilewright.network.onnx_reader import read_onnx

DEEP = {"x": Given(shape=(1,) * 16)}
NUMBERS = {"start": np.array(0), "limit": np.array(2**16), "delta": np.array(1)}


def cost(proto: onnx.ModelProto, folder: Path) -> tuple[float, int, int]:
    """Seconds of CPU, bytes at the peak, problems."""
    path = saved(proto, folder)
    problems = 0
    tracemalloc.start()
    start = time.process_time()
    try:
        read_onnx(path)
    except InputError as error:
        problems = len(error.problems)
    seconds = time.process_time() - start
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return seconds, peak_bytes, problems


def wide_concat() -> onnx.ModelProto:
    return model([node("Concat", ["x"] * 20_000, ["y"], {"axis": 0})], DEEP, ["y"])


def many_ranges() -> onnx.ModelProto:
    """Each has 2^16 numbers of 8 bytes: 1 GB if all were kept."""
    nodes = [node("Range", ["start", "limit", "delta"], [f"r{i}"]) for i in range(2_000)]
    nodes.append(node("Mul", ["x", "r0"], ["y"]))
    return model(nodes, {"x": Given(shape=(2**16,), dtype="int64")}, ["y"], NUMBERS)


def numbered_names() -> onnx.ModelProto:
    """Names that each clash with the one that is made for the clash before."""
    names = ["a" + "_2" * i for i in range(1_200)] + ["a"]
    nodes = [node("Relu", ["x"], [f"y{i}"], name=name) for i, name in enumerate(names)]
    return model(nodes, {"x": Given(shape=(2,))}, ["y0"])


def long_cycle() -> onnx.ModelProto:
    nodes = [node("Relu", [f"t{(i + 1) % 9_000}"], [f"t{i}"]) for i in range(9_000)]
    return model(nodes, {"x": Given(shape=(2,))}, ["t0"])


def factorial_reshape() -> onnx.ModelProto:
    """The product of these sizes has 280,000 digits."""
    wanted = np.arange(1, 2**16)
    return model([node("Reshape", ["x", "wanted"], ["y"])], DEEP, ["y"], {"wanted": wanted})


def empty_but_wide() -> onnx.ModelProto:
    """A constant without elements whose other axis is huge."""
    nodes = [
        node("ConstantOfShape", ["sizes"], ["none"]),
        node("Slice", ["none", "start", "limit", "delta"], ["part"]),
        node("Tile", ["part", "repeats"], ["tiled"]),
        node("ReduceMax", ["tiled"], ["top"], {"axes": [0]}),
        node("Mul", ["x", "top"], ["y"]),
    ]
    constants = {
        "sizes": integers(0, 2**40),
        "start": integers(0),
        "limit": integers(2**40),
        "delta": integers(1),
        "repeats": integers(2**40, 1),
    }
    return model(nodes, {"x": Given(shape=(1, 1))}, ["y"], constants)


@pytest.mark.parametrize(
    ("make", "problems"),
    [
        (wide_concat, 0),
        (many_ranges, 0),
        (numbered_names, 0),
        (long_cycle, 1),
        (factorial_reshape, 1),
        (empty_but_wide, 0),
    ],
)
def test_a_hostile_file_is_read_or_refused_within_bounds(
    make: Any, problems: int, tmp_path: Path
) -> None:
    seconds, peak_bytes, found = cost(make(), tmp_path)
    assert found == problems
    assert seconds < 10
    assert peak_bytes < 200 * 2**20


@pytest.mark.parametrize("size", [-1, 2**40 + 1, 2**62])
def test_impossible_sizes_are_refused_wherever_they_stand(size: int, tmp_path: Path) -> None:
    weights = onnx.TensorProto(name="w", data_type=1, dims=[size, 3])
    nodes = [
        node("ConstantOfShape", ["sizes"], ["ones"], name="filled"),
        node("Expand", ["x", "sizes"], ["e"], name="wide"),
        node("MaxPool", ["x"], ["p"], {"kernel_shape": [2**50], "pads": [2**50] * 2}, name="pool"),
        node("Relu", ["x"], ["y"]),
    ]
    constants: dict[str, Array | onnx.TensorProto] = {"w": weights, "sizes": integers(size)}
    path = saved(model(nodes, {"x": Given(shape=(1, 1, 1))}, ["y"], constants), tmp_path)
    with pytest.raises(InputError) as caught:
        read_onnx(path)
    wheres = [problem.message.split(":")[0] for problem in caught.value.problems]
    assert wheres == [
        "initialiser 'w'",
        "node 'filled' (ConstantOfShape)",
        "node 'wide' (Expand)",
        "node 'pool' (MaxPool)",
    ]

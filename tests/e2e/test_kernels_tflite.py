"""Every kernel against the TFLite interpreter: tiny float models, and real quantised networks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.e2e.test_replay import quantised_files
from tests.e2e.test_tflite_shapes import _with_valid_scales
from tests.kernel_runs import in_tiles, run_in_tiles
from tests.unit.network.tflite_case import Case
from tests.unit.network.tflite_cases import CASES
from tests.unit.network.tflite_models import TensorSpec, constant, single

from tilewright.network.graph import Network
from tilewright.network.tflite_reader import read_tflite
from tilewright.replay.kernels.tile import KernelError
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import values_of

Array = npt.NDArray[Any]
MANY_TILES = 2_000
POSITIVE = ("log", "sqrt", "rsqrt", "pow")


def interpreted(
    content: bytes, feed: Mapping[str, Array], kernels: str = "BUILTIN_REF"
) -> dict[str, Array]:
    """Every tensor that the interpreter's kernels compute, by default those of reference."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter = litert.Interpreter(
        model_content=content,
        experimental_op_resolver_type=litert.OpResolverType[kernels],
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    for entry in interpreter.get_input_details():
        interpreter.set_tensor(entry["index"], feed[entry["name"]])
    interpreter.invoke()
    found = {}
    for entry in interpreter.get_tensor_details():
        try:
            found[entry["name"]] = np.array(interpreter.get_tensor(entry["index"]))
        except ValueError:  # Scratch tensors hold nothing.
            continue
    return found


def small_feed(network: Network, arrays: Mapping[str, Array], kind: str) -> dict[str, Array]:
    """Inputs that suit the op: whole numbers are 0 or 1, reals positive where they have to be."""
    feed = {}
    for tensor in network.inputs:
        array = arrays[tensor.name]
        if array.dtype.kind in "iu":
            array = (np.abs(array) % 2).astype(array.dtype)
        elif array.dtype.kind == "f" and kind in POSITIVE:
            array = np.abs(array) + np.float32(0.1)
        feed[tensor.name] = array
    return feed


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_op_computes_what_the_interpreter_computes(case: Case, tmp_path: Path) -> None:
    path = case.model.save(tmp_path)
    network = read_tflite(path, dims={})
    values = values_of(network, path, seed=3)
    feed = small_feed(network, values.arrays, case.kind)
    expected = interpreted(path.read_bytes(), feed)
    arrays = {**values.arrays, **feed}
    whole = computed(network, arrays, values.quantisation)
    # In tiles of one step, of two where there would be very many.
    step = 1 if max(op.points for op in network.ops) <= MANY_TILES else 2
    cut = in_tiles(lambda dim, size: step)
    tiled = run_in_tiles(network, arrays, values.quantisation, cut)
    for tensor in network.outputs:
        for found in (whole, tiled):
            assert found[tensor.name].dtype == expected[tensor.name].dtype
            np.testing.assert_allclose(
                found[tensor.name], expected[tensor.name], rtol=1e-5, atol=1e-5
            )


def _bytes(shape: tuple[int, ...], scale: float, zero: int) -> TensorSpec:
    return TensorSpec(shape=shape, dtype="int8", quantisation=(scale, zero))


LINES = _bytes((5, 6, 32), 0.0251, -4)
QUANTISED = {
    # Sums between two steps are rounded twice here, and once by FULLY_CONNECTED.
    "BATCH_MATMUL": single(
        "BATCH_MATMUL",
        {"x": _bytes((4, 16, 8), 0.031, 3), "w": _bytes((4, 8, 16), 0.027, -5)},
        {"y": _bytes((4, 16, 16), 0.11, 7)},
    ),
    "SQUARED_DIFFERENCE": single(
        "SQUARED_DIFFERENCE",
        {"x": _bytes((8, 64), 0.02, -11), "w": _bytes((8, 1), 0.013, 40)},
        {"y": _bytes((8, 64), 0.05, -128)},
    ),
    "LEAKY_RELU": single(
        "LEAKY_RELU",
        {"x": LINES},
        {"y": _bytes(LINES.shape, 0.0178, -77)},
        ("LeakyReluOptions", {"Alpha": 0.2}),
    ),
    "ABS": single("ABS", {"x": LINES}, {"y": _bytes(LINES.shape, 0.0513, -128)}),
    "HARD_SWISH": single("HARD_SWISH", {"x": LINES}, {"y": _bytes(LINES.shape, 0.0124, -101)}),
    "SQRT": single(
        "SQRT", {"x": _bytes((5, 64), 0.0125, -128)}, {"y": _bytes((5, 64), 0.007, -128)}
    ),
    "MEAN": single("MEAN", {"x": LINES, "axes": constant([1])}, {"y": _bytes((5, 32), 0.0094, 18)}),
    "SUM": single("SUM", {"x": LINES, "axes": constant([1])}, {"y": _bytes((5, 32), 0.083, 18)}),
}


@pytest.mark.parametrize("operator", QUANTISED)
def test_bytes_are_exactly_the_interpreters(operator: str, tmp_path: Path) -> None:
    path = QUANTISED[operator].save(tmp_path)
    network = read_tflite(path, dims={})
    # The reference of SUM leaves its result unwritten.
    kernels = "BUILTIN_WITHOUT_DEFAULT_DELEGATES" if operator == "SUM" else "BUILTIN_REF"
    for seed in range(8):
        values = values_of(network, path, seed=seed)
        expected = interpreted(path.read_bytes(), values.arrays, kernels)["y"]
        found = computed(network, values.arrays, values.quantisation)["y"]
        np.testing.assert_array_equal(found, expected)
        assert len(np.unique(expected)) > 50


def test_a_quotient_of_bytes_is_refused(tmp_path: Path) -> None:
    given = {"x": _bytes((2, 3), 0.02, -2), "w": _bytes((2, 3), 0.016, -128)}
    path = single("DIV", given, {"y": _bytes((2, 3), 0.006, -1)}).save(tmp_path)
    network = read_tflite(path, dims={})
    values = values_of(network, path)
    with pytest.raises(KernelError, match="div of quantised numbers is not emulated"):
        computed(network, values.arrays, values.quantisation)


@pytest.mark.parametrize("path", list(quantised_files()))
def test_every_tensor_of_a_quantised_network_is_exactly_the_interpreters(path: Path) -> None:
    network = read_tflite(path, dims={})
    values = values_of(network, path, seed=1)
    expected = interpreted(_with_valid_scales(path.read_bytes()), values.arrays)
    found = computed(network, values.arrays, values.quantisation)
    compared = 0
    for op in network.ops:
        name = op.outputs[0].tensor
        if name in expected and expected[name].dtype.kind in "iu":
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
            compared += 1
        elif name in expected:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, err_msg=name)
            compared += 1
    assert compared > 0.8 * len(network.ops)

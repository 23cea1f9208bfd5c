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

from tilewright.network.graph import Network
from tilewright.network.tflite_reader import read_tflite
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import values_of

Array = npt.NDArray[Any]
MANY_TILES = 2_000
POSITIVE = ("log", "sqrt", "rsqrt", "pow")


def interpreted(content: bytes, feed: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor that the interpreter's reference kernels compute, by name."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter = litert.Interpreter(
        model_content=content,
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
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

"""Floats of 8 and 16 bits: values as ONNX Runtime has them, and plans that replay."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.e2e.test_onnx_shapes import session
from tests.onnx_models import Array, Given, model, node, saved

import tilewright
from tilewright.errors import InputError
from tilewright.network.load import load_network
from tilewright.replay.kernels.whole import computed
from tilewright.replay.verify import verify

FLOAT8 = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")
X = np.array([[500, 1.06, -0.3, 0.013, -1e6, 17.4]], dtype=np.float32)


def through(element: str, folder: Path) -> Path:
    """Numbers to an element type and back."""
    stored: dict[str, Array | onnx.TensorProto] = {
        "scale": np.array(0.5, dtype=np.float32),
        "zero": helper.make_tensor("zero", getattr(TensorProto, element), (), b"\0", raw=True),
    }
    nodes = [
        node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    return saved(model(nodes, {"x": Given(shape=X.shape)}, ["y"], stored, opset=21), folder)


@pytest.mark.parametrize("element", FLOAT8)
def test_eight_bits_hold_what_onnx_runtime_says(element: str, tmp_path: Path) -> None:
    path = through(element, tmp_path)
    network = load_network(path)
    assert network.by_name["q"].bits == 8
    arrays = {"scale": np.float32(0.5), "zero": np.float32(0), "x": X}
    found = computed(network, {name: np.asarray(a) for name, a in arrays.items()}, {})["y"]
    (expected,) = session(onnx.load(path)).run(["y"], {"x": X})
    np.testing.assert_array_equal(found, expected)
    plan = tilewright.plan(network, tilewright.load_machine("ethos_u65_256"))
    assert verify(plan.timetable, network).agrees


def test_four_bits_are_not_emulated_and_a_message_says_so(tmp_path: Path) -> None:
    network = load_network(through("INT4", tmp_path))
    plan = tilewright.plan(network, tilewright.load_machine("ethos_u65_256"))
    with pytest.raises(InputError, match="quantised numbers of type int4 are not emulated"):
        verify(plan.timetable, network)


def test_the_largest_of_bfloat16_numbers_is_found_beside_padding(tmp_path: Path) -> None:
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    pool = node("MaxPool", ["x"], ["y"], attributes)
    declared = helper.make_tensor_value_info("x", TensorProto.BFLOAT16, (1, 1, 2, 2))
    proto = model([pool], {"x": Given(shape=(1, 1, 2, 2))}, ["y"], opset=22)
    proto.graph.input[0].CopyFrom(declared)
    network = load_network(saved(proto, tmp_path))
    plan = tilewright.plan(network, tilewright.load_machine("seneca"))
    assert verify(plan.timetable, network).agrees
    x = np.array([[[[-4, -3], [-2, -1]]]], dtype=np.float32).astype("bfloat16")
    np.testing.assert_array_equal(computed(network, {"x": x}, {})["y"], np.full((1, 1, 2, 2), -1))

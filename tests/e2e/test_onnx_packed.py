"""Products with weights that lie packed in blocks, against ONNX Runtime and worked out by hand."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.e2e.test_onnx_shapes import session
from tests.onnx_models import Array, Given, model, node, saved

import tilewright
from tilewright.errors import InputError
from tilewright.network.load import load_network
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import values_of
from tilewright.replay.verify import verify

ROWS, COLUMNS, BLOCK = 6, 40, 16


def product(folder: Path, bits: int, zero_points: str, *, with_bias: bool = False) -> Path:
    """(3, 40) x (40, 6) in blocks of 16, of which the last is not full."""
    random = np.random.default_rng(bits)
    blocks = -(-COLUMNS // BLOCK)
    stored: dict[str, Array] = {
        "w": random.integers(0, 256, (ROWS, blocks, BLOCK * bits // 8)).astype(np.uint8),
        "scales": random.uniform(0.1, 1, ROWS * blocks).astype(np.float32),
    }
    if zero_points == "packed":
        stored["zeros"] = random.integers(0, 256, ROWS * -(-blocks * bits // 8)).astype(np.uint8)
    if zero_points == "real":
        stored["zeros"] = random.uniform(0, 2**bits, ROWS * blocks).astype(np.float32)
    inputs = ["x", "w", "scales", "zeros" if zero_points else ""]
    if with_bias:
        stored["bias"] = random.uniform(-1, 1, ROWS).astype(np.float32)
        inputs += ["", "bias"]
    attributes = {"K": COLUMNS, "N": ROWS, "bits": bits, "block_size": BLOCK}
    packed = node("MatMulNBits", inputs, ["y"], attributes, domain="com.microsoft", name="packed")
    return saved(model([packed], {"x": Given(shape=(3, COLUMNS))}, ["y"], stored), folder)


@pytest.mark.parametrize(
    ("bits", "zero_points"), [(4, ""), (4, "packed"), (4, "real"), (8, ""), (8, "packed")]
)
@pytest.mark.parametrize("with_bias", [False, True])
def test_packed_weights_give_what_onnx_runtime_gives(
    bits: int, zero_points: str, with_bias: bool, tmp_path: Path
) -> None:
    path = product(tmp_path, bits, zero_points, with_bias=with_bias)
    network = load_network(path)
    values = values_of(network, path)
    found = computed(network, values.arrays, values.quantisation)["y"]
    (expected,) = session(onnx.load(path)).run(["y"], {"x": values.arrays["x"]})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_codes_lie_low_bits_first_and_zero_in_the_middle(tmp_path: Path) -> None:
    # 0x1F holds 15 and 1, 0x82 holds 2 and 8; zero is 8, and a step 0.5.
    stored: dict[str, Array] = {
        "w": np.array([[[0x1F, 0x82]]], np.uint8),
        "scales": np.array([0.5], np.float32),
    }
    attributes = {"K": 4, "N": 1, "bits": 4, "block_size": 4}
    packed = node("MatMulNBits", ["x", "w", "scales"], ["y"], attributes, domain="com.microsoft")
    path = saved(model([packed], {"x": Given(shape=(1, 4))}, ["y"], stored), tmp_path)
    network = load_network(path)
    found = values_of(network, path).arrays
    weights, scales = (t for t in network.tensors if t.role == "constant")
    np.testing.assert_array_equal(found[weights.name], [[3.5, -3.5, -3, 0]])
    np.testing.assert_array_equal(found[scales.name], [[0.5]])
    # They lie in memory as they lie in the file.
    assert (weights.shape, weights.bits, weights.size_bytes) == ((1, 4), 4, 2)
    assert (scales.shape, scales.size_bytes) == ((1, 1), 4)


def test_all_that_lies_packed_is_counted(tmp_path: Path) -> None:
    network = load_network(product(tmp_path, 4, "packed"))
    constants = [t.size_bytes for t in network.tensors if t.role == "constant"]
    # 6 x 40 weights of 4 bits; for 6 x 3 blocks a scale of 4 bytes and a zero point of 4 bits.
    assert constants == [120, 72, 9]


def test_a_plan_moves_packed_weights_and_computes_with_unpacked_ones(tmp_path: Path) -> None:
    network = load_network(product(tmp_path, 4, "packed"))
    plan = tilewright.plan(network, tilewright.load_machine("eyeriss_like"))
    assert verify(plan.timetable, network).agrees


def test_packed_weights_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    stored: dict[str, Array] = {
        "w": np.zeros((6, 2, 8), np.uint8),
        "scales": np.ones(18, np.float32),
    }
    attributes = {"K": COLUMNS, "N": ROWS, "bits": 4, "block_size": BLOCK}
    packed = node("MatMulNBits", ["x", "w", "scales"], ["y"], attributes, domain="com.microsoft")
    path = saved(model([packed], {"x": Given(shape=(3, COLUMNS))}, ["y"], stored), tmp_path)
    with pytest.raises(InputError, match=r"weights of shape \(6, 2, 8\) .* \(6, 3, 8\)"):
        load_network(path)

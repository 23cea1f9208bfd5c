"""Spectra of short stretches of a signal are those of ONNX Runtime."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.e2e.test_onnx_shapes import session
from tests.onnx_models import Array, Given, model, node, saved

from tilewright.errors import InputError
from tilewright.network.counts import macs
from tilewright.network.load import load_network
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import values_of

HANN = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16)).astype(np.float32)


def spectra(
    folder: Path, shape: tuple[int, ...], window: Array | None, *, onesided: int = 1
) -> Path:
    """Stretches of 16 samples, 5 apart."""
    stored: dict[str, Array] = {"step": np.array(5), "length": np.array(16)}
    inputs = ["x", "step", "", "length"]
    if window is not None:
        stored["window"] = window
        inputs = ["x", "step", "window"]
    made = node("STFT", inputs, ["y"], {"onesided": onesided}, name="spectra")
    return saved(model([made], {"x": Given(shape=shape)}, ["y"], stored, opset=17), folder)


@pytest.mark.parametrize("shape", [(2, 60, 1), (1, 16, 1)])
@pytest.mark.parametrize("window", [HANN, None], ids=["window", "no window"])
@pytest.mark.parametrize("onesided", [0, 1])
def test_spectra_are_those_of_onnx_runtime(
    shape: tuple[int, ...], window: Array | None, onesided: int, tmp_path: Path
) -> None:
    path = spectra(tmp_path, shape, window, onesided=onesided)
    network = load_network(path)
    values = values_of(network, path).arrays
    (expected,) = session(onnx.load(path)).run(["y"], {"x": values["x"]})
    found = computed(network, values, {})["y"]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_spectra_cost_a_product_for_each_sample_and_part_of_a_frequency(tmp_path: Path) -> None:
    network = load_network(spectra(tmp_path, (2, 60, 1), HANN))
    # 2 signals, 1 + (60 - 16) // 5 = 9 stretches of 16 samples, 9 frequencies of 2 parts.
    assert sum(macs(op, network) for op in network.ops) == 2 * 9 * 16 * 9 * 2


def test_complex_signals_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a signal of shape \(1, 60, 2\) is not read"):
        load_network(spectra(tmp_path, (1, 60, 2), HANN))

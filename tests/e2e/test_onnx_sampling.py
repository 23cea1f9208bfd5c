"""Images sampled at computed places are those of ONNX Runtime."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.e2e.test_onnx_shapes import session
from tests.onnx_models import Given, model, node, saved

import tilewright
from tilewright.errors import InputError
from tilewright.network.load import load_network
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import values_of
from tilewright.replay.verify import verify

IMAGE, GRID = (2, 3, 5, 7), (2, 4, 6, 2)


def sampled(folder: Path, attributes: dict[str, Any], opset: int, grid: tuple[int, ...]) -> Path:
    sample = node("GridSample", ["x", "grid"], ["y"], attributes, name="sample")
    given = {"x": Given(shape=IMAGE), "grid": Given(shape=grid)}
    return saved(model([sample], given, ["y"], opset=opset), folder)


@pytest.mark.parametrize(("opset", "mode"), [(16, "bilinear"), (20, "linear"), (20, "nearest")])
@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_samples_are_those_of_onnx_runtime(
    opset: int, mode: str, padding: str, align_corners: int, tmp_path: Path
) -> None:
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": align_corners}
    path = sampled(tmp_path, attributes, opset, GRID)
    network = load_network(path)
    # A third of the samples lies beyond the image, and one at each corner.
    values = dict(values_of(network, path).arrays)
    values["grid"][0, 0, :4] = [[-1, -1], [1, 1], [-1, 1], [1, -1]]
    (expected,) = session(onnx.load(path)).run(["y"], {k: values[k] for k in ("x", "grid")})
    found = computed(network, values, {})["y"]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_plan_of_samples_is_verified(tmp_path: Path) -> None:
    network = load_network(sampled(tmp_path, {}, 20, GRID))
    plan = tilewright.plan(network, tilewright.load_machine("ethos_u65_256"))
    assert verify(plan.timetable, network).agrees


@pytest.mark.parametrize(
    ("attributes", "grid", "reason"),
    [
        ({"mode": "cubic"}, GRID, "mode 'cubic' with padding 'zeros' is not read"),
        ({"padding_mode": "reflection"}, GRID, "padding 'reflection' is not read"),
        ({}, (2, 4, 6, 3), r"sampled at \(2, 4, 6, 3\) is not read"),
        ({}, (1, 4, 6, 2), r"sampled at \(1, 4, 6, 2\)"),
    ],
)
def test_samples_that_are_not_read_say_so(
    attributes: dict[str, Any], grid: tuple[int, ...], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=reason):
        load_network(sampled(tmp_path, attributes, 20, grid))

"""Resizes: the window of each result holds what it is made of, and is enough to compute it."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.e2e.test_kernels_onnx import feed_of
from tests.kernel_runs import in_tiles, run_in_tiles
from tests.onnx_models import Case, Given, saved, single
from tests.random_cases import examples, repeatable
from tests.unit.network.tflite_case import case_of
from tests.unit.network.tflite_models import TensorSpec, constant

from tilewright.network.graph import Network
from tilewright.network.onnx_reader import read_onnx
from tilewright.network.tflite_reader import read_tflite
from tilewright.program.boxes import touched
from tilewright.replay.kernels.whole import computed

FILES = settings(repeatable, suppress_health_check=[*HealthCheck])
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
ALL = (*COORDINATES, "half_pixel_symmetric", "tf_half_pixel_for_nn")
"""Also those in which ONNX Runtime settles ties otherwise, or that it lacks."""
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
lengths = st.tuples(st.integers(1, 9), st.integers(1, 9))


@st.composite
def resizes(
    draw: st.DrawFn, dtype: str, modes: tuple[str, ...], coordinates: tuple[str, ...]
) -> Case:
    """To some size, or by scales that are whole numbers or not."""
    shape = (1, 2, *draw(lengths))
    scales = st.sampled_from([0.5, 0.7, 1.0, 1.3, 2.0, 3.0, 4.0])
    by_scale = np.array([1, 1, draw(scales), draw(scales)], dtype=np.float32)
    sizes = np.array([1, 2, draw(st.integers(1, 20)), draw(st.integers(1, 20))])
    is_scaled = draw(st.booleans()) and all(np.floor(by_scale * shape) >= 1)
    mode = draw(st.sampled_from(modes))
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": draw(st.sampled_from(coordinates)),
        "nearest_mode": draw(st.sampled_from(ROUNDINGS)),
    }
    operands = (
        Given(shape=shape, dtype=dtype),
        None,
        *([by_scale] if is_scaled else [None, sizes]),
    )
    return Case(name="resize", op="Resize", operands=operands, attributes=attributes, opset=19)


def assert_tiles_make_the_whole(
    network: Network, values: dict[str, Any], data: st.DataObject
) -> None:
    cut = in_tiles(lambda dim, size: data.draw(st.integers(-(-size // 9), size), label=dim))
    found = run_in_tiles(network, values, {}, cut)
    whole = computed(network, values, {})
    np.testing.assert_array_equal(found["y0"], whole["y0"])


def tiles_of_onnx(case: Case, seed: int, data: st.DataObject, folder: Path) -> None:
    constants = {f"x{i}": o for i, o in enumerate(case.operands) if isinstance(o, np.ndarray)}
    network = read_onnx(saved(single(case), folder))
    assert_tiles_make_the_whole(network, {**constants, **feed_of(case, seed)}, data)


@settings(FILES, max_examples=examples(200))
@given(resizes("float32", ("nearest", "linear", "cubic"), ALL), st.integers(0, 99), st.data())
def test_tiles_of_reals_make_the_whole(
    tmp_path: Path, case: Case, seed: int, data: st.DataObject
) -> None:
    tiles_of_onnx(case, seed, data, tmp_path)


@settings(FILES, max_examples=examples(100))
@given(resizes("uint8", ("nearest", "linear"), ALL), st.integers(0, 99), st.data())
def test_tiles_of_whole_numbers_make_the_whole(
    tmp_path: Path, case: Case, seed: int, data: st.DataObject
) -> None:
    tiles_of_onnx(case, seed, data, tmp_path)


@settings(FILES, max_examples=examples(100))
@given(
    lengths,
    # Over many results the steps of 1/1024 drift away from where a place is.
    st.tuples(st.integers(1, 20), st.integers(1, 20) | st.just(2_500)),
    st.sampled_from([{}, {"AlignCorners": True}, {"HalfPixelCenters": True}]),
    st.sampled_from(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"]),
    st.data(),
)
def test_tiles_of_tflites_whole_numbers_make_the_whole(
    tmp_path: Path,
    sizes: tuple[int, int],
    wanted: tuple[int, int],
    options: dict[str, bool],
    operator: str,
    data: st.DataObject,
) -> None:
    shape = (1, *sizes, 2)
    inputs = {"x": TensorSpec(shape=shape, dtype="int8"), "size": constant([*wanted])}
    table = "ResizeBilinearOptions" if "LINEAR" in operator else "ResizeNearestNeighborOptions"
    case = case_of(operator, inputs, (1, *wanted, 2), "resize", (table, options), dtype="int8")
    network = read_tflite(case.model.save(tmp_path), dims={})
    numbers = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    assert_tiles_make_the_whole(network, {"x": numbers}, data)


@settings(FILES, max_examples=examples(200))
@given(resizes("float32", ("nearest", "linear"), COORDINATES))
def test_windows_hold_what_onnx_runtime_makes_results_of(tmp_path: Path, case: Case) -> None:
    proto = single(case)
    network = read_onnx(saved(proto, tmp_path))
    (op,) = network.ops
    runtime = onnxruntime.InferenceSession(proto.SerializeToString())
    shape = network.by_name["x0"].shape
    for axis in (2, 3):
        for place in range(shape[axis]):
            picture = np.zeros(shape, dtype=np.float32)
            picture[
                :, :, place if axis == 2 else slice(None), place if axis == 3 else slice(None)
            ] = 1
            (result,) = runtime.run(None, {"x0": picture})
            # Results that are not 0 are made of the only elements that are not.
            for at in sorted(set(np.nonzero(result)[axis].tolist())):
                ranges = {dim: (0, size) for dim, size in op.dims}
                ranges[("OY", "OX")[axis - 2]] = (at, at + 1)
                begin, end = touched(op.inputs[0], ranges, shape)[axis]
                assert begin <= place < end, (str(op.inputs[0].index), at, place)

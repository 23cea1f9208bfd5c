"""Convolutions and pools of all sorts have the shape that ONNX Runtime computes."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.e2e.test_onnx_shapes import session
from tests.onnx_models import Case, Given, saved, single

from tilewright.errors import InputError
from tilewright.network.onnx_reader import read_onnx

ORT_FAILURES = (
    onnxruntime.capi.onnxruntime_pybind11_state.Fail,
    onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument,
    onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException,
)


@st.composite
def window_cases(draw: st.DrawFn) -> Case:
    op = draw(st.sampled_from(["Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"]))
    rank = draw(st.integers(1, 2))
    per_axis = st.lists(st.integers(1, 4), min_size=rank, max_size=rank)
    sizes = draw(st.lists(st.integers(1, 9), min_size=rank, max_size=rank))
    kernel = draw(per_axis)
    attributes: dict[str, Any] = {"strides": draw(per_axis)}
    mode = draw(st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if mode != "NOTSET":
        attributes["auto_pad"] = mode
    elif draw(st.booleans()):
        attributes["pads"] = [draw(st.integers(0, k - 1)) for k in (*kernel, *kernel)]
    # ONNX Runtime refuses dilated convolutions with "same" and forgets the dilation of such pools.
    if not mode.startswith("SAME") and draw(st.booleans()):
        attributes["dilations"] = draw(per_axis)
    groups = draw(st.sampled_from([1, 2]))
    operands: tuple[Any, ...] = (Given(shape=(1, 2, *sizes)),)
    if op.endswith("Pool"):
        attributes |= {"kernel_shape": kernel, "ceil_mode": draw(st.integers(0, 1))}
    else:
        attributes["group"] = groups
        shape = (4, 2 // groups) if op == "Conv" else (2, 3)
        operands += (np.ones((*shape, *kernel), np.float32),)
    if op == "ConvTranspose" and draw(st.booleans()):
        attributes["output_padding"] = [draw(st.integers(0, s - 1)) for s in attributes["strides"]]
    return Case(name=op, op=op, operands=operands, attributes=attributes, opset=22)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("windows")


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=window_cases())
def test_windows_have_the_shapes_of_onnx_runtime(folder: Path, case: Case) -> None:
    proto = single(case)
    data = case.operands[0]
    assert isinstance(data, Given)
    shape = tuple(int(size or 0) for size in data.shape)
    try:
        (computed,) = session(proto).run(["y0"], {"x0": np.ones(shape, np.float32)})
    except ORT_FAILURES:
        assume(False)
        return
    try:
        shape_read = read_onnx(saved(proto, folder)).by_name["y0"].shape
    except InputError as error:
        # ONNX Runtime makes up a result for a window that does not fit.
        assume("does not fit" not in str(error))
        raise
    assert shape_read == computed.shape

"""Real networks: every shape as the TFLite interpreter has it, every multiplication counted."""

import struct
import time
from math import prod
from pathlib import Path
from typing import Any

import pytest
from tests.reference_data import ABSENT, REFERENCE_DATA
from tflite.Model import Model

from tilewright.network.counts import macs, weight_bytes
from tilewright.network.graph import Network
from tilewright.network.tflite_reader import read_tflite

# Millions of multiplications as published: MobileNet papers, MLPerf Tiny's descriptions.
PUBLISHED_MEGA_MACS = {
    "coral_mobilenet_v1_0.5_160_quant": 76,
    "coral_mobilenet_v2_1.0_224_quant": 300,
    "mlperf_tiny_resnet8_int8": 12.5,
    "mlperf_tiny_kws_dscnn_int8": 2.7,
    "mlperf_tiny_vww96_int8": 7.5,
    "mlperf_tiny_ad01_int8": 0.26,
}


each_model = pytest.mark.parametrize(
    "path",
    sorted((REFERENCE_DATA / "models").glob("*.tflite"))
    or [pytest.param(None, marks=pytest.mark.skip(reason=ABSENT))],
    ids=lambda path: path.stem if path else "none",
)


@pytest.fixture
def interpreter(path: Path) -> Any:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    loaded = litert.Interpreter(
        model_content=_with_valid_scales(path.read_bytes()),
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    loaded.allocate_tensors()
    return loaded


@pytest.fixture
def network(path: Path) -> Network:
    return read_tflite(path, dims={})


@each_model
def test_every_tensor_has_the_interpreters_shape_and_type(
    network: Network, interpreter: Any
) -> None:
    details = {}
    for entry in interpreter.get_tensor_details():
        if entry["name"]:  # What the interpreter adds for itself has no name.
            assert entry["name"] not in details, "these files name every tensor differently"
            details[entry["name"]] = (tuple(map(int, entry["shape"])), entry["dtype"].__name__)
    ours = {t.name: (t.shape, t.dtype) for t in network.tensors if ":part_" not in t.name}
    assert ours == {name: details[name] for name in ours}
    made = {
        interpreter._get_tensor_details(index, 0)["name"]
        for op in interpreter._get_ops_details()
        for index in op["outputs"]
    }
    assert made <= ours.keys()


@each_model
def test_inputs_and_outputs_come_in_the_files_order(network: Network, interpreter: Any) -> None:
    inputs = [entry["name"] for entry in interpreter.get_input_details()]
    outputs = [entry["name"] for entry in interpreter.get_output_details()]
    assert [t.name for t in network.inputs] == inputs
    assert [t.name for t in network.outputs] == outputs


@each_model
def test_multiplications_and_weights_are_those_of_the_interpreters_shapes(
    network: Network, interpreter: Any
) -> None:
    shapes = {e["index"]: tuple(map(int, e["shape"])) for e in interpreter.get_tensor_details()}
    expected, weights = 0, {}
    for op in interpreter._get_ops_details():
        if op["op_name"] in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
            kernel = shapes[op["inputs"][1]]
            # A depthwise kernel is (1, height, width, K): each result sees height * width taps.
            taps = kernel[1:3] if op["op_name"] == "DEPTHWISE_CONV_2D" else kernel[1:]
            expected += prod(shapes[op["outputs"][0]]) * prod(taps)
            weights[op["inputs"][1]] = prod(kernel)  # These files have weights of one byte.
    assert sum(macs(op, network) for op in network.ops) == expected > 0
    assert weight_bytes(network) == sum(weights.values())


@each_model
def test_multiplications_are_as_many_as_published(path: Path, network: Network) -> None:
    published = PUBLISHED_MEGA_MACS.get(path.stem)
    if published is None:
        pytest.skip("no figure published for it")
    total = sum(macs(op, network) for op in network.ops)
    assert total / 1e6 == pytest.approx(published, rel=0.02)


@each_model
def test_reading_takes_less_than_half_a_second(path: Path) -> None:
    start = time.process_time()
    read_tflite(path, dims={})
    assert time.process_time() - start < 0.5


def _with_valid_scales(content: bytes) -> bytes:
    """The file with quantised axes that exist: the interpreter refuses some that others load."""
    graph = Model.GetRootAs(content, 0).Subgraphs(0)
    mended = bytearray(content)
    for i in range(graph.TensorsLength()):
        scales = graph.Tensors(i).Quantization()
        rank = graph.Tensors(i).ShapeLength()
        if scales is not None and scales.QuantizedDimension() >= max(rank, 1):
            place = scales._tab.Pos + scales._tab.Offset(16)
            assert struct.unpack_from("<i", mended, place)[0] == scales.QuantizedDimension()
            struct.pack_into("<i", mended, place, 0)
    return bytes(mended)

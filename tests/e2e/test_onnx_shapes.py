"""Shapes, element types and loop nests against what ONNX Runtime computes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from tests.e2e.onnx_cases import ALL
from tests.onnx_models import Array, Case, Given, saved, single
from tests.unit.network.nest_numbers import run_nests

from tilewright.network.counts import macs, weight_bytes
from tilewright.network.graph import Network, Op
from tilewright.network.onnx_reader import read_onnx, supported_ops

NEST_KINDS = frozenset(
    (
        *("conv", "conv_transpose", "matmul", "max_pool", "average_pool"),
        *("add", "sub", "mul", "max", "relu", "prelu", "where"),
        *("reduce_sum", "reduce_max", "reduce_prod"),
        *("slice", "concat", "transpose", "expand", "tile", "pad", "reshape"),
        *("depth_to_space", "space_to_depth", "resize"),
    )
)
"""Kinds that can be computed from their loop nests alone."""


def session(proto: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(proto.SerializeToString(), options)


def random_feed(case: Case, reals: Sequence[float] = (0.25, 0.5, 0.75)) -> dict[str, Array]:
    """Reals from those given, and whole numbers that are valid as indices."""
    random = np.random.default_rng(0)
    feed: dict[str, Array] = {}
    for i, given in enumerate(case.operands):
        if isinstance(given, Given):
            shape = tuple(size for size in given.shape if isinstance(size, int))
            pool = reals if given.dtype.startswith("float") else (0, 1)
            feed[f"x{i}"] = random.choice(pool, shape).astype(given.dtype)
    return feed


def compare(network: Network, computed: Mapping[str, Array]) -> None:
    for name, array in computed.items():
        if name in network.by_name:
            tensor = network.by_name[name]
            assert (name, tensor.shape) == (name, array.shape)
            assert (name, tensor.dtype) == (name, str(array.dtype))


@pytest.mark.parametrize("case", [c for _, c in ALL], ids=[f"{g}: {c.name}" for g, c in ALL])
def test_one_node_has_the_shapes_and_types_that_onnx_runtime_computes(
    case: Case, tmp_path: Path
) -> None:
    proto = single(case)
    feed = random_feed(case)
    names = [f"y{i}" for i in range(case.results)]
    computed = dict(zip(names, session(proto).run(names, feed), strict=True))
    network = read_onnx(saved(proto, tmp_path))
    compare(network, computed)
    constants = {"Dropout": {"y1"}}.get(case.op, set())
    assert set(names) - constants <= network.by_name.keys()


def is_computable(op: Op, network: Network) -> bool:
    """Whether the oracle knows the kind, its operands' number, its indices and all it does."""
    is_affine = op.kind == "reshape" or all(
        operand.index is not None and all(axis.reach < axis.divisor for axis in operand.index)
        for operand in op.inputs
    )
    too_many = op.kind in ("add", "max") and len(op.inputs) > 2
    is_scalar = network.by_name[op.outputs[0].tensor].shape == ()
    is_plain = is_affine and not op.attribute("activation") and not is_scalar
    # Behind the last window of some transposed convolutions lies more than one element.
    indices = op.outputs[0].index or ()
    is_single = all(index.reach < index.divisor for index in indices)
    return op.kind in NEST_KINDS and is_plain and is_single and not too_many


def nest_cases() -> Iterable[Any]:
    for group, case in ALL:
        name = f"{case.domain}.{case.op}" if case.domain else case.op
        if group != "quantised" and supported_ops()[name] in NEST_KINDS:
            yield pytest.param(case, id=f"{group}: {case.name}")


@pytest.mark.parametrize("case", list(nest_cases()))
def test_one_node_computed_from_its_loop_nest_gives_onnx_runtimes_values(
    case: Case, tmp_path: Path
) -> None:
    proto = single(case)
    network = read_onnx(saved(proto, tmp_path))
    if not all(is_computable(op, network) for op in network.ops):
        pytest.skip("no affine nest of a kind that the oracle computes")
    feed = random_feed(case, reals=range(1, 10))
    given = {f"x{i}": o for i, o in enumerate(case.operands) if isinstance(o, np.ndarray)}
    names = [f"y{i}" for i in range(case.results)]
    expected = dict(zip(names, session(proto).run(names, feed), strict=True))
    filler = float(network.ops[0].attribute("value", 0.0))  # type: ignore[arg-type]  # a number
    computed = run_nests(network, {**given, **feed})
    for op in network.ops:
        name = op.outputs[0].tensor
        if op.kind == "pad" and filler:
            computed[name] = np.where(computed[name] == 0, filler, computed[name])
        if name in expected:
            np.testing.assert_allclose(computed[name], expected[name], rtol=1e-4, atol=1e-4)


LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
PUBLISHED_GMACS = {
    # He et al. 2016 give 19.6 for VGG-19; torchvision's model pages give 4.09 for ResNet-50, 2.83
    # for DenseNet-121 and 0.35 for SqueezeNet 1.1 (0.82 for 1.0), multiplications counted once.
    "light_vgg19": (19.55, 19.65),
    "light_resnet50": (4.0, 4.2),
    "light_densenet121": (2.8, 2.9),
    "light_squeezenet": (0.34, 0.36),
    # 0.72 at 227 x 227 with two groups; Caffe's ONNX file has 224 x 224.
    "light_bvlc_alexnet": (0.64, 0.72),
    # Szegedy et al. 2015: a budget of 1.5; Ioffe and Szegedy's successor takes about 2.
    "light_inception_v1": (1.4, 1.6),
    "light_inception_v2": (1.9, 2.1),
}
"""ShuffleNet and ZFNet are missing: no published figure is of the networks in these files."""


def light_models() -> Iterable[Any]:
    for path in sorted(LIGHT.glob("*.onnx")):
        slow = [pytest.mark.slow] if path.stem in ("light_vgg19", "light_densenet121") else []
        yield pytest.param(path, id=path.stem, marks=slow)


def all_tensors(proto: onnx.ModelProto) -> dict[str, Array]:
    """Every result of every node, computed by ONNX Runtime on zeros."""
    stored = {tensor.name for tensor in proto.graph.initializer}
    feed = {
        value.name: np.zeros([d.dim_value for d in value.type.tensor_type.shape.dim], np.float32)
        for value in proto.graph.input
        if value.name not in stored
    }
    names = [name for node in proto.graph.node for name in node.output if name]
    exposed = onnx.ModelProto()
    exposed.CopyFrom(proto)
    del exposed.graph.output[:]
    exposed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return dict(zip(names, session(exposed).run(names, feed), strict=True))


def constant_names(proto: onnx.ModelProto) -> set[str]:
    """Results that depend on no input: nor does a Dropout's mask, since nothing is dropped."""
    names = {tensor.name for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        if all(name in names for name in node.input):
            names.update(node.output)
        elif node.op_type == "Dropout":
            names.update(node.output[1:])
    return names


def independent_macs(proto: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Each element of a Conv's result takes one MAC per weight of its channel; Gemm per row."""
    total = 0
    for node in proto.graph.node:
        if node.op_type == "Conv":
            total += math.prod(shapes[node.output[0]]) * math.prod(shapes[node.input[1]][1:])
        elif node.op_type == "Gemm":
            flipped = any(a.name == "transA" and a.i for a in node.attribute)
            total += math.prod(shapes[node.output[0]]) * shapes[node.input[0]][0 if flipped else 1]
    return total


@pytest.mark.parametrize("path", list(light_models()))
def test_a_published_network_has_onnx_runtimes_shapes_and_its_published_work(path: Path) -> None:
    proto = onnx.load(path)
    computed = all_tensors(proto)
    network = read_onnx(path)
    compare(network, computed)
    made = {tensor.name for tensor in network.tensors if tensor.role in ("activation", "output")}
    assert made == computed.keys() - constant_names(proto)
    shapes = {name: array.shape for name, array in computed.items()}
    shapes |= {tensor.name: tuple(tensor.dims) for tensor in proto.graph.initializer}
    shapes |= {tensor.name: tensor.shape for tensor in network.inputs}
    counted = sum(macs(op, network) for op in network.ops)
    assert counted == independent_macs(proto, shapes)
    if path.stem in PUBLISHED_GMACS:
        low, high = PUBLISHED_GMACS[path.stem]
        assert low < counted / 1e9 < high


def test_light_weights_are_constants_of_known_size() -> None:
    # ResNet-50 has 25,557,032 parameters: 53,120 are scales and shifts of the batch norms, 1,000
    # the bias of the classifier, the rest weights of 4 bytes each.
    network = read_onnx(LIGHT / "light_resnet50.onnx")
    assert weight_bytes(network) == 4 * (25_557_032 - 53_120 - 1_000)

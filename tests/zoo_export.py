"""A network of the zoo as an ONNX model, one node per op: a second opinion on it for tests."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tilewright.network.graph import AttributeValue, Network, Op, Tensor

OPSET = 20

OP_TYPES: Mapping[str, str] = {
    "add": "Add",
    "average_pool": "AveragePool",
    "clip": "Clip",
    "concat": "Concat",
    "conv": "Conv",
    "expand": "Expand",
    "gather": "Gather",
    "gelu": "Gelu",
    "layer_norm": "LayerNormalization",
    "leaky_relu": "LeakyRelu",
    "local_response_norm": "LRN",
    "matmul": "MatMul",
    "max_pool": "MaxPool",
    "relu": "Relu",
    "reshape": "Reshape",
    "resize": "Resize",
    "slice": "Slice",
    "softmax": "Softmax",
    "tanh": "Tanh",
    "transpose": "Transpose",
}
"""Kinds and their ONNX ops; a matmul with attributes is a Gemm."""

CONSTANT_INPUTS: Mapping[str, tuple[str, ...]] = {
    "clip": ("min", "max"),
    "resize": ("roi", "scales"),
    "slice": ("starts", "ends", "axes", "steps"),
}
"""Attributes that ONNX has as inputs, in its order; a missing one has no elements."""


def to_onnx(network: Network, seed: int | None = None) -> onnx.ModelProto:
    """The network in float32, with every result as an output.

    Weights are normally distributed, or zeros that take no room in the model if there is no seed.
    """
    nodes, initializers = [], []
    random = None if seed is None else np.random.default_rng(seed)
    for tensor in network.tensors:
        if tensor.role != "constant":
            continue
        if random is None:
            shape = f"{tensor.name}/shape"
            initializers.append(_int64(shape, tensor.shape))
            nodes.append(helper.make_node("ConstantOfShape", [shape], [tensor.name]))
        else:
            values = random.standard_normal(tensor.shape, dtype=np.float32)
            values /= np.float32(max(1, tensor.elements // tensor.shape[0])) ** 0.5
            initializers.append(numpy_helper.from_array(values, tensor.name))
    for op in network.ops:
        extra = _constant_inputs(op, network.by_name[op.outputs[0].tensor])
        initializers += extra.values()
        nodes.append(_node(op, list(extra)))
    graph = helper.make_graph(
        nodes,
        network.name,
        [_value(tensor, _element_type(network, tensor)) for tensor in network.inputs],
        [
            helper.make_tensor_value_info(operand.tensor, TensorProto.FLOAT, None)
            for op in network.ops
            for operand in op.outputs
        ],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 9
    return model


def feeds(network: Network, seed: int) -> dict[str, NDArray[Any]]:
    """Values for the inputs: normally distributed, and 0 or 1 for positions in a table."""
    random = np.random.default_rng(seed)
    return {
        tensor.name: random.integers(0, 2, tensor.shape, dtype=np.int64)
        if _element_type(network, tensor) == TensorProto.INT64
        else random.standard_normal(tensor.shape, dtype=np.float32)
        for tensor in network.inputs
    }


def run(
    network: Network,
    seed: int | None = None,
    values: Mapping[str, NDArray[Any]] | None = None,
) -> dict[str, NDArray[Any]]:
    """Every result of the network as ONNX Runtime computes it, unoptimised.

    Inputs that `values` lacks are those of `feeds`.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        to_onnx(network, seed).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    given = {**feeds(network, seed or 0), **(values or {})}
    return dict(zip(names, session.run(names, given), strict=True))


def _node(op: Op, extra: list[str]) -> onnx.NodeProto:
    kind = "Gemm" if op.kind == "matmul" and op.attributes else OP_TYPES[op.kind]
    as_inputs = CONSTANT_INPUTS.get(op.kind, ())
    attributes: dict[str, Any] = {k: v for k, v in op.attributes if k not in as_inputs}
    return helper.make_node(
        kind,
        [*(operand.tensor for operand in op.inputs), *extra],
        [operand.tensor for operand in op.outputs],
        name=op.name,
        **attributes,
    )


def _constant_inputs(op: Op, result: Tensor) -> dict[str, onnx.TensorProto]:
    """The inputs that ONNX wants beside the data, by name and in its order."""
    if op.kind in ("reshape", "expand"):
        name = f"{op.name}/shape"
        return {name: _int64(name, result.shape)}
    attributes = dict(op.attributes)
    constants = {}
    for key in CONSTANT_INPUTS.get(op.kind, ()):
        name = f"{op.name}/{key}"
        constants[name] = _constant(name, attributes.get(key, ()))
    return constants


def _constant(name: str, value: AttributeValue) -> onnx.TensorProto:
    values = np.asarray(value)
    is_float = values.dtype.kind == "f"
    return numpy_helper.from_array(values.astype(np.float32 if is_float else np.int64), name)


def _int64(name: str, values: tuple[int, ...]) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values, dtype=np.int64), name)


def _value(tensor: Tensor, element_type: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(tensor.name, element_type, tensor.shape)


def _element_type(network: Network, tensor: Tensor) -> int:
    looked_up = {op.inputs[1].tensor for op in network.ops if op.kind == "gather"}
    return int(TensorProto.INT64 if tensor.name in looked_up else TensorProto.FLOAT)

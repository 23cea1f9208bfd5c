"""Tiny ONNX models for tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

Array = npt.NDArray[Any]
AttributeMap = Mapping[str, Any]
NO_ATTRIBUTES: AttributeMap = {}

FLOAT = onnx.TensorProto.FLOAT
INT64 = onnx.TensorProto.INT64


@dataclass(frozen=True, kw_only=True)
class Given:
    """An input of the graph; `shape` may name dims or leave them open (None)."""

    shape: tuple[int | str | None, ...]
    dtype: str = "float32"


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One node. Operands are graph inputs, constants (arrays), or left out (None)."""

    name: str
    op: str
    operands: tuple[Given | Array | None, ...]
    attributes: AttributeMap = field(default_factory=dict)
    opset: int = 13
    results: int = 1
    domain: str = ""


def node(
    op: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    attributes: AttributeMap = NO_ATTRIBUTES,
    *,
    name: str = "",
    domain: str = "",
) -> onnx.NodeProto:
    made = helper.make_node(op, list(inputs), list(outputs), name=name, domain=domain)
    made.attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items())
    return made


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Given],
    outputs: Sequence[str],
    constants: Mapping[str, Array | onnx.TensorProto] | None = None,
    *,
    opset: int = 13,
) -> onnx.ModelProto:
    """A model whose outputs have neither type nor shape."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [_declared(name, given) for name, given in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [_stored(name, value) for name, value in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def single(case: Case) -> onnx.ModelProto:
    """The model of one node: operands x0, x1, …, results y0, y1, …"""
    names = ["" if operand is None else f"x{i}" for i, operand in enumerate(case.operands)]
    outputs = [f"y{i}" for i in range(case.results)]
    made = node(case.op, names, outputs, case.attributes, name="it", domain=case.domain)
    operands = list(zip(names, case.operands, strict=True))
    return model(
        [made],
        {name: value for name, value in operands if isinstance(value, Given)},
        outputs,
        {name: value for name, value in operands if isinstance(value, np.ndarray)},
        opset=case.opset,
    )


def saved(proto: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(proto.SerializeToString())
    return path


def integers(*values: int) -> Array:
    return np.array(values, dtype=np.int64)


def reals(*values: float) -> Array:
    return np.array(values, dtype=np.float32)


def zeros(*shape: int, dtype: str = "float32") -> Array:
    return np.zeros(shape, dtype=dtype)


def _declared(name: str, given: Given) -> onnx.ValueInfoProto:
    number = helper.np_dtype_to_tensor_dtype(np.dtype(given.dtype))
    return helper.make_tensor_value_info(name, number, list(given.shape))


def _stored(name: str, value: Array | onnx.TensorProto) -> onnx.TensorProto:
    if isinstance(value, onnx.TensorProto):
        return value
    return numpy_helper.from_array(value, name)

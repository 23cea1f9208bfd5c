"""Values of constants in an ONNX file, those that the reader works out itself included."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright.errors import InputError, Problem
from tilewright.network.graph import Network
from tilewright.network.onnx_reader.protobuf import load_with_values
from tilewright.replay.kernels.tile import Array

_LATER_OPSETS = (19, 21)


def stored_constants(network: Network, path: Path) -> dict[str, Array]:
    """The network's constants by name.

    Raises:
        InputError: one is neither stored nor computed from what is, or external data is missing.
    """
    model = load_with_values(path)
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    wanted = [t for t in network.tensors if t.role == "constant"]
    missing = [t.name for t in wanted if t.name not in found]
    if missing:
        found |= _computed(model, missing, path)
    problems = [
        Problem(
            file=str(path),
            message=f"constant {t.name!r} has shape {found[t.name].shape}, not {t.shape}",
            hint="was the plan made from another model?",
        )
        for t in wanted
        if found[t.name].shape != t.shape
    ]
    if problems:
        raise InputError(*problems)
    return {t.name: found[t.name] for t in wanted}


def _computed(model: onnx.ModelProto, names: Iterable[str], path: Path) -> dict[str, Array]:
    """Results of nodes that read constants only, computed by ONNX's own reference evaluator."""
    makers = {output: node for node in model.graph.node for output in node.output}
    found: dict[str, Array] = {}
    for name in names:
        nodes = _ancestors(makers, name)
        if not nodes:
            message = f"constant {name!r} is neither stored in the model nor made by a node of it"
            hint = "was the plan made from another model?"
            raise InputError(Problem(file=str(path), message=message, hint=hint))
        found[name] = _evaluated(model, nodes, name)
    return found


def _ancestors(makers: Mapping[str, onnx.NodeProto], name: str) -> list[onnx.NodeProto]:
    """The nodes that a tensor is made by, each behind those that it reads from."""
    order: list[onnx.NodeProto] = []
    placed: set[str] = set()
    stack = [(name, False)]
    while stack:
        at, is_ready = stack.pop()
        node = makers.get(at)
        if node is None or node.output[0] in placed:
            continue
        if is_ready:
            placed.add(node.output[0])
            order.append(node)
        else:
            stack.append((at, True))
            stack.extend((source, False) for source in node.input if source)
    return order


def _evaluated(model: onnx.ModelProto, nodes: list[onnx.NodeProto], name: str) -> Array:
    read = {source for node in nodes for source in node.input}
    constants = [tensor for tensor in model.graph.initializer if tensor.name in read]
    shapes = {value.name: value for value in model.graph.input}
    graph = onnx.helper.make_graph(
        nodes,
        "constants",
        [shapes[source] for source in sorted(read) if source in shapes],
        [onnx.ValueInfoProto(name=name)],
        constants,
    )
    # Shapes of inputs are all that such nodes ask of them.
    feeds = {
        value.name: np.zeros([dim.dim_value for dim in value.type.tensor_type.shape.dim], "f4")
        for value in graph.input
    }
    for opsets in _opset_choices(model):
        try:
            evaluator = ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=opsets))
        except RuntimeError:
            continue
        (result,) = evaluator.run([name], feeds)
        return np.asarray(result)
    kinds = ", ".join(sorted({node.op_type for node in nodes}))
    raise InputError(Problem(message=f"constant {name!r} cannot be computed from its {kinds}"))


def _opset_choices(model: onnx.ModelProto) -> list[list[onnx.OperatorSetIdProto]]:
    """The model's own operator sets, then later ones: the evaluator lacks old (de)quantisers."""
    own = list(model.opset_import)
    later = [
        [onnx.helper.make_opsetid("", version), *(o for o in own if o.domain)]
        for version in _LATER_OPSETS
    ]
    return [own, *later]

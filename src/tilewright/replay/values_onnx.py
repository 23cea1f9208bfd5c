"""Values of constants in an ONNX file, those that the reader works out itself included."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright.errors import InputError, Problem
from tilewright.network.graph import Network
from tilewright.network.onnx_reader.packed import by_row, row_name, unpacked, weights_name
from tilewright.network.onnx_reader.protobuf import load_with_values
from tilewright.network.onnx_reader.walk import constant_of, read_constants
from tilewright.replay.kernels.quantise import dtype_of
from tilewright.replay.kernels.tile import Array

_LATER_OPSETS = (19, 21)


def stored_constants(network: Network, path: Path) -> dict[str, Array]:
    """The network's constants by name.

    Raises:
        InputError: one is neither stored nor computed from what is, or external data is missing.
    """
    model = load_with_values(path)
    graphs = list(_graphs(model.graph))
    found = {
        tensor.name: numpy_helper.to_array(tensor)
        for graph in graphs
        for tensor in graph.initializer
    }
    copied = {constant_of(output.name): output.name for output in model.graph.output}
    wanted = {copied.get(t.name, t.name): t for t in network.tensors if t.role == "constant"}
    made = {output for graph in graphs for node in graph.node for output in node.output}
    unknown = [name for name in wanted if name not in found and name not in made]
    if unknown:
        found |= read_constants(path, network, unknown)
    found |= _unpacked(graphs, found)
    missing = [name for name in wanted if name not in found]
    if missing:
        found |= _computed(model, network, missing, path)
    problems = [
        Problem(
            file=str(path),
            message=f"constant {name!r} has shape {found[name].shape}, not {t.shape}",
            hint="was the plan made from another model?",
        )
        for name, t in wanted.items()
        if found[name].shape != t.shape
    ]
    if problems:
        raise InputError(*problems)
    return {t.name: found[name] for name, t in wanted.items()}


def _unpacked(graphs: Iterable[onnx.GraphProto], stored: Mapping[str, Array]) -> dict[str, Array]:
    """Weights that lie packed in blocks, by the reader's name for them."""
    found: dict[str, Array] = {}
    for node in (node for graph in graphs for node in graph.node):
        if node.op_type == "MatMulNBits":
            given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            bits, codes = given.get("bits", 4), stored[node.input[1]]
            scales, zeros = [*node.input[2:4], ""][:2]
            for name in filter(None, (scales, zeros)):
                found[row_name(name)] = by_row(stored[name], *codes.shape[:2], bits=bits)
            weights = unpacked(
                codes, found[row_name(scales)], found.get(row_name(zeros)), bits=bits
            )
            found[weights_name(node.input[1])] = weights[:, : given["K"]]
    return found


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and those inside its nodes: of a known condition the reader takes the branch."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def _computed(
    model: onnx.ModelProto, network: Network, names: Sequence[str], path: Path
) -> dict[str, Array]:
    """Results of nodes that read constants or ask for shapes, by ONNX's own reference evaluator."""
    makers = {
        output: node
        for graph in _graphs(model.graph)
        for node in graph.node
        for output in node.output
    }
    # Of a tensor that is computed at run time a constant can only hang on the shape.
    feeds = {
        tensor.name: np.broadcast_to(np.zeros((), dtype_of(tensor.dtype)), tensor.shape)
        for tensor in network.tensors
        if tensor.role != "constant" and constant_of(tensor.name) not in network.by_name
    }
    makers = {name: node for name, node in makers.items() if name not in feeds}
    found: dict[str, Array] = {}
    for name in names:
        nodes = _ancestors(makers, name)
        if not nodes:
            message = f"constant {name!r} is neither stored in the model nor made by a node of it"
            hint = "was the plan made from another model?"
            raise InputError(Problem(file=str(path), message=message, hint=hint))
        found[name] = _evaluated(model, nodes, name, feeds)
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
            stack.extend((source, False) for source in _reads(node) if source)
    return order


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """Names that a node reads, those that its branches take from outside included."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.HasField("g"):
            inside = attribute.g
            own = {name for inner in inside.node for name in inner.output}
            own.update(tensor.name for tensor in inside.initializer)
            read = [name for inner in inside.node for name in _reads(inner)]
            read += [value.name for value in inside.output]
            yield from (name for name in read if name not in own)


def _evaluated(
    model: onnx.ModelProto, nodes: list[onnx.NodeProto], name: str, feeds: Mapping[str, Array]
) -> Array:
    read = {source for node in nodes for source in _reads(node)}
    graph = onnx.helper.make_graph(
        nodes,
        "constants",
        [onnx.ValueInfoProto(name=source) for source in feeds if source in read],
        [onnx.ValueInfoProto(name=name)],
        [
            tensor
            for part in _graphs(model.graph)
            for tensor in part.initializer
            if tensor.name in read
        ],
    )
    why = ""
    for opsets in _opset_choices(model):
        try:
            evaluator = ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=opsets))
        except RuntimeError:
            continue
        # Infinities and what comes of them are values like others.
        with np.errstate(all="ignore"):
            try:
                (result,) = evaluator.run([name], {i.name: feeds[i.name] for i in graph.input})
            except (RuntimeError, TypeError, ValueError, LookupError) as error:
                why = f": {error}"
                break
        return np.asarray(result)
    kinds = ", ".join(sorted({node.op_type for node in nodes}))
    message = f"constant {name!r} cannot be computed from its {kinds}{why}"
    raise InputError(Problem(message=message, hint="does onnx.checker accept the model?"))


def _opset_choices(model: onnx.ModelProto) -> list[list[onnx.OperatorSetIdProto]]:
    """The model's own operator sets, then later ones: the evaluator lacks old (de)quantisers."""
    own = list(model.opset_import)
    later = [
        [onnx.helper.make_opsetid("", version), *(o for o in own if o.domain)]
        for version in _LATER_OPSETS
    ]
    return [own, *later]

"""Float operators between dequantisers and a quantiser, read as the quantised operator they are.

A model with `QuantizeLinear` and `DequantizeLinear` around its operators says how each of them is
quantised; what lies between them is not meant to be computed in floats. Such a group becomes the
one operator that takes and gives whole numbers, if there is one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from types import MappingProxyType
from typing import Final

from tilewright.network.onnx_reader.model import Declared, Graph, Node
from tilewright.network.onnx_reader.order import reads
from tilewright.network.onnx_reader.quantised_facts import BYTES, RESHAPES, Facts, Quantised

_IDLE: Final = frozenset(("DequantizeLinear", "Split", *RESHAPES))
_MICROSOFT: Final = "com.microsoft"
_MOVES: Final = frozenset(
    (
        *("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Identity", "Gather"),
        *("Expand", "Tile", "DepthToSpace", "SpaceToDepth", "MaxPool", "GlobalMaxPool"),
    )
)
"""Operators whose result has only elements of their first input: whole numbers serve as well."""


def with_quantised_ops(graph: Graph) -> Graph:
    """The graph with groups of operators replaced."""
    facts = Facts.of(graph)
    groups: dict[str, tuple[Node, ...]] = {}
    replaced: set[str] = set()
    for node in graph.nodes:
        found = _group(facts, node) if node.operator == "QuantizeLinear" else None
        if found is not None:
            groups[node.outputs[0]], results = found
            replaced.update(results)
    if not groups:
        return graph
    nodes = [node for node in graph.nodes if not replaced.intersection(node.outputs)]
    made = [groups.get(node.outputs[0], (node,)) if node.outputs else (node,) for node in nodes]
    every = [*facts.moved.values(), *(node for group in made for node in group)]
    return replace(
        graph,
        nodes=tuple(_without_idle(every, graph.outputs)),
        constants=(*graph.constants, *facts.added.values()),
    )


def _without_idle(nodes: list[Node], outputs: Sequence[Declared]) -> list[Node]:
    """The nodes without those that moved or dequantised what is now read as bytes."""
    read = {value.name for value in outputs}
    kept = []
    for node in reversed(nodes):
        is_idle = node.operator in _IDLE and not read.intersection(node.outputs)
        if not is_idle:
            kept.append(node)
            read.update(reads(node))
    return kept[::-1]


def _group(facts: Facts, quantiser: Node) -> tuple[tuple[Node, ...], list[str]] | None:
    """Operators that make what a quantiser makes, and the results that are then not needed."""
    if len(quantiser.inputs) != 3 or len(quantiser.outputs) != 1:
        return None
    source, target = quantiser.inputs[0], Quantised(quantiser.outputs[0], *quantiser.inputs[1:])
    if facts.number(target.scale) is None or facts.element(target) not in BYTES:
        return None
    part = _part(facts, source, target)
    if part is not None:
        return (part,), []
    last = facts.own_maker(source)
    if last is not None and last.op_type in ("Relu", "Clip"):
        return _activated(facts, last, target)
    built = _built(facts, last, target)
    return None if built is None or last is None else ((built,), [*last.outputs])


def _activated(
    facts: Facts, activation: Node, target: Quantised
) -> tuple[tuple[Node, ...], list[str]] | None:
    """The same for an operator with an activation behind it."""
    node, bounds = facts.own_maker(activation.inputs[0]), _bounds(facts, activation)
    ends = facts.ends(target)
    if bounds is None or ends is None:
        return None
    # Half a step beyond a bound is rounded to what the activation leaves.
    step = facts.number(target.scale) or 0.0
    is_low, is_high = bounds[0] - step / 2 <= ends[0], ends[1] <= bounds[1] + step / 2
    behind: tuple[Node, ...] = ()
    if not is_low:
        if bounds[0] != 0:
            return None
        # The zero point stands for 0, below which nothing is left.
        between = f"{target.tensor} before {activation.name}"
        inputs = (between, target.zero_point)
        behind = (
            replace(
                activation, op_type="Max", inputs=inputs, outputs=(target.tensor,), attributes={}
            ),
        )
        target = replace(target, tensor=between)
    built = _built(facts, node, target)
    if built is None or node is None or not is_high:
        return None
    return (built, *behind), [*activation.outputs, *node.outputs]


def _bounds(facts: Facts, activation: Node) -> tuple[float, float] | None:
    """What an activation cuts off at either end; None where that is not known."""
    if activation.op_type == "Relu":
        return 0.0, inf
    found = [-inf, inf]
    for i, key in enumerate(("min", "max")):
        stated = activation.attributes.get(key)
        name = activation.inputs[i + 1] if len(activation.inputs) > i + 1 else ""
        number = facts.number(name) if name else stated
        if name and number is None:
            return None
        if isinstance(number, int | float):
            found[i] = float(number)
    return found[0], found[1]


def _part(facts: Facts, name: str, target: Quantised) -> Node | None:
    """The split that makes one part of a quantised tensor; other parts are made by others."""
    node = facts.makers.get(name)
    if node is None or node.operator != "Split" or facts.users[name] != 1:
        return None
    made = _move(facts, node, target)
    outputs = tuple(target.tensor if output == name else "" for output in node.outputs)
    return None if made is None else replace(made, outputs=outputs)


def _built(facts: Facts, node: Node | None, target: Quantised) -> Node | None:
    """The operator on whole numbers that a node stands for; None where there is none."""
    if node is None:
        return None
    if node.op_type in _MOVES or _is_nearest(node):
        return _move(facts, node, target)
    build = _BUILDERS.get(node.op_type)
    return None if build is None else build(facts, node, target)


def _is_nearest(node: Node) -> bool:
    return node.op_type in ("Resize", "Upsample") and node.attributes.get("mode", "nearest") == (
        "nearest"
    )


def _as(node: Node, op_type: str, inputs: tuple[str, ...], target: Quantised) -> Node:
    """The node as another operator, with the same attributes; ONNX's own have no domain."""
    domain = "" if op_type in ("QLinearConv", "QLinearMatMul") else _MICROSOFT
    result = (target.tensor,)
    return replace(node, op_type=op_type, domain=domain, inputs=inputs, outputs=result)


def _move(facts: Facts, node: Node, target: Quantised) -> Node | None:
    data = facts.quantised(node.inputs[0])
    if data is None or not facts.are_alike(data, target):
        return None
    return replace(node, inputs=(data.tensor, *node.inputs[1:]), outputs=(target.tensor,))


def _conv(facts: Facts, node: Node, target: Quantised) -> Node | None:
    data, weights = facts.quantised(node.inputs[0]), facts.quantised(node.inputs[1], axis=0)
    if data is None or weights is None:
        return None
    bias = facts.whole_bias(node.inputs[2:], data, weights)
    if bias is None:
        return None
    ends = (target.scale, target.zero_point)
    return _as(node, "QLinearConv", (*data.names, *weights.names, *ends, *bias), target)


def _matmul(facts: Facts, node: Node, target: Quantised) -> Node | None:
    left, right = facts.quantised(node.inputs[0]), facts.quantised(node.inputs[1], axis=-1)
    if left is None or right is None:
        return None
    ends = (target.scale, target.zero_point)
    return _as(node, "QLinearMatMul", (*left.names, *right.names, *ends), target)


def _gemm(facts: Facts, node: Node, target: Quantised) -> Node | None:
    factors = [node.attributes.get(key, 1.0) for key in ("alpha", "beta")]
    left = facts.quantised(node.inputs[0])
    right = facts.quantised(node.inputs[1], axis=0 if node.attributes.get("transB") else -1)
    if left is None or right is None or factors != [1.0, 1.0]:
        return None
    bias = facts.whole_bias(node.inputs[2:], left, right)
    if bias is None:
        return None
    ends = (*(bias or ("",)), target.scale, target.zero_point)
    made = _as(node, "QGemm", (*left.names, *right.names, *ends), target)
    return replace(made, attributes={k: v for k, v in node.attributes.items() if k != "beta"})


def _pair(op_type: str) -> "_Builder":
    def build(facts: Facts, node: Node, target: Quantised) -> Node | None:
        left, right = (facts.quantised(name) for name in node.inputs)
        if left is None or right is None:
            return None
        inputs = (*left.names, *right.names, target.scale, target.zero_point)
        return _as(node, op_type, inputs, target)

    return build


def _single(op_type: str) -> "_Builder":
    def build(facts: Facts, node: Node, target: Quantised) -> Node | None:
        data = facts.quantised(node.inputs[0])
        if data is None:
            return None
        return _as(node, op_type, (*data.names, target.scale, target.zero_point), target)

    return build


def _concat(facts: Facts, node: Node, target: Quantised) -> Node | None:
    parts = [facts.quantised(name) for name in node.inputs]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    if all(facts.are_alike(part, target) for part in known):
        return replace(node, inputs=tuple(p.tensor for p in known), outputs=(target.tensor,))
    given = (name for part in known for name in part.names)
    return _as(node, "QLinearConcat", (target.scale, target.zero_point, *given), target)


_Builder = Callable[[Facts, Node, Quantised], Node | None]
_BUILDERS: Final[Mapping[str, _Builder]] = MappingProxyType(
    {
        "Conv": _conv,
        "MatMul": _matmul,
        "Gemm": _gemm,
        "Concat": _concat,
        "Add": _pair("QLinearAdd"),
        "Mul": _pair("QLinearMul"),
        "GlobalAveragePool": _single("QLinearGlobalAveragePool"),
        "AveragePool": _single("QLinearAveragePool"),
        "Sigmoid": _single("QLinearSigmoid"),
        "LeakyRelu": _single("QLinearLeakyRelu"),
    }
)

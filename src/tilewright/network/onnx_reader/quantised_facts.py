"""What a graph says of its quantised tensors: who makes and reads them, scales and zero points."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from tilewright.network.onnx_reader.elements import INT32
from tilewright.network.onnx_reader.model import Graph, Node, StoredTensor
from tilewright.network.onnx_reader.order import reads
from tilewright.network.onnx_reader.stored import Array, decode, encoded

RESHAPES: Final = frozenset(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"))
"""Operators that are often left between a dequantiser and whoever reads it."""
BYTES: Final = ("int8", "uint8")
"""Element types that quantised operators take and give."""


@dataclass(frozen=True, slots=True)
class Quantised:
    """A tensor of whole numbers with its scale and zero point, by name."""

    tensor: str
    scale: str
    zero_point: str

    @property
    def names(self) -> tuple[str, str, str]:
        """All three, as operators take them."""
        return self.tensor, self.scale, self.zero_point


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Who makes a tensor, how many read it, and the stored constants."""

    makers: Mapping[str, Node]
    users: Mapping[str, int]
    constants: Mapping[str, StoredTensor]
    added: dict[str, StoredTensor] = field(default_factory=dict)
    """Constants that were worked out, by name."""
    moved: dict[str, Node] = field(default_factory=dict)
    """Nodes that move bytes where others move what is dequantised, by their result."""

    @staticmethod
    def of(graph: Graph) -> "Facts":
        """What is known of a graph."""
        users = Counter(name for node in graph.nodes for name in reads(node))
        users.update(value.name for value in graph.outputs)
        constants = {stored.name: stored for stored in graph.constants}
        for node in graph.nodes:
            value = node.attributes.get("value")
            if node.operator == "Constant" and isinstance(value, StoredTensor) and node.outputs:
                constants[node.outputs[0]] = value
        makers = {name: node for node in graph.nodes for name in node.outputs}
        return Facts(makers, users, constants)

    def values(self, name: str) -> Array | None:
        """A constant's values, if they are known."""
        try:
            return decode(self.constants[name]) if name in self.constants else None
        except ValueError:
            return None

    def number(self, name: str) -> float | None:
        """A constant's only value, if it is known."""
        values = self.values(name)
        return float(values.ravel()[0]) if values is not None and values.size == 1 else None

    def element(self, quantised: Quantised) -> str:
        """The type of a quantised tensor's elements, which is that of its zero point."""
        stored = self.constants.get(quantised.zero_point)
        return "" if stored is None else stored.element.name

    def ends(self, quantised: Quantised) -> tuple[float, float] | None:
        """The least and the largest number that a quantised tensor can hold."""
        step, zero_point = self.number(quantised.scale), self.number(quantised.zero_point)
        if step is None or zero_point is None or self.element(quantised) not in BYTES:
            return None
        limits = np.iinfo(self.element(quantised))
        return (limits.min - zero_point) * step, (limits.max - zero_point) * step

    def own_maker(self, name: str) -> Node | None:
        """ONNX's own operator that makes a tensor, and nothing else, for a single reader."""
        node = self.makers.get(name)
        if node is None or node.domain or self.users[name] != 1 or len(node.outputs) != 1:
            return None
        return node

    def quantised(self, name: str, *, axis: int | None = None) -> Quantised | None:
        """The bytes that a dequantiser makes this tensor of.

        They have one scale, or, with `axis`, may have one for each position along that axis.
        """
        node = self.makers.get(name)
        if node is not None and node.operator in RESHAPES:
            return self._moved(node)
        if node is None or node.operator != "DequantizeLinear" or len(node.inputs) != 3:
            return None
        found = Quantised(*node.inputs)
        if self.element(found) not in BYTES or node.attributes.get("block_size"):
            return None
        if self.number(found.scale) is not None and self.number(found.zero_point) is not None:
            return found
        scale, rank = self.values(found.scale), self._constant_rank(found.tensor)
        if axis is None or scale is None or scale.ndim != 1:
            return None
        stated = node.attributes.get("axis", 1)
        is_along = isinstance(stated, int) and rank > 0 and stated % rank == axis % rank
        return found if is_along else None

    def _constant_rank(self, name: str) -> int:
        """Axes of a constant that is stored as it is, or quantised from one; 0 for others."""
        node = self.makers.get(name)
        if node is not None and node.operator == "QuantizeLinear":
            name = node.inputs[0]
        return len(self.constants[name].shape) if name in self.constants else 0

    def _moved(self, node: Node) -> Quantised | None:
        """The result of a node that moves dequantised data, as the same move of bytes."""
        found = self.quantised(node.inputs[0])
        if found is None or found.tensor in self.constants:
            return None
        name = f"{node.outputs[0]} in bytes"
        self.moved[name] = replace(node, inputs=(found.tensor, *node.inputs[1:]), outputs=(name,))
        return replace(found, tensor=name)

    def are_alike(self, one: Quantised, other: Quantised) -> bool:
        """Whether a number means the same in both."""
        if self.element(one) != self.element(other):
            return False
        pairs = ((one.scale, other.scale), (one.zero_point, other.zero_point))
        numbers = [(self.number(a), self.number(b)) for a, b in pairs]
        return all(a is not None and a == b for a, b in numbers)

    def whole_bias(
        self, names: Sequence[str], data: Quantised, weights: Quantised
    ) -> tuple[str, ...] | None:
        """The bias in steps of the products' scale, if there is one; None where it is not known."""
        if not names or not names[0]:
            return ()
        scales = self.values(data.scale), self.values(weights.scale)
        if scales[0] is None or scales[1] is None:
            return None
        step = (scales[0].astype(np.float64) * scales[1]).ravel()
        node = self.makers.get(names[0])
        if node is None or node.operator != "DequantizeLinear":
            return self._in_steps(names[0], self.values(names[0]), step)
        whole, scale = self.values(node.inputs[0]), self.values(node.inputs[1])
        zero_point = self.values(node.inputs[2]) if len(node.inputs) > 2 else np.zeros(1)
        if whole is None or scale is None or zero_point is None:
            return None
        scale = scale.ravel()
        is_plain = whole.dtype == np.int32 and not zero_point.any()
        if is_plain and scale.size in (1, step.size) and np.allclose(scale, step, 1e-3, 0):
            return (node.inputs[0],)
        return self._in_steps(node.inputs[0], (whole - zero_point.ravel()) * scale, step)

    def _in_steps(self, name: str, bias: Array | None, step: Array) -> tuple[str, ...] | None:
        """A bias as whole numbers of steps, which a constant of its own holds."""
        if bias is None or bias.ndim != 1 or step.size not in (1, bias.size) or (step <= 0).any():
            return None
        ends = np.iinfo(np.int32)
        whole = np.rint(np.clip(bias / step, ends.min, ends.max)).astype(np.int32)
        own = f"{name} in steps of {step[0]:g}"
        self.added[own] = encoded(own, whole, INT32, self.constants[name].folder)
        return (own,)

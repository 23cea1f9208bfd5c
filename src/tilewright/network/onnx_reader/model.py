"""An ONNX file as plain values: what the rest of the reader sees of protobuf."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.network.nests import Shape
from tilewright.network.onnx_reader.elements import ElementType


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredTensor:
    """A tensor in the file, or beside it; its values are decoded by whoever needs them."""

    name: str
    shape: Shape
    element: ElementType
    proto: Any
    """The `TensorProto`, whose bytes are not touched before `stored.decode` asks for them."""
    folder: Path
    """Where files with external data are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A tensor as the graph announces it; a dim is a size, a name, or None where it has neither."""

    name: str
    element: ElementType | None
    dims: tuple[int | str | None, ...] | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An attribute that is no number, text, tensor or graph; `what` says so."""

    what: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """One node of the graph; `domain` is empty for ONNX's own operators."""

    name: str
    op_type: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, "Attribute"]

    @property
    def operator(self) -> str:
        """The operator with its domain, as the catalogue lists it."""
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type

    def __str__(self) -> str:
        return f"node {self.name!r} ({self.op_type})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """Nodes in the order of the file, and what is known of their tensors beforehand."""

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[Declared, ...]
    outputs: tuple[Declared, ...]
    values: tuple[Declared, ...]
    constants: tuple[StoredTensor, ...]
    faults: tuple[str, ...] = ()
    """What is wrong with tensors and inputs themselves, before any node is looked at."""
    lost: tuple[str, ...] = ()
    """Names of the constants that could not be read at all."""


Attribute = (
    int
    | float
    | str
    | tuple[int, ...]
    | tuple[float, ...]
    | tuple[str, ...]
    | StoredTensor
    | Graph
    | Unreadable
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """The main graph, the versions of the operator sets, and the model's own functions."""

    graph: Graph
    opsets: Mapping[str, int]
    functions: frozenset[str]
    """Operators, with their domains, that the file itself defines."""

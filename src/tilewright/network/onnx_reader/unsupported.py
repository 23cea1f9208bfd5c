"""Operators that cannot be read, told once each, with what would be needed."""

from collections.abc import Iterator
from pathlib import Path

from tilewright.errors import Problem
from tilewright.network.onnx_reader.model import Node

_SHOWN = 3
_HINTS = (
    (
        ("If", "Loop", "Scan", "SequenceMap"),
        "what runs must be known beforehand: unroll it, or fix its condition on export",
    ),
    (
        ("Compress", "NonMaxSuppression", "Unique", "StringSplit"),
        "the size of its result depends on data: cut the model before it",
    ),
    (
        (
            *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
            *("Bernoulli", "Multinomial"),
        ),
        "its result is random: make it an input of the model",
    ),
)
_ONE_PROCESSOR = "com.microsoft.nchwc"


def _is_standard(op_type: str) -> bool:
    import onnx

    return onnx.defs.has(op_type)


class Unsupported:
    """Collects the nodes that have no rule."""

    def __init__(self, functions: frozenset[str]) -> None:
        self.functions = functions
        self.nodes: dict[tuple[str, str], list[str]] = {}

    def add(self, node: Node) -> None:
        """Notes the node."""
        self.nodes.setdefault((node.domain, node.op_type), []).append(node.name)

    def problems(self, path: Path) -> Iterator[Problem]:
        """One problem for each operator, in the order in which they were met."""
        for (domain, op_type), names in self.nodes.items():
            shown = ", ".join(map(repr, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")
            users = "1 node uses" if len(names) == 1 else f"{len(names)} nodes use"
            yield Problem(
                file=str(path),
                message=f"operator {op_type!r} of domain {domain or 'ai.onnx'!r} is not "
                f"supported; {users} it: {shown}",
                hint=self._needed(domain, op_type),
            )

    def _needed(self, domain: str, op_type: str) -> str:
        if (f"{domain}.{op_type}" if domain else op_type) in self.functions:
            return (
                "the model defines it, for another version of ONNX's operators: inline it with "
                "onnx.inliner.inline_local_functions(model, convert_version=True)"
            )
        for op_types, hint in _HINTS:
            if op_type in op_types:
                return hint
        if domain == _ONE_PROCESSOR:
            return (
                "ONNX Runtime optimised the model for one processor: save it with "
                "graph_optimization_level ORT_ENABLE_EXTENDED or less"
            )
        if not domain and not _is_standard(op_type):
            return "ONNX has no such operator: an exporter left one of its own; replace it there"
        return (
            "write it with operators that `tilewright list ops` names, or cut the model before it; "
            "a rule for it would need the shape of its result and its loop nest"
        )

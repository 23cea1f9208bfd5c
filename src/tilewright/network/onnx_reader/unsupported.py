"""Operators that cannot be read, told once each, with what would be needed."""

from collections.abc import Iterator
from pathlib import Path

from tilewright.errors import Problem
from tilewright.network.onnx_reader.model import Node

_SHOWN = 3
_CONTROL_FLOW = frozenset({"If", "Loop", "Scan", "SequenceMap"})
_DATA_DEPENDENT = frozenset({"Compress", "NonMaxSuppression", "Unique", "StringSplit"})


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
        if op_type in _CONTROL_FLOW:
            return "what runs must be known beforehand: unroll it, or fix its condition on export"
        if op_type in _DATA_DEPENDENT:
            return "the size of its result depends on data: cut the model before it"
        return (
            "write it with operators that `tilewright list ops` names, or cut the model before it; "
            "a rule for it would need the shape of its result and its loop nest"
        )

"""What becomes of a model's own functions when each stands in place of its calls."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx

from tilewright.errors import InputError, Problem

MOST_NODES = 100_000
"""Nodes of a model whose functions stand in place of their calls; larger ones are hostile."""
MOST_CALLS_DEEP = 90
"""Calls inside each other. PyTorch's exporter nests as deep as its modules, some ten."""

_Name = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Size:
    """What a function comes to where others stand in place of their calls."""

    nodes: int
    calls_deep: int


def refuse_endless(proto: onnx.ModelProto, file: str) -> None:
    """Raise InputError if functions call themselves, too deep, or come to too many nodes."""
    calls = {
        _name_of(function): [_called(node) for node in _all_nodes(function.node)]
        for function in proto.functions
    }
    sizes: dict[_Name, _Size] = {}
    faults = [_add_size(name, calls, sizes) for name in calls]
    main = _size([_called(node) for node in _all_nodes(proto.graph.node)], sizes)
    if main.calls_deep > MOST_CALLS_DEEP:
        faults.append(f"its functions call each other more than {MOST_CALLS_DEEP} deep")
    if main.nodes > MOST_NODES:
        faults.append(
            f"its functions come to more than {MOST_NODES:,} nodes where each stands in place of "
            "its calls"
        )
    for fault in filter(None, faults):
        raise InputError(Problem(file=file, message=fault))


def _add_size(first: _Name, calls: dict[_Name, list[_Name]], sizes: dict[_Name, _Size]) -> str:
    """Work out the sizes of a function and of those that it calls; what is wrong with them.

    Without recursion: how deep calls go is what is to be found out.
    """
    path = [first]
    while path:
        name = path[-1]
        left = [] if name in sizes else [c for c in calls[name] if c in calls and c not in sizes]
        if not left:
            sizes.setdefault(name, _size(calls[name], sizes))
            path.pop()
        elif left[0] in path:
            return f"function {left[0][1]!r} calls itself"
        else:
            path.append(left[0])
    return ""


def _size(called: Sequence[_Name], sizes: dict[_Name, _Size]) -> _Size:
    inner = [sizes[name] for name in called if name in sizes]
    nodes = len(called) - len(inner) + sum(size.nodes for size in inner)
    deep = max((size.calls_deep for size in inner), default=0)
    return _Size(min(nodes, MOST_NODES + 1), deep + 1)


def _all_nodes(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes, and those of the graphs that they hold."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _all_nodes(graph.node)


def _name_of(function: onnx.FunctionProto) -> _Name:
    return str(function.domain), str(function.name), str(getattr(function, "overload", ""))


def _called(node: onnx.NodeProto) -> _Name:
    return str(node.domain), str(node.op_type), str(getattr(node, "overload", ""))

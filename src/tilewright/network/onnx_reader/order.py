"""The order in which nodes can be read."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.network.onnx_reader.model import Graph, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOrder:
    """Nodes, each after those it reads from, and a cycle, if one keeps others from being placed."""

    nodes: tuple[Node, ...]
    cycle: tuple[Node, ...]
    unplaced: tuple[Node, ...]


def node_order(nodes: Sequence[Node]) -> NodeOrder:
    """The order of the file as far as possible: what is sorted already is not moved."""
    makers: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in node.outputs:
            makers.setdefault(name, i)
    makers.pop("", None)
    needs = [sorted({makers[name] for name in reads(node) if name in makers}) for node in nodes]
    if all(not sources or sources[-1] < i for i, sources in enumerate(needs)):
        return NodeOrder(nodes=tuple(nodes), cycle=(), unplaced=())
    placed = _placed(needs)
    left = sorted(set(range(len(nodes))).difference(placed))
    cycle = _cycle(needs, left) if left else []
    return NodeOrder(
        nodes=tuple(nodes[i] for i in placed),
        cycle=tuple(nodes[i] for i in cycle),
        unplaced=tuple(nodes[i] for i in left),
    )


def reads(node: Node) -> Iterator[str]:
    """Names the node reads, those that its subgraphs take from outside included."""
    yield from node.inputs
    for attribute in node.attributes.values():
        if isinstance(attribute, Graph):
            yield from _free_names(attribute)


def _free_names(graph: Graph) -> list[str]:
    """Names that a subgraph uses and does not make itself."""
    own = {value.name for value in graph.inputs}
    own.update(constant.name for constant in graph.constants)
    own.update(name for node in graph.nodes for name in node.outputs)
    used = [name for node in graph.nodes for name in reads(node)]
    used += [value.name for value in graph.outputs]
    return [name for name in used if name not in own]


def _placed(needs: list[list[int]]) -> list[int]:
    """Kahn's algorithm; of the nodes that are ready, the one that comes first in the file."""
    users: list[list[int]] = [[] for _ in needs]
    for i, sources in enumerate(needs):
        for source in sources:
            users[source].append(i)
    missing = [len(sources) for sources in needs]
    ready = [i for i, count in enumerate(missing) if count == 0]
    placed = []
    while ready:
        i = heapq.heappop(ready)
        placed.append(i)
        for user in users[i]:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, user)
    return placed


def _cycle(needs: list[list[int]], left: list[int]) -> list[int]:
    """A cycle among the nodes that are left, in the order in which they feed each other."""
    unplaced = set(left)
    path: list[int] = []
    position: dict[int, int] = {}
    at = left[0]
    while at not in position:
        position[at] = len(path)
        path.append(at)
        at = next(source for source in needs[at] if source in unplaced)
    return path[position[at] :][::-1]

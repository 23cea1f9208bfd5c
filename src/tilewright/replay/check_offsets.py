"""Where the same element lies in two tensors that slices and concatenations lead between."""

from collections.abc import Iterator, Mapping

from tilewright.network.graph import Network, Operand
from tilewright.network.kinds import KIND_CLASSES

Offset = tuple[int, ...]
Offsets = Mapping[str, tuple[str, Offset]]
"""By tensor another one, and what to add to a position in the first to get it in the second."""


def offsets_of(network: Network) -> Offsets:
    """For all tensors that are the same data, step by step, positions in one of them.

    Left out are those of which an element lies in several places, as when parts of a tensor are
    joined again in another order.
    """
    found: dict[str, tuple[str, Offset]] = {}
    members: dict[str, list[str]] = {}
    several: dict[str, None] = {}
    for tensor, other, step in _steps(network):
        head, own = found.setdefault(tensor, (tensor, (0,) * len(step)))
        to, there = found.setdefault(other, (other, (0,) * len(step)))
        # A position p of the tensor is p + step of the other: both lead to one place in `to`.
        by = tuple(s + t - o for s, t, o in zip(step, there, own, strict=True))
        if head == to:
            several.update({head: None} if any(by) else {})
            continue
        if head in several:
            several[to] = None
        for member in members.pop(head, [head]):
            at = found[member][1]
            found[member] = to, tuple(a + b for a, b in zip(at, by, strict=True))
            members.setdefault(to, [to]).append(member)
    return {name: place for name, place in found.items() if place[0] not in several}


def _steps(network: Network) -> Iterator[tuple[str, str, Offset]]:
    """Pairs of tensors of which one is a part of the other, and how far in it begins."""
    for op in network.ops:
        result = op.outputs[0]
        if KIND_CLASSES[op.kind] != "move":
            continue
        for operand in op.inputs:
            step = _step(operand, result)
            if step is not None:
                yield result.tensor, operand.tensor, step


def _step(operand: Operand, result: Operand) -> Offset | None:
    """By how much positions in an operand are ahead of those in the result, if by fixed steps."""
    if operand.index is None or result.index is None or len(operand.index) != len(result.index):
        return None
    pairs = list(zip(operand.index, result.index, strict=True))
    for mine, own in pairs:
        is_plain = mine.divisor == own.divisor == 1 and all(f == 1 for _, f in own.terms)
        if not is_plain or len(own.terms) != 1 or mine.terms != own.terms:
            return None
    return tuple(mine.offset - own.offset for mine, own in pairs)

"""What a network's results depend on: strides leave out rows at the end, and so do those before."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tilewright.network.graph import Network, Op
from tilewright.program.boxes import Ranges, around, touched, whole
from tilewright.program.model import Box


@dataclass(frozen=True)
class Needed:
    """By op the points, and by tensor the elements that some result depends on, at the most."""

    points: Mapping[str, int]
    boxes: Mapping[str, Box]


def needed_of(network: Network) -> Needed:
    """What is needed, from the results back to the inputs."""
    boxes = {tensor.name: whole(tensor.shape) for tensor in network.outputs}
    points: dict[str, int] = {}
    for op in reversed(network.ops):
        ranges = _ranges(op, boxes)
        points[op.name] = prod(stop - start for start, stop in ranges.values())
        for operand in op.inputs:
            box = touched(operand, ranges, network.by_name[operand.tensor].shape)
            boxes[operand.tensor] = around(boxes.get(operand.tensor, box), box)
    return Needed(points, boxes)


def _ranges(op: Op, boxes: Mapping[str, Box]) -> Ranges:
    """The loop ranges in which an op makes what is needed of its results."""
    full = {dim: (0, size) for dim, size in op.dims}
    if len(op.outputs) != 1 or op.outputs[0].index is None or op.outputs[0].tensor not in boxes:
        return full
    found = dict(full)
    for index, (start, stop) in zip(op.outputs[0].index, boxes[op.outputs[0].tensor], strict=True):
        if index.divisor == 1 and not index.reach and len(index.terms) == 1:
            ((dim, factor),) = index.terms
            if factor == 1 and dim not in op.coupled:
                low, high = full[dim]
                found[dim] = max(low, start - index.offset), min(high, stop - index.offset)
    return found

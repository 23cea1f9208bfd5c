"""Which feature maps lie in bricks, for which that takes no more room than linear, and how ops that
touch them may be cut."""

from collections.abc import Iterable, Mapping
from math import gcd, lcm
from typing import Final

from tilewright.mapping.ethos_u.operation import BRICK_DEPTH, Format
from tilewright.network.graph import Network, Op, Operand

HARDWARE_KINDS: Final = frozenset(
    ("conv", "max_pool", "average_pool", "add", "sub", "mul", "min", "max", "relu", "relu6", "clip")
)
"""Kinds whose operations read and write bricks as they are."""
CHANNELS: Final = frozenset(("K", "G"))


def feature_map_formats(network: Network) -> dict[str, Format]:
    """The format of every tensor that lies in bricks."""
    return dict.fromkeys(brick_axes(network), "bricks")


def brick_axes(network: Network) -> dict[str, int]:
    """By tensor that lies in bricks, along which of its axes channels are.

    It is made and read by the hardware alone, as a map of a multiple of 16 channels. What is put
    together of several maps, or cut out of one, lies as they do if it has all their channels.
    """
    touching: dict[str, list[Op]] = {}
    for op in network.ops:
        for operand in op.operands:
            touching.setdefault(operand.tensor, []).append(op)
    found = {}
    for names, cut_axes in _maps(network):
        ops = [
            op for name in names for op in touching.get(name, ()) if not _moved_axes(op, network)
        ]
        tensors = [network.by_name[name] for name in names]
        is_map = all(t.role == "activation" and len(t.shape) == 4 for t in tensors)
        if is_map and all(op.kind in HARDWARE_KINDS for op in ops):
            axes = {_channel_axis(op, name) for op in ops for name in names} - {None, *cut_axes}
            axis = axes.pop() if len(axes) == 1 else None
            if axis is not None and tensors[0].shape[axis] % BRICK_DEPTH == 0:
                found.update(dict.fromkeys(names, axis))
    return found


def _maps(network: Network) -> list[tuple[list[str], set[int]]]:
    """Tensors that are parts of one map, and the axes along which they are."""
    maps = {tensor.name: ([tensor.name], set[int]()) for tensor in network.tensors}
    for op in network.ops:
        axes = _moved_axes(op, network)
        if axes:
            for operand in op.inputs:
                one, other = maps[op.outputs[0].tensor], maps[operand.tensor]
                one[1].update(axes)
                if one is not other:
                    one[0].extend(other[0])
                    one[1].update(other[1])
                    maps.update(dict.fromkeys(other[0], one))
    return list({id(found): found for found in maps.values()}.values())


def _moved_axes(op: Op, network: Network) -> set[int]:
    """Axes along which an op puts maps together, or cuts one; none if it does something else."""
    if op.kind not in ("concat", "slice") or len(op.outputs) != 1:
        return set()
    made, axes = op.outputs[0], set()
    for operand in op.inputs:
        shapes = [network.by_name[name].shape for name in (operand.tensor, made.tensor)]
        if operand.index is None or made.index is None or len(operand.index) != len(made.index):
            return set()
        for axis, (mine, own) in enumerate(zip(operand.index, made.index, strict=True)):
            if mine.terms != own.terms or mine.divisor != own.divisor:
                return set()
            if mine.offset != own.offset or shapes[0][axis] != shapes[1][axis]:
                axes.add(axis)
    return axes


def _channel_axis(maker: Op, tensor: str) -> int | None:
    """Along which axis an op makes channels of a tensor, if it makes that."""
    for result in maker.outputs:
        for axis, index in enumerate(result.index or ()):
            if result.tensor == tensor and any(dim in CHANNELS for dim, _ in index.terms):
                return axis
    return None


def whole_brick_multiples(operands: Iterable[Operand], axes: Mapping[str, int]) -> dict[str, int]:
    """By loop of what its tiles begin at multiples, so that operands are cut between bricks."""
    found: dict[str, int] = {}
    for operand in operands:
        axis = axes.get(operand.tensor)
        if axis is not None and operand.index is not None:
            for loop, factor in operand.index[axis].terms:
                multiple = BRICK_DEPTH // gcd(BRICK_DEPTH, factor)
                found[loop] = lcm(found.get(loop, 1), multiple)
    return {loop: multiple for loop, multiple in found.items() if multiple > 1}

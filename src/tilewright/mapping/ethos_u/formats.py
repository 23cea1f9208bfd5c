"""Which feature maps lie in bricks: those for which that takes no more room than linear."""

from typing import Final

from tilewright.mapping.ethos_u.operation import BRICK_DEPTH, Format
from tilewright.network.graph import Network, Op

HARDWARE_KINDS: Final = frozenset(
    ("conv", "max_pool", "average_pool", "add", "sub", "mul", "min", "max", "relu", "relu6", "clip")
)
"""Kinds whose operations read and write bricks as they are."""
CHANNELS: Final = frozenset(("K", "G"))


def feature_map_formats(network: Network) -> dict[str, Format]:
    """The format of every tensor that lies in bricks.

    It is made and read by the hardware alone, as a map of a multiple of 16 channels.
    """
    touching: dict[str, list[Op]] = {}
    for op in network.ops:
        for operand in op.operands:
            touching.setdefault(operand.tensor, []).append(op)
    return {
        tensor.name: "bricks"
        for tensor in network.tensors
        if tensor.role == "activation"
        and len(tensor.shape) == 4
        and all(op.kind in HARDWARE_KINDS for op in touching.get(tensor.name, ()))
        and _channels(touching[tensor.name][0], tensor.name, tensor.shape) % BRICK_DEPTH == 0
    }


def _channels(maker: Op, tensor: str, shape: tuple[int, ...]) -> int:
    result = next(operand for operand in maker.outputs if operand.tensor == tensor)
    for index, size in zip(result.index or (), shape, strict=False):
        if any(dim in CHANNELS for dim, _ in index.terms):
            return size
    return 1

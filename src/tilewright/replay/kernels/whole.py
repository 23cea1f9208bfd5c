"""A network computed op by op, each op in one tile: what a plan's result is compared with."""

from collections.abc import Mapping

from tilewright.network.graph import Network, Op
from tilewright.replay.kernels.table import compute
from tilewright.replay.kernels.tile import Array, KernelError, Part, Quantisation, Tile, Wanted


def computed(
    network: Network, arrays: Mapping[str, Array], quantisation: Mapping[str, Quantisation]
) -> dict[str, Array]:
    """Every tensor of a network, from its inputs and constants.

    Raises:
        KernelError: an op is not emulated, or looks up a position that its table does not have; the
            message names it.
    """
    known = dict(arrays)
    for op in network.ops:
        try:
            made = compute(whole_tile(network, op, known, quantisation))
        except (KernelError, IndexError) as error:
            raise KernelError(f"op {op.name}, a {op.kind}: {error}") from error
        known.update(zip((o.tensor for o in op.outputs), made, strict=True))
    return known


def whole_tile(
    network: Network,
    op: Op,
    arrays: Mapping[str, Array],
    quantisation: Mapping[str, Quantisation],
) -> Tile:
    """All of an op as one tile."""
    parts = {}
    for operand in op.inputs:
        tensor = network.by_name[operand.tensor]
        if all(tensor.shape):
            parts[operand.name] = Part(
                tensor=tensor,
                box=tuple((0, size) for size in tensor.shape),
                array=arrays[operand.tensor],
                quantisation=quantisation.get(operand.tensor),
            )
    results = tuple(
        Wanted(
            tensor=network.by_name[operand.tensor],
            box=tuple((0, size) for size in network.by_name[operand.tensor].shape),
            quantisation=quantisation.get(operand.tensor),
        )
        for operand in op.outputs
    )
    return Tile(op=op, ranges={dim: (0, n) for dim, n in op.dims}, parts=parts, results=results)

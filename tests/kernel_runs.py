"""Networks computed op by op with the emulator's kernels, each op cut into tiles."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.network.graph import Network, Op, Operand
from tilewright.program.boxes import is_empty, touched
from tilewright.program.tile import tileable
from tilewright.replay.kernels import sums
from tilewright.replay.kernels.quantise import dtype_of
from tilewright.replay.kernels.table import compute
from tilewright.replay.kernels.tile import Part, Quantisation, Tile, Wanted

Array = npt.NDArray[Any]
Ranges = dict[str, tuple[int, int]]
Cutter = Callable[[Op], Sequence[Ranges]]


def in_tiles(lengths: Callable[[str, int], int]) -> Cutter:
    """Cuts every loop that may be cut into stretches of `lengths(dim, size)` steps."""

    def cut(op: Op) -> list[Ranges]:
        loops = [dim for group in tileable(op) for dim in group]
        spans = []
        for dim, size in op.dims:
            step = lengths(dim, size) if dim in loops else size
            spans.append([(a, min(a + step, size)) for a in range(0, size, max(1, step))])
        names = [dim for dim, _ in op.dims]
        return [dict(zip(names, found, strict=True)) for found in product(*spans)]

    return cut


def tile_of(
    network: Network,
    op: Op,
    ranges: Ranges,
    values: Mapping[str, Array],
    quantisation: Mapping[str, Quantisation],
) -> Tile:
    def wanted(operand: Operand) -> Wanted:
        tensor = network.by_name[operand.tensor]
        box = touched(operand, ranges, tensor.shape)
        return Wanted(tensor=tensor, box=box, quantisation=quantisation.get(operand.tensor))

    parts = {}
    for operand in op.inputs:
        tensor = network.by_name[operand.tensor]
        box = touched(operand, ranges, tensor.shape)
        if not is_empty(box):
            array = values[operand.tensor][tuple(slice(*ends) for ends in box)]
            parts[operand.name] = Part(
                tensor=tensor,
                box=box,
                array=array,
                quantisation=quantisation.get(operand.tensor),
            )
    results = tuple(wanted(operand) for operand in op.outputs)
    return Tile(op=op, ranges=ranges, parts=parts, results=results)


def run_in_tiles(
    network: Network,
    values: Mapping[str, Array],
    quantisation: Mapping[str, Quantisation],
    cutter: Cutter,
) -> dict[str, Array]:
    """Every tensor of the network; tiles whose results meet add their sums up."""
    known = dict(values)
    for op in network.ops:
        tiles = [tile_of(network, op, r, known, quantisation) for r in cutter(op)]
        made = {
            operand.tensor: np.zeros(
                network.by_name[operand.tensor].shape,
                dtype=dtype_of(network.by_name[operand.tensor].dtype),
            )
            for operand in op.outputs
        }
        for tile, results in _computed(tiles):
            for wanted, array in zip(tile.results, results, strict=True):
                made[wanted.tensor.name][tuple(slice(*ends) for ends in wanted.box)] = array
        known |= made
    return known


def _computed(tiles: Sequence[Tile]) -> list[tuple[Tile, list[Array]]]:
    if not tiles or tiles[0].op.kind not in sums.KINDS:
        return [(tile, compute(tile)) for tile in tiles]
    partial: dict[Any, Array] = {}
    last: dict[Any, Tile] = {}
    for tile in tiles:
        box = tile.results[0].box
        partial[box] = sums.accumulate(tile, partial.get(box))
        last[box] = tile
    return [(tile, [sums.finish(tile, partial[box])]) for box, tile in last.items()]

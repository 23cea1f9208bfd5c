"""Networks computed op by op with the emulator's kernels, each op in one tile or in several."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.network.graph import Network, Op, Operand
from tilewright.program.boxes import is_empty, touched
from tilewright.replay.kernels import sums
from tilewright.replay.kernels.table import compute
from tilewright.replay.kernels.tile import Part, Quantisation, Tile, Wanted

Array = npt.NDArray[Any]
Ranges = dict[str, tuple[int, int]]
Cutter = Callable[[Op], Sequence[Ranges]]


def one_tile(op: Op) -> list[Ranges]:
    return [{dim: (0, size) for dim, size in op.dims}]


def cut_tiles(op: Op, cuts: Mapping[str, int]) -> list[Ranges]:
    """Tiles of at most `cuts[dim]` steps along each dim."""
    spans = [
        [(a, min(a + cuts.get(dim, size), size)) for a in range(0, size, cuts.get(dim, size))]
        for dim, size in op.dims
    ]
    names = [dim for dim, _ in op.dims]
    return [dict(zip(names, found, strict=True)) for found in product(*spans)]


def tile_of(
    network: Network,
    op: Op,
    ranges: Ranges,
    values: Mapping[str, Array],
    quantisation: Mapping[str, Quantisation],
) -> Tile:
    parts = {}
    for operand in op.inputs:
        box = touched(operand, ranges, network.by_name[operand.tensor].shape)
        if not is_empty(box):
            array = values[operand.tensor][tuple(slice(*ends) for ends in box)]
            parts[operand.name] = Part(
                tensor=network.by_name[operand.tensor],
                box=box,
                array=array,
                quantisation=quantisation.get(operand.tensor),
            )
    return Tile(
        op=op, ranges=ranges, parts=parts, results=_wanted(network, op, ranges, quantisation)
    )


def _wanted(
    network: Network, op: Op, ranges: Ranges, quantisation: Mapping[str, Quantisation]
) -> tuple[Wanted, ...]:
    def one(operand: Operand) -> Wanted:
        tensor = network.by_name[operand.tensor]
        return Wanted(
            tensor=tensor,
            box=touched(operand, ranges, tensor.shape),
            quantisation=quantisation.get(operand.tensor),
        )

    return tuple(one(operand) for operand in op.outputs)


def run(
    network: Network,
    values: Mapping[str, Array],
    quantisation: Mapping[str, Quantisation] | None = None,
    cutter: Cutter = one_tile,
) -> dict[str, Array]:
    """Every tensor of the network; tiles of sums add up."""
    known = dict(values)
    for op in network.ops:
        made: dict[str, Array] = {}
        partial: dict[Any, Array] = {}
        tiles = list(cutter(op))
        for number, ranges in enumerate(tiles):
            tile = tile_of(network, op, ranges, known, quantisation or {})
            if op.kind in sums.KINDS:
                box = tile.results[0].box
                partial[box] = sums.accumulate(tile, partial.get(box))
                later = [r for r in tiles[number + 1 :] if _box(network, op, r) == box]
                results = [] if later else [_finished(tile, partial[box])]
            else:
                results = compute(tile)
            for wanted, array in zip(tile.results, results, strict=False):
                whole = made.setdefault(
                    wanted.tensor.name, np.zeros(wanted.tensor.shape, dtype=array.dtype)
                )
                whole[tuple(slice(*ends) for ends in wanted.box)] = array
        known |= made
    return known


def _finished(tile: Tile, accumulated: Array) -> Array:
    dtype = np.dtype(tile.results[0].tensor.dtype or "float32")
    return sums.finish(tile, accumulated).astype(dtype)


def _box(network: Network, op: Op, ranges: Ranges) -> Any:
    result = op.outputs[0]
    return touched(result, ranges, network.by_name[result.tensor].shape)


def empty_iterator() -> Iterator[None]:
    return iter(())

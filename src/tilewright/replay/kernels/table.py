"""Which kernel computes which kind of op."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from tilewright.replay.kernels import elementwise, moves, normalise, picks, resize, sums, windows
from tilewright.replay.kernels.quantise import dtype_of
from tilewright.replay.kernels.tile import Array, Kernel, KernelError, Tile


def _summed(tile: Tile) -> Sequence[Array]:
    return [sums.finish(tile, sums.accumulate(tile, None))]


KERNELS: Final[Mapping[str, Kernel]] = MappingProxyType(
    {
        **dict.fromkeys(sums.KINDS, _summed),
        "max_pool": windows.max_pool,
        "average_pool": windows.average_pool,
        "lp_pool": windows.lp_pool,
        "resize": resize.resize,
        **elementwise.KERNELS,
        **normalise.KERNELS,
        **moves.KERNELS,
        **picks.KERNELS,
    }
)
"""Kernels by kind; every kind of op has one."""


def compute(tile: Tile) -> list[Array]:
    """The values of the boxes of a tile's results, in their tensors' types.

    Raises:
        KernelError: this op, or this way to cut it, is not emulated.
    """
    with np.errstate(all="ignore"):
        made = KERNELS[tile.op.kind](tile)
    if len(made) < len(tile.results):
        raise KernelError(f"makes {len(tile.results)} results, {len(made)} are emulated")
    return [_typed(values, tile, i) for i, values in enumerate(made[: len(tile.results)])]


def _typed(values: Array, tile: Tile, position: int) -> Array:
    wanted = tile.results[position]
    dtype = dtype_of(wanted.tensor.dtype)
    if values.shape != wanted.shape:
        raise KernelError(f"makes a box of {values.shape} where {wanted.shape} is wanted")
    return values.astype(dtype, copy=False)

"""Passes: tiles of an operand that come again, because they cannot all stay.

An outer loop of the tiles that an operand has nothing to do with goes over all its tiles in each of
its steps. If they fit, they stay from the first step on. If not, as many stay as there is room for,
and the others come again in every step, in one transfer to all cores that want them. A scheduler
would find room as well, by evictions: one core at a time, and only when it is needed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tilewright.program.boxes import Ranges
from tilewright.program.layout import Passing
from tilewright.program.model import Box
from tilewright.program.stage_tiles import Tile
from tilewright.program.tile import Tenant, Tiling, Work, cuts_sums, tile_bytes

TileKey = tuple[str, Box]
"""A tensor, and a box of it."""


@dataclass(frozen=True, slots=True)
class Passes:
    """Tensors whose tiles come again in a stage, and those of their tiles that stay."""

    tensors: Collection[str]
    staying: Collection[TileKey]

    def wanted_by(self, row: Sequence[Tile]) -> dict[TileKey, tuple[int, ...]]:
        """Which cores want which of the tiles, in a row of tasks side by side."""
        found: dict[TileKey, tuple[int, ...]] = {}
        for tile in row:
            for use, box in tile.reads:
                if use.tensor in self.tensors:
                    key = use.tensor, box
                    found[key] = (*found.get(key, ()), tile.core)
        return found


def passes_of(columns: Sequence[Sequence[Tile]], passing: Mapping[str, Passing]) -> Passes | None:
    """What comes again, and what stays on every core."""
    staying: dict[TileKey, None] = {}
    for column in columns:
        boxes: dict[str, dict[Box, None]] = {tensor: {} for tensor in passing}
        for tile in column:
            for use, box in tile.reads:
                own = boxes.get(use.tensor)
                if own is not None and len(own) < passing[use.tensor].staying:
                    own[box] = None
        staying |= {(tensor, box): None for tensor, found in boxes.items() for box in found}
    return Passes(passing, staying) if passing else None


def has_passes(part: Ranges, tiling: Tiling) -> bool:
    """Whether several loops of a core's part are cut: along a single one nothing comes twice."""
    cut = [dim for dim in tiling.order if tiling.lengths[dim] < part[dim][1] - part[dim][0]]
    return len(cut) > 1


def passing_tiles(work: Work, tiling: Tiling) -> dict[str, Passing]:
    """Operands whose tiles come again; as many of them stay as can beside all others.

    What all fits is left to the scheduler, and is not among them.
    """
    if cuts_sums(work, tiling.order):
        work = work.with_partial_sums
    tiles = {dim: -(-work.lengths[dim] // tiling.lengths[dim]) for dim in tiling.order}
    sizes = [int(tile_bytes(tenant, tiling.lengths, work.alignment)) for tenant in work.tenants]
    # As where tiles are chosen: what is in use to the last byte soon has holes.
    left = {memory: room * 7 // 8 for memory, room in work.room.items()}
    again: list[tuple[int, int, int, Tenant]] = []
    for tenant, size in zip(work.tenants, sizes, strict=True):
        distinct, moved = _counts(tenant, tiling, tiles)
        left[tenant.memory] -= size * (2 if tiling.doubled and distinct > 1 else 1)
        fits = 2 * distinct * size <= work.room[tenant.memory]
        if moved > distinct and not (tenant.result or fits):
            again.append((moved // distinct * size, size, distinct * size, tenant))
    found: dict[str, Passing] = {}
    for _, size, all_bytes, tenant in sorted(again, key=lambda one: -one[0]):
        count = max(0, left[tenant.memory] // max(1, size))
        left[tenant.memory] -= count * size
        found.setdefault(tenant.operand.tensor, Passing(count, tenant.memory, all_bytes))
    return found


def _counts(tenant: Tenant, tiling: Tiling, tiles: Mapping[str, int]) -> tuple[int, int]:
    """How many tiles an operand has, and how many come if none stays."""
    dims = {dim for axis in tenant.operand.index or () for dim, _ in axis.terms}
    distinct = moved = passed = 1
    for dim in tiling.order:
        passed *= tiles[dim]
        if dim in dims:
            distinct *= tiles[dim]
            moved = passed
    return distinct, moved

"""Costing tile lengths by NumPy: every combination at once, in arrays."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tilewright.program.work import (
    NEARLY,
    TASK_CYCLES,
    TOLD,
    Candidates,
    Row,
    Tenant,
    Trial,
    Work,
)

Grid = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class _Tiles:
    """Combinations of tile lengths of some loops, one after the other."""

    count: Mapping[str, Grid]
    """Tiles along each of the loops."""
    sizes: Sequence[Grid | int]
    """Bytes of a tile of each tenant."""
    total: Values
    """Tiles in all."""
    computing: Values
    """Cycles of computing them, as far as no model of the core is asked."""
    streamed_bytes: Values
    """What they read outside while they are at work."""
    streamed_energy: Values


@dataclass(frozen=True, kw_only=True)
class _Transfers:
    """What has to be moved in one order of the tiles."""

    cycles: Values
    left_cycles: Values
    """Of those, what does not come before the first tile."""
    first_cycles: Values
    """What the first tile has to wait for."""
    moved_bytes: Values
    energy: Values


def candidates(trial: Trial) -> Iterator[Candidates]:
    """Combinations that fit and may be the best, two tiles of everything at a time first.

    A model of the core is to be asked about those that seem best, and about the largest; without
    one there is a single candidate.
    """
    work = trial.work
    tiles = _tiles(trial)
    transfers: dict[tuple[str, ...], _Transfers] = {}
    for doubled in (True, False):
        fits = _fits(work, tiles.count, tiles.sizes, doubled=doubled)
        if not fits.any():
            continue
        for order in trial.orders:
            if order not in transfers:
                transfers[order] = _transfers(work, tiles, order)
            moved = transfers[order]
            cycles = _overlapped(tiles.computing, moved, doubled=doubled)
            values = {"latency": cycles, "energy": moved.energy, "traffic": moved.moved_bytes}
            key = np.where(fits, values[trial.goal], np.inf)
            if work.tile_cycles is None:
                chosen = _best(key, tiles.total, cycles)
            else:
                chosen = _promising(key, tiles.total)
            rows = tuple(_row(tiles, moved, at) for at in chosen)
            yield Candidates(order=order, doubled=doubled, rows=rows)


def _row(tiles: _Tiles, moved: _Transfers, at: int) -> Row:
    return Row(
        at=at,
        total=float(tiles.total[at]),
        computing=float(tiles.computing[at]),
        moving=float(moved.cycles[at]),
        left=float(moved.left_cycles[at]),
        first=float(moved.first_cycles[at]),
        moved_bytes=float(moved.moved_bytes[at]),
        energy=float(moved.energy[at]),
    )


def _best(key: Values, total: Values, cycles: Values) -> list[int]:
    """The one with the fewest tiles among those that are nearly as good as the best."""
    best = np.flatnonzero(key <= NEARLY * key.min())
    return [int(best[np.lexsort((cycles[best], total[best]))[0]])]


def _tiles(trial: Trial) -> _Tiles:
    """The combinations; loops that are not among those tried are not cut."""
    work, loops = trial.work, trial.loops
    rows = list(product(*trial.choices))
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), len(loops)).T
    grid = dict(zip(loops, columns, strict=True))
    length: dict[str, Grid | int] = {**work.lengths, **grid}
    count = {d: -(-work.lengths[d] // tried) for d, tried in grid.items()}
    sizes = [tile_bytes(t, length, work.alignment) for t in work.tenants]
    computing, total = np.ones(len(rows)), np.ones(len(rows))
    for dim in work.lengths:
        computing = computing * (-(-length[dim] // work.unrolled.get(dim, 1)))
    for tiles_of_loop in count.values():
        total = total * tiles_of_loop
    streams = [(t, tile_bytes(t, length, work.alignment)) for t in work.streamed]
    nothing = np.zeros(len(rows))
    waiting = sum((size / t.bytes_per_cycle for t, size in streams), start=nothing)
    computing = total * (np.maximum(computing / work.rate, waiting) + TASK_CYCLES)
    if work.partial in work.tenants:
        computing = computing + total * sizes[-1] / work.partial_bytes_per_cycle
    return _Tiles(
        count=count,
        sizes=sizes,
        total=total,
        computing=computing,
        streamed_bytes=sum((total * size for _, size in streams), start=nothing),
        streamed_energy=sum((total * size * t.pj_per_byte for t, size in streams), start=nothing),
    )


def tile_bytes(tenant: Tenant, length: Mapping[str, Grid | int], alignment: int) -> Grid | int:
    """Bytes of an operand's tile when loops have these lengths, rounded up to the alignment."""
    elements: Grid | int = 1
    if tenant.operand.index is None:
        for size in tenant.shape:
            elements = elements * size
    for axis, size in zip(tenant.operand.index or (), tenant.shape, strict=False):
        reach: Grid | int = axis.reach
        for dim, factor in axis.terms:
            reach = reach + abs(factor) * (length[dim] - 1)
        extent = reach // axis.divisor + 1
        # Of single numbers NumPy makes its own, which are slow from then on.
        elements = elements * (
            min(extent, size) if isinstance(extent, int) else np.minimum(extent, size)
        )
    total = -(-elements * tenant.bits // 8)
    return -(-total // alignment) * alignment


def _depends(tenant: Tenant, dim: str) -> bool:
    index = tenant.operand.index
    return index is not None and any(d == dim for axis in index for d, _ in axis.terms)


def _fits(
    work: Work,
    count: Mapping[str, Grid],
    sizes: Sequence[Grid | int],
    *,
    doubled: bool,
) -> NDArray[np.bool_]:
    need: dict[str, Values] = {}
    shape = next(iter(count.values())).shape if count else (1,)
    for tenant, size in zip(work.tenants, sizes, strict=True):
        several = np.zeros(shape, dtype=np.bool_)
        for dim, tiles in count.items():
            if _depends(tenant, dim):
                several |= tiles > 1
        copies = np.where(several & doubled, 2, 1)
        need[tenant.memory] = need.get(tenant.memory, np.zeros(shape)) + copies * size
    fits = np.full(shape, min(work.room.values(), default=0) >= 0)
    for memory, taken in need.items():
        # Tiles of several sizes come and go: what is in use to the last byte soon has holes.
        fits &= taken <= (work.room[memory] * 7 // 8 if doubled else work.room[memory])
    return fits


def _transfers(work: Work, tiles: _Tiles, order: tuple[str, ...]) -> _Transfers:
    shape = tiles.total.shape
    moving, bytes_moved, energy, first = (np.zeros(shape) for _ in range(4))
    early, first_early = np.zeros(shape), np.zeros(shape)
    for tenant, size in zip(work.tenants, tiles.sizes, strict=True):
        if not tenant.bytes_per_cycle:
            continue
        times = _times_moved(work, tenant, size, tiles.count, order)
        cycles = size / tenant.bytes_per_cycle + tenant.setup_cycles
        moving = moving + times * cycles
        bytes_moved = bytes_moved + times * size
        energy = energy + times * size * tenant.pj_per_byte
        first = first + cycles
        if tenant.constant:
            early, first_early = early + times * cycles, first_early + cycles
    return _Transfers(
        cycles=moving,
        left_cycles=moving - np.minimum(early, work.lead_cycles),
        first_cycles=first - np.minimum(first_early, work.lead_cycles),
        moved_bytes=bytes_moved + tiles.streamed_bytes,
        energy=energy + tiles.streamed_energy,
    )


def _overlapped(computing: Values, moved: _Transfers, *, doubled: bool) -> Values:
    """Cycles of computing and of moving together."""
    moving, first = moved.left_cycles, moved.first_cycles
    if not doubled:
        return computing + moving
    longer, shorter = np.maximum(computing, moving), np.minimum(computing, moving)
    return longer + shorter / 8 + np.minimum(first, moving) / 2


def _promising(guess: Values, total: Values) -> list[int]:
    """The tilings that seem best, and those with the fewest tiles."""
    chosen = np.zeros(guess.shape, dtype=np.bool_)
    finite = np.flatnonzero(np.isfinite(guess))
    best = _among_smallest(guess, finite)
    chosen[best[np.argsort(guess[best], kind="stable")[:TOLD]]] = True
    fewest = _among_smallest(total, finite)
    chosen[fewest[np.lexsort((guess[fewest], total[fewest]))[:TOLD]]] = True
    return [int(at) for at in np.flatnonzero(chosen)]


def _among_smallest(values: Values, among: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where the smallest values are, all that are as small as one of the first `TOLD` included."""
    if len(among) <= TOLD:
        return among
    found = values[among]
    small: NDArray[np.bool_] = found <= np.partition(found, TOLD - 1)[TOLD - 1]
    return among[small]


def _times_moved(
    work: Work, tenant: Tenant, size: Grid | int, count: Mapping[str, Grid], order: tuple[str, ...]
) -> Values:
    """How often tiles of an operand are moved: once each if all stay, else again in each pass."""
    shape = next(iter(count.values())).shape if count else (1,)
    distinct = again = np.ones(shape)
    passes = np.ones(shape)
    for dim in order:
        passes = passes * count[dim]
        if _depends(tenant, dim):
            distinct = distinct * count[dim]
            again = passes
    if tenant.result:
        return distinct
    stays = distinct * size <= work.room[tenant.memory] / 2
    return np.where(stays, distinct, again)

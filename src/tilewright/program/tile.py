"""Choosing tiles: how far an op's loops run in one task, so that what it touches fits.

Every combination of a few lengths per loop is costed at once, in arrays: what lies in each memory,
what has to be moved for each order of the tiles, and how long computing and moving take.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.network.graph import Index, Op, Operand

Goal = Literal["latency", "energy", "traffic"]
Grid = NDArray[np.int64]
Values = NDArray[np.float64]

TASK_CYCLES = 32
"""What a task costs beside its own work: filling and draining the array, roughly."""

NEARLY = 1.02
"""Among tilings that are as good within this factor, the one with the fewest tasks is taken."""

TOLD = 12
"""A core's own model is asked about this many of the tilings that seem best, and of the largest."""

MOST_COMBINATIONS = 4_000
MOST = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """An operand of which every task holds a tile in a memory, and how that tile gets there."""

    operand: Operand
    shape: tuple[int, ...]
    bits: int
    memory: str
    bytes_per_cycle: float
    """Of the transfer that brings a tile, or takes it away."""
    setup_cycles: int
    pj_per_byte: float
    constant: bool = False
    result: bool = False


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is to be cut: loops with their lengths, tenants, and the bytes each memory has left.

    `unrolled` says how many steps of a loop the array takes at once; `rate` is points a cycle for
    engines that have no such structure. `alignment` is what addresses are rounded up to.
    """

    op: Op
    lengths: Mapping[str, int]
    tenants: tuple[Tenant, ...]
    room: Mapping[str, int]
    unrolled: Mapping[str, int]
    rate: float = 1.0
    alignment: int = 1
    partial: Tenant | None = None
    """Partial sums, which lie in a memory too where sums are cut."""
    partial_bytes_per_cycle: float = 1.0
    at_most: Mapping[str, int] = field(default_factory=dict)
    """Tile lengths that loops should not exceed, to run side by side with other engines."""
    tile_cycles: Callable[[Mapping[str, int]], int | None] | None = None
    """Cycles of a tile as a model of the core has them; None: they are estimated."""
    lead_cycles: int = 0
    """How long before the first tile transfers of constants can begin, with nothing else to do."""


@dataclass(frozen=True, kw_only=True)
class Tiling:
    """Tile lengths by loop, and the order of the tiles, outermost loop first.

    `cycles`, `moved_bytes` and `value`, which the goal makes small, are estimates, to compare
    tilings with.
    """

    lengths: Mapping[str, int]
    order: tuple[str, ...]
    cycles: float
    moving_cycles: float
    """Of all transfers, those that begin before the first tile included."""
    moved_bytes: float
    value: float
    doubled: bool
    """Whether two tiles of everything fit, so that one can come while the other is at work."""


def tileable(op: Op) -> tuple[list[str], list[str], list[str]]:
    """Loops that may be cut: those that walk the weights, the other ones of the result, and sums.

    A loop of the result may be cut where its tiles are boxes of the result: it has its axis to
    itself, or takes the longest steps along it.
    """
    outputs = [o.index for o in op.outputs]
    if any(index is None for index in outputs):
        return [], [], []
    sizes = op.sizes
    axes = [axis for index in outputs for axis in index or ()]
    leading = [dim for dim, size in op.dims if size > 1 and _leads_everywhere(dim, axes, sizes)]
    leading = [dim for dim in leading if dim not in op.coupled]
    inside = {d for axis in axes for d, _ in axis.terms}
    weights = next((o for o in op.inputs if o.name == "W"), None)
    walked = {d for axis in (weights.index if weights else None) or () for d, _ in axis.terms}
    data = next((o for o in op.inputs if o.name == "I"), None)
    seen = {d for axis in (data.index if data else None) or () for d, _ in axis.terms}
    own = [dim for dim in leading if dim in walked and dim not in seen]
    both = [dim for dim in leading if dim in walked and dim in seen and _heavy(op, dim)]
    sums = [d for d, size in op.dims if d not in inside and size > 1 and d in walked and d in seen]
    rest = [dim for dim in leading if dim not in own + both]
    return own + both, rest, sums if op.kind in ("conv", "matmul") else []


def _heavy(op: Op, dim: str) -> bool:
    return dim == "G" and op.kind in ("conv", "conv_transpose")


def _leads_everywhere(dim: str, axes: Sequence[Index], sizes: Mapping[str, int]) -> bool:
    found = [axis for axis in axes if any(d == dim for d, _ in axis.terms)]
    return bool(found) and all(_leads(dim, axis, sizes) for axis in found)


def _leads(dim: str, axis: Index, sizes: Mapping[str, int]) -> bool:
    terms = [(d, factor) for d, factor in axis.terms if sizes[d] > 1]
    step = dict(terms)[dim]
    return axis.divisor == 1 and all(
        0 < factor < step and (sizes[d] - 1) * factor < step for d, factor in terms if d != dim
    )


def choose(work: Work, goal: Goal) -> Tiling | None:
    """The best tiling under the goal; None if not even the smallest tiles fit."""
    groups = tileable(work.op)
    weights, rest, sums = ([d for d in loops if work.lengths[d] > 1] for loops in groups)
    rest = [*work.at_most, *(d for d in rest if d not in work.at_most)]
    plain = [weights[:1] + rest[:1], weights[:1] + rest[:2], weights[:1] + rest[:2] + sums[:1]]
    found = [_best(work, loops, groups, goal) for loops in _distinct(plain)]
    if not any(found):
        more = (weights + rest, weights + rest + sums)
        found = [_best(work, loops, groups, goal) for loops in more]
    fitting = [tiling for tiling in found if tiling is not None]
    return min(fitting, key=_value, default=None)


def smallest(work: Work) -> tuple[tuple[Tenant, ...], dict[str, int]]:
    """The smallest tiles: sums whole, or cut with partial sums beside them if that takes less."""
    weights, rest, sums = tileable(work.op)
    whole_sums = {d: 1 if d in (*weights, *rest) else n for d, n in work.lengths.items()}
    choices = [(work.tenants, whole_sums)]
    if sums and work.partial is not None:
        choices.append(((*work.tenants, work.partial), {**whole_sums, **dict.fromkeys(sums, 1)}))
    return min(choices, key=lambda c: sum(int(tile_bytes(t, c[1], work.alignment)) for t in c[0]))


def _distinct(choices: list[list[str]]) -> list[list[str]]:
    return [loops for at, loops in enumerate(choices) if loops not in choices[:at]]


def lengths_to_try(length: int, unit: int) -> list[int]:
    """Tile lengths of a loop: few, from all of it down to one, in multiples of `unit` if possible.

    >>> lengths_to_try(56, 8)
    [56, 32, 24, 16, 8, 4, 2, 1]
    """
    found = {length, 1}
    parts = 2
    while parts <= length:
        even = -(-length // parts)
        rounded = -(-even // unit) * unit if even >= unit else 1 << even.bit_length() - 1
        found.add(min(length, rounded))
        parts = parts + 1 if parts < 8 else -(-parts * 5 // 4)
    return sorted(found, reverse=True)


def _thinned(choices: list[list[int]]) -> list[list[int]]:
    """Every second length of the longest lists, until there are not too many combinations."""
    while prod(map(len, choices)) > MOST_COMBINATIONS:
        longest = max(choices, key=len)
        at = choices.index(longest)
        choices[at] = [*longest[:-1:2], longest[-1]]
    return choices


@dataclass(frozen=True, kw_only=True)
class _Tiles:
    """Combinations of tile lengths of some loops, one after the other."""

    grid: Mapping[str, Grid]
    """Tile lengths of each of the loops."""
    count: Mapping[str, Grid]
    """Tiles along each of the loops."""
    sizes: Sequence[Grid | int]
    """Bytes of a tile of each tenant."""
    total: Values
    """Tiles in all."""
    computing: Values
    """Cycles of computing them, as far as no model of the core is asked."""
    told: dict[int, int | None]
    """Cycles of a tile as a model of the core has them, by combination, once it was asked."""

    def lengths(self, work: Work, at: int) -> dict[str, int]:
        """Tile lengths of all loops in one of the combinations."""
        return {**work.lengths, **{dim: int(tried[at]) for dim, tried in self.grid.items()}}


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


def _best(
    work: Work, loops: list[str], groups: tuple[list[str], list[str], list[str]], goal: Goal
) -> Tiling | None:
    if work.partial is not None and any(d in groups[2] for d in loops):
        work = replace(work, tenants=(*work.tenants, work.partial))
    tiles = _tiles(work, loops)
    orders = _orders(groups, loops)
    transfers: dict[tuple[str, ...], _Transfers] = {}
    best: Tiling | None = None
    for doubled in (True, False):
        fits = _fits(work, tiles.count, tiles.sizes, doubled=doubled)
        if not fits.any():
            continue
        for order in orders:
            if order not in transfers:
                transfers[order] = _transfers(work, tiles, order)
            found = _cheapest(work, tiles, transfers[order], (order, fits, doubled), goal)
            if best is None or _value(found) < _value(best):
                best = found
    return best


def _tiles(work: Work, loops: list[str]) -> _Tiles:
    """The combinations that are tried for some loops; all others are not cut."""
    choices = _thinned(
        [
            lengths_to_try(min(work.lengths[d], work.at_most.get(d, MOST)), work.unrolled.get(d, 1))
            for d in loops
        ]
    )
    rows = list(product(*choices))
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
    computing = total * (computing / work.rate + TASK_CYCLES)
    if work.partial in work.tenants:
        computing = computing + total * sizes[-1] / work.partial_bytes_per_cycle
    return _Tiles(grid=grid, count=count, sizes=sizes, total=total, computing=computing, told={})


def tile_bytes(tenant: Tenant, length: Mapping[str, Grid | int], alignment: int) -> Grid | int:
    """Bytes of an operand's tile when loops have these lengths, rounded up to the alignment."""
    elements: Grid | int = 1
    if tenant.operand.index is None:
        for size in tenant.shape:
            elements = elements * size
    for axis, size in zip(tenant.operand.index or (), tenant.shape, strict=False):
        reach: Grid | int = 0
        for dim, factor in axis.terms:
            reach = reach + abs(factor) * (length[dim] - 1)
        extent = reach // axis.divisor + 1
        elements = elements * np.minimum(extent, size)
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


def _orders(
    groups: tuple[list[str], list[str], list[str]], loops: Sequence[str]
) -> list[tuple[str, ...]]:
    """Weights outermost, or the rest; sums are always innermost."""
    weights, _, sums = groups
    first = [d for d in loops if d in weights]
    last = [d for d in loops if d in sums]
    middle = [d for d in loops if d not in first + last]
    return list(dict.fromkeys(((*first, *middle, *last), (*middle, *first, *last))))


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
        moved_bytes=bytes_moved,
        energy=energy,
    )


def _cheapest(
    work: Work,
    tiles: _Tiles,
    moved: _Transfers,
    choice: tuple[tuple[str, ...], NDArray[np.bool_], bool],
    goal: Goal,
) -> Tiling:
    order, fits, doubled = choice
    cycles = _overlapped(tiles.computing, moved, doubled=doubled)
    values = {"latency": cycles, "energy": moved.energy, "traffic": moved.moved_bytes}
    if work.tile_cycles is not None:
        fits = _promising(np.where(fits, values[goal], np.inf), tiles.total)
        cycles = values["latency"] = _overlapped(_told(work, tiles, fits), moved, doubled=doubled)
    key = np.where(fits, values[goal], np.inf)
    best = np.flatnonzero(key <= NEARLY * key.min())
    at = int(best[np.lexsort((cycles[best], tiles.total[best]))[0]])
    return Tiling(
        lengths=tiles.lengths(work, at),
        order=order,
        cycles=float(cycles[at]),
        moving_cycles=float(moved.cycles[at]),
        moved_bytes=float(moved.moved_bytes[at]),
        value=float(values[goal][at]),
        doubled=doubled,
    )


def _overlapped(computing: Values, moved: _Transfers, *, doubled: bool) -> Values:
    """Cycles of computing and of moving together."""
    moving, first = moved.left_cycles, moved.first_cycles
    if not doubled:
        return computing + moving
    longer, shorter = np.maximum(computing, moving), np.minimum(computing, moving)
    return longer + shorter / 8 + np.minimum(first, moving) / 2


def _promising(guess: Values, total: Values) -> NDArray[np.bool_]:
    """The tilings that seem best, and those with the fewest tiles."""
    chosen = np.zeros(guess.shape, dtype=np.bool_)
    finite = np.flatnonzero(np.isfinite(guess))
    best = _among_smallest(guess, finite)
    chosen[best[np.argsort(guess[best], kind="stable")[:TOLD]]] = True
    fewest = _among_smallest(total, finite)
    chosen[fewest[np.lexsort((guess[fewest], total[fewest]))[:TOLD]]] = True
    return chosen


def _among_smallest(values: Values, among: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where the smallest values are, all that are as small as one of the first `TOLD` included."""
    if len(among) <= TOLD:
        return among
    found = values[among]
    small: NDArray[np.bool_] = found <= np.partition(found, TOLD - 1)[TOLD - 1]
    return among[small]


def _told(work: Work, tiles: _Tiles, asked: NDArray[np.bool_]) -> Values:
    """Cycles of all tiles as a model of the core has them, where it was asked; else the guess."""
    computing = tiles.computing.copy()
    assert work.tile_cycles is not None
    for at in map(int, np.flatnonzero(asked)):
        if at not in tiles.told:
            tiles.told[at] = work.tile_cycles(tiles.lengths(work, at))
        cycles = tiles.told[at]
        if cycles is not None:
            computing[at] = tiles.total[at] * (cycles + TASK_CYCLES)
    return computing


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


def _value(tiling: Tiling) -> tuple[float, float, float]:
    return tiling.value, tiling.cycles, tiling.moved_bytes

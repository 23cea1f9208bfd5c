"""The compiled search for tile lengths, where it was built: it finds what NumPy finds, faster.

A trial is described to it by an array of whole numbers and one of others; `_tiles.c` reads them in
the order in which they are written here. What it has no room for is left to NumPy.
"""

from array import array
from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

from tilewright.program.work import NEARLY, TASK_CYCLES, TOLD, Scope, Tenant, Tiling, Trial
from tilewright.records import quickly_made

try:
    from tilewright.program import _tiles
except ImportError:
    _IS_BUILT = False
else:
    _IS_BUILT = True

_GOALS = ("latency", "energy", "traffic")


def is_used() -> bool:
    """Whether the search was built when the package was installed, and so is used."""
    return _IS_BUILT


def tilings(trial: Trial, told: Callable[[int], int | None]) -> list[Tiling] | None:
    """The best tiling for every order of the tiles that fits, as NumPy would find it.

    Orders that move the same are not repeated. `told` says what a model of the core has for the
    cycles of a combination's tiles. None if NumPy has to serve.
    """
    answer = _answer(trial, told)
    if answer is None:
        return None
    return [_tiling(trial, best) for best in answer[0]]


def best_tiling(
    trial: Trial, told: Callable[[int], int | None]
) -> tuple[Tiling | None, Scope] | None:
    """The best of `tilings`, and for which leads and rooms it is that.

    Of equals the one that takes less time, then the one that moves less.
    """
    answer = _answer(trial, told)
    if answer is None:
        return None
    found, scope = answer
    best = min(found, key=lambda best: (best.value, best.cycles, best.moved_bytes), default=None)
    return None if best is None else _tiling(trial, best), scope


@quickly_made
class _Best(NamedTuple):
    """The best combination for an order of the tiles, as the search answers it."""

    doubled: int
    order: int
    at: int
    cycles: float
    moving_cycles: float
    moved_bytes: float
    value: float


def _answer(trial: Trial, told: Callable[[int], int | None]) -> tuple[list[_Best], Scope] | None:
    if not is_used():
        return None
    try:
        numbers = array("q", _numbers(trial))
    except OverflowError:
        return None
    answer = _tiles.best(numbers, array("d", _figures(trial)), told)
    if answer is None:
        return None
    found, ranges = answer
    return [_Best(*best) for best in found], Scope(least=ranges[::2], most=ranges[1::2])


def _tiling(trial: Trial, best: _Best) -> Tiling:
    return Tiling(
        lengths=trial.lengths(best.at),
        order=trial.orders[best.order],
        cycles=best.cycles,
        moving_cycles=best.moving_cycles,
        moved_bytes=best.moved_bytes,
        value=best.value,
        doubled=bool(best.doubled),
    )


def _numbers(trial: Trial) -> list[int]:
    work, loops = trial.work, trial.loops
    dims = {dim: number for number, dim in enumerate(work.lengths)}
    memories = {memory: number for number, memory in enumerate(work.room)}
    values = [len(dims), len(loops), len(work.tenants), len(memories), len(trial.orders)]
    values += [_GOALS.index(trial.goal), work.tile_cycles is not None]
    values += [work.partial in work.tenants, TOLD, work.alignment, work.lead_cycles]
    values += work.lengths.values()
    values += [work.unrolled.get(dim, 1) for dim in dims]
    for loop, tried in zip(loops, trial.choices, strict=True):
        values += [dims[loop], len(tried), *tried]
    values += work.room.values()
    for tenant in work.tenants:
        values += _tenant(tenant, dims, memories)
    for order in trial.orders:
        values += [loops.index(loop) for loop in order]
    values.append(len(work.streamed))
    for tenant in work.streamed:
        values += _tenant(tenant, dims, {tenant.memory: 0})
    return values


def _tenant(tenant: Tenant, dims: Mapping[str, int], memories: Mapping[str, int]) -> list[int]:
    index = tenant.operand.index
    elements = prod(tenant.shape) if index is None else 1
    values = [memories[tenant.memory], tenant.bits, tenant.constant, tenant.result, elements]
    axes = list(zip(index or (), tenant.shape, strict=False))
    values.append(len(axes))
    for axis, size in axes:
        values += [size, axis.divisor, axis.reach, len(axis.terms)]
        for dim, factor in axis.terms:
            values += [dims[dim], abs(factor)]
    return values


def _figures(trial: Trial) -> list[float]:
    work = trial.work
    values = [work.rate, work.partial_bytes_per_cycle, NEARLY, TASK_CYCLES]
    for tenant in (*work.tenants, *work.streamed):
        values += [tenant.bytes_per_cycle, tenant.setup_cycles, tenant.pj_per_byte]
    return values

"""Why buffers do not fit: who is alive at the peak, how much is missing, and what would help."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tilewright.errors import InfeasibleError, Problem
from tilewright.placement.bounds import max_live
from tilewright.placement.pack import PackOptions, pack
from tilewright.placement.problem import Buffer, Packing, PlacementProblem, without_groups
from tilewright.units import format_bytes

_CANDIDATES = 6
_REMEDY_NODES = 20_000
_LISTED = 5

Remedy = Literal["remove", "spill", "split"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relief:
    """What one change to one buffer does: the peak that is then reached."""

    buffer: str
    remedy: Remedy
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Everything that is known about a problem that does not fit.

    It is volume if more bytes are alive at once than there are, and fragmentation otherwise.
    """

    capacity_bytes: int
    live_bytes: int
    live_cycle: int
    alive: tuple[Buffer, ...]
    peak_bytes: int
    bound_bytes: int
    reliefs: tuple[Relief, ...]

    @property
    def is_volume(self) -> bool:
        """Whether no arrangement could help, since too much is alive at once."""
        return self.live_bytes > self.capacity_bytes

    @property
    def missing_bytes(self) -> int:
        """How many bytes more than the capacity are known to be enough."""
        return self.peak_bytes - self.capacity_bytes


def shortage(packing: Packing, options: PackOptions | None = None) -> Shortage:
    """Look into a packing that does not fit its capacity."""
    problem, _ = without_groups(packing.problem)
    assert problem.capacity_bytes is not None
    live, cycle = max_live(problem.buffers)
    alive = [b for b in problem.buffers if _is_alive(b, cycle)]
    alive.sort(key=lambda b: (-b.size_bytes, b.name))
    budget = min(_REMEDY_NODES, (options or PackOptions()).node_budget)
    tried = replace(options or PackOptions(), node_budget=budget, climb_evaluations=0)
    return Shortage(
        capacity_bytes=problem.capacity_bytes,
        live_bytes=live,
        live_cycle=cycle,
        alive=tuple(alive),
        peak_bytes=packing.peak_bytes,
        bound_bytes=packing.bound_bytes,
        reliefs=_reliefs(packing, alive, cycle, tried),
    )


def infeasible(found: Shortage, file: str = "") -> InfeasibleError:
    """The shortage as an error: what is missing, because of whom, and what would help."""
    return InfeasibleError(
        Problem(file=file, message=_message(found), hint="\n".join(_hints(found)))
    )


def _message(found: Shortage) -> str:
    capacity = f"the capacity of {found.capacity_bytes:,} B"
    if found.is_volume:
        short = found.live_bytes - found.capacity_bytes
        names = ", ".join(f"{b.name} ({b.size_bytes:,} B)" for b in found.alive[:_LISTED])
        more = len(found.alive) - _LISTED
        rest = f" and {more} more" if more > 0 else ""
        return (
            f"does not fit {capacity}: {found.live_bytes:,} B are alive in cycle "
            f"{found.live_cycle}, {short:,} B too many (volume); alive then: {names}{rest}"
        )
    if found.bound_bytes > found.capacity_bytes:
        return (
            f"does not fit {capacity}: only {found.live_bytes:,} B are alive at once, but no "
            f"placement stays below {found.bound_bytes:,} B (fragmentation, proven)"
        )
    return (
        f"no placement found within {capacity}: {found.live_bytes:,} B are alive at once, "
        f"and none stayed below {found.peak_bytes:,} B (fragmentation, not proven)"
    )


def _hints(found: Shortage) -> Iterator[str]:
    proven = "the smallest" if found.peak_bytes == found.bound_bytes else "known to be enough"
    yield f"a capacity of {found.peak_bytes:,} B ({format_bytes(found.peak_bytes)}) is {proven}"
    if found.bound_bytes <= found.capacity_bytes:
        yield "a larger --budget may find a placement, or prove that there is none"
    what = {
        "remove": "without {}",
        "spill": "with {} spilled across the peak",
        "split": "with {} split into two halves",
    }
    for relief in found.reliefs:
        enough = ", which fits" if relief.peak_bytes <= found.capacity_bytes else ""
        phrase = what[relief.remedy].format(relief.buffer)
        yield f"{phrase}: {relief.peak_bytes:,} B{enough}"
    if not found.reliefs:
        yield "no single buffer helps by being removed, spilled or split"


def _reliefs(
    packing: Packing, alive: Sequence[Buffer], cycle: int, options: PackOptions
) -> tuple[Relief, ...]:
    """For each remedy the buffer whose change lowers the peak most."""
    problem = replace(without_groups(packing.problem)[0], capacity_bytes=None)
    candidates = [b for b in alive if b.address is None][:_CANDIDATES]
    best: dict[Remedy, Relief] = {}
    for buffer in candidates:
        for remedy, parts in _changes(buffer, cycle):
            buffers = [b for b in problem.buffers if b.name != buffer.name]
            changed = replace(problem, buffers=(*buffers, *parts))
            peak = pack(changed, options).peak_bytes
            if peak < packing.peak_bytes and (remedy not in best or peak < best[remedy].peak_bytes):
                best[remedy] = Relief(buffer=buffer.name, remedy=remedy, peak_bytes=peak)
    return tuple(best.values())


def _changes(buffer: Buffer, cycle: int) -> Iterator[tuple[Remedy, tuple[Buffer, ...]]]:
    yield "remove", ()
    lives = [life for life in buffer.lives if not life[0] <= cycle < life[1]]
    (start, end) = next(life for life in buffer.lives if life[0] <= cycle < life[1])
    # Spilled, it is still there in the cycle that writes it and in the one that reads it.
    lives += [(start, start + 1)] if start < cycle else []
    lives += [(end - 1, end)] if cycle < end - 1 else []
    if lives and start < cycle < end - 1:
        parts = (replace(buffer, name=f"{buffer.name} (part {n})", lives=(life,), hint=None)
                 for n, life in enumerate(sorted(lives)))  # fmt: skip
        yield "spill", tuple(parts)
    half = -(-buffer.size_bytes // 2 // buffer.alignment_bytes) * buffer.alignment_bytes
    if 0 < half < buffer.size_bytes:
        yield (
            "split",
            (
                replace(buffer, name=f"{buffer.name} (first half)", size_bytes=half, hint=None),
                replace(
                    buffer,
                    name=f"{buffer.name} (second half)",
                    size_bytes=buffer.size_bytes - half,
                    hint=None,
                ),
            ),
        )


def _is_alive(buffer: Buffer, cycle: int) -> bool:
    return any(start <= cycle < end for start, end in buffer.lives)


def require_fit(packing: Packing, file: str = "", options: PackOptions | None = None) -> Packing:
    """The packing, if it fits; raises InfeasibleError that says why not and what would help."""
    if packing.fits:
        return packing
    raise infeasible(shortage(packing, options), file)


def packed_within(
    problem: PlacementProblem, file: str = "", options: PackOptions | None = None
) -> Packing:
    """Pack, and raise InfeasibleError where that does not fit."""
    return require_fit(pack(problem, options), file, options)

"""The least peak of a region, by search over the sets of ops that have run.

The bytes alive after a set of ops depend on the set alone, and are a submodular function of it:
every tensor counts if its maker is in the set and not all its readers are. Hence an op that leaves
no more alive than it found, and needs no more than the peak there is already, may run at once
(moving it to the front of any order raises nothing before it); and looked at from the end, an op
that brings at least what it ends may run last. Of the states with the smallest peak the one with
the fewest ops to go is followed first, so the peak at the head is a bound at any time.

The same search runs from the start and from the end, in turns, because on some graphs one of the
two meets a thousand times fewer states than the other.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.program.order_region import Region, bits

_TURN_STEPS = 2048

State = tuple[int, int, int, int, int]
"""Peak so far, ops to go, bytes alive, mask of the ops to go, mask of those that may be next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """A region as seen from its start or from its end: what an op waits for, what it opens."""

    forward: bool
    waits: tuple[int, ...]
    opens: tuple[tuple[int, ...], ...]
    not_run: int
    """Exclusive-or with the mask of the ops to go gives the mask of those that have not run."""
    first: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a search found: an order of the region's bit numbers, if below the ceiling."""

    order: tuple[int, ...] | None
    bound_bytes: int
    steps: int


def direction_of(region: Region, floor: int, *, forward: bool) -> Direction:
    """The region from its start, or from its end; no peak counts as less than the floor."""
    count = len(region.ops)
    waits, opened = region.waits_for, region.needed_by
    alive = region.start_bytes
    if not forward:
        waits, opened = opened, waits
        alive = region.end_bytes
    everything = (1 << count) - 1
    ready = sum(1 << op for op in range(count) if not waits[op])
    return Direction(
        forward=forward,
        waits=waits,
        opens=tuple(tuple(bits(mask)) for mask in opened),
        not_run=0 if forward else everything,
        first=(floor, count, alive, everything, ready),
    )


def successors(region: Region, way: Direction, state: State, ceiling: int) -> list[State]:
    """The states one op further with a peak below the ceiling; only one where that is enough."""
    peak, left, alive, pending, ready = state
    not_run = pending ^ way.not_run
    found = []
    for op in bits(ready):
        change = region.keeps_bytes[op]
        for others, size in region.frees[op]:
            if not others & not_run:
                change -= size
        after = alive + change if way.forward else alive - change
        need = (alive if way.forward else after) + region.writes_bytes[op]
        overwrite = region.overwrites[op]
        if overwrite is not None and not overwrite[0] & not_run:
            need -= overwrite[1]
        if need >= ceiling:
            continue
        following = max(need, peak), left - 1, after, pending ^ 1 << op, ready ^ 1 << op
        if need <= peak and after <= alive:
            return [_with_opened(way, op, following)]
        found.append((op, following))
    return [_with_opened(way, op, following) for op, following in found]


def _with_opened(way: Direction, op: int, state: State) -> State:
    """The state with those ready that waited for this op alone."""
    peak, left, alive, pending, ready = state
    for other in way.opens[op]:
        if not way.waits[other] & pending:
            ready |= 1 << other
    return peak, left, alive, pending, ready


@dataclass(slots=True)
class _Search:
    """A search under way in one direction."""

    way: Direction
    heap: list[State]
    peaks: dict[int, int]
    """The least peak known per mask of ops to go."""
    parents: dict[int, int] = field(default_factory=dict)
    steps: int = 0

    @property
    def bound_bytes(self) -> int:
        return self.heap[0][0]


def search(region: Region, floor: int, ceiling: int, steps: int) -> Outcome:
    """The order of least peak, if there is one below the ceiling and so many steps suffice.

    A step is an op that could be next in a state looked at. The bound is the ceiling if no order
    is below it. No peak counts as less than the floor, which must not exceed the least peak that
    matters to the caller.
    """
    both = []
    for forward in (True, False):
        way = direction_of(region, floor, forward=forward)
        both.append(_Search(way=way, heap=[way.first], peaks={way.first[3]: floor}))
    bound = floor
    used = 0
    while used < steps and bound < ceiling:
        for one in both:
            finished = _advance(region, one, ceiling, min(_TURN_STEPS, steps - used))
            used = sum(other.steps for other in both)
            if finished:
                return Outcome(order=_order(one), bound_bytes=one.bound_bytes, steps=used)
            if not one.heap:
                return Outcome(order=None, bound_bytes=ceiling, steps=used)
            bound = max(bound, one.bound_bytes)
    return Outcome(order=None, bound_bytes=min(bound, ceiling), steps=used)


def _advance(region: Region, one: _Search, ceiling: int, steps: int) -> bool:
    """Go so many steps more; whether the head of the heap is now a complete order."""
    peaks, parents, heap = one.peaks, one.parents, one.heap
    end = one.steps + steps
    while heap and one.steps < end:
        state = heap[0]
        if state[1] == 0:
            return True
        heapq.heappop(heap)
        pending = state[3]
        if peaks[pending] < state[0]:
            continue
        one.steps += state[4].bit_count()
        for following in successors(region, one.way, state, ceiling):
            peak, mask = following[0], following[3]
            if peak < peaks.get(mask, ceiling):
                peaks[mask] = peak
                parents[mask] = pending
                heapq.heappush(heap, following)
    return False


def _order(one: _Search) -> tuple[int, ...]:
    """The ops on the way to the complete order, first to run first."""
    taken = []
    mask = 0
    while mask in one.parents:
        parent = one.parents[mask]
        taken.append((parent ^ mask).bit_length() - 1)
        mask = parent
    return in_order(one.way, taken[::-1])


def in_order(way: Direction, taken: Sequence[int]) -> tuple[int, ...]:
    """Ops as a search in this direction took them, first to run first."""
    return tuple(taken) if way.forward else tuple(reversed(taken))

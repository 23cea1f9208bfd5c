"""Fast placements: linear scan from one or both ends, and greedy orders with first fit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tilewright.placement.bounds import max_live
from tilewright.placement.fit import first_fit, linear_scan, scan_both_ends, times_of
from tilewright.placement.meetings import Meetings, meetings_of
from tilewright.placement.problem import Buffer

Settle = Callable[[Sequence[Buffer]], Sequence[int]]
"""Addresses of a few buffers, worked out with care."""

# An order looks at every pair of buffers that meet, some nanoseconds each in the kernel and about a
# microsecond without: so many in all, and for very large problems the scans alone serve.
_MOST_LOOKS = 3_000_000
_HEADROOMS_PERCENT = (0, 4, 12)
_URGENCY = "greedy by urgency"
_LARGEST = 200
"""So many buffers are settled before all others: tensors as a whole and rolling buffers mostly,
which leave gaps that nothing fits in if they are put wherever there is room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Addresses that a method found, and their peak."""

    method: str
    addresses: tuple[int, ...]
    peak_bytes: int


def portfolio(
    buffers: Sequence[Buffer], enough_bytes: int, settle: Settle | None = None
) -> Candidate:
    """The best of all methods; none is tried after one that reached `enough_bytes`.

    With `settle`, an early one is that it places the largest buffers and others come around them.
    """
    best: Candidate | None = None
    for method, addresses in _attempts(buffers, enough_bytes, settle):
        if addresses is None:
            continue
        peak = peak_bytes(buffers, addresses)
        if best is None or peak < best.peak_bytes:
            best = Candidate(method=method, addresses=tuple(addresses), peak_bytes=peak)
        if best.peak_bytes <= enough_bytes:
            break
    assert best is not None
    return best


def _attempts(
    buffers: Sequence[Buffer], enough_bytes: int, settle: Settle | None
) -> Iterator[tuple[str, Sequence[int] | None]]:
    """Method after method and what it finds; a method runs when its result is asked for."""
    plain = all(b.address is None and len(b.lives) == 1 for b in buffers)
    most_looks = _MOST_LOOKS if plain else None
    times = times_of(buffers) if plain else None
    if times is not None:
        yield "linear scan", linear_scan(times)
    meetings = None if settle is None else meetings_of(buffers, most_looks)
    if settle is not None and meetings is not None:
        yield "around the largest", _around_largest(buffers, meetings, settle)
        yield _URGENCY, first_fit(buffers, _by_urgency(buffers), meetings)
    if times is not None:
        for percent in _HEADROOMS_PERCENT:
            capacity = enough_bytes * (100 + percent) // 100
            yield "linear scan from both ends", scan_both_ends(times, capacity)
    if settle is None:
        meetings = meetings_of(buffers, most_looks)
    if meetings is not None:
        looks = max(1, len(meetings.others) // 2)
        for method, order in islice(greedy_orders(buffers), max(1, _MOST_LOOKS // looks)):
            if settle is None or method != _URGENCY:
                yield method, first_fit(buffers, order, meetings)


def _around_largest(buffers: Sequence[Buffer], meetings: Meetings, settle: Settle) -> Sequence[int]:
    """The largest buffers and those with an address are settled together, all others by size."""
    by_size = _by_size(buffers)
    fixed = [j for j, buffer in enumerate(buffers) if buffer.address is not None]
    few = sorted({*fixed, *by_size[:_LARGEST]})
    settled = list(buffers)
    for j, address in zip(few, settle([buffers[j] for j in few]), strict=True):
        settled[j] = replace(buffers[j], address=address)
    return first_fit(settled, by_size, meetings)


def peak_bytes(buffers: Sequence[Buffer], addresses: Sequence[int]) -> int:
    """The highest end."""
    ends = [a + b.size_bytes for b, a in zip(buffers, addresses, strict=True)]
    return max(ends, default=0)


def greedy_orders(buffers: Sequence[Buffer]) -> Iterator[tuple[str, list[int]]]:
    """Orders in which to place buffers, one after the other, and what each goes by."""
    yield "greedy by size", _by_size(buffers)
    yield _URGENCY, _by_urgency(buffers)
    start = [buffer.start_cycle for buffer in buffers]
    size, length = [buffer.size_bytes for buffer in buffers], _lengths(buffers)
    by_number = range(len(buffers))
    by_size = _largest_first(by_number, size)
    area = [bytes_ * cycles for bytes_, cycles in zip(size, length, strict=True)]
    yield "greedy by area", _largest_first(by_number, area)
    yield "greedy by length", _largest_first(by_size, length)
    yield "greedy by start", sorted(by_size, key=start.__getitem__)


def _by_size(buffers: Sequence[Buffer]) -> list[int]:
    """Of those of one size the ones with longer lives first."""
    by_length = _largest_first(range(len(buffers)), _lengths(buffers))
    return _largest_first(by_length, [buffer.size_bytes for buffer in buffers])


def _by_urgency(buffers: Sequence[Buffer]) -> list[int]:
    """Of those that are as urgent the larger ones first."""
    size = [buffer.size_bytes for buffer in buffers]
    return _largest_first(_largest_first(range(len(buffers)), size), _urgency(buffers))


def _lengths(buffers: Sequence[Buffer]) -> list[int]:
    return [sum([end - start for start, end in buffer.lives]) for buffer in buffers]


def _largest_first(order: Sequence[int], measure: Sequence[int]) -> list[int]:
    """Buffers by a measure; equals stay in their order."""
    return sorted(order, key=measure.__getitem__, reverse=True)


def _urgency(buffers: Sequence[Buffer]) -> list[int]:
    """For each buffer 2 if it is alive at the peak, 1 if it meets that cycle's buffers, else 0."""
    _, cycle = max_live(buffers)
    at_peak = [any(start <= cycle < end for start, end in b.lives) for b in buffers]
    first = min(
        (b.start_cycle for b, there in zip(buffers, at_peak, strict=True) if there), default=0
    )
    last = max((b.end_cycle for b, there in zip(buffers, at_peak, strict=True) if there), default=0)
    return [
        2 if there else int(b.start_cycle < last and first < b.end_cycle)
        for b, there in zip(buffers, at_peak, strict=True)
    ]

"""Fast placements: linear scan from one or both ends, and greedy orders with first fit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.placement.bounds import max_live
from tilewright.placement.free_list import FreeList
from tilewright.placement.problem import Buffer

# An order looks at every pair of buffers that meet, about a microsecond each: so many in all, and
# for very large problems the scans alone serve.
_MOST_LOOKS = 300_000
_HEADROOMS_PERCENT = (0, 4, 12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Addresses that a method found, and their peak."""

    method: str
    addresses: tuple[int, ...]
    peak_bytes: int


def portfolio(buffers: Sequence[Buffer], enough_bytes: int) -> Candidate:
    """The best of all methods; none is tried after one that reached `enough_bytes`."""
    best: Candidate | None = None
    for method, addresses in _attempts(buffers, enough_bytes):
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
    buffers: Sequence[Buffer], enough_bytes: int
) -> Iterator[tuple[str, Sequence[int] | None]]:
    """Method after method and what it finds; a method runs when its result is asked for."""
    plain = all(b.address is None and len(b.lives) == 1 for b in buffers)
    if plain:
        times = _times_of(buffers)
        yield "linear scan", _scan_from_bottom(times)
        for percent in _HEADROOMS_PERCENT:
            capacity = enough_bytes * (100 + percent) // 100
            yield "linear scan from both ends", _scan_from_both_ends(times, capacity)
    neighbours = meeting_pairs(buffers, _MOST_LOOKS if plain else None)
    if neighbours is not None:
        looks = max(1, sum(map(len, neighbours)) // 2)
        orders = list(greedy_orders(buffers).items())
        for method, order in orders[: max(1, _MOST_LOOKS // looks)]:
            yield method, first_fit(buffers, order, neighbours)


def peak_bytes(buffers: Sequence[Buffer], addresses: Sequence[int]) -> int:
    """The highest end."""
    ends = (a + b.size_bytes for b, a in zip(buffers, addresses, strict=True))
    return max(ends, default=0)


def linear_scan(buffers: Sequence[Buffer]) -> list[int]:
    """Best fit in the order of starts; needs single lives and no fixed addresses."""
    return _scan_from_bottom(_times_of(buffers))


def scan_both_ends(buffers: Sequence[Buffer], capacity_bytes: int) -> list[int] | None:
    """Linear scan that puts the shorter half of the lives at the top; None if they do not fit."""
    return _scan_from_both_ends(_times_of(buffers), capacity_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Buffers with single lives, by number, and the orders in which they come and go."""

    start: Sequence[int]
    end: Sequence[int]
    size: Sequence[int]
    alignment: Sequence[int]
    by_start: Sequence[int]
    by_end: Sequence[int]


def _times_of(buffers: Sequence[Buffer]) -> _Times:
    start = [buffer.start_cycle for buffer in buffers]
    end = [buffer.end_cycle for buffer in buffers]
    size = [buffer.size_bytes for buffer in buffers]
    every = range(len(buffers))
    return _Times(
        start=start,
        end=end,
        size=size,
        alignment=[buffer.alignment_bytes for buffer in buffers],
        by_start=sorted(every, key=lambda j: (start[j], -size[j], j)),
        by_end=sorted(every, key=lambda j: (end[j], j)),
    )


def _scan_from_bottom(times: _Times) -> list[int]:
    room = sum(times.size) + sum(times.alignment)
    addresses = _scan(times, FreeList(room), [False] * len(times.size))
    assert addresses is not None
    return addresses


def _scan_from_both_ends(times: _Times, capacity_bytes: int) -> list[int] | None:
    lengths = [end - start for start, end in zip(times.start, times.end, strict=True)]
    middle = sorted(lengths)[len(lengths) // 2]
    return _scan(times, FreeList(capacity_bytes), [length <= middle for length in lengths])


def _scan(times: _Times, free: FreeList, from_top: Sequence[bool]) -> list[int] | None:
    start, end, size, by_end = times.start, times.end, times.size, times.by_end
    addresses = [0] * len(size)
    ended = 0
    for j in times.by_start:
        while end[by_end[ended]] <= start[j]:
            gone = by_end[ended]
            free.free(addresses[gone], addresses[gone] + size[gone])
            ended += 1
        address = free.allocate(size[j], times.alignment[j], from_top[j])
        if address is None:
            return None
        addresses[j] = address
    return addresses


def greedy_orders(buffers: Sequence[Buffer]) -> dict[str, list[int]]:
    """Orders in which to place buffers: by size, by urgency (the peak first), by area."""
    urgency = _urgency(buffers)
    length = [sum(end - start for start, end in buffer.lives) for buffer in buffers]
    size = [buffer.size_bytes for buffer in buffers]
    every = range(len(buffers))
    return {
        "greedy by size": sorted(every, key=lambda j: (-size[j], -length[j], j)),
        "greedy by urgency": sorted(every, key=lambda j: (-urgency[j], -size[j], j)),
        "greedy by area": sorted(every, key=lambda j: (-size[j] * length[j], j)),
        "greedy by length": sorted(every, key=lambda j: (-length[j], -size[j], j)),
        "greedy by start": sorted(every, key=lambda j: (buffers[j].start_cycle, -size[j], j)),
    }


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


def first_fit(
    buffers: Sequence[Buffer], order: Sequence[int], neighbours: Sequence[Sequence[int]]
) -> list[int]:
    """Each buffer in turn at the lowest address free during its lives; the fixed ones first."""
    places: list[tuple[int, int] | None] = [
        None if buffer.address is None else (buffer.address, buffer.address + buffer.size_bytes)
        for buffer in buffers
    ]
    for j in order:
        if places[j] is not None:
            continue
        size, alignment = buffers[j].size_bytes, buffers[j].alignment_bytes
        taken = [place for k in neighbours[j] if (place := places[k]) is not None]
        taken.sort()
        hint = buffers[j].hint
        if hint is not None and hint % alignment == 0 and _is_free(taken, hint, hint + size):
            places[j] = (hint, hint + size)
            continue
        address = 0
        for begin, end in taken:
            if begin >= address + size:
                break
            if end > address:
                address = -(-end // alignment) * alignment
        places[j] = (address, address + size)
    return [-1 if place is None else place[0] for place in places]


def _is_free(taken: Sequence[tuple[int, int]], begin: int, end: int) -> bool:
    return all(begin >= other_end or end <= other_begin for other_begin, other_end in taken)


def meeting_pairs(buffers: Sequence[Buffer], most: int | None) -> list[list[int]] | None:
    """For each buffer those it meets; None if there are more than `most` pairs."""
    events = sorted(
        event
        for j, buffer in enumerate(buffers)
        for start, end in buffer.lives
        for event in ((start, 1, j), (end, 0, j))
    )
    if most is not None and _meetings(events) > most:
        return None
    found: list[dict[int, None]] = [{} for _ in buffers]
    alive: dict[int, None] = {}
    for _, is_start, j in events:
        if not is_start:
            del alive[j]
            continue
        for k in alive:
            found[j][k] = None
            found[k][j] = None
        alive[j] = None
    return [list(others) for others in found]


def _meetings(events: Sequence[tuple[int, int, int]]) -> int:
    alive = meetings = 0
    for _, is_start, _ in events:
        meetings += alive if is_start else 0
        alive += 1 if is_start else -1
    return meetings

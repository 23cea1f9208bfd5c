"""Buffers put in place one by one: by linear scan, or by first fit in a given order.

`_fit.c` is the same, compiled.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tilewright.placement.free_list import FreeList
from tilewright.placement.meetings import Meetings, is_compiled
from tilewright.placement.problem import Buffer

try:
    from tilewright.placement import _fit as kernel
except ImportError:
    kernel = None  # type: ignore[assignment]  # not compiled here

Engine = Literal["fastest", "python"]

_MOST = 1 << 61
"""Bytes and cycles that the kernel can add up in 64 bits."""

_NONE = -(1 << 63)
"""To the kernel: no address."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """Buffers with single lives, none of size 0, and the orders in which they come and go."""

    start: Sequence[int]
    end: Sequence[int]
    size: Sequence[int]
    alignment: Sequence[int]
    by_start: Sequence[int]
    """Of those that come at one cycle the largest first."""
    by_end: Sequence[int]

    @cached_property
    def columns(self) -> "list[array[int]] | None":
        """The same for the kernel; None if there are numbers too large for it."""
        lists = (self.start, self.end, self.size, self.alignment, self.by_start, self.by_end)
        lowest, highest = min(self.start, default=0), max(self.end, default=0)
        if max(-lowest, highest, self.enough_bytes) > _MOST:
            return None
        return [array("q", numbers) for numbers in lists]

    @cached_property
    def enough_bytes(self) -> int:
        """Room for all of them side by side."""
        return sum(self.size) + sum(self.alignment)


def times_of(buffers: Sequence[Buffer]) -> Times:
    """The lives and sizes of buffers, for scans."""
    start = [buffer.lives[0][0] for buffer in buffers]
    end = [buffer.lives[0][1] for buffer in buffers]
    size = [buffer.size_bytes for buffer in buffers]
    every = range(len(buffers))
    # Sorting keeps the order of equals, so ties end in the buffers' own order.
    by_size = sorted(every, key=size.__getitem__, reverse=True)
    return Times(
        start=start,
        end=end,
        size=size,
        alignment=[buffer.alignment_bytes for buffer in buffers],
        by_start=sorted(by_size, key=start.__getitem__),
        by_end=sorted(every, key=end.__getitem__),
    )


def linear_scan(times: Times, engine: Engine = "fastest") -> Sequence[int]:
    """Best fit in the order of starts."""
    addresses = _scan(times, times.enough_bytes, [False] * len(times.size), engine)
    assert addresses is not None
    return addresses


def scan_both_ends(
    times: Times, capacity_bytes: int, engine: Engine = "fastest"
) -> Sequence[int] | None:
    """Linear scan that puts the shorter half of the lives at the top; None if they do not fit."""
    lengths = [end - start for start, end in zip(times.start, times.end, strict=True)]
    middle = sorted(lengths)[len(lengths) // 2]
    return _scan(times, capacity_bytes, [length <= middle for length in lengths], engine)


def _scan(
    times: Times, capacity_bytes: int, from_top: Sequence[bool], engine: Engine
) -> Sequence[int] | None:
    if is_compiled() and engine == "fastest" and times.columns and capacity_bytes <= _MOST:
        starts, ends, sizes, alignments, by_start, by_end = times.columns
        found = array("q", bytes(8 * len(sizes)))
        fits = kernel.scan(
            starts, ends, sizes, alignments, by_start, by_end,
            array("q", from_top), found, capacity_bytes,
        )  # fmt: skip
        return found if fits else None
    return _scan_in_python(times, FreeList(capacity_bytes), from_top)


def _scan_in_python(times: Times, free: FreeList, from_top: Sequence[bool]) -> list[int] | None:
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


def first_fit(
    buffers: Sequence[Buffer],
    order: Sequence[int],
    meetings: Meetings,
    engine: Engine = "fastest",
) -> Sequence[int]:
    """Each buffer in turn at the lowest address free during its lives; the fixed ones first.

    The order names every buffer.
    """
    if is_compiled() and engine == "fastest":
        size = [buffer.size_bytes for buffer in buffers]
        alignment = [buffer.alignment_bytes for buffer in buffers]
        hints = [_NONE if buffer.hint is None else buffer.hint for buffer in buffers]
        fixed = [_NONE if buffer.address is None else buffer.address for buffer in buffers]
        if sum(size) + sum(alignment) + max((*hints, *fixed, 0)) <= _MOST:
            addresses = array("q", fixed)
            kernel.first_fit(
                array("q", size), array("q", alignment), array("q", hints), array("q", order),
                meetings.at, meetings.others, addresses,
            )  # fmt: skip
            return addresses
    places: list[tuple[int, int] | None] = [
        None if buffer.address is None else (buffer.address, buffer.address + buffer.size_bytes)
        for buffer in buffers
    ]
    for j in order:
        if places[j] is None:
            taken = [place for k in meetings.of(j) if (place := places[k]) is not None]
            address = _lowest_free(buffers[j], sorted(taken))
            places[j] = address, address + buffers[j].size_bytes
    return [place[0] for place in places if place is not None]


def _lowest_free(buffer: Buffer, taken: Sequence[tuple[int, int]]) -> int:
    """Where a buffer would like to lie if that is free, or the lowest address that is."""
    size, alignment, hint = buffer.size_bytes, buffer.alignment_bytes, buffer.hint
    if (
        hint is not None
        and hint % alignment == 0
        and all(hint >= end or hint + size <= begin for begin, end in taken)
    ):
        return hint
    address = 0
    for begin, end in taken:
        if begin >= address + size:
            break
        if end > address:
            address = -(-end // alignment) * alignment
    return address

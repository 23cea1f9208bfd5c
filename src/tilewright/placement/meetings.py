"""Which buffers are alive together; `_fit.c` has the same for single lives, compiled."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Literal

from tilewright.placement.problem import Buffer

try:
    from tilewright.placement import _fit as kernel
except ImportError:
    kernel = None  # type: ignore[assignment]  # not compiled here


def is_compiled() -> bool:
    """Whether `_fit` is there."""
    return kernel is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Meetings:
    """For each buffer those it meets, all in one array; each meeting is there twice."""

    at: "array[int]"
    """Where those of each buffer begin, and where the last ones end."""
    others: "array[int]"

    def of(self, buffer: int) -> "array[int]":
        """Whom a buffer meets: those that are there when it comes, then those that come later."""
        return self.others[self.at[buffer] : self.at[buffer + 1]]


def meetings_of(
    buffers: Sequence[Buffer],
    most: int | None = None,
    engine: Literal["fastest", "python"] = "fastest",
) -> Meetings | None:
    """Who meets whom; None if there are more than `most` pairs."""
    if all(len(buffer.lives) == 1 for buffer in buffers):
        start = [buffer.lives[0][0] for buffer in buffers]
        end = [buffer.lives[0][1] for buffer in buffers]
        by_start, by_end = (sorted(range(len(start)), key=t.__getitem__) for t in (start, end))
        pairs = _pairs(start, end, by_start)
        if most is not None and pairs > most:
            return None
        if is_compiled() and engine == "fastest":
            try:
                starts, ends = array("q", start), array("q", end)
            except OverflowError:
                return _by_events(buffers, None)
            at, others = array("q", bytes(8 * len(start) + 8)), array("q", bytes(16 * pairs))
            kernel.meetings(starts, ends, array("q", by_start), array("q", by_end), at, others)
            return Meetings(at=at, others=others)
    return _by_events(buffers, most)


def _pairs(start: Sequence[int], end: Sequence[int], by_start: Sequence[int]) -> int:
    """How many pairs of buffers with single lives meet."""
    ends = sorted(end)
    return sum([place - bisect_right(ends, start[j]) for place, j in enumerate(by_start)])


def _by_events(buffers: Sequence[Buffer], most: int | None) -> Meetings | None:
    """The same for any lives; pairs that meet several times count as often against `most`."""
    events = sorted(
        event
        for j, buffer in enumerate(buffers)
        for start, end in buffer.lives
        # At one cycle ends come before starts, because lives are half-open.
        for event in ((start, 1, j), (end, 0, j))
    )
    changes = [1 if is_start else -1 for _, is_start, _ in events]
    alive_after = accumulate(changes)
    pairs = sum(n - 1 for n, change in zip(alive_after, changes, strict=True) if change > 0)
    if most is not None and pairs > most:
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
    return Meetings(
        at=array("q", accumulate(map(len, found), initial=0)),
        others=array("q", chain.from_iterable(found)),
    )

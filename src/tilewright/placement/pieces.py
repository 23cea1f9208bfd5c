"""Very many buffers, piece by piece: what lives longest has its place before all others.

Without it the others fall into pieces between which nothing is alive, and for each of these it is
like what is reserved. A network in strips, of thousands of steps each, is made of such pieces.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.placement.problem import Buffer, Life
from tilewright.placement.sections import time_parts

MOST_LONGEST = 64
"""So many buffers live longest at most."""

PIECE = 2
"""Pieces are worth looking at if none has more than this part of all buffers."""

Place = Callable[[Sequence[Buffer]], Sequence[int] | None]
"""Addresses of some buffers with which they fit; None if it finds none."""


def in_pieces(buffers: Sequence[Buffer], place: Place) -> tuple[int, ...] | None:
    """Addresses with which all pieces fit; None if one does not, or if there are no pieces."""
    cut = _cut(buffers)
    if cut is None:
        return None
    longest, pieces = cut
    first = [*(j for j, b in enumerate(buffers) if b.address is not None), *longest]
    addresses = place([buffers[j] for j in first])
    if addresses is None:
        return None
    found = dict(zip(first, addresses, strict=True))
    for piece in pieces:
        start = min(buffers[j].start_cycle for j in piece)
        end = max(buffers[j].end_cycle for j in piece)
        there = [
            replace(buffers[j], lives=lives, address=found[j])
            for j in first
            if (lives := _within(buffers[j], start, end))
        ]
        addresses = place([*there, *[buffers[j] for j in piece]])
        if addresses is None:
            return None
        found.update(zip(piece, addresses[len(there) :], strict=True))
    return tuple(found[j] for j in range(len(buffers)))


def _cut(buffers: Sequence[Buffer]) -> tuple[list[int], list[list[int]]] | None:
    """Of what has no address as few of the longest lives as it takes, and the pieces of all others;
    None if even without many of them one piece has most of these."""
    lengths = [buffer.end_cycle - buffer.start_cycle for buffer in buffers]
    free = [j for j, buffer in enumerate(buffers) if buffer.address is None]
    by_length = sorted(free, key=lambda j: (-lengths[j], j))
    count = 1
    while count <= min(MOST_LONGEST, len(free) // PIECE):
        others = sorted(by_length[count:])
        parts = time_parts([buffers[j] for j in others])
        if PIECE * max(map(len, parts)) <= len(free):
            return sorted(by_length[:count]), [[others[k] for k in part] for part in parts]
        count *= 2
    return None


def _within(buffer: Buffer, start: int, end: int) -> tuple[Life, ...]:
    """A buffer's lives from one cycle on, up to another."""
    lives = [(max(start, first), min(end, behind)) for first, behind in buffer.lives]
    return tuple([life for life in lives if life[0] < life[1]])

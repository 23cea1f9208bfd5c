"""Lower bounds of the peak: what is alive together, and where fixed buffers end."""

import math
from collections import defaultdict
from collections.abc import Sequence

from tilewright.placement.problem import Buffer


def max_live(buffers: Sequence[Buffer]) -> tuple[int, int]:
    """The most bytes alive in one cycle, and the first such cycle."""
    changes: dict[int, int] = defaultdict(int)
    for buffer in buffers:
        size_bytes = buffer.size_bytes
        for start, end in buffer.lives:
            changes[start] += size_bytes
            changes[end] -= size_bytes
    live = most = most_cycle = 0
    for cycle in sorted(changes):
        live += changes[cycle]
        if live > most:
            most, most_cycle = live, cycle
    return most, most_cycle


def granularity(buffers: Sequence[Buffer]) -> int:
    """Every address and every end of a canonical placement is a multiple of this."""
    numbers = [buffer.size_bytes for buffer in buffers]
    numbers += [buffer.alignment_bytes for buffer in buffers if buffer.alignment_bytes > 1]
    numbers += [buffer.address for buffer in buffers if buffer.address is not None]
    return math.gcd(*numbers) or 1


def simple_bound(buffers: Sequence[Buffer]) -> int:
    """A peak that no placement can go below: the volume, or the end of a fixed buffer."""
    fixed_ends = [b.address + b.size_bytes for b in buffers if b.address is not None]
    return max([max_live(buffers)[0], *fixed_ends])

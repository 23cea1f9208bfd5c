"""Random placement problems, and the smallest peak of small ones by trying every address."""

import random
from collections.abc import Sequence

from tilewright.placement.problem import Buffer, Life, meet


def random_lives(chance: random.Random, horizon: int, gaps: bool) -> tuple[Life, ...]:
    count = chance.choice([2, 2, 2, 4, 6]) if gaps else 2
    count = min(count, horizon // 2 * 2)
    cuts = sorted(chance.sample(range(horizon + 1), count))
    return tuple(zip(cuts[::2], cuts[1::2], strict=True))


def random_buffers(seed: int, most: int = 8) -> list[Buffer]:
    """A few small buffers, with alignments, gaps and fixed addresses that can all hold."""
    chance = random.Random(seed)
    horizon = chance.choice([3, 5, 8, 12])
    gaps = chance.random() < 0.4
    alignments = chance.choice([[1], [1], [1, 2], [1, 2, 4], [3, 4]])
    with_fixed = chance.random() < 0.3
    buffers: list[Buffer] = []
    for number in range(chance.randrange(1, most + 1)):
        alignment = chance.choice(alignments)
        fixed = with_fixed and chance.random() < 0.3
        buffer = Buffer(
            name=f"b{number}",
            lives=random_lives(chance, horizon, gaps),
            size_bytes=chance.randrange(1, 7),
            alignment_bytes=alignment,
            address=alignment * chance.randrange(4) if fixed else None,
        )
        if buffer.address is not None and any(_clash(buffer, other) for other in buffers):
            continue
        buffers.append(buffer)
    return buffers


def _clash(first: Buffer, second: Buffer) -> bool:
    if first.address is None or second.address is None or not meet(first, second):
        return False
    return (
        first.address < second.address + second.size_bytes
        and second.address < first.address + first.size_bytes
    )


def fits_by_trying(buffers: Sequence[Buffer], capacity: int) -> bool:
    """Whether any assignment of addresses below the capacity has no clash."""
    alive = [
        {cycle for start, end in buffer.lives for cycle in range(start, end)} for buffer in buffers
    ]
    taken: dict[int, tuple[int, int]] = {}

    def place(position: int) -> bool:
        if position == len(buffers):
            return True
        buffer = buffers[position]
        size = buffer.size_bytes
        met = [
            taken[other]
            for other in range(position)
            if not alive[other].isdisjoint(alive[position])
        ]
        addresses = range(0, capacity - size + 1, buffer.alignment_bytes)
        for address in addresses:
            if buffer.address is not None and address != buffer.address:
                continue
            if any(address < end and begin < address + size for begin, end in met):
                continue
            taken[position] = (address, address + size)
            if place(position + 1):
                return True
        return False

    return place(0)


def smallest_peak(buffers: Sequence[Buffer]) -> int:
    """The lowest capacity that fits, found by trying all from the most bytes in one cycle on."""
    cycles = range(max(buffer.end_cycle for buffer in buffers))
    capacity = max(
        sum(b.size_bytes for b in buffers if any(start <= c < end for start, end in b.lives))
        for c in cycles
    )
    # Only the order in which they are tried: it changes how long, not what is found.
    fixed_first = sorted(buffers, key=lambda b: (b.address is None, -b.size_bytes))
    while not fits_by_trying(fixed_first, capacity):
        capacity += 1
    return capacity

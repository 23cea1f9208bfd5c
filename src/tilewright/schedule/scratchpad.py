"""One scratchpad during a simulation: its free list, and who lies where."""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from operator import itemgetter

from tilewright.placement.free_list import FreeList
from tilewright.program.model import Space

_NEVER = 1 << 62
"""A step that is never reached."""


class Scratchpad:
    """Blocks by address; a block belongs to one root.

    With `last_step`, the steps at which roots leave for good, they are placed by these.
    """

    def __init__(self, space: Space, last_step: Sequence[int] | None = None) -> None:
        self.last_step = last_step
        self.free_list = FreeList(space.size_bytes, space.reserved)
        self.alignment = space.alignment_bytes
        self.walls = [(begin, end, -1, None) for begin, end in space.reserved]
        self.size_bytes = space.size_bytes
        self.largest_gap_bytes = self.free_list.largest_gap_bytes
        self.addresses: list[int] = []
        self.owners: dict[int, tuple[int, int]] = {}
        """Address -> (end, root)."""

    def has_room(self, size_bytes: int) -> bool:
        """Whether some gap has so many bytes."""
        return size_bytes <= self.largest_gap_bytes

    def place(
        self, root: int, size_bytes: int, from_top: bool = False, stacked: bool = False
    ) -> int | None:
        """Take room for a root and return its address, or None if there is none."""
        if size_bytes > self.largest_gap_bytes:
            return None
        if stacked or self.last_step is None:
            address = self.free_list.allocate(size_bytes, self.alignment, from_top)
        else:
            address = self._beside_lasting(size_bytes, self.last_step, self.last_step[root])
        if address is not None:
            insort(self.addresses, address)
            self.owners[address] = (address + size_bytes, root)
            self.largest_gap_bytes = self.free_list.largest_gap_bytes
        return address

    def _beside_lasting(self, size_bytes: int, last_step: Sequence[int], until: int) -> int | None:
        """Take room at the end of a gap whose neighbour stays just as long, or a little longer.

        Then they leave one large gap, one after the other. The end of the memory stays for ever.
        """
        best: tuple[bool, int, int, int] | None = None
        for begin, end in self.free_list.gaps():
            if begin + size_bytes > end:
                continue
            lowest = -(-begin // self.alignment) * self.alignment
            if lowest + size_bytes > end:
                continue
            index = bisect_left(self.addresses, begin)
            below = above = _NEVER
            if index and self.owners[self.addresses[index - 1]][0] == begin:
                below = last_step[self.owners[self.addresses[index - 1]][1]]
            if index < len(self.addresses) and self.addresses[index] == end:
                above = last_step[self.owners[end][1]]
            highest = (end - size_bytes) // self.alignment * self.alignment
            for step, address in ((below, lowest), (above, highest)):
                key = (step < until, abs(step - until), end - begin, address)
                if best is None or key < best:
                    best = key
        if best is None:
            return None
        address = best[-1]
        self.free_list.take(address, address + size_bytes)
        return address

    def release(self, address: int) -> None:
        """Give the block at this address back."""
        end, _ = self.owners.pop(address)
        del self.addresses[bisect_left(self.addresses, address)]
        self.free_list.free(address, end)
        self.largest_gap_bytes = self.free_list.largest_gap_bytes

    def cheapest_window(
        self, size_bytes: int, cost: Callable[[int], int | None]
    ) -> tuple[int, list[int]] | None:
        """The least total cost at which there is room, and the roots that leave for it.

        `cost` says what a root's leaving costs, None if it must stay. None: there is no such room.
        """
        best: tuple[int, int, int] | None = None
        found: list[int] = []
        for begin, end, blocks in self._segments(size_bytes, cost):
            low = spent = taken = 0
            floor = -(-begin // self.alignment) * self.alignment
            for high in range(len(blocks) + 1):
                # The window takes blocks[low:high] away.
                ceiling = blocks[high][0] if high < len(blocks) else end
                while floor + size_bytes <= ceiling:
                    key = (spent, taken, floor)
                    if best is None or key < best:
                        best = key
                        found = [block[2] for block in blocks[low:high]]
                    if low == high:
                        break
                    address, block_end, _, price = blocks[low]
                    spent -= price
                    taken -= block_end - address
                    floor = -(-block_end // self.alignment) * self.alignment
                    low += 1
                if high < len(blocks):
                    address, block_end, _, price = blocks[high]
                    spent += price
                    taken += block_end - address
        return None if best is None else (best[0], found)

    def _segments(
        self, size_bytes: int, cost: Callable[[int], int | None]
    ) -> list[tuple[int, int, list[tuple[int, int, int, int]]]]:
        """Long enough stretches without a block that must stay: (begin, end, blocks in it)."""
        blocks: list[tuple[int, int, int, int | None]] = []
        for address in self.addresses:
            high, root = self.owners[address]
            blocks.append((address, high, root, cost(root)))
        if self.walls:
            blocks = sorted((*blocks, *self.walls), key=itemgetter(0))
        segments = []
        begin = 0
        inside: list[tuple[int, int, int, int]] = []
        for low, high, root, price in (*blocks, (self.size_bytes, 0, -1, None)):
            if price is not None:
                inside.append((low, high, root, price))
                continue
            if begin + size_bytes <= low:
                segments.append((begin, low, inside))
            begin, inside = high, []
        return segments

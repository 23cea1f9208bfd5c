"""One scratchpad during a simulation: its free list, and who lies where."""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence

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
        self.walls = sorted((begin, end, -1) for begin, end in space.reserved)
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
        for begin, end, blocks in self._segments(cost):
            if begin + size_bytes > end:
                continue
            low = 0
            spent = 0
            taken = 0
            for high in range(len(blocks) + 1):
                # The window takes blocks[low:high] away.
                ceiling = blocks[high][0] if high < len(blocks) else end
                while True:
                    floor = blocks[low - 1][1] if low else begin
                    address = -(-floor // self.alignment) * self.alignment
                    if address + size_bytes > ceiling:
                        break
                    key = (spent, taken, address)
                    if best is None or key < best:
                        best = key
                        found = [block[2] for block in blocks[low:high]]
                    if low == high:
                        break
                    spent -= blocks[low][3]
                    taken -= blocks[low][1] - blocks[low][0]
                    low += 1
                if high < len(blocks):
                    spent += blocks[high][3]
                    taken += blocks[high][1] - blocks[high][0]
        return None if best is None else (best[0], found)

    def _segments(
        self, cost: Callable[[int], int | None]
    ) -> list[tuple[int, int, list[tuple[int, int, int, int]]]]:
        """Stretches of memory without a block that must stay: (begin, end, blocks in it)."""
        owners = self.owners
        blocks = [(address, *owners[address]) for address in self.addresses]
        if self.walls:
            blocks = sorted((*blocks, *self.walls))
        segments = []
        begin = 0
        inside: list[tuple[int, int, int, int]] = []
        for low, high, root in blocks:
            price = cost(root) if root >= 0 else None
            if price is None:
                segments.append((begin, low, inside))
                begin, inside = high, []
            else:
                inside.append((low, high, root, price))
        segments.append((begin, self.size_bytes, inside))
        return segments

"""A scratchpad of which only the bytes are counted: addresses come when all lives are known."""

from collections.abc import Callable

from tilewright.program.model import Space


class CountedPad:
    """Stands in for a scratchpad; an address is only the number of a block."""

    def __init__(self, space: Space, room_bytes: int) -> None:
        self.alignment = space.alignment_bytes
        self.largest_gap_bytes = room_bytes
        """All that is free: without addresses, nothing lies between."""
        self.addresses: list[int] = []
        self.owners: dict[int, tuple[int, int]] = {}
        """Number -> (number + bytes, root), as in a real scratchpad."""
        self._next = 0

    def has_room(self, size_bytes: int) -> bool:
        """Whether so many bytes are free."""
        return self._aligned(size_bytes) <= self.largest_gap_bytes

    def place(
        self, root: int, size_bytes: int, from_top: bool = False, stacked: bool = False
    ) -> int | None:
        """Take bytes for a root and return the number of its block, or None."""
        del from_top, stacked
        if not self.has_room(size_bytes):
            return None
        address = self._next
        self._next += self._aligned(size_bytes)
        self.largest_gap_bytes -= self._aligned(size_bytes)
        self.addresses.append(address)
        self.owners[address] = (self._next, root)
        return address

    def release(self, address: int) -> None:
        """Give the block back."""
        end, _ = self.owners.pop(address)
        self.addresses.remove(address)
        self.largest_gap_bytes += end - address

    def cheapest_window(
        self, size_bytes: int, cost: Callable[[int], int | None]
    ) -> tuple[int, list[int]] | None:
        """A cost, and roots whose leaving frees so many bytes: the cheapest, none in vain."""
        short = self._aligned(size_bytes) - self.largest_gap_bytes
        choices = []
        for address in self.addresses:
            end, root = self.owners[address]
            price = cost(root)
            if price is not None:
                choices.append((price, end - address, root))
        chosen: list[tuple[int, int, int]] = []
        freed = 0
        for choice in sorted(choices):
            if freed >= short:
                break
            chosen.append(choice)
            freed += choice[1]
        if freed < short:
            return None
        for choice in sorted(chosen, reverse=True):
            if freed - choice[1] >= short:
                freed -= choice[1]
                chosen.remove(choice)
        return sum(price for price, _, _ in chosen), [root for _, _, root in chosen]

    def _aligned(self, size_bytes: int) -> int:
        return -(-size_bytes // self.alignment) * self.alignment

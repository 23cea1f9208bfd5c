"""Addresses for blocks whose lives are all known: several greedy orders, then a small search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.program.model import Space


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes that stay put during [begin, end)."""

    begin: int
    end: int
    size_bytes: int


def packed(blocks: Sequence[Block], space: Space, nodes: int) -> list[int] | None:
    """An address for each block, or None if none was found within so many nodes of search."""
    orders: list[Callable[[int], tuple[int, ...]]] = [
        lambda i: (-blocks[i].size_bytes, blocks[i].begin, i),
        lambda i: (-blocks[i].size_bytes * (blocks[i].end - blocks[i].begin), i),
        lambda i: (blocks[i].begin - blocks[i].end, -blocks[i].size_bytes, i),
        lambda i: (blocks[i].begin, -blocks[i].size_bytes, i),
    ]
    packing = _Packing(blocks, space)
    for key in orders:
        addresses = packing.greedy(sorted(range(len(blocks)), key=key))
        if addresses is not None:
            return addresses
    return packing.search(nodes)


class _Packing:
    def __init__(self, blocks: Sequence[Block], space: Space) -> None:
        self.blocks = blocks
        self.space = space
        self.meets = [
            [
                j
                for j, other in enumerate(blocks)
                if j != i and block.begin < other.end and other.begin < block.end
            ]
            for i, block in enumerate(blocks)
        ]
        self.at: list[int | None] = [None] * len(blocks)
        self.nodes = 0

    def greedy(self, order: Sequence[int]) -> list[int] | None:
        """Each block at the lowest address that is free during its whole life."""
        self.at = [None] * len(self.blocks)
        for index in order:
            address = self.lowest(index)
            if address is None:
                return None
            self.at[index] = address
        return [address for address in self.at if address is not None]

    def lowest(self, index: int) -> int | None:
        """The lowest address at which a block meets no placed one."""
        taken = list(self.space.reserved)
        for other in self.meets[index]:
            base = self.at[other]
            if base is not None:
                taken.append((base, base + self.blocks[other].size_bytes))
        taken.sort()
        size, alignment = self.blocks[index].size_bytes, self.space.alignment_bytes
        address = 0
        for begin, end in taken:
            if address + size <= begin:
                break
            if end > address:
                address = -(-end // alignment) * alignment
        return address if address + size <= self.space.size_bytes else None

    def search(self, nodes: int) -> list[int] | None:
        """Every order in which blocks can be laid on each other, from the bottom up.

        Any packing can be pressed down until each block rests on one below it (or on the bottom,
        or on a reserved range) and then be built in the order of its addresses.
        """
        self.at = [None] * len(self.blocks)
        self.nodes = nodes
        return [a for a in self.at if a is not None] if self._lay(0) else None

    def _lay(self, floor: int) -> bool:
        rest = [index for index, address in enumerate(self.at) if address is None]
        if not rest:
            return True
        resting = {index: self._resting(index) for index in rest}
        tops = (resting[index] + self.blocks[index].size_bytes for index in rest)
        if max(tops) > self.space.size_bytes:
            return False
        tried: set[tuple[int, int, int, int]] = set()
        for index in sorted(rest, key=lambda i: (resting[i], -self.blocks[i].size_bytes, i)):
            address = resting[index]
            block = self.blocks[index]
            alike = (address, block.begin, block.end, block.size_bytes)
            if address < floor or alike in tried or self.nodes <= 0:
                continue
            tried.add(alike)
            self.nodes -= 1
            self.at[index] = address
            if self._lay(address):
                return True
            self.at[index] = None
        return False

    def _resting(self, index: int) -> int:
        """Where a block comes to lie on top of all placed blocks that it meets."""
        address = 0
        for other in self.meets[index]:
            base = self.at[other]
            if base is not None:
                address = max(address, base + self.blocks[other].size_bytes)
        alignment = self.space.alignment_bytes
        address = -(-address // alignment) * alignment
        for begin, end in sorted(self.space.reserved):
            if begin < address + self.blocks[index].size_bytes and address < end:
                address = -(-end // alignment) * alignment
        return address

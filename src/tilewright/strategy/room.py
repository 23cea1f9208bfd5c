"""Room in scratchpads, and what is used of it, as single numbers.

Bytes in several memories are one number with a field of bits for each memory: so what two things
use together is a sum, and whether that fits takes one comparison.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

Usage = int
"""Bytes by memory, packed by `Room.use`."""

FIELD_BITS = 48
"""Bits for each memory: bytes below one half of what they can hold, so that fields never meet."""

_FIELD = (1 << FIELD_BITS) - 1
_GUARD = 1 << FIELD_BITS - 1


@dataclass(frozen=True, kw_only=True)
class Room:
    """Bytes by scratchpad."""

    sizes: Mapping[str, int]

    def use(self, memory: str, size: int) -> Usage:
        """So many bytes of a memory."""
        return size << self._shifts.get(memory, self._elsewhere)

    def each_use(self, memory: str, sizes: Sequence[int]) -> list[Usage]:
        """Each of so many bytes of a memory."""
        shift = self._shifts.get(memory, self._elsewhere)
        return [size << shift for size in sizes]

    def uses(self, sizes: Mapping[str, int]) -> Usage:
        """So many bytes of several memories."""
        return sum(self.use(memory, size) for memory, size in sizes.items())

    def fits(self, use: Usage) -> bool:
        """Whether everything has room; nothing has it in what is no scratchpad."""
        return self._limit - use & self._guards == self._guards

    def fits_beside_any(self, others: Sequence[Usage], use: Usage) -> bool:
        """Whether there is room for something beside one of some others."""
        left, guards = self._limit - use, self._guards
        # The first one mostly tells.
        return left - others[0] & guards == guards or any(
            left - other & guards == guards for other in others[1:]
        )

    def most_fitting(self, uses: Sequence[Usage], alive: Usage) -> int:
        """The number of the last of ever larger uses that has room beside what is alive; the
        first one has."""
        left, guards = self._limit - alive, self._guards
        best, low, high = 0, 1, len(uses)
        while low < high:
            middle = (low + high) // 2
            if left - uses[middle] & guards == guards:
                best, low = middle, middle + 1
            else:
                high = middle
        return best

    def share(self, use: Usage) -> float:
        """The part of the scratchpad that is filled most."""
        if use >> self._elsewhere:
            return float("inf")
        most = 0.0
        for shift, size in self._fields:
            filled = use >> shift & _FIELD
            if filled:
                most = max(most, filled / size)
        return most

    @cached_property
    def _shifts(self) -> Mapping[str, int]:
        return {memory: FIELD_BITS * at for at, memory in enumerate(self.sizes)}

    @cached_property
    def _elsewhere(self) -> int:
        """The last field is for memories that are no scratchpads."""
        return FIELD_BITS * len(self.sizes)

    @cached_property
    def _fields(self) -> tuple[tuple[int, int], ...]:
        return tuple((self._shifts[memory], size) for memory, size in self.sizes.items())

    @cached_property
    def _guards(self) -> int:
        """The highest bit of every field: what is left keeps it if nothing is missing."""
        return sum(_GUARD << FIELD_BITS * at for at in range(len(self.sizes) + 1))

    @cached_property
    def _limit(self) -> int:
        return self._guards + self.uses(self.sizes)

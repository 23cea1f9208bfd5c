"""The free bytes of one memory as sorted gaps, for callers that place and free as they go."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Bytes asked for: anywhere at a multiple of the alignment, or at one fixed address."""

    size_bytes: int
    alignment_bytes: int = 1
    address: int | None = None


class FreeList:
    """Disjoint gaps [begin, end), sorted and never touching; every change keeps them so.

    From the bottom, the smallest gap that holds the request is taken, but the topmost gap only
    if no other does: so the large rest at the top stays whole. From the top it is mirrored.
    """

    def __init__(self, capacity_bytes: int, reserved: Sequence[tuple[int, int]] = ()) -> None:
        if capacity_bytes < 0:
            raise ValueError(f"a memory of {capacity_bytes} bytes")
        self.capacity_bytes = capacity_bytes
        self._begins = [0] if capacity_bytes else []
        self._ends = [capacity_bytes] if capacity_bytes else []
        self._by_size = [(capacity_bytes, 0)] if capacity_bytes else []
        self._free_bytes = capacity_bytes
        self._high_water_bytes = 0
        for begin, end in reserved:
            self.take(begin, end)
        self._high_water_bytes = 0

    @property
    def free_bytes(self) -> int:
        """The sum of all gaps."""
        return self._free_bytes

    @property
    def largest_gap_bytes(self) -> int:
        """The size of the largest gap, 0 if nothing is free."""
        return self._by_size[-1][0] if self._by_size else 0

    @property
    def high_water_bytes(self) -> int:
        """The highest end of any range that was ever taken, reserved ranges left out."""
        return self._high_water_bytes

    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Every gap as (begin, end), lowest first."""
        return tuple(zip(self._begins, self._ends, strict=True))

    def allocate(
        self, size_bytes: int, alignment_bytes: int = 1, from_top: bool = False
    ) -> int | None:
        """Take a range by best fit and return its address; None (nothing changes) if none fits.

        >>> free = FreeList(100)
        >>> free.allocate(30), free.allocate(10, alignment_bytes=16), free.allocate(2)
        (0, 32, 30)
        >>> free.allocate(10, from_top=True)
        90
        """
        if size_bytes <= 0 or alignment_bytes <= 0:
            raise ValueError(f"{size_bytes} bytes aligned to {alignment_bytes}")
        found = self._best_fit(size_bytes, alignment_bytes, from_top)
        if found is None:
            return None
        index, address = found
        self._cut(index, address, address + size_bytes)
        return address

    def allocate_all(
        self, requests: Sequence[Request], from_top: bool = False
    ) -> tuple[int, ...] | None:
        """Place fixed requests first, then the others in their order; all of them or none."""
        high_water_bytes = self._high_water_bytes
        addresses: dict[int, int] = {}
        fixed_first = sorted(range(len(requests)), key=lambda i: (requests[i].address is None, i))
        for index in fixed_first:
            address = self._place(requests[index], from_top)
            if address is None:
                for placed, begin in addresses.items():
                    self.free(begin, begin + requests[placed].size_bytes)
                self._high_water_bytes = high_water_bytes
                return None
            addresses[index] = address
        return tuple(addresses[index] for index in range(len(requests)))

    def fits(self, requests: Sequence[Request], from_top: bool = False) -> bool:
        """Whether allocate_all would place them; nothing changes."""
        high_water_bytes = self._high_water_bytes
        addresses = self.allocate_all(requests, from_top)
        if addresses is None:
            return False
        for request, begin in zip(requests, addresses, strict=True):
            self.free(begin, begin + request.size_bytes)
        self._high_water_bytes = high_water_bytes
        return True

    def is_free(self, begin: int, end: int) -> bool:
        """Whether the whole range lies in one gap."""
        index = bisect_right(self._begins, begin) - 1
        return begin < end and index >= 0 and end <= self._ends[index]

    def take(self, begin: int, end: int) -> None:
        """Take the given range; raises ValueError if any byte of it is not free."""
        if not self.is_free(begin, end):
            raise ValueError(f"bytes [{begin}, {end}) are not all free")
        self._cut(bisect_right(self._begins, begin) - 1, begin, end)

    def free(self, begin: int, end: int) -> None:
        """Return a range and join it with its neighbours; raises ValueError if it was free."""
        begins, ends = self._begins, self._ends
        right = bisect_left(begins, begin)
        below = ends[right - 1] if right else -1
        above = begins[right] if right < len(begins) else self.capacity_bytes + 1
        if not 0 <= begin < end <= self.capacity_bytes or below > begin or above < end:
            raise ValueError(f"bytes [{begin}, {end}) are not all taken")
        self._free_bytes += end - begin
        joins_above = above == end
        if joins_above:
            end = ends[right]
            self._forget_size(above, end)
        if below == begin:
            begin = begins[right - 1]
            self._forget_size(begin, below)
            if joins_above:
                del begins[right], ends[right - 1]
            else:
                ends[right - 1] = end
        elif joins_above:
            begins[right] = begin
        else:
            begins.insert(right, begin)
            ends.insert(right, end)
        insort(self._by_size, (end - begin, begin))

    def _place(self, request: Request, from_top: bool) -> int | None:
        if request.address is None:
            return self.allocate(request.size_bytes, request.alignment_bytes, from_top)
        end = request.address + request.size_bytes
        if not self.is_free(request.address, end):
            return None
        self.take(request.address, end)
        return request.address

    def _best_fit(self, size: int, alignment: int, from_top: bool) -> tuple[int, int] | None:
        """The chosen gap's index and the address in it."""
        if not self._begins:
            return None
        last_resort = 0 if from_top else len(self._begins) - 1
        position = bisect_left(self._by_size, (size, -1))
        for item in self._from_top(position) if from_top else range(position, len(self._by_size)):
            index = bisect_left(self._begins, self._by_size[item][1])
            if index != last_resort:
                address = self._address_in(index, size, alignment, from_top)
                if address is not None:
                    return index, address
        address = self._address_in(last_resort, size, alignment, from_top)
        return None if address is None else (last_resort, address)

    def _from_top(self, position: int) -> Iterator[int]:
        """Gaps by size from one on; of equally large ones the one nearest to the top first."""
        while position < len(self._by_size):
            group_end = bisect_left(self._by_size, (self._by_size[position][0] + 1, -1), position)
            yield from range(group_end - 1, position - 1, -1)
            position = group_end

    def _address_in(self, index: int, size: int, alignment: int, from_top: bool) -> int | None:
        begin, end = self._begins[index], self._ends[index]
        if from_top:
            address = (end - size) // alignment * alignment
            return address if address >= begin else None
        address = -(-begin // alignment) * alignment
        return address if address + size <= end else None

    def _cut(self, index: int, begin: int, end: int) -> None:
        """Take [begin, end) out of one gap; what is left on both sides stays free."""
        begins, ends, by_size = self._begins, self._ends, self._by_size
        gap_begin, gap_end = begins[index], ends[index]
        self._forget_size(gap_begin, gap_end)
        self._free_bytes -= end - begin
        if end > self._high_water_bytes:
            self._high_water_bytes = end
        if gap_begin < begin:
            ends[index] = begin
            insort(by_size, (begin - gap_begin, gap_begin))
            if end < gap_end:
                begins.insert(index + 1, end)
                ends.insert(index + 1, gap_end)
                insort(by_size, (gap_end - end, end))
        elif end < gap_end:
            begins[index] = end
            insort(by_size, (gap_end - end, end))
        else:
            del begins[index], ends[index]

    def _forget_size(self, begin: int, end: int) -> None:
        del self._by_size[bisect_left(self._by_size, (end - begin, begin))]

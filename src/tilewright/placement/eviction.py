"""Linear scan that may evict: a batch is placed, if need be over ranges of the lowest weight."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.placement.free_list import FreeList, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRange:
    """A named request; the lower its weight, the sooner it is evicted."""

    name: str
    request: Request
    weight: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """Where the batch lies, and whom it pushed out, by weight, then by age."""

    addresses: tuple[int, ...]
    evicted: tuple[str, ...]


class LinearScan:
    """Ranges held in one memory; placing a batch may evict others, never one of the batch."""

    def __init__(self, free_list: FreeList) -> None:
        self.free_list = free_list
        self._held: dict[str, tuple[HeldRange, int]] = {}

    def place(
        self, batch: Sequence[HeldRange], from_top: bool = False, may_evict: bool = False
    ) -> ScanResult | None:
        """Place the whole batch or, with None, leave everything as it was."""
        requests = [item.request for item in batch]
        addresses = self.free_list.allocate_all(requests, from_top)
        evicted: tuple[str, ...] = ()
        if addresses is None and may_evict:
            addresses, evicted = self._place_over_others(requests, from_top)
        if addresses is None:
            return None
        for item, address in zip(batch, addresses, strict=True):
            self._held[item.name] = (item, address)
        return ScanResult(addresses=addresses, evicted=evicted)

    def free(self, name: str) -> None:
        """Return the range of this name."""
        item, address = self._held.pop(name)
        self.free_list.free(address, address + item.request.size_bytes)

    def _place_over_others(
        self, requests: Sequence[Request], from_top: bool
    ) -> tuple[tuple[int, ...] | None, tuple[str, ...]]:
        # sorted() is stable, so the oldest of equal weights goes first.
        by_weight = sorted(self._held.values(), key=lambda pair: pair[0].weight)
        lifted: list[tuple[HeldRange, int]] = []
        addresses = None
        for item, address in by_weight:
            self.free_list.free(address, address + item.request.size_bytes)
            lifted.append((item, address))
            addresses = self.free_list.allocate_all(requests, from_top)
            if addresses is not None:
                break
        evicted = []
        for item, address in lifted:
            end = address + item.request.size_bytes
            if self.free_list.is_free(address, end):
                self.free_list.take(address, end)
            else:
                evicted.append(item.name)
                del self._held[item.name]
        return addresses, tuple(evicted)

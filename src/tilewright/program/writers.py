"""Who wrote what lies in a buffer, and so for whom a reader waits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tilewright.program.boxes import meet
from tilewright.program.model import Box

EVERYWHERE: Final = 2**62


@dataclass(slots=True)
class Written:
    """All that was written to one place, in the order of tasks.

    `entries` also say where each box starts and stops along `axis`, the first along which the first
    two boxes differ: most boxes that are not met are told apart there.
    """

    axis: int = -1
    first: Box | None = None
    entries: list[tuple[int, int, Box | None, int, int]] = field(default_factory=list)
    """Start and stop along the axis, the box (None: anywhere), its chain and its task."""

    def ends(self, box: Box | None) -> tuple[int, int]:
        """Where a box starts and stops along the axis."""
        return (0, EVERYWHERE) if box is None or self.axis < 0 else box[self.axis]

    def add(self, box: Box | None, chain: int, task: int) -> None:
        """Note that a task of a chain writes a box."""
        if self.axis < 0 and box is not None:
            if self.first is None:
                self.first = box
            elif box != self.first:
                pairs = zip(self.first, box, strict=True)
                self.axis = next(axis for axis, (one, other) in enumerate(pairs) if one != other)
        start, stop = self.ends(box)
        self.entries.append((start, stop, box, chain, task))

    @property
    def tasks(self) -> list[int]:
        """All that wrote."""
        return [entry[4] for entry in self.entries]

    def met(self, box: Box | None) -> Iterator[tuple[int, int]]:
        """Chains and tasks that wrote to a box, or to anything (None), the latest first."""
        low, high = self.ends(box)
        for start, stop, other, chain, task in reversed(self.entries):
            is_near = start < high and low < stop
            if is_near and (box is None or other is None or meet(box, other)):
                yield chain, task


@dataclass
class Writers:
    """What was written to buffers that are no views, by tasks in chains.

    Tasks of one chain run one after the other, so the last of them is enough to wait for. Most
    buffers hold a tile and are written once: only of others there is more than the first write.
    """

    _first: dict[int, tuple[Box | None, int, int]] = field(default_factory=dict)
    """By buffer the first box that was written, its chain and its task."""
    _more: dict[int, Written] = field(default_factory=dict)
    """All boxes, where there are several."""
    _chains: dict[int, dict[int, None]] = field(default_factory=dict)
    """Their chains."""
    _known: dict[tuple[int, Box | None], tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    """How many boxes had been written when it was last asked who wrote a box, and the answer."""

    def add(self, buffer: int, box: Box | None, chain: int, task: int) -> None:
        """Note that a task of a chain writes a box of a buffer, or somewhere in it (None)."""
        first = self._first.get(buffer)
        if first is None:
            self._first[buffer] = (box, chain, task)
            return
        more = self._more.get(buffer)
        if more is None:
            more = self._more[buffer] = Written()
            more.add(*first)
            self._chains[buffer] = {first[1]: None}
        more.add(box, chain, task)
        self._chains[buffer][chain] = None

    def last(self, buffer: int, box: Box | None) -> tuple[int, ...]:
        """The last task of every chain that wrote to a box of a buffer, or to any of it (None)."""
        first = self._first.get(buffer)
        if first is None:
            return ()
        more = self._more.get(buffer)
        if more is None:
            other, _, task = first
            is_met = box is None or other is None or box == other or meet(box, other)
            return (task,) if is_met else ()
        known = self._known.get((buffer, box))
        if known is not None and known[0] == len(more.entries):
            return known[1]
        found = self._last(buffer, box)
        self._known[buffer, box] = len(more.entries), found
        return found

    def _last(self, buffer: int, box: Box | None) -> tuple[int, ...]:
        last: dict[int, int] = {}
        n_chains = len(self._chains[buffer])
        for chain, task in self._more[buffer].met(box):
            if chain not in last:
                last[chain] = task
                if len(last) == n_chains:
                    break
        return tuple(last.values())

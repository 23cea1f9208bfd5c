"""Complete search for a placement within a capacity; `_search.c` is the same, compiled.

Only canonical placements are looked for: those in which no buffer can move down to a lower place.
A placement can always be made canonical, so nothing is lost. Each step takes a buffer whose
lowest place is the lowest of its surroundings and puts it there; when that has failed, the buffer
is *skipped*: something else must come below it and raise it, and all its twins too. Parts of the
buffers that no longer meet are searched one after the other, and a part that fails leads straight
back to the step that separated it. (Canonical placements, sections and the decomposition follow
Moffitt, "MiniMalloc", ASPLOS 2023; skipping and the two ways to choose are our own.)
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from tilewright.placement.sections import UNFIXED, Instance

try:
    from tilewright.placement import _search as kernel
except ImportError:
    kernel = None  # type: ignore[assignment]  # not compiled here


class Status(Enum):
    """How a search ended."""

    EXHAUSTED = 0
    FOUND = 1
    OUT_OF_BUDGET = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """In which order buffers are tried, and whether the lowest section chooses among them."""

    order: tuple[int, ...]
    lowest_section_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a search ended, after how many placements tried, and the addresses if it found any."""

    status: Status
    nodes: int
    addresses: tuple[int, ...] = ()


def is_compiled() -> bool:
    """Whether the compiled search is there."""
    return kernel is not None


def search(
    instance: Instance,
    rule: Rule,
    capacity_bytes: int,
    node_budget: int,
    engine: Literal["fastest", "python"] = "fastest",
) -> Outcome:
    """A placement within the capacity, or the proof that there is none, or neither in time."""
    largest = max(instance.totals, default=0)
    fixed_ends = [
        address + size
        for address, size in zip(instance.fixed, instance.sizes, strict=True)
        if address != UNFIXED
    ]
    if max([largest, *fixed_ends]) > capacity_bytes:
        return Outcome(status=Status.EXHAUSTED, nodes=0)
    # A fixed buffer may have others below it, which only the order by address takes care of.
    by_section = rule.lowest_section_first and not instance.has_fixed
    if is_compiled() and engine == "fastest":
        addresses = array("q", bytes(8 * len(instance.sizes)))
        sizes, alignments, fixed, twins, s_at, s_buffers, of_at, of, n_at, n_of = instance.packed
        code, nodes = kernel.search(
            sizes, alignments, fixed, twins, array("q", rule.order),
            s_at, s_buffers, of_at, of, n_at, n_of,
            addresses, capacity_bytes, node_budget, by_section,
        )  # fmt: skip
        status = Status(code)
        found = tuple(addresses) if status is Status.FOUND else ()
        return Outcome(status=status, nodes=nodes, addresses=found)
    state = _Search(instance, rule.order, capacity_bytes, by_section)
    status = state.run(node_budget)
    found = tuple(state.address) if status is Status.FOUND else ()
    return Outcome(status=status, nodes=state.nodes, addresses=found)


@dataclass(slots=True)
class _Part:
    """Buffers to place that meet no others, in the order of the rule; then the next part."""

    buffers: list[int]
    retreat: int
    following: "_Part | None"


@dataclass(slots=True)
class _Frame:
    part: _Part
    mark: int
    chosen: int = -1


class _Search:
    def __init__(
        self, instance: Instance, order: Sequence[int], capacity: int, by_section: bool
    ) -> None:
        self.instance = instance
        self.order = order
        self.capacity = capacity
        self.by_section = by_section
        self.rank = {j: place for place, j in enumerate(order)}
        count = len(instance.sizes)
        # The lowest place above everything placed so far, and where a buffer was skipped.
        self.low = [0 if address == UNFIXED else address for address in instance.fixed]
        self.skipped_at = [-1] * count
        self.estimate = [0] * count
        self.placed = [False] * count
        self.address = [0] * count
        self.remaining = [sum(instance.sizes[j] for j in s) for s in instance.sections]
        self.lowest: dict[int, int] = {}
        self.trail: list[tuple[list[int] | None, int, int]] = []
        self.nodes = 0

    def run(self, node_budget: int) -> Status:
        head = self._chained(self._split(self.order), -1, None)
        frames: list[_Frame] = []
        while head is not None:
            frames.append(_Frame(part=head, mark=len(self.trail)))
            while True:
                frame = frames[-1]
                chosen = self._next_choice(frame)
                if chosen < 0:
                    if frame.part.retreat < 0:
                        return Status.EXHAUSTED
                    del frames[frame.part.retreat + 1 :]
                    continue
                if self.nodes >= node_budget:
                    return Status.OUT_OF_BUDGET
                self.nodes += 1
                frame.chosen = chosen
                rest = [j for j in frame.part.buffers if j != chosen]
                if self._place(chosen) and self._may_fit(rest):
                    parts = self._split(rest)
                    head = self._chained(parts, len(frames) - 1, frame.part.following)
                    break
        return Status.FOUND

    def _next_choice(self, frame: _Frame) -> int:
        """The buffer to place next in this frame, -1 if no choice is left."""
        self._undo(frame.mark)
        buffers = frame.part.buffers
        if frame.chosen >= 0:
            if self.instance.fixed[frame.chosen] != UNFIXED:
                return -1
            self._skip(buffers, frame.chosen)
            frame.mark = len(self.trail)
            if not self._may_fit(buffers):
                return -1
        return self._first_in_lowest_section(buffers) if self.by_section else self._first(buffers)

    def _is_skipped(self, j: int) -> bool:
        return self.skipped_at[j] == self.low[j]

    def _undo(self, mark: int) -> None:
        while len(self.trail) > mark:
            changed, index, value = self.trail.pop()
            if changed is not None:
                changed[index] = value
                continue
            self.placed[index] = False
            for section in self.instance.sections_of[index]:
                self.remaining[section] += self.instance.sizes[index]

    def _place(self, chosen: int) -> bool:
        """Put a buffer on its lowest place; False if that covers a fixed one."""
        instance = self.instance
        end = self.low[chosen] + instance.sizes[chosen]
        self.address[chosen] = self.low[chosen]
        self.placed[chosen] = True
        self.trail.append((None, chosen, 0))
        for section in instance.sections_of[chosen]:
            self.remaining[section] -= instance.sizes[chosen]
        for j in instance.neighbours[chosen]:
            if self.placed[j] or self.low[j] >= end:
                continue
            if instance.fixed[j] != UNFIXED:
                return False
            self.trail.append((self.low, j, self.low[j]))
            self.low[j] = -(-end // instance.alignments[j]) * instance.alignments[j]
        return True

    def _skip(self, buffers: Sequence[int], chosen: int) -> None:
        twins = self.instance.twins
        for j in buffers:
            if twins[j] == twins[chosen] and not self._is_skipped(j):
                self.trail.append((self.skipped_at, j, self.skipped_at[j]))
                self.skipped_at[j] = self.low[j]

    def _may_fit(self, buffers: Sequence[int]) -> bool:
        """Whether no section is seen to overflow when every buffer lies as low as it can."""
        for j in buffers:
            self.estimate[j] = self.low[j]
        if not self._raise_skipped(buffers):
            return False
        self.lowest = {}
        for j in buffers:
            estimate = self.estimate[j]
            for section in self.instance.sections_of[j]:
                if estimate < self.lowest.get(section, estimate + 1):
                    self.lowest[section] = estimate
        return all(
            lowest + self.remaining[section] <= self.capacity
            for section, lowest in self.lowest.items()
        )

    def _raise_skipped(self, buffers: Sequence[int]) -> bool:
        """A skipped buffer rests on a neighbour yet to come; False if none can be near enough."""
        instance = self.instance
        for _ in range(2):
            changed = False
            for j in buffers:
                if not self._is_skipped(j):
                    continue
                coming = [k for k in instance.neighbours[j] if not self.placed[k]]
                begin = min((self.estimate[k] for k in coming), default=None)
                # With nothing to come within its height it could still move down: not canonical.
                if begin is None or begin >= self.low[j] + instance.sizes[j]:
                    return False
                support = min(self.estimate[k] + instance.sizes[k] for k in coming)
                support = -(-support // instance.alignments[j]) * instance.alignments[j]
                if support > self.estimate[j]:
                    self.estimate[j] = support
                    changed = True
                if self.estimate[j] + instance.sizes[j] > self.capacity:
                    return False
            if not changed:
                break
        return True

    def _first(self, buffers: Sequence[int]) -> int:
        choices = (j for j in buffers if not self._is_skipped(j))
        return min(choices, key=lambda j: self.low[j], default=-1)

    def _first_in_lowest_section(self, buffers: Sequence[int]) -> int:
        if not self._may_fit(buffers):
            return -1
        instance = self.instance
        best: list[int] = []
        lowest = None
        for section, low in self.lowest.items():
            if lowest is not None and low >= lowest:
                continue
            choices = self._choices(instance.sections[section])
            if choices:
                best, lowest = choices, low
        chosen = -1
        while best:
            chosen = min(best, key=lambda j: (self.low[j], self.rank[j]))
            limit = self.low[chosen]
            around = self._choices(instance.neighbours[chosen])
            best = [j for j in around if self.low[j] + instance.sizes[j] <= limit]
        return chosen

    def _choices(self, buffers: Sequence[int]) -> list[int]:
        return [j for j in buffers if not self.placed[j] and not self._is_skipped(j)]

    def _split(self, buffers: Sequence[int]) -> list[list[int]]:
        """What is not yet placed of them, in parts that share no section, smallest first."""
        label: dict[int, int] = {}
        parts: list[list[int]] = []
        for root in buffers:
            if self.placed[root] or root in label:
                continue
            label[root] = len(parts)
            stack = [root]
            while stack:
                for j in self.instance.neighbours[stack.pop()]:
                    if not self.placed[j] and j not in label:
                        label[j] = len(parts)
                        stack.append(j)
            parts.append([])
        for j in buffers:
            if not self.placed[j]:
                parts[label[j]].append(j)
        return sorted(parts, key=len)

    def _chained(
        self, parts: Sequence[list[int]], retreat: int, following: _Part | None
    ) -> _Part | None:
        for buffers in reversed(parts):
            following = _Part(buffers=buffers, retreat=retreat, following=following)
        return following

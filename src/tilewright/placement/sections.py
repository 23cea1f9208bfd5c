"""Lives as sections: the moments at which a largest set of buffers is alive together."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain

from tilewright.placement.meetings import meetings_of
from tilewright.placement.problem import Buffer

UNFIXED = -1


@dataclass(frozen=True, kw_only=True)
class Instance:
    """Buffers as numbers. Two buffers are alive together just if they share a section.

    Sections whose buffers are all in another section are left out: they add no constraint.
    Twins (equal numbers) are buffers that may be exchanged without any effect.
    """

    sizes: tuple[int, ...]
    alignments: tuple[int, ...]
    fixed: tuple[int, ...]
    twins: tuple[int, ...]
    sections: tuple[tuple[int, ...], ...]
    sections_of: tuple[tuple[int, ...], ...]
    neighbours: tuple[tuple[int, ...], ...]

    @cached_property
    def has_fixed(self) -> bool:
        """Whether any buffer has a given address."""
        return any(address != UNFIXED for address in self.fixed)

    @cached_property
    def totals(self) -> tuple[int, ...]:
        """The bytes alive in each section."""
        return tuple(sum(self.sizes[j] for j in section) for section in self.sections)

    @cached_property
    def packed(self) -> "tuple[array[int], ...]":
        """The same as flat arrays, for the compiled search."""
        flat = [array("q", numbers) for numbers in (self.sizes, self.alignments, self.fixed)]
        flat.append(array("q", self.twins))
        for lists in (self.sections, self.sections_of, self.neighbours):
            flat.append(array("q", accumulate(map(len, lists), initial=0)))
            flat.append(array("q", chain.from_iterable(lists)))
        return tuple(flat)


def instance_of(buffers: Sequence[Buffer]) -> Instance:
    """Buffers, none of them of size 0, as numbers."""
    sections = live_sets(buffers)
    sections_of: list[list[int]] = [[] for _ in buffers]
    for number, section in enumerate(sections):
        for j in section:
            sections_of[j].append(number)
    meetings = meetings_of(buffers)
    assert meetings is not None
    twins: dict[tuple[object, ...], int] = {}
    twin = []
    for j, buffer in enumerate(buffers):
        unique = () if buffer.address is None and buffer.hint is None else (j,)
        key = (*sections_of[j], -1, buffer.size_bytes, buffer.alignment_bytes, *unique)
        twin.append(twins.setdefault(key, j))
    return Instance(
        sizes=tuple(buffer.size_bytes for buffer in buffers),
        alignments=tuple(buffer.alignment_bytes for buffer in buffers),
        fixed=tuple(UNFIXED if b.address is None else b.address for b in buffers),
        twins=tuple(twin),
        sections=tuple(sections),
        sections_of=tuple(map(tuple, sections_of)),
        neighbours=tuple([tuple(sorted(meetings.of(j))) for j in range(len(buffers))]),
    )


def live_sets(buffers: Sequence[Buffer]) -> list[tuple[int, ...]]:
    """The buffers alive just before each cycle in which one ends after others have begun."""
    events = sorted(
        event
        for j, buffer in enumerate(buffers)
        for start, end in buffer.lives
        # At one cycle ends come before starts, because lives are half-open.
        for event in ((start, 1, j), (end, 0, j))
    )
    alive: dict[int, None] = {}
    sets = []
    grown = False
    for _, is_start, j in events:
        if is_start:
            alive[j] = None
            grown = True
            continue
        if grown:
            sets.append(tuple(sorted(alive)))
            grown = False
        del alive[j]
    return sets


def time_parts(buffers: Sequence[Buffer]) -> list[tuple[int, ...]]:
    """Indices of buffers, in parts between which no buffer is alive, earliest first."""
    starts = [buffer.start_cycle for buffer in buffers]
    ends = [buffer.end_cycle for buffer in buffers]
    parts: list[list[int]] = []
    reach = 0
    for j in sorted(range(len(buffers)), key=starts.__getitem__):
        if not parts or starts[j] >= reach:
            parts.append([])
            reach = ends[j]
        parts[-1].append(j)
        if ends[j] > reach:
            reach = ends[j]
    return [tuple(sorted(part)) for part in parts]

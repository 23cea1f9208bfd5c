"""Spans: consecutive stages as a cascade, and what that takes, before anything is lowered.

In the long run every stage of a cascade makes rows at a fixed rate: `rate` rows for every row of
the last result, and `lead` rows ahead of it. What has to be held between two stages follows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from tilewright.program.rows import RowRead, Rows, StageRows
from tilewright.program.slicing import Slicing, slicing
from tilewright.units import packed_bytes


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a stage makes rows, and how far it is ahead of the last one."""

    rate: float
    lead: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Rows of a tensor that are held: those between its readers, and what comes at once."""

    window: int
    growth: float
    """Rows that come for every row of the last result."""
    least_growth: float
    """Rows that come when every stage makes one row at a time."""
    length: int
    row_elements: int
    bits: int

    def rows(self, step: int, *, eager: bool) -> int:
        """Rows for a step."""
        coming = ceil(self.growth * step if eager else self.least_growth)
        return min(self.window + max(1, coming), self.length)

    def sliced_elements(self, length: int, piece: int) -> int:
        """Elements if rows come one step at a time, `piece` of `length` channels at once."""
        coming = min(self.length, max(1, ceil(self.least_growth)))
        waiting = min(self.window, self.length)
        return self.row_elements * waiting + self.row_elements // length * piece * coming


@dataclass(frozen=True, kw_only=True)
class Span:
    """Stages `first` to `last` along an axis of the last result."""

    rows: Rows
    first: int
    last: int
    axis: int
    linked: Mapping[int, StageRows]
    tail: "Span | None"
    """The same without the first stage: what that does not touch is known from there."""

    @cached_property
    def private(self) -> tuple[str, ...]:
        """Tensors that never leave the cascade, in a fixed order."""
        known = () if self.tail is None else self.tail.private
        stage = self.linked[self.first]
        touched = dict.fromkeys((stage.root, *(read.root for read in stage.reads)))
        return (*(root for root in touched if self.rows.is_private(root, self.linked)), *known)

    @cached_property
    def readers(self) -> Mapping[str, Sequence[tuple[int, RowRead]]]:
        """Who reads rows of each tensor."""
        known = {} if self.tail is None else self.tail.readers
        found: dict[str, list[tuple[int, RowRead]]] = {}
        for read in self.linked[self.first].reads:
            found.setdefault(read.root, []).append((self.first, read))
        for root, readers in found.items():
            readers.extend(known.get(root, ()))
        return {**known, **found}

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Tensors that come from outside the cascade row by row."""
        made = {stage.root for stage in self.linked.values()}
        return tuple(root for root in self.readers if root not in made)

    @cached_property
    def wholes(self) -> tuple[str, ...]:
        """Tensors that are read as a whole all the time."""
        names = [name for n in sorted(self.linked) for name in self.linked[n].wholes]
        return tuple(dict.fromkeys(self.rows.storage[name].root for name in names))

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Stages whose results leave the cascade."""
        inside = set(self.private)
        return tuple(n for n in sorted(self.linked) if self.linked[n].root not in inside)

    @cached_property
    def crossing(self) -> tuple[str, ...]:
        """Tensors that are also there before or after the cascade."""
        ends = (self.linked[number].root for number in self.ends)
        return tuple(dict.fromkeys((*self.inputs, *self.wholes, *ends)))

    @property
    def size(self) -> int:
        """Rows of the last result."""
        return self.linked[self.last].size

    @cached_property
    def steps(self) -> Sequence[tuple[int, bool]]:
        """Steps from the one that takes least memory to all rows at once; the first not eager."""
        found = [(1, False)]
        step = 1
        while step < self.size:
            found.append((step, True))
            step *= 2
        return (*found, (self.size, True))

    @cached_property
    def paces(self) -> Mapping[int, Pace]:
        """The pace of every stage."""
        found = {} if self.tail is None else dict(self.tail.paces)
        stage = self.linked[self.first]
        takes = [_taken(read, found[n]) for n, read in self._readers_of(self.first)]
        rate, lead = (stage.size / self.size, 0.0) if not takes else (0.0, 0.0)
        rate = max([rate, *(pace.rate for pace in takes)])
        found[self.first] = Pace(rate, max([lead, *(pace.lead for pace in takes)]))
        return found

    def _readers_of(self, number: int) -> list[tuple[int, RowRead]]:
        readers = self.readers.get(self.linked[number].root, [])
        return [(n, r) for n, r in readers if self.rows.makes(number, r.tensor)]

    @cached_property
    def holds(self) -> Mapping[str, Hold]:
        """What is held of each tensor, as a function of the step."""
        found = {} if self.tail is None else dict(self.tail.holds)
        for read in self.linked[self.first].reads:
            found[read.root] = self._hold(read.root)
        return found

    def _hold(self, root: str) -> Hold:
        readers = self.readers[root]
        ratios = [(read.factor / read.divisor, self.paces[n], read) for n, read in readers]
        ahead = max(_taken(read, pace).lead for _, pace, read in ratios)
        behind = min(ratio * pace.lead + read.low / read.divisor for ratio, pace, read in ratios)
        tensor, length = self.rows.network.by_name[root], readers[0][1].size
        return Hold(
            window=max(0, ceil(ahead - behind)),
            growth=max(ratio * pace.rate for ratio, pace, _ in ratios),
            least_growth=max(ratio for ratio, _, _ in ratios),
            length=length,
            row_elements=tensor.elements // length,
            bits=tensor.bits,
        )

    @cached_property
    def on_demand(self) -> Mapping[str, Slicing]:
        """Tensors that can be made in slices."""
        found = {}
        for number, stage in self.linked.items():
            way = slicing(self.rows, self.linked, number)
            if way is not None:
                found[stage.root] = way
        return found

    def sliced_bytes(self, root: str, piece: int) -> int:
        """Bytes held of a tensor that is made on demand, so many channels at a time."""
        hold, axis = self.holds[root], self.on_demand[root].axis
        length = self.rows.network.by_name[root].shape[axis]
        return packed_bytes(hold.sliced_elements(length, min(piece, length)), hold.bits)

    def held_bytes(self, root: str, step: int, *, eager: bool) -> int:
        """Bytes of a tensor that are held."""
        hold = self.holds[root]
        return packed_bytes(hold.row_elements * hold.rows(step, eager=eager), hold.bits)

    def made_bytes(self, number: int, step: int, *, eager: bool) -> int:
        """Bytes of a stage's result that it makes at once."""
        stage = self.linked[number]
        rows = min(stage.size, ceil(self.paces[number].rate * step) if eager else 1)
        tensor = self.rows.network.by_name[self.rows.stages[number].results[0].tensor]
        return packed_bytes(tensor.elements // stage.size * rows, tensor.bits)


def span_of(rows: Rows, first: int, last: int, axis: int) -> Span | None:
    """A span, if the stages can run as a cascade; the same one every time."""
    key = first, last, axis
    if key not in rows.remembered:
        tail = span_of(rows, first + 1, last, axis) if first < last else None
        # Stages that cannot go together cannot with another one before them either.
        is_open = tail is not None or first == last
        linked = rows.linked(*key) if is_open else None
        rows.remembered[key] = (
            None
            if linked is None
            else Span(rows=rows, first=first, last=last, axis=axis, linked=linked, tail=tail)
        )
    found = rows.remembered[key]
    return found if isinstance(found, Span) else None


def _taken(read: RowRead, pace: Pace) -> Pace:
    """The pace at which rows of a tensor are wanted by a stage that has a pace."""
    ratio = read.factor / read.divisor
    return Pace(
        rate=ratio * pace.rate,
        lead=ratio * pace.lead + (read.high - read.factor) / read.divisor + 1,
    )

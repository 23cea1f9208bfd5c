"""Spans: consecutive stages as a cascade, and what that takes, before anything is lowered.

In the long run every stage of a cascade makes rows at a fixed rate: `rate` rows for every row of
the last result, and `lead` rows ahead of it. What has to be held between two stages follows.

Thousands of spans are looked at for a network. Each is made from its tail, the span without its
first stage, of which it changes little.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple

from tilewright.once import once
from tilewright.program.rows import RowRead, Rows, StageRows, unfinished_bits
from tilewright.program.slicing import Slicing, slicing
from tilewright.records import quickly_made
from tilewright.units import packed_bytes


@quickly_made
class Pace(NamedTuple):
    """How fast a stage makes rows, and how far it is ahead of the last one."""

    rate: float
    lead: float


@quickly_made
class Hold(NamedTuple):
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

    def waiting_elements(self, length: int, piece: int) -> int:
        """Elements if rows come one at a time, `piece` of `length` channels at once, and wait."""
        coming = min(self.length, max(1, ceil(self.least_growth)))
        waiting = min(self.window, self.length)
        return self.row_elements * waiting + self.row_elements // length * piece * coming


Readers = Mapping[str, Sequence[tuple[int, RowRead]]]
"""By storage the stages that read rows of it, in their order."""


@quickly_made
@dataclass(kw_only=True, eq=False)
class Span:
    """Stages `first` to `last` along an axis of the last result."""

    rows: Rows
    first: int
    last: int
    axis: int
    size: int
    """Rows of the last result."""
    steps: Sequence[tuple[int, bool]]
    """Steps from the one that takes least memory to all rows at once; the first is not eager where
    stages can make single rows."""
    linked: Mapping[int, StageRows]
    tail: "Span | None"
    axes: Mapping[str, int]
    """By storage the axis along which the span goes through it."""
    made: frozenset[str]
    """Storages in which results of the stages lie."""
    readers: Readers
    inputs: tuple[str, ...]
    """Tensors that come from outside the cascade row by row."""
    whole_names: tuple[str, ...]
    """Tensors that some stage reads as a whole all the time, in the order of stages."""
    wholes: tuple[str, ...]
    """The storages of those."""
    settled: tuple[str, ...]
    """Tensors that never leave the span, but would leave the tail."""
    private: tuple[str, ...]
    """All tensors that never leave the span, in a fixed order."""
    ends: tuple[int, ...]
    """Stages whose results leave the span."""
    paces: Mapping[int, Pace]
    """The pace of every stage."""
    holds: Mapping[str, Hold]
    """What is held of each tensor, as a function of the step."""
    reduces: bool
    """Whether a result is made of all rows of another one."""

    @property
    def crossing(self) -> tuple[str, ...]:
        """Tensors that are also there before or after the cascade."""
        ends = (self.linked[number].root for number in self.ends)
        return tuple(dict.fromkeys((*self.inputs, *self.wholes, *ends)))

    @once
    def on_demand(self) -> Mapping[str, Slicing]:
        """Tensors that can be made in slices: private ones, whose readers are all known."""
        found = {} if self.tail is None else dict(self.tail.on_demand)
        for number, stage in self.linked.items():
            way = slicing(self.rows, self.linked, number) if stage.root in self.settled else None
            if way is not None:
                found[stage.root] = way
        return found

    def sliced_bytes(self, root: str, piece: int, *, forgets: bool, number: int = 0) -> int:
        """Bytes held of a tensor that is made on demand, so many channels at a time.

        With `forgets` the rows that wait otherwise are made again, too, in every step.
        """
        hold, axis = self.holds[root], self.on_demand[root].axis
        length = self.rows.network.by_name[root].shape[axis]
        piece = min(piece, length)
        if not forgets:
            return packed_bytes(hold.waiting_elements(length, piece), hold.bits)
        step, eager = self.steps[number]
        return packed_bytes(
            hold.row_elements // length * piece * hold.rows(step, eager=eager), hold.bits
        )

    def made_bytes(self, number: int, step: int, *, eager: bool) -> int:
        """Bytes of a stage's result that it makes at once."""
        stage = self.linked[number]
        if stage.reduces:
            op = self.rows.stages[number].op
            made = self.rows.network.by_name[op.outputs[0].tensor]
            return packed_bytes(made.elements, unfinished_bits(op))
        rows = self.made_rows(number, step, eager=eager)
        tensor = self.rows.network.by_name[self.rows.stages[number].results[0].tensor]
        return packed_bytes(tensor.elements // stage.size * rows, tensor.bits)

    def made_rows(self, number: int, step: int, *, eager: bool) -> int:
        """Rows of a stage's result that it makes at once."""
        rows = ceil(self.paces[number].rate * step) if eager else 1
        return min(self.linked[number].size, rows)


def span_of(rows: Rows, first: int, last: int, axis: int) -> Span | None:
    """A span, if the stages can run as a cascade; the same one every time."""
    key = first, last, axis
    if key not in rows.remembered:
        tail = span_of(rows, first + 1, last, axis) if first < last else None
        # Stages that cannot go together cannot with another one before them either.
        is_open = tail is not None or first == last
        rows.remembered[key] = _grown(rows, tail, first, axis) if is_open else None
    found = rows.remembered[key]
    return found if isinstance(found, Span) else None


def _grown(rows: Rows, tail: Span | None, first: int, axis: int) -> Span | None:
    """A tail with another stage before it; None if that one cannot go along."""
    found = _linked(rows, tail, first, axis)
    if found is None:
        return None
    stage, axes = found
    before = _of_no_stages(rows, first, axis, stage) if tail is None else tail
    made = before.made | {stage.root}
    readers = _readers(before.readers, first, stage)
    touched = dict.fromkeys((stage.root, *[read.root for read in stage.reads]))
    settled = tuple(
        [
            root
            for root in touched
            if root in made and root in readers and rows.is_used_within(root, first, before.last)
        ]
    )
    ends = before.ends
    if settled:
        ends = tuple([number for number in ends if before.linked[number].root not in settled])
    whole_names, wholes = before.whole_names, before.wholes
    if stage.wholes:
        whole_names = (*stage.wholes, *whole_names)
        wholes = tuple(dict.fromkeys([rows.storage[name].root for name in whole_names]))
    paces = {**before.paces, first: _pace(before, first, stage)}
    holds = dict(before.holds)
    for read in stage.reads:
        holds[read.root] = _hold(rows, read.root, readers[read.root], paces)
    return Span(
        rows=rows,
        first=first,
        last=before.last,
        axis=axis,
        size=before.size,
        steps=before.steps,
        linked={**before.linked, first: stage},
        tail=tail,
        axes=axes,
        made=made,
        readers=readers,
        inputs=_inputs(before, first, stage, made),
        whole_names=whole_names,
        wholes=wholes,
        settled=settled,
        private=(*settled, *before.private),
        ends=ends if stage.root in settled else (first, *ends),
        paces=paces,
        holds=holds,
        reduces=stage.reduces or before.reduces,
    )


def _inputs(before: Span, first: int, stage: StageRows, made: frozenset[str]) -> tuple[str, ...]:
    """Tensors that come from outside row by row: as before, without what the new stage makes, and
    with what it is the first to read.

    Of a concatenation some parts may be there before the first stage: they come as well.
    """
    users = before.rows.users
    found = [r for r in before.inputs if r != stage.root or users[r][0] < first]
    for read in stage.reads:
        root = read.root
        is_there = root not in made or users[root][0] < first
        if is_there and root not in before.readers and root not in found:
            found.append(root)
    return tuple(found)


def _linked(
    rows: Rows, tail: Span | None, first: int, axis: int
) -> tuple[StageRows, Mapping[str, int]] | None:
    """The rows of a stage in front of a tail, and the axes of all storages.

    None if it has no such rows, or reads a result as a whole, or makes what is so read.
    """
    axes = {} if tail is None else dict(tail.axes)
    stage = rows.of(first, axes.setdefault(rows.root(first), axis))
    if stage is None:
        return None
    for read in stage.reads:
        if axes.setdefault(read.root, read.axis) != read.axis:
            return None
    last = first if tail is None else tail.last
    if any(rows.makers(name, range(first, last + 1)) for name in stage.wholes):
        return None
    if tail is not None and any(rows.makes(first, name) for name in tail.whole_names):
        return None
    return stage, axes


def _of_no_stages(rows: Rows, last: int, axis: int, stage: StageRows) -> Span:
    """What comes before the last stage of all spans that end with it."""
    step = rows.stages[last].multiple(stage.loop)
    steps = [(step, step > 1)]
    while step < stage.size:
        steps.append((step, True))
        step *= 2
    return Span(
        rows=rows,
        first=last + 1,
        last=last,
        axis=axis,
        size=stage.size,
        steps=(*steps, (stage.size, True)),
        linked={},
        tail=None,
        axes={},
        made=frozenset(),
        readers={},
        inputs=(),
        whole_names=(),
        wholes=(),
        settled=(),
        private=(),
        ends=(),
        paces={},
        holds={},
        reduces=False,
    )


def _readers(known: Readers, first: int, stage: StageRows) -> Readers:
    """Who reads rows of each storage, a stage before all those that are known."""
    found: dict[str, list[tuple[int, RowRead]]] = {}
    for read in stage.reads:
        found.setdefault(read.root, []).append((first, read))
    for root, readers in found.items():
        readers.extend(known.get(root, ()))
    return {**known, **found}


def _pace(tail: Span, first: int, stage: StageRows) -> Pace:
    """The pace of a stage before a tail, from those who read what it makes."""
    taking = [
        (tail.paces[number], read)
        for number, read in tail.readers.get(stage.root, ())
        if tail.rows.makes(first, read.tensor)
    ]
    if not taking:
        return Pace(stage.size / tail.size, 0.0)
    return Pace(
        rate=max([read.factor / read.divisor * pace.rate for pace, read in taking]),
        lead=max([0.0, *[_wanted_lead(read, pace.lead) for pace, read in taking]]),
    )


def _hold(
    rows: Rows,
    root: str,
    readers: Sequence[tuple[int, RowRead]],
    paces: Mapping[int, Pace],
) -> Hold:
    """What is held of a tensor for those who read it."""
    ahead, behind, growth, least_growth = -inf, inf, 0.0, 0.0
    for number, read in readers:
        ratio, pace = read.factor / read.divisor, paces[number]
        ahead = max(ahead, _wanted_lead(read, pace.lead))
        behind = min(behind, ratio * pace.lead + read.low / read.divisor)
        growth = max(growth, ratio * pace.rate)
        least_growth = max(least_growth, ratio)
    tensor, length = rows.network.by_name[root], readers[0][1].size
    return Hold(
        window=max(0, ceil(ahead - behind)),
        growth=growth,
        least_growth=least_growth,
        length=length,
        row_elements=tensor.elements // length,
        bits=tensor.bits,
    )


def _wanted_lead(read: RowRead, lead: float) -> float:
    """How far ahead rows of a tensor are wanted by a stage that is so far ahead itself."""
    return read.factor / read.divisor * lead + (read.high - read.factor) / read.divisor + 1

"""Cascades: stages that run side by side, some rows at a time, with rolling buffers between them.

*Rows* are positions along one axis of every tensor in the cascade: its height, or its channels, or
the tokens of a text. The last stage is asked for a few rows, asks the stages before it for those
rows that this takes, and so on; between two stages only rows that are still needed are held.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import lcm
from typing import Final

from tilewright.program.rows import Rows, StageRows
from tilewright.program.slicing import Slicing, slicing
from tilewright.records import quickly_made


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """Stages `first` to `last`, both included, cut along `axis` of the last one's result.

    Every step makes `step` rows of the last result, and as many of the others as that takes;
    unless it is `eager`, one row at a time, which needs the least memory and the most tasks.
    With `~axis` these are rows of what the last one picks elements from.
    """

    first: int
    last: int
    axis: int
    step: int
    eager: bool = True
    ahead: bool = False
    """Whether there is room for the rows of the next step beside those of the step at hand."""
    on_demand: tuple[int, ...] = ()
    """Stages that make slices of their rows only when these are read: see `slicing`."""
    forgets: bool = False
    """Whether such slices are made again for every row that needs them, and none wait."""

    @property
    def stages(self) -> range:
        """The numbers of the stages."""
        return range(self.first, self.last + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """Which stages run as cascades, and which tensors wait outside the scratchpads.

    With `gone` given, everything else that can be kept is; without, every op decides for itself.
    A `frugal` strategy holds no tile that the next task does not need: it comes again instead.
    With `cores` given, no more of them get work.
    """

    cascades: tuple[Cascade, ...] = ()
    gone: tuple[str, ...] | None = None
    frugal: bool = False
    cores: int | None = None


PLAIN: Final = Strategy()


@quickly_made
@dataclass(frozen=True, slots=True)
class Turn:
    """A stage makes rows [start, stop) of its result."""

    stage: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Roll:
    """A tensor of which only `rows` rows along `axis` are held at once, row r in place r % rows."""

    axis: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A cascade step by step.

    `rolls` has the tensors that nobody outside the cascade wants, `inputs` those that come from
    outside it row by row, as they are held if they are not there as a whole anyway.
    """

    cascade: Cascade
    loops: Mapping[int, str]
    """The loop of each stage that walks the rows of its result."""
    turns: tuple[Turn, ...]
    rolls: Mapping[str, Roll]
    inputs: Mapping[str, Roll]
    pieces: Mapping[str, Roll]
    """Tensors that are made on demand: the rows that wait when others come."""
    slicings: Mapping[int, Slicing]
    """How such tensors are cut, by the stage that reads them."""
    reducing: tuple[int, ...] = ()
    """Stages whose result is made of all rows that they read."""
    passing: Mapping[str, Roll] = field(default_factory=dict)
    """Tensors whose rows are all read before others come: each turn's are there only until then."""
    together: tuple[tuple[str, ...], ...] = ()
    """Which of those are there at the same time."""

    @cached_property
    def turn_counts(self) -> Mapping[int, Counter[int]]:
        """By stage, how many of its turns make so many rows."""
        found = {stage: Counter[int]() for stage in self.cascade.stages}
        for turn in self.turns:
            found[turn.stage][turn.stop - turn.start] += 1
        return found

    def turn_rows(self, stage: int) -> int:
        """The most rows that a stage makes at once."""
        return max(self.turn_counts[stage])

    def slicing_of(self, maker: int) -> Slicing:
        """How what a stage makes on demand is cut."""
        return next(way for way in self.slicings.values() if way.maker == maker)


def flow_of(rows: Rows, cascade: Cascade) -> Flow | None:
    """A cascade step by step; None if these stages cannot run so."""
    linked = rows.linked(cascade.first, cascade.last, cascade.axis)
    return None if linked is None else _Flowing(rows, linked, cascade).flow()


class _Flowing:
    """Asks stages for rows, and watches how many rows of each tensor are held."""

    def __init__(self, rows: Rows, linked: Mapping[int, StageRows], cascade: Cascade) -> None:
        self.rows = rows
        self.linked = linked
        self.cascade = cascade
        self.readers = rows.readers(linked)
        self.makers = {
            (number, read.tensor): rows.makers(read.tensor, cascade.stages)
            for number in cascade.stages
            for read in linked[number].reads
        }
        self.made = {stage.root for stage in linked.values()}
        self.inside = rows.private(linked)
        self.on_demand = {linked[number].root for number in cascade.on_demand}
        self.wanted = self._wanted_rows()
        self.multiples = {n: rows.stages[n].multiple(linked[n].loop) for n in cascade.stages}
        whole = lcm(*self.multiples.values())
        self.step = -(-cascade.step // whole) * whole
        self.most = self._most_rows()
        self.done = {number: start for number, (start, _) in self.wanted.items()}
        self.turns: list[Turn] = []
        self.held: dict[str, int] = {}
        self.arrived: dict[str, int] = {}
        self.largest: dict[str, int] = {}
        self.waiting: dict[str, int] = {}

    def flow(self) -> Flow:
        """Run everything."""
        for goals in self._goals():
            for number, upto in goals.items():
                self._make(number, upto)
        rolls = {root: self._roll(root) for root in self.held}
        passing = [root for root in rolls if self.cascade.forgets and self._passes(root)]
        return Flow(
            cascade=self.cascade,
            loops={number: self.linked[number].loop for number in self.cascade.stages},
            turns=tuple(self.turns),
            rolls={
                root: roll
                for root, roll in rolls.items()
                if root in self.inside and root not in self.on_demand and root not in passing
            },
            inputs={root: roll for root, roll in rolls.items() if self._comes_by_row(root)},
            pieces={
                root: Roll(self._axis(root), 0 if self.cascade.forgets else waiting)
                for root, waiting in self.waiting.items()
                if root in self.on_demand
            },
            slicings=self._slicings(),
            reducing=tuple(n for n in self.cascade.stages if self.linked[n].reduces),
            passing={root: Roll(self._axis(root), self.largest[root]) for root in passing},
            together=tuple(dict.fromkeys(self._together(passing) if passing else ())),
        )

    def _passes(self, root: str) -> bool:
        """Whether no row of a tensor waits for others, and nobody knows it under another name."""
        return (
            root in self.inside
            and root not in self.on_demand
            and root not in self.rows.joined
            and not self.waiting[root]
        )

    def _together(self, passing: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """By turn, the last one first, the passing tensors that are there."""
        wanted: dict[str, None] = {}
        for turn in reversed(self.turns):
            stage = self.linked[turn.stage]
            wanted |= {read.root: None for read in stage.reads}
            there = {**wanted, stage.root: None}
            yield tuple([root for root in passing if root in there])
            wanted.pop(stage.root, None)

    def _slicings(self) -> dict[int, Slicing]:
        found = [slicing(self.rows, self.linked, number) for number in self.cascade.on_demand]
        return {way.reader: way for way in found if way is not None}

    def _comes_by_row(self, root: str) -> bool:
        """Whether a tensor comes from outside and nobody here reads it as a whole as well."""
        wholes = [name for stage in self.linked.values() for name in stage.wholes]
        return root not in self.made and all(
            self.rows.storage[name].root != root for name in wholes
        )

    def _roll(self, root: str) -> Roll:
        axis, rows = self._axis(root), self.held[root]
        if self.cascade.ahead:
            rows += self.largest[root]
        return Roll(axis, min(rows, self.rows.network.by_name[root].shape[axis]))

    def _axis(self, root: str) -> int:
        found = [stage.axis for stage in self.linked.values() if stage.root == root]
        return found[0] if found else self.readers[root][0][1].axis

    def _wanted_rows(self) -> dict[int, tuple[int, int]]:
        """The rows that each stage has to make: all that anybody reads."""
        wanted: dict[int, tuple[int, int]] = {}
        for number in reversed(self.cascade.stages):
            stage = self.linked[number]
            wanted[number] = (0, stage.size)
            if stage.root in self.inside:
                spans = [
                    read.rows(*wanted[reader])
                    for reader, read in self.readers[stage.root]
                    if number in self.makers[reader, read.tensor]
                ]
                spans = [(start, stop) for start, stop in spans if start < stop]
                first = min((start for start, _ in spans), default=0)
                wanted[number] = (first, max((stop for _, stop in spans), default=first))
        return wanted

    def _most_rows(self) -> dict[int, int]:
        """How many rows each stage makes at once: as many as a step takes in the long run."""
        most: dict[int, int] = {}
        for number in reversed(self.cascade.stages):
            takes = [
                -(-most[reader] * read.factor // read.divisor)
                for reader, read in self.readers.get(self.linked[number].root, ())
                if number in self.makers[reader, read.tensor]
            ]
            is_eager = self.cascade.eager
            most[number] = max(takes, default=self.step) if is_eager else self.multiples[number]
        return most | {number: self.linked[number].size for number in self.cascade.on_demand}

    def _goals(self) -> Iterator[dict[int, int]]:
        """How far the stages whose results leave the cascade have to be, step by step."""
        ends = [n for n in self.cascade.stages if self.linked[n].root not in self.inside]
        start, stop = self.wanted[self.cascade.last]
        steps = max(1, -(-(stop - start) // self.step))
        for step in range(1, steps + 1):
            for number in ends:
                first, behind = self.wanted[number]
                done, multiple = -(-(behind - first) * step // steps), self.multiples[number]
                goal = min(behind, first + -(-done // multiple) * multiple)
                if number == self.cascade.last:
                    goal = min(stop, start + step * self.step)
                yield {number: goal}

    def _make(self, number: int, upto: int) -> None:
        """Let a stage make its rows up to one, after those of other stages that it reads."""
        upto = min(upto, self.wanted[number][1])
        while self.done[number] < upto:
            start = self.done[number]
            stop = min(upto, start + self.most[number])
            for read in self.linked[number].reads:
                _, needed = read.rows(start, stop)
                makers = self.makers[number, read.tensor]
                if not makers:
                    self._arrive(read.root, needed)
                for maker in makers:
                    self._make(maker, needed)
            self.turns.append(Turn(number, start, stop))
            self.done[number] = stop
            if self.linked[number].root in self.inside:
                self._hold(self.linked[number].root, start, stop)

    def _arrive(self, root: str, upto: int) -> None:
        """Rows of a tensor come from outside."""
        if root not in self.arrived:
            self.arrived[root] = self._oldest(root)
        start = self.arrived[root]
        if upto > start:
            self.arrived[root] = upto
            self._hold(root, start, upto)

    def _oldest(self, root: str) -> int:
        """The first row of a tensor that some stage still has to read."""
        return min(
            read.rows(self._next(number), self.wanted[number][1])[0]
            for number, read in self.readers[root]
        )

    def _next(self, number: int) -> int:
        """The first row that a stage still has to make, if only again."""
        root = self.linked[number].root
        if self.cascade.forgets and root in self.on_demand and root in self.readers:
            return min(self.done[number], self._oldest(root))
        return self.done[number]

    def _hold(self, root: str, start: int, stop: int) -> None:
        """Note how many rows are there when the last of them come."""
        oldest = min(start, self._oldest(root))
        self.held[root] = max(self.held.get(root, 1), stop - oldest)
        self.largest[root] = max(self.largest.get(root, 1), stop - start)
        self.waiting[root] = max(self.waiting.get(root, 0), start - oldest)

"""Cascades: stages that run side by side, some rows at a time, with rolling buffers between them.

*Rows* are positions along one axis of every tensor in the cascade: its height, or its channels, or
the tokens of a text. The last stage is asked for a few rows, asks the stages before it for those
rows that this takes, and so on; between two stages only rows that are still needed are held.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.network.graph import Network, Operand
from tilewright.program.boxes import meet, shifted, whole
from tilewright.program.model import Box
from tilewright.program.stages import Stage, Storage
from tilewright.program.tile import tileable


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """Stages `first` to `last`, both included, cut along `axis` of the last one's result.

    Every step makes `step` rows of the last result, and as many of the others as that takes;
    unless it is `eager`, one row at a time, which needs the least memory and the most tasks.
    """

    first: int
    last: int
    axis: int
    step: int
    eager: bool = True
    ahead: bool = False
    """Whether there is room for the rows of the next step beside those of the step at hand."""

    @property
    def stages(self) -> range:
        """The numbers of the stages."""
        return range(self.first, self.last + 1)


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

    def turn_rows(self, stage: int) -> int:
        """The most rows that a stage makes at once."""
        return max(turn.stop - turn.start for turn in self.turns if turn.stage == stage)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """Rows of a tensor that a stage reads, as a function of the rows that it makes.

    To make row r it reads rows (factor × r + low) / divisor to (factor × r + high) / divisor.
    """

    root: str
    makers: tuple[int, ...]
    """Stages of the cascade that make what is read; none where it comes from outside."""
    factor: int
    low: int
    high: int
    divisor: int
    size: int

    def rows(self, start: int, stop: int) -> tuple[int, int]:
        """The rows that it takes to make rows [start, stop), padding left out."""
        if start >= stop:
            return self.size, self.size
        first = -(-(self.factor * start + self.low) // self.divisor)
        last = (self.factor * (stop - 1) + self.high) // self.divisor
        first = min(max(first, 0), self.size)
        return first, max(first, min(last + 1, self.size))


@dataclass
class _Rows:
    """Which loop of each stage and which axis of each tensor the rows run along."""

    network: Network
    stages: Sequence[Stage]
    storage: Mapping[str, Storage]
    cascade: Cascade
    loops: dict[int, str] = field(default_factory=dict)
    axes: dict[str, int] = field(default_factory=dict)
    reads: dict[int, list[_Read]] = field(default_factory=dict)

    def found(self) -> bool:
        """Find them, from the last stage to the first; False if a stage has no such loop."""
        return all(self._add(number) for number in reversed(self.cascade.stages))

    def root(self, number: int) -> str:
        """The storage that a stage's result lies in."""
        return self.storage[self.stages[number].results[0].tensor].root

    def _add(self, number: int) -> bool:
        stage = self.stages[number]
        axis = self.axes.setdefault(self.root(number), self.cascade.axis)
        loop = self._row_loop(stage, axis)
        if loop is None or not self._same_rows(stage.results[0].tensor, axis):
            return False
        self.loops[number] = loop
        self.reads[number] = []
        for operand in stage.inputs:
            if self.network.by_name[operand.tensor].role == "constant":
                continue
            makers = self._makers(operand.tensor)
            along = _axes_with(operand, loop)
            if len(along) > 1 or (not along and makers):
                return False
            if along:
                read = self._read(stage, operand, loop, along[0])
                if read is None:
                    return False
                self.reads[number].append(read)
        return True

    def _read(self, stage: Stage, operand: Operand, loop: str, axis: int) -> _Read | None:
        root = self.storage[operand.tensor].root
        if self.axes.setdefault(root, axis) != axis or not self._same_rows(operand.tensor, axis):
            return None
        index = (operand.index or ())[axis]
        others = [
            (factor * (stage.op.sizes[dim] - 1)) for dim, factor in index.terms if dim != loop
        ]
        factor = dict(index.terms)[loop]
        if factor <= 0:
            return None
        return _Read(
            root=root,
            makers=self._makers(operand.tensor),
            factor=factor,
            low=index.offset + sum(min(0, reach) for reach in others),
            high=index.offset + sum(max(0, reach) for reach in others),
            divisor=index.divisor,
            size=self.network.by_name[operand.tensor].shape[axis],
        )

    def _row_loop(self, stage: Stage, axis: int) -> str | None:
        """The loop that alone walks an axis of a stage's only result, one row at a time."""
        index = stage.results[0].index
        if len(stage.results) != 1 or index is None or axis >= len(index):
            return None
        walked = index[axis]
        if stage.worker == "move" or len(walked.terms) != 1 or walked.offset or walked.divisor > 1:
            return None
        loop, factor = walked.terms[0]
        weights, rest, _ = tileable(stage.op)
        return loop if factor == 1 and loop in (*weights, *rest) else None

    def _same_rows(self, tensor: str, axis: int) -> bool:
        """Whether rows of a tensor are rows of its storage, under the same number."""
        lies = self.storage[tensor]
        if lies.origin is None or axis >= len(lies.origin) or lies.origin[axis]:
            return False
        shape, root = self.network.by_name[tensor].shape, self.network.by_name[lies.root].shape
        return len(shape) == len(root) and shape[axis] == root[axis]

    def _makers(self, tensor: str) -> tuple[int, ...]:
        """Stages of the cascade whose result lies where a tensor does."""
        root, place = self._place(tensor)
        found = []
        for number in self.cascade.stages:
            other, made = self._place(self.stages[number].results[0].tensor)
            if other == root and (place is None or made is None or meet(place, made)):
                found.append(number)
        return tuple(found)

    def _place(self, tensor: str) -> tuple[str, Box | None]:
        lies = self.storage[tensor]
        box = whole(self.network.by_name[tensor].shape)
        return lies.root, None if lies.origin is None else shifted(box, lies.origin)


def _axes_with(operand: Operand, loop: str) -> list[int]:
    return [
        axis
        for axis, index in enumerate(operand.index or ())
        if any(dim == loop for dim, _ in index.terms)
    ]


def flow_of(
    network: Network, stages: Sequence[Stage], storage: Mapping[str, Storage], cascade: Cascade
) -> Flow | None:
    """A cascade step by step; None if these stages cannot run so."""
    rows = _Rows(network, stages, storage, cascade)
    return _Flowing(rows).flow() if rows.found() else None


class _Flowing:
    """Asks stages for rows, and watches how many rows of each tensor are held."""

    def __init__(self, rows: _Rows) -> None:
        self.rows = rows
        self.cascade = rows.cascade
        self.readers: dict[str, list[tuple[int, _Read]]] = {}
        for number in self.cascade.stages:
            for read in rows.reads[number]:
                self.readers.setdefault(read.root, []).append((number, read))
        self.made = {rows.root(number) for number in self.cascade.stages}
        self.inside = self._private_roots()
        self.wanted = self._wanted_rows()
        self.most = self._most_rows()
        self.done = {number: start for number, (start, _) in self.wanted.items()}
        self.turns: list[Turn] = []
        self.held: dict[str, int] = {}
        self.arrived: dict[str, int] = {}
        self.largest: dict[str, int] = {}

    def flow(self) -> Flow:
        """Run everything."""
        for goals in self._goals():
            for number, upto in goals.items():
                self._make(number, upto)
        rolls = {root: self._roll(root) for root in self.held}
        return Flow(
            cascade=self.cascade,
            loops=dict(sorted(self.rows.loops.items())),
            turns=tuple(self.turns),
            rolls={root: roll for root, roll in rolls.items() if root in self.inside},
            inputs={root: roll for root, roll in rolls.items() if root not in self.made},
        )

    def _roll(self, root: str) -> Roll:
        axis, rows = self.rows.axes[root], self.held[root]
        if self.cascade.ahead:
            rows += self.largest[root]
        return Roll(axis, min(rows, self.rows.network.by_name[root].shape[axis]))

    def _private_roots(self) -> set[str]:
        """Tensors that stages of the cascade make and read, and nobody else touches."""
        rows = self.rows
        touched_outside = {rows.storage[t.name].root for t in rows.network.outputs}
        for number, stage in enumerate(rows.stages):
            if number not in self.cascade.stages:
                names = [o.tensor for o in (*stage.inputs, *stage.results)]
                touched_outside.update(rows.storage[name].root for name in names)
        return {root for root in self.made if root in self.readers} - touched_outside

    def _wanted_rows(self) -> dict[int, tuple[int, int]]:
        """The rows that each stage has to make: all that anybody reads."""
        wanted: dict[int, tuple[int, int]] = {}
        for number in reversed(self.cascade.stages):
            loop = self.rows.loops[number]
            wanted[number] = (0, self.rows.stages[number].op.sizes[loop])
            if self.rows.root(number) in self.inside:
                readers = self.readers[self.rows.root(number)]
                spans = [
                    read.rows(*wanted[reader]) for reader, read in readers if number in read.makers
                ]
                spans = [(start, stop) for start, stop in spans if start < stop]
                first = min((start for start, _ in spans), default=0)
                wanted[number] = (first, max((stop for _, stop in spans), default=first))
        return wanted

    def _most_rows(self) -> dict[int, int]:
        """How many rows each stage makes at once: as many as a step takes in the long run."""
        most: dict[int, int] = {}
        for number in reversed(self.cascade.stages):
            readers = self.readers.get(self.rows.root(number), ())
            takes = [
                -(-most[reader] * read.factor // read.divisor)
                for reader, read in readers
                if number in read.makers and reader in most
            ]
            most[number] = max(takes, default=self.cascade.step) if self.cascade.eager else 1
        return most

    def _goals(self) -> Iterator[dict[int, int]]:
        """How far the stages whose results leave the cascade have to be, step by step."""
        ends = [n for n in self.cascade.stages if self.rows.root(n) not in self.inside]
        start, stop = self.wanted[self.cascade.last]
        steps = max(1, -(-(stop - start) // self.cascade.step))
        for step in range(1, steps + 1):
            for number in ends:
                first, behind = self.wanted[number]
                goal = first + -(-(behind - first) * step // steps)
                if number == self.cascade.last:
                    goal = min(stop, start + step * self.cascade.step)
                yield {number: goal}

    def _make(self, number: int, upto: int) -> None:
        """Let a stage make its rows up to one, after those of other stages that it reads."""
        upto = min(upto, self.wanted[number][1])
        while self.done[number] < upto:
            start = self.done[number]
            stop = min(upto, start + self.most[number])
            for read in self.rows.reads[number]:
                _, needed = read.rows(start, stop)
                if not read.makers:
                    self._arrive(read.root, needed)
                for maker in read.makers:
                    self._make(maker, needed)
            self.turns.append(Turn(number, start, stop))
            self.done[number] = stop
            if self.rows.root(number) in self.inside:
                self._hold(self.rows.root(number), start, stop)

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
            read.rows(self.done[number], self.wanted[number][1])[0]
            for number, read in self.readers[root]
        )

    def _hold(self, root: str, start: int, stop: int) -> None:
        """Note how many rows are there when the last of them come."""
        oldest = min(start, self._oldest(root))
        self.held[root] = max(self.held.get(root, 1), stop - oldest)
        self.largest[root] = max(self.largest.get(root, 1), stop - start)

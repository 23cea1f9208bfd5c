"""A network as a sequence of steps, each with the chunks of memory that it reads and writes.

A chunk is what lies together and lives and dies as one: a cell of a tensor, a whole tensor, or the
accumulators of one cell of a pool's result.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from tilewright.program.boxes import elements, whole
from tilewright.program.model import Box
from tilewright.program.stages import Stage
from tilewright.strategy.ladder.cells import (
    Grid,
    Loops,
    Span,
    Window,
    Work,
    reaches_of,
    repeats_of,
)
from tilewright.units import packed_bytes

LOAD: Final = -1
STORE: Final = -2


@dataclass(frozen=True, slots=True)
class Chunk:
    """A box of a held tensor, or (`is_sum`) accumulators for it."""

    tensor: str
    box: Box
    size_bytes: int
    is_whole: bool = False
    """Whether it is all of its tensor."""
    is_sum: bool = False
    over: int | None = None
    """The chunk, with bytes of its own, whose place it takes."""


@dataclass(frozen=True, slots=True)
class Step:
    """One task: a part of a stage, or a transfer of a held tensor (LOAD, STORE).

    `ranges` are those of the stage's loops that are cut. A step that is `continued` goes on from
    accumulators, the first of its reads; one that is `unfinished` writes accumulators.
    """

    stage: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    tensor: str = ""
    ranges: tuple[tuple[str, int, int], ...] = ()
    continued: bool = False
    unfinished: bool = False
    again: int = 0
    """How often the same was computed before."""


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How finely every stage runs, how every tensor is held, and in which order."""

    grids: Mapping[str, Grid]
    loops: Mapping[int, Loops]
    by_cell: frozenset[str]
    """Held tensors of which every cell is a chunk; others are one chunk."""
    running: Mapping[int, tuple[Window, Window]]
    """Pools that take their input cell by cell, into accumulators."""
    in_place: Mapping[str, str]
    """Results that take the chunks of an input."""
    groups: tuple[tuple[int, ...], ...]
    """Stages that run together; one group ends before the next begins."""
    is_streamed: bool
    """Whether inputs come cell by cell, as they are needed, and not whole."""
    needed: Mapping[str, tuple[Span, Span]]
    """Rows and columns of cells that are computed."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Steps in their order, over chunks."""

    work: Work
    chunks: tuple[Chunk, ...]
    steps: tuple[Step, ...]


def run_of(work: Work, manner: Manner) -> Run:
    """The steps of a network: within a group as early as possible, later stages first."""
    walk = _Walk(work, manner)
    for group in manner.groups:
        walk.run(group)
    return Run(work=work, chunks=tuple(walk.chunks), steps=tuple(walk.steps))


class _Part(NamedTuple):
    """A step of a running pool: the cell that it waits for, and what it adds to which result."""

    waits_for: int
    reads: int
    result: tuple[int, int]
    ranges: tuple[tuple[str, int, int], ...]
    continued: bool
    unfinished: bool


class _Walk:
    """Steps while they are emitted; cells of a tensor are made in raster order."""

    def __init__(self, work: Work, manner: Manner) -> None:
        self.work = work
        self.manner = manner
        self.chunks: list[Chunk] = []
        self.steps: list[Step] = []
        self.first_chunk: dict[str, int] = {}
        self.first_sum: dict[int, int] = {}
        self.made = {name: bytearray(self._n_cells(name)) for name in work.held}
        self.ready = dict.fromkeys(work.held, 0)
        """Cells of each tensor, from the first on, that are there."""
        self.next = [0] * (len(work.stages) + len(work.outputs))
        self.loaded = dict.fromkeys(work.inputs, 0)
        self._number_chunks()
        self.reaches = [
            reaches_of(work, number, manner.loops[number], manner.grids)
            for number in range(len(work.stages))
        ]
        self.parts = {n: list(self._parts(n)) for n in manner.running}
        self.users = self._users()

    def run(self, group: Sequence[int]) -> None:
        """Emit the steps of some stages, and the stores of what they finish."""
        stores = range(len(self.work.stages), len(self.next))
        allowed = frozenset((*group, *stores))
        if not self.manner.is_streamed:
            self._load_for(allowed)
        waiting = [-number for number in (*group, *stores)]
        heapq.heapify(waiting)
        while True:
            while waiting:
                number = -heapq.heappop(waiting)
                changed = self._try(number)
                if changed is not None:
                    heapq.heappush(waiting, -number)
                    self._wake(waiting, changed, allowed)
            name = self._next_input()
            if name is None:
                return
            self._load(name)
            self._wake(waiting, name, allowed)

    def _wake(self, waiting: list[int], name: str, allowed: frozenset[int]) -> None:
        """Let those who may run look again at a tensor that has grown."""
        for user in self.users.get(name, ()):
            if user in allowed:
                heapq.heappush(waiting, -user)

    def _load_for(self, numbers: frozenset[int]) -> None:
        for name in self.work.inputs:
            if any(number in numbers for number in self.users[name]):
                while self._load(name):
                    pass

    def _n_cells(self, name: str) -> int:
        (top, bottom), (left, right) = self.manner.needed[name]
        return (bottom - top) * (right - left)

    def _number_chunks(self) -> None:
        for name, held in self.work.held.items():
            self.first_chunk[name] = len(self.chunks)
            grid = self.manner.grids[name]
            if name not in self.manner.by_cell:
                made = [Chunk(name, whole(held.shape), held.size_bytes, is_whole=True)]
            else:
                size = grid.cell_bytes
                made = [
                    Chunk(name, grid.box(row, column), size)
                    for row in range(grid.rows)
                    for column in range(grid.columns)
                ]
            if name in self.manner.in_place:
                below = self.first_chunk[self.manner.in_place[name]]
                roots = [self.chunks[below + n].over for n in range(len(made))]
                made = [
                    replace(chunk, over=below + n if root is None else root)
                    for n, (chunk, root) in enumerate(zip(made, roots, strict=True))
                ]
            self.chunks += made
        for number in self.manner.running:
            self.first_sum[number] = len(self.chunks)
            stage = self.work.stages[number]
            grid = self.manner.grids[stage.results[0].tensor]
            size = packed_bytes(elements(grid.box(0, 0)), self.work.sum_bits(stage))
            self.chunks += [
                Chunk(grid.held.tensor, grid.box(row, column), size, is_sum=True)
                for row in range(grid.rows)
                for column in range(grid.columns)
            ]

    def _users(self) -> dict[str, list[int]]:
        """Stages, and stores behind them, that wait for cells of each tensor."""
        users = {name: list(numbers) for name, numbers in self.work.readers.items()}
        for number, name in enumerate(self.work.outputs):
            users[name].append(len(self.work.stages) + number)
        return users

    def _parts(self, number: int) -> Iterator[_Part]:
        """The steps of a running pool, in the order in which their cells come."""
        reach = self.reaches[number][0]
        rows, columns = self.manner.running[number]
        loops = self.manner.loops[number]
        name = self.work.stages[number].results[0].tensor
        (top, bottom), (left, right) = self.manner.needed[reach.tensor]
        own_rows, own_columns = self.manner.needed[name]
        by_row, by_column = _by_input(rows, own_rows), _by_input(columns, own_columns)
        grid = self.manner.grids[reach.tensor]
        for row in range(top, bottom):
            for column in range(left, right):
                at = (row - top) * (right - left) + column - left
                cell = row * grid.columns + column
                for y, down, ends_row in by_row.get(row, ()):
                    for x, across, ends_column in by_column.get(column, ()):
                        ranges = (
                            *_ranges(loops[0], y, rows.dim, down),
                            *_ranges(loops[1], x, columns.dim, across),
                        )
                        continued = down[0] > 0 or across[0] > 0
                        yield _Part(
                            at, cell, (y, x), ranges, continued, not (ends_row and ends_column)
                        )

    def _try(self, number: int) -> str | None:
        """Make the next step of a stage if all it needs is there; what tensor has grown."""
        if number >= len(self.work.stages):
            return self._store(number)
        if number in self.parts:
            return self._add(number)
        return self._compute(number)

    def _compute(self, number: int) -> str | None:
        stage, loops = self.work.stages[number], self.manner.loops[number]
        name = stage.results[0].tensor
        (top, bottom), (left, right) = steps_for(stage, loops, self.manner.needed[name])
        at = self.next[number]
        if at >= (bottom - top) * (right - left):
            return None
        row, column = top + at // (right - left), left + at % (right - left)
        if not self._is_there(number, row, column):
            return None
        self.next[number] += 1
        reads = [
            chunk
            for reach in self.reaches[number]
            for chunk in self._chunks(
                reach.tensor,
                reach.rows[row if loops[0] else 0],
                reach.columns[column if loops[1] else 0],
            )
        ]
        made = [(o.tensor, self._made_by(number, o.tensor, (row, column))) for o in stage.results]
        writes = [chunk for tensor, cells in made for chunk in self._chunks(tensor, *cells)]
        ranges = (*_ranges(loops[0], row), *_ranges(loops[1], column))
        self.steps.append(Step(number, tuple(dict.fromkeys(reads)), tuple(writes), ranges=ranges))
        for tensor, cells in made:
            self._mark(tensor, *cells)
        return name

    def _made_by(self, number: int, name: str, step: tuple[int, int]) -> tuple[Span, Span]:
        """Rows and columns of cells, as far as they are needed, that a step makes."""
        stage, found = self.work.stages[number], []
        for loop, at, needed in zip(
            self.manner.loops[number], step, self.manner.needed[name], strict=True
        ):
            repeats = repeats_of(stage, loop)
            cells = needed if loop is None else (at * repeats, at * repeats + repeats)
            found.append((max(cells[0], needed[0]), min(cells[1], needed[1])))
        return found[0], found[1]

    def _is_there(self, number: int, row: int, column: int) -> bool:
        loops = self.manner.loops[number]
        for reach in self.reaches[number]:
            _, bottom = reach.rows[row if loops[0] else 0]
            _, right = reach.columns[column if loops[1] else 0]
            (first, _), (left, end) = self.manner.needed[reach.tensor]
            if (
                bottom
                and right
                and self.ready[reach.tensor]
                <= ((bottom - 1 - first) * (end - left) + right - 1 - left)
            ):
                return False
        return True

    def _add(self, number: int) -> str | None:
        """The next step of a running pool."""
        parts, at = self.parts[number], self.next[number]
        source = self.reaches[number][0].tensor
        if at >= len(parts) or parts[at].waits_for >= self.ready[source]:
            return None
        part = parts[at]
        self.next[number] += 1
        name = self.work.stages[number].results[0].tensor
        grid, (row, column) = self.manner.grids[name], part.result
        sums = self.first_sum[number] + row * grid.columns + column
        taken = self.first_chunk[source] + (part.reads if source in self.manner.by_cell else 0)
        self.steps.append(
            Step(
                number,
                (sums, taken) if part.continued else (taken,),
                (sums,)
                if part.unfinished
                else tuple(self._chunks(name, (row, row + 1), (column, column + 1))),
                ranges=part.ranges,
                continued=part.continued,
                unfinished=part.unfinished,
            )
        )
        if not part.unfinished:
            self._mark(name, (row, row + 1), (column, column + 1))
        return name

    def _store(self, number: int) -> str | None:
        name = self.work.outputs[number - len(self.work.stages)]
        cells, at = self._n_cells(name), self.next[number]
        by_cell = name in self.manner.by_cell
        if at >= (cells if by_cell else 1) or self.ready[name] < (at + 1 if by_cell else cells):
            return None
        self.next[number] += 1
        chunks = self._cell(name, at)
        self.steps.append(Step(STORE, chunks, (), tensor=name))
        return ""

    def _next_input(self) -> str | None:
        """The input of which the smallest part has come so far; None if all is there."""
        if not self.manner.is_streamed:
            return None
        left = [n for n in self.work.inputs if self.loaded[n] < self._n_cells(n)]
        return min(left, key=lambda n: (self.loaded[n] / self._n_cells(n), n), default=None)

    def _load(self, name: str) -> bool:
        """Load the next cell of an input, or all of it where it is one chunk."""
        at, cells = self.loaded[name], self._n_cells(name)
        if at >= cells:
            return False
        by_cell = name in self.manner.by_cell
        self.loaded[name] = at + 1 if by_cell else cells
        self.steps.append(Step(LOAD, (), self._cell(name, at), tensor=name))
        (top, _), (left, right) = self.manner.needed[name]
        row, column = top + at // (right - left), left + at % (right - left)
        spans = ((row, row + 1), (column, column + 1)) if by_cell else self.manner.needed[name]
        self._mark(name, *spans)
        return True

    def _cell(self, name: str, at: int) -> tuple[int, ...]:
        (top, _), (left, right) = self.manner.needed[name]
        row, column = top + at // (right - left), left + at % (right - left)
        return tuple(self._chunks(name, (row, row + 1), (column, column + 1)))

    def _chunks(self, name: str, rows: Span, columns: Span) -> list[int]:
        """The chunks that hold some cells."""
        first = self.first_chunk[name]
        if name not in self.manner.by_cell:
            return [first] if rows[0] < rows[1] and columns[0] < columns[1] else []
        width = self.manner.grids[name].columns
        return [first + row * width + column for row in range(*rows) for column in range(*columns)]

    def _mark(self, name: str, rows: Span, columns: Span) -> None:
        """Cells are there now."""
        made, ((top, _), (left, right)) = self.made[name], self.manner.needed[name]
        for row in range(*rows):
            first = (row - top) * (right - left) - left
            made[first + columns[0] : first + columns[1]] = b"\1" * (columns[1] - columns[0])
        at = self.ready[name]
        while at < len(made) and made[at]:
            at += 1
        self.ready[name] = at


def steps_for(stage: Stage, loops: Loops, cells: tuple[Span, Span]) -> tuple[Span, Span]:
    """The steps along rows and columns that make some cells of a stage's result."""
    found: list[Span] = []
    for loop, (start, stop) in zip(loops, cells, strict=True):
        repeats = repeats_of(stage, loop)
        steps = (start // repeats, -(-stop // repeats))
        found.append(steps if loop is not None else (0, 1 if start < stop else 0))
    return found[0], found[1]


def _by_input(window: Window, wanted: Span) -> dict[int, list[tuple[int, Span, bool]]]:
    """By position in the input: results that see it, with the taps, and whether it ends them."""
    found: dict[int, list[tuple[int, Span, bool]]] = {}
    for result in range(*wanted):
        taps = window.taps[result]
        for tap in taps:
            found.setdefault(tap.at, []).append((result, tap.span, tap == taps[-1]))
    return found


def _ranges(
    loop: str | None, at: int, dim: str = "", span: Span = (0, 0)
) -> tuple[tuple[str, int, int], ...]:
    own = () if loop is None else ((loop, at, at + 1),)
    return (*own, (dim, *span)) if dim else own

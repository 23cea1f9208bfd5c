"""Running a network one pixel of its result at a time, with nothing kept that can be made again.

Inputs of the network, and of ops that need all of their input at once, are whole. Every other pixel
is computed anew for each window that it is in: a window takes its pixels one by one, each into one
accumulator, so that a stage never holds more than one pixel of its input and one of its result.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tilewright.network.counts import macs
from tilewright.program.boxes import elements, whole
from tilewright.program.model import Box
from tilewright.strategy.ladder.cells import (
    Grid,
    Loops,
    Window,
    Work,
    grid_of,
    reaches_of,
    repeats_of,
    windows_of,
)
from tilewright.strategy.ladder.manners import NO_LOOPS, cuttable
from tilewright.strategy.ladder.steps import LOAD, STORE, Chunk, Run, Step
from tilewright.units import packed_bytes

Cell = tuple[str, int, int]
"""A held tensor, a row and a column."""
Ranges = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, kw_only=True)
class Recompute:
    """What is whole, and how every other stage takes its input."""

    work: Work

    @cached_property
    def cut(self) -> Mapping[int, Loops]:
        """Stages that compute single pixels."""
        able = cuttable(self.work, "pixel")
        return {n: loops for n, loops in able.items() if self._makes_single(n, loops)}

    def _makes_single(self, number: int, loops: Loops) -> bool:
        return all(repeats_of(self.work.stages[number], loop) == 1 for loop in loops)

    @cached_property
    def grids(self) -> Mapping[str, Grid]:
        """Every held tensor in pixels, results of other stages in one piece."""
        makers = self.work.makers
        return {
            name: grid_of(held, "pixel" if makers.get(name, -1) in (-1, *self.cut) else None)
            for name, held in self.work.held.items()
        }

    @cached_property
    def kept(self) -> frozenset[str]:
        """Held tensors that are whole: inputs, and what stages that cannot be cut read and make.

        Also what is read under another shape.
        """
        names = [*self.work.inputs, *(n for n, h in self.work.held.items() if h.is_seen_as_one)]
        for number, stage in enumerate(self.work.stages):
            if number not in self.cut:
                names += [o.tensor for o in stage.results]
                names += [n for o in stage.inputs for n in self.work.pieces(o.tensor)]
        return frozenset(names)

    @cached_property
    def reaches(self) -> list[list[tuple[str, npt.NDArray[np.int64], npt.NDArray[np.int64]]]]:
        """By stage and tensor: first and end of the rows, and of the columns, that steps read."""
        return [
            [
                (reach.tensor, np.array(reach.rows), np.array(reach.columns))
                for reach in reaches_of(
                    self.work, number, self.cut.get(number, NO_LOOPS), self.grids
                )
            ]
            for number in range(len(self.work.stages))
        ]

    @cached_property
    def windows(self) -> Mapping[int, tuple[Window, Window]]:
        """Stages that take their input pixel by pixel."""
        found = {}
        for number, loops in self.cut.items():
            stage = self.work.stages[number]
            names = [name for name, _, _ in self.reaches[number]]
            # What is whole is there to be read at once.
            is_fresh = len(names) == 1 and names[0] not in self.kept
            if is_fresh and stage.op.inputs[0].tensor == names[0]:
                window = windows_of(stage, self.work.held[names[0]].shape, loops)
                if window is not None:
                    found[number] = window
        return found

    @cached_property
    def targets(self) -> tuple[int, ...]:
        """Stages whose results are kept or handed out, in order."""
        return tuple(
            number
            for number, stage in enumerate(self.work.stages)
            if number not in self.cut
            or stage.results[0].tensor in self.kept
            or stage.results[0].tensor in self.work.outputs
        )


def evaluations(plan: Recompute) -> list[npt.NDArray[np.float64]]:
    """By stage: how often each pixel of its result is computed."""
    work = plan.work
    counts = {name: np.zeros((grid.rows, grid.columns)) for name, grid in plan.grids.items()}
    for number in plan.targets:
        counts[work.stages[number].results[0].tensor] += 1
    for number in reversed(range(len(work.stages))):
        own = counts[work.stages[number].results[0].tensor]
        if number not in plan.cut:
            continue
        for name, rows, columns in plan.reaches[number]:
            if name not in plan.kept:
                down = _incidence(plan, number, 0, rows, plan.grids[name].rows)
                across = _incidence(plan, number, 1, columns, plan.grids[name].columns)
                counts[name] += down.T @ own @ across
    return [counts[stage.results[0].tensor] for stage in work.stages]


def _incidence(
    plan: Recompute, number: int, side: int, spans: npt.NDArray[np.int64], size: int
) -> npt.NDArray[np.float64]:
    """1 where a step along rows (or columns) reads a row (or column) of the input."""
    window = plan.windows.get(number)
    found = np.zeros((len(spans), size))
    for step, (start, stop) in enumerate(spans):
        if window is not None and window[side].dim:
            for tap in window[side].taps[step]:
                found[step, tap.at] = 1
        else:
            found[step, start:stop] = 1
    return found


def macs_factor(plan: Recompute) -> float:
    """Multiplications of such a run, as a multiple of the network's."""
    work = plan.work
    total = made = 0.0
    for number, counts in enumerate(evaluations(plan)):
        own = macs(work.stages[number].op, work.network)
        total += own
        made += own * (float(counts.sum()) / counts.size if number in plan.cut else 1.0)
    return made / total if total else 1.0


def n_steps(plan: Recompute) -> float:
    """How many steps such a run has at most."""
    counts = evaluations(plan)
    total = 0.0
    for number, count in enumerate(counts):
        taps = 1
        for window in plan.windows.get(number, ()):
            taps *= max(len(step) for step in window.taps)
        total += taps * float(count.sum())
    return total


def recomputed(plan: Recompute) -> Run:
    """The steps, in their order."""
    maker = _Maker(plan)
    for name in plan.work.inputs:
        maker.load(name)
    for number in plan.targets:
        maker.target(number)
    return Run(work=plan.work, chunks=tuple(maker.chunks), steps=tuple(maker.steps))


@dataclass
class _Maker:
    """Emits steps from a result's pixel down to the inputs."""

    plan: Recompute
    chunks: list[Chunk] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    whole: dict[str, int] = field(default_factory=dict)
    seen: dict[tuple[int, Ranges], int] = field(default_factory=dict)

    def load(self, name: str) -> None:
        """Bring an input."""
        self.steps.append(Step(LOAD, (), (self._whole(name),), tensor=name))

    def target(self, number: int) -> None:
        """Compute a result that is kept or handed out, pixel by pixel where it can be."""
        stage = self.plan.work.stages[number]
        name = stage.results[0].tensor
        if number not in self.plan.cut:
            read = [n for n, _, _ in self.plan.reaches[number]]
            made = [self._whole(o.tensor) for o in stage.results]
            reads = tuple(dict.fromkeys(self._whole(n) for n in read))
            self.steps.append(Step(number, reads, tuple(made)))
        else:
            grid = self.plan.grids[name]
            for row in range(grid.rows):
                for column in range(grid.columns):
                    chunk = self._computed(number, row, column, is_target=True)
                    if name not in self.plan.kept:
                        self.steps.append(Step(STORE, (chunk,), (), tensor=name))
        for operand in stage.results:
            if operand.tensor in self.plan.work.outputs and operand.tensor in self.plan.kept:
                chunk = self._whole(operand.tensor)
                self.steps.append(Step(STORE, (chunk,), (), tensor=operand.tensor))

    def _whole(self, name: str) -> int:
        if name not in self.whole:
            held = self.plan.work.held[name]
            self.whole[name] = self._chunk(
                Chunk(name, whole(held.shape), held.size_bytes, is_whole=True)
            )
        return self.whole[name]

    def _chunk(self, chunk: Chunk) -> int:
        self.chunks.append(chunk)
        return len(self.chunks) - 1

    def _found(self, cell: Cell) -> int:
        """A chunk that holds a pixel: a whole tensor's, or a new one."""
        name, row, column = cell
        if name in self.plan.kept:
            return self._whole(name)
        return self._computed(self.plan.work.makers[name], row, column, is_target=False)

    def _computed(self, number: int, row: int, column: int, *, is_target: bool) -> int:
        """Compute one pixel of a stage's result; where it is."""
        stage = self.plan.work.stages[number]
        name = stage.results[0].tensor
        grid = self.plan.grids[name]
        box = grid.box(row, column)
        groups = list(taken_together(self.plan, number, row, column))
        sums: int | None = None
        target = -1
        for place, (cells, ranges) in enumerate(groups):
            reads = tuple(dict.fromkeys(self._found(cell) for cell in cells))
            is_last = place == len(groups) - 1
            if sums is None and not is_last:
                size = packed_bytes(elements(box), self.plan.work.sum_bits(stage))
                sums = self._chunk(Chunk(name, box, size, is_sum=True))
            continued = place > 0
            if not is_last:
                assert sums is not None
                target = sums
            else:
                is_kept = is_target and name in self.plan.kept
                target = self._whole(name) if is_kept else self._result(name, box, sums)
            again = self.seen.get((number, ranges), 0)
            self.seen[number, ranges] = again + 1
            self.steps.append(
                Step(
                    number,
                    (sums, *reads) if continued and sums is not None else reads,
                    (target,),
                    ranges=ranges,
                    continued=continued,
                    unfinished=not is_last,
                    again=again,
                )
            )
        return target

    def _result(self, name: str, box: Box, sums: int | None) -> int:
        """Where a finished pixel goes: over its sums if they are as wide."""
        size = self.plan.grids[name].cell_bytes
        fits = sums is not None and self.chunks[sums].size_bytes == size
        fits = fits and self.plan.work.is_alone(name)
        return self._chunk(Chunk(name, box, size, over=sums if fits else None))


def taken_together(
    plan: Recompute, number: int, row: int, column: int
) -> Iterator[tuple[list[Cell], Ranges]]:
    """Pixels that one pixel of a stage needs, as it takes them, with the ranges of its loops."""
    loops = plan.cut[number]
    own = tuple(
        (loop, at, at + 1)
        for loop, at in zip(loops, (row, column), strict=True)
        if loop is not None
    )
    at = [row if loops[0] else 0, column if loops[1] else 0]
    if number not in plan.windows:
        cells = [
            (name, r, c)
            for name, rows, columns in plan.reaches[number]
            for r in range(*rows[at[0]])
            for c in range(*columns[at[1]])
        ]
        yield cells, own
        return
    name = plan.reaches[number][0][0]
    down, across = plan.windows[number]
    for tap in down.taps[at[0]]:
        for other in across.taps[at[1]]:
            taps = tuple(
                (window.dim, *t.span) for window, t in ((down, tap), (across, other)) if window.dim
            )
            yield [(name, tap.at, other.at)], (*own, *taps)

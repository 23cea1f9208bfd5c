"""Units: what is run as one piece, a cascade or a single stage, and what that costs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

from tilewright.program.cascade import Cascade
from tilewright.program.slicing import SLICE
from tilewright.strategy.scene import Scene
from tilewright.strategy.spans import Span

Usage = dict[str, int]
"""Bytes by memory."""

WORTH = 32
"""Rows are made in slices where that saves at least this part of all rows that are held."""


def share_of(scene: Scene, use: Usage) -> float:
    """The part of the scratchpad that is filled most."""
    return max((size / scene.room[memory] for memory, size in use.items() if size), default=0.0)


def fits(scene: Scene, use: Usage) -> bool:
    """Whether everything has room."""
    return all(size <= scene.room.get(memory, 0) for memory, size in use.items())


def fits_beside(scene: Scene, alive: Usage, need: Usage) -> bool:
    """Whether something has room beside what is alive, which has room by itself."""
    room = scene.room
    return all(alive.get(memory, 0) + size <= room.get(memory, 0) for memory, size in need.items())


def together(alive: Usage, need: Usage) -> Usage:
    """What both take."""
    use = dict(alive)
    for memory, size in need.items():
        _add(use, memory, size)
    return use


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a unit takes: bytes and energy to and from outside, cycles, and room.

    `share` is the part of the scratchpad that it fills, of the one that it fills most.
    """

    moved_bytes: int
    energy_pj: float
    cycles: float
    share: float
    cascade: Cascade | None


@dataclass(frozen=True, kw_only=True)
class Striped:
    """A span with a step: what it holds beside tensors that are kept, and what it moves."""

    scene: Scene
    span: Span
    step: int
    eager: bool
    rings: int
    """Bytes of the tensors that never leave the cascade."""
    inputs: Mapping[str, int]
    """Bytes held of each tensor that comes row by row, if it is not kept."""
    ends: Mapping[str, int]
    """Bytes of each result that are made at once, if it is not kept."""
    lasting: Usage
    """Constants that all steps need."""
    passing: Usage
    """Constants of one step."""
    least: Usage
    """The smallest tile of the constants of any stage."""
    constant_bytes: int
    on_demand: tuple[int, ...] = ()
    """Stages that make slices of their rows when these are read."""

    @property
    def steps(self) -> int:
        """Steps from the first to the last row."""
        return ceil(self.span.size / self.step)

    @cached_property
    def least_need(self) -> Usage:
        """Bytes by memory without results and what comes from outside, constants tile by tile."""
        use = {self.scene.result_memory: self.rings}
        for memory, size in self.least.items():
            _add(use, memory, size)
        return use

    def need(self, kept: Collection[str], *, lasting: bool) -> Usage:
        """Bytes by memory beside all that is kept, if that are these of the crossing tensors.

        Constants that all steps need either last or come again for every step, tile by tile.
        """
        use = {self.scene.result_memory: self.rings}
        for root, size in self.inputs.items():
            if root not in kept:
                _add(use, self.scene.input_memory, size)
        for root in self.span.wholes:
            if root not in kept and root in self.scene.lives:
                _add(use, self.scene.input_memory, self.scene.lives[root].size_bytes)
        for root, size in self.ends.items():
            if root not in kept:
                _add(use, self.scene.result_memory, size)
        for sizes in (self.lasting, self.passing) if lasting else (self.least,):
            for memory, size in sizes.items():
                _add(use, memory, size)
        return use

    def cost(self, kept: Collection[str], use: Usage, *, lasting: bool) -> Cost:
        """The cost when some of the crossing tensors are kept, and so much is used in all."""
        times = 1 if lasting or not self.lasting else self.steps
        lives = self.scene.lives
        coming = sum(
            lives[root].size_bytes
            for root in (*self.inputs, *self.span.wholes)
            if root in lives and root not in kept
        )
        going = self._fixed_going + sum(
            size for root, size in self._optional_going if root not in kept
        )
        constants = self.constant_bytes * times
        prices = (
            (self.scene.coming, coming),
            (self.scene.going, going),
            (self.scene.constant, constants),
        )
        moving = sum(size * price.cycles_per_byte for price, size in prices)
        moving += self.scene.coming.setup_cycles * self.steps * bool(coming + going)
        computing = self.computing
        return Cost(
            moved_bytes=coming + going + constants,
            energy_pj=sum(size * price.pj_per_byte for price, size in prices),
            cycles=max(computing, moving) + min(computing, moving) / max(2, self.steps),
            share=share_of(self.scene, use),
            cascade=self.cascade,
        )

    @cached_property
    def cascade(self) -> Cascade:
        """The cascade that goes so."""
        return Cascade(
            first=self.span.first,
            last=self.span.last,
            axis=self.span.axis,
            step=self.step,
            eager=self.eager,
            on_demand=self.on_demand,
        )

    @cached_property
    def _results(self) -> list[tuple[str, int, bool]]:
        """What leaves the cascade: its storage, bytes, and whether it must go outside."""
        network, found = self.scene.prepared.network, []
        for number in self.span.ends:
            root = self.span.linked[number].root
            life = self.scene.lives.get(root)
            for operand in self.scene.prepared.stages[number].results:
                size = network.by_name[operand.tensor].size_bytes
                found.append((root, size, life is None or life.is_result))
        return found

    @cached_property
    def _fixed_going(self) -> int:
        return sum(size for _, size, must in self._results if must)

    @cached_property
    def _optional_going(self) -> list[tuple[str, int]]:
        return [(root, size) for root, size, must in self._results if not must]

    @cached_property
    def computing(self) -> float:
        """Cycles of all stages, one after the other."""
        total = 0.0
        for number, stage in self.span.linked.items():
            rows = ceil(self.span.paces[number].rate * self.step) if self.eager else 1
            turns = ceil(stage.size / max(1, rows))
            total += self.scene.compute_cycles(number, stage.loop, max(1, rows), turns)
        return total


@dataclass(frozen=True, kw_only=True)
class SpanConstants:
    """The constants of a span's stages: those that all steps need, and those with rows."""

    lasting: Usage
    least: Usage
    """The smallest tile of any stage."""
    apart: tuple[tuple[int, str, int], ...]
    """Stage, memory and bytes of constants of which every row has its own part."""
    total_bytes: int


def constants_of(scene: Scene, span: Span) -> SpanConstants:
    """The constants of a span."""
    lasting: Usage = {}
    least: Usage = {}
    apart, total = [], 0
    for number, stage in span.linked.items():
        for memory, size, has_rows in scene.constants(number, stage.loop):
            total += size
            if memory and has_rows:
                apart.append((number, memory, size))
            elif memory:
                _add(lasting, memory, scene.rounded(memory, size))
        for memory, size in scene.least_constants(number).items():
            least[memory] = max(least.get(memory, 0), size)
    return SpanConstants(lasting=lasting, least=least, apart=tuple(apart), total_bytes=total)


def striped(
    scene: Scene, span: Span, constants: SpanConstants, step: int, *, eager: bool
) -> Striped:
    """A span with a step."""
    passing: Usage = {}
    for number, memory, size in constants.apart:
        length = span.linked[number].size
        rows = min(length, ceil(span.paces[number].rate * step)) if eager else 1
        _add(passing, memory, scene.rounded(memory, ceil(size * rows / length)))
    memory = scene.result_memory
    held = {
        root: scene.rounded(memory, span.held_bytes(root, step, eager=eager))
        for root in (*span.private, *span.inputs)
    }
    return Striped(
        scene=scene,
        span=span,
        step=step,
        eager=eager,
        rings=sum(held[root] for root in span.private),
        inputs={root: held[root] for root in span.inputs},
        ends={
            span.linked[n].root: scene.rounded(memory, span.made_bytes(n, step, eager=eager))
            for n in span.ends
        },
        lasting=constants.lasting,
        passing=passing,
        least=constants.least,
        constant_bytes=constants.total_bytes,
    )


def sliced(scene: Scene, way: Striped) -> Striped:
    """A span that goes row by row, with the newest rows made in slices where that can be.

    Those first that save most; a stage whose tiles are cut as another one asks cannot ask itself.
    """
    span, memory = way.span, scene.result_memory
    saved = {}
    for root in span.private:
        if root in span.on_demand:
            rows = scene.rounded(memory, span.held_bytes(root, way.step, eager=way.eager))
            saved[root] = rows - scene.rounded(memory, span.sliced_bytes(root, SLICE))
    makers: list[int] = []
    readers: list[int] = []
    rings, least = way.rings, dict(way.least)
    for root in sorted(saved, key=lambda root: (-saved[root], root)):
        found = span.on_demand[root]
        if (
            saved[root] * WORTH >= way.rings
            and found.maker not in readers
            and found.reader not in makers
        ):
            makers.append(found.maker)
            readers.append(found.reader)
            rings -= saved[root]
            for place, size in scene.slice_constants(found).items():
                least[place] = max(least.get(place, 0), size)
    return replace(way, rings=rings, least=least, on_demand=tuple(sorted(makers)))


def _add(use: Usage, memory: str, size: int) -> None:
    use[memory] = use.get(memory, 0) + size

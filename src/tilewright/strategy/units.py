"""Units: what is run as one piece, a cascade or a single stage, and what that costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from operator import add
from typing import NamedTuple

from tilewright.once import once
from tilewright.program.cascade import Cascade
from tilewright.program.slicing import SLICE
from tilewright.records import quickly_made
from tilewright.strategy.room import Usage
from tilewright.strategy.scene import Keeping, Scene
from tilewright.strategy.spans import Span
from tilewright.strategy.step_tables import StepTables

WORTH = 32
"""Rows are made in slices where that saves at least this part of all rows that are held."""


@quickly_made
class Cost(NamedTuple):
    """What a unit takes: bytes and energy to and from outside, and cycles.

    A tuple, since tens of thousands are made for a network.
    """

    moved_bytes: int
    energy_pj: float
    cycles: float


@quickly_made
class SpanConstants(NamedTuple):
    """The constants of a span's stages."""

    lasting: Usage
    """Room for those that all steps need."""
    least: Mapping[str, int]
    """By memory the smallest tile of any stage."""
    least_use: Usage
    """Room for those tiles."""
    total_bytes: int


NO_CONSTANTS = SpanConstants(lasting=0, least={}, least_use=0, total_bytes=0)


@quickly_made
@dataclass(frozen=True, kw_only=True)
class Slices:
    """What is needed if the newest rows are made in slices, which stages do that on demand."""

    least_need: Usage
    on_demand: tuple[int, ...]
    roots: tuple[str, ...]
    """What those make."""
    constants: Usage


@quickly_made
@dataclass(kw_only=True, eq=False)
class Ways:
    """All that a span can do; what is not always wanted is worked out when it is asked for.

    Much of it is the same as for the span without its first stage, the tail.
    """

    scene: Scene
    span: Span
    tail: "Ways | None"
    tables: StepTables
    constants: SpanConstants
    crossing: int
    """Tensors that are also there before or after the cascade, as bits."""
    leaving: Sequence[str]
    """Tensors whose lives begin in the span and that leave it, in the order of stages."""
    keepings: Sequence[Keeping]
    """All ways to keep those."""
    least_rings: int
    """Bytes of the tensors that never leave the cascade, in the first of all steps."""
    least_need: Usage
    """Room without results and what comes from outside, constants tile by tile."""
    least_computing: float
    """Cycles of all stages if each makes all its rows in one turn."""
    _needs: dict[tuple[int, bool], Sequence[Usage]] = field(default_factory=dict)
    _rows_beside: dict[int, Usage] = field(default_factory=dict)
    _costs: dict[tuple[int, int, bool], Cost] = field(default_factory=dict)
    _least_costs: dict[int, Cost] = field(default_factory=dict)
    _computing: dict[int, float] = field(default_factory=dict)
    _slices: dict[bool, Slices] = field(default_factory=dict)

    def slices(self, *, forgets: bool) -> Slices:
        """What the least need is if the newest rows are made in slices where that can be, and the
        others, with `forgets`, again for every row."""
        if forgets not in self._slices:
            self._slices[forgets] = self._least_slices(forgets=forgets)
        return self._slices[forgets]

    def _least_slices(self, *, forgets: bool) -> Slices:
        """Those first that save most; a stage whose tiles are cut as another one asks cannot ask
        itself."""
        scene, span, rings = self.scene, self.span, self.least_rings
        saved = {
            root: self.tables.saved(span, root, forgets=forgets)
            for root in span.private
            if root in span.on_demand
        }
        makers: list[int] = []
        readers: list[int] = []
        chosen: list[str] = []
        most = dict(self.constants.least)
        for root in sorted(saved, key=lambda root: (-saved[root], root)):
            found = span.on_demand[root]
            if (
                saved[root] * WORTH >= rings
                and found.maker not in readers
                and found.reader not in (*makers, *readers)
            ):
                makers.append(found.maker)
                readers.append(found.reader)
                chosen.append(root)
                for place, size in scene.slice_constants(found).items():
                    most[place] = max(most.get(place, 0), size)
        left = rings - sum(saved[root] for root in chosen)
        if forgets:
            left = self._held_again(chosen, 0)
        constants = scene.room.uses(most)
        return Slices(
            least_need=scene.room.use(scene.result_memory, left) + constants,
            on_demand=tuple(sorted(makers)),
            roots=tuple(chosen),
            constants=constants,
        )

    def forgetting_need(self, kept: int, number: int) -> Usage:
        """Room for a step beside all that is kept, if rows are made again in every step."""
        slices = self.slices(forgets=True)
        held = self._held_again(slices.roots, number)
        beside = [uses[number] for bit, uses in self._beside if not kept & bit]
        return self.scene.room.use(self.scene.result_memory, held) + slices.constants + sum(beside)

    def cycles_again(self, number: int) -> float:
        """Cycles of making rows again that do not wait from one step to the next."""
        span, found = self.span, 0.0
        step, eager = span.steps[number]
        for maker in self.slices(forgets=True).on_demand:
            stage = span.linked[maker]
            rows = max(1, ceil(span.paces[maker].rate * step)) if eager else 1
            window = span.holds[stage.root].window
            turns = ceil(stage.size / rows)
            found += self.scene.compute_cycles(maker, stage.loop, window, turns) if window else 0.0
        return found

    def _held_again(self, on_demand: Sequence[str], number: int) -> int:
        """Bytes of private tensors in a step if those made on demand are made again every time.

        Rows that do not wait are there only while a stage makes or reads them.
        """
        span, tables = self.span, self.tables
        makers = [span.linked[span.on_demand[root].maker] for root in on_demand]
        wanted = {read.root for maker in makers for read in maker.reads}
        waiting, passing = 0, dict[str, int]()
        for root in span.private:
            if root in on_demand:
                size = span.sliced_bytes(root, SLICE, forgets=True, number=number)
                passing[root] = self.scene.rounded(self.scene.result_memory, size)
            elif span.holds[root].window or root in wanted or root in span.rows.joined:
                waiting += tables.held_for(span, root, on_demand, number)
            else:
                passing[root] = tables.held(span, root)[number]
        return waiting + max(
            (
                sum(passing.get(root, 0) for root in (stage.root, *[r.root for r in stage.reads]))
                for stage in span.linked.values()
            ),
            default=0,
        )

    def rows_beside(self, kept: int) -> Usage:
        """Room for the first of all steps, beside all that is kept and the least need."""
        if kept not in self._rows_beside:
            uses = [use for bit, use in self._first_beside if not kept & bit]
            self._rows_beside[kept] = sum(uses)
        return self._rows_beside[kept]

    @once
    def widened(self) -> int:
        """Tensors of which cores keep more than is believed if the span reads them, as bits."""
        scene, span = self.scene, self.span
        if scene.prepared.places.cores == 1:
            return 0
        loops = {number: stage.loop for number, stage in span.linked.items()}
        read = [root for root in scene.roots(self.crossing) if root in span.readers]
        sizes = {root: scene.lives[root].size_bytes for root in (*read, *span.wholes)}
        return scene.mask(r for r, size in sizes.items() if scene.kept_bytes(r, loops) > size)

    @once
    def needs_kept(self) -> int:
        """Inputs that come only once and that others read, too, or some stage as a whole, as bits:
        row by row they would come again."""
        scene, span = self.scene, self.span
        read = scene.coming_once & self.crossing
        return scene.mask(
            root
            for root in (scene.roots(read) if read else ())
            if root in span.wholes or not span.rows.is_used_within(root, span.first, span.last)
        )

    @once
    def rings(self) -> Sequence[int]:
        """By step, bytes of the tensors that never leave the cascade."""
        found = [0] * len(self.span.steps) if self.tail is None else self.tail.rings
        for root in self.span.settled:
            found = list(map(add, found, self.tables.held(self.span, root)))
        return found

    def needs(self, kept: int, *, lasting: bool) -> Sequence[Usage]:
        """By step the room beside all that is kept, if that are these of the crossing tensors.

        Constants that all steps need either last or come again for every step, tile by tile.
        """
        key = kept, lasting
        if key not in self._needs:
            found = self.lasting_needs if lasting else self._least_needs
            for bit, uses in self._beside:
                if not kept & bit:
                    found = list(map(add, found, uses))
            self._needs[key] = found
        return self._needs[key]

    @once
    def lasting_needs(self) -> Sequence[Usage]:
        """By step the room without results and what comes from outside, constants lasting."""
        lasting = self.constants.lasting
        rings = [use + lasting for use in self._ring_uses]
        return rings if self._passing is None else list(map(add, rings, self._passing))

    @once
    def _least_needs(self) -> Sequence[Usage]:
        least = self.constants.least_use
        return [use + least for use in self._ring_uses]

    @once
    def _ring_uses(self) -> Sequence[Usage]:
        return self.scene.room.each_use(self.scene.result_memory, self.rings)

    def cost(self, number: int, kept: int, *, lasting: bool) -> Cost:
        """The cost with a step, when some of the crossing tensors are kept."""
        key = number, kept, lasting
        if key not in self._costs:
            self._costs[key] = self._cost(number, kept, lasting=lasting)
        return self._costs[key]

    def _cost(self, number: int, kept: int, *, lasting: bool) -> Cost:
        steps = ceil(self.span.size / self.span.steps[number][0])
        times = 1 if lasting or not self.constants.lasting else steps
        coming, going = self._coming_and_going(kept)
        moved_bytes, energy_pj, moving = self._moved(coming, going, times)
        if coming or going:
            moving += self.scene.coming.setup_cycles * steps
        return Cost(moved_bytes, energy_pj, _overlapped(self.computing(number), moving, steps))

    def cascade(
        self, number: int, on_demand: tuple[int, ...] = (), *, forgets: bool = False
    ) -> Cascade:
        """The cascade with a step."""
        step, eager = self.span.steps[number]
        return Cascade(
            first=self.span.first,
            last=self.span.last,
            axis=self.span.axis,
            step=step,
            eager=eager,
            on_demand=on_demand,
            forgets=forgets and bool(on_demand),
        )

    def least_cost(self, kept: int) -> Cost:
        """What no step can do for less."""
        if kept not in self._least_costs:
            moved_bytes, energy_pj, moving = self._moved(*self._coming_and_going(kept), 1)
            cycles = _overlapped(self.least_computing, moving, self.span.size)
            self._least_costs[kept] = Cost(moved_bytes, energy_pj, cycles)
        return self._least_costs[kept]

    def _moved(self, coming: int, going: int, times: int) -> tuple[int, float, float]:
        """Bytes, energy and cycles of transfers if constants come so many times."""
        constants = self.constants.total_bytes * times
        comes, goes, is_constant = self.scene.coming, self.scene.going, self.scene.constant
        return (
            coming + going + constants,
            coming * comes.pj_per_byte
            + going * goes.pj_per_byte
            + constants * is_constant.pj_per_byte,
            coming * comes.cycles_per_byte
            + going * goes.cycles_per_byte
            + constants * is_constant.cycles_per_byte,
        )

    def _coming_and_going(self, kept: int) -> tuple[int, int]:
        """Bytes of tensors that come, and of those that go."""
        coming = going = 0
        for bit, size in self._coming:
            if not kept & bit:
                coming += size
        for bit, size in self._going:
            if not kept & bit:
                going += size
        return coming, going

    @once
    def _coming(self) -> Sequence[tuple[int, int]]:
        """Bytes of each tensor from outside, and the bit that says that it is kept."""
        lives, bits = self.scene.lives, self.scene.bits
        roots = (*self.span.inputs, *self.span.wholes)
        return [(bits[root], lives[root].whole_bytes) for root in roots if root in lives]

    @once
    def _going(self) -> Sequence[tuple[int, int]]:
        """Bytes of each result, and the bit that says that it is kept and stays inside."""
        return [result for number in self.span.ends for result in self.scene.results[number]]

    def computing(self, number: int) -> float:
        """Cycles of all stages with a step, one after the other, the last one first."""
        if number not in self._computing:
            (step, eager), first = self.span.steps[number], self.span.first
            stage = self.span.linked[first]
            rows = max(1, ceil(self.span.paces[first].rate * step)) if eager else 1
            turns = ceil(stage.size / rows)
            others = 0.0 if self.tail is None else self.tail.computing(number)
            cycles = self.scene.compute_cycles(first, stage.loop, rows, turns)
            self._computing[number] = others + cycles
        return self._computing[number]

    @once
    def _first_beside(self) -> Sequence[tuple[int, Usage]]:
        """The same as `_beside` for the first of all steps, which is often all that is wanted."""
        scene, span, tables = self.scene, self.span, self.tables
        room, bits, memory = scene.room, scene.bits, scene.input_memory
        found = [
            (bits.get(root, 0), room.use(memory, tables.first_held(span, root)))
            for root in span.inputs
        ]
        wholes = [root for root in span.wholes if root in bits]
        ends = {span.linked[number].root: number for number in span.ends}
        return [
            *found,
            *((bits[root], room.use(memory, scene.lives[root].size_bytes)) for root in wholes),
            *((bits.get(root, 0), tables.first_made(span, n)) for root, n in ends.items()),
        ]

    @once
    def _beside(self) -> Sequence[tuple[int, Sequence[Usage]]]:
        """By step what is held of each tensor that comes or goes, and the bit that says that it
        is kept and nothing has to be held."""
        scene, span, tables = self.scene, self.span, self.tables
        room, bits, memory = scene.room, scene.bits, scene.input_memory
        found: list[tuple[int, Sequence[Usage]]] = [
            (bits.get(root, 0), room.each_use(memory, tables.held(span, root)))
            for root in span.inputs
        ]
        for root in span.wholes:
            if root in bits:
                use = room.use(memory, scene.lives[root].size_bytes)
                found.append((bits[root], [use] * len(span.steps)))
        ends = {span.linked[number].root: number for number in span.ends}
        return [
            *found,
            *((bits.get(root, 0), tables.made(span, number)) for root, number in ends.items()),
        ]

    @once
    def _passing(self) -> Sequence[Usage] | None:
        """By step what it takes of constants of which every row has its own part, if any have."""
        span, found = self.span, None if self.tail is None else self.tail._passing
        loop = span.linked[span.first].loop
        for constant in self.scene.constants(span.first, loop):
            if constant.memory and constant.has_rows:
                uses = self.tables.passing(span, constant.memory, constant.core_bytes)
                found = uses if found is None else list(map(add, found, uses))
        return found


def _overlapped(computing: float, moving: float, steps: int) -> float:
    """Cycles if all but one step of what is shorter goes on beside what is longer."""
    parts = steps if steps > 2 else 2
    return computing + moving / parts if computing > moving else moving + computing / parts


def ways_of(scene: Scene, span: Span) -> Ways:
    """All that a span can do; the same object every time."""
    key = span.first, span.last, span.axis
    found = scene.remembered.get(key)
    if not isinstance(found, Ways):
        tail = None if span.tail is None else ways_of(scene, span.tail)
        found = _ways(scene, span, tail)
        scene.remembered[key] = found
    return found


def _ways(scene: Scene, span: Span, tail: Ways | None) -> Ways:
    """What a span can do, from what its tail can."""
    stage = span.linked[span.first]
    tables = StepTables(scene=scene) if tail is None else tail.tables
    constants = _with_constants(scene, span, NO_CONSTANTS if tail is None else tail.constants)
    rings = 0 if tail is None else tail.least_rings
    leaving = (*scene.made[span.first], *(() if tail is None else tail.leaving))
    if span.settled:
        leaving = tuple([root for root in leaving if root not in span.settled])
        for root in span.settled:
            rings += tables.first_held(span, root)
    ends = [span.linked[number].root for number in span.ends]
    computing = scene.compute_cycles(span.first, stage.loop, stage.size, 1)
    return Ways(
        scene=scene,
        span=span,
        tail=tail,
        tables=tables,
        constants=constants,
        crossing=scene.mask((*span.inputs, *span.wholes, *ends)),
        leaving=leaving,
        keepings=scene.keepings(leaving),
        least_rings=rings,
        least_need=scene.room.use(scene.result_memory, rings) + constants.least_use,
        least_computing=computing + (0.0 if tail is None else tail.least_computing),
    )


def _with_constants(scene: Scene, span: Span, known: SpanConstants) -> SpanConstants:
    """The constants of a span, if those of its tail are known."""
    lasting, least, least_use, total = known
    size, use = scene.constant_sums(span.first, span.linked[span.first].loop)
    total += size
    lasting += use
    own = scene.least_constants(span.first)
    if any(size > least.get(memory, 0) for memory, size in own.items()):
        least = {**least, **{m: max(least.get(m, 0), size) for m, size in own.items()}}
        least_use = scene.room.uses(least)
    return SpanConstants(lasting, least, least_use, total)

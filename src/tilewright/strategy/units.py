"""Units: what is run as one piece, a cascade or a single stage, and what that costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import ceil, prod
from operator import add
from typing import NamedTuple

from tilewright.program.cascade import Cascade
from tilewright.program.slicing import SLICE
from tilewright.strategy.room import Usage
from tilewright.strategy.scene import Scene
from tilewright.strategy.spans import Span

WORTH = 32
"""Rows are made in slices where that saves at least this part of all rows that are held."""

MOST_KEEPINGS = 8
"""So many ways to keep some of a unit's results are looked at; otherwise all or none."""

Keeping = tuple[int, Usage]
"""Tensors that are kept, as bits, and the room that they take."""


class Cost(NamedTuple):
    """What a unit takes: bytes and energy to and from outside, and cycles.

    A tuple, since tens of thousands are made for a network.
    """

    moved_bytes: int
    energy_pj: float
    cycles: float
    cascade: Cascade | None = None


@dataclass(frozen=True, kw_only=True)
class SpanConstants:
    """The constants of a span's stages: those that all steps need, and those with rows."""

    lasting: Usage
    least: Mapping[str, int]
    """By memory the smallest tile of any stage."""
    passing: Sequence[Usage]
    """By step what it takes of constants of which every row has its own part."""
    total_bytes: int


@dataclass(frozen=True, kw_only=True)
class Slices:
    """What is held if the newest rows are made in slices, which stages do that on demand."""

    rings: int
    least: Mapping[str, int]
    on_demand: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Ways:
    """All that a span can do, worked out when it is asked for the first time.

    Much of it is the same as for the span without its first stage, the tail.
    """

    scene: Scene
    span: Span
    in_slices: bool
    """Whether the newest rows are made in slices if they come one at a time."""
    tail: "Ways | None"
    _needs: dict[tuple[int, bool], Sequence[Usage]] = field(default_factory=dict)
    _row_needs: dict[int, Usage] = field(default_factory=dict)
    _costs: dict[tuple[int, int, bool], Cost] = field(default_factory=dict)
    _least_costs: dict[int, Cost] = field(default_factory=dict)
    _computing: dict[int, float] = field(default_factory=dict)

    @cached_property
    def crossing(self) -> int:
        """Tensors that are also there before or after the cascade, as bits."""
        return self.scene.mask(self.span.crossing)

    @cached_property
    def keepings(self) -> Sequence[Keeping]:
        """All ways to keep what the span makes."""
        return keepings(self.scene, self.span.first, self.span.last, self.span.private)

    @cached_property
    def least_need(self) -> Usage:
        """Room without results and what comes from outside, constants tile by tile."""
        scene, slices = self.scene, self.slices
        rings = self._rings[0] if slices is None else slices.rings
        least = self._constants.least if slices is None else slices.least
        return scene.room.use(scene.result_memory, rings) + scene.room.uses(least)

    def row_need(self, kept: int) -> Usage:
        """Room for the first of all steps beside all that is kept, constants tile by tile."""
        if kept not in self._row_needs:
            use = self.least_need
            for bit, uses in self._beside:
                if not kept & bit:
                    use += uses[0]
            self._row_needs[kept] = use
        return self._row_needs[kept]

    def needs(self, kept: int, *, lasting: bool) -> Sequence[Usage]:
        """By step the room beside all that is kept, if that are these of the crossing tensors.

        Constants that all steps need either last or come again for every step, tile by tile.
        """
        key = kept, lasting
        if key not in self._needs:
            found = self._lasting_needs if lasting else self._least_needs
            for bit, uses in self._beside:
                if not kept & bit:
                    found = list(map(add, found, uses))
            self._needs[key] = found
        return self._needs[key]

    @cached_property
    def _lasting_needs(self) -> Sequence[Usage]:
        scene, constants = self.scene, self._constants
        lasting = constants.lasting
        rings = [scene.room.use(scene.result_memory, size) + lasting for size in self._rings]
        return list(map(add, rings, constants.passing))

    @cached_property
    def _least_needs(self) -> Sequence[Usage]:
        scene = self.scene
        least = scene.room.uses(self._constants.least)
        others = [scene.room.use(scene.result_memory, size) + least for size in self._rings[1:]]
        return [self.least_need, *others]

    def cost(self, number: int, kept: int, *, lasting: bool) -> Cost:
        """The cost with a step, when some of the crossing tensors are kept."""
        key = number, kept, lasting
        if key not in self._costs:
            self._costs[key] = self._cost(number, kept, lasting=lasting)
        return self._costs[key]

    def _cost(self, number: int, kept: int, *, lasting: bool) -> Cost:
        steps = ceil(self.span.size / self.span.steps[number][0])
        times = 1 if lasting or not self._constants.lasting else steps
        moved, begun = self._moved(kept, times), self._coming_and_going(kept)
        moving = moved.cycles
        moving += self.scene.coming.setup_cycles * steps * (begun != (0, 0))
        computing = self.computing(number)
        return Cost(
            moved_bytes=moved.moved_bytes,
            energy_pj=moved.energy_pj,
            cycles=max(computing, moving) + min(computing, moving) / max(2, steps),
            cascade=self.cascade(number),
        )

    def cascade(self, number: int) -> Cascade:
        """The cascade with a step."""
        step, eager = self.span.steps[number]
        return Cascade(
            first=self.span.first,
            last=self.span.last,
            axis=self.span.axis,
            step=step,
            eager=eager,
            on_demand=() if number or self.slices is None else self.slices.on_demand,
        )

    def least_cost(self, kept: int) -> Cost:
        """What no step can do for less."""
        if kept not in self._least_costs:
            self._least_costs[kept] = self._moved(kept, 1)
        return self._least_costs[kept]

    def _moved(self, kept: int, times: int) -> Cost:
        """What transfers take if constants come so many times."""
        scene = self.scene
        coming, going = self._coming_and_going(kept)
        constants = self._constants.total_bytes * times
        comes, goes, is_constant = scene.coming, scene.going, scene.constant
        return Cost(
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

    @cached_property
    def _coming(self) -> Sequence[tuple[int, int]]:
        """Bytes of each tensor from outside, and the bit that says that it is kept."""
        lives, bits = self.scene.lives, self.scene.bits
        roots = (*self.span.inputs, *self.span.wholes)
        return [(bits[root], lives[root].size_bytes) for root in roots if root in lives]

    @cached_property
    def _going(self) -> Sequence[tuple[int, int]]:
        """Bytes of each result, and the bit that says that it is kept and stays inside."""
        network, found = self.scene.prepared.network, []
        for number in self.span.ends:
            root = self.span.linked[number].root
            life = self.scene.lives.get(root)
            bit = 0 if life is None or life.is_result else self.scene.bits[root]
            results = self.scene.prepared.stages[number].results
            found += [(bit, network.by_name[operand.tensor].size_bytes) for operand in results]
        return found

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

    @cached_property
    def slices(self) -> Slices | None:
        """What is held if rows come one at a time, in slices; None where that is not wanted."""
        if not self.in_slices:
            return None
        return sliced(self.scene, self.span, self._rings[0], self._constants.least)

    @cached_property
    def _rings(self) -> Sequence[int]:
        """By step, bytes of the tensors that never leave the cascade."""
        tail = self.tail
        known = () if tail is None else tail.span.private
        found = [0] * len(self.span.steps) if tail is None else tail._rings
        for root in self.span.private:
            if root not in known:
                found = list(map(add, found, self._held[root]))
        return found

    @cached_property
    def _held(self) -> Mapping[str, Sequence[int]]:
        """By tensor and step, bytes that are held of it."""
        scene, span = self.scene, self.span
        found = {} if self.tail is None else dict(self.tail._held)
        for root in dict.fromkeys(read.root for read in span.linked[span.first].reads):
            found[root] = [
                scene.rounded(scene.result_memory, span.held_bytes(root, step, eager=eager))
                for step, eager in span.steps
            ]
        return found

    @cached_property
    def _made(self) -> Mapping[int, Sequence[Usage]]:
        """By stage and step, room for what it makes at once."""
        scene, span, memory = self.scene, self.span, self.scene.result_memory
        found = {} if self.tail is None else dict(self.tail._made)
        found[span.first] = [
            scene.room.use(
                memory, scene.rounded(memory, span.made_bytes(span.first, step, eager=eager))
            )
            for step, eager in span.steps
        ]
        return found

    @cached_property
    def _beside(self) -> Sequence[tuple[int, Sequence[Usage]]]:
        """By step what is held of each tensor that comes or goes, and the bit that says that it
        is kept and nothing has to be held."""
        scene, span = self.scene, self.span
        room, bits, memory = scene.room, scene.bits, scene.input_memory
        found: list[tuple[int, Sequence[Usage]]] = [
            (bits.get(root, 0), [room.use(memory, size) for size in self._held[root]])
            for root in span.inputs
        ]
        for root in span.wholes:
            if root in bits:
                use = room.use(memory, scene.lives[root].size_bytes)
                found.append((bits[root], [use] * len(span.steps)))
        ends = {span.linked[number].root: self._made[number] for number in span.ends}
        return [*found, *((bits.get(root, 0), uses) for root, uses in ends.items())]

    @cached_property
    def _constants(self) -> SpanConstants:
        scene, span = self.scene, self.span
        known = self.tail._constants if self.tail is not None else _no_constants(span)
        lasting, passing, total = known.lasting, known.passing, known.total_bytes
        stage, least = span.linked[span.first], dict(known.least)
        for memory, size, has_rows in scene.constants(span.first, stage.loop):
            total += size
            if memory and has_rows:
                passing = list(map(add, passing, self._passing(memory, size)))
            elif memory:
                lasting += scene.room.use(memory, scene.rounded(memory, size))
        for memory, size in scene.least_constants(span.first).items():
            least[memory] = max(least.get(memory, 0), size)
        return SpanConstants(lasting=lasting, least=least, passing=passing, total_bytes=total)

    def _passing(self, memory: str, size: int) -> list[Usage]:
        """By step, room for a part of a constant of the first stage, of which rows have theirs."""
        scene, span, found = self.scene, self.span, []
        length, rate = span.linked[span.first].size, span.paces[span.first].rate
        for step, eager in span.steps:
            rows = min(length, ceil(rate * step)) if eager else 1
            part = scene.rounded(memory, ceil(size * rows / length))
            found.append(scene.room.use(memory, part))
        return found


def _no_constants(span: Span) -> SpanConstants:
    return SpanConstants(lasting=0, least={}, passing=[0] * len(span.steps), total_bytes=0)


def ways_of(scene: Scene, span: Span, *, in_slices: bool = False) -> Ways:
    """All that a span can do; the same object every time."""
    key = span.first, span.last, span.axis, in_slices
    found = scene.remembered.get(key)
    if not isinstance(found, Ways):
        tail = None if span.tail is None else ways_of(scene, span.tail, in_slices=in_slices)
        found = Ways(scene=scene, span=span, in_slices=in_slices, tail=tail)
        scene.remembered[key] = found
    return found


def keepings(scene: Scene, first: int, last: int, private: Sequence[str]) -> tuple[Keeping, ...]:
    """All ways to keep some of the tensors that stages make, but for private ones."""
    roots = [r for n in range(first, last + 1) for r in scene.made[n] if r not in private]
    ways = []
    for root in roots:
        life, bit = scene.lives[root], scene.bits[root]
        ways.append([kept for kept, may in ((bit, life.may_stay), (0, life.may_go)) if may])
    if prod(map(len, ways)) > MOST_KEEPINGS:
        # All or nothing: what is between is for smaller units to decide.
        choices = dict.fromkeys((sum(w[0] for w in ways), sum(w[-1] for w in ways)))
    else:
        choices = dict.fromkeys(map(sum, product(*ways)))
    return tuple((mask, scene.use_of(mask)) for mask in choices)


def sliced(scene: Scene, span: Span, rings: int, least: Mapping[str, int]) -> Slices:
    """A span that goes row by row, with the newest rows made in slices where that can be.

    Those first that save most; a stage whose tiles are cut as another one asks cannot ask itself.
    """
    memory, step, eager = scene.result_memory, *span.steps[0]
    saved = {}
    for root in span.private:
        if root in span.on_demand:
            rows = scene.rounded(memory, span.held_bytes(root, step, eager=eager))
            saved[root] = rows - scene.rounded(memory, span.sliced_bytes(root, SLICE))
    makers: list[int] = []
    readers: list[int] = []
    left, most = rings, dict(least)
    for root in sorted(saved, key=lambda root: (-saved[root], root)):
        found = span.on_demand[root]
        if (
            saved[root] * WORTH >= rings
            and found.maker not in readers
            and found.reader not in makers
        ):
            makers.append(found.maker)
            readers.append(found.reader)
            left -= saved[root]
            for place, size in scene.slice_constants(found).items():
                most[place] = max(most.get(place, 0), size)
    return Slices(rings=left, least=most, on_demand=tuple(sorted(makers)))

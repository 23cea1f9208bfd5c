"""Choosing cascades and what is kept, over the whole network.

Stages are cut into units one after the other: a unit is one stage or a cascade of several. What is
known at a cut is which tensors that cross it are kept; for each such state the best way to get
there is remembered. The estimates are those of `units`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Literal

from tilewright.program.cascade import Cascade, Strategy
from tilewright.strategy.scene import Scene
from tilewright.strategy.spans import Span, span_of
from tilewright.strategy.units import (
    Cost,
    SpanConstants,
    Striped,
    Usage,
    constants_of,
    fits,
    fits_beside,
    share_of,
    sliced,
    striped,
    together,
)

Aim = Literal["latency", "energy", "traffic", "memory"]
State = frozenset[str]

EASE = 0.9
"""Where memory counts, units that take less than this part of the most may take up to it."""

FULL = 0.98
"""A strategy that is thought to fill more of the scratchpads may not fit in the end."""

MOST_KEEPINGS = 8
"""So many ways to keep some of a unit's results are looked at; otherwise all or none."""


@dataclass(frozen=True, kw_only=True)
class ChooseOptions:
    """How far the choice looks: stages in a cascade, and states that are followed at every cut."""

    most_stages: int = 16
    most_states: int = 8
    small_cuts: bool = False
    """Whether a stage may always be cut in all directions, not only where nothing else fits."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A strategy and what it is thought to take."""

    strategy: Strategy
    moved_bytes: int
    cycles: float
    share: float
    """The part of the scratchpads that is filled at most."""


@dataclass(frozen=True, slots=True)
class _Node:
    """The best way to a state at a cut."""

    value: tuple[float, ...]
    share: float
    moved_bytes: int
    energy_pj: float
    cycles: float
    before: tuple[int, State] | None = None
    cascade: Cascade | None = None
    kept: tuple[str, ...] = ()
    """Tensors that the unit made and that are kept."""


def choose(scene: Scene, aim: Aim, options: ChooseOptions) -> Chosen | None:
    """The best strategy that was found; None if no unit fits somewhere.

    Rows are made in slices only where memory counts and there is hardly enough otherwise: it takes
    many tasks.
    """
    found = _Chooser(scene, aim, options).chosen()
    if aim != "memory" or (found is not None and found.share <= FULL):
        return found
    if scene.prepared.places.cores > 1:
        return found
    other = _Chooser(scene, aim, options, in_slices=True).chosen()
    known = [chosen for chosen in (found, other) if chosen is not None]
    return min(known, key=lambda chosen: chosen.share, default=None)


@dataclass
class _Chooser:
    scene: Scene
    aim: Aim
    options: ChooseOptions
    in_slices: bool = False
    """Whether the newest rows of a cascade are made in slices."""
    cuts: list[dict[State, _Node]] = field(default_factory=list)
    _known_spans: dict[int, list[list[Span]]] = field(default_factory=dict)
    """Those from one stage on, while they are looked at."""
    _known_alive: dict[State, Usage] = field(default_factory=dict)
    _constants: dict[tuple[int, int, int], SpanConstants] = field(default_factory=dict)
    _striped: dict[tuple[int, int, int, int, bool], Striped] = field(default_factory=dict)

    def chosen(self) -> Chosen | None:
        """Go through all cuts, and back from the best end."""
        count = len(self.scene.prepared.stages)
        self.cuts = [{} for _ in range(count + 1)]
        lives = self.scene.lives
        given = [root for root, life in lives.items() if life.first < 0 and not life.may_go]
        start = _Node((0.0,) * 2, 0.0, 0, 0.0, 0.0, kept=tuple(given))
        self.cuts[0][frozenset(given)] = start
        for first in range(count):
            for state, node in self._followed(first):
                for last, cost, kept in self._units(first, state):
                    self._reach(last + 1, (first, state), node, (cost, kept))
        ends = self.cuts[count]
        if not ends:
            return None
        best = min(ends, key=lambda state: (ends[state].value, sorted(state)))
        return self._back(ends[best])

    def _followed(self, cut: int) -> list[tuple[State, _Node]]:
        states = self.cuts[cut]
        order = sorted(states, key=lambda state: (states[state].value, sorted(state)))
        return [(state, states[state]) for state in order[: self.options.most_states]]

    def _reach(
        self,
        cut: int,
        before: tuple[int, State],
        node: _Node,
        unit: tuple[Cost, tuple[str, ...]],
    ) -> None:
        cost, kept = unit
        lives = self.scene.lives
        state = frozenset(root for root in (*before[1], *kept) if lives[root].last >= cut)
        totals = (
            max(node.share, cost.share),
            node.moved_bytes + cost.moved_bytes,
            node.energy_pj + cost.energy_pj,
            node.cycles + cost.cycles,
        )
        value = self._value(*totals)
        known = self.cuts[cut].get(state)
        if known is None or value < known.value:
            self.cuts[cut][state] = _Node(value, *totals, before, cost.cascade, kept)

    def _value(
        self, share: float, moved_bytes: int, energy_pj: float, cycles: float
    ) -> tuple[float, ...]:
        match self.aim:
            case "memory":
                return share, moved_bytes, cycles
            case "traffic":
                return moved_bytes, cycles
            case "energy":
                return energy_pj, cycles
            case _:
                return cycles, moved_bytes

    def _back(self, node: _Node) -> Chosen:
        end, cascades, kept = node, [], set[str]()
        while True:
            kept.update(node.kept)
            if node.before is None:
                break
            cut, state = node.before
            if node.cascade is not None:
                cascades.append(self._eased(node, state, end.share))
            node = self.cuts[cut][state]
        gone = tuple(root for root in self.scene.lives if root not in kept)
        return Chosen(
            strategy=Strategy(
                cascades=tuple(reversed(cascades)), gone=gone, frugal=self.aim == "memory"
            ),
            moved_bytes=end.moved_bytes,
            cycles=end.cycles,
            share=end.share,
        )

    def _eased(self, node: _Node, state: State, share: float) -> Cascade:
        """A node's cascade; where memory counts, with the largest step for which there is room
        anyway, since other units need more."""
        cascade = node.cascade
        assert cascade is not None
        span = span_of(self.scene.prepared.rows, cascade.first, cascade.last, cascade.axis)
        if self.aim != "memory" or span is None:
            return cascade
        held = {*state, *node.kept}
        alive = self._alive((*sorted(state), *node.kept))
        crossing = tuple(root for root in span.crossing if root in held)
        constants = constants_of(self.scene, span)
        for step, eager in reversed(span.steps):
            way = striped(self.scene, span, constants, step, eager=eager)
            use = together(alive, way.need(crossing, lasting=False))
            if share_of(self.scene, use) <= EASE * share:
                return way.cascade
        return cascade

    def _units(self, first: int, state: State) -> Iterator[tuple[int, Cost, tuple[str, ...]]]:
        """Units that begin at a stage: their last stage, cost, and what they make that is kept."""
        found = [*self._stage_units(first, state), *self._span_units(first, state)]
        if not found or self.aim == "memory" or self.options.small_cuts:
            for kept in self._keepings(first, first, ()):
                cost = self._cut_small(first, state, kept)
                if cost is not None:
                    found.append((first, cost, kept))
        yield from found

    def _stage_units(self, first: int, state: State) -> Iterator[tuple[int, Cost, tuple[str, ...]]]:
        for kept in self._keepings(first, first, ()):
            cost = self._alone(first, state, kept)
            if cost is not None:
                yield first, cost, kept

    def _span_units(self, first: int, state: State) -> Iterator[tuple[int, Cost, tuple[str, ...]]]:
        for spans in self._spans(first):
            for span in spans:
                if not self._fits_at_all(span, state):
                    break
                for kept in self._keepings(first, span.last, span.private):
                    cost = self._cost(span, state, kept)
                    if cost is not None:
                        yield span.last, cost, kept

    def _spans(self, first: int) -> list[list[Span]]:
        """Spans from a stage on, those along alike axes together, short ones first."""
        if first not in self._known_spans:
            rows, stages = self.scene.prepared.rows, self.scene.prepared.stages
            found: dict[int, list[Span]] = {}
            for last in range(first, min(len(stages), first + self.options.most_stages)):
                for axis in self._axes(last):
                    span = span_of(rows, first, last, axis)
                    # Stages that have nothing to hand over are as well off by themselves.
                    if span is not None and (first == last or span.private):
                        found.setdefault(axis, []).append(span)
            self._known_spans = {first: [*found.values()]}
        return self._known_spans[first]

    def _fits_at_all(self, span: Span, state: State) -> bool:
        """Whether a span fits with as little as possible held; longer ones hold more."""
        alive, way = self._alive_in(state), self._with_step(span, 1, False)
        return fits(self.scene, together(alive, way.least_need))

    def _axes(self, last: int) -> list[int]:
        result = self.scene.prepared.stages[last].results[0]
        shape = self.scene.prepared.network.by_name[result.tensor].shape
        rows = self.scene.prepared.rows
        return [a for a, size in enumerate(shape) if size > 1 and rows.of(last, a) is not None]

    def _keepings(self, first: int, last: int, private: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Which of the tensors that a unit makes can be kept, in all ways."""
        made = [
            (root, [keep for keep in (True, False) if (life.may_stay if keep else life.may_go)])
            for root, life in self.scene.lives.items()
            if first <= life.first <= last and root not in private
        ]
        ways = [ways for _, ways in made]
        if prod(map(len, ways)) > MOST_KEEPINGS:
            # All or nothing: what is between is for smaller units to decide.
            choices = dict.fromkeys((tuple(w[0] for w in ways), tuple(w[-1] for w in ways)))
        else:
            choices = dict.fromkeys(product(*ways))
        for choice in choices:
            yield tuple(root for (root, _), keep in zip(made, choice, strict=True) if keep)

    def _alive_in(self, state: State) -> Usage:
        if state not in self._known_alive:
            self._known_alive[state] = self._alive(sorted(state))
        return self._known_alive[state]

    def _alive(self, kept: Sequence[str]) -> Usage:
        use: Usage = {}
        for root in kept:
            life = self.scene.lives[root]
            use[life.memory] = use.get(life.memory, 0) + life.size_bytes
        return use

    def _cost(self, span: Span, state: State, kept: tuple[str, ...]) -> Cost | None:
        """The span with the largest step that fits, constants lasting if that is possible."""
        alive = self._alive_in(state) if not kept else self._alive((*sorted(state), *kept))
        if not fits(self.scene, alive):
            return None
        crossing = tuple([root for root in span.crossing if root in state or root in kept])
        steps = span.steps if self.aim != "memory" else span.steps[:1]
        for lasting in (True, False) if self.aim != "memory" else (False,):
            low, high = 0, len(steps)
            best: tuple[Striped, Usage] | None = None
            middle = 0
            while low < high:
                way = self._with_step(span, *steps[middle])
                need = way.need(crossing, lasting=lasting)
                if fits_beside(self.scene, alive, need):
                    best, low = (way, need), middle + 1
                else:
                    high = middle
                middle = (low + high) // 2
            if best is not None:
                use = together(alive, best[1])
                return best[0].cost(crossing, use, lasting=lasting)
        return None

    def _with_step(self, span: Span, step: int, eager: bool) -> Striped:
        key = (span.first, span.last, span.axis, step, eager)
        if key not in self._striped:
            place = key[:3]
            if place not in self._constants:
                self._constants[place] = constants_of(self.scene, span)
            way = striped(self.scene, span, self._constants[place], step, eager=eager)
            is_sliced = self.in_slices and not eager
            self._striped[key] = sliced(self.scene, way) if is_sliced else way
        return self._striped[key]

    def _alone(self, number: int, state: State, kept: tuple[str, ...]) -> Cost | None:
        """A stage by itself, everything that it touches kept: constants come as it goes along."""
        scene, stage = self.scene, self.scene.prepared.stages[number]
        held = {*state, *kept}
        lives, storage = scene.lives, scene.prepared.storage
        touched = [storage[o.tensor].root for o in (*stage.inputs, *stage.results)]
        if any(root in lives and root not in held for root in touched):
            return None
        use = self._alive((*sorted(state), *kept))
        replaced = scene.replaced(number)
        if replaced is not None and replaced in state:
            use[lives[replaced].memory] -= lives[replaced].size_bytes
        for memory, size in scene.least_constants(number).items():
            use[memory] = use.get(memory, 0) + size
        if not fits(scene, use):
            return None
        constants = sum(size for _, size, _ in scene.constants(number, ""))
        going = sum(
            scene.prepared.network.by_name[o.tensor].size_bytes
            for o in stage.results
            if storage[o.tensor].root not in lives or lives[storage[o.tensor].root].is_result
        )
        computing = scene.compute_cycles(number, "", 0, 1)
        prices = ((scene.constant, constants), (scene.going, going))
        moving = sum(size * price.cycles_per_byte for price, size in prices)
        return Cost(
            moved_bytes=constants + going,
            energy_pj=sum(size * price.pj_per_byte for price, size in prices),
            cycles=max(computing, moving),
            share=share_of(scene, use),
            cascade=None,
        )

    def _cut_small(self, number: int, state: State, kept: tuple[str, ...]) -> Cost | None:
        """A stage by itself, cut as it fits: tiles come and go, some of them several times."""
        residence, lives = self.scene.residence, self.scene.lives
        held = {*state, *kept}
        before, waiting = dict(residence.gone), residence.waiting
        residence.gone.update(dict.fromkeys(root for root in lives if root not in held))
        residence.waiting = ()
        tiling = residence.tiling(number)
        tiles = self.scene.smallest_tiles(number)
        residence.gone.clear()
        residence.gone.update(before)
        residence.waiting = waiting
        if tiling is None:
            return None
        use = self._alive((*sorted(state), *kept))
        for memory, size in tiles.items():
            use[memory] = use.get(memory, 0) + size
        return Cost(
            moved_bytes=int(tiling.moved_bytes),
            energy_pj=tiling.moved_bytes * self.scene.coming.pj_per_byte,
            cycles=tiling.cycles,
            share=share_of(self.scene, use) if self.aim == "memory" else 1.0,
            cascade=None,
        )

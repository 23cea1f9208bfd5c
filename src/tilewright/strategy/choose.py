"""Choosing cascades and what is kept, over the whole network.

Stages are cut into units one after the other: a unit is one stage or a cascade of several. What is
known at a cut is which tensors that cross it are kept; for each such state the best way to get
there is remembered. The estimates are those of `units`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from math import floor, inf
from operator import add, or_
from typing import Literal

from tilewright.program.cascade import Cascade, Strategy
from tilewright.program.tile import Goal
from tilewright.strategy.alone import Alone, alone_of
from tilewright.strategy.cuts import Cut, Node, Slicing, Spot, State, Unit, Value
from tilewright.strategy.kept_sizes import larger_than_believed, shares
from tilewright.strategy.room import Room, Usage
from tilewright.strategy.scene import Keeping, Scene
from tilewright.strategy.spans import Span, span_of
from tilewright.strategy.units import Cost, Ways, ways_of

Aim = Literal["latency", "energy", "traffic", "memory"]
SLICINGS: tuple[Slicing, ...] = ("none", "wait", "forget")
"""What takes the fewest tasks first."""

EASE = 0.9
"""Where memory counts, units that take less than this part of the most may take up to it."""

FULL = 0.98
"""A strategy that is thought to fill more of the scratchpads may not fit in the end."""

MOST_LOOKS = 6
"""So often strategies are chosen if cores keep more of tensors than was believed."""

MOVED, ENERGY, CYCLES = range(3)
"""Figures of a cost, by their places."""

COUNTS: Mapping[Aim, tuple[int, int]] = {
    "memory": (MOVED, CYCLES),
    "traffic": (MOVED, CYCLES),
    "energy": (ENERGY, CYCLES),
    "latency": (CYCLES, MOVED),
}
"""By aim, which figures of a cost count; where memory counts, its share comes before them."""

NOTHING = Cost(moved_bytes=0, energy_pj=0.0, cycles=0.0)


@dataclass(frozen=True, kw_only=True)
class ChooseOptions:
    """How far the choice looks: stages in a cascade, and states that are followed at every cut."""

    most_stages: int = 16
    most_states: int = 8
    small_cuts: bool = False
    """Whether a stage may always be cut in all directions, not only where nothing else fits."""
    forgets: bool = False
    """Whether rows may be made again and again, where nothing else fits."""
    fill: float = 0.0
    """What part of the scratchpads may then be filled, so that it is done in fewer steps."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A strategy and what it is thought to take."""

    strategy: Strategy
    moved_bytes: int
    cycles: float
    share: float
    """The part of the scratchpads that is filled at most."""
    larger: Mapping[str, int] = field(default_factory=dict)
    """Bytes of tensors that make this more than was believed when it was chosen."""


def choose(
    scene: Scene, aim: Aim, options: ChooseOptions, most_share: float = inf
) -> Chosen | None:
    """The best strategy that was found; None if no unit fits somewhere.

    What is made of all rows is made of some after the other only where memory counts, or nothing
    fits otherwise. Where memory counts, None also, and soon, if it fills more than `most_share` of
    the scratchpads.
    Rows are made in slices only where memory counts and there is hardly enough otherwise: it takes
    many tasks.

    What several cores keep of a tensor depends on the cascades that read it, which are chosen after
    it. If that turns out to be more than was believed, and matters, all is chosen again: without
    such cascades, and with larger tensors.
    """
    found = _chosen(scene, aim, options, most_share)
    known = [] if found is None else [found]
    if found is not None and found.larger:
        known.append(_chosen(replace(scene, firm=True), aim, options, most_share) or found)
    for _ in range(MOST_LOOKS):
        if found is None or not found.larger:
            break
        scene = scene.believing(found.larger)
        found = _chosen(scene, aim, options, most_share)
        known += [] if found is None else [found]
    best = min(known, key=lambda chosen: _rank(chosen, aim), default=None)
    return None if best is None or best.share > most_share else best


def _rank(chosen: Chosen, aim: Aim) -> Value:
    """What makes one of several strategies the best; those that do not fit come last."""
    figures = chosen.cycles, float(chosen.moved_bytes)
    if aim == "memory":
        return chosen.share, *figures
    return max(1.0, chosen.share), *(figures if aim == "latency" else figures[::-1])


def _chosen(scene: Scene, aim: Aim, options: ChooseOptions, most_share: float) -> Chosen | None:
    if aim != "memory":
        chosen = (_Chooser(scene, aim, options, reduces=r).chosen() for r in (False, True))
        return next((found for found in chosen if found is not None), None)
    found = _Chooser(scene, aim, options, most_share=most_share).chosen()
    if found is not None and found.share <= FULL:
        return found
    if scene.prepared.places.cores > 1 or most_share <= FULL:
        return found
    other = _Chooser(scene, aim, options, slices="wait").chosen()
    known = [chosen for chosen in (found, other) if chosen is not None]
    if not known and options.forgets:
        return _Chooser(scene, aim, options, slices="forget").chosen()
    return min(known, key=lambda chosen: chosen.share, default=None)


def reached(scene: Scene, options: ChooseOptions) -> int:
    """Through how many stages units lead that take as little memory as possible."""
    slices: Slicing = "forget" if options.forgets and scene.prepared.places.cores == 1 else "none"
    chooser = _Chooser(scene, "memory", options, slices=slices)
    chooser.chosen()
    return max(number for number, cut in enumerate(chooser.cuts) if cut.nodes)


def _need(way: Ways, slices: Slicing) -> Usage:
    """Room that a span takes with as little as possible held."""
    return way.least_need if slices == "none" else way.slices(forgets=slices == "forget").least_need


@dataclass
class _Chooser:
    scene: Scene
    aim: Aim
    options: ChooseOptions
    slices: Slicing = "none"
    reduces: bool = True
    """Whether what is made of all rows may be made of some after the other: it saves memory, not
    time."""
    most_share: float = inf
    """Where memory counts, the part of the scratchpads that units may fill.

    States that fill more come behind all others at a cut and lead to nothing else, so that what is
    found is the same as without this limit.
    """
    cuts: list[Cut] = field(default_factory=list)

    @property
    def _goal(self) -> Goal:
        """What tiles are chosen for."""
        return "latency" if self.aim == "memory" else self.aim

    @cached_property
    def _counts(self) -> tuple[int, int]:
        # Whatever fits is good as a last resort, and what has to be done again takes time.
        return COUNTS["latency" if self.slices == "forget" else self.aim]

    def chosen(self) -> Chosen | None:
        """Go through all cuts, and back from the best end."""
        scene, most = self.scene, self.options.most_states
        count = len(scene.prepared.stages)
        self.cuts = [Cut(later=scene.later[cut], most_states=most) for cut in range(count)]
        self.cuts.append(Cut(later=scene.later[count], most_states=1))
        lives = scene.lives.items()
        given = scene.mask(root for root, life in lives if life.first < 0 and not life.may_go)
        # What comes once may come row by row, too.
        for kept in (given, given & ~scene.coming_once):
            self.cuts[0].nodes[kept] = Node((0.0,), 0.0, NOTHING, None, Unit(kept, NOTHING, 0.0))
        for first in range(count):
            states = self._best_states(first)
            if not states:
                continue
            spots = [
                Spot(first, state, scene.use_of(state), node.share, node.total)
                for state, node in states
            ]
            ways, alone = self._ways(spots), alone_of(scene, first)
            keeps = scene.keepings(scene.made[first])
            for spot in spots:
                fits = self._go_alone(spot, alone, keeps)
                fits = self._go_striped(spot, ways, has_way=fits)
                if alone.touched & scene.coming_once & ~spot.state:
                    continue
                if not fits or self.aim == "memory" or self.options.small_cuts:
                    self._go_cut_small(spot, keeps)
        ends = self._best_states(count)
        return self._back(ends[0][1]) if ends else None

    def _best_states(self, cut: int) -> list[tuple[State, Node]]:
        """The best states at a cut, the very best one first."""
        at, roots = self.cuts[cut], self.scene.roots
        found = [item for item in at.nodes.items() if item[1].value <= at.worst]
        if len({node.value for _, node in found}) == len(found):
            return sorted(found, key=lambda item: item[1].value)
        found.sort(key=lambda item: (item[1].value, sorted(roots(item[0]))))
        return found[: at.most_states]

    def _back(self, end: Node) -> Chosen:
        """The units that lead to a node as a strategy."""
        units = self._units(end)
        loops = {
            number: stage.loop
            for _, unit in units
            if unit.cascade is not None
            for number, stage in unit.cascade[0].span.linked.items()
        }
        kept = reduce(or_, [unit.kept for _, unit in units])
        larger = larger_than_believed(self.scene, kept, loops)
        scene = self.scene.believing(larger) if larger else self.scene
        share = max([end.share, *shares(scene, units)] if larger else [end.share])
        believed = end.share if self.aim == "memory" else max(1.0, end.share)
        cascades = [
            self._eased(*unit.cascade, scene.use_of(unit.held), unit.held, share)
            for _, unit in units
            if unit.cascade is not None
        ]
        return Chosen(
            strategy=Strategy(
                cascades=tuple(cascades),
                gone=self.scene.roots(self.scene.everything & ~kept),
                frugal=self.aim == "memory",
            ),
            moved_bytes=end.total.moved_bytes,
            cycles=end.total.cycles,
            share=share,
            larger=larger if share > believed else {},
        )

    def _units(self, end: Node) -> list[tuple[int, Unit]]:
        """The units that lead to a node, the first one first, with their first stages."""
        node, found = end, list[tuple[int, Unit]]()
        while node.before is not None:
            cut, state = node.before
            found.append((cut, node.unit))
            node = self.cuts[cut].nodes[state]
        # What is there before the first stage.
        found.append((0, node.unit))
        return found[::-1]

    def _eased(
        self, ways: Ways, number: int, slices: Slicing, alive: Usage, held: State, share: float
    ) -> Cascade:
        """A cascade; where memory counts, with the largest step for which there is room anyway,
        since other units need more."""
        if self.aim == "memory" and self.slices != "forget":
            needs = ways.needs(held & ways.crossing, lasting=False)
            shares = [self.scene.room.share(alive + need) for need in needs]
            for most in (EASE * share, FULL * share):
                larger = [number for number, needed in enumerate(shares) if needed <= most]
                if larger and larger[-1] > 0:
                    return ways.cascade(larger[-1])
        if slices == "none":
            return ways.cascade(number)
        forgets = slices == "forget"
        return ways.cascade(number, ways.slices(forgets=forgets).on_demand, forgets=forgets)

    @cached_property
    def _room(self) -> Room:
        """What units may fill."""
        room = self.scene.room
        if self.most_share >= 1.0:
            return room
        # A share is a quotient: times the size it may be less than whole bytes by a rounding error.
        most = {m: floor(size * self.most_share + 1e-6) for m, size in room.sizes.items()}
        return Room(sizes=most)

    def _ways(self, spots: list[Spot]) -> list[list[Ways]]:
        """Spans from a cut on, those along alike axes together, short ones first.

        Up to the first that fits from no spot: longer ones hold more.
        """
        rows, stages = self.scene.prepared.rows, self.scene.prepared.stages
        first, alive = spots[0].cut, [spot.alive for spot in spots]
        found: dict[int, list[Ways]] = {}
        full: list[int] = []
        for last in range(first, min(len(stages), first + self.options.most_stages)):
            for axis in self._axes[last]:
                span = span_of(rows, first, last, axis) if axis not in full else None
                # Stages that have nothing to hand over are as well off by themselves.
                if span is not None and self._is_of_use(span):
                    way = ways_of(self.scene, span)
                    found.setdefault(axis, []).append(way)
                    least = self._least_need(way)
                    if not self._room.fits_beside_any(alive, least):
                        full.append(axis)
        return [*found.values()]

    def _is_of_use(self, span: Span) -> bool:
        """Whether stages have something to hand over."""
        if span.reduces and not self.reduces:
            return False
        return span.first == span.last or bool(span.private)

    def _least_need(self, way: Ways) -> Usage:
        """Room that a span takes with as little as possible held."""
        return _need(way, self.slices)

    @cached_property
    def _axes(self) -> list[list[int]]:
        """By stage the axes along which it can be the last one of a cascade."""
        rows = self.scene.prepared.rows
        return [rows.axes(number) for number in range(len(self.scene.prepared.stages))]

    def _go_striped(self, spot: Spot, ways: list[list[Ways]], *, has_way: bool) -> bool:
        """Reach what cascades lead to; whether there is any way on, if there was none before."""
        room, in_steps = self._room, self.aim != "memory"
        for along in ways:
            for way in along:
                least = self._least_need(way)
                if not room.fits(spot.alive + least):
                    break
                if in_steps:
                    has_way = self._go_in_steps(spot, way, has_way=has_way)
                else:
                    has_way = self._go_row_by_row(spot, way) or has_way
        return has_way

    def _go_row_by_row(self, spot: Spot, way: Ways) -> bool:
        """A span that holds as little as possible; whether it fits."""
        if self.slices == "forget":
            return self._go_again(spot, way)
        room, at, fits = self._room, self.cuts[way.span.last + 1], False
        for kept, kept_use in way.keepings:
            held, alive = spot.state | kept, spot.alive + kept_use
            crossing = held & way.crossing
            if way.needs_kept & ~held or (self.scene.firm and held & way.widened):
                continue
            need = way.rows_beside(crossing) + self._least_need(way)
            if room.fits(alive + need):
                fits, share = True, self.scene.room.share(alive + need)
                least = self._value(spot, way.least_cost(crossing), share)
                if not at.is_beaten(held, least):
                    cost = way.cost(0, crossing, lasting=False)
                    unit = Unit(kept, cost, share, held, need, (way, 0, self.slices))
                    self._reach(at, spot, unit)
        return fits

    def _go_again(self, spot: Spot, way: Ways) -> bool:
        """As a last resort, a span that holds as little as fits, and makes rows again where they
        cannot wait; whether it fits."""
        room, at, fits = self._room, self.cuts[way.span.last + 1], False
        for kept, kept_use in way.keepings:
            held, alive = spot.state | kept, spot.alive + kept_use
            crossing = held & way.crossing
            for slices in SLICINGS:
                need = way.rows_beside(crossing) + _need(way, slices)
                if not room.fits(alive + need):
                    continue
                fits = True
                least = self._value(spot, way.least_cost(crossing), 0.0)
                if at.is_beaten(held, least):
                    break
                number = self._last_step(way, crossing, alive, slices)
                cost = way.cost(number, crossing, lasting=False)
                if slices == "forget":
                    cost = cost._replace(cycles=cost.cycles + way.cycles_again(number))
                share = room.share(alive + need)
                unit = Unit(kept, cost, share, held, need, (way, number, slices))
                self._reach(at, spot, unit)
        return fits

    def _last_step(self, way: Ways, crossing: State, alive: Usage, slices: Slicing) -> int:
        """The number of the largest step of a span that fills no more than it may."""
        if slices == "wait" or not self.options.fill:
            return 0
        number, last = 0, len(way.span.steps) - 1
        needs = way.needs(crossing, lasting=False) if slices == "none" else ()
        while number < last:
            need = needs[number + 1] if needs else way.forgetting_need(crossing, number + 1)
            if self.scene.room.share(alive + need) > self.options.fill:
                break
            number += 1
        return number

    def _go_in_steps(self, spot: Spot, way: Ways, *, has_way: bool) -> bool:
        """A span with the largest step that fits, constants lasting if that is possible.

        Whether there is any way on, if there was none before.
        """
        room, at = self.scene.room, self.cuts[way.span.last + 1]
        first, second = self._counts
        first_total, second_total = spot.total[first], spot.total[second]
        for kept, kept_use in way.keepings:
            held, alive = spot.state | kept, spot.alive + kept_use
            crossing = held & way.crossing
            if way.needs_kept & ~held or (self.scene.firm and held & way.widened):
                continue
            if has_way:
                least = way.least_cost(crossing)
                if at.is_beaten(held, (first_total + least[first], second_total + least[second])):
                    continue
            one_row = alive + way.rows_beside(crossing)
            lasting = room.fits(one_row + way.lasting_needs[0])
            if lasting or room.fits(one_row + way.least_need):
                has_way, needs = True, way.needs(crossing, lasting=lasting)
                number = room.most_fitting(needs, alive)
                cost = way.cost(number, crossing, lasting=lasting)
                value = first_total + cost[first], second_total + cost[second]
                if not at.is_beaten(held, value):
                    need, choice = needs[number], (way, number, SLICINGS[0])
                    unit = Unit(kept, cost, room.share(alive + need), held, need, choice)
                    self._reach(at, spot, unit)
        return has_way

    def _value(self, spot: Spot, cost: Cost, share: float) -> Value:
        """What a unit from a spot leads to."""
        first, second = self._counts
        total = spot.total
        if self.aim == "memory":
            share = 0.0 if self.slices == "forget" else max(spot.share, share)
            return share, total[first] + cost[first], total[second] + cost[second]
        return total[first] + cost[first], total[second] + cost[second]

    def _reach(self, at: Cut, spot: Spot, unit: Unit) -> None:
        """Remember a unit that goes up to a cut, if no better way is known."""
        value, state = self._value(spot, unit.cost, unit.share), spot.state | unit.kept
        if not at.is_beaten(state, value):
            total = Cost(*map(add, spot.total, unit.cost))
            share = max(spot.share, unit.share)
            at.reach(state, Node(value, share, total, (spot.cut, spot.state), unit))

    def _go_alone(self, spot: Spot, alone: Alone, keeps: tuple[Keeping, ...]) -> bool:
        """Reach what a stage leads to with everything that it touches kept; whether it fits."""
        room, at, fits = self._room, self.cuts[spot.cut + 1], False
        for kept, kept_use in keeps:
            use = spot.alive + kept_use + alone.constants
            use -= self.scene.use_of(alone.replaced & spot.state)
            if not alone.touched & ~(spot.state | kept) and room.fits(use):
                share, held = self.scene.room.share(use), (spot.state | kept) & ~alone.replaced
                self._reach(at, spot, Unit(kept, alone.cost, share, held, alone.constants))
                fits = True
        return fits

    def _go_cut_small(self, spot: Spot, keeps: tuple[Keeping, ...]) -> None:
        """Reach what a stage by itself leads to, cut as it fits: tiles come and go, some of them
        several times."""
        scene, number, at = self.scene, spot.cut, self.cuts[spot.cut + 1]
        for kept, kept_use in keeps:
            held, share = spot.state | kept, 1.0
            if self.aim == "memory":
                tiles = scene.smallest_tiles(number, held)
                share = scene.room.share(spot.alive + kept_use + tiles)
                if share > self.most_share:
                    continue
            if at.is_beaten(held, self._value(spot, self._least_cut(number, held), share)):
                continue
            tiling = scene.tiling(number, held, self._goal)
            if tiling is not None:
                cost = Cost(
                    moved_bytes=int(tiling.moved_bytes),
                    energy_pj=tiling.moved_bytes * scene.coming.pj_per_byte,
                    cycles=tiling.cycles,
                )
                self._reach(at, spot, Unit(kept, cost, share, held, None))

    def _least_cut(self, number: int, held: State) -> Cost:
        """What a stage takes at least, however it is cut."""
        scene, moved = self.scene, self.scene.least_cut(number, held)
        return Cost(
            moved_bytes=moved.size_bytes,
            energy_pj=moved.size_bytes * scene.coming.pj_per_byte,
            cycles=moved.cycles_with(scene.least_cycles(number, self._goal)),
        )

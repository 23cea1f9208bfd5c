"""Choosing cascades and what is kept, over the whole network.

Stages are cut into units one after the other: a unit is one stage or a cascade of several. What is
known at a cut is which tensors that cross it are kept; for each such state the best way to get
there is remembered. The estimates are those of `units`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tilewright.program.cascade import Cascade, Strategy
from tilewright.strategy.room import Usage
from tilewright.strategy.scene import Scene
from tilewright.strategy.spans import span_of
from tilewright.strategy.units import Cost, Keeping, Ways, keepings, ways_of

Aim = Literal["latency", "energy", "traffic", "memory"]
State = int
"""Tensors that are kept, as the bits of `Scene.bits`."""

Value = tuple[float, ...]
"""What is made small, the first number before the others."""

EASE = 0.9
"""Where memory counts, units that take less than this part of the most may take up to it."""

FULL = 0.98
"""A strategy that is thought to fill more of the scratchpads may not fit in the end."""

VALUES: Mapping[Aim, Callable[[float, int, float, float], Value]] = {
    "memory": lambda share, moved_bytes, energy_pj, cycles: (share, moved_bytes, cycles),
    "traffic": lambda share, moved_bytes, energy_pj, cycles: (moved_bytes, cycles),
    "energy": lambda share, moved_bytes, energy_pj, cycles: (energy_pj, cycles),
    "latency": lambda share, moved_bytes, energy_pj, cycles: (cycles, moved_bytes),
}

NOTHING = Cost(moved_bytes=0, energy_pj=0.0, cycles=0.0)


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


class _Node(NamedTuple):
    """The best way to a state at a cut."""

    value: Value
    share: float
    moved_bytes: int
    energy_pj: float
    cycles: float
    before: tuple[int, State] | None = None
    cascade: Cascade | None = None
    kept: State = 0
    """Tensors that the unit made and that are kept."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """A cut and a state from which units are looked at."""

    cut: int
    state: State
    alive: Usage
    node: _Node


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alone:
    """A stage by itself, everything that it touches kept."""

    touched: State
    replaced: State
    """The tensor whose place its result takes."""
    constants: Usage
    cost: Cost


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

    def chosen(self) -> Chosen | None:
        """Go through all cuts, and back from the best end."""
        scene = self.scene
        count = len(scene.prepared.stages)
        self.cuts = [{} for _ in range(count + 1)]
        lives = scene.lives.items()
        given = scene.mask(root for root, life in lives if life.first < 0 and not life.may_go)
        self.cuts[0][given] = _Node((0.0,) * 2, 0.0, 0, 0.0, 0.0, kept=given)
        for first in range(count):
            ways, alone = self._ways(first), self._alone(first)
            keeps = keepings(scene, first, first, ())
            for state, node in self._ordered(first)[: self.options.most_states]:
                spot = _Spot(first, state, scene.use_of(state), node)
                fits = self._go_alone(spot, alone, keeps)
                fits = self._go_striped(spot, ways, has_way=fits)
                if not fits or self.aim == "memory" or self.options.small_cuts:
                    self._go_cut_small(spot, keeps)
        ends = self._ordered(count)
        return self._back(ends[0][1]) if ends else None

    def _ordered(self, cut: int) -> list[tuple[State, _Node]]:
        """States at a cut, the best one first."""
        roots = self.scene.roots
        return sorted(self.cuts[cut].items(), key=lambda s: (s[1].value, sorted(roots(s[0]))))

    def _reach(self, cut: int, spot: _Spot, kept: State, unit: tuple[Cost, float]) -> None:
        """Remember a unit that goes up to a cut, if no better way is known."""
        (cost, share), node = unit, spot.node
        state = (spot.state | kept) & self.scene.later[cut]
        totals = (
            max(node.share, share),
            node.moved_bytes + cost.moved_bytes,
            node.energy_pj + cost.energy_pj,
            node.cycles + cost.cycles,
        )
        value = VALUES[self.aim](*totals)
        known = self.cuts[cut].get(state)
        if known is None or value < known.value:
            before = spot.cut, spot.state
            self.cuts[cut][state] = _Node(value, *totals, before, cost.cascade, kept)

    def _is_beaten(self, cut: int, spot: _Spot, kept: State, least: tuple[Cost, float]) -> bool:
        """Whether a unit is no better than what is known even if it takes only the least."""
        known = self.cuts[cut].get((spot.state | kept) & self.scene.later[cut])
        if known is None:
            return False
        (cost, share), node = least, spot.node
        value = VALUES[self.aim](
            max(node.share, share),
            node.moved_bytes + cost.moved_bytes,
            node.energy_pj + cost.energy_pj,
            node.cycles + cost.cycles,
        )
        return value >= known.value

    def _back(self, node: _Node) -> Chosen:
        end, cascades, kept = node, [], 0
        while True:
            kept |= node.kept
            if node.before is None:
                break
            cut, state = node.before
            if node.cascade is not None:
                cascades.append(self._eased(node.cascade, state | node.kept, end.share))
            node = self.cuts[cut][state]
        return Chosen(
            strategy=Strategy(
                cascades=tuple(reversed(cascades)),
                gone=self.scene.roots(self.scene.everything & ~kept),
                frugal=self.aim == "memory",
            ),
            moved_bytes=end.moved_bytes,
            cycles=end.cycles,
            share=end.share,
        )

    def _eased(self, cascade: Cascade, held: State, share: float) -> Cascade:
        """A cascade; where memory counts, with the largest step for which there is room anyway,
        since other units need more."""
        span = span_of(self.scene.prepared.rows, cascade.first, cascade.last, cascade.axis)
        if self.aim != "memory" or span is None:
            return cascade
        ways, alive = ways_of(self.scene, span), self.scene.use_of(held)
        needs = ways.needs(held & ways.crossing, lasting=False)
        for number in reversed(range(len(needs))):
            if self.scene.room.share(alive + needs[number]) <= EASE * share:
                return ways.cascade(number)
        return cascade

    def _ways(self, first: int) -> list[list[Ways]]:
        """Spans from a stage on, those along alike axes together, short ones first."""
        rows, stages = self.scene.prepared.rows, self.scene.prepared.stages
        found: dict[int, list[Ways]] = {}
        for last in range(first, min(len(stages), first + self.options.most_stages)):
            for axis in self._axes(last):
                span = span_of(rows, first, last, axis)
                # Stages that have nothing to hand over are as well off by themselves.
                if span is not None and (first == last or span.private):
                    ways = ways_of(self.scene, span, in_slices=self.in_slices)
                    found.setdefault(axis, []).append(ways)
        return [*found.values()]

    def _axes(self, last: int) -> list[int]:
        result = self.scene.prepared.stages[last].results[0]
        shape = self.scene.prepared.network.by_name[result.tensor].shape
        rows = self.scene.prepared.rows
        return [a for a, size in enumerate(shape) if size > 1 and rows.of(last, a) is not None]

    def _go_striped(self, spot: _Spot, ways: list[list[Ways]], *, has_way: bool) -> bool:
        """Reach what cascades lead to; whether there is any way on, if there was none before."""
        room = self.scene.room
        for along in ways:
            for way in along:
                # With as little as possible held; longer spans hold more.
                if not room.fits(spot.alive + way.least_need):
                    break
                for keeping in way.keepings:
                    alive = spot.alive + keeping[1]
                    if not room.fits(alive):
                        continue
                    if self.aim == "memory":
                        fits = self._go_row_by_row(spot, way, keeping)
                    else:
                        fits = self._go_in_steps(spot, way, keeping, may_skip=has_way)
                    has_way = has_way or fits
        return has_way

    def _go_row_by_row(self, spot: _Spot, way: Ways, keeping: Keeping) -> bool:
        """A span that holds as little as possible."""
        (kept, kept_use), room = keeping, self.scene.room
        crossing = (spot.state | kept) & way.crossing
        use = spot.alive + kept_use + way.row_need(crossing)
        if not room.fits(use):
            return False
        share, cut = room.share(use), way.span.last + 1
        if not self._is_beaten(cut, spot, kept, (way.least_cost(crossing), share)):
            self._reach(cut, spot, kept, (way.cost(0, crossing, lasting=False), share))
        return True

    def _go_in_steps(self, spot: _Spot, way: Ways, keeping: Keeping, *, may_skip: bool) -> bool:
        """A span with the largest step that fits, constants lasting if that is possible."""
        kept, kept_use = keeping
        crossing, cut = (spot.state | kept) & way.crossing, way.span.last + 1
        if may_skip and self._is_beaten(cut, spot, kept, (way.least_cost(crossing), 0.0)):
            return False
        alive = spot.alive + kept_use
        for lasting in (True, False):
            needs = way.needs(crossing, lasting=lasting)
            number = self._largest(needs, alive)
            if number is not None:
                share = self.scene.room.share(alive + needs[number])
                self._reach(cut, spot, kept, (way.cost(number, crossing, lasting=lasting), share))
                return True
        return False

    def _largest(self, needs: Sequence[Usage], alive: Usage) -> int | None:
        """The largest step that fits."""
        fits = self.scene.room.fits
        low, high = 0, len(needs)
        best, middle = None, 0
        while low < high:
            if fits(alive + needs[middle]):
                best, low = middle, middle + 1
            else:
                high = middle
            middle = (low + high) // 2
        return best

    def _alone(self, number: int) -> _Alone:
        """A stage by itself: constants come as it goes along."""
        scene, stage = self.scene, self.scene.prepared.stages[number]
        lives, storage = scene.lives, scene.prepared.storage
        replaced = scene.replaced(number)
        constants = sum(size for _, size, _ in scene.constants(number, ""))
        going = sum(
            scene.prepared.network.by_name[o.tensor].size_bytes
            for o in stage.results
            if storage[o.tensor].root not in lives or lives[storage[o.tensor].root].is_result
        )
        prices = ((scene.constant, constants), (scene.going, going))
        moving = sum(size * price.cycles_per_byte for price, size in prices)
        return _Alone(
            touched=scene.mask(storage[o.tensor].root for o in (*stage.inputs, *stage.results)),
            replaced=0 if replaced is None else scene.mask([replaced]),
            constants=scene.room.uses(scene.least_constants(number)),
            cost=Cost(
                moved_bytes=constants + going,
                energy_pj=sum(size * price.pj_per_byte for price, size in prices),
                cycles=max(scene.compute_cycles(number, "", 0, 1), moving),
            ),
        )

    def _go_alone(self, spot: _Spot, alone: _Alone, keeps: tuple[Keeping, ...]) -> bool:
        """Reach what a stage leads to with everything that it touches kept; whether it fits."""
        room, fits = self.scene.room, False
        for kept, kept_use in keeps:
            use = spot.alive + kept_use + alone.constants
            use -= self.scene.use_of(alone.replaced & spot.state)
            if not alone.touched & ~(spot.state | kept) and room.fits(use):
                self._reach(spot.cut + 1, spot, kept, (alone.cost, room.share(use)))
                fits = True
        return fits

    def _go_cut_small(self, spot: _Spot, keeps: tuple[Keeping, ...]) -> None:
        """Reach what a stage by itself leads to, cut as it fits: tiles come and go, some of them
        several times."""
        scene, number = self.scene, spot.cut
        for kept, kept_use in keeps:
            held, share = spot.state | kept, 1.0
            if self.aim == "memory":
                tiles = scene.smallest_tiles(number, held)
                share = scene.room.share(spot.alive + kept_use + tiles)
            if self._is_beaten(number + 1, spot, kept, (NOTHING, share)):
                continue
            tiling = scene.tiling(number, held)
            if tiling is not None:
                cost = Cost(
                    moved_bytes=int(tiling.moved_bytes),
                    energy_pj=tiling.moved_bytes * scene.coming.pj_per_byte,
                    cycles=tiling.cycles,
                )
                self._reach(number + 1, spot, kept, (cost, share))

"""What recomputing needs at most, without going through its steps: there may be far too many.

It is what the steps need, unless a tensor is read as several parts of one concatenation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.program.boxes import elements
from tilewright.strategy.ladder.liveness import Alive
from tilewright.strategy.ladder.recompute import Recompute
from tilewright.units import packed_bytes


@dataclass(frozen=True, slots=True)
class _Most:
    """The most bytes at once below some stage, and whose they are."""

    size_bytes: int
    alive: tuple[Alive, ...]

    def with_more(self, *others: Alive) -> "_Most":
        held = tuple(other for other in others if other.size_bytes)
        return _Most(self.size_bytes + sum(o.size_bytes for o in held), (*held, *self.alive))


_NOTHING = _Most(0, ())


def recompute_peak(plan: Recompute) -> tuple[int, tuple[Alive, ...]]:
    """Bytes of activations at the peak, and whose they are."""
    depths = _Depths(plan)
    lives = _kept_lives(plan)
    best = _NOTHING
    for turn, number in enumerate(plan.targets):
        kept = [
            Alive(tensor=name, size_bytes=plan.work.held[name].size_bytes, chunks=1)
            for name, (first, last) in lives.items()
            if first <= turn <= last
        ]
        found = depths.of_target(number).with_more(*kept)
        best = max(best, found, key=lambda most: most.size_bytes)
    alive = sorted(best.alive, key=lambda alive: (-alive.size_bytes, alive.tensor, alive.is_sum))
    return best.size_bytes, tuple(alive)


def _kept_lives(plan: Recompute) -> Mapping[str, tuple[int, int]]:
    """By tensor that is kept whole, the first and the last target during which it is there."""
    turns = {number: turn for turn, number in enumerate(plan.targets)}
    makers = plan.work.makers
    lives = {name: (turns.get(makers.get(name, -1), 0),) * 2 for name in sorted(plan.kept)}
    for turn, number in enumerate(plan.targets):
        for name in _kept_below(plan, number):
            lives[name] = (lives[name][0], max(lives[name][1], turn))
    return lives


def _kept_below(plan: Recompute, number: int) -> list[str]:
    """Tensors that are kept and that computing a stage's result comes down to."""
    found: dict[str, None] = {}
    seen: dict[int, None] = {}
    left = [number]
    while left:
        at = left.pop()
        if at in seen:
            continue
        seen[at] = None
        for name, _, _ in plan.reaches[at]:
            if name in plan.kept:
                found[name] = None
            else:
                left.append(plan.work.makers[name])
    return list(found)


@dataclass
class _Depths:
    """What computing one pixel of each stage needs."""

    plan: Recompute
    known: dict[int, _Most] = field(default_factory=dict)

    def of_target(self, number: int) -> _Most:
        """A result that is kept is counted by its whole tensor, not by its pixels."""
        plan = self.plan
        if number not in plan.cut:
            return _NOTHING
        name = plan.work.stages[number].results[0].tensor
        return self._most(number, is_kept=name in plan.kept)

    def _of(self, number: int) -> _Most:
        if number not in self.known:
            self.known[number] = self._most(number, is_kept=False)
        return self.known[number]

    def _most(self, number: int, *, is_kept: bool) -> _Most:
        plan = self.plan
        name = plan.work.stages[number].results[0].tensor
        own = Alive(tensor=name, size_bytes=0 if is_kept else plan.grids[name].cell_bytes, chunks=1)
        if self._taps(number) > 1:
            return self._by_tap(number, own, is_kept=is_kept)
        best, held = _NOTHING, _NOTHING
        for child, cells in self._children(number):
            maker = plan.work.makers[child]
            pixel = plan.grids[child].cell_bytes
            others = Alive(tensor=child, size_bytes=(cells - 1) * pixel, chunks=cells - 1)
            below = self._of(maker).with_more(others, *held.alive)
            best = max(best, below, key=lambda most: most.size_bytes)
            held = held.with_more(Alive(tensor=child, size_bytes=cells * pixel, chunks=cells))
        return max(best, held.with_more(own), key=lambda most: most.size_bytes)

    def _by_tap(self, number: int, own: Alive, *, is_kept: bool) -> _Most:
        plan = self.plan
        stage = plan.work.stages[number]
        (child, _), *_ = self._children(number)
        grid = plan.grids[own.tensor]
        size = packed_bytes(elements(grid.box(0, 0)), plan.work.sum_bits(stage))
        sums = Alive(tensor=own.tensor, size_bytes=size, chunks=1, is_sum=True)
        pixel = Alive(tensor=child, size_bytes=plan.grids[child].cell_bytes, chunks=1)
        is_over = not is_kept and size == own.size_bytes and plan.work.is_alone(own.tensor)
        last = _NOTHING.with_more(sums, pixel) if is_over else _NOTHING.with_more(sums, pixel, own)
        below = self._of(plan.work.makers[child]).with_more(sums)
        return max(below, last, key=lambda most: most.size_bytes)

    def _taps(self, number: int) -> int:
        count = 1
        for window in self.plan.windows.get(number, ()):
            count *= max(len(taps) for taps in window.taps)
        return count

    def _children(self, number: int) -> list[tuple[str, int]]:
        """Tensors that are computed anew, and how many pixels of each are needed together."""
        found = []
        for name, rows, columns in self.plan.reaches[number]:
            if name not in self.plan.kept:
                cells = int((rows[:, 1] - rows[:, 0]).max() * (columns[:, 1] - columns[:, 0]).max())
                found.append((name, 1 if number in self.plan.windows else cells))
        return found

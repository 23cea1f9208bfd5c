"""Looking for stretches of a network that have to run in strips, and for the fewest strips.

How far the choice of cascades gets tells where there is too little room. A stretch around that
place is cut into strips that lead through it, and so on until there is room for everything.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final

from tilewright.network.graph import Network, Op
from tilewright.program.lower import Prepared
from tilewright.program.rows import reduced_loop
from tilewright.strategy.apart import Apart
from tilewright.strategy.choose import ChooseOptions, reached
from tilewright.strategy.columns import Stretch, stretch_of
from tilewright.strategy.patches import Strips, patched
from tilewright.strategy.scene import scene_of
from tilewright.strategy.spans import span_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How far strips are looked for."""

    counts: tuple[int, ...] = (2, 3, 4, 6, 8)
    """Into how many strips a stretch may be cut."""
    trials: int = 16
    """So often it is looked how far the choice of cascades gets."""
    is_great: bool = False
    """Whether whatever fits is looked for, however long that takes."""


USUAL: Final = Effort()
GREAT: Final = Effort(counts=(*USUAL.counts, 12, 16, 24, 32), trials=100, is_great=True)

MOST_STRETCHES = 12
"""So many stretches run in strips at most."""

MOST_AROUND = 3
"""So many stretches around one place are tried, the shortest ones."""

MOST_BEGINNINGS = 2
"""They begin at so many places before it."""

MOST_OPS = 100
"""No stretch has more ops."""

SMALL = 64
"""Tensors that take no more than this part of the room are not large."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """How far the choice of cascades gets with some stretches in strips."""

    strips: Strips
    stuck: int
    """The place in the order of the first op for which there is no room."""


@dataclass
class StripSearch:
    """Looks for stretches, from the first op without room to the last."""

    network: Network
    order: tuple[Op, ...]
    options: ChooseOptions
    prepared_of: Callable[[Network, tuple[Op, ...]], Prepared]
    """A network, with its ops in an order, on a machine with as much room as strips may take."""
    effort: Effort = USUAL
    furthest: int = -1
    """The last place in the order that a trial did not lead past."""
    proposals: int = 0
    """How often there seemed to be room for everything."""
    trials_left: int = field(init=False)

    def __post_init__(self) -> None:
        self.trials_left = self.effort.trials

    def found(self) -> Iterator[Strips]:
        """Stretches and strips with which there seems to be room for everything; none if there is
        without."""
        trial = None if self.blocked is not None else self._trial(())
        if trial is None:
            return
        if trial.stuck == len(self.order):
            self.proposals += 1
            yield ()
            return
        for strips in self._completed(trial):
            found = self._with_fewer(strips)
            if found is not None:
                self.proposals += 1
                yield found

    def _completed(self, trial: _Trial) -> Iterator[Strips]:
        """The strips of a trial, and of more stretches, that lead through everything."""
        if trial.stuck == len(self.order):
            yield trial.strips
            return
        blocked, tried = trial.stuck, 0
        for stretch in self._stretches(trial):
            # What leads up to a place from which nothing leads on is of no use.
            if self._end(stretch) < blocked:
                continue
            if tried == MOST_AROUND:
                return
            tried += 1
            further = self._through(trial.strips, stretch)
            if further is not None:
                yield from self._completed(further)
                blocked = further.stuck if further.stuck < len(self.order) else blocked

    def _through(self, strips: Strips, stretch: Stretch) -> _Trial | None:
        """A trial with one more stretch in strips that leads through it."""
        counts = self._counts(stretch)
        # The first stretch tells whether strips help at all; for others two are mostly enough.
        for count in dict.fromkeys((*counts[:1], *counts[-1:]) if strips else counts[-1:]):
            trial = self._trial((*strips, (stretch, count)))
            if trial is not None and trial.stuck > self._end(stretch):
                return trial
        return None

    def _with_fewer(self, strips: Strips) -> Strips | None:
        """As few strips of each stretch, the first one first, as still lead through everything;
        None if these do not.

        Many strips take long to look through: two of each stretch have to speak for the others, and
        where they do not, there are more of them.
        """
        if not self.effort.is_great:
            return self._fewest(strips) if self._leads_through(strips) else None
        found: Strips | None = self._fewest(strips, two_of_each=True)
        while found is not None:
            trial = self._trial(found, two_of_each=False)
            if trial is None or trial.stuck == len(self.order):
                return None if trial is None else found
            found = self._with_more_at(found, trial.stuck)
        return None

    def _fewest(self, strips: Strips, *, two_of_each: bool = False) -> Strips:
        leads = partial(self._leads_through, two_of_each=two_of_each)
        for at, (stretch, most) in enumerate(strips):
            fewer = [
                (*strips[:at], (stretch, count), *strips[at + 1 :])
                for count in self._counts(stretch)
                if count < most
            ]
            fewest = bisect_left(fewer, True, key=leads)
            strips = fewer[fewest] if fewest < len(fewer) else strips
        return strips

    def _with_more_at(self, strips: Strips, place: int) -> Strips | None:
        """The same with the next higher number of strips where an op has no room."""
        for at, (stretch, count) in enumerate(strips):
            more = [other for other in self._counts(stretch) if other > count]
            if self._place[stretch.walks[0].op.name] <= place <= self._end(stretch) and more:
                return (*strips[:at], (stretch, more[0]), *strips[at + 1 :])
        return None

    def _leads_through(self, strips: Strips, *, two_of_each: bool = False) -> bool:
        """Whether there is room for everything with all strips, or with two of each stretch."""
        trial = self._trial(strips, two_of_each=two_of_each)
        return trial is not None and trial.stuck == len(self.order)

    def _trial(self, strips: Strips, *, two_of_each: bool = True) -> _Trial | None:
        """How far one gets with strips; None if there cannot be so many, or no more trials."""
        patches = patched(self.network, self.order, strips, two_of_each=two_of_each)
        if patches is None or not self.trials_left:
            return None
        self.trials_left -= 1
        prepared = self.prepared_of(patches.network, patches.network.ops)
        scene = scene_of(prepared)
        if scene is None:
            return None
        number = reached(scene, self.options)
        if number == len(prepared.stages):
            return _Trial(strips, len(self.order))
        name = prepared.stages[number].op.name
        stuck = self._place[patches.ops[name].op if name in patches.ops else name]
        self.furthest = max(self.furthest, stuck)
        return _Trial(strips, stuck)

    @cached_property
    def _place(self) -> dict[str, int]:
        """By op its place in the order."""
        return {op.name: place for place, op in enumerate(self.order)}

    def _end(self, stretch: Stretch) -> int:
        """The place of a stretch's last op in the order."""
        return self._place[stretch.walks[-1].op.name]

    def _stretches(self, trial: _Trial) -> Iterator[Stretch]:
        """Stretches around the op without room whose ends leave some, short ones first.

        Those come last that leave what they have read, which takes room together with the result.
        As a last resort those come first whose result is small, however long they are.
        """
        first = max((self._end(stretch) for stretch, _ in trial.strips), default=-1)
        around = [(b, e) for b, e in self._closed_pairs if first <= b < trial.stuck <= e]
        begins = sorted({begin for begin, _ in around})[-MOST_BEGINNINGS:]
        found = [(self._reduces(e), self._size(b, e), e - b, e) for b, e in around if b in begins]
        for *_, length, end in sorted(found) if len(trial.strips) < MOST_STRETCHES else ():
            stretch = self._stretch(end - length, end)
            if stretch is not None:
                yield stretch

    def _reduces(self, end: int) -> bool:
        """Whether a stretch up to a place would end in a result that is made of all columns."""
        op = self.order[end]
        axes = range(len(op.inputs[0].index or ())) if op.inputs else ()
        return any(reduced_loop(op, ~axis) is not None for axis in axes)

    def _size(self, begin: int, end: int) -> int:
        """What a stretch leaves: bytes of its result as a last resort, otherwise whether more than
        that."""
        if self.options.forgets:
            return self.network.by_name[self.order[end].outputs[0].tensor].size_bytes
        return int(not self._used(begin, end))

    def _closed(self, begin: int, end: int) -> bool:
        """Whether ops between two places use up one large tensor at most and leave one, with room
        for both and for all that waits."""
        before, after = self._alive[begin], self._alive[end]
        result, used = self.order[end].outputs[0].tensor, self._used(begin, end)
        large = [name for name in used if self._results.get(name, 0) * SMALL > self.room]
        # A tensor that is made on the way, or lies in another one, has no place of its own.
        if len(large) > 1 or any(name not in self._results for name in (*used, result)):
            return False
        tensors = [self.network.by_name[name] for name in (*before, result)]
        # What leaves the network leaves it strip by strip.
        size_bytes = sum(tensor.size_bytes for tensor in tensors if tensor.role != "output")
        return size_bytes < self.room and {*after} == {*before, result} - {*used}

    def _used(self, begin: int, end: int) -> tuple[str, ...]:
        """What waits behind one place, but not behind another any more."""
        return tuple(name for name in self._alive[begin] if name not in self._alive[end])

    @cached_property
    def blocked(self) -> int | None:
        """The last place behind which more waits than there is room for, and that neither a cascade
        nor a stretch leads past, if there is one."""
        for number, stage in reversed([*enumerate(self._whole.stages)][:-1]):
            place = max(self._place[op.name] for op in (stage.op, *stage.fused))
            if self.waiting_bytes(place) > self.room and not (
                self._cascade_leads_past(number, place) or self._stretch_leads_past(place)
            ):
                return place
        return None

    def waiting_bytes(self, place: int) -> int:
        """What ops behind a place read of what is made before it, at the least."""
        return sum(self._waiting(place).values())

    def _waiting(self, place: int) -> dict[str, int]:
        """The storages that hold that, and its bytes."""
        found: dict[str, int] = {}
        for tensor in map(self.network.by_name.__getitem__, self._alive[place]):
            root = self._whole.storage[tensor.name].root
            # What leaves the network may be gone, and what is fused is never there.
            if tensor.role != "output" and root in self._whole.rows.users:
                found[root] = max(found.get(root, 0), tensor.size_bytes)
        return found

    def _cascade_leads_past(self, number: int, place: int) -> bool:
        """Whether a cascade goes on behind a stage, and holds so much as rows only that there is
        room for what waits beside it."""
        rows, stages, waiting = self._whole.rows, self._whole.stages, self._waiting(place)
        most = self.options.most_stages
        for first in range(number, max(-1, number - most), -1):
            for last in range(number + 1, min(len(stages), first + most)):
                inside = [root for root in waiting if rows.is_used_within(root, first, last)]
                left = sum(waiting.values()) - sum(waiting[root] for root in inside)
                if left <= self.room and any(
                    span_of(rows, first, last, axis) is not None for axis in rows.axes(last)
                ):
                    return True
        return False

    def _stretch_leads_past(self, place: int) -> bool:
        pairs = [(begin, end) for begin, end in self._closed_pairs if begin < place < end]
        return any(self._stretch(begin, end) is not None for begin, end in pairs)

    def apart(self, part: float) -> Apart:
        """Who has to make a tensor again because it is too large to wait: of more than this part of
        the room."""
        return Apart(
            network=self.network,
            order=self.order,
            prepared=self._whole,
            room=self.room,
            most_stages=self.options.most_stages,
            part=part,
        )

    @cached_property
    def _closed_pairs(self) -> list[tuple[int, int]]:
        """All stretches that leave enough room, by the places before and behind them."""
        count = len(self.order)
        return [
            (begin, end)
            for begin in range(-1, count)
            for end in range(begin + 1, min(begin + MOST_OPS + 1, count))
            if self._closed(begin, end)
        ]

    def _stretch(self, begin: int, end: int) -> Stretch | None:
        """The ops between two places, if they can run in strips."""
        if self._reduces(end) and not self.options.forgets:
            return None
        found = stretch_of(self.network, self.order[begin + 1 : end + 1])
        return found if found is not None and self._counts(found) else None

    @cached_property
    def _alive(self) -> dict[int, tuple[str, ...]]:
        """By place, the tensors that are made until then and wanted afterwards.

        Before the first op there is nothing but inputs, which need not be there as a whole.
        """
        last = {o.tensor: place for place, op in enumerate(self.order) for o in op.inputs}
        last |= {tensor.name: len(self.order) for tensor in self.network.outputs}
        found: dict[int, tuple[str, ...]] = {-1: ()}
        for place, op in enumerate(self.order):
            names = (*found[place - 1], *(operand.tensor for operand in op.outputs))
            found[place] = tuple(name for name in names if last.get(name, place) > place)
        return found

    @cached_property
    def _whole(self) -> Prepared:
        """The network without strips."""
        return self.prepared_of(self.network, self.order)

    @cached_property
    def _results(self) -> dict[str, int]:
        """Tensors that stages make, in storage of their own, and their bytes."""
        storage = self._whole.storage
        names = [stage.results[0].tensor for stage in self._whole.stages]
        return {
            name: self.network.by_name[name].size_bytes
            for name in names
            if storage[name].root == name
        }

    @cached_property
    def room(self) -> int:
        """Bytes of all scratchpads."""
        spaces = self._whole.places.spaces
        return sum(space.size_bytes for space in spaces if space.kind == "scratchpad")

    def _counts(self, stretch: Stretch) -> list[int]:
        """Into how many strips a stretch may be cut, few first."""
        return [count for count in self.effort.counts if count <= stretch.columns]


def with_more(strips: Strips) -> Iterator[Strips]:
    """The same stretches, one of them in more strips."""
    for at, (stretch, fewest) in enumerate(strips):
        for count in USUAL.counts:
            if fewest < count <= stretch.columns:
                yield (*strips[:at], (stretch, count), *strips[at + 1 :])

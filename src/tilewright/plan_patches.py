"""Plans in strips: where nothing else fits, stretches of a network run some columns at a time.

How far the choice of cascades gets tells where there is too little room. A stretch around that
place is cut into strips, as few as lead through it, and so on until there is room for everything.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.machine.model import Machine
from tilewright.network.graph import Network, Op
from tilewright.plan_drafts import Draft, Drafts
from tilewright.plan_memory import cut_to
from tilewright.plan_model import Plan
from tilewright.replay.check import check
from tilewright.strategy.choose import reached
from tilewright.strategy.columns import Stretch, stretch_of
from tilewright.strategy.patches import Patches, patched
from tilewright.strategy.scene import scene_of
from tilewright.strategy.unpatched import unpatched, unpatched_stages

STRIP_COUNTS = (2, 3, 4, 6, 8)
"""Into how many strips a stretch may be cut."""

MOST_STRETCHES = 12
"""So many stretches run in strips at most."""

MOST_TRIED = 3
"""So many stretches around one place are tried."""

MOST_BEGINNINGS = 2
"""They begin at so many places before it."""

LIKELY = 0.97
"""What is thought to fit into this part of the scratchpads mostly does so in the end."""

UNLIKELY = 0.9
"""If it does not, strips are looked for that take no more than this part."""

Strips = tuple[tuple[Stretch, int], ...]
"""Stretches of ops, and how many strips each has."""


@dataclass(frozen=True, kw_only=True)
class Planning:
    """How plans of a network on a machine are made."""

    order: tuple[Op, ...]
    machine: Machine
    drafts_of: Callable[[Network, tuple[Op, ...]], Callable[[Machine], Drafts]]
    """Drafts of plans of a network, with its ops in an order."""


def plan_in_strips(network: Network, planning: Planning) -> Plan | None:
    """The plan of a network with stretches in strips; None if that does not help either.

    Raises:
        LimitError: the plan did not pass its check, which is a fault of Tilewright.
    """
    search = _Search(network, planning)
    if not search.may_help():
        return None
    for attempt in (search, replace(search, in_slices=True), replace(search, share=UNLIKELY)):
        patches = attempt.patches()
        plan = None if patches is None else _plan_of(patches, planning, search.drafts)
        if plan is not None or (patches is None and attempt.in_slices):
            return plan
    return None


def _plan_of(patches: Patches, planning: Planning, whole: Drafts) -> Plan | None:
    """The plan of a network in strips as one of the network itself, checked."""
    found = _unchecked(planning.drafts_of(patches.network, patches.network.ops)(planning.machine))
    timetable = None if found is None else unpatched(found.timetable, patches)
    if found is None or timetable is None:
        return None
    if whole.options.checked:
        whole.watcher("check")
        check(timetable, patches.original)
    return replace(
        found,
        network=patches.original,
        options=whole.options,
        stages=unpatched_stages(found.stages, patches),
        timetable=timetable,
        roofline=whole.prepared.bounds,
        strips=patches.figures,
    )


def _unchecked(drafts: Drafts) -> Plan | None:
    """The best plan of what the choice of cascades proposes, not checked."""
    drafts.explain_nothing()
    drafts.options = replace(drafts.options, checked=False)
    best: Draft | None = None
    for chosen in (drafts.chosen("memory"), drafts.chosen(drafts.goal)):
        candidate = None if chosen is None else drafts.candidate(drafts.goal, chosen.strategy)
        if candidate is not None:
            found = drafts.draft(candidate, best)
            if found is None and best is None:
                found = drafts.draft_in_order(candidate, tight=True)
            best = found or best
    return None if best is None else drafts.finished(best)


@dataclass(frozen=True, slots=True)
class _Trial:
    """How far the choice of cascades gets with some stretches in strips."""

    strips: Strips
    patches: Patches | None
    stuck: int
    """The first op in the order for which there is no room; one more than the last if none."""


@dataclass(frozen=True)
class _Search:
    """Looks for stretches, from the first op without room to the last."""

    network: Network
    planning: Planning
    share: float = LIKELY
    """The part of the scratchpads that may be filled, as far as the choice of cascades knows."""
    in_slices: bool = False
    """Whether rows may be made in slices, too, which takes many tasks."""

    @cached_property
    def drafts(self) -> Drafts:
        """Drafts of plans without strips."""
        return self.planning.drafts_of(self.network, self.planning.order)(self.planning.machine)

    def may_help(self) -> bool:
        """Whether all has to stay in scratchpads, and columns of inputs can be read twice."""
        places = self.drafts.prepared.places
        origin = places.origin("I1")
        if places.overflow() is not None or not self.drafts.options.cascades:
            return False
        return origin is not None and origin.kind == "source" and origin.rereadable

    def patches(self) -> Patches | None:
        """The network in strips for which there seems to be room."""
        trial: _Trial | None = self._trial(())
        while trial is not None and trial.stuck < len(self.planning.order):
            trial = self._further(trial)
        return None if trial is None else trial.patches

    def _further(self, trial: _Trial) -> _Trial | None:
        """A trial with one more stretch in strips that gets through that stretch."""
        if len(trial.strips) == MOST_STRETCHES:
            return None
        for stretch in self._stretches(trial):
            found = self._with_fewest(trial.strips, stretch)
            if found is not None:
                return found
        return None

    def _with_fewest(self, strips: Strips, stretch: Stretch) -> _Trial | None:
        """A trial with a stretch in as few strips as lead through it."""
        end = self._place[stretch.walks[-1].op.name]
        counts = [count for count in STRIP_COUNTS if count <= stretch.columns]
        found: dict[int, _Trial] = {}

        def leads_through(count: int) -> bool:
            trial = self._trial((*strips, (stretch, count)))
            if trial is not None and trial.stuck > end:
                found[count] = trial
            return count in found

        # The first stretch tells whether strips help at all; for others two are mostly enough.
        if strips and counts and leads_through(counts[0]):
            return found[counts[0]]
        if counts and leads_through(counts[-1]):
            lowest = 1 if strips else 0
            bisect_left(counts, True, lo=lowest, hi=len(counts) - 1, key=leads_through)
        return found[min(found)] if found else None

    def _trial(self, strips: Strips) -> _Trial | None:
        """How far one gets with strips; None if there are too many for their columns."""
        planning, order = self.planning, self.planning.order
        patches = patched(self.network, order, strips) if strips else None
        if strips and patches is None:
            return None
        network, ops = (patches.network, patches.network.ops) if patches else (self.network, order)
        prepared = planning.drafts_of(network, ops)(cut_to(planning.machine, self.share)).prepared
        scene = scene_of(prepared)
        if scene is None:
            return None
        number = reached(scene, self.drafts.options.choose, in_slices=self.in_slices)
        if number == len(prepared.stages):
            return _Trial(strips, patches, len(order))
        name = prepared.stages[number].op.name
        if patches is not None and name in patches.ops:
            name = patches.ops[name].op
        return _Trial(strips, patches, self._place[name])

    @cached_property
    def _place(self) -> dict[str, int]:
        """By op its place in the order."""
        return {op.name: place for place, op in enumerate(self.planning.order)}

    @cached_property
    def _cuts(self) -> dict[int, int]:
        """Places behind which one tensor alone is wanted, and its bytes; it has storage of its own.

        Before the first op there is nothing but inputs, which need not be there as a whole.
        """
        results = {stage.results[0].tensor for stage in self.drafts.prepared.stages}
        last = {
            operand.tensor: place
            for place, op in enumerate(self.planning.order)
            for operand in op.inputs
        }
        last |= {tensor.name: len(self.planning.order) for tensor in self.network.outputs}
        found, alive = {-1: 0}, dict[str, None]()
        for place, op in enumerate(self.planning.order):
            alive |= {operand.tensor: None for operand in op.outputs}
            alive = {name: None for name in alive if last.get(name, place) > place}
            if (
                len(alive) == 1
                and op.outputs[0].tensor in alive
                and op.outputs[0].tensor in results
            ):
                found[place] = self.network.by_name[op.outputs[0].tensor].size_bytes
        return found

    def _stretches(self, trial: _Trial) -> Iterator[Stretch]:
        """Stretches around the op without room whose ends leave some, short ones first."""
        spaces = self.drafts.prepared.places.spaces
        room = sum(space.size_bytes for space in spaces if space.kind == "scratchpad")
        done = [self._place[stretch.walks[-1].op.name] for stretch, _ in trial.strips]
        first = max(done, default=-1)
        begins = [place for place in self._cuts if first <= place < trial.stuck]
        pairs = [
            (end - begin, end)
            for begin in begins[-MOST_BEGINNINGS:]
            for end in self._cuts
            if end >= trial.stuck and self._cuts[begin] + self._cuts[end] < self.share * room
        ]
        tried = 0
        for length, end in sorted(pairs):
            ops = self.planning.order[end + 1 - length : end + 1]
            stretch = stretch_of(self.network, ops)
            if stretch is not None:
                yield stretch
                tried += 1
            if tried == MOST_TRIED:
                return

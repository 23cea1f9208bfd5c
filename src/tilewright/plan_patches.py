"""Plans in strips: where nothing else fits, stretches of a network run some columns at a time.

Stretches are looked for with estimates. With strips, the network is a network like any other; the
plan that is found for it becomes one of the network itself, and is checked as such.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf

from tilewright.errors import InfeasibleError
from tilewright.machine.model import NOTHING_GIVEN, Machine
from tilewright.network.graph import Network, Op
from tilewright.plan_drafts import Candidate, Draft, Drafts
from tilewright.plan_memory import cut_to
from tilewright.plan_model import Plan
from tilewright.program.cascade import Strategy
from tilewright.program.lower import Prepared
from tilewright.program.tiles import TooManyTilesError
from tilewright.replay.check import check
from tilewright.strategy.again import Again, Copied, Waits, both, unchanged
from tilewright.strategy.choose import ChooseOptions
from tilewright.strategy.patches import Patches, StripFigures, Strips, patched
from tilewright.strategy.strip_search import GREAT, USUAL, Effort, StripSearch, with_more
from tilewright.strategy.unpatched import (
    may_be_unpatched,
    original_name,
    unpatched,
    unpatched_stages,
    unpatched_strategy,
)

LIKELY = 0.97
"""What is thought to fit into this part of the scratchpads mostly does so in the end."""

SAFELY = 0.94
"""Ops run again rather than that strips fill more than this part, where either will do."""

EASILY = 0.95
"""What is chosen for time, with ever larger steps, fits if it fills no more than this part."""

EASIER = 0.85
"""So does what is chosen for less, with smaller steps, and it may wait less."""

SNUG = 0.98
"""Tiles are chosen for this part of the scratchpads if larger ones leave no gaps to fit in."""

FILLS = (0.97, 0.9, 0.0)
"""Where rows are made again in every step, steps get as large as this part of the room allows; less
if that does not fit in the end."""

POOR = 1.7
"""A plan that takes longer than this factor of what seems possible is also made in more strips."""

MUCH_MOVED = 2
"""So is one that moves so many times as much as it must: steps may be larger in more strips."""

HOPE = 1.2
"""Not in so many that they seem to take more than this factor of what fewer seem to take."""

MOST_TASKS = 5_000
"""Nor after plans of so many tasks in all."""

MOST_PLANS = 2
"""If it does not, other stretches are tried, so many times in all."""

LESS = (0.9, 0.8)
"""Then strips are looked for that seem to need no more than these parts of that, each time with as
many trials as the first time."""

MOST_TRIALS = 40
"""So often it is looked how far one gets, whatever runs again."""

MOST_WAYS = 4
"""So many ways to make something again are tried at one place."""

MOST_STUCK = 3
"""If so many ways to make something again all leave no room for the same op, others will, too."""

MOST_APART = 12
"""So many tensors are made again because they are too large to wait."""

HALF = 0.5
"""What takes more than this part of the room waits for nobody as a last resort."""

MOST_OF_IT = 0.6
"""What takes more than this part does so even if there are many strips."""

MUCH = 16
"""What is made again frees at least this part of the room."""

MANY_STAGES = 24
"""As a last resort cascades have up to so many stages."""

MOST_STAGES = 44
"""And so many if something is made again because it is too large to wait."""

MANY_TILES = 50_000
"""A plan of more tiles is not worth the time that it takes to make it."""

MOST_TILES = 400_000
"""Unless whatever fits is looked for, however long that takes."""


@dataclass(frozen=True, kw_only=True)
class Planning:
    """A network on a machine, and how drafts of its plans are made."""

    network: Network
    machine: Machine
    order: tuple[Op, ...]
    """That of the ops."""
    drafts_on: Callable[[Machine], Drafts]
    """Drafts without strips, on the machine or on one with other sizes."""
    drafts_of: Callable[[Network, tuple[Op, ...]], Callable[[Machine], Drafts]]
    """The same of another network, its ops in an order."""
    order_of: Callable[[Network], tuple[Op, ...]]
    """An order of another network's ops in which little waits."""


def plan_in_strips(planning: Planning, part: float) -> Plan | None:
    """The plan of a network with stretches in strips, if a part of the scratchpads seems to be
    enough for that and not without; None if there is none.

    Raises:
        LimitError: the plan did not pass its check, which is a fault of Tilewright.
    """
    drafts = planning.drafts_on(planning.machine)
    if not _may_help(drafts):
        return None
    drafts.watcher("strips")
    search = _search(planning, part, drafts.options.choose)
    return _first_plan(_State(unchanged(planning.network), planning, part, search, drafts))


def plan_computing_again(planning: Planning) -> Plan | None:
    """The plan of a network in which some ops run twice, and stretches in strips, if there seems to
    be room for that; None if there is none.

    Raises:
        LimitError: the plan did not pass its check, which is a fault of Tilewright.
    """
    drafts = planning.drafts_on(planning.machine)
    if not _may_help(drafts):
        return None
    drafts.watcher("computing again")
    options, whole = drafts.options.choose, unchanged(planning.network)
    plan = _Copying(planning, SAFELY, options).plan_of(whole)
    if plan is not None:
        return plan
    # What is not there as a whole has to be made and read within one cascade.
    long = replace(options, forgets=True, most_stages=MOST_STAGES)
    apart = _readers_apart(planning, long, HALF)
    stages = MOST_STAGES if apart.again else MANY_STAGES
    plan = _Copying(planning, LIKELY, replace(long, most_stages=stages)).plan_of(apart)
    if plan is not None or not drafts.options.thorough:
        return plan
    drafts.watcher("many strips")
    # Narrow strips leave room for what would otherwise be made again.
    fewer = _readers_apart(planning, long, MOST_OF_IT)
    for copied in (apart,) if fewer.again == apart.again else (fewer, apart):
        plan = plan or _first_plan(_state(copied, planning, LIKELY, long, GREAT))
    return plan


def _readers_apart(planning: Planning, options: ChooseOptions, part: float) -> Copied:
    """A network in which what takes more than a part of the room is made again for those who read
    it late."""
    copied = unchanged(planning.network)
    for _ in range(MOST_APART):
        way = _state(copied, planning, LIKELY, options).search.apart(part).first()
        if way is None:
            break
        copied = copied.with_copies(way)
    return copied


@dataclass
class _Copying:
    """Looks for the ops that run again, one tensor that waits after the other."""

    planning: Planning
    part: float
    options: ChooseOptions
    trials_left: int = MOST_TRIALS
    stuck: Counter[str] = field(default_factory=Counter)
    """How often there was no room for an op, whatever ran again."""

    def plan_of(self, copied: Copied, before: "_State | None" = None) -> Plan | None:
        """The plan of a network with copies, or of one with more of them."""
        state = _state(copied, self.planning, self.part, self.options)
        state.search.trials_left = trials = min(self.trials_left, state.search.trials_left)
        plan = _first_plan(state)
        self.trials_left -= trials - state.search.trials_left
        is_further = before is None or state.is_further_than(before)
        if plan is None and state.search.blocked is None:
            stuck_at = state.planning.order[state.place].name
            self.stuck[stuck_at] += 1
            if self.stuck[stuck_at] == MOST_STUCK:
                self.trials_left = 0
        for way in _ways(state)[:MOST_WAYS] if plan is None and is_further else ():
            if not self.trials_left:
                break
            plan = self.plan_of(copied.with_copies(way), state)
            if plan is not None:
                break
        return plan


@dataclass(frozen=True)
class _State:
    """A network with copies of ops, and the search for its strips."""

    copied: Copied
    planning: Planning
    """Of the network with copies."""
    part: float
    """Of the scratchpads, that strips are looked for in."""
    search: StripSearch
    original: Drafts
    """Of the network without."""
    refusals: list[InfeasibleError] = field(default_factory=list)
    """Why what seemed to fit does not."""

    def is_further_than(self, other: "_State") -> bool:
        """Whether less is left for which there is no room."""
        return self._left() < other._left()

    def _left(self) -> tuple[int, int]:
        blocked = self.search.blocked
        return (0, len(self.planning.order) - self.place) if blocked is None else (blocked + 1, 0)

    @property
    def place(self) -> int:
        """The place in the order of the last op for which there is no room."""
        return self.search.furthest if self.search.blocked is None else self.search.blocked


def _ways(state: _State) -> list[Again]:
    """What to make again where a search for strips came to its end, the best way first."""
    search, planning = state.search, state.planning
    # An op without room has it taken by what waits before it.
    place = state.place - (search.blocked is None)
    ways = Waits(network=planning.network, order=planning.order).ways(place)
    worthwhile = [way for way in ways if way.freed_bytes * MUCH >= search.room]
    # What takes half of the room leaves too little for everything else.
    return sorted(worthwhile, key=lambda way: 2 * way.waiting_bytes > search.room)


def _state(
    copied: Copied,
    planning: Planning,
    part: float,
    options: ChooseOptions,
    effort: Effort = USUAL,
) -> _State:
    """A network with copies, its ops in an order of its own."""
    network = copied.patches.network
    order = planning.order_of(network)
    drafts_on = planning.drafts_of(network, order)
    again = replace(planning, network=network, order=order, drafts_on=drafts_on)
    search = _search(again, part, options, effort)
    return _State(copied, again, part, search, planning.drafts_on(planning.machine))


def _search(
    planning: Planning, part: float, options: ChooseOptions, effort: Effort = USUAL
) -> StripSearch:
    """A search for strips in a part of the scratchpads."""
    smaller = cut_to(planning.machine, part)

    def prepared_of(network: Network, order: tuple[Op, ...]) -> Prepared:
        # Without strips much is known already.
        is_whole = order == planning.order
        on = planning.drafts_on if is_whole else planning.drafts_of(network, order)
        return on(smaller).prepared

    return StripSearch(planning.network, planning.order, options, prepared_of, effort)


def _first_plan(state: _State) -> Plan | None:
    """The first plan in strips; if what seemed to fit does not in the end, one in strips for which
    there seems to be more room than they need."""
    plan = _first_proposed(state)
    for less in LESS:
        # In less room there are still more tiles.
        has_too_many = any(isinstance(refusal, TooManyTilesError) for refusal in state.refusals)
        if plan is not None or has_too_many or not state.search.proposals:
            break
        part = less * state.part
        search = _search(state.planning, part, state.search.options, state.search.effort)
        plan = _first_proposed(replace(state, search=search))
    return plan


def _first_proposed(state: _State) -> Plan | None:
    """The first plan in strips, of those that a search proposes, or one in more of them."""
    for strips in islice(state.search.found(), MOST_PLANS):
        if strips or state.copied.again or state.search.options.forgets:
            for patches, found in _in_so_many_or_more(strips, state):
                plan = _plan_of(patches, found, state)
                if plan is not None:
                    return plan
    return None


def _in_so_many_or_more(strips: Strips, state: _State) -> list[tuple[Patches, Plan]]:
    """The plan of a network in strips, and if it waits for long, plans in more of them, which have
    narrower rows and need less room; the fastest one first."""
    first = _cut(strips, state)
    plan = None if first is None else _unchecked(first, state)
    if first is None or plan is None:
        return []
    found, n_tasks = [(first.patches, plan)], len(plan.program.tasks)
    moves_much = plan.outside_bytes > MUCH_MOVED * state.original.prepared.bounds.traffic_bytes
    if plan.cycles <= POOR * first.cycles and not moves_much:
        return found
    others = [_cut(more, state) for more in with_more(strips)] if n_tasks < MOST_TASKS else []
    hopeful = [cut for cut in others if cut is not None and cut.cycles < HOPE * first.cycles]
    for other in sorted(hopeful, key=lambda cut: cut.cycles):
        fastest = min(one.cycles for _, one in found)
        plan = _unchecked(other, state, fastest) if n_tasks < MOST_TASKS else None
        if plan is not None:
            found.append((other.patches, plan))
            n_tasks += len(plan.program.tasks)
    return sorted(found, key=lambda one: one[1].cycles)


@dataclass(frozen=True)
class _Cut:
    """A network in strips."""

    patches: Patches
    drafts_on: Callable[[Machine], Drafts]
    cycles: float
    """What it seems to take; infinite if nothing tells, or something else counts."""


def _cut(strips: Strips, state: _State) -> _Cut | None:
    """A network in strips; None if there cannot be so many."""
    patches = patched(state.planning.network, state.planning.order, strips)
    if patches is None:
        return None
    drafts_on = state.planning.drafts_of(patches.network, patches.network.ops)
    drafts = drafts_on(cut_to(state.planning.machine, EASILY))
    chosen = drafts.chosen("latency") if drafts.goal == "latency" else None
    return _Cut(patches, drafts_on, inf if chosen is None else chosen.cycles)


def _may_help(drafts: Drafts) -> bool:
    """Whether all has to stay in scratchpads, and columns of inputs can be read several times."""
    if drafts.prepared.places.machine.given != NOTHING_GIVEN:
        # Strips and what runs again do not know of what lies inside.
        return False
    places = drafts.prepared.places
    origin = places.origin("I1")
    if places.overflow() is not None or not drafts.options.cascades:
        return False
    return origin is not None and origin.kind == "source" and origin.rereadable


def _plan_of(strips: Patches, found: Plan, state: _State) -> Plan | None:
    """The plan of a network with copies and in strips as one of the network itself, checked; None
    if it cannot be told as such."""
    copies, whole = state.copied.patches, state.original
    patches = both(copies, strips)
    timetable = unpatched(found.timetable, patches)
    if timetable is None:
        return None
    if whole.options.checked:
        whole.watcher("check")
        check(timetable, patches.original, state.planning.machine)
    return replace(
        found,
        network=patches.original,
        options=whole.options,
        stages=unpatched_stages(found.stages, patches),
        timetable=timetable,
        roofline=whole.prepared.bounds,
        strategy=unpatched_strategy(found.strategy, patches),
        strips=tuple(_original(figures, copies) for figures in strips.figures),
        again=state.copied.again,
    )


def _original(figures: StripFigures, copies: Patches) -> StripFigures:
    """Figures with ops and tensors of the network in place of their copies."""
    part = copies.tensors.get(figures.tensor)
    return replace(
        figures,
        ops=tuple(original_name(name, copies) for name in figures.ops),
        tensor=figures.tensor if part is None else part.tensor,
    )


def _unchecked(cut: _Cut, state: _State, most_cycles: float = inf) -> Plan | None:
    """The best plan of what the choice of cascades proposes, not checked; None if there is none, or
    none that takes less than these cycles."""
    machine, options, drafts_on = state.planning.machine, state.search.options, cut.drafts_on
    patches = both(state.copied.patches, cut.patches)

    def drafts_for(part: float = 1.0, fill: float = 0.0) -> Drafts:
        drafts = drafts_on(cut_to(machine, part))
        drafts.explain_nothing()
        drafts.refusals = state.refusals
        choose = replace(options, fill=fill)
        drafts.options = replace(drafts.options, checked=False, choose=choose)
        drafts.room = drafts_on(machine).prepared.places.spaces
        return drafts

    # What fills everything by estimates hardly ever fits in the end.
    easy, easier = drafts_for(EASILY), drafts_for(EASIER)
    quick = [easy.chosen(easy.goal, quickly=quickly) for quickly in (True, False)]
    # Smaller steps that seem hardly slower leave more room to bring things early.
    first, smaller = quick[0], easier.chosen(easier.goal, quickly=True)
    if first is not None and smaller is not None and smaller.cycles < HOPE * first.cycles:
        quick.append(smaller)
    tried: dict[Strategy, None] = {}
    is_great = state.search.effort.is_great
    # Large programs take long to make: what fits first has to do.
    fills = FILLS[is_great:] if options.forgets else FILLS[-1:]
    most_tiles = MOST_TILES if is_great else MANY_TILES
    for fill in fills:
        frugal = drafts_for(LIKELY if options.forgets else 1.0, fill).chosen("memory")
        proposals = dict.fromkeys(found.strategy for found in (*quick, frugal) if found is not None)
        untried = [strategy for strategy in proposals if strategy not in tried]
        tried.update(proposals)
        for part in (1.0, SNUG):
            found = _candidates(drafts_for(part), untried, most_tiles, most_cycles)
            told = (c for c in found if may_be_unpatched(c.lowered.program, patches))
            best = _best_draft(drafts_for(part), told)
            if best is not None:
                return drafts_for().finished(best)
    return None


def _candidates(
    drafts: Drafts, strategies: Sequence[Strategy], most_tiles: int, most_cycles: float
) -> Iterator[Candidate]:
    """The programs of some strategies that may take less than these cycles."""
    for strategy in strategies:
        found = drafts.candidate(drafts.goal, strategy, most_tiles, most_cycles=most_cycles)
        if found is not None and found.least.order_cycles < most_cycles:
            yield found


def _best_draft(drafts: Drafts, candidates: Iterable[Candidate]) -> Draft | None:
    """The best draft of some candidates, if one fits."""
    best: Draft | None = None
    for candidate in candidates:
        found = drafts.draft(candidate, best)
        if found is None and best is None:
            found = drafts.draft_in_order(candidate, tight=True)
        best = found or best
    return best

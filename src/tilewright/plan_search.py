"""Looking for the best plan: strategies are lowered and scheduled, and what is really best stays.

Without room for everything that is made, the choice of cascades has something to win. It rests on
estimates, so its strategy is a candidate beside the plain one, never a replacement.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tilewright.errors import InfeasibleError
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.model import Machine
from tilewright.plan_model import Plan, PlanOptions, Watcher, outside_bytes
from tilewright.plan_rungs import last_resort
from tilewright.program.cascade import PLAIN, Strategy
from tilewright.program.lower import Lowered, Prepared, lower
from tilewright.program.model import Timetable
from tilewright.program.tile import Goal
from tilewright.program.tiles import MOST_TILES
from tilewright.replay.check import check
from tilewright.schedule.bounds import Bounds, bounds
from tilewright.schedule.control_edges import control_edges
from tilewright.schedule.packed import packed
from tilewright.schedule.schedule import schedule, schedule_in_order
from tilewright.strategy.choose import Aim, Chosen, choose
from tilewright.strategy.scene import Scene, scene_of

WORTH_TRYING = 1.02
"""A plan that moves no more than this factor of what must be moved wants no other candidate."""

BUSY = 0.9
"""Neither does one whose engines compute for so much of the time, if it is time that counts."""

LEAST_SHARE = 1 / 16
"""Smaller scratchpads are not looked at for the sake of a plan in larger ones."""

FIRST_SHARE = 1 / 64
"""Of the scratchpads, where nothing is known of what is needed."""

FIRST_GROWTH = 0.03
"""By how much more than what is believed in is tried first; the next time by twice that more."""

RIVAL_TASKS = 4_000
"""Tiles of a second candidate, and tasks of all its simulations together, if time counts."""

MANY_TIMES = 256
"""A scratchpad so many times as large, to see what would be enough."""

LITTLE_TILES = 15_000
"""A plan of more tiles is not worth the little memory that it saves."""

NEARLY = 1.02
"""Sizes that differ by no more are not told apart."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A program with times and addresses, as the scheduler left it."""

    strategy: Strategy
    lowered: Lowered
    least: Bounds
    timetable: Timetable

    @cached_property
    def outside_bytes(self) -> int:
        """Bytes read and written outside the scratchpads."""
        return outside_bytes(self.timetable.program)

    @cached_property
    def busy(self) -> float:
        """The part of the time in which the busiest engine computes."""
        cycles: dict[str, int] = {}
        for task in self.timetable.program.tasks:
            if task.kind == "compute":
                cycles[task.engine] = cycles.get(task.engine, 0) + task.cycles
        return max(cycles.values(), default=0) / max(1, self.timetable.cycles)

    @cached_property
    def energy_pj(self) -> float:
        """Energy of all tasks."""
        tasks = self.timetable.program.tasks
        return sum(charge.energy_pj for task in tasks for charge in task.charges)

    def value(self, goal: Goal) -> tuple[float, ...]:
        """What a goal makes small."""
        match goal:
            case "traffic":
                return self.outside_bytes, self.timetable.cycles
            case "energy":
                return self.energy_pj, self.timetable.cycles
            case _:
                return self.timetable.cycles, self.outside_bytes


@dataclass
class Search:
    """Drafts of one network on one machine."""

    prepared: Prepared
    options: PlanOptions
    watcher: Watcher
    most_tiles: int = MOST_TILES
    refusals: list[InfeasibleError] = field(default_factory=list)

    def draft(self, goal: Goal, strategy: Strategy, rival: Draft | None = None) -> Draft | None:
        """A draft of a strategy; None, and a refusal remembered, if it does not fit.

        None also if it cannot be faster than a rival.
        """
        self.watcher("tiles and mappings")
        try:
            lowered = lower(
                self.prepared, goal, strategy, self.most_tiles if rival is None else RIVAL_TASKS
            )
            self.watcher("times")
            least = bounds(lowered.program)
            if rival is not None and least.order_cycles >= rival.timetable.cycles:
                return None
            options = self.options.schedule
            if rival is not None:
                options = replace(options, portfolio_tasks=RIVAL_TASKS)
            timetable = schedule(lowered.program, options, least)
        except InfeasibleError as error:
            self.refusals.append(error)
            return None
        draft = Draft(strategy=strategy, lowered=lowered, least=least, timetable=timetable)
        if goal == "latency" or len(timetable.slots) == len(lowered.program.tasks):
            return draft
        # What was added to the program is moved for the sake of time alone.
        plain = schedule_in_order(lowered.program, self.options.schedule)
        if plain is None:
            return draft
        other = replace(draft, timetable=plain)
        return min(draft, other, key=lambda d: d.value(goal))

    def explain_nothing(self) -> None:
        """Do not look for sizes that would do when something does not fit."""
        quick = replace(self.options.schedule, explain_trials=0, order_sets=0)
        self.options = replace(self.options, schedule=quick)

    def chosen(self, aim: Aim, *, small_cuts: bool = False) -> Chosen | None:
        """What the choice of cascades proposes."""
        if not self.options.cascades:
            return None
        self.watcher("cascades")
        scene = self.scene(aim)
        options = self.options.quick_choose if aim == "latency" else self.options.choose
        options = replace(options, small_cuts=small_cuts)
        return None if scene is None else choose(scene, aim, options)

    def scene(self, aim: Aim) -> Scene | None:
        """What is known before anything is decided."""
        return scene_of(self.prepared, "latency" if aim == "memory" else aim)

    def finished(self, draft: Draft) -> Plan:
        """A draft with final addresses and control edges, checked.

        It may have been made for less memory: then its bounds are those of this machine.
        """
        self.watcher("addresses")
        timetable, least, spaces = draft.timetable, draft.least, self.prepared.places.spaces
        if timetable.program.spaces != spaces:
            timetable = replace(timetable, program=replace(timetable.program, spaces=spaces))
            least = bounds(replace(draft.lowered.program, spaces=spaces))
        timetable, fills = packed(timetable, self.options.packing)
        timetable = replace(timetable, edges=control_edges(timetable))
        if self.options.checked:
            self.watcher("check")
            check(timetable, self.prepared.network)
        return Plan(
            network=self.prepared.network,
            machine=self.prepared.places.machine,
            options=self.options,
            stages=draft.lowered.stages,
            timetable=timetable,
            fills=fills,
            bounds=least,
            roofline=self.prepared.bounds,
            assumptions=draft.lowered.assumptions,
            strategy=draft.strategy,
        )


def best_plan(search_on: Callable[[Machine], Search], machine: Machine) -> Plan:
    """The best plan under an objective other than memory.

    What is found for scratchpads of half the size is a candidate too, and so on: with more room a
    plan is then never worse, as far as the budget goes.

    Raises:
        InfeasibleError: no strategy fits.
    """
    search = search_on(machine)
    objective = search.options.objective
    goal: Goal = "latency" if objective == "memory" else objective
    best: Draft | None = None
    smaller, share, tasks = search, 1.0, search.options.smaller_tasks
    while True:
        found = list(_drafts(smaller, goal))
        best = min([*found, *([best] if best else [])], key=lambda d: d.value(goal), default=None)
        tasks -= sum(len(draft.timetable.slots) for draft in found)
        is_last = share <= LEAST_SHARE or (tasks < 0 and goal != "traffic")
        if not found or best is None or is_last or _is_best(best, goal):
            break
        share /= 2
        smaller = search_on(_cut(machine, share))
        smaller.explain_nothing()
        if goal == "traffic" and not _may_move_less(smaller, best):
            break
    if best is None:
        tight = search.chosen("memory")
        best = None if tight is None else search.draft("latency", tight.strategy)
    if best is not None:
        return search.finished(best)
    plan = last_resort(search.prepared, search.options, search.watcher)
    if plan is None:
        raise _with_what_would_do(search.refusals[0], search_on, machine)
    return plan


def _with_what_would_do(
    refusal: InfeasibleError, search_on: Callable[[Machine], Search], machine: Machine
) -> InfeasibleError:
    """A refusal that also says how much is enough if ops run as cascades; the first one's own hint
    is about an op that runs by itself."""
    pads = [m for m in machine.memories if m.role == "scratchpad"]
    if len(pads) != 1 or search_on(machine).prepared.places.overflow() is not None:
        return refusal
    size = pads[0].size_bytes * MANY_TIMES
    chosen = search_on(with_memory_limits(machine, ((pads[0].name, size),))).chosen("memory")
    if chosen is None or chosen.share * MANY_TIMES <= 1.0:
        return refusal
    enough = -int(-chosen.share * (1 + FIRST_GROWTH) * size // 1024)
    first, *others = refusal.problems
    hint = f"with ops side by side, row by row, {pads[0].name} of about {enough:,} KiB would do"
    return InfeasibleError(replace(first, hint=hint), *others)


def _drafts(search: Search, goal: Goal) -> Iterator[Draft]:
    """Candidates, until another one is not worth its while.

    What is made for the least latency is also a candidate for the least traffic: with the same
    room, more bytes are then never moved for the sake of fewer.
    """
    for tried in dict.fromkeys((goal, "latency") if goal == "traffic" else (goal,)):
        plain = search.draft(tried, PLAIN)
        if plain is not None:
            yield plain
            if _is_good(plain, goal):
                return
        chosen = search.chosen(tried)
        if chosen is not None:
            draft = search.draft(tried, chosen.strategy, plain if goal == "latency" else None)
            if draft is not None:
                yield draft
                if _is_good(draft, goal):
                    return
            if tried == "traffic":
                yield from _with_small_cuts(search, [d for d in (plain, draft) if d is not None])


def _with_small_cuts(search: Search, known: Sequence[Draft]) -> Iterator[Draft]:
    """What the choice finds if stages may also be cut in all directions, tiles coming again."""
    chosen = search.chosen("traffic", small_cuts=True)
    least = min((draft.outside_bytes for draft in known), default=None)
    if chosen is None or (least is not None and chosen.moved_bytes * WORTH_TRYING >= least):
        return
    draft = search.draft("traffic", chosen.strategy)
    if draft is not None:
        yield draft


def _may_move_less(search: Search, best: Draft) -> bool:
    """Whether the choice of cascades believes that less can be moved on another machine."""
    chosen = search.chosen("traffic")
    return chosen is not None and chosen.moved_bytes < best.outside_bytes


def _is_best(draft: Draft, goal: Goal) -> bool:
    """Whether a draft is at its bound."""
    least = draft.lowered.bounds
    if goal == "traffic":
        return draft.outside_bytes <= least.traffic_bytes
    return goal == "latency" and draft.timetable.cycles <= least.cycles


def _is_good(draft: Draft, goal: Goal) -> bool:
    """Whether no other strategy is worth a try: nothing comes or goes that need not."""
    least = draft.lowered.bounds
    if goal == "traffic":
        return draft.outside_bytes <= least.traffic_bytes
    if draft.outside_bytes <= WORTH_TRYING * least.traffic_bytes:
        return True
    return goal == "latency" and draft.busy >= BUSY


def plan_in_least_memory(search_on: Callable[[Machine], Search], machine: Machine) -> Plan:
    """The plan in the smallest scratchpads, all cut alike, in which one was found.

    Sizes are tried upwards from a little more than the choice of cascades believes in, in growing
    steps, and from the first that holds a plan downwards again, with what is chosen there.

    Raises:
        InfeasibleError: no strategy fits, even with all there is.
    """
    search = search_on(machine)
    strategies, share = _least(search, 1.0)
    fails, growth = 0.0, 2 * FIRST_GROWTH
    found = _within(search_on(_cut(machine, share)), strategies)
    while found is None:
        if share >= 1.0:
            raise _with_what_would_do(_refusal(search_on(machine)), search_on, machine)
        fails, share, growth = share, min(1.0, share * (1 + growth)), 2 * growth
        found = _within(search_on(_cut(machine, share)), strategies)
    holds = share
    for _ in range(search.options.memory_trials):
        strategies, share = _least(search_on(_cut(machine, holds)), holds)
        if not fails * NEARLY < share < holds / NEARLY:
            share = (fails + holds) / 2
        cut = _cut(machine, share)
        if share < fails * NEARLY or cut == _cut(machine, holds):
            break
        smaller = _within(search_on(cut), strategies)
        if smaller is None:
            fails = share
        else:
            found, holds = smaller, share
    return search.finished(found)


def _least(search: Search, whole: float) -> tuple[list[Strategy], float]:
    """Strategies that take little memory, and the part of the scratchpads that is tried for them.

    The machine at hand has the part `whole` of the scratchpads.
    """
    chosen = search.chosen("memory")
    if chosen is None:
        return [PLAIN], FIRST_SHARE * whole
    return [chosen.strategy, PLAIN], min(1.0, chosen.share * (1 + FIRST_GROWTH)) * whole


def _refusal(search: Search) -> InfeasibleError:
    """Why there is no plan, even with all there is."""
    draft = search.draft("latency", PLAIN)
    assert draft is None
    return search.refusals[0]


def _within(search: Search, strategies: Sequence[Strategy]) -> Draft | None:
    """The draft of the first strategy that fits; why others do not is of no interest."""
    search.explain_nothing()
    search.most_tiles = LITTLE_TILES
    for strategy in strategies:
        draft = search.draft("latency", strategy)
        if draft is not None:
            return draft
    return None


def _cut(machine: Machine, share: float) -> Machine:
    """The machine with a part of its scratchpads."""
    limits = [
        (
            m.name,
            min(m.size_bytes, -int(-m.size_bytes * share // m.alignment_bytes) * m.alignment_bytes),
        )
        for m in machine.memories
        if m.role == "scratchpad"
    ]
    return with_memory_limits(machine, tuple(limits))

"""Drafts of a plan: a strategy is lowered to a candidate, and a candidate scheduled to a draft.

What a candidate can come to at best is known before it is scheduled: one that cannot beat the best
draft so far is not.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from tilewright.errors import InfeasibleError
from tilewright.plan_model import Plan, PlanOptions, Watcher, outside_bytes
from tilewright.program.cascade import Strategy
from tilewright.program.layout import Layout
from tilewright.program.layout_cycles import least_compute_cycles
from tilewright.program.lower import Lowered, Prepared, laid_out, lower
from tilewright.program.model import Program, Space, Timetable
from tilewright.program.tile import Goal
from tilewright.program.tiles import MOST_TILES, tile_counts
from tilewright.replay.check import check
from tilewright.schedule.bounds import Bounds, bounds
from tilewright.schedule.control_edges import control_edges
from tilewright.schedule.packed import packed
from tilewright.schedule.schedule import schedule, schedule_below, schedule_in_order
from tilewright.strategy.choose import Aim, ChooseOptions, Chosen, choose
from tilewright.strategy.scene import Scene, scene_of

Value = tuple[float, ...]

KnownChoices = dict[tuple[Aim, ChooseOptions], Chosen | None]

RIVAL_TILES = 4_000
"""Of a second candidate, if time counts."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """The program of a strategy, before it is scheduled."""

    strategy: Strategy
    lowered: Lowered

    @cached_property
    def least(self) -> Bounds:
        """What no schedule of the program can do better."""
        return bounds(self.lowered.program)

    @cached_property
    def outside_bytes(self) -> int:
        """Bytes read and written outside the scratchpads if nothing is added."""
        return outside_bytes(self.lowered.program)

    @cached_property
    def compute_cycles(self) -> int:
        """Cycles of the engine that computes most."""
        cycles: dict[str, int] = {}
        for task in self.lowered.program.tasks:
            if task.kind == "compute":
                cycles[task.engine] = cycles.get(task.engine, 0) + task.cycles
        return max(cycles.values(), default=0)

    @cached_property
    def transfer_cycles(self) -> int:
        """Cycles of the engine that moves most, also if it looks things up on its way."""
        tasks = self.lowered.program.tasks
        moving = {task.engine for task in tasks if task.kind != "compute"}
        works = self.least.engine_cycles.items()
        return max((cycles for engine, cycles in works if engine in moving), default=0)

    @property
    def fill(self) -> float:
        """The part of a scratchpad that is needed if nothing leaves early or comes ahead."""
        space = self.lowered.program.space
        alive = self.least.live_peak_bytes
        return max((size / space[name].size_bytes for name, size in alive.items()), default=0.0)

    def on(self, spaces: tuple[Space, ...]) -> "Candidate":
        """The same tasks with memories of other sizes."""
        program = replace(self.lowered.program, spaces=spaces)
        return Candidate(strategy=self.strategy, lowered=replace(self.lowered, program=program))

    def least_value(self, goal: Goal) -> Value:
        """What no schedule of the program goes below."""
        energy_pj = 0.0
        if goal == "energy":
            energy_pj = _energy_pj(self.lowered.program, self.least.order_cycles)
        return _value(goal, self.least.order_cycles, self.outside_bytes, energy_pj)


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A candidate with times and addresses, as the scheduler left it."""

    candidate: Candidate
    timetable: Timetable

    @cached_property
    def outside_bytes(self) -> int:
        """Bytes read and written outside the scratchpads."""
        return outside_bytes(self.timetable.program)

    @cached_property
    def energy_pj(self) -> float:
        """Energy of all tasks, and what leaks meanwhile."""
        return _energy_pj(self.timetable.program, self.timetable.cycles)

    def value(self, goal: Goal) -> Value:
        """What a goal makes small."""
        energy_pj = self.energy_pj if goal == "energy" else 0.0
        return _value(goal, self.timetable.cycles, self.outside_bytes, energy_pj)


def _value(goal: Goal, cycles: int, moved_bytes: int, energy_pj: float) -> Value:
    match goal:
        case "traffic":
            return moved_bytes, cycles
        case "energy":
            return energy_pj, cycles
        case _:
            return cycles, moved_bytes


def _energy_pj(program: Program, cycles: int) -> float:
    lost = sum(program.leakage_pj(cycles).values())
    return lost + sum(charge.energy_pj for task in program.tasks for charge in task.charges)


@dataclass
class Drafts:
    """Candidates and drafts of one network on one machine."""

    prepared: Prepared
    options: PlanOptions
    watcher: Watcher
    known: KnownChoices
    """What the choice of cascades proposed already on such a machine."""
    rival_tiles: int = RIVAL_TILES
    wants_plain: bool = True
    """Whether a plan without cascades may be the best one."""
    room: tuple[Space, ...] | None = None
    """Memories in which programs are scheduled, if not those for which their tiles are chosen."""
    refusals: list[InfeasibleError] = field(default_factory=list)
    offer: Callable[["Drafts", Draft], None] = lambda drafts, draft: None
    """Is told of each draft."""
    _layouts: dict[tuple[Goal, Strategy], Layout | InfeasibleError] = field(default_factory=dict)
    """How strategies are laid out, or why they cannot be."""

    @property
    def goal(self) -> Goal:
        """What is made small; the objective `memory` has a search of its own."""
        return "latency" if self.options.objective == "memory" else self.options.objective

    def candidate(
        self,
        goal: Goal,
        strategy: Strategy,
        most_tiles: int = MOST_TILES,
        most_bytes: float = inf,
        most_cycles: float = inf,
    ) -> Candidate | None:
        """The program of a strategy; None, and a refusal remembered, if there is none.

        None also if its layout says that more bytes are moved than these, or that computing alone
        takes more cycles.
        """
        self.watcher("tiles and mappings")
        layout = self._laid_out(goal, strategy)
        if isinstance(layout, InfeasibleError):
            self.refusals.append(layout)
            return None
        if layout.moved_bytes > most_bytes:
            return None
        if most_cycles < inf and least_compute_cycles(self.prepared, layout) > most_cycles:
            return None
        return self.laid_out_as(layout, strategy, most_tiles)

    def laid_out_as(
        self, layout: Layout, strategy: Strategy, most_tiles: int = MOST_TILES
    ) -> Candidate | None:
        """The program of a strategy that is laid out already; None, and a refusal, if none."""
        layout = layout if self.room is None else layout.in_room(self.room)
        try:
            lowered = lower(self.prepared, self.goal, strategy, most_tiles, layout)
        except InfeasibleError as error:
            self.refusals.append(error.with_traceback(None))
            return None
        candidate = Candidate(strategy=strategy, lowered=lowered)
        return candidate if self.room is None else candidate.on(self.room)

    def layout(self, goal: Goal, strategy: Strategy) -> Layout | None:
        """How a strategy cuts ops and what it keeps; None if it cannot be laid out."""
        found = self._laid_out(goal, strategy)
        return None if isinstance(found, InfeasibleError) else found

    def tiles(self, goal: Goal, strategy: Strategy) -> int | None:
        """How many tiles a strategy comes to; None if it cannot be laid out."""
        layout = self.layout(goal, strategy)
        return None if layout is None else sum(tile_counts(self.prepared.stages, layout))

    def layout_cycles(self, goal: Goal, strategy: Strategy) -> float:
        """What the choice of tiles estimates for a strategy; infinite if it cannot be laid out."""
        layout = self.layout(goal, strategy)
        return inf if layout is None else layout.cycles

    def least_compute_cycles(self, strategy: Strategy) -> float:
        """What computing takes at least with the fastest tiles, as far as a model of the cores
        tells; infinite if none does."""
        if self.prepared.costs.core_model is None:
            return inf
        layout = self.layout("latency", strategy)
        return inf if layout is None else least_compute_cycles(self.prepared, layout)

    def _laid_out(self, goal: Goal, strategy: Strategy) -> Layout | InfeasibleError:
        if (goal, strategy) not in self._layouts:
            try:
                found: Layout | InfeasibleError = laid_out(self.prepared, goal, strategy)
            except InfeasibleError as error:
                found = error.with_traceback(None)
            self._layouts[goal, strategy] = found
        return self._layouts[goal, strategy]

    def draft(self, candidate: Candidate, rival: Draft | None = None) -> Draft | None:
        """A candidate with times and addresses; None if it does not fit.

        None also if it is found not to be better than a rival.
        """
        goal, options = self.goal, self.options.schedule
        if rival is not None and candidate.least_value(goal) >= rival.value(goal):
            return None
        if rival is not None or self.refusals:
            # Only the first refusal is ever shown.
            options = replace(options, explain_trials=0, order_sets=0)
        self.watcher("times")
        program, least = candidate.lowered.program, candidate.least
        if rival is not None and goal == "latency":
            faster = schedule_below(program, rival.timetable.cycles, options, least)
            return None if faster is None else self._offered(candidate, faster)
        try:
            timetable = schedule(program, options, least)
        except InfeasibleError as error:
            self.refusals.append(error.with_traceback(None))
            return None
        draft = self._offered(candidate, timetable)
        if goal == "latency" or len(timetable.slots) == len(program.tasks):
            return draft
        # What was added to the program is moved for the sake of time alone.
        plain = self.draft_in_order(candidate)
        return draft if plain is None else min(draft, plain, key=lambda d: d.value(goal))

    def draft_in_order(self, candidate: Candidate, *, tight: bool = False) -> Draft | None:
        """A candidate task by task, with nothing added; None if it does not fit."""
        program, options = candidate.lowered.program, self.options.schedule
        timetable = schedule_in_order(program, options, candidate.least, tight=tight)
        return None if timetable is None else self._offered(candidate, timetable)

    def _offered(self, candidate: Candidate, timetable: Timetable) -> Draft:
        draft = Draft(candidate=candidate, timetable=timetable)
        self.offer(self, draft)
        return draft

    def explain_nothing(self) -> None:
        """Do not look for sizes that would do when something does not fit."""
        quick = replace(self.options.schedule, explain_trials=0, order_sets=0)
        self.options = replace(self.options, schedule=quick)

    def chosen(
        self,
        aim: Aim,
        *,
        small_cuts: bool = False,
        quickly: bool | None = None,
        most_share: float = inf,
    ) -> Chosen | None:
        """What the choice of cascades proposes; `quickly` if it looks less far, as it does for the
        latency unless told otherwise.

        None also if memory counts and it fills more than this part of the scratchpads.
        """
        if not self.options.cascades:
            return None
        quick = aim == "latency" if quickly is None else quickly
        options = self.options.quick_choose if quick else self.options.choose
        key = aim, replace(options, small_cuts=small_cuts)
        if key not in self.known:
            self.watcher("cascades")
            scene = self._scene
            found = None if scene is None else choose(scene, *key, most_share)
            if found is None and most_share < inf:
                # What fills more may be asked for later.
                return None
            self.known[key] = found
        return self.known[key]

    @cached_property
    def _scene(self) -> Scene | None:
        return scene_of(self.prepared)

    def finished(self, draft: Draft) -> Plan:
        """A draft with final addresses and control edges, checked.

        It may have been made for less memory: then its bounds are those of this machine.
        """
        self.watcher("addresses")
        candidate, timetable = draft.candidate, draft.timetable
        spaces = self.prepared.places.spaces
        if timetable.program.spaces == spaces:
            least = candidate.least
        else:
            timetable = replace(timetable, program=replace(timetable.program, spaces=spaces))
            least = candidate.on(spaces).least
        timetable, fills = packed(timetable, self.options.packing)
        timetable = replace(timetable, edges=control_edges(timetable))
        if self.options.checked:
            self.watcher("check")
            check(timetable, self.prepared.network, self.prepared.places.machine)
        return Plan(
            network=self.prepared.network,
            machine=self.prepared.places.machine,
            options=self.options,
            stages=candidate.lowered.stages,
            timetable=timetable,
            fills=fills,
            bounds=least,
            roofline=self.prepared.bounds,
            assumptions=self.prepared.places.assumptions,
            strategy=candidate.strategy,
        )

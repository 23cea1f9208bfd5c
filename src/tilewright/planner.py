"""Network and machine to plan: the one place that strings the steps together."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from tilewright.errors import InfeasibleError
from tilewright.garbage import without_garbage_collection
from tilewright.machine.leakage import has_leakage
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.model import OUTPUT_OPERAND, Machine
from tilewright.machine.order import order_named
from tilewright.mapping.obstacles import refuse_impossible
from tilewright.mapping.search import Objective, SearchOptions
from tilewright.network.graph import Network, Op
from tilewright.plan_drafts import Draft, Drafts, KnownChoices
from tilewright.plan_interrupted import BestSoFar
from tilewright.plan_memory import least_share, plan_in_least_memory, with_what_would_do
from tilewright.plan_model import Plan, PlanObjective, PlanOptions, Watcher
from tilewright.plan_patches import (
    LIKELY,
    MUCH_MOVED,
    Planning,
    plan_computing_again,
    plan_in_strips,
)
from tilewright.plan_rungs import plan_of_rung
from tilewright.plan_search import best_plan
from tilewright.plan_sizes import (
    best_of_sizes,
    fits,
    least_of_sizes,
    most_tiles,
    of_less_energy,
    of_less_memory,
    on_sizes_of,
    value_of,
)
from tilewright.program.cascade import PLAIN
from tilewright.program.lower import prepare
from tilewright.program.order import peak_bytes
from tilewright.program.order_network import problem_of, small_ops_first
from tilewright.program.order_search import OrderOptions, first_order, least_peak
from tilewright.program.places import places_of
from tilewright.program.stages import with_copying_joins
from tilewright.replay.check import check
from tilewright.strategy.choose import Chosen
from tilewright.strategy.ladder.fit import Fit
from tilewright.strategy.ladder.program import only_scratchpad

FEW_OPS = 16
"""Networks of no more ops are small: strips take no longer to find than a plan without."""

FEW_TASKS = 5_000
"""So many tasks are few."""

QUICKLY_MADE = 400
"""A plan of no more tasks is found so soon that another one may be made beside it."""

POOR = 2.5
"""A plan that takes longer than this factor of what seems possible is also made in strips."""

POOR_OF_FEW = 1.7
"""The same for a plan of few tasks, for which strips are quickly tried."""

POOR_OF_SMALL = 1.3
"""The same for a small network."""

MORE_MOVED = 1.25
"""A small network is also planned in strips if so many times as much moves as must."""

ROOMY = 0.75
"""They leave so much room, that a part of the scratchpads seems to be enough for them."""

SNUGLY = 0.95
"""Those of a small network are to take no more than this part of what cascades seem to take."""

__all__ = [
    "Plan",
    "PlanObjective",
    "PlanOptions",
    "Watcher",
    "compute_order",
    "plan",
    "plan_that_fits",
    "with_memory_limits",
]


def plan(
    network: Network,
    machine: Machine,
    options: PlanOptions | None = None,
    watcher: Watcher = lambda step: None,
) -> Plan:
    """The plan of a network on a machine.

    Raises:
        InputError: a memory limit names no memory.
        InfeasibleError: an op does not fit however it is cut, or cannot be mapped.
        LimitError: the plan did not pass its check, which is a fault of Tilewright.
        KeyboardInterrupt: the search was interrupted before it had any plan; later, the best plan
            so far is returned, marked as `interrupted`.
    """
    with order_named(machine):
        return _plan(network, machine, options or PlanOptions(), watcher)


def _plan(network: Network, machine: Machine, options: PlanOptions, watcher: Watcher) -> Plan:
    limited = with_memory_limits(machine, options.memory_limits)
    refuse_impossible(network, limited)
    best_so_far = BestSoFar(options)
    try:
        return _planned_on(network, machine, limited, _How(options, watcher, best_so_far))
    except KeyboardInterrupt:
        watcher("the best plan so far")
        known = best_so_far.plan(network, limited)
        if known is None:
            raise
        return known


def _planned_on(network: Network, machine: Machine, limited: Machine, how: "_How") -> Plan:
    """The plan on a machine whose memories are limited, searched for to its end.

    Raises:
        InfeasibleError: an op does not fit however it is cut, or cannot be mapped.
        LimitError: the plan did not pass its check, which is a fault of Tilewright.
    """
    options, watcher = how.options, how.watcher
    less_memory = options.objective == "memory"
    found: Plan | None = None
    if less_memory and limited != machine:
        found = _least_that_fits(network, machine, limited, how)
    elif options.thorough and not less_memory:
        found = _thorough_plan(network, machine, limited, how)
    if found is not None:
        return found
    # A plan for less traffic is the better one of two, and checked when it is known which.
    is_checked_last = options.objective == "traffic" and options.checked
    quick = replace(options, checked=options.checked and not is_checked_last)
    sizes = _Sizes(network, limited, replace(how, options=quick))
    try:
        known = sizes.plan_on(limited)
    except InfeasibleError as refusal:
        may_look_on = not (options.thorough or less_memory)
        raise with_what_would_do(refusal, sizes.ways(), limited, may_look_on=may_look_on) from None
    if is_checked_last:
        watcher("check")
        check(known.timetable, network, limited)
    if options.thorough and less_memory:
        return _in_still_less(known, sizes)
    return replace(known, options=options)


def _least_that_fits(
    network: Network, machine: Machine, limited: Machine, how: "_How"
) -> Plan | None:
    """The plan in the least memory that is found without limits, if it keeps them: what is least
    does not depend on how much there is beyond it."""
    options = how.options
    sizes = _Sizes(network, machine, replace(how, options=replace(options, checked=False)))
    found = sizes.plan_if_any(machine)
    if found is not None and options.thorough:
        found = _in_still_less(found, sizes)
    if found is None or not fits(found, limited):
        return None
    return on_sizes_of(sizes.drafts_on(limited).prepared, found, options)


def _in_still_less(known: Plan, sizes: "_Sizes") -> Plan:
    """The plan in the least memory, with strips and ops that run again where that takes less."""
    options = sizes.how.options
    quick = replace(options, objective="latency", checked=False, thorough=False)
    others = _Sizes(sizes.network, sizes.machine, replace(sizes.how, options=quick))
    whole = sizes.drafts_on(sizes.machine).prepared
    return least_of_sizes(others.plan_if_any, known, whole, options)


def _thorough_plan(
    network: Network, machine: Machine, limited: Machine, how: "_How"
) -> Plan | None:
    """The best plan for the scratchpads or smaller ones; None if those have none, or too many
    tiles."""
    options = how.options
    whole = {memory.name: memory.size_bytes for memory in machine.memories}
    pads = [(m.name, whole[m.name]) for m in limited.memories if m.role == "scratchpad"]
    unlimited = with_memory_limits(limited, tuple(pads))
    # The best one is checked in the end.
    quick = replace(options, checked=False, thorough=False)
    sizes = _Sizes(network, unlimited, replace(how, options=quick))

    def plan_on(other: Machine) -> Plan | None:
        drafts = sizes.drafts_on(other)
        if (drafts.tiles(drafts.goal, PLAIN) or 0) > most_tiles(network):
            return None
        return sizes.plan_if_any(other)

    return best_of_sizes(plan_on, unlimited, sizes.drafts_on(limited).prepared, options)


@dataclass(frozen=True)
class _How:
    """How a plan is searched for, who is told of each step, and who keeps the best draft."""

    options: PlanOptions
    watcher: Watcher
    best_so_far: BestSoFar | None

    def offer(self, drafts: Drafts, draft: Draft) -> None:
        """Tell of a draft that was made."""
        if self.best_so_far is not None:
            self.best_so_far.offer(drafts, draft)


class _Sizes:
    """A network on machines that differ in the sizes of scratchpads: what does not depend on them
    is worked out once."""

    def __init__(self, network: Network, machine: Machine, how: "_How") -> None:
        self.network, self.machine, self.how = network, machine, how
        how.watcher("compute order")
        self.order = compute_order(network, how.options.order_steps)
        self.drafts_on = _drafts_in(network, machine, self.order, how)

    def plan_if_any(self, machine: Machine) -> Plan | None:
        """The plan on a machine of some sizes; None if there is none."""
        try:
            return self.plan_on(machine)
        except InfeasibleError:
            return None

    def plan_on(self, machine: Machine) -> Plan:
        """The plan on a machine of some sizes.

        Raises:
            InfeasibleError: there is none.
        """
        options = self.how.options
        with without_garbage_collection():
            drafts = self.drafts_on(machine)
            is_tight = options.objective == "memory" or _is_tight(drafts, self.order)
            found = self._best_way(machine, is_tight=is_tight)
            waits = drafts.prepared.places.overflow() is not None
            if isinstance(found, InfeasibleError) and not (is_tight or waits):
                # There is room in all scratchpads together, but not where it would have to be.
                found = self._best_way(machine, is_tight=True)
            if options.objective == "energy" and has_leakage(machine):
                found = of_less_energy(found, self._fast.plan_if_any(machine), options)
            if options.objective == "traffic":
                found = self._with_no_more_traffic(found, machine)
            if options.objective == "memory" and self._is_quickly_made(found):
                found = of_less_memory(found, self._fast.plan_if_any(machine), machine, options)
            if isinstance(found, InfeasibleError):
                raise found
            return replace(found, network=self.network)

    def _is_quickly_made(self, found: Plan | InfeasibleError) -> bool:
        """Whether another plan may be made beside one, or beside none."""
        n_tasks = 0 if isinstance(found, InfeasibleError) else len(found.program.tasks)
        return len(self.order) <= FEW_OPS or n_tasks <= QUICKLY_MADE

    def _with_no_more_traffic(
        self, found: Plan | InfeasibleError, machine: Machine
    ) -> Plan | InfeasibleError:
        """A plan for less traffic, or the one for less latency if that happens to move less: looked
        for where the first one moves more than it must, and is small."""
        least = inf
        if isinstance(found, Plan):
            least = found.outside_bytes
            if least <= found.roofline.traffic_bytes or not self._is_quickly_made(found):
                return found
        fast = self._fast.plan_if_any(machine)
        return found if fast is None or fast.outside_bytes >= least else fast

    @cached_property
    def _fast(self) -> "_Sizes":
        quick = replace(self.how.options, objective="latency")
        return _Sizes(self.network, self.machine, replace(self.how, options=quick))

    def _best_way(self, machine: Machine, *, is_tight: bool) -> Plan | InfeasibleError:
        """The plan in the best order, of several if there is little room."""
        others = [way for way in (self._other, self._copying) if way] if is_tight else []
        chosen = self._first
        for other in others:
            share = least_share(other.drafts_on(machine))
            if least_share(chosen.drafts_on(machine), share) > share:
                chosen = other
        found = self._planned_or_refused(chosen, machine, is_tight=is_tight)
        copying = self._copying if is_tight else None
        if isinstance(found, InfeasibleError) and copying not in (None, chosen):
            again = self._planned_or_refused(copying, machine, is_tight=is_tight)
            found = again if isinstance(again, Plan) else found
        return found

    def _planned_or_refused(
        self, way: "_Way", machine: Machine, *, is_tight: bool
    ) -> Plan | InfeasibleError:
        planning = Planning(
            network=way.network,
            machine=machine,
            order=way.order,
            drafts_on=way.drafts_on,
            # A draft of parts of the network in strips is no plan of the network yet.
            drafts_of=lambda other, ops: _drafts_in(
                other, machine, ops, replace(self.how, best_so_far=None)
            ),
            order_of=_order_for_copies,
        )
        try:
            return _planned(planning, is_tight=is_tight)
        except InfeasibleError as refusal:
            return refusal

    def ways(self) -> Iterator[Callable[[Machine], Drafts]]:
        """Drafts of plans in all orders, which are looked for when they are asked for."""
        yield self._first.drafts_on
        if self._other is not None:
            yield self._other.drafts_on
        if self._copying is not None:
            yield self._copying.drafts_on

    @cached_property
    def _first(self) -> "_Way":
        return _Way(self.network, self.order, self.drafts_on)

    @cached_property
    def _other(self) -> "_Way | None":
        """The order in which fewer bytes wait, which suits cascades; None if it is none but the
        first one."""
        order = compute_order(self.network, self.how.options.order_steps, few_alive=True)
        if order == self.order:
            return None
        return _Way(self.network, order, _drafts_in(self.network, self.machine, order, self.how))

    @cached_property
    def _copying(self) -> "_Way | None":
        """The same with concatenations that copy what others read before them: a part that lies in
        the whole of it takes all that room from the start. None if there are none."""
        network = with_copying_joins(self.network)
        if network is None:
            return None
        ops = {op.name: op for op in network.ops}
        order = tuple(ops[op.name] for op in (self._other or self._first).order)
        return _Way(network, order, _drafts_in(network, self.machine, order, self.how))


@dataclass(frozen=True)
class _Way:
    """A network's ops in an order, and drafts of its plans."""

    network: Network
    order: tuple[Op, ...]
    drafts_on: Callable[[Machine], Drafts]


def _planned(planning: Planning, *, is_tight: bool) -> Plan:
    """The best plan of a network, stretches of it in strips if there is little room.

    Raises:
        InfeasibleError: nothing fits.
    """
    drafts = planning.drafts_on(planning.machine)
    if not is_tight or drafts.options.objective != "latency":
        return _planned_as_it_is(planning)
    is_small = len(planning.order) <= FEW_OPS
    tight, fastest, part = drafts.chosen("memory"), None, LIKELY
    if tight is not None:
        part = min(ROOMY, SNUGLY * tight.share) if is_small else ROOMY
        fastest = drafts.chosen("latency") or drafts.chosen("latency", quickly=False)
        if fastest is None:
            # What takes as little memory as possible mostly takes very long.
            in_strips = plan_in_strips(planning, part)
            return in_strips or _planned_as_it_is(planning)
    found = _planned_as_it_is(planning)
    if found.strips or found.again or not _is_poor(found, fastest, is_small=is_small):
        return found
    in_strips = plan_in_strips(planning, part)
    return found if in_strips is None else min(found, in_strips, key=value_of)


def _is_poor(found: Plan, fastest: Chosen | None, *, is_small: bool) -> bool:
    """Whether a plan takes much longer than seems possible, or things move again and again."""
    has_few_tasks = len(found.program.tasks) <= FEW_TASKS
    much = MORE_MOVED if is_small else MUCH_MOVED
    if has_few_tasks and found.outside_bytes > much * found.roofline.traffic_bytes:
        return True
    poor = POOR_OF_SMALL if is_small else POOR_OF_FEW if has_few_tasks else POOR
    return fastest is not None and found.cycles > poor * fastest.cycles


def _planned_as_it_is(planning: Planning) -> Plan:
    """The best plan without strips; with them, and ops that run again, only if nothing else fits.

    Raises:
        InfeasibleError: nothing fits.
    """
    drafts_on, machine = planning.drafts_on, planning.machine
    try:
        if drafts_on(machine).options.objective == "memory":
            with suppress(InfeasibleError):
                return plan_in_least_memory(drafts_on, machine)
        return best_plan(drafts_on, machine)
    except InfeasibleError:
        found = plan_in_strips(planning, LIKELY) or plan_computing_again(planning)
        if found is None:
            raise
        return found


def _is_tight(drafts: Drafts, order: Sequence[Op]) -> bool:
    """Whether there is no room for tensors as a whole, and nowhere else for them to go."""
    places, network = drafts.prepared.places, drafts.prepared.network
    if places.overflow() is not None:
        return False
    at = {op.name: number for number, op in enumerate(network.ops)}
    room = sum(space.size_bytes for space in places.spaces if space.kind == "scratchpad")
    return peak_bytes(problem_of(network), [at[op.name] for op in order]) > room


def _drafts_in(
    network: Network, limited: Machine, order: tuple[Op, ...], how: "_How"
) -> Callable[[Machine], Drafts]:
    """Drafts of plans with ops in one order, on the machine or on one with other sizes."""
    options = how.options
    prepared = prepare(network, limited, order, _search(options, limited))
    known: dict[tuple[int, ...], KnownChoices] = {}

    def drafts_on(other: Machine) -> Drafts:
        # Tiles cost the same whatever the sizes of scratchpads: they are looked up once.
        # What is assumed of the machine does not depend on them either.
        places = replace(places_of(other), assumptions=prepared.places.assumptions)
        here = prepared if other == limited else replace(prepared, places=places)
        chosen = known.setdefault(tuple(memory.size_bytes for memory in other.memories), {})
        return Drafts(here, options, how.watcher, chosen, offer=how.offer)

    return drafts_on


def plan_that_fits(found: Fit, watcher: Watcher = lambda step: None) -> Plan:
    """The plan of the first rung of a ladder that fits; an ordinary one where operands lie apart,
    the rung has too many steps, or its addresses need a few bytes more.

    Raises:
        InfeasibleError: no rung fits and there is no ordinary plan either.
    """
    assert found.machine is not None
    options = PlanOptions()
    prepared = prepare(
        found.network, found.machine, found.network.ops, _search(options, found.machine)
    )
    if found.first is None or only_scratchpad(prepared) is None:
        return plan(found.network, found.machine, options, watcher)
    try:
        with without_garbage_collection():
            return plan_of_rung(prepared, found.first.name, options, watcher)
    except InfeasibleError as refusal:
        with suppress(InfeasibleError):
            return plan(found.network, found.machine, options, watcher)
        raise refusal from None


def compute_order(network: Network, steps: int, *, few_alive: bool = False) -> tuple[Op, ...]:
    """The ops in the order with the least peak memory that a search of so many steps finds.

    With `few_alive`, of orders with the same peak that with fewer bytes alive over time.
    """
    options = OrderOptions(
        steps=steps, beam_steps=steps, window_steps=steps // 50, few_alive=few_alive
    )
    found = least_peak(problem_of(network), options)
    return tuple(network.ops[number] for number in found.order)


def _order_for_copies(network: Network) -> tuple[Op, ...]:
    """The order of a network some of whose ops run twice.

    What runs again is there so that something need not wait, so that hardly anything may; the peak
    says nothing, since the largest tensors are never there as a whole. Inputs can be read again.
    """
    order, _ = first_order(problem_of(network, inputs_wait=False), few_alive=True)
    return small_ops_first(network, [network.ops[number] for number in order])


def _search(options: PlanOptions, machine: Machine) -> SearchOptions:
    """How mappings are searched for: where operands are streamed, they decide what is moved."""
    objective: Objective = "energy" if options.objective == "energy" else "latency"
    if options.objective == "traffic":
        places = places_of(machine)
        if any(places.home(operand) is None for operand in ("I1", "I2", OUTPUT_OPERAND)):
            objective = "energy"
    return SearchOptions(
        objective=objective, lpf_limit=options.lpf_limit, unrollings=options.unrollings
    )

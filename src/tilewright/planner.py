"""Network and machine to plan: the one place that strings the steps together."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

from tilewright.errors import InfeasibleError
from tilewright.garbage import without_garbage_collection
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.model import OUTPUT_OPERAND, Machine
from tilewright.mapping.search import Objective, SearchOptions
from tilewright.network.graph import Network, Op
from tilewright.plan_drafts import Drafts, KnownChoices
from tilewright.plan_halves import best_of_halves, value_of
from tilewright.plan_memory import plan_in_least_memory
from tilewright.plan_model import Plan, PlanObjective, PlanOptions, Watcher
from tilewright.plan_patches import LIKELY, SAFELY, Planning, plan_computing_again, plan_in_strips
from tilewright.plan_rungs import plan_of_rung
from tilewright.plan_search import best_plan
from tilewright.program.lower import prepare
from tilewright.program.order import peak_bytes
from tilewright.program.order_network import problem_of, small_ops_first
from tilewright.program.order_search import OrderOptions, least_peak
from tilewright.program.places import places_of
from tilewright.strategy.ladder.fit import Fit
from tilewright.strategy.ladder.program import only_scratchpad

POOR = 2.5
"""A plan that takes longer than this factor of what seems possible is also made in strips."""

ROOMY = 0.75
"""They leave so much room, that a part of the scratchpads seems to be enough for them."""

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
    """
    options = options or PlanOptions()
    how = options, watcher
    limited = with_memory_limits(machine, options.memory_limits)
    if options.thorough and options.objective != "memory":
        return best_of_halves(lambda other: _plan_on(network, other, how), limited)
    return _plan_on(network, limited, how)


def _plan_on(network: Network, limited: Machine, how: tuple[PlanOptions, Watcher]) -> Plan:
    options, watcher = how
    with without_garbage_collection():
        watcher("compute order")
        order = compute_order(network, options.order_steps)
        drafts_on = _drafts_in(network, limited, order, how)
        is_tight = options.objective == "memory" or _is_tight(drafts_on(limited), order)
        other = _drafts_in_other(network, limited, order, how) if is_tight else None
        if other is not None:
            share = _least_share(other[1](limited))
            if _least_share(drafts_on(limited), share) > share:
                order, drafts_on = other
        planning = Planning(
            network=network,
            machine=limited,
            order=order,
            drafts_on=drafts_on,
            drafts_of=lambda other, ops: _drafts_in(other, limited, ops, how),
            order_of=lambda other: _order_for_copies(other, options),
        )
        return _planned(planning, is_tight=is_tight)


def _planned(planning: Planning, *, is_tight: bool) -> Plan:
    """The best plan of a network, stretches of it in strips if there is little room.

    Raises:
        InfeasibleError: nothing fits.
    """
    drafts_on, machine = planning.drafts_on, planning.machine
    drafts, chosen = drafts_on(machine), None
    objective = drafts.options.objective
    if is_tight and objective == "latency" and drafts.chosen("memory") is not None:
        chosen = drafts.chosen("latency") or drafts.chosen("latency", quickly=False)
        # What takes as little memory as possible mostly takes very long.
        in_strips = plan_in_strips(planning, ROOMY) if chosen is None else None
        if in_strips is not None:
            return in_strips
    try:
        found = (plan_in_least_memory if objective == "memory" else best_plan)(drafts_on, machine)
    except InfeasibleError:
        in_strips = plan_in_strips(planning, LIKELY) or plan_computing_again(planning, SAFELY)
        if in_strips is None:
            raise
        return in_strips
    if chosen is None or found.cycles <= POOR * chosen.cycles:
        return found
    in_strips = plan_in_strips(planning, ROOMY)
    return found if in_strips is None else min(found, in_strips, key=value_of)


def _is_tight(drafts: Drafts, order: Sequence[Op]) -> bool:
    """Whether there is no room for tensors as a whole, and nowhere else for them to go."""
    places, network = drafts.prepared.places, drafts.prepared.network
    if places.overflow() is not None:
        return False
    at = {op.name: number for number, op in enumerate(network.ops)}
    room = sum(space.size_bytes for space in places.spaces if space.kind == "scratchpad")
    return peak_bytes(problem_of(network), [at[op.name] for op in order]) > room


def _drafts_in(
    network: Network, limited: Machine, order: tuple[Op, ...], how: tuple[PlanOptions, Watcher]
) -> Callable[[Machine], Drafts]:
    """Drafts of plans with ops in one order, on the machine or on one with other sizes."""
    options, watcher = how
    prepared = prepare(network, limited, order, _search(options, limited))
    known: dict[tuple[int, ...], KnownChoices] = {}

    def drafts_on(other: Machine) -> Drafts:
        # Tiles cost the same whatever the sizes of scratchpads: they are looked up once.
        here = prepared if other == limited else replace(prepared, places=places_of(other))
        chosen = known.setdefault(tuple(memory.size_bytes for memory in other.memories), {})
        return Drafts(here, options, watcher, chosen)

    return drafts_on


def _drafts_in_other(
    network: Network, limited: Machine, order: tuple[Op, ...], how: tuple[PlanOptions, Watcher]
) -> tuple[tuple[Op, ...], Callable[[Machine], Drafts]] | None:
    """The order in which fewer bytes wait, which suits cascades, and drafts in it; None if it is
    none but the given one."""
    other = compute_order(network, how[0].order_steps, few_alive=True)
    return None if other == order else (other, _drafts_in(network, limited, other, how))


def _least_share(drafts: Drafts, most_share: float = inf) -> float:
    """The part of the scratchpads that the choice of cascades believes in; infinite if it finds
    nothing, or nothing that fills no more than this part."""
    chosen = drafts.chosen("memory", most_share=most_share)
    return inf if chosen is None else chosen.share


def plan_that_fits(found: Fit, watcher: Watcher = lambda step: None) -> Plan:
    """The plan of the first rung of a ladder that fits; an ordinary one where operands lie apart.

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
    with without_garbage_collection():
        return plan_of_rung(prepared, found.first.name, options, watcher)


def compute_order(network: Network, steps: int, *, few_alive: bool = False) -> tuple[Op, ...]:
    """The ops in the order with the least peak memory that a search of so many steps finds.

    With `few_alive`, of orders with the same peak that with fewer bytes alive over time.
    """
    options = OrderOptions(
        steps=steps, beam_steps=steps, window_steps=steps // 50, few_alive=few_alive
    )
    found = least_peak(problem_of(network), options)
    return tuple(network.ops[number] for number in found.order)


def _order_for_copies(network: Network, options: PlanOptions) -> tuple[Op, ...]:
    """The order of a network some of whose ops run twice."""
    order = compute_order(network, options.order_steps, few_alive=True)
    return small_ops_first(network, order)


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

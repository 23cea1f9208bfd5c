"""Network and machine to plan: the one place that strings the steps together."""

from dataclasses import replace

from tilewright.garbage import without_garbage_collection
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.model import Machine
from tilewright.mapping.search import Objective, SearchOptions
from tilewright.network.graph import Network, Op
from tilewright.plan_model import Plan, PlanObjective, PlanOptions, Watcher
from tilewright.plan_rungs import plan_of_rung
from tilewright.plan_search import Search, best_plan, plan_in_least_memory
from tilewright.program.lower import prepare
from tilewright.program.order_network import problem_of
from tilewright.program.order_search import OrderOptions, least_peak
from tilewright.program.places import places_of
from tilewright.strategy.ladder.fit import Fit
from tilewright.strategy.ladder.program import only_scratchpad

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
    limited = with_memory_limits(machine, options.memory_limits)
    with without_garbage_collection():
        watcher("compute order")
        order = compute_order(network, options.order_steps)

        prepared = prepare(network, limited, order, _search(options))

        def search_on(other: Machine) -> Search:
            # Tiles cost the same whatever the sizes of scratchpads: they are looked up once.
            places = prepared.places if other == limited else places_of(other)
            return Search(replace(prepared, places=places), options, watcher)

        if options.objective == "memory":
            return plan_in_least_memory(search_on, limited)
        return best_plan(search_on, limited)


def plan_that_fits(found: Fit, watcher: Watcher = lambda step: None) -> Plan:
    """The plan of the first rung of a ladder that fits; an ordinary one where operands lie apart.

    Raises:
        InfeasibleError: no rung fits and there is no ordinary plan either.
    """
    assert found.machine is not None
    options = PlanOptions()
    prepared = prepare(found.network, found.machine, found.network.ops, _search(options))
    if found.first is None or only_scratchpad(prepared) is None:
        return plan(found.network, found.machine, options, watcher)
    with without_garbage_collection():
        return plan_of_rung(prepared, found.first.name, options, watcher)


def compute_order(network: Network, steps: int) -> tuple[Op, ...]:
    """The ops in the order with the least peak memory that a search of so many steps finds."""
    found = least_peak(
        problem_of(network), OrderOptions(steps=steps, beam_steps=steps, window_steps=steps // 50)
    )
    return tuple(network.ops[number] for number in found.order)


def _search(options: PlanOptions) -> SearchOptions:
    objective: Objective = "energy" if options.objective == "energy" else "latency"
    return SearchOptions(
        objective=objective, lpf_limit=options.lpf_limit, unrollings=options.unrollings
    )

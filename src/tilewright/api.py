"""Planning, mapping and fitting from Python: values, files or built-in names alike."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tilewright import plan_fit, planner
from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine
from tilewright.mapping import network as mapped
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.plan_model import Plan, PlanObjective, PlanOptions, Watcher
from tilewright.strategy.ladder.fit import Fit


def plan(
    network: Network | str | Path,
    machine: Machine | str | Path,
    options: PlanOptions | None = None,
    watcher: Watcher = lambda step: None,
    *,
    objective: PlanObjective | None = None,
) -> Plan:
    """Plan a network on a machine: every tile, transfer, address and cycle.

    Both are values, files or built-in names. `objective` is that of `options` if it is left out.
    `watcher` is called with the name of each step. An interrupt ends the search: the best plan by
    then is returned, marked as `interrupted`.

    Raises:
        InputError: a file cannot be read, or an option cannot be meant.
        InfeasibleError: there is no plan; the message says why, and what would help.
    """
    options = options or PlanOptions()
    if objective is not None:
        options = replace(options, objective=objective)
    return planner.plan(network_of(network), machine_of(machine), options, watcher)


def map_network(
    network: Network | str | Path,
    machine: Machine | str | Path,
    how: mapped.MapOptions | None = None,
) -> mapped.MappedNetwork:
    """Map every op of a network on a core: the best unrolling and loop order, and their cost.

    Both are values, files or built-in names.

    Raises:
        InputError: a file cannot be read.
        InfeasibleError: an op cannot be mapped.
    """
    return mapped.map_network(network_of(network), machine_of(machine), how or mapped.MapOptions())


def fit(network: Network | str | Path, machine: Machine | str | Path | None = None) -> Fit:
    """How much memory a network needs, from layer by layer to its weights alone.

    Both are values, files or built-in names. With a machine, `first` is the first rung that fits.
    """
    return plan_fit.fit(network_of(network), None if machine is None else machine_of(machine))


def network_of(
    given: Network | str | Path, dims: Mapping[str, int] | None = None, bits: int | None = None
) -> Network:
    """A network that is given as a value, a file or a name."""
    return given if isinstance(given, Network) else load_network(given, dims=dims, bits=bits)


def machine_of(given: Machine | str | Path) -> Machine:
    """A machine that is given as a value, a file or a name."""
    return given if isinstance(given, Machine) else load_machine(given)

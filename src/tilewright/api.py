"""Planning, mapping and fitting from Python: values, files or built-in names alike."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tilewright import plan_fit, planner
from tilewright.errors import InputError, Problem
from tilewright.machine.load import load_machine, load_sound_machine
from tilewright.machine.model import Machine
from tilewright.mapping import network as mapped
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.plan_model import OBJECTIVES, Plan, PlanObjective, PlanOptions, Watcher
from tilewright.roles import mistaken, role_of
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
        InputError: a file cannot be read, an option cannot be meant, or an operand cannot get where
            it must on a machine that is given by its file.
        InfeasibleError: there is no plan; the message says why, and what would help.
    """
    options = PlanOptions() if options is None else options
    if not isinstance(options, PlanOptions):
        hint = f"objective={options!r}" if options in OBJECTIVES else ""
        raise _not_meant("options", "PlanOptions", options, hint)
    if objective is not None:
        options = replace(options, objective=objective)
    with _told_apart("plan", network, machine):
        graph = network_of(network)
        if isinstance(machine, str | Path):
            whole = load_sound_machine(machine)
        else:
            whole = machine_of(machine)
    return planner.plan(graph, whole, options, watcher)


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
    how = mapped.MapOptions() if how is None else how
    if not isinstance(how, mapped.MapOptions):
        raise _not_meant("how", "MapOptions", how)
    with _told_apart("map_network", network, machine):
        graph, whole = network_of(network), machine_of(machine)
    return mapped.map_network(graph, whole, how)


def fit(network: Network | str | Path, machine: Machine | str | Path | None = None) -> Fit:
    """How much memory a network needs, from layer by layer to its weights alone.

    Both are values, files or built-in names. With a machine, `first` is the first rung that fits.
    """
    with _told_apart("fit", network, machine):
        graph, whole = network_of(network), None if machine is None else machine_of(machine)
    return plan_fit.fit(graph, whole)


def network_of(
    given: Network | str | Path, dims: Mapping[str, int] | None = None, bits: int | None = None
) -> Network:
    """A network that is given as a value, a file or a name.

    Raises:
        InputError: it is none of these, or cannot be read.
    """
    if isinstance(given, Network):
        return given
    if not isinstance(given, str | Path):
        raise _not_meant("network", "a Network, a file or a name", given)
    return load_network(given, dims=dims, bits=bits)


def machine_of(given: Machine | str | Path) -> Machine:
    """A machine that is given as a value, a file or a name.

    Raises:
        InputError: it is none of these, or cannot be read.
    """
    if isinstance(given, Machine):
        return given
    if not isinstance(given, str | Path):
        raise _not_meant("machine", "a Machine, a file or a name", given)
    return load_machine(given)


def _not_meant(argument: str, wanted: str, given: object, hint: str = "") -> InputError:
    told = repr(given) if isinstance(given, str) else f"of type {type(given).__name__}"
    return InputError(Problem(message=f"{argument} is {wanted}, and not {told}", hint=hint))


@contextmanager
def _told_apart(call: str, network: object, machine: object) -> Iterator[None]:
    """Say so where arguments cannot be read because one is what the other should be."""
    try:
        yield
    except InputError:
        texts = [
            str(given) if isinstance(given, str | Path) else None for given in (network, machine)
        ]
        told = mistaken(*texts)
        if not told:
            raise
        message = f"{told}: the network comes first, then the machine"
        is_network = texts[1] is not None and role_of(texts[1]) == "network"
        is_machine = texts[0] is not None and role_of(texts[0]) == "machine"
        right = (
            repr(texts[1]) if is_network else "NETWORK",
            repr(texts[0]) if is_machine else "MACHINE",
        )
        hint = f"tilewright.{call}({', '.join(right)})"
        raise InputError(Problem(message=message, hint=hint)) from None

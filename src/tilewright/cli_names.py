"""What an argument names: a network or a machine, and what a shell may complete it to."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click
from click.shell_completion import CompletionItem

from tilewright.errors import InputError, Problem
from tilewright.roles import machine_names, mistaken, role_of, zoo_names


class Completed(click.ParamType[str]):
    """A file, or one of some names that a shell completes."""

    name = "text"

    def __init__(self, *sources: Callable[[], Sequence[str]]) -> None:
        self.sources = sources

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Names that begin like this; files where there are none."""
        names = [name for source in self.sources for name in source()]
        fitting = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return fitting or [CompletionItem(incomplete, type="file")]


NETWORK = Completed(zoo_names)
MACHINE = Completed(machine_names)
EITHER = Completed(zoo_names, machine_names)
FILE = Completed()


def roles(first: str | None, second: str | None, machine: str | None) -> tuple[str, str | None]:
    """The machine and the network among the arguments of `check`, in whichever order they stand.

    `machine` is what `--on` names; without it the only argument is the machine, and of two the
    first, unless it is a network and the other one none.

    Raises:
        InputError: there is no machine among them, or more than one of a kind.
    """
    network = second
    if machine is not None:
        network = first
        if second is not None:
            message = f"--on names the machine, and both {first!r} and {second!r} stand beside it"
            raise _misnamed(message, "tilewright check NETWORK --on MACHINE")
    elif first is None:
        raise _misnamed("no machine is named", "tilewright check MACHINE")
    else:
        machine = first
        if role_of(machine) == "network" and network is not None:
            machine, network = network, machine
    if role_of(machine) == "network":
        also = f" and so is {network!r}" if network is not None else ""
        message = f"{machine!r} is a network{also}, and what is checked is a machine"
        hint = f"tilewright check {machine} --on MACHINE\nor tilewright show {machine}"
        raise _misnamed(message, hint)
    if network is not None and role_of(network) == "machine":
        message = f"{network!r} is a machine, and so is {machine!r}"
        raise _misnamed(message, f"check them one after the other: tilewright check {machine}")
    return machine, network


def _misnamed(message: str, hint: str) -> InputError:
    return InputError(Problem(message=message, hint=hint))


@contextmanager
def told_apart(command: str, network: str, machine: str | None) -> Iterator[None]:
    """Say so where arguments cannot be read because one is what the other should be."""
    try:
        yield
    except InputError:
        message = mistaken(network, machine)
        if not message:
            raise
        is_machine = role_of(network) == "machine"
        is_network = machine is not None and role_of(machine) == "network"
        right = (
            f"{machine if is_network else 'NETWORK'} --on {network if is_machine else 'MACHINE'}"
        )
        message += ": the network comes first, and the machine after --on"
        raise _misnamed(message, f"tilewright {command} {right}") from None

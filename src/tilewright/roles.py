"""What an argument is, a network or a machine, and whether two of them changed places."""

from collections.abc import Sequence
from typing import Literal

from tilewright.errors import InputError

Role = Literal["network", "machine"]


def zoo_names() -> Sequence[str]:
    """Networks of the zoo."""
    from tilewright.network.zoo import names

    return names()


def machine_names() -> Sequence[str]:
    """Machines of the library."""
    from tilewright.machine.load import library_names

    return library_names()


def role_of(what: str) -> Role | None:
    """What an argument is, if that can be told; a YAML file is opened to see."""
    import os
    from pathlib import Path

    path = Path(what)
    if path.suffix in (".onnx", ".tflite"):
        return "network"
    if path.suffix in (".yaml", ".yml"):
        from tilewright.document import read_document

        try:
            data = read_document(path, last_key_wins=True).data
        except InputError:
            return None
        return (
            "machine" if isinstance(data, dict) else "network" if isinstance(data, list) else None
        )
    if os.path.isfile(what):
        return None
    if what in machine_names():
        return "machine"
    return "network" if what in zoo_names() else None


def mistaken(network: str | None, machine: str | None) -> str:
    """Which of two arguments is what the other should be; empty if neither is."""
    parts = []
    if network is not None and role_of(network) == "machine":
        parts.append(f"{network!r} is a machine")
    if machine is not None and role_of(machine) == "network":
        parts.append(f"{machine!r} is a network")
    return " and ".join(parts)

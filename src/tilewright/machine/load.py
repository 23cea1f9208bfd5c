"""Loading a machine by file or by name, and checking it."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tilewright.document import in_file_order, read_document, suggestion
from tilewright.errors import InputError, Problem
from tilewright.machine.model import Machine
from tilewright.machine.reader import MachineReading, read_machine

_LIBRARY = Path(__file__).parent / "library"


def library_names() -> tuple[str, ...]:
    """Machines that come with the package."""
    names = os.listdir(_LIBRARY)
    return tuple(sorted(n.removesuffix(".yaml") for n in names if n.endswith(".yaml")))


def machine_path(name_or_path: str) -> Path:
    """The file of a machine given by path or by library name."""
    path = Path(name_or_path)
    if os.path.isfile(name_or_path) or path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        return path
    if name_or_path in library_names():
        return _LIBRARY / f"{name_or_path}.yaml"
    raise InputError(
        Problem(
            message=f"no machine {name_or_path!r}: neither a file nor a name of the library",
            hint=suggestion(name_or_path, library_names()),
        )
    )


def load_machine(name_or_path: str | Path) -> Machine:
    """Read a machine.

    Raises:
        InputError: the file cannot be understood. What is understood but cannot work, such as a
            memory that nothing fills, is left to `check_machine` and to the steps that need it.
    """
    return _machine_of(reading_of(name_or_path), [])


def load_sound_machine(name_or_path: str | Path) -> Machine:
    """Read a machine on which every operand can get where it must, as a plan needs it.

    Raises:
        InputError: the file cannot be understood, or an operand cannot move: see `check_machine`.
    """
    from tilewright.machine.datapath import data_path_problems

    reading = reading_of(name_or_path)
    return _machine_of(reading, data_path_problems(reading))


def _machine_of(reading: MachineReading, more: Iterable[Problem]) -> Machine:
    """What was read, if nothing in it is wrong."""
    problems = in_file_order([*reading.problems, *more])
    errors = [p for p in problems if p.severity == "error"]
    if errors or reading.machine is None:
        raise InputError(*errors)
    if Path(reading.machine.source).parent == _LIBRARY:
        # Where the package lies is nobody's business: plans are the same on every computer.
        name = Path(reading.machine.source).stem
        return replace(reading.machine, source=f"library:{name}")
    return reading.machine


def reading_of(name_or_path: str | Path) -> MachineReading:
    """A machine file as far as it can be read."""
    path = machine_path(str(name_or_path))
    return read_machine(read_document(path, last_key_wins=True))


def check_machine(reading: MachineReading) -> list[Problem]:
    """All faults of a machine file, then what is suspicious in it, each in file order."""
    # Imported here: whoever only loads a machine does not wait for what checks it.
    from tilewright.machine.datapath import data_path_problems
    from tilewright.machine.suspicions import suspicious

    problems = in_file_order([*reading.problems, *data_path_problems(reading)])
    errors = [p for p in problems if p.severity == "error"]
    warnings = [p for p in problems if p.severity == "warning"]
    return errors + in_file_order([*warnings, *suspicious(reading, is_sound=not errors)])

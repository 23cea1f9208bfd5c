"""Machines with smaller or larger memories."""

from collections.abc import Mapping
from dataclasses import replace

from tilewright.errors import InputError, Problem
from tilewright.machine.model import Machine, Memory


def with_memory_limits(
    machine: Machine, limits: Mapping[str, int] | tuple[tuple[str, int], ...]
) -> Machine:
    """The machine with other memory sizes, in bytes by name.

    Raises:
        InputError: there is no such memory.
    """
    sizes = dict(limits)
    known = [memory.name for memory in machine.memories]
    for name in sizes:
        if name not in known:
            message = f"--memory-limit: machine {machine.name!r} has no memory {name!r}"
            raise InputError(Problem(message=message, hint=f"it has {', '.join(known)}"))

    def resized(memories: tuple[Memory, ...]) -> tuple[Memory, ...]:
        return tuple(
            replace(m, size_bits=8 * sizes[m.name]) if m.name in sizes else m for m in memories
        )

    if not sizes:
        return machine
    cores = tuple(replace(core, memories=resized(core.memories)) for core in machine.cores)
    return replace(machine, cores=cores, shared=resized(machine.shared))

"""Machines whose weights all pass through the scratchpads."""

from dataclasses import replace

from tilewright.machine.model import Machine, Memory


def without_bypass(machine: Machine) -> Machine:
    """The same machine, of which nothing leads past a memory."""

    def brought(memories: tuple[Memory, ...]) -> tuple[Memory, ...]:
        return tuple(replace(memory, bypass=()) for memory in memories)

    cores = tuple(replace(core, memories=brought(core.memories)) for core in machine.cores)
    return replace(machine, cores=cores, shared=brought(machine.shared))

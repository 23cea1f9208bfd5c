"""What memories lose in every cycle, whether they are used or not."""

from collections.abc import Iterator
from math import fsum, prod

from tilewright.machine.model import Core, Machine, Memory


def leakage_pj_per_cycle(machine: Machine, core: Core, memory: Memory) -> float:
    """What a memory of a core, or above all cores, loses in a cycle; 0 where nothing is given.

    A copy for every part of the array that it does not serve. A cycle without a clock has no
    length. One pW is one pJ a second.
    """
    if not memory.leakage_pw_per_bit or machine.clock_hz is None:
        return 0.0
    copies = prod(size for dim, size in core.array.dims if dim not in memory.served_dims)
    return memory.leakage_pw_per_bit * memory.size_bits * copies / machine.clock_hz


def has_leakage(machine: Machine) -> bool:
    """Whether any memory loses anything."""
    return machine.clock_hz is not None and any(m.leakage_pw_per_bit for m in machine.memories)


def leaks_without_address(machine: Machine) -> Iterator[tuple[str, float]]:
    """The same of all memories in which plans place no buffers, over all cores."""
    first = machine.cores[0]
    for core in machine.cores:
        for memory in core.memories:
            rate = core.count * leakage_pj_per_cycle(machine, core, memory)
            if rate and (memory.role == "local" or core is not first):
                yield memory.name, rate
    for memory in machine.shared:
        rate = leakage_pj_per_cycle(machine, first, memory)
        if rate and memory.role == "local":
            yield memory.name, rate


def leakage_of_one_core(machine: Machine, core: Core, cycles: float) -> float:
    """What a core's own memories and those above it lose in some time, in pJ."""
    levels = machine.levels(core)
    return cycles * fsum(leakage_pj_per_cycle(machine, core, memory) for memory in levels)

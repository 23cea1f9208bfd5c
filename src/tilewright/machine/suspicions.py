"""What is legal in a machine file, but looks like a mistake."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from tilewright.document import Location, dotted
from tilewright.errors import Problem
from tilewright.machine.ignored import idle_parts, ignored_keys
from tilewright.machine.model import (
    INPUT_OPERANDS,
    OUTPUT_OPERAND,
    SCRATCHPAD_BITS,
    Machine,
    Memory,
)
from tilewright.machine.reader import MachineReading
from tilewright.units import format_bits

EVERY_OPERAND = (*INPUT_OPERANDS, OUTPUT_OPERAND)
FEW_BITS = 1024
"""A register file of one unit has no more than so many."""


def suspicious(reading: MachineReading, *, is_sound: bool) -> Iterator[Problem]:
    """Warnings, each with the figures that make it suspicious.

    What is idle in a file with errors may have its work once they are mended: of a file that is
    not sound, nothing is said about it.
    """
    machine = reading.machine
    if machine is None:
        return
    for memory in machine.memories:
        yield from _memory_warnings(reading, machine, memory)
    for part in (*ignored_keys(machine), *(idle_parts(machine) if is_sound else ())):
        at = part.at
        if at[0] == "memories":
            at = (*reading.places[str(at[1])], *at[2:])
        yield _warning(reading, at, part.why, part.hint)
    if is_sound:
        yield from _misplaced_links(reading, machine)
        yield from _odd_sinks(reading, machine)
        yield from _shared_registers(reading, machine)
    yield from _dear_registers(reading, machine)
    yield from _falling_energy(reading, machine)


def _warning(reading: MachineReading, at: Location, text: str, hint: str = "") -> Problem:
    return reading.document.problem(at, f"{dotted(at)}: {text}", hint=hint, severity="warning")


def _memory_warnings(
    reading: MachineReading, machine: Machine, memory: Memory
) -> Iterator[Problem]:
    place = reading.places[memory.name]
    wide = [port for port in memory.ports if port.bits_per_cycle > memory.size_bits]
    if wide:
        text = (
            f"a port ({', '.join(port.name for port in wide)}) moves "
            f"{max(port.bits_per_cycle for port in wide)} bits a cycle, "
            f"more than the {memory.size_bits} bits that the memory has"
        )
        yield _warning(reading, place, text, "check size (in bits) and bandwidth")


def _shared_registers(reading: MachineReading, machine: Machine) -> Iterator[Problem]:
    """Memories of few bits beside the array of which there is one for all units."""
    core = machine.cores[0]
    nearest = {chain[0].name for o in EVERY_OPERAND if (chain := machine.chain(core, o))}
    for memory in machine.levels(core):
        serves_all = all(dim in memory.served_dims for dim, _ in core.array.dims)
        is_small = memory.size_bits <= FEW_BITS and memory.name in nearest
        if serves_all and is_small and core.array.units > 1:
            place = (*reading.places[memory.name], "served_dimensions")
            text = (
                f"all {core.array.units} units share these {memory.size_bits} bits, "
                f"{memory.size_bits / core.array.units:.4g} each"
            )
            hint = f"[] gives every unit {memory.size_bits} bits of its own"
            yield _warning(reading, place, text, hint)


def _misplaced_links(reading: MachineReading, machine: Machine) -> Iterator[Problem]:
    """Links that connect nothing, and meshes of another size than what they connect."""
    counts = {core.name: core.count for core in machine.cores}
    for core in machine.cores:
        counts.update({memory.name: core.count for memory in core.memories})
    for i, link in enumerate(machine.links):
        if not link.connects:
            text = "is empty, so the link connects nothing"
            yield _warning(reading, ("links", i, "connects"), text, "list memories or cores")
        places, stations = link.rows * link.columns, sum(counts.get(n, 1) for n in link.connects)
        if link.kind == "mesh" and link.connects and places != stations:
            text = f"{link.rows} x {link.columns} = {places} places for {stations} to connect"
            yield _warning(reading, ("links", i, "rows"), text, "check `rows` and `columns`")
        if link.kind != "mesh" and places > 1:
            text = f"a {link.kind} has no rows and columns"
            yield _warning(reading, ("links", i, "rows"), text, "write kind: mesh, or remove them")


def _odd_sinks(reading: MachineReading, machine: Machine) -> Iterator[Problem]:
    """Sinks that are of a kind that takes no results."""
    for i, sink in enumerate(machine.sinks):
        if sink.kind in ("sensor", "rom"):
            text = f"a {sink.kind} takes no results"
            yield _warning(reading, ("sinks", i, "kind"), text, "write noc, host or dram")


def _readable(memories: Iterable[Memory]) -> list[Memory]:
    """Memories with a read port and an energy: of others that of a bit is not known."""
    return [m for m in memories if m.read_pj and any(port.kind != "write" for port in m.ports)]


def _energy_per_bit(memory: Memory) -> float:
    """pJ a bit of a read, the width bounded by what the memory holds."""
    widths = [p.bits_per_cycle for p in memory.ports if p.kind != "write"]
    return memory.read_pj / min(max(widths), memory.size_bits)


def _per_bit(pj: float) -> str:
    return f"{pj:.4g} pJ" if pj >= 1 else f"{pj * 1000:.4g} fJ"


def _dear_registers(reading: MachineReading, machine: Machine) -> Iterator[Problem]:
    memories = _readable(machine.memories)
    large = [m for m in memories if m.size_bits >= SCRATCHPAD_BITS]
    cheapest = min(large, key=lambda m: (_energy_per_bit(m), m.name), default=None)
    for memory in memories:
        if memory.size_bits >= SCRATCHPAD_BITS or cheapest is None:
            continue
        own, other = _energy_per_bit(memory), _energy_per_bit(cheapest)
        if own > other * (1 + 1e-9):
            text = (
                f"a register of {format_bits(memory.size_bits)} at {_per_bit(own)} a bit is "
                f"dearer than {cheapest.name} ({format_bits(cheapest.size_bits)}) at "
                f"{_per_bit(other)}"
            )
            hint = "check the unit (fJ, pJ) and whether the cost is per access or per bit"
            yield _warning(reading, (*reading.places[memory.name], "r_cost"), text, hint)


def _falling_energy(reading: MachineReading, machine: Machine) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for core in machine.cores:
        for operand in ("I1", "I2", "O"):
            readable = _readable(machine.chain(core, operand))
            chain = [m for m in readable if m.size_bits >= SCRATCHPAD_BITS]
            for pair in pairwise(chain):
                small, large = sorted(pair, key=lambda m: m.size_bits)
                own, other = _energy_per_bit(small), _energy_per_bit(large)
                falls = own > other * (1 + 1e-9) and small.size_bits < large.size_bits
                # What lies outside the chip is dear, however small it is.
                if not falls or small.role == "external" or (small.name, large.name) in seen:
                    continue
                seen.add((small.name, large.name))
                text = (
                    f"energy a bit falls with size: {_per_bit(own)} here, "
                    f"{_per_bit(other)} in the larger {large.name}"
                )
                place = (*reading.places[small.name], "r_cost")
                yield _warning(reading, place, text, "check both figures and their units")

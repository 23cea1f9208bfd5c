"""What is legal in a machine file, but looks like a mistake."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import prod

from tilewright.document import Location, dotted
from tilewright.errors import Problem
from tilewright.machine.model import SCRATCHPAD_BITS, WEIGHTS, Core, Machine, Memory
from tilewright.machine.reader import MachineReading
from tilewright.units import format_bits


def suspicious(reading: MachineReading) -> Iterator[Problem]:
    """Warnings, each with the figures that make it suspicious."""
    machine = reading.machine
    if machine is None:
        return
    for memory in machine.memories:
        yield from _memory_warnings(reading, machine, memory)
    yield from _dear_registers(reading, machine)
    yield from _falling_energy(reading, machine)


def _warning(reading: MachineReading, at: Location, text: str, hint: str = "") -> Problem:
    return reading.document.problem(at, f"{dotted(at)}: {text}", hint=hint, severity="warning")


def _memory_warnings(
    reading: MachineReading, machine: Machine, memory: Memory
) -> Iterator[Problem]:
    place = reading.places[memory.name]
    idle = [port.name for port in memory.ports if not port.uses]
    if idle and len(idle) < len(memory.ports):
        text = f"{', '.join(idle)}: declared and never used"
        yield _warning(reading, (*place, "ports"), text, "give it an operand, or remove it")
    wide = [port for port in memory.ports if port.bits_per_cycle > memory.size_bits]
    if wide:
        text = (
            f"a port ({', '.join(port.name for port in wide)}) moves "
            f"{max(port.bits_per_cycle for port in wide)} bits a cycle, "
            f"more than the {memory.size_bits} bits that the memory has"
        )
        yield _warning(reading, place, text, "check size (in bits) and bandwidth")
    if memory.latency_cycles > 1:
        text = f"latency of {memory.latency_cycles} cycles is never used by ZigZag's model"
        hint = "a machine's `dma` entry has a `setup` time that is used"
        yield _warning(reading, (*place, "latency"), text, hint)
    cores = [core for core in machine.cores if memory in machine.levels(core)]
    if (
        memory.bypass
        and WEIGHTS in memory.operands
        and not any(_leads_past(machine, core, memory) for core in cores)
    ):
        text = "nothing can be read past it: weights come from no external memory above"
        yield _warning(reading, (*place, "bypass"), text, "remove it")
    missing = [d for d, _ in cores[0].array.dims if d not in memory.served_dims] if cores else []
    if memory.role == "external" and missing and cores:
        copies = prod(cores[0].array.sizes[dim] for dim in missing)
        text = f"does not serve {', '.join(missing)}: there are {copies} of this memory"
        yield _warning(reading, (*place, "served_dimensions"), text, "list every array dimension")


def _leads_past(machine: Machine, core: Core, memory: Memory) -> bool:
    """Whether weights lie in an external memory above a scratchpad that they may go past."""
    chain = machine.chain(core, WEIGHTS)
    if memory not in chain or memory.role != "scratchpad":
        return False
    above = chain[chain.index(memory) + 1 :]
    return any(m.role == "external" and m.port(WEIGHTS, "tl") is not None for m in above)


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

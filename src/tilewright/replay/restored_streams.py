"""The levels of a mapping above which an operand without a scratchpad lies, as a replay sees them.

The topmost level is where tasks read or write it: an external memory, a source or a sink, or, over
a DMA engine, a memory that has no port for the operand.
"""

from collections.abc import Mapping
from dataclasses import replace

from tilewright.machine.model import Direction, End, Machine, Memory, Port
from tilewright.mapping.hierarchy import Hierarchy

WITHOUT_END = 2**62
"""Bits of a source or a sink."""


def streaming_levels(machine: Machine, found: Hierarchy, streams: Mapping[str, str]) -> Hierarchy:
    """Levels with the memories, by letter, from which operands stream, or to which results do."""
    for letter, name in streams.items():
        chain = found.chains[letter]
        if not chain or found.levels[chain[-1]][0].name != name:
            found = _with_top(found, letter, _as_level(machine, name))
    return found


def _as_level(machine: Machine, name: str) -> Memory:
    """A memory, or a source or a sink as one."""
    for memory in machine.memories:
        if memory.name == name:
            return memory
    for end in (*machine.sources, *machine.sinks):
        if end.name == name:
            return _as_memory(machine, end)
    raise ValueError(f"{machine.name} has no {name}")


def _as_memory(machine: Machine, end: End) -> Memory:
    (beside,) = [memory for memory in machine.memories if memory.name == end.memory]
    is_source = end in machine.sources
    side, use = ("fh", "tl") if is_source else ("th", "fl")
    widths = [p.bits_per_cycle for p in beside.ports if any(d == side for _, d in p.uses)]
    bits = end.bits_per_cycle or max(widths, default=1)
    direction: Direction = "tl" if use == "tl" else "fl"
    port = Port(
        name=end.name,
        kind="read" if is_source else "write",
        bits_per_cycle=bits,
        # Energy is given for a bit, whatever else comes in the cycle.
        granularity_bits=1,
        uses=tuple((operand, direction) for operand in end.operands),
    )
    return Memory(
        name=end.name,
        size_bits=WITHOUT_END,
        operands=end.operands,
        ports=(port,),
        served_dims=tuple(dim for dim, _ in machine.cores[0].array.dims),
        read_pj=end.pj_per_bit * bits,
        write_pj=end.pj_per_bit * bits,
        role="external",
    )


def _with_top(found: Hierarchy, letter: str, top: Memory) -> Hierarchy:
    """Levels of which one operand's are those on the chip and `top`."""
    letters: list[str] = []
    levels: list[tuple[Memory, tuple[str, ...]]] = []
    for memory, held in found.levels:
        if memory.name == top.name:
            top, letters = memory, [other for other in held if other != letter]
        elif memory.role == "external":
            levels.append((memory, tuple([other for other in held if other != letter])))
        else:
            levels.append((memory, held))
    carrier = dict(found.links)[letter]
    direction: Direction = "fl" if letter == "O" else "tl"
    if top.port(carrier, direction) is None:
        top = _with_port(top, carrier)
    levels = [level for level in levels if level[1]]
    return replace(found, levels=(*levels, (top, (*letters, letter))))


def _with_port(memory: Memory, carrier: str) -> Memory:
    """A memory of which the widest port that is read is read for a carrier, too: by an engine."""
    reading = [port for port in memory.ports if any(d in ("tl", "th") for _, d in port.uses)]
    if not reading:
        raise ValueError(f"{memory.name} cannot be read")
    widest = max(reading, key=lambda port: port.bits_per_cycle)
    ports = [
        replace(port, uses=(*port.uses, (carrier, "tl"))) if port is widest else port
        for port in memory.ports
    ]
    return replace(memory, operands=(*memory.operands, carrier), ports=tuple(ports))

"""A machine as a table and as JSON."""

from collections import Counter
from dataclasses import asdict
from math import fsum, prod
from typing import Any

from tilewright.machine.model import Core, Machine, Memory, Sharing
from tilewright.machine.sharing import assumed_sharing
from tilewright.report.tables import Grid, View, heading, table
from tilewright.units import format_bits, format_number

_PORT_LETTERS = {"read": "r", "write": "w", "read_write": "rw"}


def machine_json(machine: Machine) -> dict[str, Any]:
    """Every core, memory, engine, link and end of a machine."""
    return {
        "name": machine.name,
        "description": machine.description,
        "source": machine.source,
        "clock_hz": machine.clock_hz,
        "macs_per_cycle": peak_macs(machine),
        "area_mm2": area_mm2(machine),
        "cores": [
            {
                "name": core.name,
                "count": core.count,
                "array": asdict(core.array),
                "vector": asdict(core.vector) if core.vector else None,
                "memories": [_memory_json(m) for m in core.memories],
            }
            for core in machine.cores
        ],
        "shared_memories": [_memory_json(m) for m in machine.shared],
        "dma": [asdict(d) for d in machine.dma],
        "links": [asdict(link) for link in machine.links],
        "sources": [asdict(end) for end in machine.sources],
        "sinks": [asdict(end) for end in machine.sinks],
        "given": asdict(machine.given),
        "assumptions": list(assumptions(machine)),
    }


def peak_macs(machine: Machine) -> int:
    """Multiplications a cycle with every unit of every core at work."""
    return sum(core.count * core.array.units for core in machine.cores)


def area_mm2(machine: Machine) -> float:
    """Of all memories and multipliers, as far as the file gives them."""
    parts = [(core.count, core, memory) for core in machine.cores for memory in core.memories]
    parts += [(1, machine.cores[0], memory) for memory in machine.shared]
    units = fsum(c.count * c.array.units * c.array.area_mm2_per_unit for c in machine.cores)
    return units + fsum(
        memory.area_mm2 * count * _copies(memory, core) for count, core, memory in parts
    )


def _copies(memory: Memory, core: Core) -> int:
    """How many there are of a memory in a core."""
    return prod(size for dim, size in core.array.dims if dim not in memory.served_dims)


def assumptions(machine: Machine) -> tuple[str, ...]:
    """What the file leaves open and is taken for granted."""
    found = list(assumed_sharing(machine))
    if not machine.dma:
        external = any(memory.role == "external" for memory in machine.memories)
        width = "the external memory's port" if external else "the widest source"
        found.append(f"no DMA engine is declared: one as wide as {width}")
    if any(core.vector is None for core in machine.cores):
        found.append("no vector unit is declared: a default serves what is no multiplication")
    if machine.clock_hz is None:
        found.append("no clock is declared: times are in cycles only")
    return tuple(found)


def machine_view(machine: Machine) -> View:
    """What a person wants to know first, then a line for every memory."""
    facts = [("what", machine.description)] if machine.description else []
    if machine.clock_hz:
        facts.append(("clock", f"{machine.clock_hz / 1e6:g} MHz"))
    facts.append(("multiplications", f"{peak_macs(machine):,} a cycle"))
    if area := area_mm2(machine):
        facts.append(("area", f"{area:.4g} mm², as far as it is given"))
    for core in machine.cores:
        dims = " x ".join(f"{dim} {size}" for dim, size in core.array.dims)
        many = f"{core.count} x " if core.count > 1 else ""
        facts.append((core.name, f"{many}array {dims}, {core.array.mac_pj:g} pJ each"))
        if core.vector:
            text = f"{core.vector.lanes} lanes, {core.vector.op_pj:g} pJ an operation"
            facts.append((f"{core.name} vector unit", text))
    for d in machine.dma:
        speed = f"{d.bits_per_cycle // 8} B a cycle, {d.setup_cycles} cycles to set up"
        facts.append((f"DMA {d.name}", f"{d.ports} port(s), {d.queues} queue(s), {speed}"))
    for link in machine.links:
        speed = f"{link.bits_per_cycle} bit a cycle, {link.pj_per_bit_hop:g} pJ a bit and hop"
        facts.append((f"link {link.name}", f"{link.kind}, {speed}"))
    facts += [
        (f"source {e.name}", _end_text(e.kind, e.operands, e.memory)) for e in machine.sources
    ]
    facts += [(f"sink {e.name}", _end_text(e.kind, e.operands, e.memory)) for e in machine.sinks]
    facts += [(f"{key} in", name) for key, name in asdict(machine.given).items() if name]
    facts += [
        ("sharing", f"{s.operand} of {m.name}: {_shared_by(s)}")
        for m in machine.memories
        for s in m.sharing
    ]
    if machine.shared:
        facts.append(("shared memories", ", ".join(memory.name for memory in machine.shared)))
    facts += [("assumed", text) for text in assumptions(machine)]
    return [heading(machine.name, facts), _memory_table(machine)]


def _shared_by(sharing: Sharing) -> str:
    if sharing.is_union:
        return "units that want the same element get it together"
    return f"units with the same {sharing} get the same element"


def _end_text(kind: str, operands: tuple[str, ...], memory: str) -> str:
    return f"{kind}, {', '.join(operands)} at {memory}"


def _memory_table(machine: Machine) -> Grid:
    grid = table(
        "memory", "?role", ">size", "?>copies", "holds", "?serves", "ports (bit a cycle)",
        "?>read fJ/bit", "?>write fJ/bit",
    )  # fmt: skip
    for core in machine.cores:
        for memory in core.memories:
            grid.add_row(*_memory_row(memory, core))
    for memory in machine.shared:
        grid.add_row(*_memory_row(memory, machine.cores[0]))
    return grid


def _memory_row(memory: Memory, core: Core) -> list[str]:
    reads = max((p.bits_per_cycle for p in memory.ports if p.kind != "write"), default=0)
    writes = max((p.bits_per_cycle for p in memory.ports if p.kind != "read"), default=0)
    counted = Counter(f"{_PORT_LETTERS[p.kind]} {p.bits_per_cycle}" for p in memory.ports)
    ports = ", ".join(f"{n} x {port}" if n > 1 else port for port, n in counted.items())
    return [
        memory.name,
        memory.role,
        format_bits(memory.size_bits),
        str(_copies(memory, core)),
        " ".join(memory.operands),
        " ".join(memory.served_dims) or "one unit",
        ports,
        format_number(memory.read_pj / reads * 1000) if reads else "",
        format_number(memory.write_pj / writes * 1000) if writes else "",
    ]


def _memory_json(memory: Memory) -> dict[str, Any]:
    return {**asdict(memory), "size_bytes": memory.size_bytes}

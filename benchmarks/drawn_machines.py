"""Machines drawn at random: odd arrays, several scratchpads or none, streams, many cores."""

from random import Random
from typing import Any

EVERY = ("I1", "I2", "O")
IN = {"I1": ("fh",), "I2": ("fh",), "O": ("fh", "fl")}
"""By operand what enters a memory: from above, and for results from below."""
OUT = {"I1": ("tl",), "I2": ("tl",), "O": ("tl", "th")}


def drawn_machine(chance: Random) -> dict[str, Any]:
    """A machine file as a mapping, in the format with units."""
    sizes = [chance.randint(1, 9) for _ in range(chance.randint(1, 3))]
    dims = [f"D{i + 1}" for i in range(len(sizes))]
    wide = chance.choice([8, 16, 32, 64, 104, 256])
    memories = _registers(chance, dims) | _scratchpads(chance, dims, wide)
    machine: dict[str, Any] = {
        "tilewright": 1,
        "name": "drawn",
        "core_count": chance.choice([1, 1, 1, 2, 3, 4, 6]),
        "operational_array": {
            "dimensions": dims,
            "sizes": sizes,
            "unit_energy": "0.05 pJ",
            **({"accumulator": "32 bit"} if chance.random() < 0.3 else {}),
        },
        "memories": memories,
    }
    if chance.random() < 0.3:
        machine["vector_unit"] = {"lanes": chance.choice([1, 3, 16]), "energy": "0.1 pJ"}
    is_held = all(any(o in memory["operands"] for memory in memories.values()) for o in EVERY)
    if chance.random() < 0.75 or not is_held:
        memories["dram"] = _dram(chance, dims, wide)
    else:
        machine |= _ends(chance, memories)
    if chance.random() < 0.5 and "dram" in memories:
        machine["dma"] = _engines(chance, memories)
    return machine


def _memory(chance: Random, operands: list[str], dims: list[str], **more: Any) -> dict[str, Any]:
    """A memory with one port for both ways, or one for each."""
    width = more.pop("width")
    enter = [f"{o}, {d}" for o in operands for d in IN[o]]
    leave = [f"{o}, {d}" for o in operands for d in OUT[o]]
    if chance.random() < 0.35:
        ports = [_port("both", "read_write", width, enter + leave)]
    else:
        other = chance.choice([width, width, max(8, width // 2)])
        ports = [_port("in", "write", other, enter), _port("out", "read", width, leave)]
    return {
        "r_cost": f"{chance.choice([10, 50, 200])} fJ/bit",
        "w_cost": f"{chance.choice([12, 60, 240])} fJ/bit",
        "operands": operands,
        "served_dimensions": dims,
        "ports": ports,
        **more,
    }


def _port(name: str, kind: str, width: int, allocation: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "bandwidth_min": "8 bit",
        "bandwidth_max": f"{width} bit",
        "allocation": allocation,
    }


def _registers(chance: Random, dims: list[str]) -> dict[str, Any]:
    """Registers next to the units, for some operands."""
    memories = {}
    for operand in EVERY:
        if chance.random() < 0.45:
            served = [dim for dim in dims if chance.random() < 0.4]
            size = chance.choice([4, 8, 16, 62])
            memories[f"reg_{operand}"] = _memory(
                chance, [operand], served, width=32, size=f"{size} B", role="local"
            )
    return memories


def _scratchpads(chance: Random, dims: list[str], wide: int) -> dict[str, Any]:
    """One for all operands, one for some of them together, or none for some."""
    shares = chance.choice(
        [[EVERY], [EVERY], [EVERY], [("I1", "O"), ("I2",)], [("I1",), ("I2",), ("O",)],
         [("I1", "O")], [("I2",)], [("I1", "I2"), ("O",)], [("O",)], []]
    )  # fmt: skip
    memories = {}
    for number, operands in enumerate(shares):
        size = chance.choice([600, 1024, 2500, 4096, 9000, 16384, 65536])
        more = {"alignment": f"{chance.choice([2, 16, 64])} B"} if chance.random() < 0.3 else {}
        if "I2" in operands and chance.random() < 0.2:
            more["bypass"] = ["I2"]
        memories[f"pad{number}"] = _memory(
            chance, list(operands), dims, width=wide, size=f"{size} B", role="scratchpad", **more
        )
    return memories


def _dram(chance: Random, dims: list[str], wide: int) -> dict[str, Any]:
    width = chance.choice([8, 32, 64, wide])
    return _memory(
        chance, list(EVERY), dims, width=width, size="64 MiB", role="external", shared=True
    )


def _ends(chance: Random, memories: dict[str, Any]) -> dict[str, Any]:
    """A source or a sink for each operand, where it enters the machine."""
    top = {o: name for name, memory in memories.items() for o in memory["operands"]}
    kinds = {"I1": chance.choice(["host", "sensor", "noc"]), "I2": "rom"}
    sources = [
        {"name": f"from_{o}", "kind": kind, "memory": top[o], "operands": [o], "width": "32 bit"}
        for o, kind in kinds.items()
    ]
    sinks = [{"name": "out", "kind": "host", "memory": top["O"], "operands": ["O"]}]
    return {"sources": sources, "sinks": sinks}


def _engines(chance: Random, memories: dict[str, Any]) -> list[dict[str, Any]]:
    pads = [name for name, memory in memories.items() if memory.get("role") == "scratchpad"]
    engine: dict[str, Any] = {
        "name": "dma",
        "width": f"{chance.choice([8, 24, 64, 128])} bit",
        "ports": chance.choice([1, 1, 2, 3]),
        "queues": chance.choice([1, 1, 2]),
        "setup": chance.choice([0, 0, 5, 100]),
    }
    if chance.random() < 0.3:
        joined = [["dram", pad] for pad in pads] + [[pad, "dram"] for pad in pads]
        engine["routes"] = [*joined, ["dram", "dram"]]
    return [engine]

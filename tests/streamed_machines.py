"""Machines drawn at random of which some operand has no scratchpad."""

from typing import Any

from hypothesis import strategies as st
from tests.machine_builder import Data, reading
from tests.small_networks import Draw

from tilewright.machine.load import check_machine
from tilewright.machine.model import Machine

CARRIERS = ("I1", "I2", "O")
DIRECTIONS = {"I1": ("fh", "tl"), "I2": ("fh", "tl"), "O": ("fh", "tl", "fl", "th")}
SOURCES = ("dram", "rom", "host", "host", "sensor", "noc")


def _memory(draw: Draw, size_bytes: int, held: list[str], **more: object) -> Data:
    """A memory with one port for all, or one each for what is read and for what is written."""
    uses = [(operand, direction) for operand in held for direction in DIRECTIONS[operand]]
    widths = st.sampled_from([8, 16, 32, 64, 128])
    sides = [("read_write", uses)]
    if draw(st.booleans()):
        sides = [
            ("read", [use for use in uses if use[1] in ("tl", "th")]),
            ("write", [use for use in uses if use[1] in ("fh", "fl")]),
        ]
    ports = [
        {
            "name": kind,
            "type": kind,
            "bandwidth_max": f"{draw(widths)} bit",
            "allocation": [", ".join(use) for use in listed],
        }
        for kind, listed in sides
    ]
    cost = f"{draw(st.sampled_from([0, 0.1, 2]))} pJ/bit"
    data = {"size": f"{size_bytes} B", "r_cost": cost, "w_cost": cost, "operands": held}
    return data | {"ports": ports, "served_dimensions": ["D1", "D2"]} | more


def _scratchpads(draw: Draw, bare: set[str]) -> dict[str, Data]:
    """One for all operands that have any, or one for each."""
    homes: dict[str, list[str]] = {}
    apart = draw(st.booleans())
    for carrier in CARRIERS:
        if carrier not in bare:
            homes.setdefault(f"pad_{carrier}" if apart else "pad", []).append(carrier)
    sizes = st.sampled_from([300, 1024, 4096, 65536])
    return {
        name: _memory(draw, draw(sizes), held, role="scratchpad") for name, held in homes.items()
    }


def _local(draw: Draw, carrier: str) -> Data:
    """Registers next to the array."""
    served = draw(st.sampled_from([[], ["D1"], ["D1", "D2"]]))
    size = draw(st.sampled_from([4, 16, 64] if carrier == "O" else [2, 2, 8]))
    return _memory(draw, size, [carrier]) | {"served_dimensions": served}


def _ends(draw: Draw, memories: dict[str, Data], inside: list[str]) -> dict[str, Any]:
    """A source or a sink for each operand that no external memory holds."""
    found: dict[str, Any] = {"sources": [], "sinks": []}
    for carrier in inside:
        top = [name for name, data in memories.items() if carrier in data["operands"]][-1]
        end: Data = {"name": f"end_{carrier}", "memory": top, "operands": [carrier]}
        end["kind"] = "noc" if carrier == "O" else draw(st.sampled_from(SOURCES))
        width = draw(st.sampled_from([None, 8, 64]))
        end |= {"width": f"{width} bit", "energy": "0.5 pJ/bit"} if width else {}
        found["sinks" if carrier == "O" else "sources"].append(end)
    return {key: ends for key, ends in found.items() if ends}


@st.composite
def streaming_machines(draw: Draw) -> Machine | None:
    """A machine of which one operand or more has no scratchpad; None where `check` refuses it."""
    bare = draw(st.sets(st.sampled_from(CARRIERS), min_size=1))
    outside = {c: draw(st.sampled_from(["ddr", "ddr", "flash", "end"])) for c in CARRIERS}
    memories: dict[str, Data] = {}
    for carrier in CARRIERS:
        if draw(st.booleans()) or (carrier in bare and outside[carrier] == "end"):
            memories[f"reg_{carrier}"] = _local(draw, carrier)
    memories |= _scratchpads(draw, bare)
    for name in ("flash", "ddr"):
        held = [carrier for carrier in CARRIERS if outside[carrier] == name]
        if held:
            memories[name] = _memory(draw, 2**26, held, role="external", shared=True)
    inside = [carrier for carrier in CARRIERS if outside[carrier] == "end"]
    data: Data = {
        "tilewright": 1,
        "name": "drawn",
        "operational_array": {
            "dimensions": ["D1", "D2"],
            "sizes": draw(st.sampled_from([[8, 4], [8, 1], [2, 3]])),
            "unit_energy": "0.1 pJ",
        },
        "memories": memories,
        "core_count": draw(st.sampled_from([1, 1, 2, 3])),
        **_ends(draw, memories, inside),
    }
    if draw(st.booleans()):
        width = f"{draw(st.sampled_from([8, 32, 64]))} bit"
        engine = {"name": "dma", "width": width, "ports": draw(st.integers(1, 2))}
        data["dma"] = [engine | {"setup": draw(st.sampled_from([0, 20]))}]
    read = reading(data)
    if any(problem.severity == "error" for problem in check_machine(read)):
        return None
    return read.machine


def eight_units(kind: str | None, *, apart: bool = False) -> Machine:
    """Eight units with a register of 2 B for inputs, and 16 KiB for weights and results, or for
    each of both.

    The register fills from a source of a kind, 64 bit wide, and results go to a sink; or from a
    DRAM, to which they go, with ports for 64 bit.
    """
    register = _of(2, ["I1"], 128)
    memories: dict[str, Data] = {"register": register}
    if apart:
        memories["kernels"] = _of(2**14, ["I2"], 128)
    memories["pad"] = _of(2**14, ["O"] if apart else ["I2", "O"], 128)
    filled = "kernels" if apart else "pad"
    weights: Data = {"name": "weights", "kind": "rom", "memory": filled, "operands": ["I2"]}
    data: Data = {
        "tilewright": 1,
        "name": "eight_units",
        "operational_array": {"dimensions": ["D1"], "sizes": [8], "unit_energy": "0.04 pJ"},
        "memories": memories,
        "sources": [weights],
    }
    if kind is None:
        memories["dram"] = _of(2**30, ["I1", "O"], 64)
    else:
        source: Data = {"name": "input", "kind": kind, "memory": "register", "operands": ["I1"]}
        data["sources"].append(source | {"width": "64 bit", "energy": "1 pJ/bit"})
        data["sinks"] = [{"name": "result", "kind": "noc", "memory": "pad", "operands": ["O"]}]
    read = reading(data)
    assert [p for p in check_machine(read) if p.severity == "error"] == []
    assert read.machine is not None
    return read.machine


def _of(size_bytes: int, held: list[str], width: int) -> Data:
    """A memory with a port to read and one to write, at 1 pJ a bit."""
    uses = [(operand, direction) for operand in held for direction in DIRECTIONS[operand]]
    sides = {"read": ("tl", "th"), "write": ("fh", "fl")}
    ports = [
        {
            "name": kind,
            "type": kind,
            "bandwidth_max": f"{width} bit",
            "allocation": [", ".join(use) for use in uses if use[1] in directions],
        }
        for kind, directions in sides.items()
    ]
    data: Data = {"size": f"{size_bytes} B", "r_cost": "1 pJ/bit", "w_cost": "1 pJ/bit"}
    return data | {"operands": held, "ports": ports, "served_dimensions": ["D1"]}

"""Small machines with tight scratchpads, for tests of what is planned on them."""

from dataclasses import dataclass
from typing import Any, Literal

from tests.machine_builder import machine_of, marked, memory, sound_machine

from tilewright.machine.model import Machine

Kind = Literal["one", "split", "streamed", "weights", "none", "ends", "once"]
"""One scratchpad for all; one each for inputs, weights and results; weights straight from outside;
all but weights so; everything so; no external memory, but a source for each input and a sink for
results; the same with a sensor, whose data come once."""

EVERY = ["I1", "I2", "O"]


@dataclass(frozen=True, kw_only=True)
class Small:
    """What a small machine is made of."""

    kind: Kind = "one"
    size_bytes: int = 64 * 1024
    """Of each scratchpad."""
    cores: int = 1
    alignment_bytes: int = 1
    dma: bool = False
    """Whether an engine of two ports, 64 bit wide, with a set-up of 20 cycles is declared."""


def small_machine(small: Small) -> Machine:
    """The array of 8 x 4 units with a weight each, scratchpads, and a DRAM of 32 bit a cycle."""
    data = sound_machine()
    ddr = data["memories"].pop("ddr") | {"shared": True}
    bank = data["memories"].pop("bank")
    held = {
        "one": {"bank": EVERY},
        "split": {"inputs": ["I1"], "weights": ["I2"], "results": ["O"]},
        "streamed": {"bank": ["I1", "O"]},
        "weights": {"bank": ["I2"]},
        "none": {},
        "ends": {"bank": EVERY},
        "once": {"bank": EVERY},
    }[small.kind]
    for name, operands in held.items():
        data["memories"][name] = memory(
            8 * small.size_bytes,
            operands,
            width=bank["ports"][0]["bandwidth_max"],
            read_pj=bank["r_cost"],
        )
    if small.kind not in ("ends", "once"):
        data["memories"]["ddr"] = ddr
    data = marked(data)
    for name in held:
        data["memories"][name] |= {
            "role": "scratchpad",
            "alignment": f"{small.alignment_bytes} B",
        }
    return machine_of(data | _outside(small))


def _outside(small: Small) -> dict[str, Any]:
    data: dict[str, Any] = {"core_count": small.cores}
    if small.dma:
        data["dma"] = [{"name": "dma", "width": "64 bit", "ports": 2, "queues": 1, "setup": 20}]
    if small.kind in ("ends", "once"):
        kind = "host" if small.kind == "ends" else "sensor"
        data["sources"] = [
            {"name": "data", "kind": kind, "memory": "bank", "operands": ["I1"]},
            {"name": "rom", "kind": "rom", "memory": "bank", "operands": ["I2"]},
        ]
        data["sinks"] = [{"name": "out", "kind": "host", "memory": "bank", "operands": ["O"]}]
    return data

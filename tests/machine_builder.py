"""A sound little machine as plain data, for tests to break or vary, and its way through the reader.

Bottom-up: `reg` (1 B a column, weights), `bank` (64 KiB) and `ddr` (256 MiB), all at energies that
rise with size: 1, 100 and 10,000 fJ a bit.
"""

import json
from typing import Any

from tilewright.document import parse_document
from tilewright.machine.load import check_machine
from tilewright.machine.model import Machine, Memory
from tilewright.machine.reader import MachineReading, read_machine

Data = dict[str, Any]

INPUT_USES = ("fh", "tl")
OUTPUT_USES = ("fh", "tl", "fl", "th")
BANK_BITS = 64 * 1024 * 8
DDR_BITS = 256 * 1024 * 1024 * 8


def uses_of(operands: list[str], directions: tuple[str, ...] = OUTPUT_USES) -> list[str]:
    """Everything that the operands may do: inputs come down, results go both ways."""
    allowed = {"I1": INPUT_USES, "I2": INPUT_USES, "O": OUTPUT_USES}
    return [f"{o}, {d}" for o in operands for d in allowed[o] if d in directions]


def memory(size: int, operands: list[str], *, width: int, read_pj: float) -> Data:
    """A memory with one port that does everything, serving both array dims."""
    port = {"name": "both", "type": "read_write", "bandwidth_max": width}
    return {
        "size": size,
        "r_cost": read_pj,
        "w_cost": read_pj,
        "operands": list(operands),
        "ports": [port | {"allocation": uses_of(operands)}],
        "served_dimensions": ["D1", "D2"],
    }


def sound_machine() -> Data:
    """A machine without a problem, fresh at every call."""
    every = ["I1", "I2", "O"]
    return {
        "name": "plover",
        "operational_array": {
            "unit_energy": 0.05,
            "unit_area": 1,
            "dimensions": ["D1", "D2"],
            "sizes": [8, 4],
        },
        "memories": {
            "reg": memory(8, ["I2"], width=8, read_pj=0.008) | {"served_dimensions": ["D1"]},
            "bank": memory(BANK_BITS, every, width=128, read_pj=12.8),
            "ddr": memory(DDR_BITS, every, width=32, read_pj=320.0),
        },
    }


def changed(data: Data, path: str, value: Any) -> Data:
    """The data with the value at a path of keys and positions separated by slashes."""
    *parents, last = path.split("/")
    inner: Any = data
    for step in parents:
        inner = inner[int(step) if isinstance(inner, list) else step]
    inner[int(last) if isinstance(inner, list) else last] = value
    return data


def marked(data: Data) -> Data:
    """The sound machine as a `tilewright: 1` file: the same figures, with their units."""
    array = data["operational_array"]
    array["unit_energy"] = f"{array['unit_energy']} pJ"
    for inner in data["memories"].values():
        inner["size"] = f"{inner['size']} bit"
        inner["r_cost"] = f"{inner['r_cost']} pJ"
        inner["w_cost"] = f"{inner['w_cost']} pJ"
        for port in inner["ports"]:
            port["bandwidth_max"] = f"{port['bandwidth_max']} bit"
    return {"tilewright": 1} | data


def reading(data: Data) -> MachineReading:
    """The data read as a file `machine.yaml`."""
    text = json.dumps(data, indent=1)
    text = text.replace(": NaN", ": .nan").replace(": Infinity", ": .inf")
    return read_machine(parse_document(text, "machine.yaml", last_key_wins=True))


def machine_of(data: Data) -> Machine:
    """The machine of data that has no errors."""
    read = reading(data)
    assert [p for p in read.problems if p.severity == "error"] == []
    assert read.machine is not None
    return read.machine


def memory_of(data: Data, name: str) -> Memory:
    """One memory of the machine, by name."""
    (found,) = [m for m in machine_of(data).memories if m.name == name]
    return found


def messages(data: Data) -> list[str]:
    """What `check` says, without places and hints: `[warning: ]message`."""
    found = check_machine(reading(data))
    return [("warning: " if p.severity == "warning" else "") + p.message for p in found]


def hints(data: Data) -> list[str]:
    """All hint lines that `check` prints."""
    return [line for p in check_machine(reading(data)) for line in p.hint.splitlines()]

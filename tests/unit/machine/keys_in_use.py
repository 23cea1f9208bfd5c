"""For every key of a machine file a change that must not pass unnoticed, and what notices it."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

from tests.machine_builder import Data, changed, marked, memory, sound_machine

from tilewright.document import parse_document
from tilewright.document.file_model import FileModel
from tilewright.machine.files import (
    ArrayFile,
    CoreFile,
    CoreModelFile,
    DmaFile,
    EndFile,
    GivenFile,
    LinkFile,
    MachineFile,
    MemoryFile,
    OldMemoryFile,
    PortFile,
    VectorFile,
)
from tilewright.machine.load import machine_path

Effect = Literal["map", "plan", "refused", "warned", "shown"]
"""Other cycles, energy or memory of a mapping or a plan; an error; a warning at the key, or at what
it is a key of; another line of what `show` prints."""

GONE = object()
"""Instead of a value: the key is removed."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change to a machine, by the path of what changes."""

    model: type[FileModel]
    base: Callable[[], Data]
    path: str
    value: Any
    effect: Effect

    @property
    def key(self) -> str:
        """The key that changes."""
        return self.path.rpartition("/")[2]

    def data(self) -> Data:
        """The machine with the change."""
        data = self.base()
        if self.value is GONE:
            *parents, last = self.path.split("/")
            inner: Any = data
            for step in parents:
                inner = inner[int(step) if isinstance(inner, list) else step]
            del inner[last]
            return data
        return changed(data, self.path, self.value)


def plain() -> Data:
    """The sound machine with a clock, a DMA engine and a vector unit."""
    return marked(sound_machine()) | {
        "clock": "1 MHz",
        "core_count": 1,
        "dma": [{"name": "mover", "width": "32 bit", "ports": 1, "queues": 1, "setup": 0}],
        "vector_unit": {"lanes": 8, "energy": "0.07 pJ"},
    }


def plain_given() -> Data:
    """The same, with inputs in the bank from the start, and outputs that stay there."""
    return plain() | {"given": {"inputs": "bank", "outputs": "bank"}}


def two_cores() -> Data:
    """The same with two cores under one DRAM."""
    data = plain() | {"core_count": 2}
    data["memories"]["ddr"]["shared"] = True
    return data


def linked() -> Data:
    """Two cores on a mesh."""
    mesh = {"name": "noc", "kind": "mesh", "width": "64 bit", "connects": ["core"], "columns": 2}
    return two_cores() | {"links": [mesh]}


def counted() -> Data:
    """The same memories, the upper two with a read and a write port that are counted."""
    data = marked(sound_machine())
    for name, width in (("bank", 128), ("ddr", 32)):
        inner = data["memories"][name]
        del inner["ports"]
        inner |= {"r_bw": f"{width} bit", "w_bw": f"{width} bit"}
        inner |= {"r_port": 1, "w_port": 1, "rw_port": 0}
        flow = {"fh": "w_port_1", "tl": "r_port_1"}
        inner["ports"] = [flow, flow, flow | {"fl": "w_port_1", "th": "r_port_1"}]
    return data


def of_both() -> Data:
    """The same with one port each that reads and writes."""
    data = counted()
    for name in ("bank", "ddr"):
        inner = data["memories"][name]
        inner |= {"r_port": 0, "w_port": 0, "rw_port": 1}
        inner["ports"] = [dict.fromkeys(flow, "rw_port_1") for flow in inner["ports"]]
    return data


def tight() -> Data:
    """The plain machine with a scratchpad that hardly holds anything."""
    data = plain()
    data["memories"]["bank"] |= {"size": "1 KiB", "role": "scratchpad"}
    return data


def narrow() -> Data:
    """The plain machine with a buffer beside the array that feeds few units a cycle."""
    data = sound_machine()
    buffer = memory(4096, ["I1"], width=32, read_pj=1.6)
    first, *rest = data["memories"].items()
    data["memories"] = dict([first, ("buffer", buffer), *rest])
    return marked(data)


def in_cells() -> Data:
    """An analog array that computes inside its memory."""
    data = marked(sound_machine())
    del data["operational_array"]["unit_energy"]
    data["operational_array"] |= {
        "is_imc": True,
        "imc_type": "analog",
        "adc_resolution": 6,
        "input_precision": [8, 8],
        "bit_serial_precision": 2,
    }
    return data


def on_chip() -> Data:
    """A scratchpad with sources and a sink, and nothing above it."""
    data = marked(sound_machine())
    del data["memories"]["ddr"]
    ends = {"memory": "bank", "width": "16 bit", "energy": "1 pJ/bit"}
    return data | {
        "sources": [
            ends | {"name": "camera", "kind": "host", "operands": ["I1"]},
            ends | {"name": "rom", "kind": "rom", "operands": ["I2"]},
        ],
        "sinks": [ends | {"name": "radio", "kind": "host", "operands": ["O"]}],
    }


def of_kinds() -> Data:
    """Two kinds of core under one DRAM, of which the first computes."""
    data = plain()
    ddr, small = (
        data["memories"].pop("ddr"),
        {"small": memory(8192, ["I1", "I2", "O"], width=64, read_pj=6.4)},
    )
    del data["core_count"]
    parts = ("operational_array", "memories", "vector_unit")
    first = {key: data.pop(key) for key in parts} | {"count": 1}
    second = {"operational_array": deepcopy(first["operational_array"])}
    small = marked({"operational_array": {"unit_energy": 1}, "memories": small})["memories"]
    return data | {
        "cores": {"large": first, "little": second | {"memories": small}},
        "memories": {"ddr": ddr},
    }


def ethos_u() -> Data:
    """A machine of the library whose cores have a cycle model."""
    text = machine_path("ethos_u55_128").read_text(encoding="utf-8")
    data: Data = parse_document(text, "machine.yaml").data
    return data


FIRST_SOURCE = {"name": "camera", "kind": "host", "memory": "bank", "operands": ["I1"]}
BUS = {"name": "bus", "kind": "bus", "width": "8 bit"}
LITTLE_MODEL = {"name": "ethos-u", "configuration": "u55-32"}
BANK, REG, PORT = "memories/bank", "memories/reg", "memories/bank/ports/0"
SRAM, NOC = "memories/sram", "links/0"
_TABLE: tuple[tuple[type[FileModel], Callable[[], Data], str, Any, Effect], ...] = (
    (PortFile, plain, f"{PORT}/name", "gate", "shown"),
    (PortFile, plain, f"{PORT}/type", "write", "refused"),
    (PortFile, plain, f"{PORT}/bandwidth_max", "64 bit", "map"),
    (PortFile, plain, f"{PORT}/bandwidth_min", "8 bit", "map"),
    (PortFile, plain, f"{PORT}/allocation", ["I1, tl"], "refused"),
    (MemoryFile, plain, f"{BANK}/size", "640 B", "plan"),
    (MemoryFile, plain, f"{BANK}/r_cost", "20 pJ", "map"),
    (MemoryFile, plain, f"{BANK}/w_cost", "20 pJ", "map"),
    (MemoryFile, plain, f"{BANK}/area", 3.0, "shown"),
    (MemoryFile, plain, f"{BANK}/latency", 5, "warned"),
    (MemoryFile, plain, f"{BANK}/burst", "16 B", "warned"),
    (MemoryFile, plain, f"{BANK}/read_latency", 5, "warned"),
    (MemoryFile, plain, f"{BANK}/write_latency", 5, "warned"),
    (MemoryFile, ethos_u, f"{SRAM}/burst", "512 B", "plan"),
    (MemoryFile, ethos_u, f"{SRAM}/read_latency", 20_000, "plan"),
    (MemoryFile, ethos_u, f"{SRAM}/write_latency", 20_000, "plan"),
    (MemoryFile, plain, f"{BANK}/mem_type", "dram", "warned"),
    (MemoryFile, plain, f"{BANK}/auto_cost_extraction", True, "warned"),
    (MemoryFile, plain, f"{BANK}/operands", ["I1", "I2"], "refused"),
    (MemoryFile, plain, f"{REG}/served_dimensions", [], "map"),
    (MemoryFile, plain, f"{BANK}/force_double_buffering", True, "warned"),
    (MemoryFile, plain, f"{REG}/force_double_buffering", True, "refused"),
    (MemoryFile, plain, f"{BANK}/double_buffering_support", True, "warned"),
    (MemoryFile, plain, f"{BANK}/role", "local", "plan"),
    (MemoryFile, two_cores, f"{BANK}/shared", True, "plan"),
    (MemoryFile, plain, f"{BANK}/alignment", "64 B", "plan"),
    (MemoryFile, plain, f"{REG}/alignment", "64 B", "warned"),
    (MemoryFile, plain, f"{BANK}/banks", 4, "warned"),
    (MemoryFile, plain, f"{BANK}/leakage_pw_per_bit", 5.0, "plan"),
    (MemoryFile, plain, f"{BANK}/leakage_pw_per_bit", 5.0, "map"),
    (MemoryFile, narrow, "memories/buffer/sharing", {"I1": "D1"}, "map"),
    (MemoryFile, tight, f"{BANK}/bypass", ["I2"], "plan"),
    (MemoryFile, plain, f"{BANK}/ports", GONE, "refused"),
    (OldMemoryFile, counted, f"{BANK}/r_bw", "8 bit", "map"),
    (OldMemoryFile, counted, f"{BANK}/w_bw", "8 bit", "map"),
    (OldMemoryFile, counted, f"{BANK}/r_port", 2, "warned"),
    (OldMemoryFile, counted, f"{BANK}/w_port", 0, "refused"),
    (OldMemoryFile, of_both, f"{BANK}/rw_port", 0, "refused"),
    (OldMemoryFile, of_both, f"{BANK}/w_bw", "8 bit", "warned"),
    (OldMemoryFile, of_both, f"{BANK}/min_w_granularity", "8 bit", "warned"),
    (OldMemoryFile, counted, f"{BANK}/min_r_granularity", "8 bit", "map"),
    (OldMemoryFile, counted, f"{BANK}/min_w_granularity", "8 bit", "map"),
    (OldMemoryFile, counted, f"{BANK}/ports", [{"tl": "r_port_1"}], "refused"),
    (ArrayFile, plain, "operational_array/dimensions", ["D1", "D3"], "refused"),
    (ArrayFile, plain, "operational_array/sizes", [4, 4], "map"),
    (ArrayFile, plain, "operational_array/unit_energy", "1 pJ", "map"),
    (ArrayFile, plain, "operational_array/unit_area", 2.0, "shown"),
    (ArrayFile, plain, "operational_array/input_precision", [4, 4], "refused"),
    (ArrayFile, plain, "operational_array/accumulator", "8 bit", "map"),
    (ArrayFile, plain, "operational_array/multiplier_type", "adder_tree", "warned"),
    (ArrayFile, plain, "operational_array/systolic_dimensions", ["D1"], "map"),
    (ArrayFile, plain, "operational_array/is_imc", True, "refused"),
    (ArrayFile, in_cells, "operational_array/imc_type", "digital", "map"),
    (ArrayFile, in_cells, "operational_array/adc_resolution", 8, "map"),
    (ArrayFile, plain, "operational_array/adc_resolution", 8, "warned"),
    (ArrayFile, in_cells, "operational_array/bit_serial_precision", 4, "map"),
    (VectorFile, plain, "vector_unit/lanes", 1, "plan"),
    (VectorFile, plain, "vector_unit/energy", "7 pJ", "map"),
    (CoreModelFile, ethos_u, "core_model/name", "ethos-n", "refused"),
    (CoreModelFile, ethos_u, "core_model/configuration", "u55-32", "plan"),
    (CoreFile, of_kinds, "cores/large/operational_array/sizes", [4, 4], "plan"),
    (CoreFile, of_kinds, "cores/large/operational_array", GONE, "refused"),
    (CoreFile, of_kinds, "cores/large/memories", {}, "map"),
    (CoreFile, of_kinds, "cores/large/vector_unit", {"lanes": 1, "energy": "1 pJ"}, "plan"),
    (
        CoreFile,
        of_kinds,
        "cores/large/core_model",
        {"name": "ethos-u", "configuration": "u55-32"},
        "plan",
    ),
    (CoreFile, of_kinds, "cores/large/count", 2, "plan"),
    (CoreFile, of_kinds, "cores/little/count", 2, "warned"),
    (DmaFile, plain, "dma/0/name", "carrier", "shown"),
    (DmaFile, plain, "dma/0/width", "8 bit", "plan"),
    (DmaFile, plain, "dma/0/ports", 2, "shown"),
    (DmaFile, plain, "dma/0/queues", 3, "warned"),
    (DmaFile, plain, "dma/0/setup", 100, "plan"),
    (DmaFile, plain, "dma/0/routes", [["ddr", "bank"]], "refused"),
    (LinkFile, linked, f"{NOC}/name", "grid", "warned"),
    (LinkFile, linked, f"{NOC}/kind", "ring", "warned"),
    (LinkFile, linked, f"{NOC}/width", "1 bit", "warned"),
    (LinkFile, linked, f"{NOC}/connects", [], "warned"),
    (LinkFile, linked, f"{NOC}/hop_cycles", 1_000_000, "warned"),
    (LinkFile, linked, f"{NOC}/energy", "1 pJ/bit", "warned"),
    (LinkFile, linked, f"{NOC}/rows", 5, "warned"),
    (LinkFile, linked, f"{NOC}/columns", 7, "warned"),
    (LinkFile, linked, f"{NOC}/multicast", True, "warned"),
    (EndFile, on_chip, "sources/0/name", "eye", "shown"),
    (EndFile, on_chip, "sources/0/kind", "sensor", "shown"),
    (EndFile, on_chip, "sinks/0/kind", "rom", "warned"),
    (EndFile, on_chip, "sources/0/memory", "reg", "refused"),
    (EndFile, on_chip, "sources/0/operands", ["I2"], "refused"),
    (EndFile, on_chip, "sources/0/width", "4 bit", "plan"),
    (EndFile, on_chip, "sources/0/energy", "9 pJ/bit", "plan"),
    (MachineFile, plain, "tilewright", 2, "refused"),
    (MachineFile, plain, "name", "heron", "shown"),
    (MachineFile, plain, "description", "A wader.", "shown"),
    (MachineFile, plain, "clock", "2 MHz", "shown"),
    (MachineFile, two_cores, "core_count", 4, "plan"),
    (MachineFile, plain, "operational_array", GONE, "refused"),
    (MachineFile, plain, "memories", GONE, "refused"),
    (MachineFile, plain, "vector_unit", GONE, "plan"),
    (MachineFile, ethos_u, "core_model", GONE, "plan"),
    (MachineFile, of_kinds, "cores", {}, "refused"),
    (MachineFile, plain, "dma", [{"name": "slow", "width": "8 bit"}], "plan"),
    (
        MachineFile,
        two_cores,
        "links",
        [BUS],
        "warned",
    ),
    (MachineFile, plain, "sources", [FIRST_SOURCE], "warned"),
    (MachineFile, on_chip, "sources", [], "refused"),
    (MachineFile, plain, "sinks", [FIRST_SOURCE | {"operands": ["O"]}], "warned"),
    (MachineFile, plain, "given", {}, "warned"),
    (MachineFile, plain, "given", {"inputs": "bank"}, "plan"),
    (MachineFile, two_cores, "given", {"inputs": "bank"}, "refused"),
    (GivenFile, plain_given, "given/inputs", None, "plan"),
    (GivenFile, plain_given, "given/inputs", "ddr", "refused"),
    (GivenFile, plain_given, "given/outputs", None, "plan"),
    (GivenFile, plain_given, "given/outputs", "reg", "refused"),
    (MachineFile, plain, "dataflows", [{"D1": "K, 8"}], "warned"),
)

CHANGES = tuple(
    Change(model=model, base=base, path=path, value=value, effect=effect)
    for model, base, path, value, effect in _TABLE
)

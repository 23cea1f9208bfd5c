"""Machine files as they are written: ZigZag's two dialects and our superset of them.

The superset is marked by `tilewright: 1` at the top; there every size, width, energy and clock
carries its unit (`512 KiB`, `64 bit`, `0.04 pJ`, `975 MHz`). Without the mark bare numbers are bits
and pJ, as in ZigZag. Everything else is the same, and every key of the superset may also be added
to a ZigZag file.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from tilewright.document.file_model import (
    Context,
    Converted,
    FileModel,
    Length,
    OneLine,
    Pattern,
    Range,
    Written,
    keys_of,
    new,
)
from tilewright.machine.model import (
    CoreModelName,
    Direction,
    EndKind,
    EthosUName,
    MemoryRole,
    PortKind,
)
from tilewright.units import parse_bits, parse_energy_pj, parse_frequency_hz

FORMAT_VERSION = 1
MAX_BITS = 2**60
MAX_PJ = 1e15
MAX_HZ = 10**12
OLD_PORT_KEYS = frozenset(
    {"r_bw", "w_bw", "r_port", "w_port", "rw_port", "min_r_granularity", "min_w_granularity"}
)
_DIRECTIONS = frozenset(get_args(Direction))


@dataclass(frozen=True, slots=True)
class Price:
    """An energy, per access of a full port width or per bit."""

    pj: float
    per_bit: bool


def _bits(value: Any, context: Context) -> Any:
    return _quantity(value, context, parse_bits, "'512 KiB' or '24 bit'")


def _pj(value: Any, context: Context) -> Any:
    return _quantity(value, context, parse_energy_pj, "'0.04 pJ'")


def _price(value: Any, context: Context) -> Any:
    per_bit = isinstance(value, str) and value.strip().endswith("/bit")
    wanted = "an energy such as '0.04 pJ' or '180 fJ/bit'"
    if isinstance(value, str):
        pj: Any = parse_energy_pj(value.strip().removesuffix("/bit"), wanted=wanted)
    else:
        pj = _pj(value, context)
    if isinstance(pj, bool) or not isinstance(pj, int | float):
        raise ValueError(f"expected {wanted}")
    if not 0 <= pj <= MAX_PJ:
        raise ValueError(f"must be a number from 0 to {MAX_PJ:g} pJ")
    return Price(float(pj), per_bit=per_bit)


def _hz(value: Any, context: Context) -> Any:
    return _quantity(value, context, parse_frequency_hz, "'975 MHz'")


def _quantity(value: Any, context: Context, parse: Any, example: str) -> Any:
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, int | float) and context.get("units"):
        raise ValueError(f"{value} has no unit -- write it with one, such as {example}")
    return value


def _written(number: str, pattern: str) -> Written:
    text = {"pattern": rf"^\s*[0-9.eE+-]+ ?({pattern})\s*$", "type": "string"}
    return Written({"anyOf": [text, {"minimum": 0, "type": number}]})


_SIZE = _written("integer", "bit|B|KiB|MiB|GiB")
Bits = Annotated[int, Converted(_bits), Range(above=0, most=MAX_BITS), _SIZE]
Energy = Annotated[
    float,
    Converted(_pj),
    Range(least=0, most=MAX_PJ),
    _written("number", "fJ|pJ|nJ"),
]
AccessEnergy = Annotated[Price, Converted(_price), _written("number", "(fJ|pJ|nJ)(/bit)?")]
Clock = Annotated[
    int, Converted(_hz), Range(above=0, most=MAX_HZ), _written("integer", "kHz|MHz|GHz")
]
Count = Annotated[int, Range(least=0, most=4096)]
Positive = Annotated[int, Range(least=1, most=2**20)]
Several = Annotated[int, Range(least=1, most=2**14)]
"""Of what a plan has one each: cores, queues."""
Cycles = Annotated[int, Range(least=0, most=10**9)]
Area = Annotated[float, Range(least=0, finite=True)]
OperandName = Literal["I1", "I2", "O"]
DimName = Annotated[str, Pattern(r"D[0-9]{1,2}", "an array dimension such as D1")]
Name = Annotated[str, Length(1, 200), OneLine()]


class PortFile(FileModel):
    """A port in ZigZag's dialect from 3.8.2 on, and in ours."""

    name: Name
    type: PortKind
    bandwidth_max: Bits
    bandwidth_min: Bits | None = None
    allocation: list[str] = new(list)


class _MemoryFile(FileModel):
    size: Bits
    r_cost: AccessEnergy | None = None
    w_cost: AccessEnergy | None = None
    area: Area | None = None
    latency: Cycles | None = None
    burst: Bits | None = None
    read_latency: Cycles = 0
    write_latency: Cycles = 0
    mem_type: Literal["sram", "dram", "rf"] = "sram"
    auto_cost_extraction: bool = False
    operands: Annotated[list[OperandName], Length(1)]
    served_dimensions: list[DimName]
    force_double_buffering: bool = False
    double_buffering_support: bool = False
    role: MemoryRole | None = None
    shared: bool = False
    alignment: Bits | None = None
    banks: Positive = 1
    leakage_pw_per_bit: Area = 0.0
    sharing: dict[str, str] = new(dict)
    bypass: list[OperandName] = new(list)


class MemoryFile(_MemoryFile):
    """A memory whose ports each name what they serve."""

    ports: list[PortFile] | None = None


class OldMemoryFile(_MemoryFile):
    """A memory in ZigZag's dialect up to 3.8.1: counted ports, and per operand what goes where."""

    r_bw: Bits
    w_bw: Bits
    r_port: Count
    w_port: Count
    rw_port: Count | None = None
    min_r_granularity: Bits | None = None
    min_w_granularity: Bits | None = None
    ports: list[dict[str, str]] | None = None


def memory_model(data: Any) -> type[MemoryFile] | type[OldMemoryFile]:
    """The dialect of a memory: that of its first port, or where it lists none, of its counts."""
    data = data if isinstance(data, dict) else {}
    entries = data.get("ports")
    first = entries[0] if isinstance(entries, list) and entries else None
    keys = first.keys() if isinstance(first, dict) else frozenset()
    if keys & keys_of(PortFile).keys():
        return MemoryFile
    return OldMemoryFile if OLD_PORT_KEYS & data.keys() or keys & _DIRECTIONS else MemoryFile


class ArrayFile(FileModel):
    """The `operational_array`."""

    dimensions: Annotated[list[DimName], Length(1)]
    sizes: list[Annotated[int, Range(least=1, most=2**16)]]
    unit_energy: Energy | None = None
    unit_area: Area | None = None
    input_precision: Annotated[list[Positive], Length(2, 2)] | None = None
    accumulator: Bits | None = None
    multiplier_type: str | None = None
    systolic_dimensions: list[DimName] = new(list)
    is_imc: bool = False
    imc_type: Literal["analog", "digital"] | None = None
    adc_resolution: Annotated[float, Range(least=0, most=64)] = 0
    bit_serial_precision: Annotated[float, Range(above=0, most=64)] | None = None


class VectorFile(FileModel):
    """A core's vector unit."""

    lanes: Positive
    energy: Energy


class CoreModelFile(FileModel):
    """A cycle model made for one family of cores."""

    name: CoreModelName
    configuration: EthosUName


class CoreFile(FileModel):
    """One kind of core, where a machine has several."""

    operational_array: Any
    memories: dict[str, Any] = new(dict)
    vector_unit: VectorFile | None = None
    core_model: CoreModelFile | None = None
    count: Several = 1


class DmaFile(FileModel):
    """A DMA engine."""

    name: Name
    width: Bits
    ports: Positive = 1
    queues: Several = 1
    setup: Cycles = 0
    routes: list[Annotated[list[str], Length(2, 2)]] = new(list)


class LinkFile(FileModel):
    """A bus, ring or mesh."""

    name: Name
    kind: Literal["bus", "ring", "mesh"]
    width: Bits
    connects: list[str] = new(list)
    hop_cycles: Annotated[int, Range(least=0, most=10**6)] = 1
    energy: AccessEnergy | None = None
    rows: Positive = 1
    columns: Positive = 1
    multicast: bool = False


class EndFile(FileModel):
    """A source or a sink."""

    name: Name
    kind: EndKind
    memory: str
    operands: Annotated[list[OperandName], Length(1)]
    width: Bits | None = None
    energy: AccessEnergy | None = None


class GivenFile(FileModel):
    """Scratchpads in which a network's inputs lie already, and in which its outputs stay."""

    inputs: Name | None = None
    outputs: Name | None = None


class MachineFile(FileModel):
    """A whole machine. `memories` and `operational_array` are validated one by one afterwards."""

    tilewright: Literal[1] | None = None
    name: Name
    description: str = ""
    clock: Clock | None = None
    core_count: Several = 1
    operational_array: Any = None
    memories: dict[str, Any] = new(dict)
    vector_unit: VectorFile | None = None
    core_model: CoreModelFile | None = None
    cores: dict[str, CoreFile] = new(dict)
    dma: list[DmaFile] = new(list)
    links: list[LinkFile] = new(list)
    sources: list[EndFile] = new(list)
    sinks: list[EndFile] = new(list)
    given: GivenFile | None = None
    dataflows: Any = None

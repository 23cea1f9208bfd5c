"""Machine files as they are written: ZigZag's two dialects and our superset of them.

The superset is marked by `tilewright: 1` at the top; there every size, width, energy and clock
carries its unit (`512 KiB`, `64 bit`, `0.04 pJ`, `975 MHz`). Without the mark bare numbers are bits
and pJ, as in ZigZag. Everything else is the same, and every key of the superset may also be added
to a ZigZag file.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
)

from tilewright.machine.model import Direction, EndKind, MemoryRole, PortKind
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


def _bits(value: Any, info: ValidationInfo) -> Any:
    return _quantity(value, info, parse_bits, "'512 KiB' or '24 bit'")


def _pj(value: Any, info: ValidationInfo) -> Any:
    return _quantity(value, info, parse_energy_pj, "'0.04 pJ'")


def _price(value: Any, info: ValidationInfo) -> Any:
    per_bit = isinstance(value, str) and value.strip().endswith("/bit")
    wanted = "an energy such as '0.04 pJ' or '180 fJ/bit'"
    if isinstance(value, str):
        pj: Any = parse_energy_pj(value.strip().removesuffix("/bit"), wanted=wanted)
    else:
        pj = _pj(value, info)
    if isinstance(pj, bool) or not isinstance(pj, int | float):
        raise ValueError(f"expected {wanted}")
    if not 0 <= pj <= MAX_PJ:
        raise ValueError(f"must be a number from 0 to {MAX_PJ:g} pJ")
    return Price(float(pj), per_bit=per_bit)


def _hz(value: Any, info: ValidationInfo) -> Any:
    return _quantity(value, info, parse_frequency_hz, "'975 MHz'")


def _quantity(value: Any, info: ValidationInfo, parse: Any, example: str) -> Any:
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, int | float) and info.context and info.context.get("units"):
        raise ValueError(f"{value} has no unit -- write it with one, such as {example}")
    return value


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line of plain text")
    return text


def _written(number: str, pattern: str) -> WithJsonSchema:
    text = {"type": "string", "pattern": rf"^\s*[0-9.eE+-]+ ?({pattern})\s*$"}
    return WithJsonSchema({"anyOf": [text, {"type": number, "minimum": 0}]})


_SIZE = _written("integer", "bit|B|KiB|MiB|GiB")
Bits = Annotated[int, BeforeValidator(_bits), Field(gt=0, le=MAX_BITS), _SIZE]
Energy = Annotated[
    float,
    BeforeValidator(_pj),
    Field(ge=0, le=MAX_PJ, allow_inf_nan=False),
    _written("number", "fJ|pJ|nJ"),
]
AccessEnergy = Annotated[Price, BeforeValidator(_price), _written("number", "(fJ|pJ|nJ)(/bit)?")]
Clock = Annotated[
    int, BeforeValidator(_hz), Field(gt=0, le=MAX_HZ), _written("integer", "kHz|MHz|GHz")
]
Count = Annotated[int, Field(ge=0, le=4096)]
Positive = Annotated[int, Field(ge=1, le=2**20)]
Area = Annotated[float, Field(ge=0, allow_inf_nan=False)]
OperandName = Literal["I1", "I2", "O"]
DimName = Annotated[str, Field(pattern=r"^D[0-9]{1,2}$")]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_one_line)]


class _File(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True
    )


class PortFile(_File):
    """A port in ZigZag's dialect from 3.8.2 on, and in ours."""

    name: Name
    type: PortKind
    bandwidth_max: Bits
    bandwidth_min: Bits | None = None
    allocation: list[str] = Field(default_factory=list)


class _MemoryFile(_File):
    size: Bits
    r_cost: AccessEnergy | None = None
    w_cost: AccessEnergy | None = None
    area: Area | None = None
    latency: Annotated[int, Field(ge=0, le=10**9)] | None = None
    mem_type: Literal["sram", "dram", "rf"] = "sram"
    auto_cost_extraction: bool = False
    operands: Annotated[list[OperandName], Field(min_length=1)]
    served_dimensions: list[DimName]
    force_double_buffering: bool = False
    double_buffering_support: bool = False
    role: MemoryRole | None = None
    shared: bool = False
    alignment: Bits | None = None
    banks: Positive = 1
    leakage_pw_per_bit: Area = 0.0
    sharing: dict[str, str] = Field(default_factory=dict)


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
    if keys & PortFile.model_fields.keys():
        return MemoryFile
    return OldMemoryFile if OLD_PORT_KEYS & data.keys() or keys & _DIRECTIONS else MemoryFile


class ArrayFile(_File):
    """The `operational_array`."""

    dimensions: Annotated[list[DimName], Field(min_length=1)]
    sizes: list[Annotated[int, Field(ge=1, le=2**16)]]
    unit_energy: Energy | None = None
    unit_area: Area | None = None
    input_precision: Annotated[list[Positive], Field(min_length=2, max_length=2)] | None = None
    accumulator: Bits | None = None
    multiplier_type: str | None = None
    systolic_dimensions: list[DimName] = Field(default_factory=list)
    is_imc: bool = False
    imc_type: Literal["analog", "digital"] | None = None
    adc_resolution: Annotated[float, Field(ge=0, le=64)] = 0
    bit_serial_precision: Annotated[float, Field(gt=0, le=64)] | None = None


class VectorFile(_File):
    """A core's vector unit."""

    lanes: Positive
    energy: Energy


class CoreFile(_File):
    """One kind of core, where a machine has several."""

    operational_array: Any
    memories: dict[str, Any] = Field(default_factory=dict)
    vector_unit: VectorFile | None = None
    count: Positive = 1


class DmaFile(_File):
    """A DMA engine."""

    name: Name
    width: Bits
    ports: Positive = 1
    queues: Positive = 1
    setup: Annotated[int, Field(ge=0, le=10**9)] = 0
    routes: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(
        default_factory=list
    )


class LinkFile(_File):
    """A bus, ring or mesh."""

    name: Name
    kind: Literal["bus", "ring", "mesh"]
    width: Bits
    connects: list[str] = Field(default_factory=list)
    hop_cycles: Annotated[int, Field(ge=0, le=10**6)] = 1
    energy: AccessEnergy | None = None
    rows: Positive = 1
    columns: Positive = 1
    multicast: bool = False


class EndFile(_File):
    """A source or a sink."""

    name: Name
    kind: EndKind
    memory: str
    operands: Annotated[list[OperandName], Field(min_length=1)]
    width: Bits | None = None
    energy: AccessEnergy | None = None


class MachineFile(_File):
    """A whole machine. `memories` and `operational_array` are validated one by one afterwards."""

    tilewright: Literal[1] | None = None
    name: Name
    description: str = ""
    clock: Clock | None = None
    core_count: Positive = 1
    operational_array: Any = None
    memories: dict[str, Any] = Field(default_factory=dict)
    vector_unit: VectorFile | None = None
    cores: dict[str, CoreFile] = Field(default_factory=dict)
    dma: list[DmaFile] = Field(default_factory=list)
    links: list[LinkFile] = Field(default_factory=list)
    sources: list[EndFile] = Field(default_factory=list)
    sinks: list[EndFile] = Field(default_factory=list)
    dataflows: Any = None

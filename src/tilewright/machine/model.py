"""What a machine is: cores with their memory levels, shared memories, engines, links, ends.

Memories are listed bottom-up, the one next to the array first. A memory serves operands by their
machine letters: `I1` and `I2` for the two inputs of the array, `O` for its result.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from math import prod
from typing import Literal

Operand = str
Direction = Literal["fh", "tl", "fl", "th"]
"""Written from the higher level, read to the lower, written from the lower, read to the higher."""

PortKind = Literal["read", "write", "read_write"]
SCRATCHPAD_BITS = 8 * 2**10
EXTERNAL_BITS = 8 * 16 * 2**20
"""Where a file does not say: 1 KiB or more over all array dims make a scratchpad, and 16 MiB or
more at the top make an external memory."""

MemoryRole = Literal["local", "scratchpad", "external"]
EndKind = Literal["dram", "sensor", "noc", "rom", "host"]
CoreModelName = Literal["ethos-u"]
EthosUName = Literal["u55-32", "u55-64", "u55-128", "u55-256", "u65-256", "u65-512"]

INPUT_OPERANDS: tuple[Operand, ...] = ("I1", "I2")
WEIGHTS: Operand = INPUT_OPERANDS[1]
OUTPUT_OPERAND: Operand = "O"
UNION = "union"
"""What a machine file calls a way down that brings an element to all units that want it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One port: what it may do in a cycle, and for which operand and direction."""

    name: str
    kind: PortKind
    bits_per_cycle: int
    granularity_bits: int
    uses: tuple[tuple[Operand, Direction], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Units that get the same element of an operand: all with the same Σ coefficient × position.

    `terms` ((D1, 1), (D2, 1)) is sharing along the diagonals of the array.
    """

    operand: Operand
    terms: tuple[tuple[str, int], ...] = ()
    is_union: bool = False
    """Whatever units want the same element get it together, wherever they stand; no `terms`."""

    def __str__(self) -> str:
        sum_of = [dim if factor == 1 else f"{factor}*{dim}" for dim, factor in self.terms]
        return UNION if self.is_union else " + ".join(sum_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory level; replicated over the array dims that it does not serve."""

    name: str
    size_bits: int
    operands: tuple[Operand, ...]
    ports: tuple[Port, ...]
    served_dims: tuple[str, ...]
    read_pj: float
    """Energy of reading one full port width; `write_pj` likewise."""
    write_pj: float
    role: MemoryRole
    latency_cycles: int = 1
    burst_bytes: int = 1
    """What is moved at once; this and the next two matter to core models that know of them."""
    read_latency_cycles: int = 0
    write_latency_cycles: int = 0
    area_mm2: float = 0.0
    leakage_pw_per_bit: float = 0.0
    alignment_bytes: int = 1
    banks: int = 1
    forces_double_buffering: bool = False
    sharing: tuple[Sharing, ...] = ()
    bypass: tuple[Operand, ...] = ()
    """What the array may also read past it, straight from the external memory above."""

    @property
    def size_bytes(self) -> int:
        """Whole bytes that fit."""
        return self.size_bits // 8

    def port(self, operand: Operand, direction: Direction) -> Port | None:
        """The port that serves an operand in a direction, if there is one."""
        for port in self.ports:
            if (operand, direction) in port.uses:
                return port
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class InMemoryCompute:
    """What an array that computes inside its memory cells has in addition."""

    kind: Literal["analog", "digital"]
    bit_serial_bits: int
    adc_bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """The processing elements of a core."""

    dims: tuple[tuple[str, int], ...]
    mac_pj: float
    area_mm2_per_unit: float = 0.0
    input_bits: tuple[int, int] | None = None
    """Precision of `I1` and `I2` that the multipliers take; None where the file does not say."""
    accumulator_bits: int | None = None
    """Width of a partial sum; None where the file does not say."""
    systolic_dims: tuple[str, ...] = ()
    in_memory: InMemoryCompute | None = None

    @property
    def units(self) -> int:
        """Multipliers in all."""
        return prod(size for _, size in self.dims)

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes by dim."""
        return dict(self.dims)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorUnit:
    """Does what is no loop nest of multiplications: softmax, normalisation, look-ups."""

    lanes: int
    op_pj: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreModel:
    """A cycle model made for one family of cores, and the member of the family."""

    name: CoreModelName
    configuration: EthosUName


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A PE array with its own memory levels; `count` of them, all alike."""

    name: str
    array: Array
    memories: tuple[Memory, ...]
    vector: VectorUnit | None = None
    count: int = 1
    model: CoreModel | None = None
    """None: the cycles of a tile are those of its mapping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DmaEngine:
    """Moves buffers. `routes` are the (from, to) memories it may move between; empty: any pair."""

    name: str
    ports: int
    queues: int
    bits_per_cycle: int
    setup_cycles: int
    routes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A way between cores or memories: a bus, a ring, or a mesh with hops."""

    name: str
    kind: Literal["bus", "ring", "mesh"]
    connects: tuple[str, ...]
    bits_per_cycle: int
    hop_cycles: int
    pj_per_bit_hop: float
    rows: int = 1
    columns: int = 1
    multicast: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Where data comes from (a source) or goes to (a sink) outside the memories."""

    name: str
    kind: EndKind
    memory: str
    operands: tuple[Operand, ...]
    bits_per_cycle: int | None = None
    """None: as wide as the memory's port."""
    pj_per_bit: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Scratchpads in which a network's inputs lie from the start, and in which its outputs stay to
    the end; None: they come from outside, and go there."""

    inputs: str | None = None
    outputs: str | None = None


NOTHING_GIVEN = Given()


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Everything that a plan may use. `shared` memories stand above those of every core."""

    name: str
    cores: tuple[Core, ...]
    shared: tuple[Memory, ...] = ()
    dma: tuple[DmaEngine, ...] = ()
    links: tuple[Link, ...] = ()
    sources: tuple[End, ...] = ()
    sinks: tuple[End, ...] = ()
    given: Given = NOTHING_GIVEN
    unions: tuple[Operand, ...] = ()
    """Operands whose sharing is a `union` because a ZigZag file says nothing else of them."""
    clock_hz: int | None = None
    description: str = ""
    source: str = ""
    """The file or library entry it was read from."""
    unread: tuple[tuple[tuple[str | int, ...], str], ...] = ()
    """Keys of the file that say nothing, each with the reason; a memory's begin with `memories`."""

    @cached_property
    def memories(self) -> tuple[Memory, ...]:
        """Every memory, cores' first, bottom-up."""
        return tuple(m for core in self.cores for m in core.memories) + self.shared

    def levels(self, core: Core) -> tuple[Memory, ...]:
        """All memory levels that a core sees, bottom-up."""
        return core.memories + self.shared

    def chain(self, core: Core, operand: Operand) -> tuple[Memory, ...]:
        """The levels that hold an operand on its way to the array, bottom-up."""
        return tuple(m for m in self.levels(core) if operand in m.operands)

    def _repr_html_(self) -> str:
        text: str = import_module("tilewright.report.notebook").notebook_html(self)
        return text


def inversions(memories: Sequence[Memory]) -> Iterator[tuple[Memory, Memory, Operand]]:
    """Pairs of neighbours on an operand's way of which the lower is the larger.

    What is external stands above all else, however small: a flash may be smaller than an SRAM.
    """
    for operand in (*INPUT_OPERANDS, OUTPUT_OPERAND):
        chain = [memory for memory in memories if operand in memory.operands]
        for lower, upper in pairwise(chain):
            if lower.size_bits > upper.size_bits and upper.role != "external":
                yield lower, upper, operand


def bottom_up(memories: Sequence[Memory]) -> tuple[Memory, ...]:
    """The memories as listed, or by size, external ones last, if some operand's are top-down."""
    if next(inversions(memories), None) is not None:
        return tuple(sorted(memories, key=lambda m: (m.role == "external", m.size_bits)))
    return tuple(memories)

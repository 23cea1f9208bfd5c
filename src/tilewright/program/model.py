"""A program: tasks on engines, buffers in memories, and who waits for whom; no times, no addresses.

Tasks stand in *program order*: the compute order, with every copy directly before the first task
that needs it. What a scheduler may add (evicting a buffer, fetching it again) it can price with
`routes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple

from tilewright.mapping.search import Mapped
from tilewright.records import quickly_made

Box = tuple[tuple[int, int], ...]
"""Half-open ranges, one per axis of a tensor."""

TaskKind = Literal["compute", "load", "store", "move"]
"""Computing a tile; moving into a scratchpad from outside, out of it, or between scratchpads."""

SpaceKind = Literal["scratchpad", "external", "source", "sink"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """One memory in which buffers lie: `cmx[1]` is the memory `cmx` of core 1.

    A source and a sink are where data comes from and goes to outside all memories; they have room
    for everything, and nothing is ever written to a source.
    """

    name: str
    memory: str
    kind: SpaceKind
    size_bytes: int
    alignment_bytes: int = 1
    core: int | None = None
    reserved: tuple[tuple[int, int], ...] = ()
    """Address ranges that no buffer may touch."""
    rereadable: bool = True
    """Whether a source can be read again; a sensor cannot."""
    leakage_pj_per_cycle: float = 0.0
    """What is lost in every cycle, whether anything lies there or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Something that runs one task at a time, `count` of them alike (the ports of a DMA engine)."""

    name: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How bytes get from one space to another: over which engine, how fast, at what price.

    A transfer holds its engine from start to end, and one lane of each of `ports` while its bytes
    flow, that is, after `setup_cycles`.
    """

    source: str
    target: str
    engine: str
    setup_cycles: int
    bytes_per_cycle: Fraction
    ports: tuple[str, ...] = ()
    """Engines of `Program.engines` too: a port has as many lanes as transfers it can feed."""
    read_pj_per_byte: float = 0.0
    write_pj_per_byte: float = 0.0

    def cycles(self, size_bytes: int) -> int:
        """Cycles from start to end of a transfer."""
        width = self.bytes_per_cycle
        return self.setup_cycles + -(-size_bytes * width.denominator // width.numerator)


@quickly_made
@dataclass(frozen=True, slots=True)
class View:
    """Where a buffer lies inside another: at `origin`, in that buffer's tensor's coordinates.

    Without an origin it is the same bytes under another shape.
    """

    buffer: int
    origin: tuple[int, ...] | None = None


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A box of a tensor in one space, dense and row-major unless it is a view of another buffer.

    A view takes no bytes of its own: it shares those of its root (which is no view itself), as for
    an op in place, a slice, a part of a concatenation, a reshape.
    """

    name: str
    tensor: str
    box: Box
    space: str
    size_bytes: int
    view: View | None = None


@quickly_made
class Access(NamedTuple):
    """A box, in the coordinates of the buffer's tensor, that a task reads or writes there."""

    buffer: int
    box: Box


@quickly_made
@dataclass(frozen=True, slots=True)
class Charge:
    """What a task does at one memory: bytes read and written there, and their energy.

    The memory `array` stands for the multipliers, `vector` for the vector unit.
    """

    memory: str
    read_bytes: int
    write_bytes: int
    energy_pj: float


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A unit of work on one engine.

    `tile` gives, for a compute task, the ranges of its op's loops; the ops in `fused` are applied
    to its result before it is written. `after` are earlier tasks (indices) that must have ended.
    `ports` are held from `setup_cycles` after the start on, one lane for every time one is named.
    """

    name: str
    kind: TaskKind
    engine: str
    cycles: int
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    after: tuple[int, ...] = ()
    op: str = ""
    fused: tuple[str, ...] = ()
    tile: tuple[tuple[str, int, int], ...] = ()
    mapping: int | None = None
    """Index into `Program.mappings`."""
    setup_cycles: int = 0
    ports: tuple[str, ...] = ()
    charges: tuple[Charge, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Program:
    """Everything that has to be done, and where it may be done.

    `results` are buffers that must still hold their data at the end, `given` those that hold it
    from the start (constants and inputs in an external memory or a source).
    """

    name: str
    spaces: tuple[Space, ...]
    engines: tuple[Engine, ...]
    routes: tuple[Route, ...]
    buffers: tuple[Buffer, ...]
    tasks: tuple[Task, ...]
    given: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    mappings: tuple[Mapped, ...] = ()
    leakage: tuple[tuple[str, float], ...] = ()
    """pJ that memories which are no spaces lose in every cycle."""

    def leakage_pj(self, cycles: int) -> dict[str, float]:
        """What memories lose in some time, by memory; those that lose nothing are not there."""
        found: dict[str, float] = {}
        spaces = [(space.memory, space.leakage_pj_per_cycle) for space in self.spaces]
        for memory, rate in (*self.leakage, *spaces):
            if rate:
                found[memory] = found.get(memory, 0.0) + rate * cycles
        return found

    @cached_property
    def space(self) -> Mapping[str, Space]:
        """Spaces by name."""
        return {space.name: space for space in self.spaces}

    @cached_property
    def route(self) -> Mapping[tuple[str, str], Route]:
        """Routes by (source, target)."""
        return {(route.source, route.target): route for route in self.routes}

    def root(self, buffer: int) -> int:
        """The buffer whose bytes a buffer uses: itself, or what it is a view of."""
        view = self.buffers[buffer].view
        return buffer if view is None else view.buffer


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """When and on which of an engine's instances a task runs: [start_cycle, end_cycle)."""

    start_cycle: int
    end_cycle: int
    instance: int = 0


@dataclass(frozen=True, kw_only=True)
class Timetable:
    """A program with times and addresses: what a scheduler returns.

    `program` is the scheduled program: the given one and, behind its tasks and buffers, whatever
    was added (evictions, repeated fetches); tasks may then use a later copy of a buffer. Every
    buffer that is not a view has one address from the start of its first writer to the end of its
    last user; sources and sinks have none (0).
    """

    program: Program
    slots: tuple[Slot, ...]
    addresses: tuple[int, ...]
    """By buffer; a view has the address of its first byte's root."""
    edges: tuple[tuple[int, int], ...] = ()
    """Control edges: the second task uses addresses that the first one must have left."""

    @cached_property
    def cycles(self) -> int:
        """End of the last task."""
        return max((slot.end_cycle for slot in self.slots), default=0)

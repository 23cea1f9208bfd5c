"""Where a machine can hold buffers, what moves them, and where each operand of an op has to lie."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from math import fsum
from typing import Literal

from tilewright.errors import InputError, Problem
from tilewright.machine.ignored import LINKED_CORES, ignored_lines
from tilewright.machine.leakage import leakage_pj_per_cycle, leaks_without_address
from tilewright.machine.model import (
    INPUT_OPERANDS,
    OUTPUT_OPERAND,
    WEIGHTS,
    Core,
    Direction,
    DmaEngine,
    End,
    Machine,
    Memory,
    Port,
)
from tilewright.machine.sharing import assumed_sharing
from tilewright.program.model import Engine, Route, Space
from tilewright.program.transfer_ports import (
    READ,
    WRITE,
    outer_port,
    transfer_port,
    widest_port,
)

ONCE = ("sensor", "noc")
"""Kinds of source that hand out every value once."""

WITHOUT_END = 2**62
"""Bits of what always has room, and always something to bring."""

IDLE_PARTS = 4
"""If one of so many parts of a port's width would be idle, one transfer more shares it."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """Spaces, engines and routes of a machine, and what serves where the file names nothing."""

    machine: Machine
    core: Core
    """The kind of core that computes: the machine's first."""
    spaces: tuple[Space, ...]
    engines: tuple[Engine, ...]
    routes: Mapping[tuple[str, str], Route]
    assumptions: tuple[str, ...]
    sides: Mapping[str, tuple[Engine, Engine]] = field(default_factory=dict)
    """By external memory the ports through which it is read and written."""
    dma: tuple[DmaEngine, ...] = ()
    """What moves between memories, declared or assumed."""
    leakage: tuple[tuple[str, float], ...] = ()
    """pJ that memories which are no spaces lose in every cycle."""

    @cached_property
    def leakage_pj_per_cycle(self) -> float:
        """What all memories lose in a cycle."""
        return fsum(
            [*(space.leakage_pj_per_cycle for space in self.spaces), *(r for _, r in self.leakage)]
        )

    @property
    def cores(self) -> int:
        """Cores that share the work."""
        return self.core.count

    @cached_property
    def setup_cycles(self) -> int:
        """The longest time that it takes to set up a transfer."""
        return max((route.setup_cycles for route in self.routes.values()), default=0)

    @cached_property
    def alignment_bytes(self) -> int:
        """What addresses in any scratchpad may be rounded up to."""
        spaces = [space for space in self.spaces if space.kind == "scratchpad"]
        return max((space.alignment_bytes for space in spaces), default=1)

    def named(self, memory: str, core: int) -> Space:
        """The space that a memory is for a core."""
        return self._named[memory, core]

    @cached_property
    def _named(self) -> Mapping[tuple[str, int], Space]:
        return {
            (space.memory, core): space
            for space in self.spaces
            for core in (range(self.core.count) if space.core is None else (space.core,))
        }

    @cached_property
    def by_name(self) -> Mapping[str, Space]:
        """Spaces by their names."""
        return {space.name: space for space in self.spaces}

    @cached_property
    def memory_of(self) -> Mapping[str, str]:
        """The memory of each space, by their names."""
        return {space.name: space.memory for space in self.spaces}

    def held(self, space: str, *, reads: bool) -> tuple[str, ...]:
        """What a task holds that reads or writes a space which is no scratchpad: all lanes of a
        memory's port, as it takes its whole width, or a source or a sink itself."""
        if space not in self.sides:
            return (space,)
        port = self.sides[space][0 if reads else 1]
        return (port.name,) * port.count

    @cached_property
    def levels(self) -> Mapping[str, Memory]:
        """Every memory by its name, and sources and sinks, which are memories without an end."""
        ends = (*self.machine.sources, *self.machine.sinks)
        found = {end.name: _as_memory(self.machine, end) for end in ends}
        return found | {memory.name: memory for memory in self.machine.memories}

    def home(self, carrier: str) -> Memory | None:
        """The scratchpad in which an operand of the array lies; None: it streams from above."""
        return self._homes[carrier]

    @cached_property
    def _homes(self) -> Mapping[str, Memory | None]:
        found: dict[str, Memory | None] = {}
        for carrier in (*INPUT_OPERANDS, OUTPUT_OPERAND):
            chain = self.machine.chain(self.core, carrier)
            found[carrier] = next((m for m in reversed(chain) if m.role == "scratchpad"), None)
        return found

    @cached_property
    def weights_may_stream(self) -> bool:
        """Whether the array may read weights past the scratchpad in which they lie otherwise."""
        home, origin = self.home(WEIGHTS), self.origin(WEIGHTS)
        if home is None or WEIGHTS not in home.bypass or origin is None:
            return False
        above = [m for m in self._external(WEIGHTS) if m.name == origin.memory]
        return any(memory.port(WEIGHTS, "tl") is not None for memory in above)

    def origin(self, carrier: str) -> Space | None:
        """Where tensors that the array reads as `carrier` come from at first."""
        return self._origins[carrier]

    def destination(self) -> Space | None:
        """Where results go in the end."""
        return self._destination

    @cached_property
    def _destination(self) -> Space | None:
        found = [m for m in self._external(OUTPUT_OPERAND) if widest_port(m, WRITE) is not None]
        if found:
            return next(space for space in self.spaces if space.memory == found[-1].name)
        return next((space for space in self.spaces if space.kind == "sink"), None)

    def overflow(self) -> Space | None:
        """Where activations can wait that find no room: an external memory that can be written."""
        space = self.destination()
        return space if space is not None and space.kind == "external" else None

    @cached_property
    def _origins(self) -> Mapping[str, Space | None]:
        carriers = (*INPUT_OPERANDS, OUTPUT_OPERAND)
        return {carrier: self._outside(carrier, "external", "source") for carrier in carriers}

    def _external(self, carrier: str) -> list[Memory]:
        return [m for m in self.machine.chain(self.core, carrier) if m.role == "external"]

    def _outside(self, carrier: str, *kinds: str) -> Space | None:
        found = [m.name for m in self._external(carrier) if widest_port(m, READ) is not None]
        ends = [end.name for end in self.machine.sources if carrier in end.operands]
        names = [*reversed(found), *ends]
        spaces = {space.memory: space for space in self.spaces if space.kind in kinds}
        return next((spaces[name] for name in names if name in spaces), None)


def places_of(machine: Machine) -> Places:
    """The spaces, engines and routes of a machine."""
    core = machine.cores[0]
    spaces = (*_spaces(machine, core), *_ends(machine))
    dma, assumed = _dma(machine, core)
    ports = {s.name: _lanes(machine, s, dma) for s in spaces if s.kind == "external"}
    engines = [
        Engine(name=name, count=1)
        for number in range(core.count)
        for name in (core_engine(number), vector_engine(number))
    ]
    for engine in dma:
        engines += [
            Engine(name=_queue(engine, queue), count=engine.ports) for queue in range(engine.queues)
        ]
    engines += [Engine(name=space.name) for space in spaces if space.kind in ("source", "sink")]
    engines += [port for pair in ports.values() for port in dict.fromkeys(pair)]
    routes = {(route.source, route.target): route for route in _routes(machine, spaces, dma, ports)}
    return Places(
        machine=machine,
        core=core,
        spaces=spaces,
        engines=tuple(engines),
        routes=routes,
        leakage=tuple(leaks_without_address(machine)),
        assumptions=(*assumed, *_assumptions(machine, core), *ignored_lines(machine)),
        sides=ports,
        dma=dma,
    )


def remedy(places: Places, source: str, target: str) -> str:
    """What would let transfers go from one space to another that has no route."""
    memories = {memory.name: memory for memory in places.machine.memories}
    sides: tuple[tuple[str, tuple[Direction, ...], str], ...] = (
        (source, READ, "read"),
        (target, WRITE, "written"),
    )
    for name, directions, what in sides:
        memory = memories.get(places.memory_of[name])
        if memory is not None and widest_port(memory, directions) is None:
            uses = " or ".join(directions)
            return f"let {memory.name} be {what}: give it a port with a use {uses}"
    pair = f"[{places.memory_of[source]}, {places.memory_of[target]}]"
    return f"let a DMA engine serve the route {pair}"


@cache
def core_engine(number: int) -> str:
    """The name of a core's array as an engine."""
    return f"core[{number}]"


@cache
def vector_engine(number: int) -> str:
    """The name of a core's vector unit as an engine."""
    return f"core[{number}].vector"


def _assumptions(machine: Machine, core: Core) -> Iterator[str]:
    yield from assumed_sharing(machine)
    if core.vector is None:
        yield (
            f"no vector unit is declared: 16 lanes at {core.array.mac_pj:g} pJ an operation serve"
        )
    if core.count > 1:
        yield "a transfer can write the same bytes to several cores at once"


def _spaces(machine: Machine, core: Core) -> Iterator[Space]:
    for number in range(core.count):
        for memory in core.memories:
            if memory.role == "scratchpad":
                name = memory.name if core.count == 1 else f"{memory.name}[{number}]"
                yield _space(machine, memory, name, None if core.count == 1 else number)
    for memory in machine.shared:
        if memory.role == "scratchpad":
            yield _space(machine, memory, memory.name, None)
    for memory in (*core.memories, *machine.shared):
        if memory.role == "external":
            yield _space(machine, memory, memory.name, None)


def _space(machine: Machine, memory: Memory, name: str, core: int | None) -> Space:
    return Space(
        name=name,
        memory=memory.name,
        kind="external" if memory.role == "external" else "scratchpad",
        size_bytes=memory.size_bytes,
        alignment_bytes=memory.alignment_bytes,
        core=core,
        leakage_pj_per_cycle=leakage_pj_per_cycle(machine, machine.cores[0], memory),
    )


def _ends(machine: Machine) -> Iterator[Space]:
    kinds: tuple[tuple[tuple[End, ...], Literal["source", "sink"]], ...] = (
        (machine.sources, "source"),
        (machine.sinks, "sink"),
    )
    for ends, kind in kinds:
        for end in ends:
            yield Space(
                name=end.name,
                memory=end.name,
                kind=kind,
                size_bytes=0,
                rereadable=end.kind not in ONCE,
            )


def _dma(machine: Machine, core: Core) -> tuple[tuple[DmaEngine, ...], list[str]]:
    """The machine's engines, or one as wide as what lies outside."""
    if machine.dma:
        return machine.dma, []
    external = [m for m in machine.levels(core) if m.role == "external"]
    widths = [port.bits_per_cycle for m in external[-1:] for port in m.ports]
    widths = widths or [end.bits_per_cycle for end in machine.sources if end.bits_per_cycle]
    widths = widths or [p.bits_per_cycle for m in machine.memories for p in m.ports]
    if not widths:
        raise InputError(Problem(message="the machine has no memory with a port", file=""))
    engine = DmaEngine(
        name="dma", ports=1, queues=1, bits_per_cycle=max(widths), setup_cycles=0, routes=()
    )
    return (engine,), [f"no DMA engine is declared: one of {max(widths)} bit a cycle serves"]


def queue_of(engine: DmaEngine, source: Space) -> str:
    """The name of the queue in which an engine takes what comes from a space."""
    return _queue(engine, 0 if source.kind != "scratchpad" else engine.queues - 1)


def _queue(engine: DmaEngine, queue: int) -> str:
    return engine.name if engine.queues == 1 else f"{engine.name}.{queue}"


def _lanes(machine: Machine, space: Space, dma: tuple[DmaEngine, ...]) -> tuple[Engine, Engine]:
    """The read and the write side of an external memory; one and the same if a port does both.

    They have as many lanes as transfers can go on at the same time.
    """
    memory = next(m for m in machine.memories if m.name == space.memory)
    read, write = outer_port(memory, reads=True), outer_port(memory, reads=False)
    first = read or write
    if first is None:
        raise InputError(Problem(message=f"memory {memory.name!r} has no port", file=""))
    sides = []
    for port in (read or first, write or first):
        alike = [p for p in memory.ports if p.kind == port.kind]
        lanes = sum(_fed_at_once(p, dma) for p in alike)
        sides.append(Engine(name=f"{space.name}.{port.name}", count=lanes))
    return sides[0], sides[1]


def _fed_at_once(port: Port, dma: tuple[DmaEngine, ...]) -> int:
    """Transfers of the widest engine that a port feeds at the same time, all of them as fast.

    As many as have room in its width. Where these leave a quarter of it idle, and one more can be
    under way in the same direction, it is one more, and all of them slower: otherwise a wider
    engine, of which fewer have room, would move far less than a narrower one.
    """
    widest = max(dma, key=lambda engine: engine.bits_per_cycle)
    whole, rest = divmod(port.bits_per_cycle, widest.bits_per_cycle)
    if IDLE_PARTS * rest >= port.bits_per_cycle and whole < widest.ports:
        whole += 1
    return max(1, whole)


def _as_memory(machine: Machine, end: End) -> Memory:
    """A source or a sink as the memory above the one that it fills or empties."""
    below = next(m for m in machine.memories if m.name == end.memory)
    is_source = end in machine.sources
    beside = widest_port(below, ("fh",) if is_source else ("th",))
    bits = end.bits_per_cycle or (beside.bits_per_cycle if beside is not None else 1)
    port = Port(
        name=end.name,
        kind="read" if is_source else "write",
        bits_per_cycle=bits,
        granularity_bits=1,
        uses=tuple((operand, "tl" if is_source else "fl") for operand in end.operands),
    )
    return Memory(
        name=end.name,
        size_bits=WITHOUT_END,
        operands=end.operands,
        ports=(port,),
        served_dims=tuple(machine.cores[0].array.sizes),
        read_pj=bits * end.pj_per_bit,
        write_pj=bits * end.pj_per_bit,
        role="external",
    )


@dataclass(frozen=True, kw_only=True)
class _Side:
    """One end of a route: bits a cycle, energy a byte, and the port that is held, if any."""

    bits_per_cycle: int
    pj_per_byte: float
    port: tuple[str, ...]


def _routes(
    machine: Machine,
    spaces: tuple[Space, ...],
    dma: tuple[DmaEngine, ...],
    ports: Mapping[str, tuple[Engine, Engine]],
) -> Iterator[Route]:
    reach = _reach(machine, spaces)
    for source in spaces:
        for target in reach[source.core]:
            if source == target or source.kind == "sink" or target.kind == "source":
                continue
            if source.kind != "scratchpad" and target.kind != "scratchpad":
                continue
            engine = _mover(source, target, dma)
            read = _side(machine, source, target, (dma, ports), reads=True)
            write = _side(machine, target, source, (dma, ports), reads=False)
            if engine is None or read is None or write is None:
                continue
            bits = min(engine.bits_per_cycle, read.bits_per_cycle, write.bits_per_cycle)
            yield Route(
                source=source.name,
                target=target.name,
                engine=queue_of(engine, source),
                setup_cycles=engine.setup_cycles,
                bytes_per_cycle=Fraction(bits, 8),
                ports=(*read.port, *write.port),
                read_pj_per_byte=read.pj_per_byte,
                write_pj_per_byte=write.pj_per_byte,
            )


def _reach(machine: Machine, spaces: tuple[Space, ...]) -> Mapping[int | None, tuple[Space, ...]]:
    """Spaces that may be reached from those of a core, or from those of all cores together."""
    if machine.cores[0].count <= LINKED_CORES:
        return dict.fromkeys((space.core for space in spaces), spaces)
    by_core: dict[int | None, list[Space]] = {}
    for space in spaces:
        by_core.setdefault(space.core, []).append(space)
    common = by_core.get(None, [])
    near = {core: (*own, *common) for core, own in by_core.items()}
    return {**near, None: spaces}


def _mover(source: Space, target: Space, dma: tuple[DmaEngine, ...]) -> DmaEngine | None:
    """What moves bytes between two spaces: the widest engine; sources and sinks do it alone."""
    for end in (source, target):
        if end.kind in ("source", "sink"):
            return DmaEngine(
                name=end.name, ports=1, queues=1, bits_per_cycle=2**20, setup_cycles=0, routes=()
            )
    return engine_of(dma, source, target.memory)


def engine_of(dma: tuple[DmaEngine, ...], source: Space, memory: str) -> DmaEngine | None:
    """The widest engine that brings bytes from a space to a memory."""
    serving = [e for e in dma if not e.routes or (source.memory, memory) in e.routes]
    if not serving:
        return None
    best = max(serving, key=lambda engine: (engine.bits_per_cycle, -engine.setup_cycles))
    alike = [
        engine
        for engine in serving
        if (engine.bits_per_cycle, engine.setup_cycles) == (best.bits_per_cycle, best.setup_cycles)
    ]
    # Of several that are as good, one takes what comes in, and another what goes out.
    return alike[0] if source.kind != "scratchpad" else alike[-1]


def _side(
    machine: Machine,
    space: Space,
    other: Space,
    ways: tuple[tuple[DmaEngine, ...], Mapping[str, tuple[Engine, Engine]]],
    *,
    reads: bool,
) -> _Side | None:
    """How a space can be read or written by a transfer; None if it cannot."""
    if space.kind in ("source", "sink"):
        end = next(e for e in (*machine.sources, *machine.sinks) if e.name == space.name)
        if end.memory != other.memory:
            return None
        bits = end.bits_per_cycle or 2**20
        return _Side(bits_per_cycle=bits, pj_per_byte=8 * end.pj_per_bit, port=())
    levels: dict[str, Memory | End] = {end.name: end for end in (*machine.sources, *machine.sinks)}
    levels |= {memory.name: memory for memory in machine.memories}
    memory = next(m for m in machine.memories if m.name == space.memory)
    port = transfer_port(machine, memory, levels[other.memory], reads=reads)
    whole = widest_port(memory, READ if reads else WRITE)
    if port is None or whole is None:
        return None
    energy = memory.read_pj if reads else memory.write_pj
    dma, ports = ways
    is_held = space.name in ports
    held = (ports[space.name][0 if reads else 1].name,) if is_held else ()
    return _Side(
        bits_per_cycle=port.bits_per_cycle // (_fed_at_once(port, dma) if is_held else 1),
        # Energy is given for an access of the whole width.
        pj_per_byte=8 * energy / whole.bits_per_cycle,
        port=held,
    )

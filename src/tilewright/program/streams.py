"""How the array reads or writes an operand that has no scratchpad: its stream.

The memory or the source where the operand lies is the top level of its mapping, and is held while
the op runs. From a memory without a port for the operand a DMA engine brings it, and is held too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from tilewright.machine.model import OUTPUT_OPERAND, Direction, Memory, Port
from tilewright.mapping.constraints import DEFAULT_LINKS
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.program.model import Space
from tilewright.program.places import Places, engine_of, queue_of
from tilewright.program.transfer_ports import READ, widest_port
from tilewright.records import quickly_made

CARRIERS: Final[Mapping[str, str]] = dict(DEFAULT_LINKS)
"""Which operand of the array carries which letter of a nest."""


@quickly_made
@dataclass(frozen=True, kw_only=True)
class Stream:
    """The way of an operand past the scratchpads."""

    carrier: str
    memory: Memory
    """Where it lies."""
    port: Port
    """The port through which it goes there, for this operand or for others."""
    held: tuple[str, ...]
    """What is held while an op runs: lanes of ports, an engine, a source or a sink."""
    bits_per_cycle: int
    """What all of the way moves."""
    rereadable: bool = True

    @property
    def pj_per_byte(self) -> float:
        """Energy of a byte that is read there."""
        return 8 * self.memory.read_pj / self.port.bits_per_cycle


def stream_of(places: Places, carrier: str, space: Space) -> Stream | None:
    """The way from a space of what the array carries as `carrier`, or of its results to there."""
    chain = [memory.name for memory in places.machine.chain(places.core, carrier)]
    memory, reads = places.levels[space.memory], carrier != OUTPUT_OPERAND
    ends = {end.name: end.memory for end in (*places.machine.sources, *places.machine.sinks)}
    port = memory.port(carrier, "tl" if reads else "fl")
    is_direct = ends.get(space.name) in chain if space.name in ends else space.kind == "external"
    if port is None or not is_direct:
        return _by_engine(places, carrier, space) if reads else None
    return Stream(
        carrier=carrier,
        memory=memory,
        port=port,
        held=places.held(space.name, reads=reads),
        bits_per_cycle=port.bits_per_cycle,
        rereadable=space.rereadable,
    )


def straight(places: Places, carrier: str, space: Space) -> Stream | None:
    """The way of constants from where those for `carrier` lie, through whatever port there is."""
    found = stream_of(places, carrier, space)
    port = widest_port(places.levels[space.memory], READ)
    if found is not None or port is None:
        return found
    return Stream(
        carrier=carrier,
        memory=places.levels[space.memory],
        port=port,
        held=places.held(space.name, reads=True),
        bits_per_cycle=port.bits_per_cycle,
    )


def _by_engine(places: Places, carrier: str, space: Space) -> Stream | None:
    """The way over a DMA engine that fills the topmost memory of the chip for a carrier."""
    chain = places.machine.chain(places.core, carrier)
    inside = [memory.name for memory in chain if memory.role != "external"]
    memory = places.levels[space.memory]
    port = widest_port(memory, READ)
    engine = engine_of(places.dma, space, inside[-1]) if inside else None
    if engine is None or port is None or space.kind not in ("scratchpad", "external"):
        return None
    lanes = places.held(space.name, reads=True) if space.kind == "external" else ()
    return Stream(
        carrier=carrier,
        memory=memory,
        port=port,
        held=(queue_of(engine, space), *lanes),
        bits_per_cycle=min(port.bits_per_cycle, engine.bits_per_cycle),
    )


def with_streams(hierarchy: Hierarchy, streams: Mapping[str, Stream]) -> Hierarchy:
    """The levels with the memory of each stream at the top of its operand, by letter."""
    for letter, stream in streams.items():
        chain = hierarchy.chains[letter]
        if not chain or hierarchy.levels[chain[-1]][0].name != stream.memory.name:
            hierarchy = _with_stream(hierarchy, letter, stream)
    return hierarchy


def _with_stream(hierarchy: Hierarchy, letter: str, stream: Stream) -> Hierarchy:
    """The levels with one operand streaming; where it lies stands above all of its others."""
    top, held = stream.memory, list[str]()
    levels = []
    for memory, letters in hierarchy.levels:
        if memory.name == stream.memory.name:
            top, held = memory, list(letters)
            continue
        left = tuple([one for one in letters if one != letter or memory.role != "external"])
        if left:
            levels.append((memory, left))
    use: tuple[str, Direction]
    use = (stream.carrier, "tl" if stream.carrier != OUTPUT_OPERAND else "fl")
    if use not in stream.port.uses:
        ports = [
            replace(port, uses=(*port.uses, use)) if port.name == stream.port.name else port
            for port in top.ports
        ]
        top = replace(top, operands=(*top.operands, stream.carrier), ports=tuple(ports))
    return replace(hierarchy, levels=(*levels, (top, (*held, letter))))

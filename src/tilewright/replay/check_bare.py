"""Does the array read operands that no scratchpad is for along a way that there is, and pay for it?

Such an operand comes straight from where it lies: through a port that the memory has for it, from a
source, or over a DMA engine that fills the operand's topmost register and is held meanwhile.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tilewright.errors import Problem
from tilewright.machine.model import Machine, Memory
from tilewright.mapping.constraints import DEFAULT_LINKS
from tilewright.network.graph import Network
from tilewright.program.model import Program, Space, Task
from tilewright.replay.check_boxes import volume
from tilewright.replay.check_routes import NOTHING, charged_amounts
from tilewright.units import packed_bytes

ROUNDING = 1e-9
"""Energies are sums of floats, in any order."""


@dataclass(frozen=True, slots=True)
class Way:
    """How an operand comes: bits a cycle, energy of a bit, and engines of which one is held."""

    bits_per_cycle: int
    pj_per_bit: float
    engines: tuple[str, ...] = ()


def bare_problems(
    program: Program, network: Network, machine: Machine, numbers: Iterable[int]
) -> Iterator[Problem]:
    """Tasks on arrays, of those with some numbers, that read an operand without a scratchpad for
    less time or energy than it takes, or hold nothing that brings it."""
    carriers = _bare_carriers(machine)
    if not carriers:
        return
    ops = {op.name: op for op in network.ops}
    for task in map(program.tasks.__getitem__, numbers):
        if task.op not in ops or not _is_on_array(task):
            continue
        inputs = [o for o in ops[task.op].inputs if o.name in dict(DEFAULT_LINKS)]
        letters = {o.tensor: o.name for o in inputs if o.name in carriers}
        # What is both operands lies in the scratchpad of one of them, too.
        brought = {o.tensor for o in inputs if o.name not in carriers}
        read: dict[tuple[str, str], int] = {}
        for access in task.reads:
            buffer = program.buffers[access.buffer]
            is_brought = program.space[buffer.space].kind == "scratchpad"
            if buffer.tensor in letters and not (is_brought and buffer.tensor in brought):
                size = packed_bytes(volume(access.box), network.by_name[buffer.tensor].bits)
                key = buffer.space, carriers[letters[buffer.tensor]]
                read[key] = read.get(key, 0) + size
        for (space, carrier), size_bytes in read.items():
            yield from _wrong(task, machine, program.space[space], (carrier, size_bytes))


def _bare_carriers(machine: Machine) -> Mapping[str, str]:
    """By letter the inputs of the array that no scratchpad holds."""
    pads = [m for m in machine.levels(machine.cores[0]) if m.role == "scratchpad"]
    held = {operand for memory in pads for operand in memory.operands}
    return {letter: c for letter, c in DEFAULT_LINKS if letter != "O" and c not in held}


def _is_on_array(task: Task) -> bool:
    return task.kind == "compute" and any(charge.memory == "array" for charge in task.charges)


def _wrong(task: Task, machine: Machine, space: Space, what: tuple[str, int]) -> Iterator[Problem]:
    carrier, size_bytes = what
    way = way_to_array(machine, space.memory, carrier)
    if way is None:
        yield Problem(
            message=f"task {task.name} reads {carrier} from {space.name}, and nothing brings it "
            "from there to the array"
        )
        return
    if way.engines and not set(way.engines) & set(task.ports):
        yield Problem(
            message=f"task {task.name} reads {carrier} from {space.name} and does not hold "
            f"{' or '.join(way.engines)}, which brings it"
        )
    cycles = -(-8 * size_bytes // way.bits_per_cycle)
    if task.cycles < cycles:
        yield Problem(
            message=f"task {task.name} takes {task.cycles} cycles, and {size_bytes} bytes of "
            f"{carrier} from {space.name} take {cycles}"
        )
    charged, _, spent_pj = charged_amounts(task).get(space.memory, NOTHING)
    energy_pj = 8 * size_bytes * way.pj_per_bit
    if charged < size_bytes or spent_pj < energy_pj * (1 - ROUNDING):
        yield Problem(
            message=f"task {task.name} is charged for {charged} bytes read and {spent_pj:g} pJ at "
            f"{space.memory}, and {size_bytes} of {carrier} come from there for {energy_pj:g} pJ"
        )


def way_to_array(machine: Machine, name: str, carrier: str) -> Way | None:
    """How what lies in a memory, or comes from a source, gets to the array by itself; None if it
    does not."""
    for end in machine.sources:
        if end.name == name:
            (filled,) = [memory for memory in machine.memories if memory.name == end.memory]
            width = end.bits_per_cycle or _widest(filled, "fh")
            return Way(width, end.pj_per_bit) if carrier in end.operands else None
    memory = next((memory for memory in machine.memories if memory.name == name), None)
    if memory is None:
        # The plan is of another machine, which is a fault of its own.
        return None
    port = memory.port(carrier, "tl")
    if port is not None:
        return Way(port.bits_per_cycle, memory.read_pj / port.bits_per_cycle)
    chain = machine.chain(machine.cores[0], carrier)
    inside = [level.name for level in chain if level.role == "local"]
    width = max(_widest(memory, "tl"), _widest(memory, "th"))
    engines = _engines(machine, (name, inside[-1])) if inside else {}
    if not engines:
        return None
    return Way(min(width, max(engines.values())), memory.read_pj / width, tuple(engines))


def _widest(memory: Memory, direction: str) -> int:
    ports = [p for p in memory.ports if any(use == direction for _, use in p.uses)]
    return max((port.bits_per_cycle for port in ports), default=1)


def _engines(machine: Machine, pair: tuple[str, str]) -> dict[str, int]:
    """Queues of DMA engines that move between two memories, with their bits a cycle."""
    if not machine.dma:
        return {"dma": _assumed_width(machine)}
    found: dict[str, int] = {}
    for engine in machine.dma:
        if not engine.routes or pair in engine.routes:
            queues = [f"{engine.name}.{queue}" for queue in range(engine.queues)]
            names = queues if engine.queues > 1 else [engine.name]
            found |= dict.fromkeys(names, engine.bits_per_cycle)
    return found


def _assumed_width(machine: Machine) -> int:
    """Of the engine of a machine that declares none: as wide as what lies outside."""
    external = [m for m in machine.levels(machine.cores[0]) if m.role == "external"]
    widths = [port.bits_per_cycle for memory in external[-1:] for port in memory.ports]
    widths = widths or [end.bits_per_cycle for end in machine.sources if end.bits_per_cycle]
    return max(widths or [p.bits_per_cycle for m in machine.memories for p in m.ports])

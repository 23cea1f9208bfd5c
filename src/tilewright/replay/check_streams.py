"""Does a task that computes with what lies outside the chip hold a way's ports meanwhile?

And may it, and does it take the time and the energy of it, if these are weights?
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tilewright.errors import Problem
from tilewright.machine.model import WEIGHTS, Machine, Memory
from tilewright.network.graph import Network, Op
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.model import Access, Program, Task
from tilewright.replay.check_boxes import volume
from tilewright.replay.check_routes import NOTHING, charged_amounts
from tilewright.replay.check_transfers import CORE
from tilewright.units import packed_bytes

ROUNDING = 1e-9
"""Energies are sums of floats, in any order."""

Ports = Mapping[str, Sequence[tuple[str, ...]]]
"""By external space the ports of each way out of it, or into it."""


def stream_problems(program: Program, numbers: Iterable[int]) -> Iterator[Problem]:
    """Tasks, of those with some numbers, that read or write outside the chip through no port."""
    # An engine is no port of a memory, also where transfers hold theirs like one.
    ways = [
        (way, tuple([port for port in way.ports if port != way.engine]) or way.ports)
        for way in program.routes
    ]
    ports_out = _ports(program, [(way.source, ports) for way, ports in ways])
    ports_in = _ports(program, [(way.target, ports) for way, ports in ways])
    lanes = {engine.name: engine.count for engine in program.engines}
    for task in map(program.tasks.__getitem__, numbers):
        if task.kind != "compute":
            continue
        sides = (task.reads, "reads", ports_out), (task.writes, "writes", ports_in)
        for accesses, verb, ports in sides:
            for space in dict.fromkeys(program.buffers[a.buffer].space for a in accesses):
                if space in ports:
                    yield from _not_held(task, verb, space, (ports[space], lanes))


def _ports(program: Program, ways: Sequence[tuple[str, tuple[str, ...]]]) -> Ports:
    """By space outside the ports of its ways, or of itself if there is no way; a source and a sink
    are ports themselves."""
    found: dict[str, Sequence[tuple[str, ...]]] = {}
    for space in program.spaces:
        if space.kind == "external":
            own = [(e.name,) for e in program.engines if e.name.startswith(f"{space.name}.")]
            found[space.name] = [ports for end, ports in ways if end == space.name] or own
        elif space.kind in ("source", "sink"):
            found[space.name] = [(space.name,)]
    return {name: ports for name, ports in found.items() if ports}


def _not_held(
    task: Task, verb: str, space: str, ways: tuple[Sequence[tuple[str, ...]], Mapping[str, int]]
) -> Iterator[Problem]:
    """A unit of a core takes what a port moves in a cycle: all of its lanes."""
    ports, lanes = ways
    if not any(set(way) <= {*task.ports, task.engine} for way in ports):
        yield Problem(
            message=f"task {task.name} {verb} {space} and holds the ports of no way there, such "
            f"as {', '.join(ports[0])}"
        )
    elif CORE.match(task.engine):
        for port in dict.fromkeys(port for way in ports for port in way if port in task.ports):
            if port.startswith(f"{space}.") and task.ports.count(port) < lanes[port]:
                yield Problem(
                    message=f"task {task.name} {verb} {space} as fast as {port} does, and holds "
                    f"{task.ports.count(port)} of its {lanes[port]} lanes"
                )


def streamed_reads(program: Program, network: Network, task: Task, op: Op) -> list[Access]:
    """The constants that a product reads where they lie outside the chip."""
    if task.kind != "compute" or KIND_CLASSES[op.kind] != "mac":
        return []
    return [
        access
        for access in task.reads
        if program.space[program.buffers[access.buffer].space].kind == "external"
        and network.by_name[program.buffers[access.buffer].tensor].role == "constant"
    ]


def streamed_weight_problems(
    program: Program, network: Network, machine: Machine, numbers: Iterable[int]
) -> Iterator[Problem]:
    """Products, of the tasks with some numbers, that read constants past a scratchpad which has to
    hold them, or in less time than they take to come, or for less energy."""
    ops = {op.name: op for op in network.ops}
    memories = {memory.name: memory for memory in machine.memories}
    for task in map(program.tasks.__getitem__, numbers):
        read: dict[str, int] = {}
        for buffer, box in streamed_reads(program, network, task, ops[task.op]) if task.op else ():
            tensor = network.by_name[program.buffers[buffer].tensor]
            memory = program.space[program.buffers[buffer].space].memory
            read[memory] = read.get(memory, 0) + packed_bytes(volume(box), tensor.bits)
        for name, size_bytes in read.items():
            if name in memories:
                yield from _unlike_weights(task, machine, memories[name], size_bytes)


def _unlike_weights(
    task: Task, machine: Machine, memory: Memory, size_bytes: int
) -> Iterator[Problem]:
    holding = [m for m in machine.memories if WEIGHTS in m.operands and m.role == "scratchpad"]
    if holding and not any(WEIGHTS in other.bypass for other in holding):
        yield Problem(
            message=f"task {task.name} reads weights straight from {memory.name}, and nothing "
            f"leads past {holding[0].name}"
        )
    port = memory.port(WEIGHTS, "tl")
    if port is None:
        return
    cycles = -(-8 * size_bytes // port.bits_per_cycle)
    energy_pj = 8 * size_bytes / port.bits_per_cycle * memory.read_pj
    charged, _, spent_pj = charged_amounts(task).get(memory.name, NOTHING)
    if task.cycles < cycles:
        yield Problem(
            message=f"task {task.name} takes {task.cycles} cycles, and {size_bytes} bytes straight "
            f"from {memory.name} take {cycles}"
        )
    if charged < size_bytes or spent_pj < energy_pj * (1 - ROUNDING):
        yield Problem(
            message=f"task {task.name} is charged for {charged} bytes read and {spent_pj:g} pJ at "
            f"{memory.name}, and reads {size_bytes} straight from there for {energy_pj:g} pJ"
        )

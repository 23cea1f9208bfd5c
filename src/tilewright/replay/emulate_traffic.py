"""Bytes and energy of what was executed, worked out again from boxes and routes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import fsum, isclose, prod

from tilewright.errors import Problem
from tilewright.network.graph import Network
from tilewright.program.model import Access, Program, Task
from tilewright.replay.emulate_layout import element_bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes read and written at one memory, and the energy spent there."""

    read_bytes: int
    write_bytes: int
    energy_pj: float


def traffic_of(program: Program, network: Network) -> dict[str, Traffic]:
    """Traffic by memory: of transfers as their boxes say, of computing as its mappings say."""
    reads: dict[str, int] = {}
    writes: dict[str, int] = {}
    energies: dict[str, list[float]] = {}
    for task in program.tasks:
        if task.op:
            charges = [(c.memory, c.read_bytes, c.write_bytes, c.energy_pj) for c in task.charges]
        else:
            charges = [(m, *amounts) for m, amounts in _moved(program, network, task).items()]
        for memory, read, written, energy in charges:
            reads[memory] = reads.get(memory, 0) + read
            writes[memory] = writes.get(memory, 0) + written
            energies.setdefault(memory, []).append(energy)
    return {
        memory: Traffic(
            read_bytes=reads[memory], write_bytes=writes[memory], energy_pj=fsum(energies[memory])
        )
        for memory in sorted(reads)
    }


def traffic_problems(program: Program, network: Network) -> Iterator[Problem]:
    """Transfers whose bytes or energy are not what they move."""
    for task in program.tasks:
        if task.op or not task.reads or not task.writes:
            continue
        claimed: dict[str, tuple[int, int, float]] = {}
        for charge in task.charges:
            read, written, energy = claimed.get(charge.memory, (0, 0, 0.0))
            claimed[charge.memory] = (
                read + charge.read_bytes,
                written + charge.write_bytes,
                energy + charge.energy_pj,
            )
        moved = _moved(program, network, task)
        for memory in sorted({*claimed, *moved}):
            said, found = claimed.get(memory, (0, 0, 0.0)), moved.get(memory, (0, 0, 0.0))
            if said[:2] != found[:2] or not isclose(said[2], found[2], rel_tol=1e-9, abs_tol=1e-9):
                yield Problem(
                    message=f"task {task.name} claims {said[0]} bytes read, {said[1]} written and "
                    f"{said[2]:g} pJ at {memory}; its boxes make that {found[0]}, {found[1]} and "
                    f"{found[2]:g} pJ"
                )


def _moved(program: Program, network: Network, task: Task) -> Mapping[str, tuple[int, int, float]]:
    """Bytes read, bytes written and energy of a transfer, by memory."""
    found: dict[str, tuple[int, int, float]] = {}

    def add(access: Access, side: int, pj_per_byte: float) -> None:
        buffer = program.buffers[access.buffer]
        memory = program.space[buffer.space].memory
        size = _size_bytes(program, network, access)
        read, written, energy = found.get(memory, (0, 0, 0.0))
        found[memory] = (
            read + (size if side == 0 else 0),
            written + (size if side == 1 else 0),
            energy + size * pj_per_byte,
        )

    read: set[Access] = set()
    for number, write in enumerate(task.writes):
        source = task.reads[number if len(task.reads) > 1 else 0]
        spaces = (program.buffers[source.buffer].space, program.buffers[write.buffer].space)
        route = program.route.get(spaces)
        # What several targets get is read once.
        if source not in read:
            add(source, 0, route.read_pj_per_byte if route else 0.0)
            read.add(source)
        add(write, 1, route.write_pj_per_byte if route else 0.0)
    return found


def _size_bytes(program: Program, network: Network, access: Access) -> int:
    elements = prod(end - begin for begin, end in access.box)
    return -(-elements * element_bits(program.buffers[access.buffer], network) // 8)

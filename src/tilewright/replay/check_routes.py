"""Does every transfer go a way that exists, and take as long and cost as much as that way says?

A transfer of several copies brings one behind the other, each to several scratchpads at once: what
it copies is read once, and the slowest of its ways decides. Two copies into the same scratchpad
take the time of both.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose

from tilewright.errors import Problem
from tilewright.network.graph import Network
from tilewright.program.model import Access, Buffer, Program, Route, Task
from tilewright.replay.check_boxes import volume
from tilewright.replay.check_kinds import is_plain_copy
from tilewright.replay.check_transfers import copies
from tilewright.units import packed_bytes

Amount = tuple[int, int, float]
"""Bytes read, bytes written, and their energy in pJ."""

Copy = tuple[Route, Access, Access]
"""The way of a copy, what it reads and what it writes."""

NOTHING: Amount = (0, 0, 0.0)


def route_problems(program: Program, network: Network, numbers: Iterable[int]) -> Iterator[Problem]:
    """Transfers without a way, on engines or ports of another one, too short, or too cheap.

    Only tasks with some numbers are looked at.
    """
    bits = _Bits(program, network)
    for task in map(program.tasks.__getitem__, numbers):
        if is_plain_copy(task):
            yield from _problems_of(program, task, bits)


@dataclass(frozen=True, slots=True)
class _Bits:
    """By buffer the bits of an element, looked up when they are asked for."""

    program: Program
    network: Network
    _known: dict[int, int] = field(default_factory=dict)

    def __getitem__(self, buffer: int) -> int:
        if buffer not in self._known:
            self._known[buffer] = _element_bits(self.program.buffers[buffer], self.network)
        return self._known[buffer]


def _problems_of(program: Program, task: Task, bits: _Bits) -> Iterator[Problem]:
    pairs = copies(task)
    routes = [_route(program, *pair) for pair in pairs]
    found = [(r, *pair) for r, pair in zip(routes, pairs, strict=True) if r is not None]
    if len(found) < len(pairs):
        yield _no_way(program, task, *pairs[routes.index(None)])
        return
    yield from _wrong_engines(task, found)
    yield from _too_short(task, found, bits)
    yield from wrong_charges(task, _amounts(program, found, bits))


def _route(program: Program, read: Access, write: Access) -> Route | None:
    buffers = program.buffers
    return program.route.get((buffers[read.buffer].space, buffers[write.buffer].space))


def _no_way(program: Program, task: Task, read: Access, write: Access) -> Problem:
    source, target = (program.buffers[access.buffer].space for access in (read, write))
    message = f"task {task.name}, a {task.kind}, goes from {source} to {target}, and no way does"
    return Problem(message=message)


def _element_bits(buffer: Buffer, network: Network) -> int:
    """Bits of an element: the tensor's, or more where a buffer holds partial sums."""
    elements = volume(buffer.box)
    bits = network.by_name[buffer.tensor].bits if buffer.tensor in network.by_name else 0
    if not elements or buffer.size_bytes == packed_bytes(elements, bits):
        return bits
    return max(bits, 8 * buffer.size_bytes // elements)


def _size_bytes(access: Access, bits: _Bits) -> int:
    return packed_bytes(volume(access.box), bits[access.buffer])


def _wrong_engines(task: Task, found: Sequence[Copy]) -> Iterator[Problem]:
    for route in dict.fromkeys(route for route, _, _ in found):
        way = f"the way from {route.source} to {route.target}"
        if task.engine != route.engine:
            message = f"task {task.name} is on {task.engine}, and {way} is {route.engine}'s"
            yield Problem(message=message)
        for port in route.ports:
            if port not in task.ports:
                message = f"task {task.name} does not hold port {port}, and {way} leads through it"
                yield Problem(message=message)
        if route.ports and task.setup_cycles != route.setup_cycles:
            yield Problem(
                message=f"task {task.name} holds its ports from {task.setup_cycles} cycles after "
                f"its start on, and {way} takes {route.setup_cycles} to set up"
            )


def _too_short(task: Task, found: Sequence[Copy], bits: _Bits) -> Iterator[Problem]:
    for route in dict.fromkeys(route for route, _, _ in found):
        size_bytes = sum(_size_bytes(read, bits) for way, read, _ in found if way is route)
        if task.cycles < route.cycles(size_bytes):
            yield Problem(
                message=f"task {task.name} takes {task.cycles} cycles, and {size_bytes} bytes from "
                f"{route.source} to {route.target} take {route.cycles(size_bytes)}"
            )


def _amounts(program: Program, found: Sequence[Copy], bits: _Bits) -> Mapping[str, Amount]:
    """What copies do at each memory."""
    amounts: dict[str, Amount] = {}

    def add(access: Access, is_read: bool, pj_per_byte: float) -> None:
        memory = program.space[program.buffers[access.buffer].space].memory
        size = _size_bytes(access, bits)
        read, written, energy = amounts.get(memory, NOTHING)
        added = (read + size, written) if is_read else (read, written + size)
        amounts[memory] = (*added, energy + size * pj_per_byte)

    for read, route in {read: route for route, read, _ in reversed(found)}.items():
        add(read, True, route.read_pj_per_byte)
    for route, _, write in found:
        add(write, False, route.write_pj_per_byte)
    return amounts


def wrong_charges(task: Task, amounts: Mapping[str, Amount]) -> Iterator[Problem]:
    """Memories at which a task is charged for other amounts than it does there."""
    claimed = charged_amounts(task)
    for memory in dict.fromkeys((*claimed, *amounts)):
        said, does = claimed.get(memory, NOTHING), amounts.get(memory, NOTHING)
        if said[:2] != does[:2] or not isclose(said[2], does[2], rel_tol=1e-9, abs_tol=1e-9):
            yield Problem(
                message=f"task {task.name} is charged for {said[0]} bytes read, {said[1]} written "
                f"and {said[2]:g} pJ at {memory}, and does {does[0]}, {does[1]} and {does[2]:g} pJ"
            )


def charged_amounts(task: Task) -> dict[str, Amount]:
    """What a task is charged for at each memory."""
    claimed: dict[str, Amount] = {}
    for charge in task.charges:
        read, written, energy = claimed.get(charge.memory, NOTHING)
        claimed[charge.memory] = (
            read + charge.read_bytes,
            written + charge.write_bytes,
            energy + charge.energy_pj,
        )
    return claimed

"""Does a task that has a mapping do what that maps, and take as long and cost as much?

A task may take longer and cost more: it may go on from partial sums, or apply further ops.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import ceil

from tilewright.errors import Problem
from tilewright.machine.model import WEIGHTS, Machine
from tilewright.mapping.search import Mapped
from tilewright.network.graph import BIAS, Network, Op
from tilewright.program.model import Program, Task
from tilewright.replay.check_bare import way_to_array
from tilewright.replay.check_boxes import volume
from tilewright.replay.check_routes import NOTHING, Amount, charged_amounts
from tilewright.replay.check_taps import mapped_loops, taps_of
from tilewright.replay.check_tiles import Tiles
from tilewright.replay.check_transfers import CORE
from tilewright.units import packed_bytes

_ROUNDING = 1e-9
"""Energies are sums of floats, in any order."""


def mapping_problems(
    program: Program,
    network: Network,
    machine: Machine | None,
    tiles: Tiles,
    numbers: Iterable[int],
) -> Iterator[Problem]:
    """Tasks of another tile than their mapping's, on another engine, too short, or too cheap.

    Only those with some numbers are looked at.

    A program that was read from a file has no mappings, and nothing to compare with.
    """
    if not program.mappings:
        return
    ops = {op.name: (op, taps_of(op, network)) for op in network.ops}
    lengths = [dict(mapped.setup.nest.dims) for mapped in program.mappings]
    cycles = [ceil(mapped.cost.cycles) for mapped in program.mappings]
    moved = [_moved(mapped) for mapped in program.mappings]
    for number in numbers:
        task = program.tasks[number]
        if task.mapping is None:
            continue
        if not 0 <= task.mapping < len(program.mappings):
            message = f"task {task.name} has mapping {task.mapping}, which does not exist"
            yield Problem(message=message)
            continue
        if task.op in tiles.of_op:
            own, least = mapped_loops(*ops[task.op], tiles.box(task.op, number))
            mapped = lengths[task.mapping]
            if {**own, **{d: max(own[d], mapped.get(d, 0)) for d in least}} != mapped:
                yield Problem(
                    message=f"task {task.name} runs loops of {_text(own)}, and its mapping is one "
                    f"of {_text(mapped)}"
                )
        yield from _too_quick(task, cycles[task.mapping])
        op = ops[task.op][0] if task.op in ops else None
        beside = {} if op is None else _biases(program, network, machine, (task, op))
        yield from _too_little(task, moved[task.mapping], beside)


def _too_quick(task: Task, cycles: int) -> Iterator[Problem]:
    if not CORE.fullmatch(task.engine):
        yield Problem(message=f"task {task.name} has a mapping and is on {task.engine}, no array")
    if task.cycles < cycles:
        message = f"task {task.name} takes {task.cycles} cycles, and its mapping takes {cycles}"
        yield Problem(message=message)


def _moved(mapped: Mapped) -> dict[str, Amount]:
    """Bytes that a mapping reads and writes by memory, and their energy."""
    moved: dict[str, Amount] = {"array": (0, 0, mapped.cost.mac_pj)}
    bits: dict[tuple[str, bool], int] = {}
    for link in mapped.cost.links:
        key = link.memory, link.direction in ("tl", "th")
        bits[key] = bits.get(key, 0) + link.bits
        energy_pj = moved.get(link.memory, NOTHING)[2] + link.energy_pj
        read, written = (bits.get((link.memory, is_read), 0) for is_read in (True, False))
        moved[link.memory] = -(-read // 8), -(-written // 8), energy_pj
    return moved


def _biases(
    program: Program, network: Network, machine: Machine | None, asked: tuple[Task, Op]
) -> Mapping[str, Amount]:
    """Biases that a task reads where no scratchpad is, by memory: no mapping knows of them."""
    task, op = asked
    biases = {operand.tensor for operand in op.inputs if operand.name == BIAS}
    found: dict[str, Amount] = {}
    for access in task.reads if biases else ():
        buffer = program.buffers[access.buffer]
        space = program.space[buffer.space]
        if buffer.tensor in biases and space.kind != "scratchpad":
            size = packed_bytes(volume(access.box), network.by_name[buffer.tensor].bits)
            way = None if machine is None else way_to_array(machine, space.memory, WEIGHTS)
            energy_pj = 0.0 if way is None else 8 * size * way.pj_per_bit
            read, _, known_pj = found.get(space.memory, NOTHING)
            found[space.memory] = read + size, 0, known_pj + energy_pj
    return found


def _too_little(
    task: Task, moved: Mapping[str, Amount], beside: Mapping[str, Amount]
) -> Iterator[Problem]:
    """Memories at which a task is charged for less than its mapping does there, and biases."""
    charged = charged_amounts(task)
    for memory, mapped in moved.items():
        said, more = charged.get(memory, NOTHING), beside.get(memory, NOTHING)
        least = mapped[0] + more[0], mapped[1], mapped[2] + more[2]
        if said[0] < least[0] or said[1] < least[1] or said[2] < least[2] * (1 - _ROUNDING):
            who = "its mapping does" if more == NOTHING else "its mapping and its bias take"
            yield Problem(
                message=f"task {task.name} is charged for {said[0]} bytes read, {said[1]} written "
                f"and {said[2]:g} pJ at {memory}, and {who} {least[0]}, {least[1]} and "
                f"{least[2]:g} pJ"
            )


def _text(lengths: dict[str, int]) -> str:
    return ", ".join(f"{dim} {length}" for dim, length in lengths.items())

"""Does a task that has a mapping do what that maps, and take as long and cost as much?

A task may take longer and cost more: it may go on from partial sums, or apply further ops.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import ceil

from tilewright.errors import Problem
from tilewright.mapping.search import Mapped
from tilewright.network.graph import Network
from tilewright.program.model import Program, Task
from tilewright.replay.check_routes import NOTHING, Amount, charged_amounts
from tilewright.replay.check_taps import mapped_loops, taps_of
from tilewright.replay.check_tiles import Tiles
from tilewright.replay.check_transfers import CORE

_ROUNDING = 1e-9
"""Energies are sums of floats, in any order."""


def mapping_problems(
    program: Program, network: Network, tiles: Tiles, numbers: Iterable[int]
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
        yield from _too_little(task, moved[task.mapping])


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


def _too_little(task: Task, moved: Mapping[str, Amount]) -> Iterator[Problem]:
    """Memories at which a task is charged for less than its mapping does there."""
    charged = charged_amounts(task)
    for memory, least in moved.items():
        said = charged.get(memory, NOTHING)
        if said[0] < least[0] or said[1] < least[1] or said[2] < least[2] * (1 - _ROUNDING):
            yield Problem(
                message=f"task {task.name} is charged for {said[0]} bytes read, {said[1]} written "
                f"and {said[2]:g} pJ at {memory}, and its mapping does {least[0]}, {least[1]} and "
                f"{least[2]:g} pJ"
            )


def _text(lengths: dict[str, int]) -> str:
    return ", ".join(f"{dim} {length}" for dim, length in lengths.items())

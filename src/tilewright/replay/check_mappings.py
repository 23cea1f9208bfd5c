"""Does a task that has a mapping do what that maps, and take as long and cost as much?

A task may take longer and cost more: it may go on from partial sums, or apply further ops.
"""

from collections.abc import Iterator, Sequence
from math import ceil, fsum

from tilewright.errors import Problem
from tilewright.network.graph import Network
from tilewright.program.model import Box, Program, Task
from tilewright.replay.check_transfers import CORE

_ROUNDING = 1e-9
"""Energies are sums of floats, in any order."""


def mapping_problems(
    program: Program, network: Network, tiles: Sequence[Box | None]
) -> Iterator[Problem]:
    """Tasks of another tile than their mapping's, on another engine, too short, or too cheap.

    A program that was read from a file has no mappings, and nothing to compare with.
    """
    if not program.mappings:
        return
    dims = {op.name: [dim for dim, _ in op.dims] for op in network.ops}
    lengths = [dict(mapped.setup.nest.dims) for mapped in program.mappings]
    costs = [(ceil(mapped.cost.cycles), mapped.cost.energy_pj) for mapped in program.mappings]
    for task, tile in zip(program.tasks, tiles, strict=True):
        if task.mapping is None:
            continue
        if not 0 <= task.mapping < len(program.mappings):
            message = f"task {task.name} has mapping {task.mapping}, which does not exist"
            yield Problem(message=message)
            continue
        if tile is not None:
            ends = zip(dims[task.op], tile, strict=True)
            own = {dim: stop - start for dim, (start, stop) in ends}
            if own != lengths[task.mapping]:
                yield Problem(
                    message=f"task {task.name} runs loops of {_text(own)}, and its mapping is one "
                    f"of {_text(lengths[task.mapping])}"
                )
        yield from _too_cheap(task, *costs[task.mapping])


def _too_cheap(task: Task, cycles: int, energy_pj: float) -> Iterator[Problem]:
    if not CORE.fullmatch(task.engine):
        yield Problem(message=f"task {task.name} has a mapping and is on {task.engine}, no array")
    if task.cycles < cycles:
        message = f"task {task.name} takes {task.cycles} cycles, and its mapping takes {cycles}"
        yield Problem(message=message)
    charged_pj = fsum(charge.energy_pj for charge in task.charges)
    if charged_pj < energy_pj * (1 - _ROUNDING):
        yield Problem(
            message=f"task {task.name} is charged {charged_pj:g} pJ, and its mapping costs "
            f"{energy_pj:g} pJ"
        )


def _text(lengths: dict[str, int]) -> str:
    return ", ".join(f"{dim} {length}" for dim, length in lengths.items())

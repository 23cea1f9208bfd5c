"""Does a task read what its tile of an op needs?"""

from collections.abc import Iterator, Mapping, Sequence

from tilewright.errors import Problem
from tilewright.network.graph import Index, Network, Op, Operand
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.model import Access, Box, Program, Task
from tilewright.replay.check_boxes import text, uncovered

Ranges = Mapping[str, tuple[int, int]]


def tile_problems(program: Program, network: Network) -> Iterator[Problem]:
    """Compute tasks that lack a part of an input.

    What they write need not be all they make: elements that nobody reads may be left out, and
    whether those that somebody reads are there is seen when they are read.
    """
    ops = {op.name: op for op in network.ops}
    for task in program.tasks:
        op = ops.get(task.op)
        if op is None or task.kind != "compute" or KIND_CLASSES[op.kind] == "move":
            continue
        for operand in op.inputs:
            need = _needed(op, task, operand, network.by_name[operand.tensor].shape)
            missing = uncovered(need, _boxes(program, task.reads, operand.tensor))
            if missing:
                tile = ", ".join(f"{dim} {begin}:{end}" for dim, begin, end in task.tile)
                yield Problem(
                    message=f"task {task.name} ({tile}) needs {text(need)} of {operand.tensor} "
                    f"and reads nothing of {text(missing[0])}"
                )


def _boxes(program: Program, accesses: Sequence[Access], tensor: str) -> list[Box]:
    return [a.box for a in accesses if program.buffers[a.buffer].tensor == tensor]


def _needed(op: Op, task: Task, operand: Operand, shape: tuple[int, ...]) -> Box:
    """The smallest box around the elements that the tile's points touch; all without an index."""
    if operand.index is None:
        return tuple((0, size) for size in shape)
    ranges = {dim: (0, size) for dim, size in op.dims}
    ranges.update((dim, (begin, end)) for dim, begin, end in task.tile)
    return tuple(
        _positions(index, ranges, size) for index, size in zip(operand.index, shape, strict=True)
    )


def _positions(index: Index, ranges: Ranges, size: int) -> tuple[int, int]:
    """From the first to the last position on the axis, padding left out."""
    ends = [(factor * ranges[dim][0], factor * (ranges[dim][1] - 1)) for dim, factor in index.terms]
    first = index.offset + sum(map(min, ends))
    last = index.offset + index.reach + sum(map(max, ends))
    begin = max(0, -(-first // index.divisor))
    end = min(size, last // index.divisor + 1)
    return begin, max(begin, end)

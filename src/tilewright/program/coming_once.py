"""What comes only once, and is read past the scratchpads: nobody can read it again.

No two tasks read the same element of it, and the mapping of a task reads none twice.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Final

import numpy as np

from tilewright.errors import InfeasibleError, Problem
from tilewright.machine.model import Memory
from tilewright.mapping.evaluate import Setup, evaluate_loops
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.search import Mapped, SearchOptions, mapped
from tilewright.mapping.tile_search import map_tile
from tilewright.program.boxes import Ranges, elements, meet, shifted, touched
from tilewright.program.homes import Homes
from tilewright.program.model import Access, Box, Program
from tilewright.program.stages import Stage
from tilewright.program.streams import Stream

DEAR_PJ: Final = 1e15
"""An energy of a read beside which all others are nothing."""


def read_again(found: Mapped, ways: Mapping[str, Stream]) -> Stream | None:
    """The way of something that comes once and of which a mapping reads elements again."""
    nest = found.setup.nest
    sizes = nest.sizes | {relation.target: relation.size for relation in nest.relations}
    whole_bits = {o.letter: o.bits * prod(sizes.get(a, 1) for a in o.axes) for o in nest.operands}
    for link in found.cost.links:
        way = ways.get(link.letter)
        if way is None or way.rereadable or link.memory != way.memory.name:
            continue
        if link.bits > whole_bits[link.letter]:
            return way
    return None


def mapped_once(
    tile: LoopNest, hierarchy: Hierarchy, options: SearchOptions, ways: Mapping[str, Stream]
) -> Mapped | None:
    """The mapping of a tile that reads least of what comes once."""
    once = [way.memory.name for way in ways.values() if not way.rereadable]

    def dear(memory: Memory) -> Memory:
        return replace(memory, read_pj=DEAR_PJ) if memory.name in once else memory

    levels = tuple([(dear(memory), letters) for memory, letters in hierarchy.levels])
    found = map_tile(tile, replace(hierarchy, levels=levels), replace(options, objective="energy"))
    if found is None:
        return None
    setup = Setup(tile, hierarchy, found.setup.spatial)
    return mapped(evaluate_loops(setup, found.loops), 0, found.candidates)


def refusal_of(op: str, source: str) -> InfeasibleError:
    """An error for an op that reads again what comes once."""
    message = f"op {op!r} reads more than once, past all scratchpads, what comes once from {source}"
    hint = f"write kind: host for {source} if it can be read again, or give it a scratchpad to fill"
    return InfeasibleError(Problem(message=message, hint=hint))


def loops_read_together(homes: Homes, stage: Stage) -> frozenset[str]:
    """Loops along which a stage is not cut: its tiles would read again what comes once."""
    origin = homes.places.origin("I1")
    if origin is None or origin.rereadable:
        return frozenset()
    found: set[str] = set()
    for operand in stage.inputs:
        root = homes.network.by_name[homes.root(operand.tensor)]
        if root.role == "input" and homes.is_read_outside(stage, operand):
            shape = homes.network.by_name[operand.tensor].shape
            full: Ranges = {dim: (0, size) for dim, size in stage.op.dims}
            for dim, size in stage.op.dims:
                steps = [touched(operand, {**full, dim: (n, n + 1)}, shape) for n in range(size)]
                if any(meet(one, other) for one, other in pairwise(steps)):
                    found.add(dim)
    return frozenset(found)


def refuse_reading_again(program: Program) -> None:
    """Make sure that no two tasks read the same element of what comes once.

    Raises:
        InfeasibleError: some do.
    """
    once = {space.name for space in program.spaces if not space.rereadable}
    if not once:
        return
    known: dict[int, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]] = {}
    for task in program.tasks:
        for buffer, box in dict.fromkeys(_in_roots(program, task.reads)):
            root = program.buffers[buffer]
            if root.space not in once or not elements(box):
                continue
            if buffer not in known:
                known[buffer] = np.zeros([stop for _, stop in root.box], dtype=np.bool_)
            part = tuple([slice(start, stop) for start, stop in box])
            if known[buffer][part].any():
                raise refusal_of(task.op or task.name, root.space)
            known[buffer][part] = True


def _in_roots(program: Program, accesses: Iterable[Access]) -> Iterator[tuple[int, Box]]:
    """Accesses as boxes of the buffers whose bytes they touch."""
    for access in accesses:
        buffer = program.buffers[access.buffer]
        if buffer.view is None:
            yield access.buffer, access.box
        elif buffer.view.origin is None:
            yield buffer.view.buffer, program.buffers[buffer.view.buffer].box
        else:
            pairs = zip(buffer.view.origin, buffer.box, strict=True)
            yield buffer.view.buffer, shifted(access.box, [to - at for to, (at, _) in pairs])

"""The tiles of a stage, one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from tilewright.errors import InfeasibleError, Problem
from tilewright.network.graph import Op
from tilewright.program.boxes import Ranges
from tilewright.program.residence import Layout
from tilewright.program.stages import Stage
from tilewright.program.tile_cost import Sums

MOST_TILES: Final = 150_000


@dataclass(frozen=True, slots=True)
class Tile:
    """What one task computes: ranges of the loops, within the part of its core."""

    core: int
    part: Ranges
    ranges: Ranges
    sums: Sums


def refuse_too_many(stages: Sequence[Stage], layout: Layout) -> None:
    """A plan that nobody could use is no plan: say which op would be cut to pieces."""
    counts = [
        sum(
            prod(-(-(part[d][1] - part[d][0]) // tiling.lengths[d]) for d in tiling.order)
            for part in parts
        )
        for parts, tiling in zip(layout.parts, layout.tilings, strict=True)
    ]
    if sum(counts) > MOST_TILES:
        worst = max(range(len(counts)), key=lambda number: (counts[number], -number))
        message = (
            f"the scratchpads are too small: a plan has at most {MOST_TILES:,} tiles, and there "
            f"would be {sum(counts):,}, of op {stages[worst].op.name!r} alone {counts[worst]:,}"
        )
        raise InfeasibleError(Problem(message=message, hint="plan with a larger scratchpad"))


def tile_ranges(
    ranges: Ranges, lengths: Mapping[str, int], order: Sequence[str]
) -> Iterator[dict[str, tuple[int, int]]]:
    """The tiles of a part, the last loop of the order running fastest."""
    steps = [
        [
            (start, min(start + lengths[dim], ranges[dim][1]))
            for start in range(*ranges[dim], lengths[dim])
        ]
        for dim in order
    ]
    for spans in product(*steps):
        yield {**ranges, **dict(zip(order, spans, strict=True))}


def sums_of(part: Ranges, tile: Ranges, loops: Sequence[str]) -> Sums:
    """Which part of its sums a tile adds."""
    return Sums(
        continued=any(tile[d][0] > part[d][0] for d in loops),
        unfinished=any(tile[d][1] < part[d][1] for d in loops),
    )


def label(name: str, ranges: Ranges, op: Op) -> str:
    """An op's name, with the ranges of the loops that are cut."""
    cut = [
        f"{dim}{start}:{stop}"
        for dim, (start, stop) in ranges.items()
        if stop - start < op.sizes[dim]
    ]
    return f"{name} [{' '.join(cut)}]" if cut else name

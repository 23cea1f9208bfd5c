"""The tiles of a stage, one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from tilewright.errors import InfeasibleError, Problem
from tilewright.network.graph import Op
from tilewright.program.boxes import Ranges
from tilewright.program.layout import Layout
from tilewright.program.stages import Stage
from tilewright.program.tile import Tiling
from tilewright.program.tile_cost import WHOLE_SUM, Sums

MOST_TILES: Final = 150_000


@dataclass(frozen=True, slots=True)
class Tile:
    """What one task computes: ranges of the loops, within the part of its core."""

    core: int
    part: Ranges
    ranges: Ranges
    sums: Sums

    @property
    def lengths(self) -> dict[str, int]:
        """How far each loop runs."""
        return {dim: stop - start for dim, (start, stop) in self.ranges.items()}


def refuse_too_many(stages: Sequence[Stage], layout: Layout, most: int = MOST_TILES) -> None:
    """A plan that nobody could use is no plan: say which op would be cut to pieces."""
    counts = [_count(number, layout) for number in range(len(stages))]
    if sum(counts) > most:
        worst = max(range(len(counts)), key=lambda number: (counts[number], -number))
        message = (
            f"the scratchpads are too small: a plan has at most {most:,} tiles, and there "
            f"would be {sum(counts):,}, of op {stages[worst].op.name!r} alone {counts[worst]:,}"
        )
        raise InfeasibleError(Problem(message=message, hint="plan with a larger scratchpad"))


def _count(number: int, layout: Layout) -> int:
    """Tiles of a stage on all cores."""
    tiling, parts = layout.tilings[number], layout.parts[number]
    flow = layout.flows.get(number)
    if flow is None:
        return sum(tiles_in(part, tiling) for part in parts)
    loop, total = flow.loops[number], 0
    for turn in flow.turns:
        if turn.stage == number:
            rows = {loop: (turn.start, turn.stop)}
            total += sum(tiles_in({**part, **rows}, tiling) for part in parts)
    return total


def tiles_in(part: Ranges, tiling: Tiling) -> int:
    """How many tiles a core's part of a stage is cut into."""
    return prod(-(-(part[d][1] - part[d][0]) // tiling.lengths[d]) for d in tiling.order)


def tiles_of(stage: Stage, parts: Sequence[Ranges], tiling: Tiling) -> list[list[Tile]]:
    """The tiles of a stage by core, in the order of its tiling."""
    sums = [dim for dim in stage.tileable[2] if dim in tiling.order]
    return [
        [
            Tile(core, part, ranges, sums_of(part, ranges, sums) if sums else WHOLE_SUM)
            for ranges in tile_ranges(part, tiling.lengths, tiling.order)
        ]
        for core, part in enumerate(parts)
    ]


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
    sizes = op.sizes
    cut = [
        f"{dim}{start}:{stop}" for dim, (start, stop) in ranges.items() if stop - start < sizes[dim]
    ]
    return f"{name} [{' '.join(cut)}]" if cut else name

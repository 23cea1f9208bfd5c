"""How many tiles there are, and what they are called."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from tilewright.errors import InfeasibleError, Problem
from tilewright.program.boxes import Ranges
from tilewright.program.layout import Layout
from tilewright.program.stages import Stage
from tilewright.program.tile import Tiling

MOST_TILES: Final = 150_000


class TooManyTilesError(InfeasibleError):
    """All would fit, but in more tiles than a plan may have."""


def refuse_too_many(stages: Sequence[Stage], layout: Layout, most: int = MOST_TILES) -> None:
    """A plan that nobody could use is no plan: say which op would be cut to pieces."""
    counts = tile_counts(stages, layout)
    if sum(counts) > most:
        worst = max(range(len(counts)), key=lambda number: (counts[number], -number))
        message = (
            f"the scratchpads are too small: a plan has at most {most:,} tiles, and there "
            f"would be {sum(counts):,}, of op {stages[worst].op.name!r} alone {counts[worst]:,}"
        )
        raise TooManyTilesError(Problem(message=message, hint="plan with a larger scratchpad"))


def tile_counts(stages: Sequence[Stage], layout: Layout) -> list[int]:
    """Tiles of every stage on all cores."""
    return [_count(number, layout) for number in range(len(stages))]


def _count(number: int, layout: Layout) -> int:
    """Tiles of a stage on all cores."""
    tiling, parts = layout.tilings[number], layout.parts[number]
    flow = layout.flows.get(number)
    if flow is None:
        return sum(tiles_in(part, tiling) for part in parts)
    loop, total = flow.loops[number], 0
    for rows, turns in flow.turn_counts[number].items():
        total += turns * sum(tiles_in({**part, loop: (0, rows)}, tiling) for part in parts)
    return total


def tiles_in(part: Ranges, tiling: Tiling) -> int:
    """How many tiles a core's part of a stage is cut into."""
    return prod(-(-(part[d][1] - part[d][0]) // tiling.lengths[d]) for d in tiling.order)


def label(name: str, spans: Sequence[tuple[str, int, int]], sizes: Mapping[str, int]) -> str:
    """An op's name, with the ranges of the loops that are cut: those shorter than their sizes."""
    cut = [f"{dim}{start}:{stop}" for dim, start, stop in spans if stop - start < sizes[dim]]
    return f"{name} [{' '.join(cut)}]" if cut else name

"""What the tiles of a part of a stage take on a core with a model of its own."""

from collections.abc import Mapping
from itertools import product
from math import prod

from tilewright.program.core_model import CoreModelCosts
from tilewright.program.stages import Stage
from tilewright.program.work import Tiling

Step = tuple[int, int, bool, bool]
"""How far a loop runs in some tiles, in how many, and whether these are its first and its last."""


def part_cycles(
    model: CoreModelCosts, stage: Stage, lengths: Mapping[str, int], tiling: Tiling
) -> int:
    """Cycles of the tiles into which a part of a stage is cut; none if the model does not tell."""
    if stage.worker == "move":
        return 0
    steps = [
        _steps(lengths[dim], tiling.lengths[dim], is_sum=dim in stage.tileable[2])
        for dim in tiling.order
    ]
    total = 0
    for tile in product(*steps):
        cut = dict(zip(tiling.order, (length for length, *_ in tile), strict=True))
        continued = not all(is_first for _, _, is_first, _ in tile)
        unfinished = not all(is_last for *_, is_last in tile)
        cycles = model.cycles(stage, {**lengths, **cut}, (continued, unfinished))
        total += (cycles or 0) * prod(times for _, times, _, _ in tile)
    return total


def _steps(length: int, step: int, *, is_sum: bool) -> list[Step]:
    """The steps along a loop, those alike as one; only those of sums are told apart by place.

    >>> _steps(10, 4, is_sum=False)
    [(4, 2, True, True), (2, 1, True, True)]
    >>> _steps(10, 4, is_sum=True)
    [(4, 1, True, False), (4, 1, False, False), (2, 1, False, True)]
    """
    before, last = divmod(length - 1, step)
    found = [(step, before, True, True), (last + 1, 1, True, True)]
    if is_sum and before:
        found = [
            (step, 1, True, False),
            (step, before - 1, False, False),
            (last + 1, 1, False, True),
        ]
    return [one for one in found if one[1]]

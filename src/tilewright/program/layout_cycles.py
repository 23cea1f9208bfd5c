"""What the tasks of a layout take at least on a core with a model of its own, before they are made.

Elsewhere the cycles of a tile are those of its mapping, which takes about as long to find as the
tasks take to make.
"""

from collections.abc import Iterator
from itertools import product
from math import prod

from tilewright.program.core_model import CoreModelCosts
from tilewright.program.layout import Layout
from tilewright.program.lower import Prepared
from tilewright.program.stages import Stage
from tilewright.program.tile import Tiling

Lengths = tuple[tuple[str, int], ...]
"""How far each loop runs."""

Step = tuple[int, int, bool, bool]
"""How far a loop runs in some tiles, in how many, and whether these are its first and its last."""


def least_compute_cycles(prepared: Prepared, layout: Layout) -> int:
    """Cycles of the core that computes most; 0 where no model tells them."""
    model = prepared.costs.core_model
    if model is None:
        return 0
    by_core = [0] * prepared.places.cores
    for number, stage in enumerate(layout.as_run(prepared.stages)):
        known: dict[Lengths, int] = {}
        for core, lengths, times in _parts(layout, number):
            if lengths not in known:
                known[lengths] = _part_cycles(model, stage, lengths, layout.tilings[number])
            by_core[core] += times * known[lengths]
    return max(by_core)


def _parts(layout: Layout, number: int) -> Iterator[tuple[int, Lengths, int]]:
    """What each core does of a stage at once, and how often; not what it makes on demand."""
    flow = layout.flows.get(number)
    for core, part in enumerate(layout.parts[number]):
        lengths = {dim: stop - start for dim, (start, stop) in part.items()}
        if flow is None:
            yield core, tuple(lengths.items()), 1
        elif number not in flow.cascade.on_demand:
            for rows, times in flow.turn_counts[number].items():
                yield core, tuple({**lengths, flow.loops[number]: rows}.items()), times


def _part_cycles(model: CoreModelCosts, stage: Stage, lengths: Lengths, tiling: Tiling) -> int:
    """Cycles of the tiles into which a part of a stage is cut; none if the model does not tell."""
    if stage.worker == "move":
        return 0
    whole = dict(lengths)
    steps = [
        _steps(whole[dim], tiling.lengths[dim], is_sum=dim in stage.tileable[2])
        for dim in tiling.order
    ]
    total = 0
    for tile in product(*steps):
        cut = dict(zip(tiling.order, (length for length, *_ in tile), strict=True))
        continued = not all(is_first for _, _, is_first, _ in tile)
        unfinished = not all(is_last for *_, is_last in tile)
        cycles = model.cycles(stage, {**whole, **cut}, (continued, unfinished))
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

"""Small changes that make a mapping better: a loop moved, or the end of a level."""

from collections.abc import Iterator, Sequence

import numpy as np

from tilewright.mapping.batch import orders_of
from tilewright.mapping.evaluate import Batch, Loops, Setup, loops_of
from tilewright.mapping.orders import Loop
from tilewright.mapping.realise import Layouts, evaluate_layouts
from tilewright.mapping.search import Objective, best_column, rank


def polish(setup: Setup, loops: Loops, objective: Objective, budget: int) -> tuple[Loops, int]:
    """Change a mapping as long as that makes it better; also says how many mappings were costed."""
    best: tuple[float, float] = (np.inf, np.inf)
    spent = 0
    while True:
        near = list(_neighbours(loops))
        if spent + len(near) > budget:
            return loops, spent
        spent += len(near)
        batch = _costed(setup, near)
        column = best_column(batch, objective)
        if column is None:
            return loops, spent
        value = rank(objective, float(batch.cycles[column]), float(batch.energy_pj[column]))
        if value >= best:
            return loops, spent
        best, loops = value, loops_of(batch, column)


def _costed(setup: Setup, mappings: Sequence[Loops]) -> Batch:
    ends = {
        letter: np.array([dict(m.ends)[letter] for m in mappings], dtype=np.int64).T
        for letter, _ in mappings[0].ends
    }
    return evaluate_layouts(setup, Layouts(orders_of([m.order for m in mappings]), ends))


def _neighbours(loops: Loops) -> Iterator[Loops]:
    """The mapping itself, then all that differ by one moved loop or one moved end."""
    yield loops
    length = len(loops.order)
    for start in range(length):
        for end in range(length):
            order = _moved(loops.order, start, end)
            if order != loops.order:
                yield Loops(order, loops.ends)
    for number, (letter, ends) in enumerate(loops.ends):
        for level in range(len(ends) - 1):
            low = ends[level - 1] if level else 0
            for place in range(low, ends[level + 1] + 1):
                changed = (letter, (*ends[:level], place, *ends[level + 1 :]))
                if place != ends[level]:
                    every = (*loops.ends[:number], changed, *loops.ends[number + 1 :])
                    yield Loops(loops.order, every)


def _moved(order: tuple[Loop, ...], start: int, end: int) -> tuple[Loop, ...]:
    rest = [*order[:start], *order[start + 1 :]]
    rest.insert(end, order[start])
    return tuple(rest)

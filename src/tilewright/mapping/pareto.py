"""The mappings between which only taste decides: none is both faster and leaner than another."""

import numpy as np

from tilewright.mapping.batch import Floats, Ints, chunks
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.evaluate import cost_of, evaluate, loops_of
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.search import Mapped, SearchOptions, loma_candidates


def pareto_front(
    nest: LoopNest, hierarchy: Hierarchy, constraint: Constraint | None, options: SearchOptions
) -> tuple[Mapped, ...]:
    """All mappings that LOMA tries and no other of them beats in cycles and energy at once.

    Sorted by cycles; of mappings with the same cycles and energy the first stands for all.
    """
    found: list[Mapped] = []
    tried = 0
    for setup, orders in loma_candidates(nest, hierarchy, constraint, options):
        tried += orders.count
        for part in chunks(orders):
            batch = evaluate(setup, part, even=options.even)
            found += [
                Mapped(
                    setup=setup,
                    loops=loops_of(batch, column),
                    cost=cost_of(batch, column),
                    candidates=tried,
                )
                for column in front(batch.cycles, batch.energy_pj).tolist()
            ]
    cycles = np.array([mapped.cost.cycles for mapped in found])
    energy = np.array([mapped.cost.energy_pj for mapped in found])
    return tuple(found[i] for i in front(cycles, energy)) if found else ()


def front(cycles: Floats, energy: Floats) -> Ints:
    """Indices of the pairs that no other pair beats, by ascending cycles.

    >>> front(np.array([3.0, 1.0, 2.0, 2.0]), np.array([1.0, 5.0, 4.0, 6.0])).tolist()
    [1, 2, 0]
    """
    order = np.lexsort((np.arange(cycles.size), energy, cycles))
    order = order[np.isfinite(cycles[order])]
    best_before = np.minimum.accumulate(np.concatenate([[np.inf], energy[order]]))[:-1]
    kept: Ints = order[energy[order] < best_before]
    return kept

"""What the tasks of a layout take at least on a core with a model of its own, before they are made.

Elsewhere the cycles of a tile are those of its mapping, which takes about as long to find as the
tasks take to make.
"""

from collections.abc import Iterator

from tilewright.program.boxes import lengths_of
from tilewright.program.layout import Layout
from tilewright.program.lower import Prepared
from tilewright.program.part_cycles import part_cycles

Lengths = tuple[tuple[str, int], ...]
"""How far each loop runs."""


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
                known[lengths] = part_cycles(model, stage, dict(lengths), layout.tilings[number])
            by_core[core] += times * known[lengths]
    return max(by_core)


def _parts(layout: Layout, number: int) -> Iterator[tuple[int, Lengths, int]]:
    """What each core does of a stage at once, and how often; not what it makes on demand."""
    flow = layout.flows.get(number)
    for core, part in enumerate(layout.parts[number]):
        lengths = lengths_of(part)
        if flow is None:
            yield core, tuple(lengths.items()), 1
        elif number not in flow.cascade.on_demand:
            for rows, times in flow.turn_counts[number].items():
                yield core, tuple({**lengths, flow.loops[number]: rows}.items()), times

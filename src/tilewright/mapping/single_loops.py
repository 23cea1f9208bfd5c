"""The compiled list of unrollings of one loop per array dim, where it was built.

A nest and an array are described to it by whole numbers and others; `_unrollings.c` reads them in
the order in which they are written here. What it cannot take is left to Python.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.mapping.attach import Unrolling
from tilewright.mapping.nest import LoopNest
from tilewright.records import quickly_made

try:
    from tilewright.mapping import _unrollings
except ImportError:
    _IS_BUILT = False
else:
    _IS_BUILT = True

MOST_POINTS = 2**52
"""Of a nest: steps of its unrollings are exact in doubles."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Door:
    """What units along some array dims take elements of an operand from."""

    dims: tuple[str, ...]
    """Array dims that share it."""
    same: tuple[str, ...]
    """Loops along which units share an element."""
    elements: float
    """That it moves in a cycle, or holds."""


def is_used() -> bool:
    """Whether the list was built when the package was installed, and so is used."""
    return _IS_BUILT


def single_loops(
    nest: LoopNest,
    choices: Mapping[str, Sequence[tuple[str, int]]],
    stores: Sequence[Door],
    doors: Sequence[Door],
) -> list[tuple[float, int, Unrolling]] | None:
    """Every unrolling with its steps times what the doors make of them, and its steps.

    `choices` are, by array dim, the loops that may run along it with the longest factors; an empty
    name stands for none. None if Python has to serve: also if a store holds too little for one.
    """
    loops = tuple(nest.sizes)
    if (
        not is_used()
        or not choices
        or nest.points >= MOST_POINTS
        or max(map(len, (loops, choices))) > 16
    ):
        return None
    at = {loop: number for number, loop in enumerate(loops)}
    at[""] = -1
    counters = (*stores, *doors)
    numbers = [len(loops), len(choices), len(stores), len(counters), *nest.sizes.values()]
    for tried in choices.values():
        numbers.append(len(tried))
        for loop, most in tried:
            numbers += (at[loop], most)
    for counter in counters:
        apart = sum(
            [1 << number for loop, number in at.items() if loop and loop not in counter.same]
        )
        numbers += [apart if dim in counter.dims else 0 for dim in choices]
    figures = array("d", [counter.elements for counter in counters])
    found = _unrollings.single_loops(tuple(choices), loops, array("q", numbers), figures)
    return None if min(found)[0] < 0 else found

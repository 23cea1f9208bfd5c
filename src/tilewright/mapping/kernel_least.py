"""The order of least energy of an unrolled nest, found by the compiled kernel in one go.

The kernel spreads the unrolling over the levels of the operands, makes the orders and costs them,
as `attach`, `orders` and `kernel` have it, to the last bit; only what is found comes back.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tilewright.mapping import kernel
from tilewright.mapping.attach import Unrolling
from tilewright.mapping.cost import wiring
from tilewright.mapping.evaluate import Loops
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.search import SearchOptions
from tilewright.mapping.wires import joined
from tilewright.records import quickly_made

MOST_POINTS = 2**52
"""Of a nest: products of its sizes are exact in doubles."""

_RELATIONS = 15
"""As many bits as the kernel has relations."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A nest on a core in the kernel's terms: what is the same for all of its unrollings."""

    description: kernel.Description
    """With nothing unrolled."""
    values: "array[float]"
    """What an unrolling is spread over: sizes of loops, array dims, levels of links."""
    array_dims: Mapping[str, int]
    """The array dims, counted."""
    mac_pj: float


@quickly_made
@dataclass(frozen=True)
class Least:
    """An order with where its levels end, what it takes, and out of how many it was chosen."""

    loops: Loops
    energy_pj: float
    tried: int
    figures: Sequence[float] | None = field(default=None, compare=False)
    """Every part of its cost, if the kernel found it."""


def frame_of(nest: LoopNest, hierarchy: Hierarchy) -> Frame | None:
    """What the kernel is told of a nest; None if it is not built or cannot take it."""
    # What an in-memory array takes depends on how it is unrolled, and so does what wires bring.
    ways = [way for ways in hierarchy.sharing.values() for way in ways if way is not None]
    is_wired = not all(way.is_union for way in ways)
    is_simple = hierarchy.array.in_memory is None and not is_wired and nest.points < MOST_POINTS
    description = kernel.describe_nest(nest, hierarchy) if is_simple else None
    if description is None:
        return None
    dims = hierarchy.array.dims
    ranks = {name: rank for rank, name in enumerate(sorted(nest.sizes))}
    values: list[float] = [len(dims)]
    for name, size in nest.dims:
        values += (size, ranks[name])
    for dim, width in dims:
        values += (width, dim in hierarchy.array.systolic_dims)
        values += [hierarchy.serving[letter][dim] for letter in nest.letters]
    for link in wiring(nest.letters, hierarchy).links:
        values += (link.level, link.is_below)
    numbers = {dim: number for number, (dim, _) in enumerate(dims)}
    mac_pj = hierarchy.array.mac_pj * nest.points
    together = joined(nest, hierarchy, {})
    for letter, depth in description.depths:
        values += [mask & _RELATIONS for mask in together.get(letter, (0,) * depth)]
    return Frame(description, array("d", values), numbers, mac_pj)


def least_energy(
    frame: Frame, unrolling: Unrolling, options: SearchOptions, at_most_pj: float
) -> Least | None:
    """The best of the orders in which the factors of each loop stand smallest first.

    At most one loop runs along an array dim. None if no order fits, or none takes at most so much
    energy.
    """
    numbers, places = frame.description.numbers, array("d")
    for dim, pairs in unrolling:
        for loop, factor in pairs:
            places.extend((frame.array_dims[dim], numbers[loop], factor))
    wanted = kernel.Wanted(objective="energy", mac_pj=frame.mac_pj, at_most=at_most_pj)
    limit, even = options.lpf_limit, options.even
    found = kernel.least_order(frame.values, places, frame.description, limit, wanted, even=even)
    if found is None:
        return None
    tried, memory_pj, dims, sizes, ends, figures = found
    names, levels = list(numbers), iter(ends)
    loops = Loops(
        order=tuple((names[dim], size) for dim, size in zip(dims, sizes, strict=True)),
        ends=tuple(
            (letter, tuple(islice(levels, depth))) for letter, depth in frame.description.depths
        ),
    )
    return Least(loops, memory_pj + frame.mac_pj, tried, figures)

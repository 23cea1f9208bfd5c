"""The compiled kernel, where it was built: it costs orders as NumPy does, to the last bit, faster.

A setup is described to it by one array of numbers; `kernel_setup.h` reads them in the order in
which they are written here. What the kernel has no room for is left to NumPy.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd

import numpy as np

from tilewright.mapping.allocate import Allocation
from tilewright.mapping.attach import Levels, Spatial
from tilewright.mapping.batch import Floats, Ints, Orders
from tilewright.mapping.cost import wiring
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.movement import boosts
from tilewright.mapping.nest import LoopNest, NestOperand
from tilewright.mapping.revisits import least_reuse
from tilewright.records import quickly_made

try:
    from tilewright.mapping import _kernel
except ImportError:
    _IS_BUILT = False
else:
    _IS_BUILT = True

_MAX_LOOPS = 64
_GIVEN, _GREEDY, _EVEN = range(3)
_OBJECTIVES = ("latency", "energy", "edp")


@dataclass(frozen=True, eq=False)
class Description:
    """A setup in the kernel's terms."""

    values: "array[float]"
    numbers: Mapping[str, int]
    """The dims of the nest, counted."""
    depths: tuple[tuple[str, int], ...]
    """Operands with the number of their levels."""
    details: int
    """Figures that `details` answers."""
    wires_at: int
    """Where in the values those begin that the memories and ports decide alone."""

    @property
    def levels(self) -> int:
        """Levels of all operands."""
        return sum(depth for _, depth in self.depths)


@quickly_made
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What an order is to be best at."""

    objective: str
    """`latency`, `energy`, or `edp`: their product."""
    mac_pj: float
    """Energy of the multiplications, which is no memory's."""
    at_most: float
    """What is minimised first may not be above this."""


def is_used() -> bool:
    """Whether the kernel was built when the package was installed, and so is used."""
    return _IS_BUILT


def describe(
    nest: LoopNest,
    hierarchy: Hierarchy,
    spatial: Spatial,
    *,
    instances: Sequence[int],
    op_cycles: float,
) -> Description | None:
    """The description of a setup, or None if NumPy has to serve."""
    fixed = _fixed(nest, hierarchy) if is_used() else None
    if fixed is None:
        return None
    values = [*fixed.counts, op_cycles, spatial.drain_cycles]
    for operand, known in zip(nest.operands, fixed.operands, strict=True):
        values += known
        values += _operand(nest, operand, hierarchy, spatial, fixed.numbers)
    wires_at = len(values)
    packed = array("d", values) + _wires(nest.letters, hierarchy)
    packed.extend(_multiplicity(nest, spatial, fixed.places, instances))
    if not _kernel.understands(packed):
        return None
    return Description(packed, fixed.numbers, fixed.depths, fixed.details, wires_at)


def describe_nest(nest: LoopNest, hierarchy: Hierarchy) -> Description | None:
    """The description of a setup in which nothing is unrolled."""
    fixed = _fixed(nest, hierarchy) if is_used() else None
    if fixed is None:
        return None
    values: list[float] = [*fixed.counts, 1.0, 0]
    for operand, known in zip(nest.operands, fixed.operands, strict=True):
        values += known
        chain = hierarchy.chains[operand.letter]
        one_width = operand.letter != "O" or operand.bits == nest.final_bits
        for index in chain:
            values += (index, one_width)
        # Nothing is summed or unrolled at any level, and no factor is uneven.
        values += [0] * (2 * len(chain) + 2)
    wires_at = len(values)
    packed = array("d", values) + _wires(nest.letters, hierarchy)
    packed.extend([1.0] * (3 * len(fixed.places)))
    if not _kernel.understands(packed):
        return None
    return Description(packed, fixed.numbers, fixed.depths, fixed.details, wires_at)


@dataclass(frozen=True, eq=False)
class _Fixed:
    """What the descriptions of a nest have in common, however it is unrolled."""

    numbers: Mapping[str, int]
    depths: tuple[tuple[str, int], ...]
    details: int
    counts: Sequence[int]
    operands: Sequence[Sequence[float]]
    places: Sequence[tuple[str, int | None]]
    """Per link, its operand, and its level if it joins a memory with the level below."""


@lru_cache(maxsize=64)
def _fixed(nest: LoopNest, hierarchy: Hierarchy) -> _Fixed | None:
    """None if NumPy has to serve."""
    numbers = {name: i for i, (name, _) in enumerate(nest.dims)}
    if any(d not in numbers for r in nest.relations for d, _ in r.terms):
        return None
    if any(r.is_zigzags for r in nest.relations_of(nest.operands[0])):
        return None
    letters = nest.letters
    wires = wiring(letters, hierarchy)
    links, groups = len(wires.links), len(wires.groups)
    depths = tuple((letter, len(hierarchy.chains[letter])) for letter in letters)
    return _Fixed(
        numbers=numbers,
        depths=depths,
        details=4 + 5 * links + groups + sum(depth for _, depth in depths),
        counts=[len(numbers), len(letters), len(hierarchy.levels), links, groups],
        operands=[_fixed_operand(nest, o, hierarchy, numbers) for o in nest.operands],
        places=[(link.letter, link.level if link.is_below else None) for link in wires.links],
    )


def with_ports(
    description: Description, letters: tuple[str, ...], hierarchy: Hierarchy
) -> Description:
    """The description of a setup that differs in nothing but how wide the ports are."""
    wires = _wires(letters, hierarchy)
    values = description.values[:]
    values[description.wires_at : description.wires_at + len(wires)] = wires
    return replace(description, values=values)


def greedy_costs(
    description: Description, orders: Orders, *, even: bool
) -> tuple[Allocation, Floats] | None:
    """Allocate and cost orders: cycles and the memories' energy, (2, N), infinite where none fits.

    The ends of a candidate that does not fit mean nothing. None if NumPy has to serve.
    """
    dims = _dims(description, orders)
    if dims is None:
        return None
    ends = np.zeros((description.levels, orders.count), dtype=np.int64)
    fits = np.empty(orders.count, dtype=np.bool_)
    costs = np.empty((2, orders.count))
    mode = _EVEN if even else _GREEDY
    _kernel.costs(description.values, dims, orders.loops, orders.sizes, ends, fits, costs, mode)
    return Allocation(_by_letter(description, ends), fits), costs


def takes(description: Description, orders: Orders) -> bool:
    """Whether the kernel can find the best of these orders itself."""
    return _dims(description, orders) is not None


def best_order(
    description: Description, orders: Orders, wanted: Wanted, *, even: bool
) -> tuple[int, Allocation, Floats] | None:
    """The number of the best order, how it is allocated, and its costs as `greedy_costs` has them.

    None if none fits, or none is as good as wanted.
    """
    dims = _dims(description, orders)
    assert dims is not None
    ends = np.empty((description.levels, 1), dtype=np.int64)
    costs = np.empty((2, 1))
    column = _kernel.best(
        *(description.values, dims, orders.loops, orders.sizes),
        array("d", (wanted.mac_pj, wanted.at_most)),
        _EVEN if even else _GREEDY,
        _OBJECTIVES.index(wanted.objective),
        *(ends, costs),
    )
    if column is None:
        return None
    return column, Allocation(_by_letter(description, ends), np.ones(1, dtype=np.bool_)), costs


def least_order(
    frame: "array[float]",
    places: "array[float]",
    description: Description,
    limit: int | None,
    wanted: Wanted,
    *,
    even: bool,
) -> tuple[int, float, bytes, list[int], list[int], list[float]] | None:
    """As `best_order`, of the ascending orders of a nest that the kernel unrolls itself.

    How many orders there are, the memories' energy of the best, the dims and sizes of its loops,
    the ends of all levels of all operands, and what `cost_details` answers. `kernel_least.py` says
    what `frame` and `places` are.
    """
    return _kernel.least(
        *(description.values, frame, places),
        -1 if limit is None else limit,
        _EVEN if even else _GREEDY,
        array("d", (wanted.mac_pj, wanted.at_most)),
    )


def _by_letter(description: Description, ends: Ints) -> dict[str, Ints]:
    """Rows of all levels of all operands, by operand."""
    rows: dict[str, Ints] = {}
    first = 0
    for letter, depth in description.depths:
        rows[letter] = ends[first : first + depth]
        first += depth
    return rows


def allocated_costs(
    description: Description, orders: Orders, allocation: Allocation
) -> Floats | None:
    """Cost orders whose levels are cut, as `greedy_costs` does."""
    dims = _dims(description, orders)
    if dims is None:
        return None
    ends = np.concatenate([allocation.ends[letter] for letter, _ in description.depths])
    costs = np.empty((2, orders.count))
    values, fits = description.values, allocation.fits
    _kernel.costs(values, dims, orders.loops, orders.sizes, ends, fits, costs, _GIVEN)
    return costs


def cost_details(
    description: Description, orders: Orders, allocation: Allocation, column: int
) -> list[float]:
    """Every part of the cost of one candidate that was costed before.

    Cycles of computing, stalls, loading and storing; accesses, pJ, elements, periods and bits of
    every link; the stall of every port group; the bits that every level of every operand holds.
    """
    dims = _dims(description, orders)
    assert dims is not None
    one = slice(column, column + 1)
    ends = np.concatenate([allocation.ends[letter][:, one] for letter, _ in description.depths])
    figures = array("d", bytes(8 * description.details))
    _kernel.details(
        description.values, dims, orders.loops[:, one], orders.sizes[:, one], ends, figures
    )
    return figures.tolist()


def arrangements(items: Ints, count: int) -> Ints:
    """All `count` arrangements of items in non-increasing order, in cool-lex order, as columns."""
    found = np.empty((items.size, count), dtype=np.int64)
    written = _kernel.arrange(items, found)
    assert written == count
    return found


def _dims(description: Description, orders: Orders) -> bytes | None:
    """Per name of the orders, the number of its dim; None if the kernel cannot take them."""
    if orders.length > _MAX_LOOPS or any(name not in description.numbers for name in orders.names):
        return None
    return bytes(description.numbers[name] for name in orders.names)


def _fixed_operand(
    nest: LoopNest, operand: NestOperand, hierarchy: Hierarchy, numbers: Mapping[str, int]
) -> list[float]:
    """What is said of an operand first: it does not depend on the unrolling."""
    values: list[float] = [operand.letter == "O", operand.bits, nest.final_bits]
    for loops in (nest.irrelevant(operand), nest.relevant(operand)):
        values += [len(loops), *[numbers[loop] for loop in loops]]
    relations = nest.relations_of(operand)
    values.append(len(relations))
    for relation in relations:
        (a, ca), (b, cb) = relation.terms
        step = gcd(ca, cb)
        values += [numbers[a], numbers[b], cb // step, ca // step, relation.size]
        values.append(least_reuse(relation, nest.sizes))
    values.append(len(hierarchy.chains[operand.letter]))
    return values


def _operand(
    nest: LoopNest,
    operand: NestOperand,
    hierarchy: Hierarchy,
    spatial: Spatial,
    numbers: Mapping[str, int],
) -> list[float]:
    """What is said of an operand then: its levels, with what is unrolled at each of them."""
    letter = operand.letter
    fine, whole = spatial.fractional[letter], spatial.whole[letter]
    summed = nest.irrelevant(operand)
    values: list[float] = []
    one_width = letter != "O" or operand.bits == nest.final_bits
    for level, index in enumerate(hierarchy.chains[letter]):
        above = one_width or any(loop in summed for up in fine[level + 1 :] for loop, _ in up)
        values += [index, above]
    values += _unrolled(fine, summed, numbers)
    values.append(fine != whole)
    if fine != whole:
        values += _unrolled(whole, summed, numbers)
    return values + _uneven(fine, numbers)


def _unrolled(levels: Levels, summed: Sequence[str], numbers: Mapping[str, int]) -> list[float]:
    """Per level, whether anything is summed above it, and the dims that are unrolled at it."""
    values: list[float] = []
    summing = [number for number, level in enumerate(levels) if _sums(level, summed)]
    last = max(summing, default=0)
    for number, level in enumerate(levels[:-1]):
        values += (number < last, len(level))
        for loop, factor in level:
            values += (numbers[loop], factor)
    return values


def _sums(level: Sequence[tuple[str, float]], summed: Sequence[str]) -> bool:
    return any(factor > 1 and loop in summed for loop, factor in level)


def _uneven(levels: Levels, numbers: Mapping[str, int]) -> list[float]:
    """Loops with a fractional factor at some level, and their factors at every level."""
    loops = dict.fromkeys(loop for level in levels for loop, f in level if f != int(f))
    values: list[float] = [len(loops)]
    for loop in loops:
        values += [numbers[loop], *[dict(level).get(loop, 1.0) for level in levels[:-1]]]
    return values


@lru_cache(maxsize=64)
def _wires(letters: tuple[str, ...], hierarchy: Hierarchy) -> "array[float]":
    """Memories, links, ports and paths, which are the same for all nests."""
    wires = wiring(letters, hierarchy)
    values: list[float] = []
    for index, (memory, held) in enumerate(hierarchy.levels):
        values += [memory.size_bits, memory.forces_double_buffering, len(held)]
        for letter in held:
            values += [letters.index(letter), hierarchy.chains[letter].index(index)]
    for link in wires.links:
        values += [letters.index(link.letter), link.arch, link.comes_back]
        width = link.port.bits_per_cycle if link.port else 0
        granule = link.port.granularity_bits if link.port else 1
        values += [width, granule, granule / width if width else 1.0]
        values.append(link.memory.read_pj if link.is_read else link.memory.write_pj)
    for group in wires.groups:
        values += [group.bits_per_cycle, len(group.rows), *group.rows]
    for path in (*wires.loads, wires.store):
        values.append(len(path))
        for step in path:
            values += [step.lower, step.upper, step.shared]
    return array("d", values)


def _multiplicity(
    nest: LoopNest,
    spatial: Spatial,
    places: Sequence[tuple[str, int | None]],
    instances: Sequence[int],
) -> list[float]:
    """Per link, copies of its memory, and how much more moves below it than one copy asks for."""
    shares: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
    for operand in nest.operands:
        fine, whole = spatial.fractional[operand.letter], spatial.whole[operand.letter]
        joined = spatial.joined.get(operand.letter, ())
        share = boosts(nest, operand, fine, joined)
        is_even = fine == whole
        shares[operand.letter] = share, share if is_even else boosts(nest, operand, whole, joined)
    values: list[float] = []
    for (letter, level), copies in zip(places, instances, strict=True):
        if level is None:
            values += (copies, 1.0, 1.0)
        else:
            fine_share, whole_share = shares[letter]
            values += (copies, fine_share[level], whole_share[level])
    return values

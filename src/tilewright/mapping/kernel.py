"""The compiled kernel, where it was built: it costs orders as NumPy does, to the last bit, faster.

A setup is described to it by one array of numbers; `kernel_setup.h` reads them in the order in
which they are written here. What the kernel has no room for is left to NumPy.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

from tilewright.mapping.allocate import Allocation
from tilewright.mapping.attach import Levels, Spatial
from tilewright.mapping.batch import Floats, Ints, Orders
from tilewright.mapping.cost import wiring
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.movement import Link, boosts
from tilewright.mapping.nest import LoopNest, NestOperand

try:
    from tilewright.mapping import _kernel
except ImportError:
    _IS_BUILT = False
else:
    _IS_BUILT = True

_MAX_LOOPS = 64
_GIVEN, _GREEDY, _EVEN = range(3)


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

    @property
    def levels(self) -> int:
        """Levels of all operands."""
        return sum(depth for _, depth in self.depths)


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
    if not is_used():
        return None
    numbers = {name: i for i, (name, _) in enumerate(nest.dims)}
    if any(d not in numbers for r in nest.relations for d, _ in r.terms):
        return None
    letters = nest.letters
    wires = wiring(letters, hierarchy)
    memories, links, groups = len(hierarchy.levels), len(wires.links), len(wires.groups)
    values = [len(numbers), len(letters), memories, links, groups, op_cycles, spatial.drain_cycles]
    for operand in nest.operands:
        values += _operand(nest, operand, hierarchy, spatial, numbers)
    packed = array("d", values) + _wires(letters, hierarchy)
    packed.extend(_multiplicity(nest, spatial, wires.links, instances))
    if not _kernel.understands(packed):
        return None
    depths = tuple((letter, len(hierarchy.chains[letter])) for letter in letters)
    details = 4 + 5 * links + groups + sum(depth for _, depth in depths)
    return Description(packed, numbers, depths, details)


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
    rows: dict[str, Ints] = {}
    first = 0
    for letter, depth in description.depths:
        rows[letter] = ends[first : first + depth]
        first += depth
    return Allocation(rows, fits), costs


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


def _operand(
    nest: LoopNest,
    operand: NestOperand,
    hierarchy: Hierarchy,
    spatial: Spatial,
    numbers: Mapping[str, int],
) -> list[float]:
    letter = operand.letter
    is_result = letter == "O"
    fine, whole = spatial.fractional[letter], spatial.whole[letter]
    summed, relevant = nest.irrelevant(operand), nest.relevant(operand)
    values: list[float] = [is_result, operand.bits, nest.final_bits]
    for loops in (summed, relevant):
        values += [len(loops), *[numbers[loop] for loop in loops]]
    relations = nest.relations_of(operand)
    values.append(len(relations))
    for relation in relations:
        (a, ca), (b, cb) = relation.terms
        step = gcd(ca, cb)
        values += [numbers[a], numbers[b], cb // step, ca // step, relation.size]
        values += [nest.sizes[loop] * (1 - 1e-9) for loop in (a, b)]
    chain = hierarchy.chains[letter]
    values.append(len(chain))
    one_width = not is_result or operand.bits == nest.final_bits
    for level, index in enumerate(chain):
        above = one_width or any(loop in summed for up in fine[level + 1 :] for loop, _ in up)
        values += [index, above]
    values += _unrolled(fine, summed, numbers)
    values.append(fine != whole)
    if fine != whole:
        values += _unrolled(whole, summed, numbers)
    return values + _uneven(fine, numbers)


def _unrolled(levels: Levels, summed: Sequence[str], numbers: Mapping[str, int]) -> list[float]:
    """Per level, whether anything is summed above it, and how far each dim is unrolled up to it."""
    values: list[float] = []
    product = [1.0] * len(numbers)
    summing = [any(f > 1 and loop in summed for loop, f in level) for level in levels]
    for number, level in enumerate(levels[:-1]):
        for loop, factor in level:
            product[numbers[loop]] *= factor
        values.append(any(summing[number + 1 :]))
        values += product
    return values


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
    nest: LoopNest, spatial: Spatial, links: Sequence[Link], instances: Sequence[int]
) -> list[float]:
    """Per link, copies of its memory, and how much more moves below it than one copy asks for."""
    shares: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
    for operand in nest.operands:
        fine, whole = spatial.fractional[operand.letter], spatial.whole[operand.letter]
        share = boosts(nest, operand, fine)
        shares[operand.letter] = share, share if fine == whole else boosts(nest, operand, whole)
    values: list[float] = []
    for link, copies in zip(links, instances, strict=True):
        values.append(copies)
        values += [share[link.level] if link.is_below else 1.0 for share in shares[link.letter]]
    return values

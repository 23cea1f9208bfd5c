"""What moves over every link between an operand's levels: how much, how wide, how often.

A link is one operand at one of its levels in one direction. Amounts are per period and per instance
of the memory; a period is the time for which the data of the level below stays put.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from tilewright.machine.model import Direction, Memory, Port
from tilewright.mapping.allocate import Allocation
from tilewright.mapping.attach import Levels, Spatial
from tilewright.mapping.batch import Bools, Floats, Ints, Orders, tensor_elements
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest, NestOperand, Relation, window_elements
from tilewright.mapping.revisits import revisits
from tilewright.mapping.zigzag_sums import zigzags_sums


@dataclass(frozen=True, eq=False)
class Link:
    """One operand at one level in one direction; `level` 0 is next to the array."""

    letter: str
    level: int
    direction: Direction
    memory: Memory
    port: Port | None

    @property
    def is_below(self) -> bool:
        """Whether it joins the memory with the level below it."""
        return self.direction in ("tl", "fl")

    @property
    def is_read(self) -> bool:
        """Whether the memory is read."""
        return self.direction in ("tl", "th")

    @property
    def arch(self) -> int:
        """The arch level whose contents it moves: the lower of the two that it joins."""
        return self.level if self.is_below else self.level + 1

    @property
    def comes_back(self) -> bool:
        """Whether it brings partial sums back to be added to."""
        return self.letter == "O" and self.direction in ("tl", "fh")


@dataclass(frozen=True, eq=False)
class Held:
    """What one operand keeps at each of its levels, (levels, N)."""

    elements: Floats
    bits: Floats
    """Bits per element."""
    top_relevant: Floats
    """Iterations of the relevant loops at the outer end of the level."""


@dataclass(frozen=True, eq=False)
class Movement:
    """All links with their transfers; arrays are (links, N)."""

    links: tuple[Link, ...]
    instances: tuple[int, ...]
    """Per link, the copies of its memory that are at work."""
    exists: Bools
    """Whether anything moves by fractional unrolling; `whole_exists` by whole factors."""
    whole_exists: Bools
    amount: Floats
    """Elements a period by fractional unrolling; `whole_amount` by whole factors."""
    bits: Floats
    whole_amount: Floats
    whole_bits: Floats
    period: Floats
    periods: Floats
    window: Floats
    """Cycles of a period in which data may be replaced if there is no second buffer."""
    average: Floats
    """Whole bits a cycle over a period."""
    held: Mapping[str, Held]
    whole_held: Mapping[str, Held]
    iterations: Floats
    """All temporal iterations, (N,)."""


def movement(
    nest: LoopNest, hierarchy: Hierarchy, spatial: Spatial, orders: Orders, allocation: Allocation
) -> Movement:
    """Everything that has to move when the orders run with the given allocation."""
    parts: list[dict[str, Floats]] = []
    links = links_of(nest.letters, hierarchy)
    held: dict[str, Held] = {}
    whole_held: dict[str, Held] = {}
    for operand in nest.operands:
        letter = operand.letter
        stay = _Stay.of(nest, operand, orders, allocation.ends[letter])
        shares = spatial.joined.get(letter, ())
        fine = _contents(nest, operand, orders, stay, (spatial.fractional[letter], shares))
        whole = (
            fine
            if spatial.fractional[letter] == spatial.whole[letter]
            else _contents(nest, operand, orders, stay, (spatial.whole[letter], shares))
        )
        held[letter], whole_held[letter] = fine.held, whole.held
        own = [link for link in links if link.letter == letter]
        parts.append(_transfers(own, stay, fine, whole))
    joined = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    return Movement(
        links=links,
        instances=instances_of(links, spatial),
        exists=joined["exists"].astype(np.bool_),
        whole_exists=joined["whole_exists"].astype(np.bool_),
        amount=joined["amount"],
        bits=joined["bits"],
        whole_amount=joined["whole_amount"],
        whole_bits=joined["whole_bits"],
        period=joined["period"],
        periods=joined["periods"],
        window=joined["window"],
        average=joined["average"],
        held=held,
        whole_held=whole_held,
        iterations=orders.iterations[-1],
    )


@lru_cache(maxsize=64)
def links_of(letters: tuple[str, ...], hierarchy: Hierarchy) -> tuple[Link, ...]:
    """Every way that data can take, operand by operand; nothing moves above a top memory."""
    links: list[Link] = []
    carriers = dict(hierarchy.links)
    for letter in letters:
        chain = hierarchy.chains[letter]
        below: tuple[Direction, ...] = ("tl", "fl") if letter == "O" else ("tl",)
        above: tuple[Direction, ...] = ("th", "fh") if letter == "O" else ("fh",)
        for level, index in enumerate(chain):
            memory, _ = hierarchy.levels[index]
            links += [
                Link(letter, level, direction, memory, memory.port(carriers[letter], direction))
                for direction in (below + above if level < len(chain) - 1 else below)
            ]
    return tuple(links)


def instances_of(links: Sequence[Link], spatial: Spatial) -> tuple[int, ...]:
    """Per link, the copies of its memory that are at work."""
    counts = {letter: unit_counts(levels) for letter, levels in spatial.fractional.items()}
    return tuple(counts[link.letter][link.level + 1] for link in links)


@dataclass(frozen=True, eq=False)
class _Stay:
    """How long an operand's data stays at each level, after merging what is stationary anyway.

    A loop that an operand does not depend on costs nothing at the level below, so every level hands
    such loops at its inner end down. Row m of the arrays is level m.
    """

    ends: Ints
    cycles: Floats
    """Iterations of the level and all below it."""
    unchanged: Floats
    """Iterations for which the array sees the same element."""
    top_relevant: Floats
    top_irrelevant: Floats
    last_summed: Ints
    """Place of the outermost loop that the operand does not depend on, or -1."""
    extents: Mapping[str, Floats]
    """How far each loop that matters to the operand reaches at the end of each level."""

    @staticmethod
    def of(nest: LoopNest, operand: NestOperand, orders: Orders, ends: Ints) -> "_Stay":
        irrelevant = orders.is_one_of(nest.irrelevant(operand))
        relevant = nest.relevant(operand)
        still = irrelevant & (orders.sizes > 1)
        length, columns = orders.length, orders.columns
        # next_change[p]: the first place from p on whose loop changes the operand.
        next_change = np.empty((length + 1, orders.count), dtype=np.int64)
        next_change[length] = length
        for place in range(length - 1, -1, -1):
            next_change[place] = np.where(irrelevant[place], next_change[place + 1], place)
        merged = next_change[ends, columns]
        begins = np.vstack([np.zeros((1, orders.count), dtype=np.int64), merged[:-1]])
        cycles = orders.iterations[merged, columns]

        def run(marks: Bools) -> Floats:
            first = np.zeros((length + 1, orders.count), dtype=np.int64)
            for place in range(length):
                first[place + 1] = np.where(marks[place], first[place], place + 1)
            inner = np.maximum(first[merged, columns], begins)
            product: Floats = cycles / orders.iterations[inner, columns]
            return product

        related = {loop for r in nest.relations_of(operand) for loop, _ in r.terms}
        backwards = length - 1 - np.argmax(still[::-1], axis=0)
        return _Stay(
            ends=merged,
            cycles=cycles,
            unchanged=orders.iterations[next_change[0], columns],
            top_relevant=run(orders.is_one_of(relevant)),
            top_irrelevant=run(irrelevant),
            last_summed=np.where(still.any(axis=0), backwards, -1),
            extents={
                loop: values[merged, columns]
                for loop, values in orders.extents.items()
                if loop in relevant or loop in related
            },
        )


@dataclass(frozen=True, eq=False)
class _Contents:
    """What lies at each arch level, and how wide; row l is arch level l, row 0 the array."""

    elements: Floats
    bits: Floats
    partial: Bools
    """Whether what crosses into arch level l + 1 from below is still to be added to."""
    moved_bits: Floats
    """Bits of an element that leaves the arch level upwards, and of one that comes back."""
    returned_bits: Floats
    boosts: tuple[float, ...]
    held: Held


def _contents(
    nest: LoopNest,
    operand: NestOperand,
    orders: Orders,
    stay: _Stay,
    spread: tuple[Levels, Sequence[int]],
) -> _Contents:
    levels, joined = spread
    count, depth = orders.count, len(levels) - 1
    extents = dict(stay.extents)
    for loop in dict.fromkeys(loop for loops in levels for loop, _ in loops):
        unrolled = [dict(loops).get(loop, 1.0) for loops in levels[:-1]]
        column: Floats = np.cumprod(np.array(unrolled))[:, None]
        extents[loop] = extents[loop] * column if loop in extents else column
    data = np.ones((depth + 1, count))
    np.rint(tensor_elements(nest, operand, extents, (depth, count)), out=data[1:])
    partial = np.zeros((depth + 1, count), dtype=np.bool_)
    bits = np.full((depth + 1, count), float(operand.bits))
    wide: Bools | None = None
    if operand.letter == "O":
        begins = [np.zeros(count, dtype=np.int64), *stay.ends[:-1]]
        if any(relation.is_zigzags for relation in nest.relations_of(operand)):
            wide = np.zeros_like(partial)
            partial[:-1], wide[:-1] = zigzags_sums(nest, orders, begins, levels)
        else:
            partial[:-1] = _sums(nest, orders, (begins, stay.last_summed), levels)
        bits = np.where(partial, float(operand.bits), float(nest.final_bits))
    whole_bits = float(operand.bits)
    moved_bits = bits if wide is None else np.where(wide, whole_bits, float(nest.final_bits))
    returned_bits = bits if wide is None else np.where(wide, whole_bits, 0.0)
    return _Contents(
        elements=data,
        bits=bits,
        partial=partial,
        moved_bits=moved_bits,
        returned_bits=returned_bits,
        boosts=boosts(nest, operand, levels, joined),
        held=Held(data[1:], bits[1:], stay.top_relevant),
    )


def _sums(
    nest: LoopNest, orders: Orders, places: tuple[Sequence[Ints], Ints], levels: Levels
) -> Bools:
    """Whether loops from the begin of each level on add to what was there before, (levels, N).

    The places are those begins, and that of the outermost loop that is summed over.
    """
    begins, last_summed = places
    result = nest.operands[0]
    summed = nest.irrelevant(result)
    partial = np.zeros((len(begins), orders.count), dtype=np.bool_)
    for level, begin in enumerate(begins):
        above = any(f > 1 and d in summed for loops in levels[level + 1 :] for d, f in loops)
        partial[level] = (last_summed >= begin) | above
    for relation in nest.relations_of(result):
        partial |= revisits(relation, nest.sizes, orders, begins, levels)
    return partial


def boosts(
    nest: LoopNest, operand: NestOperand, levels: Levels, joined: Sequence[int]
) -> tuple[float, ...]:
    """How many elements the instances below each arch level ask for, per instance.

    Different ones along the relations that are `joined` at the level (see `wires`); along others
    every instance asks for its own.
    """
    shares = []
    sizes: dict[str, float] = {}
    relevant, relations = nest.relevant(operand), nest.relations_of(operand)
    related = {d for r in relations for d, _ in r.terms}
    for level, loops in enumerate(levels[:-1]):
        if not loops:
            shares.append(1.0)
            continue
        share = 1.0
        mask = joined[level] if relations else 0
        before = _asked(relations, sizes, mask)
        for loop, factor in loops:
            if loop in relevant:
                share *= factor
            if loop in related:
                sizes[loop] = sizes.get(loop, 1.0) * factor
        after = _asked(relations, sizes, mask)
        # As in ZigZag a share is whole; what wires bring is exact: 12 elements for groups of 5.
        shares.append(
            round(share) * (after / before) if mask > 0 else round(share * after / before)
        )
    return tuple(shares)


def _asked(relations: Sequence[Relation], sizes: Mapping[str, float], joined: int) -> float:
    result = 1.0
    for number, relation in enumerate(relations):
        (a, _), (b, _) = relation.terms
        first, second = int(sizes.get(a, 1)), int(sizes.get(b, 1))
        is_joined = joined >> number & 1
        result *= window_elements(relation, first, second) if is_joined else first * second
    return result


def unit_counts(levels: Levels) -> tuple[int, ...]:
    """Instances at work on every arch level: the units for level 0, then each memory's copies."""
    counts = [1]
    for level in reversed(range(len(levels))):
        if levels[level]:
            above = [factor for loops in levels[level:] for _, factor in loops]
            counts.append(round(round(prod(above), 3)))
        else:
            counts.append(counts[-1])
    return tuple(counts[:0:-1])


def _transfers(
    links: Sequence[Link], stay: _Stay, fine: _Contents, whole: _Contents
) -> dict[str, Floats]:
    """Transfers of all links of one operand; rows in the order of the links."""
    count = stay.cycles.shape[1]
    result = links[0].letter == "O"
    first = np.ones((1, count)) if result else stay.unchanged[None]
    # By arch level: how long its contents stay, and the outermost loops that leave them alone.
    periods = np.concatenate([first, stay.cycles])
    tops = np.concatenate([np.ones((1, count)), stay.top_irrelevant])
    arch = np.array([link.arch for link in links])
    boost = np.array([fine.boosts[k.level] if k.is_below else 1.0 for k in links])[:, None]
    whole_boost = np.array([whole.boosts[k.level] if k.is_below else 1.0 for k in links])[:, None]
    exists = np.ones((len(links), count))
    whole_exists = exists.copy()
    for row, link in enumerate(links):
        if link.comes_back:
            exists[row] = fine.partial[arch[row]]
            whole_exists[row] = whole.partial[arch[row]]
    period, whole_elements = periods[arch], whole.elements[arch]

    def moved(contents: _Contents) -> Floats:
        back = np.array([link.comes_back for link in links])[:, None]
        bits: Floats = np.where(back, contents.returned_bits[arch], contents.moved_bits[arch])
        return bits

    return {
        "exists": exists,
        "whole_exists": whole_exists,
        "amount": fine.elements[arch] * boost,
        "bits": moved(fine),
        "whole_amount": whole_elements * whole_boost,
        "whole_bits": moved(whole),
        "period": period,
        "periods": np.floor(stay.cycles[-1] / period),
        "window": np.trunc(period / tops[arch]),
        "average": np.trunc(whole_elements * whole.bits[arch] / period * whole_boost),
    }

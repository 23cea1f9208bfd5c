"""Small random machines and nests, and the best of all their mappings by trying every one.

Nothing here shares code with the search that it checks, except the cost model.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import ceil, gcd, prod

import numpy as np
from tests.mapping_cases import ALL, CARRIERS, conv_nest, product_nest

from tilewright.machine.model import Array, Core, Machine, Memory, Port, Sharing
from tilewright.mapping.allocate import Allocation
from tilewright.mapping.batch import orders_of
from tilewright.mapping.evaluate import Setup, evaluate_allocated
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of
from tilewright.mapping.nest import LoopNest, NestOperand
from tilewright.mapping.search import SearchOptions, loma_candidates

Order = tuple[tuple[str, int], ...]
Ends = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A nest and the memories it is to run on."""

    nest: LoopNest
    hierarchy: Hierarchy


def random_case(seed: int, primes: int = 4, *, wired: bool = False) -> Case:
    """A nest with few prime factors on a machine with two or three levels, some of them shared.

    If it is `wired`, units get some operands together, in one way or another.
    """
    chance = random.Random(seed)
    nest = _random_nest(chance, primes)
    machine = _random_machine(chance, nest)
    if wired:
        machine = _wired(random.Random(seed + 1), machine)
    links = {operand.letter: CARRIERS[operand.letter] for operand in nest.operands}
    return Case(nest, hierarchy_of(machine, machine.cores[0], links))


def setups_of(case: Case) -> list[Setup]:
    """Every unrolling that the searches try."""
    found = loma_candidates(case.nest, case.hierarchy, None, SearchOptions(lpf_limit=1))
    return [setup for setup, _ in found]


def _random_nest(chance: random.Random, primes: int) -> LoopNest:
    factors = [chance.choice((2, 2, 2, 3, 3, 5)) for _ in range(primes)]
    is_product = chance.random() < 0.4
    names = ["D", "C", "K"] if is_product else ["B", "K", "C", "OX", "FX"]
    sizes = dict.fromkeys(names, 1)
    for factor in factors:
        sizes[chance.choice(names)] *= factor
    if is_product:
        return product_nest(sizes["D"], sizes["C"], sizes["K"])
    bits = chance.choice(((16, 8), (32, 8), (8, 8)))
    return conv_nest(sizes, stride=chance.choice((1, 2)), bits=bits)


def _random_machine(chance: random.Random, nest: LoopNest) -> Machine:
    dims = ("D1", "D2")[: chance.choice((1, 1, 2))]
    array = Array(
        dims=tuple((dim, chance.choice((1, 2, 3))) for dim in dims),
        mac_pj=0.5,
        systolic_dims=dims[: chance.choice((0, 1))],
    )
    carriers = [CARRIERS[operand.letter] for operand in nest.operands]
    memories = []
    for operand in carriers:
        if chance.random() < 0.7:
            served = dims[: chance.randint(0, len(dims))]
            bits = chance.choice((16, 32, 64, 128, 512))
            memories.append(_memory(chance, f"reg_{operand}", (operand,), served, bits))
    shared = tuple(o for o in carriers if chance.random() < 0.75)
    if shared:
        bits = chance.choice((64, 128, 256, 512, 1024, 4096))
        memories.append(_memory(chance, "sram", shared, dims, bits))
    memories.append(_memory(chance, "dram", tuple(carriers), dims, 1 << 24))
    return Machine(name="random", cores=(Core(name="c", array=array, memories=tuple(memories)),))


def _wired(chance: random.Random, machine: Machine) -> Machine:
    """The machine with ways of sharing at some memories."""
    (core,) = machine.cores
    memories = []
    for memory in core.memories:
        ways = []
        for operand in memory.operands:
            sums = [tuple((dim, chance.choice((1, 1, 2))) for dim, _ in core.array.dims)]
            ways += [
                Sharing(operand=operand, terms=terms, is_union=not terms)
                for terms in sums[: chance.choice((0, 1, 1))] or [()][: chance.choice((0, 1))]
            ]
        memories.append(replace(memory, sharing=tuple(ways)))
    return replace(machine, cores=(replace(core, memories=tuple(memories)),))


def _memory(
    chance: random.Random,
    name: str,
    operands: tuple[str, ...],
    served: tuple[str, ...],
    bits: int,
) -> Memory:
    """A memory whose uses are dealt out to one, two or many ports."""
    uses = [(operand, direction) for operand in operands for direction in ALL]
    piles: dict[int, list[int]] = {}
    ports = chance.choice((1, 2, len(uses)))
    for i in range(len(uses)):
        piles.setdefault(i if ports == len(uses) else chance.randrange(ports), []).append(i)
    width = chance.choice((8, 16, 32, 64))
    price = chance.choice((0.1, 1.0, 5.0))
    return Memory(
        name=name,
        size_bits=bits,
        operands=operands,
        ports=tuple(
            Port(
                name=f"port_{number}",
                kind="read_write",
                bits_per_cycle=width,
                granularity_bits=chance.choice((8, width)),
                uses=tuple(uses[i] for i in pile),
            )
            for number, pile in sorted(piles.items())
        ),
        served_dims=served,
        read_pj=price,
        write_pj=price * chance.choice((1.0, 1.5)),
        role="scratchpad",
        forces_double_buffering=chance.random() < 0.1,
    )


def prime_orders(setup: Setup) -> list[Order]:
    """All different orders of the prime factors of the temporal loops."""
    factors: list[tuple[str, int]] = []
    for name, size in setup.spatial.temporal:
        divisor = 2
        while size > 1:
            while size % divisor == 0:
                factors.append((name, divisor))
                size //= divisor
            divisor += 1
    return sorted(set(permutations(factors))) if factors else [((setup.nest.dims[0][0], 1),)]


def every_mapping(setup: Setup) -> Iterator[tuple[Order, dict[str, Ends]]]:
    """Every order with every way of ending levels that fits all memories."""
    letters = [operand.letter for operand in setup.nest.operands]
    sizes = [memory.size_bits for memory, _ in setup.hierarchy.levels]
    for order in prime_orders(setup):
        choices = [_choices(setup, operand, order) for operand in setup.nest.operands]
        for picked in product(*choices):
            used = [Fraction(0)] * len(sizes)
            for _, parts in picked:
                for memory, bits in parts:
                    used[memory] += bits
            if all(u <= size for u, size in zip(used, sizes, strict=True)):
                yield order, {x: ends for x, (ends, _) in zip(letters, picked, strict=True)}


def _choices(
    setup: Setup, operand: NestOperand, order: Order
) -> list[tuple[Ends, list[tuple[int, Fraction]]]]:
    """Ways of ending an operand's levels, with the bits that each level takes."""
    depth = len(setup.hierarchy.chains[operand.letter])
    result = []
    for cuts in combinations_with_replacement(range(len(order) + 1), depth - 1):
        ends = (*cuts, len(order))
        parts = [
            (memory, _level_bits(setup, operand, order, ends, level))
            for level, memory in enumerate(setup.hierarchy.chains[operand.letter])
        ]
        result.append((ends, parts))
    return result


def _level_bits(
    setup: Setup, operand: NestOperand, order: Order, ends: Ends, level: int
) -> Fraction:
    nest = setup.nest
    unrolled = setup.spatial.fractional[operand.letter]
    memory, _ = setup.hierarchy.levels[setup.hierarchy.chains[operand.letter][level]]
    elements = _elements(setup, operand, order[: ends[level]], level)
    whole = _elements(setup, operand, order, level)
    if memory.forces_double_buffering and elements < whole:
        elements *= 2
    if operand.letter != "O":
        return elements * operand.bits
    summed = nest.irrelevant(operand)
    begin = 0 if level == 0 else ends[level - 1]
    while level > 0 and begin < len(order) and order[begin][0] in summed:
        begin += 1
    left = any(loop in summed for loop, _ in order[begin:] if nest.sizes[loop] > 1)
    above = any(loop in summed for loops in unrolled[level + 1 :] for loop, _ in loops)
    return elements * (operand.bits if left or above else nest.final_bits)


def _elements(setup: Setup, operand: NestOperand, inside: Order, level: int) -> Fraction:
    extents: dict[str, Fraction] = {}
    for loop, size in inside:
        extents[loop] = extents.get(loop, Fraction(1)) * size
    for loops in setup.spatial.fractional[operand.letter][: level + 1]:
        for loop, factor in loops:
            exact = Fraction(factor).limit_denominator(10_000)
            extents[loop] = extents.get(loop, Fraction(1)) * exact
    count = Fraction(1)
    for loop in setup.nest.relevant(operand):
        count *= extents.get(loop, Fraction(1))
    for relation in setup.nest.relations_of(operand):
        (a, ca), (b, cb) = relation.terms
        first, second = int(extents.get(a, Fraction(1))), int(extents.get(b, Fraction(1)))
        step = gcd(ca, cb)
        seen = first * second - max(0, second - ca // step) * (first - cb // step)
        count *= min(seen, relation.size)
    return count


@dataclass(frozen=True)
class Optimum:
    """The least cycles, energy and product of any mapping, and how many there are."""

    cycles: float
    energy_pj: float
    product: float
    count: int


def optimum(setup: Setup) -> Optimum:
    """The best that any mapping of one unrolling reaches, by costing all of them."""
    rows = list(every_mapping(setup))
    best = Optimum(np.inf, np.inf, np.inf, len(rows))
    for begin in range(0, len(rows), 4096):
        part = rows[begin : begin + 4096]
        ends = {
            operand.letter: np.array([e[operand.letter] for _, e in part], dtype=np.int64).T
            for operand in setup.nest.operands
        }
        allocation = Allocation(ends, np.ones(len(part), dtype=np.bool_))
        batch = evaluate_allocated(setup, orders_of([order for order, _ in part]), allocation)
        product_ = np.where(
            batch.fits, batch.cycles * np.where(batch.fits, batch.energy_pj, 1), np.inf
        )
        best = Optimum(
            min(best.cycles, float(batch.cycles.min())),
            min(best.energy_pj, float(batch.energy_pj.min())),
            min(best.product, float(product_.min())),
            len(rows),
        )
    return best


def ideal_passes(setup: Setup) -> int:
    """Temporal iterations of an unrolling."""
    return ceil(prod(size for _, size in setup.spatial.temporal))

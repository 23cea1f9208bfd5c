"""How much of each memory a mapping that was read from a file fills.

A result is as wide as its sums in every memory into which more is added to it: by a loop that is
summed over, or by one of a nest that scatters that returns to where it was before.
"""

from collections.abc import Mapping, Sequence
from math import floor, gcd, prod

from tilewright.mapping.evaluate import Setup
from tilewright.mapping.nest import LoopNest, NestOperand, Relation
from tilewright.mapping.search import Mapped

ROUNDING = 1e-9

_Lengths = Mapping[str, float]
"""How far loops reach; a loop that is not named has one step."""


def shares(mapped: Mapped) -> dict[str, float]:
    """The share of its memory's room that operands take together, by memory."""
    setup, ends = mapped.setup, dict(mapped.loops.ends)
    filled: dict[str, float] = {}
    for operand in setup.nest.operands:
        begin = 0
        chain = setup.hierarchy.chains[operand.letter]
        for level, (index, end) in enumerate(zip(chain, ends[operand.letter], strict=True)):
            memory, _ = setup.hierarchy.levels[index]
            inside = _reached(setup, operand, mapped.loops.order[:end], level)
            bits = operand.bits
            if operand == setup.nest.operands[0] and not _is_added_to(mapped, begin, level):
                bits = setup.nest.final_bits
            share = _elements(setup.nest, operand, inside) * bits / memory.size_bits
            filled[memory.name] = filled.get(memory.name, 0.0) + share
            begin = _without_change(setup.nest, operand, mapped.loops.order, end)
    return filled


def _reached(
    setup: Setup, operand: NestOperand, order: Sequence[tuple[str, int]], level: int
) -> _Lengths:
    """How far loops in time reach, together with what is unrolled below a level's memory."""
    unrolled = setup.spatial.fractional[operand.letter][: level + 1]
    lengths: dict[str, float] = {}
    for loop, steps in (*order, *(pair for loops in unrolled for pair in loops)):
        lengths[loop] = lengths.get(loop, 1.0) * steps
    return lengths


def _without_change(
    nest: LoopNest, operand: NestOperand, order: Sequence[tuple[str, int]], end: int
) -> int:
    """Behind the loops from an end on which the operand stays the same: it need not leave."""
    while end < len(order) and order[end][0] in nest.irrelevant(operand):
        end += 1
    return end


def _is_added_to(mapped: Mapped, begin: int, level: int) -> bool:
    """Whether loops outside a begin add to results that a level's memory got before."""
    setup, order = mapped.setup, mapped.loops.order
    nest, result = setup.nest, setup.nest.operands[0]
    above = (pair for loops in setup.spatial.fractional["O"][level + 1 :] for pair in loops)
    summed = nest.irrelevant(result)
    if any(loop in summed and steps > 1 for loop, steps in (*order[begin:], *above)):
        return True
    inside = _reached(setup, result, order[:begin], level)
    return any(_returns(relation, inside, nest.sizes) for relation in nest.relations_of(result))


def _returns(relation: Relation, inside: _Lengths, whole: Mapping[str, int]) -> bool:
    """Whether passes of the loops inside have more elements, one by one, than all together."""
    (a, _), (b, _) = relation.terms
    first, second = inside.get(a, 1.0), inside.get(b, 1.0)
    passes = whole[a] * whole[b] / (first * second)
    one_by_one = passes * _met(relation, first, second)
    return one_by_one > _met(relation, whole[a], whole[b]) * (1 + ROUNDING)


def _met(relation: Relation, first: float, second: float) -> float:
    """Different elements along a target that two loops meet."""
    (_, ca), (_, cb) = relation.terms
    step = gcd(ca, cb)
    twice = max(0.0, first - cb // step) * max(0.0, second - ca // step)
    return first * second - twice


def _elements(nest: LoopNest, operand: NestOperand, lengths: _Lengths) -> float:
    """Elements of an operand that loops meet which reach so far."""
    along = prod(lengths.get(loop, 1.0) for loop in nest.relevant(operand))
    for relation in nest.relations_of(operand):
        first, second = (floor(lengths.get(loop, 1.0)) for loop, _ in relation.terms)
        along *= min(_met(relation, first, second), relation.size)
    return along

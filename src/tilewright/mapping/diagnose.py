"""Why a nest has no mapping: which memory, which operand, how many bits short."""

from collections.abc import Mapping
from math import prod

from tilewright.errors import Problem
from tilewright.machine.model import Memory
from tilewright.mapping.attach import Spatial, attach
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest, NestOperand, window_elements
from tilewright.mapping.obstacles import USUAL_BITS, narrower_hint
from tilewright.mapping.spatial import UnrollOptions, unrollings
from tilewright.units import format_bits


def operand_elements(nest: LoopNest, operand: NestOperand, extents: Mapping[str, float]) -> float:
    """Elements of an operand when its loops have the given extents; others are at 1."""
    size = prod(extents.get(loop, 1.0) for loop in nest.relevant(operand))
    for relation in nest.relations_of(operand):
        (a, _), (b, _) = relation.terms
        size *= window_elements(relation, int(extents.get(a, 1)), int(extents.get(b, 1)))
    return size


def why_not(nest: LoopNest, hierarchy: Hierarchy, constraint: Constraint | None) -> Problem:
    """The reason that keeps a nest from being mapped, with figures."""
    found = unrollings(nest, hierarchy, constraint, UnrollOptions())
    if not found:
        return Problem(message="no unrolling fits the array and its ports")
    spatial = attach(nest, hierarchy, found[0])
    shortages = []
    for index, (memory, letters) in enumerate(hierarchy.levels):
        needs = {letter: _least_bits(nest, hierarchy, spatial, letter, index) for letter in letters}
        short = sum(needs.values()) - memory.size_bits
        if short > 0:
            shortages.append((short, memory, needs))
    if shortages:
        short, memory, needs = max(shortages, key=lambda shortage: shortage[0])
        widest = max(operand.bits for operand in nest.operands if operand.letter in needs)
        return _too_small(short, memory, needs, widest)
    missing = _missing_port(hierarchy)
    if missing:
        return Problem(message=missing, hint="`tilewright check` says more")
    if constraint is not None and constraint.order:
        return _order_fault(constraint, dict(spatial.temporal))
    return Problem(
        message="each operand fits, but no order of the loops fits them all at once",
        hint="a larger memory, another unrolling or a higher --lpf-limit",
    )


def _order_fault(constraint: Constraint, temporal: Mapping[str, int]) -> Problem:
    """What keeps a given order of loops from being that of any mapping."""
    given: dict[str, int] = {}
    for loop, size in constraint.order:
        given[loop] = given.get(loop, 1) * (size or 1)
    for loop, size in given.items():
        left = temporal.get(loop, 1)
        if loop != "*" and left % size:
            return Problem(
                message=f"the temporal_ordering of mapping entry {constraint.name!r} has {loop} "
                f"{size} in all, and the unrolling leaves {left} of it to time",
                hint=f"sizes of {loop} whose product divides {left}, or [{loop}, '*']",
            )
    return Problem(
        message="no order of the loops that fits agrees with the temporal_ordering of mapping "
        f"entry {constraint.name!r}",
        hint="name each loop once, leave the rest open with ['*', '*'], or raise --lpf-limit",
    )


def _least_bits(
    nest: LoopNest, hierarchy: Hierarchy, spatial: Spatial, letter: str, index: int
) -> int:
    """Bits an operand takes of a memory whatever the order: all of it at its top, else a tile."""
    operand = next(o for o in nest.operands if o.letter == letter)
    chain = hierarchy.chains[letter]
    if chain[-1] == index:
        summed = nest.irrelevant(operand) if letter == "O" else ()
        here = chain[0] == index and any(loop in summed for loop, _ in spatial.temporal)
        bits = nest.final_bits if letter == "O" and not here else operand.bits
        return int(operand_elements(nest, operand, nest.sizes)) * bits
    tile: dict[str, float] = {}
    for loops in spatial.fractional[letter][: chain.index(index) + 1]:
        for loop, factor in loops:
            tile[loop] = tile.get(loop, 1.0) * factor
    return int(operand_elements(nest, operand, tile) * operand.bits)


def _too_small(short: float, memory: Memory, needs: Mapping[str, int], widest_bits: int) -> Problem:
    parts = ", ".join(f"{letter} {format_bits(bits)}" for letter, bits in needs.items())
    total = sum(needs.values())
    hint = f"{format_bits(total)} of {memory.name} would do, or a larger memory above it"
    if widest_bits > memory.size_bits:
        hint = f"{narrower_hint(min(USUAL_BITS, memory.size_bits))}\nor {hint}"
    return Problem(
        message=f"memory {memory.name} has {format_bits(memory.size_bits)} and needs "
        f"at least {format_bits(total)} ({parts}): {int(short):,} bits short",
        hint=hint,
    )


def _missing_port(hierarchy: Hierarchy) -> str:
    for letter, chain in hierarchy.chains.items():
        for level in range(len(chain)):
            for direction in ("fl",) if letter == "O" else ("tl",):
                if hierarchy.port(letter, level, direction) is None:
                    memory = hierarchy.memory(letter, level)
                    return f"{letter} has no `{direction}` port in {memory.name}"
    return ""

"""How the loops of a nest may be unrolled over the dims of a core's array.

The rules are ZigZag 3.9's: what the ports next to the array can feed limits each factor, a user's
unrolling is cut down to what is legal, array dims that the user leaves out are filled in the best
ways found, and what the lowest memories cannot hold shrinks the result.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

from tilewright.machine.model import Memory, Sharing
from tilewright.machine.sharing import distinct_elements
from tilewright.mapping.attach import Unrolling
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest, NestOperand
from tilewright.mapping.spatial_search import Pairs, best_fillings, fillings
from tilewright.mapping.wires import Terms, axes_of, clash
from tilewright.mapping.zigzag_order import zigzag_order
from tilewright.records import quickly_made

_Factors = dict[str, dict[str, int]]
"""An unrolling while it is being made: by array dim, then by loop, the factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrollOptions:
    """`mixed` tries several loops on one array dim; `limit` candidates are kept."""

    mixed: bool = False
    limit: int = 3
    aliased: bool = False
    """Shrink what several candidates have in common together, as ZigZag does."""
    by_value: bool = False
    """Give factors that were equal the same new value when they shrink, as ZigZag does."""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A lowest memory as one of its operands sees it: how many units it can serve at once."""

    dims: tuple[str, ...]
    """Array dims that share one copy of the memory, in ZigZag's order."""
    same: tuple[str, ...]
    """Loops along which units share an element."""
    elements: float
    """That the memory holds, and, where units are tied together, that it moves in a cycle."""
    sharing: Sharing | None
    """Wires that tie units together."""
    held: float
    """Elements that the memory holds."""
    axes: tuple[Terms, ...]
    """The index of the operand, if there are wires."""


def unrollings(
    nest: LoopNest, hierarchy: Hierarchy, constraint: Constraint | None, options: UnrollOptions
) -> tuple[Unrolling, ...]:
    """Candidates for the unrolling, the most promising first; there is always one.

    An array dim that the constraint leaves out is filled with the loops that it hints at, or with
    any loop where it gives no hint. With all array dims given there is exactly one candidate.
    """
    limits = factor_limits(nest, hierarchy)
    given = _given(nest, hierarchy, constraint, limits)
    open_dims = [dim for dim, _ in hierarchy.array.dims if dim not in given]
    if not open_dims or not nest.dims:
        return (limited(hierarchy, feeds(nest, hierarchy), given, by_value=options.by_value),)
    hints = dict(constraint.hints) if constraint else {}
    choices = []
    for dim in open_dims:
        loops = [loop for loop in hints.get(dim, ()) if loop in nest.sizes]
        ordered = zigzag_order(hints[dim] if loops else nest.sizes, "loop")
        size = hierarchy.array.sizes[dim]
        choices.append(fillings(ordered, limits[dim], size, mixed=options.mixed))
    chosen = best_fillings(nest.sizes, _loop_totals(given), choices, options.limit)
    # ZigZag shrinks a filling once for all candidates that it stands in, also for earlier ones.
    fresh: dict[tuple[str, Pairs], dict[str, int]] = {}
    lowest = feeds(nest, hierarchy)
    candidates = []
    for filling in chosen:
        places = zip(open_dims, filling, strict=True)
        filled = {
            dim: fresh.setdefault((dim, pairs), dict(pairs)) if options.aliased else dict(pairs)
            for dim, pairs in places
        }
        cut = limited(hierarchy, lowest, given | filled, by_value=options.by_value)
        for dim, pairs in cut:
            if dim in filled:
                filled[dim].update(pairs)
        candidates.append((cut, filled))
    final = (
        tuple((dim, tuple(filled[dim].items()) if dim in filled else pairs) for dim, pairs in found)
        for found, filled in candidates
    )
    return tuple(dict.fromkeys(final))


def factor_limits(nest: LoopNest, hierarchy: Hierarchy) -> Mapping[str, Mapping[str, int]]:
    """Per array dim and loop the largest factor: loop size, array size, and elements per cycle.

    The port of a lowest memory limits each loop that its operand is not broadcast along. A limit
    of 0 says that the port needs several cycles for a single element.
    """
    limits = {
        dim: {loop: min(size, units) for loop, size in nest.dims}
        for dim, units in hierarchy.array.dims
    }
    for memory, operand in _lowest(nest, hierarchy):
        elements = elements_per_cycle(hierarchy, memory, operand)
        if elements == inf:
            continue
        same = nest.irrelevant(operand)
        for dim in memory.served_dims:
            for loop, most in limits.get(dim, {}).items():
                if elements < most and loop not in same:
                    limits[dim][loop] = int(elements)
    return limits


def _lowest(nest: LoopNest, hierarchy: Hierarchy) -> Iterator[tuple[Memory, NestOperand]]:
    """Memories with nothing below them, bottom-up, once for each operand of the nest they hold.

    As in ZigZag, a memory above another one for any of its operands does not count, even if it is
    the lowest memory of its other operands.
    """
    operands = {operand.letter: operand for operand in nest.operands}
    below: list[str] = []
    for memory, letters in hierarchy.levels:
        if not any(letter in below for letter in letters):
            for letter in letters:
                if letter in operands:
                    yield memory, operands[letter]
        below += letters


def elements_per_cycle(hierarchy: Hierarchy, memory: Memory, operand: NestOperand) -> float:
    """Elements that the operand's port moves between memory and array in a cycle."""
    carrier = dict(hierarchy.links)[operand.letter]
    port = memory.port(carrier, "fl" if operand.letter == "O" else "tl")
    return port.bits_per_cycle // operand.bits if port is not None and operand.bits else inf


def _given(
    nest: LoopNest,
    hierarchy: Hierarchy,
    constraint: Constraint | None,
    limits: Mapping[str, Mapping[str, int]],
) -> _Factors:
    """What the constraint unrolls, cut down to what is legal; dims in the constraint's order."""
    units = hierarchy.array.sizes
    given: _Factors = {
        dim: {
            loop: max(1, min(factor, limits[dim][loop]))
            for loop, factor in pairs
            if loop in nest.sizes
        }
        for dim, pairs in (constraint.spatial if constraint else ())
        if dim in units
    }
    for dim, factors in given.items():
        while prod(factors.values()) > units[dim]:
            del factors[zigzag_order(factors, "loop")[0]]
    for loop in _loop_totals(given):
        while _loop_totals(given).get(loop, 1) > nest.sizes[loop]:
            holders = [dim for dim in zigzag_order(given, "array_dim") if loop in given[dim]]
            del given[zigzag_order(holders, "array_dim")[0]][loop]
    return given


def _loop_totals(factors: _Factors) -> dict[str, int]:
    """Per loop the product of its factors over all array dims."""
    totals: dict[str, int] = {}
    for loops in factors.values():
        for loop, factor in loops.items():
            totals[loop] = totals.get(loop, 1) * factor
    return totals


def feeds(nest: LoopNest, hierarchy: Hierarchy) -> tuple[Feed, ...]:
    """What the lowest memories can serve, memory by memory and operand by operand."""
    carriers = dict(hierarchy.links)
    found = []
    for memory, operand in _lowest(nest, hierarchy):
        carrier = carriers[operand.letter]
        sharing = next((s for s in memory.sharing if s.operand == carrier and s.terms), None)
        if operand.letter in hierarchy.unions:
            sharing = None
        held = elements = memory.size_bits / operand.bits if operand.bits else inf
        if sharing is not None:
            elements = min(held, elements_per_cycle(hierarchy, memory, operand))
        found.append(
            Feed(
                dims=zigzag_order(memory.served_dims, "array_dim"),
                same=nest.irrelevant(operand),
                elements=elements,
                sharing=sharing,
                held=held,
                axes=axes_of(nest, operand) if sharing is not None else (),
            )
        )
    return tuple(found)


def limited(
    hierarchy: Hierarchy, lowest: Sequence[Feed], factors: _Factors, *, by_value: bool = False
) -> Unrolling:
    """The unrolling after the lowest memories have cut it down to what they hold and feed."""
    for feed in lowest:
        apart = 1
        for dim in feed.dims:
            for loop, factor in factors.get(dim, {}).items():
                if loop not in feed.same:
                    apart *= factor
        # Units that share elements need no more of them than units that do not.
        if apart <= feed.elements:
            continue
        places = _moving(feed, factors)
        if feed.sharing is not None and _is_tied(hierarchy, feed, feed.sharing, factors):
            factors = _shrunk_to_sharing(factors, places, feed.sharing, feed.elements)
        elif apart > feed.held:
            factors = _shrunk_to_capacity(factors, places, feed.held, by_value=by_value)
    # A loop on several dims is evened out in this order: given dims first, as the file lists them.
    dims = [*factors, *[dim for dim, _ in hierarchy.array.dims if dim not in factors]]
    return tuple([(dim, tuple(factors[dim].items()) if dim in factors else ()) for dim in dims])


def _is_tied(hierarchy: Hierarchy, feed: Feed, sharing: Sharing, factors: _Factors) -> bool:
    """Whether the units on a wire, and only those, want one element of what the memory holds."""
    wires = dict(sharing.terms)
    along = (
        (dim, tuple((loop, f) for loop, f in factors.get(dim, {}).items() if f > 1))
        for dim, _ in hierarchy.array.dims
        if dim in wires and dim in feed.dims
    )
    places = tuple((dim, pairs) for dim, pairs in along if pairs)
    return clash(sharing.terms, places, feed.axes) is None


def _moving(feed: Feed, factors: _Factors) -> list[tuple[str, str]]:
    """(array dim, loop) that give units under one memory instance elements of their own."""
    dims = [dim for dim in feed.dims if dim in factors]
    loops = [loop for dim in dims for loop in factors[dim] if loop not in feed.same]
    if len(loops) > 1:
        loops = list(zigzag_order(loops, "loop"))
    return [(dim, loop) for loop in loops for dim in dims if loop in factors[dim]]


def _shrunk_to_capacity(
    factors: _Factors, places: Sequence[tuple[str, str]], held: float, *, by_value: bool
) -> _Factors:
    """The factors, the largest shrunk until the memory holds an element for each unit.

    ZigZag gives factors that were equal the same new value, `by_value`, which leaves more units
    than there are elements. It can map those only where fewer are busy on average.
    """
    old = [factors[dim][loop] for dim, loop in places]
    new = [*old]
    while prod(new) > held and max(new, default=1) > 1:
        new[new.index(max(new))] -= 1
    if by_value:
        values = dict(zip(old, new, strict=True))
        new = [values[factor] for factor in old]
    return _replaced(factors, dict(zip(places, new, strict=True)))


def _shrunk_to_sharing(
    factors: _Factors, places: Sequence[tuple[str, str]], sharing: Sharing, most: float
) -> _Factors:
    """The factors, the largest shrunk until units need at most so many elements at once.

    Units that the sharing ties together need one element; ZigZag knows no such sharing.
    """
    new = {(dim, loop): factors[dim][loop] for dim, loop in places}
    tied = [dim for dim, _ in sharing.terms]
    while max(new.values(), default=1) > 1:
        extents = {d: prod(f for (dim, _), f in new.items() if dim == d) for d in tied}
        apart = prod(f for (dim, _), f in new.items() if dim not in tied)
        if distinct_elements(sharing, extents) * apart <= most:
            break
        new[max(new, key=new.__getitem__)] -= 1
    return _replaced(factors, new)


def _replaced(factors: _Factors, new: Mapping[tuple[str, str], int]) -> _Factors:
    return {
        dim: {loop: new.get((dim, loop), factor) for loop, factor in loops.items()}
        for dim, loops in factors.items()
    }


def violations(
    nest: LoopNest, hierarchy: Hierarchy, unrolling: Unrolling, *, may_idle: bool = False
) -> Iterator[str]:
    """What is wrong with an unrolling: nothing yielded means that the array can run it.

    With `may_idle` several dims together may have more units for a loop than it has iterations.
    """
    array = hierarchy.array.sizes
    if sorted(dim for dim, _ in unrolling) != sorted(array):
        yield f"array dims {[dim for dim, _ in unrolling]} are not {list(array)}"
        return
    for dim, pairs in unrolling:
        units = prod(factor for _, factor in pairs)
        if units > array[dim]:
            yield f"{dim} has {array[dim]} units, {units} are used"
        for loop, factor in pairs:
            if loop not in nest.sizes or factor < 1:
                yield f"{dim} unrolls {loop} by {factor}"
    for loop, size in nest.dims:
        total = prod(factor for _, pairs in unrolling for name, factor in pairs if name == loop)
        if total > size and not may_idle:
            yield f"{loop} has {size} iterations, {total} are unrolled"
    for operand in nest.operands:
        yield from _overfed(nest, hierarchy, unrolling, operand)


def _overfed(
    nest: LoopNest, hierarchy: Hierarchy, unrolling: Unrolling, operand: NestOperand
) -> Iterator[str]:
    """Single factors that ask a lowest port for more bits in a cycle than it has."""
    chains = hierarchy.chains
    level = chains[operand.letter][0]
    memory, letters = hierarchy.levels[level]
    port = hierarchy.port(operand.letter, 0, "fl" if operand.letter == "O" else "tl")
    if port is None or any(chains[letter][0] != level for letter in letters):
        return
    for dim, pairs in unrolling:
        for loop, factor in pairs:
            feeds = dim in memory.served_dims and loop not in nest.irrelevant(operand)
            if feeds and factor > 1 and factor * operand.bits > port.bits_per_cycle:
                yield f"{memory.name} cannot feed {factor} {operand.letter} along {dim} at once"

"""Choosing tiles: how far an op's loops run in one task, so that what it touches fits.

Every combination of a few lengths per loop is costed at once, in arrays: what lies in each memory,
what has to be moved for each order of the tiles, and how long computing and moving take.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import prod

from tilewright.network.graph import Index, Op
from tilewright.program import tile_grid, tile_kernel
from tilewright.program.nested import nested, one_box
from tilewright.program.tile_grid import tile_bytes
from tilewright.program.work import (
    NEARLY,
    TASK_CYCLES,
    Candidates,
    Choice,
    Cuts,
    Goal,
    Groups,
    Known,
    KnownTilings,
    Row,
    Scope,
    Tenant,
    Tiling,
    Trial,
    Work,
)

__all__ = [
    "TASK_CYCLES",
    "Goal",
    "Tenant",
    "Tiling",
    "Work",
    "cheapest",
    "choose",
    "cuts_sums",
    "lengths_to_try",
    "longest",
    "same_with",
    "smallest",
    "tile_bytes",
    "tileable",
]

MOST_COMBINATIONS = 4_000
MOST = 2**62


def tileable(op: Op) -> Groups:
    """Loops that may be cut: those that walk the weights, the other ones of the result, and sums.

    A loop of the result may be cut where its tiles are boxes of the result: it has its axis to
    itself, or takes the longest steps along it. Strips that add to the same sums have to be cut
    alike: they are not cut at all.
    """
    outputs = [o.index for o in op.outputs]
    if any(index is None for index in outputs) or op.goes_on or op.is_unfinished:
        return [], [], []
    sizes = op.sizes
    axes = [axis for index in outputs for axis in index or ()]
    leading = [dim for dim, size in op.dims if size > 1 and _leads_everywhere(dim, axes, sizes)]
    leading = [dim for dim in leading if dim not in op.coupled]
    inside = {d for axis in axes for d, _ in axis.terms}
    weights = next((o for o in op.inputs if o.name == "W"), None)
    walked = {d for axis in (weights.index if weights else None) or () for d, _ in axis.terms}
    data = next((o for o in op.inputs if o.name == "I"), None)
    seen = {d for axis in (data.index if data else None) or () for d, _ in axis.terms}
    own = [dim for dim in leading if dim in walked and dim not in seen]
    both = [dim for dim in leading if dim in walked and dim in seen and _heavy(op, dim)]
    sums = [d for d, size in op.dims if d not in inside and size > 1 and d in walked and d in seen]
    rest = [dim for dim in leading if dim not in own + both]
    return own + both, rest, sums if op.kind in ("conv", "matmul") else []


def _heavy(op: Op, dim: str) -> bool:
    return dim == "G" and op.kind in ("conv", "conv_transpose")


def _leads_everywhere(dim: str, axes: Sequence[Index], sizes: Mapping[str, int]) -> bool:
    found = [axis for axis in axes if any(d == dim for d, _ in axis.terms)]
    return bool(found) and all(_leads(dim, axis, sizes) for axis in found)


def _leads(dim: str, axis: Index, sizes: Mapping[str, int]) -> bool:
    terms = [(d, factor) for d, factor in axis.terms if sizes[d] > 1]
    step = dict(terms)[dim]
    others = [(d, factor) for d, factor in terms if d != dim]
    return (
        axis.divisor == 1
        and axis.reach < max(1, abs(step))
        and all(
            0 < factor < step and (sizes[d] - 1) * factor + axis.reach < step
            for d, factor in others
        )
        # What lies between two steps is a tile's to write: else it would be nobody's.
        and axis.reach + sum((sizes[d] - 1) * factor for d, factor in others) >= abs(step) - 1
    )


def choose(work: Work, goal: Goal) -> Tiling | None:
    """The best tiling under the goal; None if not even the smallest tiles fit."""
    key = _all_but_measures(work, goal)
    known = work.known.chosen.get(key)
    if known is None:
        known = work.known.chosen[key] = KnownTilings()
    found = _covering(known.best, work.measures)
    if found is None:
        found = _chosen(work, goal, known.by_loops)
        known.best.append(found)
    return found[0]


def _covering(choices: Sequence[Choice], measures: tuple[int, ...]) -> Choice | None:
    """The choice that was made for such leads and rooms, if there is one."""
    return next((choice for choice in choices if choice[1].covers(measures)), None)


def _all_but_measures(work: Work, goal: Goal) -> object:
    """What a choice of tiles depends on beside room and time, for stages that are alike."""
    return (
        goal,
        tuple(work.lengths.values()),
        tuple(work.unrolled.items()),
        tuple(work.at_most.items()),
        work.uncut,
        tuple(work.multiples.items()),
        *(work.rate, work.alignment, work.partial_bytes_per_cycle),
        tuple(map(_facts, work.tenants)),
        tuple(map(_facts, work.streamed)),
        None if work.partial is None else _facts(work.partial),
    )


def _facts(tenant: Tenant) -> tuple[object, ...]:
    """All of a tenant but names."""
    return (
        *(tenant.operand.index, tenant.shape, tenant.bits, tenant.memory),
        *(tenant.bytes_per_cycle, tenant.setup_cycles, tenant.pj_per_byte),
        *(tenant.constant, tenant.result),
    )


def _chosen(work: Work, goal: Goal, known: dict[tuple[str, ...], list[Choice]]) -> Choice:
    """The best tiling; what is known of the same work by the loops that are cut is used."""

    def best(cuts: Cuts) -> Choice:
        choices = known.setdefault(cuts.loops, [])
        found = _covering(choices, work.measures)
        if found is None:
            found = _best(work, cuts, goal)
            choices.append(found)
        return found

    found = [best(cuts) for cuts in _cuts(work, everywhere=False)]
    if not any(tiling for tiling, _ in found):
        found += [best(cuts) for cuts in _cuts(work, everywhere=True)]
    fitting = [tiling for tiling, _ in found if tiling is not None]
    scope = reduce(Scope.narrowed, [scope for _, scope in found])
    return min(fitting, key=_value, default=None), scope


def _cuts(work: Work, *, everywhere: bool) -> list[Cuts]:
    """What is tried: few loops at a time, or all of them."""
    lengths, unrolled, at_most = work.lengths, work.unrolled, work.at_most
    given = (lengths, unrolled, at_most, work.multiples)
    key = everywhere, work.uncut, *(tuple(counts.items()) for counts in given)
    if key not in work.known.cuts:
        groups, within = _loops(work)
        weights, rest, sums = ([d for d in loops if lengths[d] > 1] for loops in groups)
        inner = [d for d in within if lengths[d] > 1]
        rest = [*at_most, *(d for d in rest if d not in at_most)]
        if work.partial is None:
            # Unfinished sums have no place to wait in.
            sums = []
        if everywhere:
            tried = [weights + inner + rest, weights + inner + rest + sums]
        else:
            first = weights[:1]
            tried = [first + rest[:1], first + rest[:2], first + rest[:2] + sums[:1]]
            if inner:
                both = first + inner[:1]
                tried += [both + rest[:1], both + sums[:1]]
        groups = ([*groups[0], *inner], groups[1], groups[2])
        tried = [_with_outer(loops, within) for loops in tried]
        work.known.cuts[key] = [_lengths_of(work, loops, groups) for loops in _distinct(tried)]
    return work.known.cuts[key]


def _with_outer(loops: Sequence[str], within: Mapping[str, str]) -> list[str]:
    """The loops and, where one is within another, that one: its tiles have to be single steps."""
    around = [within[dim] for dim in loops if dim in within]
    return [*loops, *(dim for dim in dict.fromkeys(around) if dim not in loops)]


def _loops(work: Work) -> tuple[Groups, Mapping[str, str]]:
    """Loops that may be cut, and which of them go around others, looked up once."""
    known = work.known.loops
    if not known:
        known.append((tileable(work.op), nested(work.op)))
    return known[0]


def smallest(work: Work) -> tuple[tuple[Tenant, ...], dict[str, int]]:
    """The smallest tiles: sums whole, or cut with partial sums beside them if that takes less."""
    (weights, rest, sums), within = _loops(work)
    cut = [dim for dim in (*weights, *within, *rest) if dim not in work.uncut]
    sums = [dim for dim in sums if dim not in work.uncut]
    whole_sums = {d: shortest(work, d) if d in cut else n for d, n in work.lengths.items()}
    if not sums or work.partial is None:
        return work.tenants, whole_sums
    choices = [(work.tenants, whole_sums)]
    choices.append(
        ((*work.tenants, work.partial), {**whole_sums, **{d: shortest(work, d) for d in sums}})
    )
    return min(choices, key=lambda c: sum(int(tile_bytes(t, c[1], work.alignment)) for t in c[0]))


def _distinct(choices: list[list[str]]) -> list[list[str]]:
    return [loops for at, loops in enumerate(choices) if loops not in choices[:at]]


def lengths_to_try(length: int, unit: int, multiple: int = 1) -> list[int]:
    """Tile lengths of a loop: few, from all of it down to one, in multiples of `unit` if possible;
    all but the longest in multiples of `multiple`.

    >>> lengths_to_try(56, 8)
    [56, 32, 24, 16, 8, 4, 2, 1]
    >>> lengths_to_try(56, 8, 16)
    [56, 32, 16]
    """
    found = {length, min(length, multiple)}
    parts = 2
    while parts <= length:
        even = -(-length // parts)
        rounded = -(-even // unit) * unit if even >= unit else 1 << even.bit_length() - 1
        found.add(min(length, -(-rounded // multiple) * multiple))
        parts = parts + 1 if parts < 8 else -(-parts * 5 // 4)
    return sorted(found, reverse=True)


def _thinned(choices: list[list[int]]) -> list[list[int]]:
    """Every second length of the longest lists, until there are not too many combinations."""
    while prod(map(len, choices)) > MOST_COMBINATIONS:
        longest = max(choices, key=len)
        at = choices.index(longest)
        choices[at] = [*longest[:-1:2], longest[-1]]
    return choices


def _lengths_of(work: Work, loops: list[str], groups: Groups) -> Cuts:
    """The lengths that are tried for some loops, and the orders of their tiles."""
    around = [outer for inner, outer in _loops(work)[1].items() if inner in loops]
    choices = _thinned([_tried(work, d, is_around=d in around) for d in loops])
    return Cuts(
        loops=tuple(loops),
        choices=tuple(map(tuple, choices)),
        orders=_orders(groups, loops),
        leaves_sums=any(d in groups[2] for d in loops),
    )


def _tried(work: Work, dim: str, *, is_around: bool) -> list[int]:
    """The lengths that are tried for a loop; single steps of one that goes around another."""
    if dim in work.uncut:
        return [work.lengths[dim]]
    if is_around:
        return [shortest(work, dim)]
    unit, multiple = work.unrolled.get(dim, 1), work.multiples.get(dim, 1)
    return lengths_to_try(longest(work, dim), unit, multiple)


def _best(work: Work, cuts: Cuts, goal: Goal) -> Choice:
    """The best way to cut some loops, and for which leads and rooms it is that."""
    if cuts.leaves_sums:
        work = work.with_partial_sums
    trial = Trial(work=work, loops=cuts.loops, choices=cuts.choices, orders=cuts.orders, goal=goal)
    told = _told(trial)
    compiled = tile_kernel.best_tiling(trial, told)
    if compiled is not None:
        return compiled
    found = [cheapest(trial, candidates, told) for candidates in tile_grid.candidates(trial)]
    measures = work.measures
    return min(found, key=_value, default=None), Scope(least=measures, most=measures)


def longest(work: Work, dim: str) -> int:
    """The longest tile along a loop."""
    most, multiple = work.at_most.get(dim, MOST), work.multiples.get(dim, 1)
    return min(work.lengths[dim], max(multiple, most // multiple * multiple))


def shortest(work: Work, dim: str) -> int:
    """The shortest tile along a loop."""
    return min(work.lengths[dim], work.multiples.get(dim, 1))


def same_with(
    work: Work, tiling: Tiling, row: tuple[int, ...], tile_cycles: int | None = None
) -> Tiling | None:
    """A tiling with other lengths of the loops of its order, for latency; None if they do not fit.

    `tile_cycles` is what computing a tile takes, where that is known better than by an estimate.
    """
    loops = tiling.order
    if not one_box({**work.lengths, **dict(zip(loops, row, strict=True))}, work.op):
        return None
    if cuts_sums(work, loops):
        work = work.with_partial_sums
    model = None if tile_cycles is None else lambda lengths: tile_cycles
    choices = tuple((length,) for length in row)
    trial = Trial(
        work=replace(work, tile_cycles=model, known=Known()),
        loops=loops,
        choices=choices,
        orders=(loops,),
        goal="latency",
    )
    told = _told(trial)
    found = tile_kernel.tilings(trial, told)
    if found is None:
        found = [cheapest(trial, candidates, told) for candidates in tile_grid.candidates(trial)]
    return next((other for other in found if other.doubled == tiling.doubled), None)


def cuts_sums(work: Work, loops: Sequence[str]) -> bool:
    """Whether tiles leave partial sums if some loops are cut."""
    sums = _loops(work)[0][2]
    return any(dim in sums for dim in loops)


def _told(trial: Trial) -> Callable[[int], int | None]:
    """Cycles of a combination's tiles by a model of the core, which is asked once."""
    work = trial.work
    model = work.tile_cycles
    key = (trial.loops, trial.choices, tuple(work.lengths.values()))
    known = work.known.told.setdefault(key, {})

    def cycles(at: int) -> int | None:
        if at not in known:
            known[at] = None if model is None else model(trial.lengths(at))
        return known[at]

    return cycles


def _orders(groups: Groups, loops: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Weights outermost, or the rest; sums are always innermost."""
    weights, _, sums = groups
    first = [d for d in loops if d in weights]
    last = [d for d in loops if d in sums]
    middle = [d for d in loops if d not in first + last]
    return tuple(dict.fromkeys(((*first, *middle, *last), (*middle, *first, *last))))


def cheapest(trial: Trial, candidates: Candidates, told: Callable[[int], int | None]) -> Tiling:
    """The candidate with the fewest tiles among those that are nearly as good as the best."""
    rows = candidates.rows
    values = [
        _cycles(candidates, row, told(row.at))
        if trial.goal == "latency"
        else (row.energy if trial.goal == "energy" else row.moved_bytes)
        for row in rows
    ]
    near = NEARLY * min(values)
    good = [number for number, value in enumerate(values) if value <= near]
    fewest = min(rows[number].total for number in good)
    # Time only tells apart what is left: a model of the core is not asked about anything else.
    cycles = {
        number: _cycles(candidates, rows[number], told(rows[number].at))
        for number in good
        if rows[number].total == fewest
    }
    best = min(cycles, key=lambda number: (cycles[number], number))
    row = rows[best]
    return Tiling(
        lengths=trial.lengths(row.at),
        order=candidates.order,
        cycles=cycles[best],
        moving_cycles=row.moving,
        moved_bytes=row.moved_bytes,
        value=values[best],
        doubled=candidates.doubled,
    )


def _cycles(candidates: Candidates, row: Row, told: int | None) -> float:
    """Cycles of computing, as a model of the core has them if there is one, and of moving."""
    computing = row.computing if told is None else row.total * (told + TASK_CYCLES)
    if not candidates.doubled:
        return computing + row.left
    longer, shorter = max(computing, row.left), min(computing, row.left)
    return longer + shorter / 8 + min(row.first, row.left) / 2


def _value(tiling: Tiling) -> tuple[float, float, float]:
    return tiling.value, tiling.cycles, tiling.moved_bytes

"""Tiles as their mappings have them: a choice that rests on estimates is looked at again.

The estimates know how many steps the array takes, and not where ports hold it up. That depends on
the lengths of the loops: registers hold so many results, and a tile that fills them all reads its
data less often.
"""

from collections.abc import Callable, Iterator, Mapping

from tilewright.program.tile import Tiling, Work, longest, same_with

MappedCycles = Callable[[Mapping[str, int]], int | None]
"""Cycles of a tile by a good mapping, which takes a while to find; None if it has none."""

NEAR_ENOUGH = 1.1
"""A tiling that takes no longer than this factor of its estimate stays."""

MOST_MAPPED = 6
"""So many other tilings are mapped at most."""

LEAST_GAIN = 1.1
"""What is gained for certain by another tiling, as a factor, before it is taken."""

FACTORS = (2, 4)
"""By which tiles are made longer and shorter, one loop at a time."""


def as_mapped(
    work: Work, tiling: Tiling, quick_cycles: MappedCycles, mapped_cycles: MappedCycles
) -> Tiling:
    """The tiling, or one with longer or shorter tiles that takes fewer cycles by its mappings.

    It is looked for with mappings that are quickly found, and taken if better ones agree.
    """
    other = _quickly(work, tiling, quick_cycles)
    if _row(other) == _row(tiling):
        return tiling
    best, now = (_mapped(work, t, mapped_cycles) for t in (other, tiling))
    if best is None or now is None or best.cycles * LEAST_GAIN > now.cycles:
        return tiling
    return best


def _quickly(work: Work, tiling: Tiling, mapped_cycles: MappedCycles) -> Tiling:
    """The best of some tilings."""
    best = _mapped(work, tiling, mapped_cycles)
    if best is None or best.cycles <= NEAR_ENOUGH * tiling.cycles:
        return tiling
    known = [_row(tiling)]
    at: Tiling | None = None
    while at is not best:
        at = best
        rows = [row for row in _around(work, at) if row not in known]
        others = [other for row in rows if (other := same_with(work, at, row)) is not None]
        for other in sorted(others, key=lambda t: (t.cycles, _row(t))):
            # An estimate leaves out stalls: it is the least that can be hoped for.
            if len(known) > MOST_MAPPED or other.cycles >= best.cycles:
                break
            known.append(_row(other))
            found = _mapped(work, other, mapped_cycles)
            if found is not None and found.cycles < best.cycles:
                best = found
    return best


def _mapped(work: Work, tiling: Tiling, mapped_cycles: MappedCycles) -> Tiling | None:
    cycles = mapped_cycles(tiling.lengths)
    return None if cycles is None else same_with(work, tiling, _row(tiling), cycles)


def _around(work: Work, tiling: Tiling) -> Iterator[tuple[int, ...]]:
    """Lengths of the loops of a tiling, one of them longer or shorter."""
    row = _row(tiling)
    for at, dim in enumerate(tiling.order):
        tried = [row[at] * factor for factor in FACTORS] + [row[at] // factor for factor in FACTORS]
        for length in dict.fromkeys(min(length, longest(work, dim)) for length in tried):
            if 0 < length != row[at]:
                yield (*row[:at], length, *row[at + 1 :])


def _row(tiling: Tiling) -> tuple[int, ...]:
    return tuple(tiling.lengths[dim] for dim in tiling.order)

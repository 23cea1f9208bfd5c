"""Which points of a transposed convolution are products, where its loops go over its result?

A tap of a window reaches one element of the result in so many: at the other points nothing is
multiplied, and an array that goes over the input instead does not see them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.network.graph import Network, Op
from tilewright.program.model import Box
from tilewright.replay.check_boxes import volume
from tilewright.replay.check_kinds import Flags


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """Along one axis, for every element of the result and every tap, whether an input is there."""

    loop: str
    tap: str
    is_product: Flags

    @property
    def walked(self) -> str:
        """The loop over the input, as mappings name it."""
        return "I" + self.loop.removeprefix("O")

    def within(self, ranges: Mapping[str, tuple[int, int]]) -> Flags:
        """Those of a tile."""
        (first, last), (begin, end) = ranges[self.loop], ranges[self.tap]
        found: Flags = self.is_product[first:last, begin:end]
        return found


def taps_of(op: Op, network: Network) -> list[Taps]:
    """By axis of an op that walks over its result and whose taps go backwards; of others none."""
    if op.kind != "conv_transpose":
        return []
    found = []
    data, sizes = next(o for o in op.inputs if o.name == "I"), op.sizes
    for axis, size in zip(data.index or (), network.by_name[data.tensor].shape, strict=False):
        forwards = [term for term in axis.terms if term[1] > 0]
        backwards = [term for term in axis.terms if term[1] < 0]
        if len(forwards) == len(backwards) == 1:
            (loop, step), (tap, back) = *forwards, *backwards
            along, across = np.arange(sizes[loop])[:, None], np.arange(sizes[tap])[None, :]
            place, rest = np.divmod(axis.offset + step * along + back * across, axis.divisor)
            found.append(Taps(loop, tap, (rest == 0) & (place >= 0) & (place < size)))
    return found


def products(op: Op, taps: Sequence[Taps], tile: Box) -> int:
    """Points of a tile at which something is multiplied."""
    ranges = dict(zip((dim for dim, _ in op.dims), tile, strict=True))
    total = 1
    for axis in taps:
        total *= int(axis.within(ranges).sum())
        ranges.pop(axis.loop)
        ranges.pop(axis.tap)
    return total * volume(tuple(ranges.values()))


def mapped_loops(op: Op, taps: Sequence[Taps], tile: Box) -> tuple[dict[str, int], set[str]]:
    """How far the loops of a tile's mapping run, and of which loops that is the least.

    Each step over the input has all taps: it takes as many as that tap which reaches the most.
    """
    ranges = dict(zip((dim for dim, _ in op.dims), tile, strict=True))
    over = {axis.loop: axis for axis in taps}
    lengths = {}
    for dim, (begin, end) in ranges.items():
        if dim in over:
            reached = over[dim].within(ranges).sum(axis=0)
            lengths[over[dim].walked] = max(1, int(reached.max(initial=0)))
        else:
            lengths[dim] = end - begin
    return lengths, {axis.walked for axis in taps}

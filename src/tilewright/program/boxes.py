"""Boxes of tensors: which elements a range of an op's loops touches."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from operator import itemgetter

from tilewright.network.graph import Index, Operand, Tensor
from tilewright.once import once
from tilewright.program.model import Box
from tilewright.records import quickly_made
from tilewright.units import packed_bytes

Ranges = Mapping[str, tuple[int, int]]
"""Half-open ranges by loop."""


def whole(shape: Sequence[int]) -> Box:
    """All of a tensor."""
    return tuple((0, size) for size in shape)


def lengths_of(ranges: Ranges) -> dict[str, int]:
    """How far each loop runs."""
    return {dim: stop - start for dim, (start, stop) in ranges.items()}


def touched(operand: Operand, ranges: Ranges, shape: Sequence[int]) -> Box:
    """The smallest box that holds every element an operand touches within the loop ranges.

    What lies outside the tensor is padding and is left out.

    >>> window = Index((("OY", 2), ("FY", 1)), -1)
    >>> touched(Operand(name="I", tensor="x", index=(window,)), {"OY": (0, 4), "FY": (0, 3)}, [20])
    ((0, 8),)
    """
    if operand.index is None:
        return whole(shape)
    pairs = zip(operand.index, shape, strict=True)
    return tuple([_axis(index, ranges, size) for index, size in pairs])


def _axis(index: Index, ranges: Ranges, size: int) -> tuple[int, int]:
    plain = _plain_loop(index)
    if plain:
        # Most axes are like that.
        low, stop = ranges[plain]
        if 0 <= low < stop <= size:
            return low, stop
    low, high = index.offset, index.offset + index.reach
    for dim, factor in index.terms:
        start, stop = ranges[dim]
        ends = factor * start, factor * (stop - 1)
        low += min(ends)
        high += max(ends)
    low, high = -(-low // index.divisor), high // index.divisor
    low = min(max(low, 0), size)
    return low, max(low, min(high + 1, size))


@quickly_made
@dataclass(frozen=True)
class Footprint:
    """What an operand touches, remembered by the ranges of the loops that matter to it."""

    operand: Operand
    shape: tuple[int, ...]
    _found: dict[object, Box] = field(default_factory=dict)
    _solid: dict[object, Box] = field(default_factory=dict)
    """Those of the boxes that have elements."""

    @once
    def _key(self) -> Callable[[Ranges], object]:
        loops = dict.fromkeys(loop for axis in self._axes for loop in axis.loops)
        return itemgetter(*loops) if loops else lambda ranges: None

    @once
    def _axes(self) -> tuple["_Axis", ...]:
        pairs = zip(self.operand.index or (), self.shape, strict=False)
        return tuple(
            _Axis(index, size, tuple(loop for loop, _ in index.terms), _plain_loop(index))
            for index, size in pairs
        )

    def solid_box(self, ranges: Ranges) -> Box | None:
        """The box that is touched; None if it has no element."""
        key = self._key(ranges)
        found = self._solid.get(key)
        if found is not None:
            return found
        box = self.box(ranges)
        if not elements(box):
            return None
        self._solid[key] = box
        return box

    def box(self, ranges: Ranges) -> Box:
        """The box that is touched within ranges of all loops."""
        key = self._key(ranges)
        found = self._found.get(key)
        if found is None:
            if self.operand.index is None:
                found = whole(self.shape)
            else:
                found = tuple([axis.span(ranges) for axis in self._axes])
            self._found[key] = found
        return found


@quickly_made
@dataclass(frozen=True, slots=True)
class _Axis:
    """What an operand touches along one axis, remembered by the ranges of its loops."""

    index: Index
    size: int
    loops: tuple[str, ...]
    plain_loop: str
    """The loop whose steps are the positions along the axis; empty if there is none."""
    _found: dict[tuple[tuple[int, int], ...], tuple[int, int]] = field(default_factory=dict)

    def span(self, ranges: Ranges) -> tuple[int, int]:
        if self.plain_loop:
            ends = ranges[self.plain_loop]
            if ends[1] <= self.size:
                return ends
        key = tuple([ranges[loop] for loop in self.loops])
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = _axis(self.index, ranges, self.size)
        return found


def _plain_loop(index: Index) -> str:
    if index.offset or index.reach or index.divisor != 1 or len(index.terms) != 1:
        return ""
    loop, factor = index.terms[0]
    return loop if factor == 1 else ""


def elements(box: Box) -> int:
    """Number of elements in a box."""
    count = 1
    for start, stop in box:
        count *= stop - start
    return count


def size_bytes(box: Box, tensor: Tensor) -> int:
    """Bytes of a box, densely packed."""
    return packed_bytes(elements(box), tensor.bits)


def overlap(a: Box, b: Box) -> Box:
    """What two boxes have in common; it may be empty."""
    found = []
    for (s, t), (u, v) in zip(a, b, strict=True):
        start, stop = s if s > u else u, t if t < v else v
        found.append((start, stop if stop > start else start))
    return tuple(found)


def meet(a: Box, b: Box) -> bool:
    """Whether two boxes have an element in common."""
    for (s, t), (u, v) in zip(a, b, strict=True):
        if (s if s > u else u) >= (t if t < v else v):
            return False
    return True


def is_empty(box: Box) -> bool:
    """Whether a box has no element."""
    return any(start >= stop for start, stop in box)


def without(box: Box, taken: Box) -> list[Box]:
    """What is left of a box without another one, as boxes that have nothing in common.

    >>> without(((0, 4), (0, 2)), ((1, 3), (1, 5)))
    [((0, 1), (0, 2)), ((3, 4), (0, 2)), ((1, 3), (0, 1))]
    """
    common = overlap(box, taken)
    if is_empty(common):
        return [box]
    found = []
    for axis, ((start, stop), (first, last)) in enumerate(zip(box, common, strict=True)):
        sides = [side for side in ((start, first), (last, stop)) if side[0] < side[1]]
        found += [(*common[:axis], side, *box[axis + 1 :]) for side in sides]
    return found


def contains(outer: Box, inner: Box) -> bool:
    """Whether all of `inner` lies in `outer`."""
    return all(s <= u and v <= t for (s, t), (u, v) in zip(outer, inner, strict=True))


def around(a: Box, b: Box) -> Box:
    """The smallest box around two."""
    if is_empty(a):
        return b
    if is_empty(b):
        return a
    return tuple((min(s, u), max(t, v)) for (s, t), (u, v) in zip(a, b, strict=True))


def covering(boxes: Sequence[Box], shape: Sequence[int]) -> list[Box]:
    """The boxes made larger until every element of a tensor lies in one of them.

    A gap goes to the boxes before it; where that is not enough, the first box gets everything.
    Empty boxes stay empty.

    >>> covering([((1, 4),), ((6, 8),)], [9])
    [((0, 6),), ((6, 9),)]
    """
    solid = [box for box in boxes if not is_empty(box)]
    if not solid:
        return list(boxes)
    axes = [_without_gaps([box[axis] for box in solid], size) for axis, size in enumerate(shape)]
    grown = list(zip(*axes, strict=True)) if shape else solid
    if not _covers(grown, shape):
        grown[0] = whole(shape)
    larger = iter(grown)
    return [box if is_empty(box) else next(larger) for box in boxes]


def _without_gaps(spans: Sequence[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    first = min(start for start, _ in spans)
    found = []
    for start, stop in spans:
        if not any(s <= stop < t for s, t in spans):
            stop = min((s for s, _ in spans if s > stop), default=size)
        found.append((0 if start == first else start, stop))
    return found


def _covers(boxes: Sequence[Box], shape: Sequence[int]) -> bool:
    """Whether every element of a tensor lies in one of the boxes, looked up where they begin."""
    if any(contains(box, whole(shape)) for box in boxes):
        return True
    starts = [sorted({0, *(end for box in boxes for end in box[i])}) for i in range(len(shape))]
    corners = product(
        *([s for s in edges if s < size] for edges, size in zip(starts, shape, strict=True))
    )
    return all(
        any(all(s <= at < t for at, (s, t) in zip(corner, box, strict=True)) for box in boxes)
        for corner in corners
    )


def shifted(box: Box, by: Sequence[int]) -> Box:
    """A box moved by some steps along each axis."""
    return tuple([(start + step, stop + step) for (start, stop), step in zip(box, by, strict=True)])

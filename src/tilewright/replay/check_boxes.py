"""Boxes of elements: what two have in common, what is left of one, where a view's lies in its root.

Every box is a tuple of half-open ranges; a scalar's box is (), one element.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product
from math import prod

import numpy as np
import numpy.typing as npt

from tilewright.program.model import Access, Box, Buffer, Program

Shape = tuple[int, ...]
Ints = npt.NDArray[np.int64]
Boxes = npt.NDArray[np.int64]
"""Many boxes, as [begin or end, axis, box]."""

FEW_BOXES = 16
"""So few boxes are looked at one by one faster than in an array."""

MOST_ELEMENTS = 1 << 62
"""So many elements can be counted in 64 bits."""

MOST_PAIRS = 1 << 20
"""So many pairs of boxes are compared at a time."""


def volume(box: Box) -> int:
    """Elements in a box; none if a range is empty or backwards."""
    elements = 1
    for begin, end in box:
        if end <= begin:
            return 0
        elements *= end - begin
    return elements


def shape_of(box: Box) -> Shape:
    """Elements along each axis."""
    return tuple([end - begin for begin, end in box])


def overlaps(one: Box, other: Box) -> bool:
    """Whether two boxes, neither of them empty, share an element."""
    for (begin, end), (other_begin, other_end) in zip(one, other, strict=True):
        if begin >= other_end or other_begin >= end:
            return False
    return True


def contains(outer: Box, inner: Box) -> bool:
    """Whether a box with as many axes lies inside another."""
    if len(outer) != len(inner):
        return False
    for (outer_begin, outer_end), (begin, end) in zip(outer, inner, strict=True):
        if not outer_begin <= begin <= end <= outer_end:
            return False
    return True


def common(one: Box, other: Box) -> Box:
    """The elements of two overlapping boxes that are in both."""
    both = zip(one, other, strict=True)
    return tuple([(max(begin, low), min(end, high)) for (begin, end), (low, high) in both])


def shared_volume(one: Box, other: Box) -> int:
    """Elements that are in both of two overlapping boxes."""
    elements = 1
    for (begin, end), (low, high) in zip(one, other, strict=True):
        elements *= (end if end < high else high) - (begin if begin > low else low)
    return elements


def minus(box: Box, hole: Box) -> list[Box]:
    """Disjoint boxes that are together what `hole` leaves of `box`.

    >>> minus(((0, 4), (0, 4)), ((1, 4), (2, 9)))
    [((0, 1), (0, 4)), ((1, 4), (0, 2))]
    """
    if contains(hole, box):
        return []
    if not overlaps(box, hole):
        return [box]
    left: list[Box] = []
    before: Box = ()
    for axis, ((begin, end), (hole_begin, hole_end)) in enumerate(zip(box, hole, strict=True)):
        behind = box[axis + 1 :]
        if begin < hole_begin:
            left.append((*before, (begin, hole_begin), *behind))
        if hole_end < end:
            left.append((*before, (hole_end, end), *behind))
        before = (*before, (max(begin, hole_begin), min(end, hole_end)))
    return left


def uncovered(box: Box, covers: Sequence[Box]) -> list[Box]:
    """What is left of a box when all of `covers` are taken away."""
    # What thousands of tiles leave of an op falls apart into many boxes before it is nothing.
    if len(covers) > FEW_BOXES and fill(box, covers):
        return []
    left = [box] if volume(box) else []
    for cover in covers:
        left = [part for piece in left for part in minus(piece, cover)]
    return left


def fill(box: Box, parts: Sequence[Box]) -> bool:
    """Whether parts of a box, no two of which overlap, have together as many elements as it."""
    if len(parts) <= FEW_BOXES or not box or volume(box) > MOST_ELEMENTS:
        return (
            sum(map(volume, parts)) == volume(box)
            and all(contains(box, part) for part in parts)
            and not overlapping_pairs(parts)
        )
    return fill_array(box, box_array(parts, len(box)))


def fill_array(box: Box, parts: Boxes) -> bool:
    """The same of many parts of a box that has an axis, and no more than MOST_ELEMENTS."""
    lowest, highest = box_array([box], len(box))
    begins, ends = parts
    is_inside = (lowest <= begins) & (begins <= ends) & (ends <= highest)
    if not is_inside.all() or int((ends - begins).prod(axis=0).sum()) != volume(box):
        return False
    return not any_overlap(parts)


def are_outside(box: Box, parts: Sequence[Box]) -> list[bool]:
    """Which of some boxes with as many axes do not lie inside another."""
    if len(parts) <= FEW_BOXES:
        return [not contains(box, part) for part in parts]
    (lowest, highest), (begins, ends) = box_array([box], len(box)), box_array(parts, len(box))
    is_inside = ((lowest <= begins) & (begins <= ends) & (ends <= highest)).all(axis=0)
    outside: list[bool] = (~is_inside).tolist()
    return outside


def is_full(box: Box, parts: Sequence[Box]) -> bool:
    """Whether boxes that overlap it, but not each other, have together all elements of a box."""
    if len(parts) == 1:
        return contains(parts[0], box)
    return sum([shared_volume(box, part) for part in parts]) == volume(box)


def shifted(box: Box, shift: Sequence[int]) -> Box:
    """The box with `shift` added along each axis."""
    return tuple([(begin + by, end + by) for (begin, end), by in zip(box, shift, strict=True)])


def overlapping_pairs(boxes: Sequence[Box]) -> list[tuple[int, int]]:
    """Indices i < j of all boxes, none of them empty, that share elements, sorted."""
    if len(boxes) <= FEW_BOXES or not boxes[0]:
        indices = combinations(range(len(boxes)), 2)
        return [(i, j) for i, j in indices if overlaps(boxes[i], boxes[j])]
    found: list[tuple[int, int]] = []
    for one, other in _meeting(box_array(boxes, len(boxes[0]))):
        found += zip(*np.sort([one, other], axis=0).tolist(), strict=True)
    return sorted(found)


def any_overlap(boxes: Boxes) -> bool:
    """Whether any two of some boxes, none of them empty, share elements."""
    return any(len(one) for one, _ in _meeting(boxes))


def _meeting(boxes: Boxes) -> Iterator[tuple[Ints, Ints]]:
    """All pairs of boxes that share elements, not too many at a time."""
    begins, ends = boxes
    # Along an axis, a box can only meet those that begin before it ends; where these are fewest,
    # they are looked at.
    in_order = np.sort(begins, axis=1)
    n_pairs = [np.searchsorted(low, high).sum() for low, high in zip(in_order, ends, strict=True)]
    axis = int(np.argmin(n_pairs))
    order = np.argsort(begins[axis], kind="stable")
    for i, j in pairs_before(np.searchsorted(in_order[axis], ends[axis, order])):
        yield meeting(boxes, order[i], order[j])


def meeting_within(groups: Ints, boxes: Boxes) -> Iterator[tuple[Ints, Ints]]:
    """All pairs of boxes of one group that share elements, not too many at a time."""
    if not len(boxes[0]):
        # Each is a single element, that of a tensor without axes.
        boxes = np.array([[0], [1]])[..., None].repeat(len(groups), axis=2)
    axis = _widest_axis(groups, boxes[0])
    low, high = boxes[:, axis, np.arange(len(groups))]
    # As places among all begins they can be one number with the group, however large they are.
    in_order = np.sort(low)
    first, last = (
        groups * (len(groups) + 1) + np.searchsorted(in_order, side) for side in (low, high)
    )
    order = np.argsort(first, kind="stable")
    for i, j in pairs_before(np.searchsorted(first[order], last[order])):
        yield meeting(boxes, order[i], order[j])


def _widest_axis(groups: Ints, begins: Ints) -> Ints:
    """By box the axis along which those of its group have the most different begins."""
    n_groups = int(groups.max(initial=0)) + 1
    counts = np.zeros((max(1, len(begins)), n_groups), dtype=np.int64)
    for axis, begin in enumerate(begins):
        order = np.lexsort((begin, groups))
        is_new = np.ones(len(order), dtype=np.bool_)
        is_new[1:] = (np.diff(begin[order]) != 0) | (np.diff(groups[order]) != 0)
        counts[axis] = np.bincount(groups[order][is_new], minlength=n_groups)
    widest: Ints = counts.argmax(axis=0)
    return widest[groups]


def meeting(boxes: Boxes, i: Ints, j: Ints) -> tuple[Ints, Ints]:
    """Of pairs of boxes those that share elements, or of which one is empty."""
    for begin, end in zip(*boxes, strict=True):
        meet = (begin[i] < end[j]) & (begin[j] < end[i])
        if not meet.all():
            i, j = i[meet], j[meet]
    return i, j


def pairs_before(stops: Ints) -> Iterator[tuple[Ints, Ints]]:
    """All i and j with i < j < stops[i], in order, not too many at a time."""
    counts = np.maximum(0, stops - np.arange(len(stops)) - 1)
    totals = np.cumsum(counts)
    first = 0
    while first < len(stops):
        done = totals[first] - counts[first]
        last = max(first + 1, int(np.searchsorted(totals, done + MOST_PAIRS, side="right")))
        here = counts[first:last]
        i = np.arange(first, last).repeat(here)
        if len(i):
            # The j of each i follow each other, from i + 1 on.
            yield i, np.arange(len(i)) - (totals[i] - counts[i] - done) + i + 1
        first = last


def ranges(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """All i and j with first[i] <= j < last[i], in order."""
    counts = np.maximum(0, last - first)
    i = np.arange(len(counts)).repeat(counts)
    before = np.cumsum(counts) - counts
    return i, np.arange(len(i)) - before[i] + first[i]


def box_array(boxes: Sequence[Box], axes: int) -> Boxes:
    """Boxes with up to some number of axes as [begin or end, axis, box]; what one lacks is 0:1.

    Raises:
        OverflowError: there is a number that does not fit into 64 bits.
    """
    lengths = np.array(list(map(len, boxes)), dtype=np.int64)
    array = np.zeros((len(boxes), axes, 2), dtype=np.int64)
    array[:, :, 1] = 1
    for length in sorted({*lengths.tolist()} - {0}):
        rows = np.flatnonzero(lengths == length)
        alike = boxes if len(rows) == len(boxes) else [boxes[row] for row in rows.tolist()]
        numbers = chain.from_iterable(chain.from_iterable(alike))
        array[rows, :length] = np.fromiter(numbers, dtype=np.int64).reshape(-1, length, 2)
    return np.ascontiguousarray(array.transpose(2, 1, 0))


def box_at(boxes: Boxes, number: int, n_axes: int) -> Box:
    """One of many boxes, without the axes that it lacks."""
    begins, ends = boxes[:, :n_axes, number].tolist()
    return tuple(zip(begins, ends, strict=True))


def boxes_at(boxes: Boxes, n_axes: int) -> list[Box]:
    """All of many boxes, with the first of their axes."""
    corners = boxes[:, :n_axes].transpose(2, 1, 0).tolist()
    return [tuple(map(tuple, ranges)) for ranges in corners]


def view_shift(buffer: Buffer) -> Shape | None:
    """What to add to a buffer's coordinates to get its root's; None where the shape differs."""
    if buffer.view is None:
        return (0,) * len(buffer.box)
    if buffer.view.origin is None:
        return None
    return tuple(at - begin for at, (begin, _) in zip(buffer.view.origin, buffer.box, strict=True))


def boxes_in_root(program: Program, access: Access) -> list[Box]:
    """The disjoint boxes, in the coordinates of the root, that an access touches."""
    if not volume(access.box):
        return []
    buffer = program.buffers[access.buffer]
    if buffer.view is None:
        return [access.box]
    shift = view_shift(buffer)
    if shift is not None:
        return [shifted(access.box, shift)]
    root = program.buffers[program.root(access.buffer)]
    inside = shifted(access.box, [-begin for begin, _ in buffer.box])
    starts = [begin for begin, _ in root.box]
    found = reshaped(inside, shape_of(buffer.box), shape_of(root.box))
    return [shifted(box, starts) for box in found]


def reshaped(box: Box, shape: Shape, target: Shape) -> list[Box]:
    """A box of a dense row-major array of one shape as boxes of the same bytes in another.

    >>> reshaped(((4, 9),), (12,), (3, 4))
    [((1, 2), (0, 4)), ((2, 3), (0, 1))]
    """
    front = 0
    while front < min(len(shape), len(target)) and shape[front] == target[front]:
        front += 1
    back = 0
    while back < min(len(shape), len(target)) - front and shape[-1 - back] == target[-1 - back]:
        back += 1
    middle, kept = box[front : len(box) - back], box[len(box) - back :]
    runs = _runs(middle, shape[front : len(shape) - back])
    inner = target[front : len(target) - back]
    return [
        (*box[:front], *part, *kept)
        for begin, end in runs
        for part in _run_boxes(begin, end, inner)
    ]


def _runs(box: Box, shape: Shape) -> Iterator[tuple[int, int]]:
    """The stretches of consecutive elements that make up a box, in row-major order."""
    whole = len(box)
    while whole and box[whole - 1] == (0, shape[whole - 1]):
        whole -= 1
    run = prod(shape[whole:])
    outer, last = box[: max(0, whole - 1)], box[max(0, whole - 1) : whole]
    steps = [prod(shape[axis + 1 :]) for axis in range(len(outer))]
    begin, end = last[0] if last else (0, 1)
    for point in product(*(range(*ends) for ends in outer)):
        at = sum(step * index for step, index in zip(steps, point, strict=True))
        yield at + begin * run, at + end * run


def _run_boxes(begin: int, end: int, shape: Shape) -> list[Box]:
    """Consecutive elements [begin, end) of a dense row-major array as boxes."""
    if not shape:
        return [()]
    row = prod(shape[1:])
    rest = tuple((0, size) for size in shape[1:])
    first, last = begin // row, (end - 1) // row
    if first == last:
        inner = _run_boxes(begin - first * row, end - first * row, shape[1:])
        return [((first, first + 1), *box) for box in inner]
    found: list[Box] = []
    if begin % row:
        inner = _run_boxes(begin % row, row, shape[1:])
        found += [((first, first + 1), *box) for box in inner]
        first += 1
    stop = end // row
    if first < stop:
        found.append(((first, stop), *rest))
    if end % row:
        inner = _run_boxes(0, end % row, shape[1:])
        found += [((stop, stop + 1), *box) for box in inner]
    return found


def text(box: Box) -> str:
    """A box as a slice: `[0:4, 8:16]`."""
    return "[" + ", ".join(f"{begin}:{end}" for begin, end in box) + "]"


def bytes_of(buffer: Buffer, elements: int) -> int:
    """Bytes that some elements of a buffer take, rounded up."""
    return -(-elements * buffer.size_bytes // max(1, volume(buffer.box)))

"""Does a task write what the loops of its tile lead to, and do the sums of several tasks add up?

Tiles that share no point can still make the same elements: slices of a sum do, and the windows of a
transposed convolution meet, or lie between each other.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tilewright.errors import Problem
from tilewright.network.graph import Index, Network, Op
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.model import Box, Program, Task, Timetable
from tilewright.program.strips import is_repeated, strip_of
from tilewright.replay.check_accesses import Accesses, Flags
from tilewright.replay.check_boxes import (
    FEW_BOXES,
    Boxes,
    Ints,
    box_array,
    overlapping_pairs,
    text,
    uncovered,
)
from tilewright.replay.check_needed import Lattice, touched
from tilewright.replay.check_tiles import needed_by_tile, needed_by_tiles


@dataclass(frozen=True, slots=True, eq=False)
class _Made:
    """By task the box around what its loops lead to of its op's first result."""

    boxes: Boxes
    has_gaps: Flags
    """Whether not all of it is made."""
    is_known: Flags
    """Whether it computes an op."""


def made_problems(
    timetable: Timetable, network: Network, accesses: Accesses, tiles: Sequence[Box | None]
) -> Iterator[Problem]:
    """Tasks that write what they do not make, cut what has to be whole, or leave sums behind."""
    tasks = timetable.program.tasks
    ops = {op.name: op for op in network.ops}
    by_op: dict[str, list[int]] = defaultdict(list)
    for number, task in enumerate(tasks):
        if task.kind == "compute" and tiles[number] is not None:
            by_op[task.op].append(number)
    made = _made_boxes(network, by_op, accesses, tiles)
    for number in _suspects(timetable.program, ops, accesses, made):
        whole = tuple((0, size) for _, size in ops[tasks[number].op].dims)
        made_by = (_made_by(network, ops, tasks[number], t) for t in (tiles[number] or (), whole))
        yield from _wrong_writes(timetable.program, tasks[number], *made_by)
    for name, numbers in by_op.items():
        ranges = {number: tiles[number] or () for number in numbers}
        yield from _cut_loops(tasks, ops[name], ranges)
        is_move = KIND_CLASSES[ops[name].kind] == "move"
        if len(numbers) > 1 and not is_move and ops[name].outputs[0].index is not None:
            yield from _wrong_sums(timetable, network, ops[name], ranges)


def _made_boxes(
    network: Network,
    by_op: Mapping[str, Sequence[int]],
    accesses: Accesses,
    tiles: Sequence[Box | None],
) -> _Made:
    boxes = np.zeros((2, accesses.boxes.shape[1], len(tiles)), dtype=np.int64)
    boxes[1] = 1
    has_gaps, is_known = np.zeros((2, len(tiles)), dtype=np.bool_)
    few: dict[int, Box] = {}
    for op in network.ops:
        if op.name not in by_op:
            continue
        numbers, result = by_op[op.name], op.outputs[0]
        shape = network.by_name[result.tensor].shape
        if len(numbers) <= FEW_BOXES:
            few |= {n: needed_by_tile(op, result, tiles[n] or (), shape) for n in numbers}
        else:
            corners = box_array([tiles[number] or () for number in numbers], len(op.dims))
            boxes[:, : len(shape), numbers] = needed_by_tiles(op, result, corners, shape)
        if not all(map(_is_plain, result.index or ())):
            has_gaps[numbers] = [_has_gaps(op, tiles[number] or ()) for number in numbers]
        is_known[numbers] = True
    boxes[:, :, [*few]] = box_array([*few.values()], boxes.shape[1])
    return _Made(boxes, has_gaps, is_known)


def _has_gaps(op: Op, tile: Box) -> bool:
    """Whether the loops pass over positions between the first and the last of some axis."""
    lengths = {dim: end - begin for (dim, _), (begin, end) in zip(op.dims, tile, strict=True)}
    for axis in op.outputs[0].index or ():
        stretch = 1 + axis.reach
        for dim, factor in sorted(axis.terms, key=lambda term: (abs(term[1]), term[0])):
            if lengths[dim] > 1 and abs(factor) > stretch:
                return True
            stretch += abs(factor) * (lengths[dim] - 1)
    return False


def _cut_loops(tasks: Sequence[Task], op: Op, tiles: Mapping[int, Box]) -> Iterator[Problem]:
    """Tiles without all of a loop along which every result depends on every element."""
    for place, (dim, size) in enumerate(op.dims):
        if dim not in op.coupled:
            continue
        for number, ranges in tiles.items():
            if ranges[place] != (0, size):
                begin, end = ranges[place]
                yield Problem(
                    message=f"task {tasks[number].name} sees {dim} {begin}:{end} of {op.name}, "
                    f"a {op.kind}, and has to see {dim} 0:{size}"
                )


def _suspects(
    program: Program, ops: Mapping[str, Op], accesses: Accesses, made: _Made
) -> Sequence[int]:
    """Tasks whose writes are not seen at once to be made by them: of one tensor, without gaps."""
    rows = np.flatnonzero(accesses.is_write & made.is_known[accesses.task])
    task, (begins, ends) = accesses.task[rows], accesses.boxes[:, :, rows]
    lowest, highest = made.boxes[:, :, task]
    is_fine = ((lowest <= begins) & (ends <= highest)).all(axis=0) & ~made.has_gaps[task]
    plain: dict[tuple[str, ...], int] = {}
    expected = np.full(len(program.tasks), -1, dtype=np.int64)
    for number in np.flatnonzero(made.is_known).tolist():
        names = program.tasks[number].op, *program.tasks[number].fused
        if names not in plain:
            plain[names] = accesses.tensor_numbers.get(_plain_result(names, ops), -1)
        expected[number] = plain[names]
    is_fine &= accesses.tensors[accesses.buffer[rows]] == expected[task]
    return sorted({*task[~is_fine].tolist()})


def _plain_result(names: Sequence[str], ops: Mapping[str, Op]) -> str:
    """The tensor that an op leaves together with those fused to it, if they make one element of
    one; else nothing."""
    for name in names[1:]:
        axes = ops[name].outputs[0].index if name in ops else None
        if axes is None or not all(map(_is_plain, axes)):
            return ""
    return ops[names[-1]].outputs[0].tensor


def _is_plain(axis: Index) -> bool:
    """Whether positions follow one loop, step by step."""
    return len(axis.terms) == 1 and axis == Index(((axis.terms[0][0], 1),))


def _wrong_writes(
    program: Program, task: Task, made: Mapping[str, Lattice], of: Mapping[str, Lattice]
) -> Iterator[Problem]:
    """What a task writes although only other loops of its op lead there.

    To some elements none does: those between the taps of a transposed convolution.
    """
    who = f"task {task.name} ({', '.join(f'{dim} {a}:{b}' for dim, a, b in task.tile)}) writes"
    for access in task.writes:
        tensor = program.buffers[access.buffer].tensor
        if tensor not in made:
            yield Problem(message=f"{who} {tensor}, and makes {', '.join(made)}")
            continue
        wanted = [p[(p >= a) & (p < b)] for p, (a, b) in zip(of[tensor], access.box, strict=True)]
        others = [p[~np.isin(p, own)] for p, own in zip(wanted, made[tensor], strict=True)]
        if all(len(places) for places in wanted) and any(len(places) for places in others):
            first = [
                p[0] for p in (o if len(o) else w for o, w in zip(others, wanted, strict=True))
            ]
            element = tuple((int(place), int(place) + 1) for place in first)
            yield Problem(
                message=f"{who} {text(access.box)} of {tensor} and does not make {text(element)}"
            )


def _made_by(network: Network, ops: Mapping[str, Op], task: Task, tile: Box) -> dict[str, Lattice]:
    """The elements to which the loops of a task lead, by tensor."""
    op = ops[task.op]
    found = _results(network, op, _loops(op, tile))
    for name in task.fused:
        if name not in ops:
            continue
        result = ops[name].outputs[0]
        loops = {dim: np.arange(size) for dim, size in ops[name].dims}
        for axis, places in zip(result.index or (), next(iter(found.values())), strict=False):
            loops.update({dim: places for dim, _ in axis.terms[:1]})
        found = _results(network, ops[name], loops)
    return found


def _loops(op: Op, tile: Box) -> dict[str, Ints]:
    """Positions along loops; what lies outside them is a fault of its own."""
    ends = zip(op.dims, tile, strict=True)
    return {dim: np.arange(max(0, begin), min(end, size)) for (dim, size), (begin, end) in ends}


def _results(network: Network, op: Op, loops: Mapping[str, Ints]) -> dict[str, Lattice]:
    shapes = network.by_name
    return {o.tensor: touched(o, loops, shapes[o.tensor].shape) for o in op.outputs}


def _wrong_sums(
    timetable: Timetable, network: Network, op: Op, tiles: Mapping[int, Box]
) -> Iterator[Problem]:
    """Tiles that make the same elements, and slices of sums that do not go on from each other."""
    tasks, slots = timetable.program.tasks, timetable.slots
    axes = op.outputs[0].index or ()
    dims = {dim for axis in axes for dim, _ in axis.terms}
    kept = [loop for loop, (dim, _) in enumerate(op.dims) if dim in dims]
    summed = [(loop, (0, size)) for loop, (dim, size) in enumerate(op.dims) if dim not in dims]
    is_cut = any(tile[loop] != whole for tile in tiles.values() for loop, whole in summed)
    may_meet = is_cut or not all(map(_is_plain, axes))
    slices: dict[int, dict[Box, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, ranges in tiles.items():
        if not is_repeated(tasks[number]):
            key = tuple([ranges[loop] for loop in kept])
            slices[strip_of(tasks[number])][key].append(number)
    for by_result in slices.values():
        for numbers in by_result.values():
            in_time = sorted(numbers, key=lambda number: (slots[number].start_cycle, number))
            for before, number in pairwise(in_time):
                yield from _not_added(timetable.program, op, tasks[before], tasks[number])
        # Where every result has one place in the loops, tiles that share none share no result.
        if may_meet:
            firsts = {numbers[0]: tiles[numbers[0]] for numbers in by_result.values()}
            yield from _made_twice(tasks, network, op, firsts)


def _not_added(program: Program, op: Op, before: Task, task: Task) -> Iterator[Problem]:
    """What a slice of sums leaves out of those that the slice before it has written."""
    left, written = ([*dict.fromkeys(a.box for a in t.writes)] for t in (before, task))
    sums = op.outputs[0].tensor
    taken_up = [a.box for a in task.reads if program.buffers[a.buffer].tensor == sums]
    if any(len(box) != len(op.outputs[0].index or ()) for box in (*left, *written)):
        # Of another tensor, which is a fault of its own.
        return
    for boxes, verb in ((written, "write"), (taken_up, "read")):
        missing = [part for box in left for part in uncovered(box, boxes)]
        if missing:
            yield Problem(
                message=f"task {task.name} adds to the sums of {before.name}, and does not {verb} "
                f"{text(missing[0])} of them"
            )


def _made_twice(
    tasks: Sequence[Task], network: Network, op: Op, tiles: Mapping[int, Box]
) -> Iterator[Problem]:
    """Pairs of tiles, none of them slices of the same sums, that make the same elements."""
    result, numbers = op.outputs[0], list(tiles)
    shape = network.by_name[result.tensor].shape
    boxes = [needed_by_tile(op, result, tile, shape) for tile in tiles.values()]
    for pair in overlapping_pairs(boxes):
        names = [tasks[numbers[at]].name for at in pair]
        one, other = (touched(result, _loops(op, tiles[numbers[at]]), shape) for at in pair)
        both = [a[np.isin(a, b)] for a, b in zip(one, other, strict=True)]
        if all(len(places) for places in both):
            element = tuple((int(places[0]), int(places[0]) + 1) for places in both)
            yield Problem(
                message=f"tasks {names[0]} and {names[1]} both make {text(element)} of "
                f"{result.tensor}, and are no slices of the same sums"
            )

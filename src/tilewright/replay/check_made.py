"""Does a task write what the loops of its tile lead to, and do the sums of several tasks add up?

Tiles that share no point can still make the same elements: slices of a sum do, and the windows of a
transposed convolution meet, or lie between each other.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from tilewright.errors import Problem
from tilewright.network.graph import Index, Network, Op
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.model import Box, Program, Task, Timetable
from tilewright.replay.check_accesses import Accesses
from tilewright.replay.check_boxes import (
    Boxes,
    Ints,
    boxes_at,
    meeting_within,
    overlapping_pairs,
    text,
    uncovered,
)
from tilewright.replay.check_kinds import Flags, Kinds
from tilewright.replay.check_needed import Lattice, touched
from tilewright.replay.check_tiles import OpTiles, Tiles, needed_boxes, needed_by_tile


def made_boxes(network: Network, tiles: Tiles, accesses: Accesses) -> Boxes:
    """By task the box around what its loops lead to of its op's first result; 0:1 without an op."""
    ops = {op.name: op for op in network.ops}
    wanted = [(ops[n], ops[n].outputs[0], t.tasks, t.corners) for n, t in tiles.of_op.items()]
    shape = 2, accesses.boxes.shape[1], len(accesses.kinds.number)
    boxes = np.zeros(shape, dtype=np.int64)
    boxes[1] = 1
    if wanted:
        rows = np.concatenate([tasks for _, _, tasks, _ in wanted])
        boxes[:, :, rows] = needed_boxes(network.by_name, wanted, shape[1])
    return boxes


def sharing_ops(tiles: Tiles, accesses: Accesses, made: Boxes) -> list[str]:
    """Ops of which two tiles, neither of them repeated nor in another strip, may make the same
    elements, as slices of sums do; `made` is by task the box around what its loops lead to."""
    kinds = accesses.kinds
    is_wanted = kinds.flags(lambda task: task.op in tiles.of_op) & (kinds.part >= 0)
    rows = np.flatnonzero(is_wanted)
    boxes = made.take(rows, axis=2)
    # A box of nothing meets no other, wherever it is.
    found = [np.flatnonzero((boxes[0] >= boxes[1]).any(axis=0))]
    found += [one for one, _ in meeting_within(kinds.part[rows], boxes)]
    shared = {kind for at in found for kind in kinds.number[rows[at]].tolist()}
    return list(dict.fromkeys(kinds.examples[kind].op for kind in sorted(shared)))


def made_problems(
    timetable: Timetable,
    network: Network,
    accesses: Accesses,
    tiles: Tiles,
    results: tuple[Boxes, Collection[str]],
) -> Iterator[Problem]:
    """Tasks that write what they do not make, cut what has to be whole, or leave sums behind.

    The results are by task the box around what its loops lead to, and the ops of which two tiles
    may make the same.
    """
    made, sharing = results
    tasks, kinds = timetable.program.tasks, accesses.kinds
    ops = {op.name: op for op in network.ops}
    is_known = kinds.flags(lambda task: task.kind == "compute" and task.op in ops)
    computed = {name: done.only(is_known[done.tasks]) for name, done in tiles.of_op.items()}
    computed = {name: done for name, done in computed.items() if len(done.tasks)}
    has_gaps = np.zeros(len(tasks), dtype=np.bool_)
    for name, done in computed.items():
        if not all(map(_is_plain, ops[name].outputs[0].index or ())):
            has_gaps[done.tasks] = _has_gaps(ops[name], done.corners)
    for number in _suspects(ops, accesses, (made, has_gaps, is_known)):
        whole = tuple((0, size) for _, size in ops[tasks[number].op].dims)
        ranges = tiles.box(tasks[number].op, number), whole
        made_by = (_made_by(network, ops, tasks[number], tile) for tile in ranges)
        yield from _wrong_writes(timetable.program, tasks[number], *made_by)
    for name, done in sorted(computed.items(), key=lambda item: int(item[1].tasks[0])):
        yield from _cut_loops(tasks, ops[name], done)
        is_move = KIND_CLASSES[ops[name].kind] == "move"
        if name in sharing and not is_move and ops[name].outputs[0].index is not None:
            yield from _wrong_sums(timetable, network, ops[name], kinds, done)


def _has_gaps(op: Op, tiles: Boxes) -> Flags:
    """Whether the loops pass over positions between the first and the last of some axis."""
    lengths = dict(zip((dim for dim, _ in op.dims), tiles[1] - tiles[0], strict=True))
    has_gaps = np.zeros(tiles.shape[2], dtype=np.bool_)
    for axis in op.outputs[0].index or ():
        stretch = np.full(tiles.shape[2], 1 + axis.reach, dtype=np.int64)
        for dim, factor in sorted(axis.terms, key=lambda term: (abs(term[1]), term[0])):
            has_gaps |= (lengths[dim] > 1) & (abs(factor) > stretch)
            stretch += abs(factor) * (lengths[dim] - 1)
    return has_gaps


def _cut_loops(tasks: Sequence[Task], op: Op, done: OpTiles) -> Iterator[Problem]:
    """Tiles without all of a loop along which every result depends on every element."""
    for place, (dim, size) in enumerate(op.dims):
        if dim not in op.coupled:
            continue
        begins, ends = done.corners[:, place]
        for at in np.flatnonzero((begins != 0) | (ends != size)).tolist():
            yield Problem(
                message=f"task {tasks[done.tasks[at]].name} sees {dim} {begins[at]}:{ends[at]} of "
                f"{op.name}, a {op.kind}, and has to see {dim} 0:{size}"
            )


def _suspects(
    ops: Mapping[str, Op], accesses: Accesses, known: tuple[Boxes, Flags, Flags]
) -> Sequence[int]:
    """Tasks whose writes are not seen at once to be made by them: of one tensor, without gaps."""
    made, has_gaps, is_known = known
    rows = np.flatnonzero(accesses.is_write & is_known[accesses.task])
    task, (begins, ends) = accesses.task[rows], accesses.boxes.take(rows, axis=2)
    lowest, highest = made.take(task, axis=2)
    is_fine = ((lowest <= begins) & (ends <= highest)).all(axis=0) & ~has_gaps[task]
    expected = accesses.kinds.ints(
        lambda task: accesses.tensor_numbers.get(_plain_result((task.op, *task.fused), ops), -1)
    )
    is_fine &= accesses.tensors[accesses.buffer[rows]] == expected[task]
    return sorted({*task[~is_fine].tolist()})


def _plain_result(names: Sequence[str], ops: Mapping[str, Op]) -> str:
    """The tensor that an op leaves together with those fused to it, if they make one element of
    one; else nothing."""
    if names[-1] not in ops:
        return ""
    for name in names[1:]:
        axes = ops[name].outputs[0].index if name in ops else None
        if axes is None or not all(map(_is_plain, axes)):
            return ""
    return ops[names[-1]].outputs[0].tensor


def _is_plain(axis: Index) -> bool:
    """Whether positions follow one loop, step by step."""
    is_step = len(axis.terms) == 1 and axis.terms[0][1] == 1
    return is_step and (axis.offset, axis.divisor, axis.reach) == (0, 1, 0)


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
    timetable: Timetable, network: Network, op: Op, kinds: Kinds, done: OpTiles
) -> Iterator[Problem]:
    """Tiles that make the same elements, and slices of sums that do not go on from each other."""
    tasks, slots = timetable.program.tasks, timetable.slots
    axes = op.outputs[0].index or ()
    dims = {dim for axis in axes for dim, _ in axis.terms}
    kept = [loop for loop, (dim, _) in enumerate(op.dims) if dim in dims]
    summed = [(loop, size) for loop, (dim, size) in enumerate(op.dims) if dim not in dims]
    is_cut = any((done.corners[:, loop] != [[0], [size]]).any() for loop, size in summed)
    may_meet = is_cut or not all(map(_is_plain, axes))
    own = done.only(~kinds.is_repeated[done.tasks])
    tiles = dict(zip(own.tasks.tolist(), own.boxes, strict=True))
    results = boxes_at(own.corners[:, kept], len(kept))
    slices: dict[int, dict[Box, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, strip, box in zip(tiles, kinds.strip[own.tasks].tolist(), results, strict=True):
        slices[strip][box].append(number)
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
    left, written = ([access.box for access in t.writes] for t in (before, task))
    sums = op.outputs[0].tensor
    taken_up = [a.box for a in task.reads if program.buffers[a.buffer].tensor == sums]
    if left == written == taken_up:
        return
    left, written = [*dict.fromkeys(left)], [*dict.fromkeys(written)]
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

"""Is it the network that is computed: every op once, as far as outputs need it, and handed out?"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial

import numpy as np

from tilewright.errors import Problem
from tilewright.network.graph import Network, Op, Operand
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.model import Box, Buffer, Program, Space, Task
from tilewright.program.strips import strip_of
from tilewright.replay.check_accesses import Accesses
from tilewright.replay.check_boxes import (
    FEW_BOXES,
    MOST_ELEMENTS,
    Boxes,
    Ints,
    are_outside,
    box_array,
    common,
    contains,
    fill,
    fill_array,
    overlapping_pairs,
    text,
    uncovered,
    volume,
)
from tilewright.replay.check_data import SameData
from tilewright.replay.check_kinds import Kinds, is_plain_copy
from tilewright.replay.check_needed import Lattice, around, needed_points, points_inside
from tilewright.replay.check_tiles import OpTiles, Tiles
from tilewright.units import packed_bytes

MOST_EXACT = 1 << 53
"""Whole numbers below are exact as floats."""

Tile = tuple[Task, Box]
"""A task and its ranges along the dims of an op."""

Needed = Callable[[], Mapping[str, Sequence[Lattice]]]
"""By op the points that outputs need; not worked out unless some op is not computed as a whole."""


def network_problems(
    program: Program, network: Network, accesses: Accesses, tiles: Tiles, near: str | None
) -> Iterator[Problem]:
    """Ops that are not computed, or twice, buffers too small for their elements, lost outputs.

    Outputs are wanted outside, or `near`, in a memory of the chip that is named.
    """
    ops, kinds = {op.name: op for op in network.ops}, accesses.kinds
    if any(name not in ops for task in kinds.examples for name in _names(task)):
        for task in program.tasks:
            for name in _names(task):
                if name not in ops:
                    message = f"task {task.name} computes {name}, an op that is not there"
                    yield Problem(message=message)
    once = {n: done.only(~kinds.is_repeated[done.tasks]) for n, done in tiles.of_op.items()}
    own = {name: done for name, done in once.items() if len(done.tasks)}
    covers = {
        name: _filled_boxes(ops[name], done, kinds.strip[done.tasks]) for name, done in own.items()
    }
    whole = {own[name] for name, boxes in covers.items() if boxes == [_whole(ops[name])]}
    hosts = _hosts(kinds, own)
    needed = cache(partial(needed_points, network))
    for op in network.ops:
        done, fused = own.get(op.name), hosts.get(op.name, {})
        if done is not None and done not in whole:
            yield from _op_problems(program, op, done, covers[op.name], needed)
        # What is applied to all of an op's tiles is applied to all of it if they are.
        partly = {name: tiles for name, tiles in fused.items() if tiles not in whole}
        yield from _two_makers(program, op, [*fused.values()], done)
        yield from _fused_problems(program, ops, (op, partly), kinds, needed)
        is_missing = done is None and not fused and not _may_be_view(network, op)
        if is_missing and needed()[op.name]:
            yield Problem(message=f"no task computes {op.name}, a {op.kind} of {op.points} points")
    yield from _size_problems(program, network, accesses)
    for tensor in network.outputs:
        yield from _output_problems(program, tensor.name, network, near)


def _names(task: Task) -> tuple[str, ...]:
    """The ops that a task does."""
    return (task.op, *task.fused) if task.op else task.fused


def _hosts(kinds: Kinds, own: Mapping[str, OpTiles]) -> dict[str, dict[str, OpTiles]]:
    """By fused op the tiles of each op to whose results it is applied."""
    applying: dict[tuple[str, str], list[int]] = defaultdict(list)
    for kind, task in enumerate(kinds.examples):
        for name in task.fused if task.op in own else ():
            applying[name, task.op].append(kind)
    found: dict[str, dict[str, OpTiles]] = defaultdict(dict)
    for (name, host), numbers in applying.items():
        is_applying = np.zeros(len(kinds.examples), dtype=np.bool_)
        is_applying[numbers] = True
        tiles = own[host].only(is_applying[kinds.number[own[host].tasks]])
        if len(tiles.tasks):
            found[name][host] = tiles
    return found


def same_data_of(program: Program, network: Network | None) -> SameData:
    """Which tensors are the same data under two names, as far as that is known.

    Two tensors that are both *made* (given, or computed by a task) are never the same. With a
    network, any others are only if ops that move data lead from one to the other.
    """
    if network is None:
        made = _made_by_tasks(program)
        return lambda tensor, other: tensor == other or not (tensor in made and other in made)
    movers = [op for op in network.ops if KIND_CLASSES[op.kind] == "move"]
    moved = {operand.tensor for op in movers for operand in op.outputs}
    families = _families(movers)

    def same(tensor: str, other: str) -> bool:
        related = families.get(tensor, tensor) == families.get(other, other)
        return tensor == other or (related and (tensor in moved or other in moved))

    return same


def _made_by_tasks(program: Program) -> frozenset[str]:
    given = [program.buffers[b].tensor for b in program.given if program.root(b) == b]
    written = [
        program.buffers[access.buffer].tensor
        for task in program.tasks
        if not is_plain_copy(task)
        for access in task.writes
    ]
    return frozenset((*given, *written))


def _families(movers: Sequence[Op]) -> dict[str, str]:
    """One name for all tensors that ops which move data connect."""
    family: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for op in movers:
        names = [operand.tensor for operand in op.operands]
        heads = dict.fromkeys(family.get(name, name) for name in names)
        joined = [member for head in heads for member in members.pop(head, [head])]
        members[names[0]] = joined
        family.update((member, names[0]) for member in joined)
    return family


def _whole(op: Op) -> Box:
    return tuple([(0, size) for _, size in op.dims])


def _op_problems(
    program: Program, op: Op, done: OpTiles, covers: Sequence[Box] | None, needed: Needed
) -> Iterator[Problem]:
    """What is wrong with an op that is not filled as a whole; `covers` are boxes that are."""
    is_move = KIND_CLASSES[op.kind] == "move" and not op.searched
    if covers is not None:
        points = needed()[op.name] if not is_move else ()
        if points:
            yield from _gap(op, points, around(points), ("computes", covers))
        return
    dims = {dim for dim, _ in op.dims}
    tiles = _with_tasks(program, done)
    strips = _by_strip(tiles)
    for (task, box), is_outside in zip(tiles, are_outside(_whole(op), done.boxes), strict=True):
        strange = [dim for dim, _, _ in task.tile if dim not in dims]
        if strange or is_outside:
            what = f"dim {strange[0]}" if strange else _named(op, box)
            yield Problem(message=f"task {task.name} computes {what} of {op.name}, {_named(op)}")
    if is_move:
        return
    for strip, own in strips.items():
        # Only what two strips both need may be computed twice, once for each of them.
        others = strips.get(0, []) if strip else []
        for one, other in overlapping_pairs([box for _, box in (*own, *others)]):
            (task, box), (again, same) = (*own, *others)[one], (*own, *others)[other]
            if one < len(own):
                both = common(box, same)
                yield Problem(
                    message=f"tasks {task.name} and {again.name} both compute "
                    f"{_named(op, both)} of {op.name}, {volume(both)} points"
                )
    yield from _gaps(op, needed, strips, "computes")


def _filled_boxes(op: Op, done: OpTiles, strip: Ints) -> list[Box] | None:
    """Boxes that tiles fill, no two of them overlapping: all of the op, or one for each strip.

    None if that is not seen at once.
    """
    whole = _whole(op)
    parts, boxes = [done], [whole]
    if strip.any():
        parts = [done.only(strip == number) for number in dict.fromkeys(strip.tolist())]
        boxes = [_around_sums(op, part.corners) for part in parts]
    is_plain = done.is_named and (strip.all() or not strip.any())
    is_inside = is_plain and all(contains(whole, box) for box in boxes)
    return boxes if is_inside and all(map(_is_filled, boxes, parts)) else None


def _is_filled(box: Box, tiles: OpTiles) -> bool:
    """Whether tiles, no two of which overlap, are together all of a box of an op's loops."""
    if len(tiles.tasks) <= FEW_BOXES or not box or volume(box) > MOST_ELEMENTS:
        return fill(box, tiles.boxes)
    return fill_array(box, tiles.corners)


def _with_tasks(program: Program, tiles: OpTiles) -> list[Tile]:
    return [
        (program.tasks[n], box) for n, box in zip(tiles.tasks.tolist(), tiles.boxes, strict=True)
    ]


def _by_strip(tiles: Sequence[Tile]) -> dict[int, list[Tile]]:
    """Tiles by the strip that they are part of; all under 0 if an op does not run in strips."""
    found: dict[int, list[Tile]] = defaultdict(list)
    for task, box in tiles:
        found[strip_of(task)].append((task, box))
    return dict(found)


def _gaps(
    op: Op, needed: Needed, strips: Mapping[int, Sequence[Tile]], verb: str
) -> Iterator[Problem]:
    """What is missing in a strip, or between strips: each computes all of the box around it."""
    covers = [box for _, box in strips[0]] if 0 in strips else []
    if [*strips] == [0] and fill(tuple((0, size) for _, size in op.dims), covers):
        return
    points = needed()[op.name]
    if not points:
        return
    for strip, tiles in strips.items():
        if strip:
            covers.append(_around_sums(op, box_array([box for _, box in tiles], len(op.dims))))
            boxes = [box for _, box in tiles]
            yield from _gap(op, points, covers[-1], (f"{verb} for strip {strip}", boxes))
    yield from _gap(op, points, around(points), (verb, covers))


def _around_sums(op: Op, tiles: Boxes) -> Box:
    """The smallest box around some, which need all products of their sums."""
    inner = _summed_dims(op)
    ends = zip(op.dims, tiles[0].min(axis=1).tolist(), tiles[1].max(axis=1).tolist(), strict=True)
    return tuple((0, size) if dim in inner else (low, high) for (dim, size), low, high in ends)


def _gap(
    op: Op, needed: Sequence[Lattice], box: Box, done: tuple[str, Sequence[Box]]
) -> Iterator[Problem]:
    """Points of a box that are needed and not among those that are done."""
    verb, boxes = done
    missing = [(part, points_inside(needed, part)) for part in uncovered(box, boxes)]
    points = sum(count for _, count in missing)
    if points:
        first = next(part for part, count in missing if count)
        yield Problem(
            message=f"no task {verb} {_named(op, first)} of {op.name}; "
            f"{points} of its {points_inside(needed, box)} points are missing"
        )


def _two_makers(
    program: Program, op: Op, hosts: Sequence[OpTiles], own: OpTiles | None
) -> Iterator[Problem]:
    """A fused op is computed by one host only, and by no task of its own."""
    makers = sorted(int(tiles.tasks[0]) for tiles in hosts)
    makers += [int(own.tasks[0])] if own is not None else []
    if len(makers) > 1:
        names = [program.tasks[number].name for number in makers[:2]]
        yield Problem(message=f"tasks {names[0]} and {names[1]} both compute {op.name}")


def _fused_problems(
    program: Program,
    ops: Mapping[str, Op],
    applied: tuple[Op, Mapping[str, OpTiles]],
    kinds: Kinds,
    needed: Needed,
) -> Iterator[Problem]:
    """A fused op is computed where its host's result is needed."""
    op, hosts = applied
    for name, tiles in sorted(hosts.items(), key=lambda item: int(item[1].tasks[0])):
        host = ops[name]
        inner = [loop for loop, (dim, _) in enumerate(host.dims) if dim in _summed_dims(host)]
        # Only the last of several partial sums is complete, so any range of these dims will do.
        corners = tiles.corners.copy()
        for loop in inner:
            corners[:, loop] = np.array([[0], [host.dims[loop][1]]])
        whole = OpTiles(tiles.tasks, corners, tiles.is_named)
        if kinds.strip[tiles.tasks].any() or not _is_filled(
            tuple((0, size) for _, size in host.dims), whole
        ):
            by_box = {(strip_of(t), box): t for t, box in _with_tasks(program, whole)}
            strips = _by_strip([(task, box) for (_, box), task in by_box.items()])
            yield from _gaps(host, needed, strips, f"applies {op.name} to")


def _summed_dims(op: Op) -> frozenset[str]:
    """Dims along which the op's result has no extent."""
    index = op.outputs[0].index
    if index is None:
        return frozenset()
    kept = {dim for axis in index for dim, _ in axis.terms}
    return frozenset(dim for dim, _ in op.dims if dim not in kept)


def _may_be_view(network: Network, op: Op) -> bool:
    """Whether the op's result can lie in the bytes of its inputs, or the inputs in the result's."""
    if KIND_CLASSES[op.kind] != "move":
        return False
    if op.kind in ("reshape", "identity"):
        return True
    return all(_keeps_order(network, operand, op.outputs[0]) for operand in op.inputs)


def _keeps_order(network: Network, operand: Operand, result: Operand) -> bool:
    """Whether an operand's elements stand as in the result: no axis turned, none skipped."""
    if operand.index is None or result.index is None:
        return False
    long = [
        axis.terms
        for axis, size in zip(operand.index, network.by_name[operand.tensor].shape, strict=True)
        if size != 1
    ]
    simple = all(len(terms) == 1 and terms[0][1] == 1 for terms in long)
    return simple and long == [axis.terms for axis in result.index if axis.terms in long]


def _size_problems(program: Program, network: Network, accesses: Accesses) -> Iterator[Problem]:
    """Buffers outside their tensors, or too small; those not seen at once to be neither."""
    tensors = [network.by_name[name] for name in accesses.tensor_numbers]
    wholes = [tuple((0, size) for size in tensor.shape) for tensor in tensors]
    lowest, highest = box_array(wholes, accesses.boxes.shape[1]).take(accesses.tensors, axis=2)
    begins, ends = accesses.buffer_boxes
    bits = np.array([tensor.bits for tensor in tensors], dtype=np.float64)[accesses.tensors]
    has_bits = 8 * np.array([buffer.size_bytes for buffer in program.buffers], dtype=np.float64)
    need_bits = (ends - begins).astype(np.float64).prod(axis=0) * bits
    is_fine = ((lowest <= begins) & (ends <= highest)).all(axis=0)
    is_fine &= (need_bits <= has_bits) & (need_bits < MOST_EXACT)
    for number in np.flatnonzero(~is_fine).tolist():
        yield from _buffer_problems(program.buffers[number], network)


def tensor_problems(program: Program, network: Network) -> Iterator[Problem]:
    """Buffers of tensors that do not exist, or that have other axes."""
    for buffer in program.buffers:
        tensor = network.by_name.get(buffer.tensor)
        if tensor is None:
            yield Problem(
                message=f"buffer {buffer.name} holds {buffer.tensor}, a tensor that is not there"
            )
        elif len(tensor.shape) != len(buffer.box):
            yield Problem(
                message=f"buffer {buffer.name} holds {text(buffer.box)} of {tensor.name}, which "
                f"has {len(tensor.shape)} axes"
            )


def _buffer_problems(buffer: Buffer, network: Network) -> Iterator[Problem]:
    tensor = network.by_name[buffer.tensor]
    whole = tuple((0, size) for size in tensor.shape)
    if not contains(whole, buffer.box):
        yield Problem(
            message=f"buffer {buffer.name} holds {text(buffer.box)} of {tensor.name}, "
            f"which is {text(whole)}"
        )
    need = packed_bytes(volume(buffer.box), tensor.bits)
    if buffer.size_bytes < need:
        yield Problem(
            message=f"buffer {buffer.name} has {buffer.size_bytes} bytes, and "
            f"{volume(buffer.box)} elements of {tensor.bits} bits take {need}"
        )


def _output_problems(
    program: Program, tensor: str, network: Network, near: str | None
) -> Iterator[Problem]:
    """All of an output must be in results where it is wanted; what fills them is checked too."""

    def is_wanted(space: Space) -> bool:
        return space.kind in ("external", "sink") if near is None else space.memory == near

    boxes = [
        program.buffers[number].box
        for number in program.results
        if program.buffers[number].tensor == tensor
        and is_wanted(program.space[program.buffers[number].space])
    ]
    whole = tuple((0, size) for size in network.by_name[tensor].shape)
    missing = uncovered(whole, boxes)
    if missing:
        where = "an external memory or a sink" if near is None else near
        yield Problem(
            message=f"no result in {where} holds {text(missing[0])} of the output {tensor}"
        )


def _named(op: Op, box: Box | None = None) -> str:
    """Ranges with their dims: `OY 0:4, OX 0:8`."""
    ends = box if box is not None else tuple((0, size) for _, size in op.dims)
    parts = [f"{dim} {a}:{b}" for (dim, _), (a, b) in zip(op.dims, ends, strict=True)]
    return ", ".join(parts)

"""Is it the network that is computed: every op once, as far as outputs need it, and handed out?"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial

from tilewright.errors import Problem
from tilewright.network.graph import Network, Op, Operand
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.model import Box, Buffer, Program, Task
from tilewright.program.strips import is_repeated, strip_of
from tilewright.replay.check_boxes import (
    are_outside,
    common,
    contains,
    fill,
    overlapping_pairs,
    text,
    uncovered,
    volume,
)
from tilewright.replay.check_data import SameData
from tilewright.replay.check_needed import Lattice, around, needed_points, points_inside
from tilewright.replay.check_transfers import is_plain_copy
from tilewright.units import packed_bytes

Tile = tuple[Task, Box]
"""A task and its ranges along the dims of an op."""

Needed = Callable[[], Mapping[str, Sequence[Lattice]]]
"""By op the points that outputs need; not worked out unless some op is not computed as a whole."""


def network_problems(
    program: Program, network: Network, tiles: Sequence[Box | None]
) -> Iterator[Problem]:
    """Ops that are not computed, or twice, buffers too small for their elements, lost outputs."""
    ops = {op.name: op for op in network.ops}
    own: dict[str, list[Tile]] = defaultdict(list)
    fused: dict[str, dict[str, list[Tile]]] = defaultdict(lambda: defaultdict(list))
    for task, tile in zip(program.tasks, tiles, strict=True):
        for name in (task.op, *task.fused):
            if name and name not in ops:
                yield Problem(message=f"task {task.name} computes {name}, an op that is not there")
        if is_repeated(task) or tile is None:
            continue
        own[task.op].append((task, tile))
        for name in task.fused:
            fused[name][task.op].append(own[task.op][-1])
    needed = cache(partial(needed_points, network))
    for op in network.ops:
        yield from _op_problems(op, own[op.name], needed)
        yield from _fused_problems(op, ops, fused[op.name], own[op.name], needed)
        is_missing = not own[op.name] and not fused[op.name] and not _may_be_view(network, op)
        if is_missing and needed()[op.name]:
            yield Problem(message=f"no task computes {op.name}, a {op.kind} of {op.points} points")
    yield from _size_problems(program, network)
    for tensor in network.outputs:
        yield from _output_problems(program, tensor.name, network)


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


def _op_problems(op: Op, tiles: Sequence[Tile], needed: Needed) -> Iterator[Problem]:
    whole = tuple((0, size) for _, size in op.dims)
    dims = {dim for dim, _ in op.dims}
    boxes = [box for _, box in tiles]
    strips = _by_strip(tiles)
    is_named = dims.issuperset([dim for task, _ in tiles for dim, _, _ in task.tile])
    if is_named and [*strips] == [0] and fill(whole, boxes):
        return
    for (task, box), is_outside in zip(tiles, are_outside(whole, boxes), strict=True):
        strange = [dim for dim, _, _ in task.tile if dim not in dims]
        if strange or is_outside:
            what = f"dim {strange[0]}" if strange else _named(op, box)
            yield Problem(message=f"task {task.name} computes {what} of {op.name}, {_named(op)}")
    if KIND_CLASSES[op.kind] == "move" and not op.searched:
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
    if tiles:
        yield from _gaps(op, needed, strips, "computes")


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
            covers.append(_around_sums(op, [box for _, box in tiles]))
            boxes = [box for _, box in tiles]
            yield from _gap(op, points, covers[-1], (f"{verb} for strip {strip}", boxes))
    yield from _gap(op, points, around(points), (verb, covers))


def _around_sums(op: Op, boxes: Sequence[Box]) -> Box:
    """The smallest box around some, which need all products of their sums."""
    inner = _summed_dims(op)
    ends = zip(*boxes, strict=True)
    return tuple(
        (0, size) if dim in inner else (min(a for a, _ in axis), max(b for _, b in axis))
        for (dim, size), axis in zip(op.dims, ends, strict=True)
    )


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


def _fused_problems(
    op: Op,
    ops: Mapping[str, Op],
    hosts: Mapping[str, Sequence[Tile]],
    tiles: Sequence[Tile],
    needed: Needed,
) -> Iterator[Problem]:
    """A fused op is computed where its host's result is needed, and by one host only."""
    makers = [host[0][0].name for host in hosts.values()]
    makers += [tiles[0][0].name] if tiles else []
    if len(makers) > 1:
        yield Problem(message=f"tasks {makers[0]} and {makers[1]} both compute {op.name}")
    for name, host_tiles in hosts.items():
        host = ops[name]
        inner = _summed_dims(host)
        # Only the last of several partial sums is complete, so any range of these dims will do.
        applied = {
            (
                strip_of(task),
                tuple(
                    (0, size) if dim in inner else ends
                    for (dim, size), ends in zip(host.dims, box, strict=True)
                ),
            ): task
            for task, box in host_tiles
        }
        strips = _by_strip([(task, box) for (_, box), task in applied.items()])
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


def _size_problems(program: Program, network: Network) -> Iterator[Problem]:
    # Thousands of buffers have a box and a size that others have too.
    is_fine: dict[tuple[str, Box, int], bool] = {}
    for buffer in program.buffers:
        key = buffer.tensor, buffer.box, buffer.size_bytes
        if not is_fine.get(key):
            found = list(_buffer_problems(buffer, network))
            is_fine[key] = not found
            yield from found


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


def _output_problems(program: Program, tensor: str, network: Network) -> Iterator[Problem]:
    """All of an output must be in results outside the chip; that they are filled is checked too."""
    boxes = [
        program.buffers[number].box
        for number in program.results
        if program.buffers[number].tensor == tensor
        and program.space[program.buffers[number].space].kind in ("external", "sink")
    ]
    whole = tuple((0, size) for size in network.by_name[tensor].shape)
    missing = uncovered(whole, boxes)
    if missing:
        yield Problem(
            message=f"no result in an external memory or a sink holds {text(missing[0])} of the "
            f"output {tensor}"
        )


def _named(op: Op, box: Box | None = None) -> str:
    """Ranges with their dims: `OY 0:4, OX 0:8`."""
    ends = box if box is not None else tuple((0, size) for _, size in op.dims)
    parts = [f"{dim} {a}:{b}" for (dim, _), (a, b) in zip(op.dims, ends, strict=True)]
    return ", ".join(parts)

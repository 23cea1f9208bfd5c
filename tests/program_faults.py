"""What is wrong with a program, found the slow and obvious way: task by task, all elements."""

from collections.abc import Iterator
from itertools import combinations
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from tilewright.network.graph import Network
from tilewright.program.model import Access, Box, Buffer, Program

PARTIAL_SUM_BITS = 32
"""Of networks without element types on machines that do not say."""

Mask = NDArray[np.bool_]


def faults(program: Program, network: Network) -> list[str]:
    """Everything that is wrong, in words."""
    found = [*shape_faults(program, network)]
    if found:
        return found
    return [
        *cover_faults(program, network),
        *room_faults(program),
        *charge_faults(program, network),
        *data_faults(program),
    ]


def elements(box: Box) -> int:
    return prod(stop - start for start, stop in box)


def inside(outer: Box, inner: Box) -> bool:
    pairs = zip(outer, inner, strict=True)
    return all(a <= c and d <= b for (a, b), (c, d) in pairs)


def shape_faults(program: Program, network: Network) -> Iterator[str]:
    """Sizes, views within their roots, accesses within their buffers, tasks after earlier ones."""
    for number, buffer in enumerate(program.buffers):
        tensor = network.by_name[buffer.tensor]
        bits = PARTIAL_SUM_BITS if buffer.name.endswith(" partial sums") else tensor.bits
        if buffer.size_bytes != ceil(elements(buffer.box) * bits / 8):
            yield f"buffer {number} {buffer.name}: {buffer.size_bytes} B for {buffer.box}"
        if not inside(tuple((0, size) for size in tensor.shape), buffer.box):
            yield f"buffer {number} {buffer.name}: {buffer.box} is not in the tensor"
        yield from view_faults(program, number, buffer)
    for number, task in enumerate(program.tasks):
        if any(before >= number for before in task.after):
            yield f"task {number} {task.name} waits for a later one"
        for access in (*task.reads, *task.writes):
            if not inside(program.buffers[access.buffer].box, access.box):
                yield f"task {number} {task.name}: {access.box} is not in its buffer"
            if elements(access.box) == 0:
                yield f"task {number} {task.name}: nothing is read or written"


def view_faults(program: Program, number: int, buffer: Buffer) -> Iterator[str]:
    if buffer.view is None:
        return
    root = program.buffers[buffer.view.buffer]
    if root.view is not None or root.space != buffer.space:
        yield f"view {number} {buffer.name} of a view, or of another space"
    elif buffer.view.origin is None:
        if elements(root.box) != elements(buffer.box):
            yield f"view {number} {buffer.name} is not all of its root"
    else:
        sides = [stop - start for start, stop in buffer.box]
        window = tuple((o, o + n) for o, n in zip(buffer.view.origin, sides, strict=True))
        if elements(buffer.box) and not inside(root.box, window):
            yield f"view {number} {buffer.name}: {window} is not in its root's {root.box}"


def cover_faults(program: Program, network: Network) -> Iterator[str]:
    """The tiles of an op must not overlap, and their points must be all of its points."""
    tiles: dict[str, list[dict[str, tuple[int, int]]]] = {}
    for task in program.tasks:
        if task.kind == "compute":
            tiles.setdefault(task.op, []).append({d: (a, b) for d, a, b in task.tile})
    for op in network.ops:
        if op.name not in tiles:
            continue
        boxes = [tuple(tile[dim] for dim, _ in op.dims) for tile in tiles[op.name]]
        if sum(map(elements, boxes)) != op.points:
            yield f"op {op.name}: tiles have {sum(map(elements, boxes))} of {op.points} points"
        for one, other in combinations(boxes, 2):
            if all(max(a, c) < min(b, d) for (a, b), (c, d) in zip(one, other, strict=True)):
                yield f"op {op.name}: tiles {one} and {other} overlap"


def room_faults(program: Program) -> Iterator[str]:
    """All that a task touches in a scratchpad must fit there at once."""
    for number, task in enumerate(program.tasks):
        roots = {program.root(a.buffer) for a in (*task.reads, *task.writes)}
        for space in program.spaces:
            if space.kind != "scratchpad":
                continue
            here = [program.buffers[root] for root in sorted(roots)]
            sizes = [buffer.size_bytes for buffer in here if buffer.space == space.name]
            step = space.alignment_bytes
            need = sum(ceil(size / step) * step for size in sizes)
            if need > space.size_bytes:
                yield f"task {number} {task.name}: {need} B in {space.name}"


def charge_faults(program: Program, network: Network) -> Iterator[str]:
    """A transfer reads each of its boxes once, and writes them as often as it has targets."""

    def box_of(access: Access) -> tuple[str, Box]:
        return program.buffers[access.buffer].tensor, access.box

    def size(accesses: tuple[Access, ...]) -> int:
        boxes = [(network.by_name[name].bits, elements(box)) for name, box in map(box_of, accesses)]
        return sum(ceil(count * bits / 8) for bits, count in boxes)

    for number, task in enumerate(program.tasks):
        if task.kind == "compute":
            continue
        if {box_of(a) for a in task.reads} != {box_of(a) for a in task.writes}:
            yield f"task {number} {task.name} writes other boxes than it reads"
        read = sum(charge.read_bytes for charge in task.charges)
        written = sum(charge.write_bytes for charge in task.charges)
        if (read, written) != (size(tuple(dict.fromkeys(task.reads))), size(task.writes)):
            yield f"task {number} {task.name}: {read} B read, {written} B written"


def touched(program: Program, access: Access) -> tuple[int, Mask]:
    """The root that an access goes to, and which of its elements, in the order of its bytes."""
    buffer = program.buffers[access.buffer]
    own = np.zeros([stop - start for start, stop in buffer.box], dtype=np.bool_)
    own[
        tuple(
            slice(start - low, stop - low)
            for (start, stop), (low, _) in zip(access.box, buffer.box, strict=True)
        )
    ] = True
    if buffer.view is None:
        return access.buffer, own.reshape(-1)
    root = program.buffers[buffer.view.buffer]
    if buffer.view.origin is None:
        return buffer.view.buffer, own.reshape(-1)
    all_of_it = np.zeros([stop - start for start, stop in root.box], dtype=np.bool_)
    all_of_it[
        tuple(
            slice(at - low, at - low + size)
            for at, (low, _), size in zip(buffer.view.origin, root.box, own.shape, strict=True)
        )
    ] = own
    return buffer.view.buffer, all_of_it.reshape(-1)


def data_faults(program: Program) -> Iterator[str]:
    """Whoever wrote what a task reads, and whoever read what it writes over, must have ended."""
    given = {program.root(number) for number in program.given}
    ended: list[set[int]] = []
    writer: dict[int, NDArray[np.int64]] = {}
    readers: dict[int, list[tuple[int, Mask]]] = {}
    for number, task in enumerate(program.tasks):
        before = set(task.after).union(*(ended[earlier] for earlier in task.after))
        ended.append(before)
        for access in task.reads:
            root, mask = touched(program, access)
            if root not in given:
                last = writer.get(root, np.full(len(mask), -1))[mask]
                late = set(np.unique(last).tolist()) - before
                if late:
                    yield f"task {number} {task.name} does not wait for {sorted(late)}"
            readers.setdefault(root, []).append((number, mask))
        for access in task.writes:
            root, mask = touched(program, access)
            for earlier, seen in readers.get(root, []):
                if earlier != number and earlier not in before and (seen & mask).any():
                    yield f"task {number} {task.name} writes over what {earlier} reads"
            writer.setdefault(root, np.full(len(mask), -1))[mask] = number
    for number in program.results:
        root, mask = touched(program, Access(number, program.buffers[number].box))
        if root not in given and (writer.get(root, np.full(len(mask), -1))[mask] < 0).any():
            yield f"result {number} {program.buffers[number].name} is not all written"

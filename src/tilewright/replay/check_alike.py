"""Tasks of which one can speak for many: they do as much of the same, only elsewhere."""

import numpy as np

from tilewright.network.graph import Network, Operand
from tilewright.program.model import Program
from tilewright.replay.check_accesses import Accesses, volumes
from tilewright.replay.check_boxes import MOST_ELEMENTS, Boxes, Ints
from tilewright.replay.check_tiles import Tiles
from tilewright.replay.emulate_layout import holds_partial_sums


def unlike_tasks(
    program: Program, network: Network, accesses: Accesses, tiles: Tiles, made: Boxes
) -> list[int]:
    """The first of all tasks that are alike, in order.

    They are if they are of one kind, walk as many points along every loop to as many results
    (`made` is by task the box around these), and touch as many elements, one access after the
    other, of buffers that are alike: of one tensor, in one space, with as many bytes and elements,
    all with sums or with finished data. A copy that reads one box twice is like no other task,
    nor is a tile of an op that reads between elements: how much work it has depends on where it is.
    """
    n_tasks = len(program.tasks)
    if max(map(_most_elements, (accesses.boxes, accesses.buffer_boxes, made))) > MOST_ELEMENTS:
        return list(range(n_tasks))
    alike = _joined(accesses.kinds.number, volumes(made))
    lengths = np.zeros((_most_dims(tiles), n_tasks), dtype=np.int64)
    for done in tiles.of_op.values():
        begins, ends = done.corners
        lengths[: len(begins), done.tasks] = ends - begins
    for column in lengths:
        alike = _joined(alike, column)
    alike = _by_touches(program, accesses, alike)
    # The first of them is written last.
    first = dict(zip(reversed(alike.tolist()), reversed(range(n_tasks)), strict=True))
    n_reads = np.bincount(accesses.task[~accesses.is_write], minlength=n_tasks)
    several = np.flatnonzero(accesses.kinds.is_copy & (n_reads > 1)).tolist()
    twice = [n for n in several if len({*program.tasks[n].reads}) < n_reads[n]]
    between = [op.name for op in network.ops if any(map(_reads_between, op.inputs))]
    placed = [
        n for name in between if name in tiles.of_op for n in tiles.of_op[name].tasks.tolist()
    ]
    return sorted({*first.values(), *twice, *placed})


def _reads_between(operand: Operand) -> bool:
    """Whether some points of an op's loops lie between elements of what it reads."""
    return any(index.divisor > 1 for index in operand.index or ())


def _most_elements(boxes: Boxes) -> float:
    return float((boxes[1] - boxes[0]).astype(np.float64).prod(axis=0).max(initial=0))


def _most_dims(tiles: Tiles) -> int:
    return max((done.corners.shape[1] for done in tiles.of_op.values()), default=0)


def _by_touches(program: Program, accesses: Accesses, alike: Ints) -> Ints:
    """The same numbers, but different ones for tasks that touch other amounts."""
    known: dict[object, int] = {}
    facts = [
        known.setdefault((b.tensor, b.space, b.size_bytes, holds_partial_sums(b)), len(known))
        for b in program.buffers
    ]
    buffer = _joined(np.array(facts, dtype=np.int64), volumes(accesses.buffer_boxes))
    touch = 2 * _joined(buffer[accesses.buffer], volumes(accesses.boxes)) + accesses.is_write
    touch = _numbered(touch)
    first = np.searchsorted(accesses.task, np.arange(len(alike) + 1))
    n_touches = np.diff(first)
    for place in range(int(n_touches.max(initial=0))):
        tasks = np.flatnonzero(n_touches > place)
        alike[tasks] = _joined(alike[tasks], touch[first[tasks] + place])
    return _joined(alike, n_touches)


def _joined(one: Ints, other: Ints) -> Ints:
    """By pair a number that only equal pairs have in common."""
    if min(one.min(initial=0), other.min(initial=0)) < 0 or (
        (int(one.max(initial=0)) + 1) * (int(other.max(initial=0)) + 1) > MOST_ELEMENTS
    ):
        one, other = _numbered(one), _numbered(other)
    return one * (int(other.max(initial=0)) + 1) + other


def _numbered(values: Ints) -> Ints:
    """The place of each value among the different ones."""
    in_order = np.sort(values)
    is_new = np.ones(len(in_order), dtype=np.bool_)
    is_new[1:] = in_order[1:] != in_order[:-1]
    return np.searchsorted(in_order[is_new], values)

"""Is the right data there when a task reads it, and does nobody change it meanwhile?

Tasks are walked through in order of their start. For every root the walk knows what each box holds:
whose data it is and which task made it. A transfer copies this knowledge with the bytes, whatever
they are (an eviction saves a buffer that is half written, or half overwritten in place); a task
that makes data replaces it. A box counts as written when its writer *starts*: whoever touches it
before the writer ends is found by looking at the tasks that run at the same time.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.errors import Problem
from tilewright.program.model import Access, Box, Program, Timetable
from tilewright.replay.check_accesses import Accesses, volumes
from tilewright.replay.check_boxes import (
    Ints,
    Shape,
    boxes_at,
    boxes_in_root,
    bytes_of,
    is_full,
    meeting_within,
    overlapping_pairs,
    overlaps,
    shape_of,
    shifted,
    text,
    uncovered,
    view_shift,
    volume,
)
from tilewright.replay.check_contents import Contents, Piece
from tilewright.replay.check_kinds import is_plain_copy
from tilewright.replay.check_offsets import Offsets
from tilewright.replay.check_races import races
from tilewright.replay.check_settled import GIVEN, Settled, settled_buffers
from tilewright.replay.check_time import cycles_text, slot_times
from tilewright.replay.check_transfers import copies

SameData = Callable[[str, str], bool]
"""Whether what was made as the second tensor can be read as the first one."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The state of all memories at the start of a task."""

    timetable: Timetable
    same_data: SameData
    offsets: Offsets
    later_makers: dict[int, list[tuple[int, str, Box]]]
    roots: list[int]
    """By buffer the one whose bytes it uses."""
    shifts: dict[int, Shape | None]
    """By buffer what to add to its coordinates to get its root's; None under another shape.

    Only of those that the walk may touch, as the next ones."""
    backs: dict[int, Shape | None]
    """By buffer the same with its signs turned."""
    settled: Settled
    """Buffers that need not be looked at."""
    contents: dict[int, Contents] = field(default_factory=lambda: defaultdict(Contents))
    versions: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """By buffer that is no view: how often it was written."""
    right: dict[Access, int] = field(default_factory=dict)
    """Boxes that held what they should, and of which version of their buffer that is true."""


def data_problems(
    timetable: Timetable, accesses: Accesses, same_data: SameData, offsets: Offsets
) -> Iterator[Problem]:
    """Races, reads of what is not there, and results that are incomplete."""
    program = timetable.program
    roots = accesses.roots.tolist()
    order = start_order(timetable)
    later_makers = _later_makers(timetable, accesses)
    settled = settled_buffers(timetable, accesses, order, later_makers)
    is_walked = np.array(settled.walked_tasks, dtype=np.bool_)[accesses.task]
    touched = {*accesses.buffer[is_walked].tolist(), *program.given, *program.results}
    shifts = {number: view_shift(program.buffers[number]) for number in sorted(touched)}
    backs = {
        number: None if shift is None else tuple([-by for by in shift])
        for number, shift in shifts.items()
    }
    walk = Walk(timetable, same_data, offsets, later_makers, roots, shifts, backs, settled)
    given = [buffer for buffer in program.given if roots[buffer] == buffer]
    views = [buffer for buffer in program.given if roots[buffer] not in given]
    for buffer in (*given, *views):
        if not settled.is_settled[buffer]:
            _make(walk, Access(buffer, program.buffers[buffer].box), GIVEN)
    racing = races(timetable, accesses, order)
    for number in order:
        yield from racing.get(number, ())
        if settled.walked_tasks[number]:
            yield from _step(walk, number)
    for buffer in program.results:
        if not settled.is_settled[buffer]:
            yield from _wrong_data(walk, Access(buffer, program.buffers[buffer].box), None)


def _step(walk: Walk, number: int) -> Iterator[Problem]:
    """A task: what it does not find, and then what it writes."""
    task, is_settled = walk.timetable.program.tasks[number], walk.settled.is_settled
    if is_plain_copy(task):
        yield from _copy(walk, number)
        return
    for access in task.reads:
        if not is_settled[access.buffer]:
            yield from _wrong_data(walk, access, number)
    for access in task.writes:
        if not is_settled[access.buffer]:
            _make(walk, access, number)


def _places(walk: Walk, access: Access) -> list[Box]:
    """The disjoint boxes, in the coordinates of the root, that an access touches."""
    shift = walk.shifts[access.buffer]
    if shift is None:
        return boxes_in_root(walk.timetable.program, access)
    if not volume(access.box):
        return []
    return [shifted(access.box, shift) if any(shift) else access.box]


def start_order(timetable: Timetable) -> list[int]:
    """Tasks by start; of those at one cycle the ones that take no time first, as they wait."""
    tasks = timetable.program.tasks
    ranks: dict[int, int] = {}
    places = np.zeros(len(tasks), dtype=np.int64)
    for number, task in enumerate(tasks):
        if not task.cycles:
            places[number] = _rank(timetable, number, ranks)
    starts, ends = slot_times(timetable)
    # Of those that are alike in all of this, the one with the smaller number comes first.
    order: list[int] = np.lexsort((places, ends, starts)).tolist()
    return order


def _rank(timetable: Timetable, number: int, known: dict[int, int]) -> int:
    """Behind how many tasks that take no time either, at the same moment, one comes."""
    tasks, slots = timetable.program.tasks, timetable.slots
    if tasks[number].cycles > 0:
        return 0
    if number not in known:
        known[number] = 0
        here = slots[number]
        before = [
            other
            for other in tasks[number].after
            if (slots[other].start_cycle, slots[other].end_cycle)
            == (here.start_cycle, here.end_cycle)
        ]
        ranks = [_rank(timetable, other, known) for other in before]
        known[number] = 1 + max(ranks, default=0)
    return known[number]


def _later_makers(
    timetable: Timetable, accesses: Accesses
) -> dict[int, list[tuple[int, str, Box]]]:
    """By task: tasks of the same op that start later and write elements it wrote (partial sums).

    Copies of a task that compute the same again (their names have a `#`) change nothing, nor does
    another strip: it has sums of its own.
    """
    program = timetable.program
    later: dict[int, list[tuple[int, str, Box]]] = defaultdict(list)
    for rows in _made_together(program, accesses):
        tensor = program.buffers[int(accesses.buffer[rows[0]])].tensor
        numbers = accesses.task[rows].tolist()
        starts = [timetable.slots[number].start_cycle for number in numbers]
        boxes = boxes_at(accesses.boxes.take(rows, axis=2), int(accesses.n_axes[rows[0]]))
        parts = sorted(dict.fromkeys(zip(starts, numbers, boxes, strict=True)))
        for i, j in overlapping_pairs([box for _, _, box in parts]):
            if parts[i][1] != parts[j][1]:
                later[parts[i][1]].append((parts[j][1], tensor, parts[j][2]))
    return later


def _made_together(program: Program, accesses: Accesses) -> list[Ints]:
    """What tasks of one op, or strip of it, write of one tensor, where two of them overlap."""
    part = accesses.kinds.part[accesses.task]
    rows = np.flatnonzero(accesses.is_write & (part >= 0) & (volumes(accesses.boxes) > 0))
    group = part[rows] * len(program.buffers) + accesses.tensors[accesses.buffer[rows]]
    dense = np.searchsorted(np.sort(group), group)
    overlapping = meeting_within(dense, accesses.boxes.take(rows, axis=2))
    found = sorted({number for one, _ in overlapping for number in group[one].tolist()})
    return [rows[group == number] for number in found]


def _make(walk: Walk, access: Access, maker: int) -> None:
    """What an access writes is data of its buffer's tensor."""
    program = walk.timetable.program
    tensors = (program.buffers[access.buffer].tensor,)
    places = _places(walk, access)
    back = walk.backs[access.buffer]
    _put(walk, access, [Piece(box, tensors, back, maker) for box in places], places)


def _put(walk: Walk, access: Access, pieces: Sequence[Piece], places: Sequence[Box]) -> None:
    """The pieces take the place of whatever was in `places`, the boxes of an access."""
    root = walk.roots[access.buffer]
    walk.contents[root].put(pieces, places)
    walk.versions[root] += 1


def _copy(walk: Walk, number: int) -> Iterator[Problem]:
    """A transfer: the target holds what the source holds, also where that is nothing."""
    program = walk.timetable.program
    found: list[tuple[Access, list[Piece], list[Box]]] = []
    for place, (read, write) in enumerate(copies(program.tasks[number])):
        if walk.settled.is_settled[write.buffer]:
            continue
        source, target = _places(walk, read), _places(walk, write)
        under = [_pieces_under(walk, (number, place), box) for box in source]
        there = [piece for pieces in under for piece in pieces]
        if source and not there:
            yield _absent(walk, number, (read, source))
        straight = (
            len(source) == len(target) == 1
            and shape_of(source[0]) == shape_of(target[0])
            and walk.backs[read.buffer] is not None
            and walk.backs[write.buffer] is not None
        )
        if straight:
            by = [to - at for (at, _), (to, _) in zip(source[0], target[0], strict=True)]
            found.append((write, [_moved(piece, by) for piece in there], target))
            continue
        # Pieces of one shape are no boxes of another, so such a copy must be of complete data.
        missing = [
            box
            for whole, pieces in zip(source, under, strict=True)
            for box in uncovered(whole, [piece.box for piece in pieces])
        ]
        if there and missing:
            yield _absent(walk, number, (read, missing))
        names = tuple(dict.fromkeys(tensor for piece in there for tensor in piece.tensors))
        maker = max((piece.maker for piece in there), default=GIVEN)
        pieces = [Piece(box, names, None, maker) for box in target if names]
        found.append((write, pieces, target))
    for write, pieces, target in found:
        _put(walk, write, pieces, target)


def _pieces_under(walk: Walk, copy: tuple[int, int], box: Box) -> list[Piece]:
    """What a copy of a task finds in a box of a root; as one piece where that says as much."""
    number, place = copy
    program, settled = walk.timetable.program, walk.settled
    reads = program.tasks[number].reads
    place = 0 if len(reads) == 1 else place
    buffer = reads[place].buffer
    if settled.is_settled[buffer]:
        maker = settled.makers[settled.first_access[number] + place]
        return [Piece(box, (program.buffers[buffer].tensor,), walk.backs[buffer], maker)]
    contents = walk.contents[walk.roots[buffer]]
    joined = _joined(walk, contents, box)
    return contents.under(box) if joined is None else [joined]


def _moved(piece: Piece, by: Sequence[int]) -> Piece:
    if not any(by):
        return piece
    shift = piece.shift
    if shift is not None:
        shift = tuple([old - step for old, step in zip(shift, by, strict=True)])
    return Piece(shifted(piece.box, by), piece.tensors, shift, piece.maker)


def _wrong_data(walk: Walk, access: Access, number: int | None) -> Sequence[Problem]:
    """What a task (None: the user of the results) reads and does not find there.

    A box that was right is right again as long as nobody wrote to its buffer.
    """
    root = walk.roots[access.buffer]
    version = walk.versions[root]
    if walk.right.get(access) == version:
        return ()
    contents, boxes = walk.contents[root], _places(walk, access)
    if all(_is_plainly_right(walk, access, contents, box) for box in boxes):
        walk.right[access] = version
        return ()
    there = [piece for box in boxes for piece in contents.under(box)]
    found = [*_wrong_pieces(walk, access, number, there)]
    if not found and not any(piece.maker in walk.later_makers for piece in there):
        walk.right[access] = version
    return found


def _is_plainly_right(walk: Walk, access: Access, contents: Contents, box: Box) -> bool:
    """Whether a box is full of finished data of the tensor that is looked for, in its place."""
    found, back = _joined(walk, contents, box), walk.backs[access.buffer]
    tensor = walk.timetable.program.buffers[access.buffer].tensor
    return found is not None and found.tensors == (tensor,) and found.shift == back is not None


def _joined(walk: Walk, contents: Contents, box: Box) -> Piece | None:
    """What a box holds as one piece, if it is full of finished data, all of it of one kind."""
    met = contents.met(box)
    if not met:
        return None
    _, tensors, shift, last = met[0]
    for piece in met:
        if piece.tensors != tensors or piece.shift != shift or piece.maker in walk.later_makers:
            return None
        last = max(last, piece.maker)
    is_whole = met[0].box == box or is_full(box, [piece.box for piece in met])
    return Piece(box, tensors, shift, last) if is_whole else None


def _wrong_pieces(
    walk: Walk, access: Access, number: int | None, there: Sequence[Piece]
) -> Iterator[Problem]:
    program = walk.timetable.program
    buffer = program.buffers[access.buffer]
    is_whole = len(there) == 1 and there[0].box == access.box
    if not is_whole and sum([volume(piece.box) for piece in there]) != volume(access.box):
        covers = [piece.box for piece in there]
        missing = [
            part for box in boxes_in_root(program, access) for part in uncovered(box, covers)
        ]
        yield _absent(walk, number, (access, missing))
    back = walk.backs[access.buffer]
    for piece in there:
        if piece.tensors == (buffer.tensor,) and piece.shift == back:
            pass
        elif any(not walk.same_data(buffer.tensor, tensor) for tensor in piece.tensors):
            yield _other_data(walk, number, (access, piece), "")
        elif _is_elsewhere(walk, piece, buffer.tensor, back):
            yield _other_data(walk, number, (access, piece), "another part of ")
        yield from _unfinished(walk, number, access, piece)


def _is_elsewhere(walk: Walk, piece: Piece, tensor: str, back: Shape | None) -> bool:
    """Whether a piece of the tensor lies where another part of it is expected."""
    if piece.shift is None or back is None or len(piece.tensors) != 1:
        return False
    apart = [here - there for here, there in zip(piece.shift, back, strict=True)]
    if piece.tensors == (tensor,):
        return any(apart)
    (found, at), (wanted, place) = (
        walk.offsets.get(name, (name, ())) for name in (piece.tensors[0], tensor)
    )
    return found == wanted and any(
        step + a - b for step, a, b in zip(apart, at, place, strict=True)
    )


def _unfinished(walk: Walk, number: int | None, access: Access, piece: Piece) -> Iterator[Problem]:
    """Tasks that add to a partial sum after this version of it was made."""
    later_makers = walk.later_makers.get(piece.maker, ())
    if not later_makers or piece.shift is None:
        return
    slots, tasks = walk.timetable.slots, walk.timetable.program.tasks
    adds = number is not None and tasks[number].op == tasks[piece.maker].op
    start = slots[number].start_cycle if number is not None else 0
    for later, tensor, box in later_makers:
        if later == number or (adds and start < slots[later].start_cycle):
            continue
        if (tensor,) != piece.tensors:
            continue
        if overlaps(box, shifted(piece.box, piece.shift)):
            buffer = walk.timetable.program.buffers[access.buffer]
            yield Problem(
                message=f"{_reader(walk, number)} {text(piece.box)} of buffer {buffer.name} as "
                f"{cycles_text(walk.timetable, piece.maker)} left it, without what "
                f"{cycles_text(walk.timetable, later)} adds"
            )


def _reader(walk: Walk, number: int | None) -> str:
    if number is None:
        return f"at the end, cycle {walk.timetable.cycles}, the result is read:"
    return f"{cycles_text(walk.timetable, number)} reads"


def _absent(walk: Walk, number: int | None, what: tuple[Access, list[Box]]) -> Problem:
    access, missing = what
    program = walk.timetable.program
    buffer, root = program.buffers[access.buffer], program.buffers[program.root(access.buffer)]
    amount = bytes_of(root, sum(map(volume, missing)))
    where = "" if buffer is root else f" in {root.name}"
    return Problem(
        message=f"{_reader(walk, number)} {text(access.box)} of buffer {buffer.name}, "
        f"and nobody has written {amount} bytes of it, {text(missing[0])}{where}"
    )


def _other_data(walk: Walk, number: int | None, what: tuple[Access, Piece], part: str) -> Problem:
    access, piece = what
    program = walk.timetable.program
    buffer, root = program.buffers[access.buffer], program.buffers[program.root(access.buffer)]
    maker = (
        "given from the start"
        if piece.maker == GIVEN
        else f"made by {cycles_text(walk.timetable, piece.maker)}"
    )
    return Problem(
        message=f"{_reader(walk, number)} {text(access.box)} of {buffer.tensor} in buffer "
        f"{buffer.name}, and {bytes_of(root, volume(piece.box))} bytes of it, {text(piece.box)} "
        f"of {root.name}, hold {part}{' and '.join(piece.tensors)}, {maker}"
    )

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
from typing import NamedTuple

from tilewright.errors import Problem
from tilewright.program.model import Access, Box, Timetable
from tilewright.replay.check_boxes import (
    boxes_in_root,
    bytes_of,
    common,
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
from tilewright.replay.check_offsets import Offsets
from tilewright.replay.check_time import cycles_text
from tilewright.replay.check_transfers import copies, is_plain_copy

GIVEN = -1
"""The maker of what is there from the start."""

SameData = Callable[[str, str], bool]
"""Whether what was made as the second tensor can be read as the first one."""


class Use(NamedTuple):
    """A box of a root that a task touches until it ends."""

    end_cycle: int
    task: int
    box: Box
    is_write: bool


@dataclass(frozen=True, slots=True)
class Walk:
    """The state of all memories at the start of a task."""

    timetable: Timetable
    same_data: SameData
    offsets: Offsets
    later_makers: dict[int, list[tuple[int, str, Box]]]
    contents: dict[int, Contents] = field(default_factory=lambda: defaultdict(Contents))
    uses: dict[int, list[Use]] = field(default_factory=lambda: defaultdict(list))
    versions: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """By buffer that is no view: how often it was written."""
    right: dict[tuple[int, Box], int] = field(default_factory=dict)
    """Boxes that held what they should, and of which version of their buffer that is true."""


def data_problems(timetable: Timetable, same_data: SameData, offsets: Offsets) -> Iterator[Problem]:
    """Races, reads of what is not there, and results that are incomplete."""
    program = timetable.program
    walk = Walk(timetable, same_data, offsets, _later_makers(timetable))
    roots = [buffer for buffer in program.given if program.root(buffer) == buffer]
    views = [
        buffer
        for buffer in program.given
        if program.root(buffer) != buffer and program.root(buffer) not in roots
    ]
    for buffer in (*roots, *views):
        _make(walk, Access(buffer, program.buffers[buffer].box), GIVEN)
    for number in start_order(timetable):
        task = program.tasks[number]
        yield from _races(walk, number)
        if is_plain_copy(task):
            yield from _copy(walk, number)
            continue
        for access in task.reads:
            yield from _wrong_data(walk, access, number)
        for access in task.writes:
            _make(walk, access, number)
    for buffer in program.results:
        yield from _wrong_data(walk, Access(buffer, program.buffers[buffer].box), None)


def start_order(timetable: Timetable) -> list[int]:
    """Tasks by start; of those at one cycle the ones that take no time first, as they wait."""
    slots, tasks = timetable.slots, timetable.program.tasks
    rank: dict[int, int] = {}

    def moment(number: int) -> tuple[int, int]:
        return slots[number].start_cycle, slots[number].end_cycle

    def place_of(number: int) -> int:
        if tasks[number].cycles > 0:
            return 0
        if number not in rank:
            rank[number] = 0
            before = [b for b in tasks[number].after if moment(b) == moment(number)]
            rank[number] = 1 + max(map(place_of, before), default=0)
        return rank[number]

    return sorted(range(len(tasks)), key=lambda n: (*moment(n), place_of(n), n))


def _later_makers(timetable: Timetable) -> dict[int, list[tuple[int, str, Box]]]:
    """By task: tasks of the same op that start later and write elements it wrote (partial sums).

    Copies of a task that compute the same again (their names have a `#`) change nothing.
    """
    program = timetable.program
    makers: dict[tuple[str, str], list[tuple[int, int, Box]]] = defaultdict(list)
    for number, task in enumerate(program.tasks):
        if not task.op or "#" in task.name:
            continue
        start = timetable.slots[number].start_cycle
        for tensor, box in dict.fromkeys(
            (program.buffers[access.buffer].tensor, access.box)
            for access in task.writes
            if volume(access.box)
        ):
            makers[task.op, tensor].append((start, number, box))
    later: dict[int, list[tuple[int, str, Box]]] = defaultdict(list)
    for (_, tensor), made in makers.items():
        made.sort()
        for i, j in overlapping_pairs([box for _, _, box in made]):
            if made[i][1] != made[j][1]:
                later[made[i][1]].append((made[j][1], tensor, made[j][2]))
    return later


def _races(walk: Walk, number: int) -> Iterator[Problem]:
    """Tasks that run at this one's start and touch the same elements, one of the two writing."""
    program = walk.timetable.program
    slot = walk.timetable.slots[number]
    task = program.tasks[number]
    mine = [
        (program.root(access.buffer), Use(slot.end_cycle, number, box, is_write))
        for accesses, is_write in ((task.reads, False), (task.writes, True))
        for access in accesses
        for box in boxes_in_root(program, access)
    ]
    for root, use in mine:
        running = [u for u in walk.uses[root] if u.end_cycle > slot.start_cycle]
        walk.uses[root] = running
        for other in running:
            if (use.is_write or other.is_write) and overlaps(use.box, other.box):
                yield _race(walk, root, other, use)
    for root, use in mine:
        walk.uses[root].append(use)


def _race(walk: Walk, root: int, one: Use, other: Use) -> Problem:
    buffer = walk.timetable.program.buffers[root]
    box = common(one.box, other.box)
    verbs = ["writes" if use.is_write else "reads" for use in (one, other)]
    start = walk.timetable.slots[other.task].start_cycle
    return Problem(
        message=f"{cycles_text(walk.timetable, one.task)} {verbs[0]} and "
        f"{cycles_text(walk.timetable, other.task)} {verbs[1]} {text(box)} of buffer "
        f"{buffer.name} ({bytes_of(buffer, volume(box))} bytes) at cycles {start} to "
        f"{min(one.end_cycle, other.end_cycle)}"
    )


def _make(walk: Walk, access: Access, maker: int) -> None:
    """What an access writes is data of its buffer's tensor."""
    program = walk.timetable.program
    buffer = program.buffers[access.buffer]
    shift = view_shift(buffer)
    back = None if shift is None else tuple(-by for by in shift)
    made = [Piece(box, (buffer.tensor,), back, maker) for box in boxes_in_root(program, access)]
    _put(walk, program.root(access.buffer), made, [piece.box for piece in made])


def _put(walk: Walk, root: int, pieces: Sequence[Piece], places: Sequence[Box]) -> None:
    """The pieces take the place of whatever was in `places`."""
    walk.contents[root].put(pieces, places)
    walk.versions[root] += 1


def _copy(walk: Walk, number: int) -> Iterator[Problem]:
    """A transfer: the target holds what the source holds, also where that is nothing."""
    program = walk.timetable.program
    found: list[tuple[Access, list[Piece]]] = []
    for read, write in copies(program.tasks[number]):
        there = _pieces_under(walk, read)
        if not there and volume(read.box):
            yield _absent(walk, number, (read, boxes_in_root(program, read)))
        source, target = boxes_in_root(program, read), boxes_in_root(program, write)
        straight = (
            len(source) == len(target) == 1
            and shape_of(source[0]) == shape_of(target[0])
            and view_shift(program.buffers[read.buffer]) is not None
            and view_shift(program.buffers[write.buffer]) is not None
        )
        if straight:
            by = tuple(to - at for (at, _), (to, _) in zip(source[0], target[0], strict=True))
            found.append((write, [_moved(piece, by) for piece in there]))
            continue
        # Pieces of one shape are no boxes of another, so such a copy must be of complete data.
        missing = [box for s in source for box in uncovered(s, [piece.box for piece in there])]
        if there and missing:
            yield _absent(walk, number, (read, missing))
        names = tuple(dict.fromkeys(tensor for piece in there for tensor in piece.tensors))
        maker = max((piece.maker for piece in there), default=GIVEN)
        found.append((write, [Piece(box, names, None, maker) for box in target if names]))
    for write, pieces in found:
        _put(walk, program.root(write.buffer), pieces, boxes_in_root(program, write))


def _moved(piece: Piece, by: Sequence[int]) -> Piece:
    if not any(by):
        return piece
    shift = piece.shift
    if shift is not None:
        shift = tuple(old - step for old, step in zip(shift, by, strict=True))
    return piece._replace(box=shifted(piece.box, by), shift=shift)


def _pieces_under(walk: Walk, access: Access) -> list[Piece]:
    """What an access finds, cut to its boxes."""
    program = walk.timetable.program
    wanted = boxes_in_root(program, access)
    return walk.contents[program.root(access.buffer)].under(wanted)


def _wrong_data(walk: Walk, access: Access, number: int | None) -> Iterator[Problem]:
    """What a task (None: the user of the results) reads and does not find there.

    A box that was right is right again as long as nobody wrote to its buffer.
    """
    program = walk.timetable.program
    version = walk.versions[program.root(access.buffer)]
    if walk.right.get((access.buffer, access.box)) == version:
        return
    there = _pieces_under(walk, access)
    found = [*_wrong_pieces(walk, access, number, there)]
    yield from found
    if not found and not any(piece.maker in walk.later_makers for piece in there):
        walk.right[access.buffer, access.box] = version


def _wrong_pieces(
    walk: Walk, access: Access, number: int | None, there: Sequence[Piece]
) -> Iterator[Problem]:
    program = walk.timetable.program
    buffer = program.buffers[access.buffer]
    if sum(volume(piece.box) for piece in there) != volume(access.box):
        covers = [piece.box for piece in there]
        missing = [
            part for box in boxes_in_root(program, access) for part in uncovered(box, covers)
        ]
        yield _absent(walk, number, (access, missing))
    shift = view_shift(buffer)
    for piece in there:
        if any(not walk.same_data(buffer.tensor, tensor) for tensor in piece.tensors):
            yield _other_data(walk, number, (access, piece), "")
        elif _is_elsewhere(walk, piece, buffer.tensor, shift):
            yield _other_data(walk, number, (access, piece), "another part of ")
        yield from _unfinished(walk, number, access, piece)


def _is_elsewhere(walk: Walk, piece: Piece, tensor: str, shift: Sequence[int] | None) -> bool:
    """Whether a piece of the tensor lies where another part of it is expected."""
    if piece.shift is None or shift is None or len(piece.tensors) != 1:
        return False
    apart = [back + there for back, there in zip(piece.shift, shift, strict=True)]
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
    slots, tasks = walk.timetable.slots, walk.timetable.program.tasks
    for later, tensor, box in walk.later_makers.get(piece.maker, ()):
        if later == number or piece.shift is None or (tensor,) != piece.tensors:
            continue
        adds = number is not None and tasks[number].op == tasks[later].op
        comes_before = number is not None and (slots[number].start_cycle < slots[later].start_cycle)
        if adds and comes_before:
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

"""Where tasks touch memory: the places for which others may have to wait, by number."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.program.model import Access, Box, Buffer, Program, Space, Timetable
from tilewright.schedule.place_edges import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedPlaces:
    """Each place once, and by task the numbers of those that it reads and that it writes."""

    places: list[Place]
    spaces: list[int]
    """By place the number of the space that it lies in."""
    n_spaces: int
    rows: list[int]
    rows_at: list[int]
    """Where in `rows` begins what task 0 reads, what it writes, what task 1 reads, and so on."""

    def rows_of(self, task: int, is_write: bool) -> list[int]:
        """The numbers of places that a task reads, or that it writes."""
        side = 2 * task + is_write
        return self.rows[self.rows_at[side] : self.rows_at[side + 1]]


def touched_places(timetable: Timetable) -> TouchedPlaces:
    """The places that tasks touch.

    Where all boxes of a root are without gaps they are taken as ranges of addresses, so that only
    neighbours meet; otherwise as boxes of all its addresses. What is given and never written keeps
    its place to the end, so nobody waits for its readers.
    """
    program = timetable.program
    roots = [n if b.view is None else b.view.buffer for n, b in enumerate(program.buffers)]
    numbers, rows, rows_at = _touched(program, roots)
    buffers, addresses = program.buffers, timetable.addresses
    places: list[Place] = []
    with_gaps: set[int] = set()
    for access in numbers:
        number, box = access
        buffer, root = buffers[number], roots[number]
        base = addresses[root]
        if root == number and box == buffer.box:
            # Nearly all buffers are tiles that are touched as a whole.
            places.append(Place(base, base + buffer.size_bytes, root, box))
            continue
        inside = _box_in_root(buffer, box)
        ends = _byte_range(buffers[root], inside)
        if ends is None:
            with_gaps.add(root)
            ends = 0, buffers[root].size_bytes
        places.append(Place(base + ends[0], base + ends[1], root, inside))
    if with_gaps:
        places = [
            _all_of(place, addresses, buffers) if place.holder in with_gaps else place
            for place in places
        ]
    spaces = space_numbers(program)
    return TouchedPlaces(
        places=places,
        spaces=[spaces[place.holder] for place in places],
        n_spaces=len(program.spaces),
        rows=rows,
        rows_at=rows_at,
    )


def space_numbers(program: Program) -> list[int]:
    """By buffer the number of the space that it lies in."""
    numbers = {space.name: number for number, space in enumerate(program.spaces)}
    return [numbers[buffer.space] for buffer in program.buffers]


def given_outside(program: Program) -> tuple[int, ...]:
    """What is given, and not in a scratchpad, where its place is used again."""
    pads = [space.name for space in program.spaces if space.kind == "scratchpad"]
    return tuple([n for n in program.given if program.buffers[n].space not in pads])


def is_memory(space: Space) -> bool:
    """Whether places in a space are used again."""
    return space.kind in ("scratchpad", "external")


def _all_of(place: Place, addresses: Sequence[int], buffers: Sequence[Buffer]) -> Place:
    """A place with all addresses of its root."""
    base = addresses[place.holder]
    return Place(base, base + buffers[place.holder].size_bytes, place.holder, place.box)


def _touched(program: Program, roots: list[int]) -> tuple[dict[Access, int], list[int], list[int]]:
    """Boxes of buffers that share memory, numbered, and by task which it touches."""
    given = _never_written(program, roots)
    memories = [space.name for space in program.spaces if is_memory(space)]
    is_shared = [
        buffer.space in memories and root not in given
        for buffer, root in zip(program.buffers, roots, strict=True)
    ]
    numbers: dict[Access, int] = {}
    rows: list[int] = []
    rows_at = [0]
    for task in program.tasks:
        for accesses in (task.reads, task.writes):
            rows += [
                numbers.setdefault(access, len(numbers))
                for access in accesses
                if is_shared[access.buffer]
            ]
            rows_at.append(len(rows))
    return numbers, rows, rows_at


def _never_written(program: Program, roots: list[int]) -> set[int]:
    written = {roots[access.buffer] for task in program.tasks for access in task.writes}
    return {roots[number] for number in given_outside(program)} - written


def _byte_range(buffer: Buffer, box: Box | None) -> tuple[int, int] | None:
    """The bytes of a buffer that a box takes; None if there are gaps between them."""
    if box is None or box == buffer.box:
        return 0, buffer.size_bytes
    # Axes behind the last one that the box cuts are whole, so only those before it make gaps.
    first = last = 0
    step, is_cut = 1, False
    for (begin, end), (start, stop) in zip(reversed(box), reversed(buffer.box), strict=True):
        if is_cut and end - begin != 1:
            return None
        is_cut = is_cut or (begin, end) != (start, stop)
        first += (begin - start) * step
        last += (end - 1 - start) * step
        step *= stop - start
    elements = max(1, step)
    return first * buffer.size_bytes // elements, -(-(last + 1) * buffer.size_bytes // elements)


def _box_in_root(buffer: Buffer, box: Box) -> Box | None:
    """A box of a buffer in its root's coordinates; None, that is all, under another shape."""
    if buffer.view is None:
        return box
    if buffer.view.origin is None:
        return None
    axes = zip(box, buffer.box, buffer.view.origin, strict=True)
    return tuple([(begin - start + at, end - start + at) for (begin, end), (start, _), at in axes])

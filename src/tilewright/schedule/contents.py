"""What a buffer in a scratchpad holds: which boxes, written by whom, and what survives of them."""

from typing import NamedTuple

from tilewright.program.model import Box, Program
from tilewright.records import quickly_made


@quickly_made
class Held(NamedTuple):
    """A box written into a root through one of its buffers (itself or a view)."""

    buffer: int
    box: Box
    writer: int
    whole: bool = True
    """Whether this is all that the writer wrote there, or only what others left of it."""


def surviving(
    program: Program, root: int, written: list[Held], settled: int = 0
) -> list[Held] | None:
    """What is left of everything written, oldest first, without what was overwritten.

    The first `settled` ones are known not to overwrite each other. None if it cannot be told: a
    part of a buffer was overwritten under another shape.
    """
    if len(written) == 1 or settled == len(written):
        return written
    kept: list[Held] = []
    covered: list[Box] = []
    for number in range(len(written) - 1, -1, -1):
        held = written[number]
        place = root_box(program, root, held)
        if place is None:
            return None
        pieces = [place]
        for other in covered:
            pieces = [rest for piece in pieces for rest in without(piece, other)]
            if not pieces:
                break
        # What is all overwritten covers nothing that is not covered already.
        if pieces and number >= settled:
            covered.append(place)
        if pieces == [place]:
            kept.append(held)
        elif pieces and not _is_aligned_view(program, root, held):
            return None
        else:
            kept.extend(_piece(program, root, held, piece) for piece in reversed(pieces))
    return kept[::-1]


def root_box(program: Program, root: int, held: Held) -> Box | None:
    """Where a held box lies, in the root's coordinates."""
    buffer = program.buffers[held.buffer]
    if held.buffer == root:
        return held.box
    origin = None if buffer.view is None else buffer.view.origin
    if origin is None or len(origin) != len(held.box):
        is_all = held.box == buffer.box and buffer.size_bytes == program.buffers[root].size_bytes
        return program.buffers[root].box if is_all else None
    return tuple(
        (at + low - base, at + high - base)
        for at, (low, high), (base, _) in zip(origin, held.box, buffer.box, strict=True)
    )


def without(box: Box, other: Box) -> list[Box]:
    """The parts of a box outside another one.

    >>> without(((0, 4), (0, 4)), ((1, 2), (0, 4)))
    [((0, 1), (0, 4)), ((2, 4), (0, 4))]
    """
    for (begin, end), (low, high) in zip(box, other, strict=True):
        if begin >= high or low >= end:
            return [box]
    parts = []
    rest = list(box)
    for axis, ((begin, end), (low, high)) in enumerate(zip(box, other, strict=True)):
        low, high = max(begin, low), min(end, high)
        if begin < low:
            parts.append((*rest[:axis], (begin, low), *rest[axis + 1 :]))
        if high < end:
            parts.append((*rest[:axis], (high, end), *rest[axis + 1 :]))
        rest[axis] = (low, high)
    return parts


def _is_aligned_view(program: Program, root: int, held: Held) -> bool:
    view = program.buffers[held.buffer].view
    return held.buffer == root or (view is not None and view.origin is not None)


def _piece(program: Program, root: int, held: Held, piece: Box) -> Held:
    """A part of what was written, back in the coordinates of the buffer it was written through."""
    buffer = program.buffers[held.buffer]
    if held.buffer == root:
        return Held(held.buffer, piece, held.writer, False)
    origin = None if buffer.view is None else buffer.view.origin
    assert origin is not None, "a view without an origin is only ever covered as a whole"
    box = tuple(
        (low - at + base, high - at + base)
        for at, (low, high), (base, _) in zip(origin, piece, buffer.box, strict=True)
    )
    return Held(held.buffer, box, held.writer, False)


def box_bytes(program: Program, held: Held) -> int:
    """Bytes of a held box, from the bytes per element of its buffer, rounded up."""
    buffer = program.buffers[held.buffer]
    if held.box == buffer.box:
        return buffer.size_bytes
    return -(-buffer.size_bytes * elements(held.box) // max(1, elements(buffer.box)))


def elements(box: Box) -> int:
    """Elements in a box."""
    count = 1
    for low, high in box:
        count *= high - low
    return count

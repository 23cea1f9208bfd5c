"""Rows that a stage makes only when the stage that reads them gets there, slice by slice.

Where one stage reads a window of rows of another's result, and both go through the channels side by
side (a depthwise convolution behind a pointwise one), the newest rows need not be there as a whole:
a slice of them is made, read, and the oldest rows of the slice are let go before the next is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.network.graph import Index, Operand
from tilewright.program.boxes import Ranges
from tilewright.program.model import Box
from tilewright.program.rows import Rows, StageRows
from tilewright.program.stages import Stage

SLICE = 16
"""Channels that are made at once where rows are made in slices."""


@dataclass(frozen=True, slots=True)
class Slicing:
    """A tensor that can be made in slices: who makes and reads it, along which axis it is cut."""

    maker: int
    reader: int
    axis: int
    loop: str
    """The reader's loop along that axis."""
    made_loop: str
    """The maker's."""


def slicing(rows: Rows, linked: Mapping[int, StageRows], number: int) -> Slicing | None:
    """How the result of a stage of a cascade can be made in slices, on demand; None: it cannot."""
    users = rows.users[linked[number].root]
    key = number, *[linked[user].axis if user in linked else -1 for user in users]
    if key not in rows.slicings:
        rows.slicings[key] = _slicing(rows, linked, number)
    found = rows.slicings[key]
    return found if isinstance(found, Slicing) else None


def _slicing(rows: Rows, linked: Mapping[int, StageRows], number: int) -> Slicing | None:
    stage, own = rows.stages[number], linked[number]
    tensor = stage.results[0].tensor
    if own.root != tensor or not rows.is_private(own.root, linked):
        return None
    users = rows.users[own.root]
    readers = [(n, read) for n in users for read in linked[n].reads if read.root == own.root]
    if len(readers) != 1:
        return None
    reader, read = readers[0]
    if read.tensor != tensor or not all(_is_plain(stage, i) for i in stage.results[0].index or ()):
        return None
    operand = next(o for o in rows.stages[reader].inputs if o.tensor == tensor)
    assert operand.index is not None
    for axis in range(len(operand.index)):
        if axis != own.axis and _goes_along(rows, (number, reader), operand, axis):
            made = _loops(stage, (stage.results[0].index or ())[axis])[0]
            read_loop = _loops(rows.stages[reader], operand.index[axis])[0]
            return Slicing(number, reader, axis, read_loop, made)
    return None


def _goes_along(rows: Rows, stages: tuple[int, int], operand: Operand, axis: int) -> bool:
    """Whether both the maker and the reader of a tensor can be cut along one of its axes."""
    maker, reader = (rows.stages[number] for number in stages)
    made, read = (maker.results[0].index or ())[axis], (operand.index or ())[axis]
    loops = _loops(maker, made), _loops(reader, read)
    cuttable = [[*stage.tileable[0], *stage.tileable[1]] for stage in (maker, reader)]
    return _is_plain(reader, read) and all(
        len(found) == 1 and found[0] in can for found, can in zip(loops, cuttable, strict=True)
    )


def _loops(stage: Stage, index: Index) -> list[str]:
    return [dim for dim, _ in index.terms if stage.op.sizes[dim] > 1]


def _is_plain(stage: Stage, index: Index) -> bool:
    """Whether positions along an axis are steps of one loop, or there is only one."""
    terms = [term for term in index.terms if stage.op.sizes[term[0]] > 1]
    return (
        not index.offset
        and index.divisor == 1
        and not index.reach
        and len(terms) <= 1
        and all(factor == 1 for _, factor in terms)
    )


def ranges_of(stage: Stage, box: Box) -> Ranges:
    """The ranges of a stage's loops that make a box of its result, whose axes are plain."""
    ranges = {dim: (0, size) for dim, size in stage.op.dims}
    for index, ends in zip(stage.results[0].index or (), box, strict=True):
        for dim in _loops(stage, index):
            ranges[dim] = ends
    return ranges

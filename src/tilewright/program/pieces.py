"""Buffers of rows that are made on demand, slice by slice: see `slicing`."""

from dataclasses import dataclass, field

from tilewright.program.build import Builder
from tilewright.program.model import Access, Box, Space
from tilewright.program.slicing import Slicing


@dataclass
class Pieces:
    """Rows of a tensor, each slice of a row in a buffer of its own."""

    builder: Builder
    space: Space
    tensor: str
    whole: Box
    axis: int
    slicing: Slicing
    _found: dict[tuple[int, int], dict[int, int]] = field(default_factory=dict)
    """By slice the buffers of its rows."""

    def missing(self, box: Box) -> Box | None:
        """The rows of the slices of a box that nobody has made yet."""
        start, stop = box[self.axis]
        known = self._found.get(box[self.slicing.axis], {})
        first = next((row for row in range(start, stop) if row not in known), stop)
        return None if first == stop else self._rows_of_slice(box, (first, stop))

    def accesses(self, box: Box) -> list[Access]:
        """Where the rows of a box lie, or are to lie."""
        rows = self._found.setdefault(box[self.slicing.axis], {})
        found = []
        for row in range(*box[self.axis]):
            if row not in rows:
                part = self._rows_of_slice(box, (row, row + 1))
                rows[row] = self.builder.buffer(self.tensor, part, self.space)
            found.append(Access(rows[row], _with(box, self.axis, (row, row + 1))))
        return found

    def _rows_of_slice(self, box: Box, rows: tuple[int, int]) -> Box:
        """Some rows of the slices that a box touches, whole along all other axes.

        Boxes of a reader may overlap there, and nothing is made twice.
        """
        cut = self.slicing.axis
        return _with(_with(self.whole, cut, box[cut]), self.axis, rows)


def _with(box: Box, axis: int, ends: tuple[int, int]) -> Box:
    return (*box[:axis], ends, *box[axis + 1 :])

"""Buffers of rows that are made on demand, slice by slice: see `slicing`."""

from dataclasses import dataclass, field

from tilewright.program.build import Builder
from tilewright.program.model import Access, Box, Space
from tilewright.program.slicing import Slicing

WHOLE = (0, 0)
"""In place of a slice where there are none."""


@dataclass
class Pieces:
    """Rows of a tensor, each slice of a row in a buffer of its own; whole rows without slices."""

    builder: Builder
    space: Space
    tensor: str
    whole: Box
    axis: int
    slicing: Slicing | None
    _found: dict[tuple[int, int], dict[int, int]] = field(default_factory=dict)
    """By slice the buffers of its rows."""
    _made: dict[tuple[int, int], int] = field(default_factory=dict)
    """By slice the first row that nobody has ever made."""

    def missing(self, box: Box) -> Box | None:
        """The rows of the slices of a box that nobody has made yet."""
        start, stop = box[self.axis]
        known = self._found.get(self._slice(box), {})
        first = next((row for row in range(start, stop) if row not in known), stop)
        return None if first == stop else self._rows_of_slice(box, (first, stop))

    def old_and_new(self, missing: Box) -> list[tuple[Box, bool]]:
        """Missing rows that were there once, and those that were not: these are noted as made."""
        start, stop = missing[self.axis]
        cut = self._slice(missing)
        new = min(max(start, self._made.get(cut, start)), stop)
        self._made[cut] = max(stop, self._made.get(cut, stop))
        parts = [((start, new), True), ((new, stop), False)]
        return [(_with(missing, self.axis, rows), old) for rows, old in parts if rows[0] < rows[1]]

    def forget(self) -> None:
        """No row is there any more."""
        self._found = {}

    def forget_others(self, box: Box) -> None:
        """No row but those of a box is there any more."""
        start, stop = box[self.axis]
        rows = self._found.get(self._slice(box), {})
        kept = {row: buffer for row, buffer in rows.items() if start <= row < stop}
        self._found = {self._slice(box): kept}

    def accesses(self, box: Box) -> list[Access]:
        """Where the rows of a box lie, or are to lie."""
        rows = self._found.setdefault(self._slice(box), {})
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
        part = _with(self.whole, self.axis, rows)
        if self.slicing is None:
            return part
        return _with(part, self.slicing.axis, self._slice(box))

    def _slice(self, box: Box) -> tuple[int, int]:
        """The slices that a box touches."""
        return WHOLE if self.slicing is None else box[self.slicing.axis]


def _with(box: Box, axis: int, ends: tuple[int, int]) -> Box:
    return (*box[:axis], ends, *box[axis + 1 :])

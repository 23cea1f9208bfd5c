"""Buffers of rows that are made on demand, slice by slice: see `slicing`."""

from dataclasses import dataclass, field

from tilewright.program.build import Builder
from tilewright.program.model import Access, Box, Space


@dataclass
class Pieces:
    """Rows of a tensor, each slice of a row in a buffer of its own."""

    builder: Builder
    space: Space
    tensor: str
    axis: int
    maker: int
    """The stage that makes them."""
    _found: dict[Box, dict[int, int]] = field(default_factory=dict)
    """By slice the buffers of its rows."""

    def missing(self, box: Box) -> Box | None:
        """The rows of a box that nobody has made yet."""
        start, stop = box[self.axis]
        known = self._found.get(self._slice(box), {})
        first = next((row for row in range(start, stop) if row not in known), stop)
        return None if first == stop else self._with_rows(box, (first, stop))

    def accesses(self, box: Box) -> list[Access]:
        """Where the rows of a box lie, or are to lie."""
        rows = self._found.setdefault(self._slice(box), {})
        found = []
        for row in range(*box[self.axis]):
            part = self._with_rows(box, (row, row + 1))
            if row not in rows:
                rows[row] = self.builder.buffer(self.tensor, part, self.space)
            found.append(Access(rows[row], part))
        return found

    def _slice(self, box: Box) -> Box:
        return self._with_rows(box, (0, 0))

    def _with_rows(self, box: Box, rows: tuple[int, int]) -> Box:
        return (*box[: self.axis], rows, *box[self.axis + 1 :])

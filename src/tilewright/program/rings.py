"""Rolling buffers: a few rows of a tensor, written over as a cascade moves on."""

from dataclasses import dataclass, field
from functools import cached_property

from tilewright.program.boxes import elements, overlap, shifted, whole
from tilewright.program.build import Builder
from tilewright.program.model import Access, Box
from tilewright.program.ring_waits import Lap


@dataclass
class Ring:
    """Rows of a tensor in one core's memory: row r lies in place r % rows.

    `box` is the part of the tensor that passes through, `arrived` the row up to which it has come
    from outside; it is None where stages of the cascade make the rows.
    """

    builder: Builder
    root: str
    box: Box
    axis: int
    rows: int
    memory: str
    buffer: int
    arrived: int | None = None
    _laps: dict[tuple[str, int], int] = field(default_factory=dict)
    """Buffers by tensor and number of the lap."""
    _passing: dict[str, tuple[Box, tuple[int, ...], int]] = field(default_factory=dict)

    def accesses(self, tensor: str, box: Box) -> list[Access]:
        """Where a box of a tensor lies, as far as it passes through here: a part for every lap."""
        start, stop = box[self.axis]
        if not self._lets_pass(tensor):
            return []
        first, behind = start // self.rows, -(-stop // self.rows)
        is_whole = tensor == self.root and self._takes_all
        found = []
        for lap in range(first, behind):
            part = box
            if behind - first > 1:
                span = (max(start, lap * self.rows), min(stop, (lap + 1) * self.rows))
                part = (*box[: self.axis], span, *box[self.axis + 1 :])
            buffer = self._laps.get((tensor, lap))
            if buffer is None:
                buffer = self._laps[tensor, lap] = self._lap(tensor, lap)
            if not is_whole:
                part = overlap(part, self.builder.buffers[buffer].box)
            if elements(part):
                found.append(Access(buffer, part))
        return found

    @cached_property
    def _takes_all(self) -> bool:
        """Whether all of its tensor passes through here."""
        return self.box == whole(self.builder.network.by_name[self.root].shape)

    def _lets_pass(self, tensor: str) -> bool:
        """Whether anything of a tensor passes through here: other parts of a concatenation may."""
        if tensor not in self._passing:
            self._passing[tensor] = self._passes(tensor)
        return elements(self._passing[tensor][0]) > 0

    def _lap(self, tensor: str, lap: int) -> int:
        """The buffer of one lap: as many rows of a tensor as the ring has, one behind another."""
        here, at, size = self._passing[tensor]
        first, behind = lap * self.rows, min((lap + 1) * self.rows, size)
        box = (*here[: self.axis], (first, behind), *here[self.axis + 1 :])
        steps = tuple([to - start for to, (start, _) in zip(at, box, strict=True)])
        return self.builder.lap(Lap(self.buffer, self.axis, steps, lap), tensor, box, at)

    def _passes(self, tensor: str) -> tuple[Box, tuple[int, ...], int]:
        """What passes of a tensor, where each lap of it begins in the ring, and all its rows."""
        origin = self.builder.storage[tensor].origin or ()
        shape = self.builder.network.by_name[tensor].shape
        here = overlap(shifted(self.box, [-step for step in origin]), whole(shape))
        at = [start + step for (start, _), step in zip(here, origin, strict=True)]
        at[self.axis] = 0
        return here, tuple(at), shape[self.axis]


def ring_box(box: Box, axis: int, rows: int) -> Box:
    """The box of a ring's buffer: the first rows of what passes through."""
    return (*box[:axis], (0, rows), *box[axis + 1 :])

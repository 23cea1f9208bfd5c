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

    def accesses(self, tensor: str, box: Box) -> list[Access]:
        """Where a box of a tensor lies, as far as it passes through here: a part for every lap."""
        start, stop = box[self.axis]
        first, behind = start // self.rows, -(-stop // self.rows)
        found = []
        for lap in range(first, behind):
            part = box
            if behind - first > 1:
                span = (max(start, lap * self.rows), min(stop, (lap + 1) * self.rows))
                part = (*box[: self.axis], span, *box[self.axis + 1 :])
            buffer = self._lap(tensor, lap)
            if not self._is_whole(tensor):
                part = overlap(part, self.builder.buffers[buffer].box)
            if elements(part):
                found.append(Access(buffer, part))
        return found

    def _is_whole(self, tensor: str) -> bool:
        """Whether all of a tensor passes through here."""
        return tensor == self.root and self.box == self._whole

    @cached_property
    def _whole(self) -> Box:
        return whole(self.builder.network.by_name[self.root].shape)

    def _lap(self, tensor: str, lap: int) -> int:
        """The buffer of one lap: as many rows of a tensor as the ring has, one behind another."""
        if (tensor, lap) not in self._laps:
            origin = self.builder.storage[tensor].origin or ()
            shape = self.builder.network.by_name[tensor].shape
            here = overlap(shifted(self.box, [-step for step in origin]), whole(shape))
            first, behind = lap * self.rows, min((lap + 1) * self.rows, shape[self.axis])
            box = (*here[: self.axis], (first, behind), *here[self.axis + 1 :])
            at = [start + step for (start, _), step in zip(here, origin, strict=True)]
            at[self.axis] = 0
            steps = tuple(to - start for to, (start, _) in zip(at, box, strict=True))
            place = Lap(self.buffer, self.axis, steps, lap)
            self._laps[tensor, lap] = self.builder.lap(place, tensor, box, tuple(at))
        return self._laps[tensor, lap]


def ring_box(box: Box, axis: int, rows: int) -> Box:
    """The box of a ring's buffer: the first rows of what passes through."""
    return (*box[:axis], (0, rows), *box[axis + 1 :])

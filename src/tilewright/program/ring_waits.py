"""Who made what a rolling buffer holds, and who still reads it.

Whoever reads a row waits for those who made it in this lap; whoever writes over it waits for all
who read or made it in the lap before.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.program.boxes import meet, shifted
from tilewright.program.model import Access, Box


@dataclass(frozen=True, slots=True)
class Lap:
    """Rows of a tensor in a ring, which was full `number` times before.

    `steps` lead from positions in the tensor to places in the ring: tensors that share one, parts
    of a concatenation for example, count their elements differently.
    """

    ring: int
    axis: int
    steps: tuple[int, ...]
    number: int


@dataclass(slots=True)
class _Row:
    """A place of a ring: who made what is in it, and who has read what was, by lap."""

    lap: int = 0
    makers: list[tuple[Box, int]] = field(default_factory=list)
    readers: dict[int, dict[int, int]] = field(default_factory=dict)
    """By lap, the last reader of each chain of tasks that run one after the other."""


@dataclass
class RingWaits:
    """The rows of all rings; buffers are known by their laps."""

    laps: dict[int, Lap] = field(default_factory=dict)
    _rows: dict[tuple[int, int], _Row] = field(default_factory=dict)

    def makers(self, access: Access) -> set[int]:
        """Tasks that made what an access reads."""
        place = self._place(access)
        return {
            task for row in self._touched(access) for box, task in row.makers if meet(box, place)
        }

    def before_write(self, access: Access) -> set[int]:
        """Tasks that made or read what a write takes the place of."""
        lap = self.laps[access.buffer].number
        found: set[int] = set()
        for row in self._touched(access):
            if row.lap < lap:
                found.update(task for _, task in row.makers)
            for other in [other for other in row.readers if other < lap]:
                found.update(row.readers[other].values())
                if other < lap - 1:
                    del row.readers[other]
        return found

    def read(self, access: Access, chain: int, task: int) -> None:
        """Note who reads."""
        lap = self.laps[access.buffer].number
        for row in self._touched(access):
            row.readers.setdefault(lap, {})[chain] = task

    def write(self, access: Access, task: int) -> None:
        """Note who writes."""
        lap = self.laps[access.buffer].number
        for row in self._touched(access):
            if row.lap < lap:
                row.lap, row.makers = lap, []
            row.makers.append((self._place(access), task))

    def _place(self, access: Access) -> Box:
        return shifted(access.box, self.laps[access.buffer].steps)

    def _touched(self, access: Access) -> Iterator[_Row]:
        lap = self.laps[access.buffer]
        for row in range(*self._place(access)[lap.axis]):
            yield self._rows.setdefault((lap.ring, row), _Row())

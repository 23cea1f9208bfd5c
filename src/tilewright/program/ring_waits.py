"""Who made what a rolling buffer holds, and who still reads it.

Whoever reads a row waits for those who made it in this lap; whoever writes over it waits for all
who read or made it in the lap before.
"""

from dataclasses import dataclass, field

from tilewright.program.boxes import shifted
from tilewright.program.model import Access, Box
from tilewright.program.writers import Written
from tilewright.records import quickly_made


@quickly_made
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

    def rows(self, box: Box) -> range:
        """The places of the ring that a box of the tensor takes."""
        start, stop = box[self.axis]
        return range(start + self.steps[self.axis], stop + self.steps[self.axis])

    def across(self, box: Box) -> Box:
        """Where a box lies in its rows."""
        here = box[: self.axis] + box[self.axis + 1 :]
        steps = self.steps[: self.axis] + self.steps[self.axis + 1 :]
        return shifted(here, steps) if any(steps) else here


@dataclass(slots=True)
class _Row:
    """A place of a ring: who made what is in it, and who has read what was, by lap."""

    lap: int = 0
    made: Written = field(default_factory=Written)
    readers: dict[int, dict[int, int]] = field(default_factory=dict)
    """By lap, the last reader of each chain of tasks that run one after the other."""


@dataclass(slots=True)
class _Touched:
    """What an access touches of a ring, which many tasks touch alike."""

    ring: int
    across: Box
    """Where it lies in each of its rows."""
    lap: int
    rows: list[_Row]
    makers: tuple[int, ...] = ()
    written: int = -1
    """How often the ring had been written when its makers were looked up."""


@dataclass
class RingWaits:
    """The rows of all rings; buffers are known by their laps."""

    laps: dict[int, Lap] = field(default_factory=dict)
    _rows: dict[tuple[int, int], _Row] = field(default_factory=dict)
    _known: dict[tuple[int, Box], _Touched] = field(default_factory=dict)
    _written: dict[int, int] = field(default_factory=dict)
    """By ring, how often it has been written."""

    def makers(self, access: Access) -> tuple[int, ...]:
        """Tasks that made what an access reads."""
        touched = self._touched(access)
        written = self._written.get(touched.ring, 0)
        if touched.written != written:
            found = {task: None for row in touched.rows for _, task in row.made.met(touched.across)}
            touched.makers, touched.written = tuple(found), written
        return touched.makers

    def before_write(self, access: Access) -> set[int]:
        """Tasks that made or read what a write takes the place of."""
        touched = self._touched(access)
        lap = touched.lap
        found: set[int] = set()
        for row in touched.rows:
            if row.lap < lap:
                found.update(row.made.tasks)
            for other in [other for other in row.readers if other < lap]:
                found.update(row.readers[other].values())
                if other < lap - 1:
                    del row.readers[other]
        return found

    def read(self, access: Access, chain: int, task: int) -> None:
        """Note who reads."""
        touched = self._touched(access)
        lap = touched.lap
        for row in touched.rows:
            readers = row.readers.get(lap)
            if readers is None:
                readers = row.readers[lap] = {}
            readers[chain] = task

    def write(self, access: Access, chain: int, task: int) -> None:
        """Note who writes."""
        touched = self._touched(access)
        lap, across = touched.lap, touched.across
        self._written[touched.ring] = self._written.get(touched.ring, 0) + 1
        for row in touched.rows:
            if row.lap < lap:
                row.lap, row.made.entries = lap, []
            row.made.add(across, chain, task)

    def _touched(self, access: Access) -> _Touched:
        key = (access.buffer, access.box)
        found = self._known.get(key)
        if found is None:
            lap = self.laps[access.buffer]
            rows = [self._row(lap.ring, number) for number in lap.rows(access.box)]
            found = _Touched(lap.ring, lap.across(access.box), lap.number, rows)
            self._known[key] = found
        return found

    def _row(self, ring: int, number: int) -> _Row:
        found = self._rows.get((ring, number))
        if found is None:
            found = self._rows[ring, number] = _Row()
        return found

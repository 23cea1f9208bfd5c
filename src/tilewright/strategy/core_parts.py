"""What lies in the scratchpads of each core: its part of rows, of results and of constants.

Cores that go through a cascade together share its stages out along other loops than that of the
rows. So what each of them has of a row follows from the loops along which its readers go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tilewright.network.graph import Operand
from tilewright.program.boxes import Ranges, elements, size_bytes, touched
from tilewright.program.cores import Way, boxes_read, shares, way_of
from tilewright.program.homes import Homes
from tilewright.program.model import Box
from tilewright.program.stages import Stage

Reader = tuple[int, str]
"""A stage, and the loop of it that walks the rows of its cascade; no loop: it runs by itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CoreParts:
    """Parts of cores, worked out once for every loop of a stage."""

    homes: Homes
    stages: Sequence[Stage]
    unrolled: Sequence[Mapping[str, int]]
    _ranges: dict[Reader, tuple[Ranges, ...]] = field(default_factory=dict)
    _rows: dict[tuple[str, int, tuple[Reader, ...], str], int] = field(default_factory=dict)

    def ranges(self, number: int, loop: str) -> tuple[Ranges, ...]:
        """How a stage is shared out if its cascade goes along a loop; the first part is the
        largest."""
        key = number, loop
        if key not in self._ranges:
            stage, unrolled = self.stages[number], self.unrolled[number]
            self._ranges[key] = shares(self.homes, stage, unrolled, self._way, loop)
        return self._ranges[key]

    def row_elements(self, root: str, axis: int, readers: tuple[Reader, ...], memory: str) -> int:
        """Elements of a row of a tensor in the scratchpad that has most of it, if these read it."""
        key = root, axis, readers, memory
        if key not in self._rows:
            self._rows[key] = self._row_elements(*key)
        return self._rows[key]

    def _row_elements(self, root: str, axis: int, readers: tuple[Reader, ...], memory: str) -> int:
        boxes = self._boxes(root, readers)
        return max((elements((*box[:axis], *box[axis + 1 :])) for box in boxes), default=0)

    def kept_bytes(self, root: str, readers: Sequence[Reader], memory: str) -> int:
        """Bytes of a kept tensor in the scratchpad that has most of it, if these read it."""
        tensor, boxes = self.homes.network.by_name[root], self._boxes(root, readers)
        return max(
            (self.homes.aligned(size_bytes(box, tensor), memory) for box in boxes), default=0
        )

    def _boxes(self, root: str, readers: Sequence[Reader]) -> list[Box]:
        """What each core has of a tensor that these read; where it lies once for all, the same."""
        stages = [self.stages[number] for number, _ in readers]
        found = boxes_read(self.homes, stages, [self.ranges(*reader) for reader in readers])
        return [box for (name, _), box in found.items() if name == root]

    def made_elements(self, number: int, loop: str, memory: str) -> int:
        """Elements that a core makes of a stage's result with one step of a loop."""
        made = self.stages[number].results[0]
        shape = self.homes.network.by_name[made.tensor].shape
        steps = [{**ranges, loop: (0, 1)} for ranges in self.ranges(number, loop)]
        boxes = [touched(made, step, shape) for step in steps]
        return self._in_one_memory(memory, [elements(box) for box in boxes])

    def constant_bytes(self, number: int, loop: str, operand: Operand, memory: str) -> int:
        """Bytes of a constant in the scratchpad that has most of it; what several cores want lies
        there once."""
        tensor = self.homes.network.by_name[operand.tensor]
        if self._is_shared(memory):
            return tensor.size_bytes
        box = touched(operand, self.ranges(number, loop)[0], tensor.shape)
        return size_bytes(box, tensor)

    def _in_one_memory(self, memory: str, sizes: Sequence[int]) -> int:
        """The largest of what cores have, or all of it if the scratchpad is the same for all."""
        return sum(sizes) if self._is_shared(memory) else max(sizes, default=0)

    def _is_shared(self, memory: str) -> bool:
        return self.homes.places.named(memory, 0).core is None

    @cached_property
    def _way(self) -> Way:
        return way_of(self.homes.places)

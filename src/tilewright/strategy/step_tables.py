"""Bytes by step: what is held and made for each step that a cascade may take."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from tilewright.program.slicing import SLICE
from tilewright.records import quickly_made
from tilewright.strategy.room import Usage
from tilewright.strategy.scene import Scene
from tilewright.strategy.spans import Span
from tilewright.units import packed_bytes


@quickly_made
@dataclass(frozen=True, kw_only=True, eq=False)
class StepTables:
    """Tables for all spans that end at the same stage along the same axis.

    They take the same steps, and most of what one holds another one holds too.
    """

    scene: Scene
    _held: dict[tuple[str, int], Sequence[int]] = field(default_factory=dict)
    _first_held: dict[tuple[str, int], int] = field(default_factory=dict)
    _made: dict[int, Sequence[Usage]] = field(default_factory=dict)
    _first_made: dict[int, Usage] = field(default_factory=dict)
    _saved: dict[tuple[str, bool], int] = field(default_factory=dict)

    def held(self, span: Span, root: str) -> Sequence[int]:
        """By step, bytes that are held of a tensor: they change with the first reader."""
        key = root, span.readers[root][0][0]
        if key not in self._held:
            window, growth, _, length, _, bits = span.holds[root]
            alignment = self.scene.alignment(self.scene.result_memory)
            row_bits, unit_bits = self._row_elements(span, root) * bits, 8 * alignment
            rows = [min(window + max(1, ceil(growth * step)), length) for step, _ in span.steps[1:]]
            later = [-(-row_bits * count // unit_bits) * alignment for count in rows]
            self._held[key] = [self.first_held(span, root), *later]
        return self._held[key]

    def first_held(self, span: Span, root: str) -> int:
        """Bytes that are held of a tensor in the first of all steps."""
        key = root, span.readers[root][0][0]
        if key not in self._first_held:
            hold, scene = span.holds[root], self.scene
            row_bits = self._row_elements(span, root) * hold.bits
            step, eager = span.steps[0]
            size_bits = row_bits * hold.rows(step, eager=eager)
            self._first_held[key] = scene.rounded(scene.result_memory, -(-size_bits // 8))
        return self._first_held[key]

    def _row_elements(self, span: Span, root: str) -> int:
        """Elements of a row of a tensor in the scratchpad that has most of it."""
        if self._has_one_core:
            return span.holds[root].row_elements
        memory, readers = self.scene.result_memory, span.readers[root]
        loops = tuple([(number, span.linked[number].loop) for number, _ in readers])
        return self.scene.core_parts.row_elements(root, readers[0][1].axis, loops, memory)

    def _made_bytes(self, span: Span, number: int, step: int, *, eager: bool) -> int:
        """Bytes of a stage's result that come at once to the scratchpad that has most of them."""
        stage, result = span.linked[number], self.scene.prepared.stages[number].results[0]
        if self._has_one_core or stage.reduces:
            return span.made_bytes(number, step, eager=eager)
        rows = span.made_rows(number, step, eager=eager)
        made = self.scene.core_parts.made_elements(number, stage.loop, self.scene.result_memory)
        return packed_bytes(made * rows, self.scene.prepared.network.by_name[result.tensor].bits)

    @property
    def _has_one_core(self) -> bool:
        """Whether everything is in one place."""
        return self.scene.prepared.places.cores == 1

    def held_for(self, span: Span, root: str, on_demand: Sequence[str], number: int) -> int:
        """Bytes held in a step if some tensors are made again, for which rows of what they are made
        of wait."""
        scene, hold, (step, eager) = self.scene, span.holds[root], span.steps[number]
        rows = [hold.rows(step, eager=eager)]
        for other in on_demand:
            made = span.holds[other].rows(step, eager=eager)
            for read in span.linked[span.on_demand[other].maker].reads:
                if read.root == root:
                    reach = (made - 1) * read.factor + read.high - read.low
                    rows.append(min(reach // read.divisor + 1, read.size))
        size_bits = hold.row_elements * hold.bits * max(rows)
        return scene.rounded(scene.result_memory, -(-size_bits // 8))

    def made(self, span: Span, number: int) -> Sequence[Usage]:
        """By step, room for what a stage makes at once."""
        if number not in self._made:
            scene, memory = self.scene, self.scene.result_memory
            sizes = [
                scene.rounded(memory, self._made_bytes(span, number, step, eager=True))
                for step, _ in span.steps[1:]
            ]
            later = scene.room.each_use(memory, sizes)
            self._made[number] = [self.first_made(span, number), *later]
        return self._made[number]

    def first_made(self, span: Span, number: int) -> Usage:
        """Room for what a stage makes at once in the first of all steps."""
        if number not in self._first_made:
            scene, memory = self.scene, self.scene.result_memory
            step, eager = span.steps[0]
            size = scene.rounded(memory, self._made_bytes(span, number, step, eager=eager))
            self._first_made[number] = scene.room.use(memory, size)
        return self._first_made[number]

    def passing(self, span: Span, memory: str, size: int) -> Sequence[Usage]:
        """By step, room for a part of a constant of the first stage, of which rows have theirs."""
        scene, found = self.scene, []
        length, rate = span.linked[span.first].size, span.paces[span.first].rate
        for step, eager in span.steps:
            rows = min(length, ceil(rate * step)) if eager else 1
            part = scene.rounded(memory, ceil(size * rows / length))
            found.append(scene.room.use(memory, part))
        return found

    def saved(self, span: Span, root: str, *, forgets: bool) -> int:
        """Bytes that are not held if the newest rows of a private tensor are made in slices, and
        the others wait or are made again."""
        key = root, forgets
        if key not in self._saved:
            sliced = span.sliced_bytes(root, SLICE, forgets=forgets)
            sliced = self.scene.rounded(self.scene.result_memory, sliced)
            self._saved[key] = self.first_held(span, root) - sliced
        return self._saved[key]

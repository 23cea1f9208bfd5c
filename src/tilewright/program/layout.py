"""What is decided before tasks are made: parts of cores, tilings, and what each core keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tilewright.program.boxes import Ranges
from tilewright.program.cascade import Flow, Roll
from tilewright.program.model import Box, Space
from tilewright.program.stages import Stage
from tilewright.program.tile import Tiling


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingBuffer:
    """A core's rolling buffer in a cascade: what passes through it, and in which memory."""

    root: str
    core: int
    box: Box
    roll: Roll
    memory: str


class Passing(NamedTuple):
    """An operand whose tiles come again: how many of them stay, and what all of them take."""

    staying: int
    memory: str
    all_bytes: int


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The ranges of each core per stage, the tiling of each stage, and what each core keeps."""

    parts: tuple[tuple[Ranges, ...], ...]
    tilings: tuple[Tiling, ...]
    kept: Mapping[tuple[str, int], Box]
    in_place: Mapping[int, str]
    """Stages whose result takes the place of an input: its root tensor."""
    flows: Mapping[int, Flow]
    """Cascades by each of their stages."""
    rolling: Mapping[int, tuple[RollingBuffer, ...]]
    """Rolling buffers by the first stage of their cascade."""
    lasting: frozenset[int]
    """Stages of cascades whose constants stay from the first turn to the last."""
    passing: Mapping[int, Mapping[str, Passing]]
    """By stage, operands whose tiles come again."""
    makers: Mapping[str, int]
    """Stages that make a tensor on demand, by its root."""

    def in_room(self, spaces: Sequence[Space]) -> "Layout":
        """The same where there is more room than it was made for: more tiles stay."""
        room = {space.memory: space.size_bytes for space in spaces}
        passing = {
            number: {
                name: tiles
                for name, tiles in operands.items()
                if 2 * tiles.all_bytes > room[tiles.memory]
            }
            for number, operands in self.passing.items()
        }
        return replace(self, passing={number: left for number, left in passing.items() if left})

    def as_run(self, stages: Sequence[Stage]) -> list[Stage]:
        """The stages, with constants that stream where they do."""
        pairs = zip(stages, self.tilings, strict=True)
        return [stage.streaming if tiling.streams else stage for stage, tiling in pairs]

    @property
    def decisions(self) -> tuple[object, ...]:
        """All that tasks depend on: layouts with the same decisions differ in estimates alone."""
        return (
            tuple([tuple(part.items()) for parts in self.parts for part in parts]),
            tuple([(t.order, tuple(t.lengths.items()), t.streams) for t in self.tilings]),
            tuple(self.kept.items()),
            tuple(self.in_place.items()),
            tuple([(number, flow.cascade) for number, flow in self.flows.items()]),
            tuple(self.rolling.items()),
            self.lasting,
            tuple([(number, tuple(left.items())) for number, left in self.passing.items()]),
        )

    @property
    def cycles(self) -> float:
        """What the stages take one after the other, as far as the choice of tiles estimates it."""
        return sum(tiling.cycles for tiling in self.tilings)

    @property
    def moved_bytes(self) -> float:
        """What is moved from and to the outside, as far as the choice of tiles estimates it."""
        return sum(tiling.moved_bytes for tiling in self.tilings)

    @property
    def rings(self) -> Mapping[tuple[int, str], Roll]:
        """Tensors that pass through rolling buffers, by the first stage of their cascade."""
        return {
            (first, buffer.root): buffer.roll
            for first, buffers in self.rolling.items()
            for buffer in buffers
        }

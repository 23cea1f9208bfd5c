"""The tiles of a stage and what they touch: worked out once for all layouts that have them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from tilewright.once import once
from tilewright.program.boxes import Ranges
from tilewright.program.model import Box
from tilewright.program.slicing import ranges_of
from tilewright.program.stages import Stage
from tilewright.program.tile import Tiling
from tilewright.program.tile_cost import WHOLE_SUM, Sums
from tilewright.program.tiles import label
from tilewright.program.uses import StageUses, Use
from tilewright.records import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """What one task computes on a core, and what it touches."""

    core: int
    name: str
    """The op's, with the ranges of the loops that are cut."""
    ranges: Ranges
    sums: Sums
    spans: tuple[tuple[str, int, int], ...]
    """The ranges as tasks have them."""
    shape: tuple[int, ...]
    """How far each loop runs."""
    reads: tuple[tuple[Use, Box], ...]
    """What it brings and reads; of a small constant, all that its core will ever want."""
    results: tuple[Box, ...]
    """What it touches of each of the stage's results."""

    @property
    def lengths(self) -> dict[str, int]:
        """How far each loop runs, by loop."""
        return dict(zip(self.ranges, self.shape, strict=True))


def is_read_later(use: Use, tile: Tile, stage: Stage) -> bool:
    """Whether a tile only brings an operand, which the last tile of its sums reads."""
    return use.is_last and (tile.sums.unfinished or stage.op.is_unfinished)


@dataclass(frozen=True)
class StageTiles:
    """Makes the tiles of one stage, and remembers them."""

    uses: StageUses
    _in_parts: dict[object, tuple[Tile, ...]] = field(default_factory=dict)
    """By core, ranges of its part, lengths of tiles and their order."""
    _on_demand: dict[object, Tile] = field(default_factory=dict)
    """By core, ranges of its part, and what is made."""

    @once
    def _sizes(self) -> Mapping[str, int]:
        return self.uses.stage.op.sizes

    def of_part(self, core: int, part: Ranges, tiling: Tiling) -> tuple[Tile, ...]:
        """The tiles of a core's part, in the order of a tiling."""
        lengths = [tiling.lengths[dim] for dim in tiling.order]
        key = (core, tuple(part.values()), tiling.order, tuple(lengths))
        found = self._in_parts.get(key)
        if found is None:
            found = self._in_parts[key] = tuple(self._cut(core, part, tiling))
        return found

    def making(self, core: int, part: Ranges, box: Box) -> Tile:
        """The tile that makes a box of the stage's result, as far as it is the core's to make."""
        key = (core, tuple(part.values()), box)
        if key not in self._on_demand:
            asked = ranges_of(self.uses.stage, box)
            ranges = {
                dim: (max(start, part[dim][0]), min(stop, part[dim][1]))
                for dim, (start, stop) in asked.items()
            }
            self._on_demand[key] = self._tile(core, part, ranges, WHOLE_SUM)
        return self._on_demand[key]

    def _cut(self, core: int, part: Ranges, tiling: Tiling) -> Iterator[Tile]:
        for ranges in _tile_ranges(part, tiling.lengths, tiling.order):
            yield self._tile(core, part, ranges, self._sums_of(ranges))

    def _sums_of(self, ranges: Ranges) -> Sums:
        """Which part of its sums a tile adds."""
        loops = self.uses.stage.summed
        if [ranges[dim] for dim, _ in loops] == [(0, size) for _, size in loops]:
            return WHOLE_SUM
        return Sums(
            continued=any(ranges[dim][0] > 0 for dim, _ in loops),
            unfinished=any(ranges[dim][1] < size for dim, size in loops),
        )

    def _tile(self, core: int, part: Ranges, ranges: Ranges, sums: Sums) -> Tile:
        reads = []
        for use in self.uses.inputs:
            if use.is_sum and sums.continued:
                continue
            box = use.footprint.solid_box(part if use.comes_whole else ranges)
            if box is not None:
                reads.append((use, box))
        spans = tuple([(dim, start, stop) for dim, (start, stop) in ranges.items()])
        return Tile(
            core=core,
            name=label(self.uses.stage.op.name, spans, self._sizes),
            ranges=ranges,
            sums=sums,
            spans=spans,
            shape=tuple([stop - start for _, start, stop in spans]),
            reads=tuple(reads),
            results=tuple([use.footprint.box(ranges) for use in self.uses.results]),
        )


def _tile_ranges(
    ranges: Ranges, lengths: Mapping[str, int], order: Sequence[str]
) -> Iterator[dict[str, tuple[int, int]]]:
    """The tiles of a part, the last loop of the order running fastest."""
    steps = [
        [
            (start, min(start + lengths[dim], ranges[dim][1]))
            for start in range(*ranges[dim], lengths[dim])
        ]
        for dim in order
    ]
    for spans in product(*steps):
        tile = dict(ranges)
        tile.update(zip(order, spans, strict=True))
        yield tile

"""Where a task leaves what it makes: partial sums, what is kept, and what is taken outside."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tilewright.network.graph import Op
from tilewright.program.boxes import Ranges, contains, is_empty, overlap, without
from tilewright.program.build import Builder, Copy
from tilewright.program.held import Held
from tilewright.program.homes import Homes
from tilewright.program.model import Access, Box
from tilewright.program.rows import REDUCING_KINDS, unfinished_bits
from tilewright.program.stage_tiles import Tile
from tilewright.program.tile_cost import TileCosts
from tilewright.program.uses import StageUses, Use


@dataclass
class Writes:
    """Finds or makes the buffers that tasks write."""

    homes: Homes
    costs: TileCosts
    held: Held
    builder: Builder
    _sums: dict[str, dict[tuple[int, Box], int]] = field(default_factory=dict)
    """Buffers of partial sums that are not finished, by tensor, and by core and box."""

    def partial_sums(self, uses: StageUses, core: int, ranges: Ranges) -> Access:
        """Where a task finds or leaves partial sums."""
        tensor, box = uses.sums.tensor, uses.sums.footprint.box(ranges)
        known = self._sums.setdefault(tensor, {})
        if (core, box) not in known:
            assert uses.sums.memory is not None
            known[core, box] = self.builder.buffer(
                tensor,
                box,
                self.homes.places.named(uses.sums.memory, core),
                name=f"{tensor} partial sums",
                bits=self._bits(uses.stage.op),
            )
        return Access(known[core, box], box)

    def _bits(self, op: Op) -> int:
        """Bits of an unfinished sum."""
        reduces = op.kind in REDUCING_KINDS
        return unfinished_bits(op) if reduces else self.costs.nest(op)[0].operands[0].bits

    def forget_sums(self, uses: StageUses) -> None:
        """All sums of a stage are finished."""
        self._sums.pop(uses.sums.tensor, None)

    def results(self, uses: StageUses, tile: Tile) -> tuple[list[Access], list[Copy]]:
        """Where a task writes its results, and the copies that take some of that outside."""
        writes: list[Access] = []
        outgoing: list[Copy] = []
        core = tile.core
        for use, box in zip(uses.results, tile.results, strict=True):
            made = self.held.parts(use.tensor, box)
            writes += made
            if made and not self.held.goes_out(use.root):
                continue
            own = next(
                (a for a in made if self._is_at(a, use, core) and contains(a.box, box)), None
            )
            outside = Access(self.builder.view(self.held.outside(use.root), use.tensor), box)
            if use.memory is None:
                writes.append(outside)
                continue
            if own is None and any(self._is_at(a, use, core) for a in made):
                # What lies here already is not written a second time.
                outgoing += self._stores(made, outside)
                continue
            if own is None:
                own = self._tile(use, box, core)
                writes.append(own)
            outgoing.append(self.builder.copy(Access(own.buffer, box), (outside,), "store"))
        return writes, outgoing

    def _stores(self, kept: Sequence[Access], outside: Access) -> Iterator[Copy]:
        """Copies that take a box outside from where parts of it are kept, each element once."""
        left = [outside.box]
        for part in kept:
            for box in left:
                common = overlap(part.box, box)
                if not is_empty(common):
                    target = Access(outside.buffer, common)
                    yield self.builder.copy(Access(part.buffer, common), (target,), "store")
            left = [rest for box in left for rest in without(box, part.box)]
        assert not left, "a tensor is kept as a whole"

    def _is_at(self, access: Access, use: Use, core: int) -> bool:
        """Whether something lies where a core's tiles of a result would."""
        memory = use.memory
        here = None if memory is None else self.homes.places.named(memory, core).name
        return self.builder.buffers[access.buffer].space == here

    def _tile(self, use: Use, box: Box, core: int) -> Access:
        assert use.memory is not None
        space = self.homes.places.named(use.memory, core)
        return Access(self.builder.buffer(use.tensor, box, space), box)

"""Where a task finds what it reads, and the copies that bring it there."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import floor

from tilewright.errors import InfeasibleError, Problem
from tilewright.program.boxes import elements
from tilewright.program.build import Builder, Copy
from tilewright.program.held import Held
from tilewright.program.homes import ANYWHERE, Homes
from tilewright.program.model import Access, Box, Space, TaskKind
from tilewright.program.pieces import Pieces
from tilewright.program.rings import Ring
from tilewright.program.uses import Use
from tilewright.records import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True)
class _Source:
    """Where a core finds an operand, as long as no rolling buffers come or go."""

    lies_in: Ring | Pieces | int
    """A rolling buffer, rows that are made on demand, or a buffer that has everything."""
    target: Space | None
    """Where tiles are brought to; None: they are read where they lie."""
    is_outside: bool = False
    """Whether it comes from outside, and not from what the core holds."""

    @property
    def kind(self) -> TaskKind:
        """Of the transfers that bring tiles."""
        return "load" if self.is_outside else "move"


@dataclass
class Reads:
    """Finds what tasks read; copies wait until `start_copies`, so that small ones go together."""

    homes: Homes
    held: Held
    builder: Builder
    _sources: dict[tuple[str, int, str | None], _Source] = field(default_factory=dict)
    """By tensor, core and the memory that is wanted."""
    _rows: dict[tuple[str, int, Box], Sequence[Access]] = field(default_factory=dict)
    """Where boxes lie in rolling buffers or in rows that are made on demand, by tensor and core."""
    _staged: dict[str, dict[tuple[Box, str], Access]] = field(default_factory=dict)
    """Tiles that were brought, by tensor, then by box and space."""
    _pending: list[Copy] = field(default_factory=list)

    def accesses(self, use: Use, box: Box, core: int, sharing: Sequence[int]) -> Sequence[Access]:
        """Where a task finds a box of an operand; what comes from outside comes to all `sharing`.

        Raises:
            InfeasibleError: the tensor has nowhere to come from.
        """
        key = (use.tensor, core, use.memory)
        source = self._sources.get(key)
        if source is None:
            source = self._sources[key] = self._source(use, core)
        lies_in, target = source.lies_in, source.target
        cores = sharing if source.is_outside else (core,)
        if isinstance(lies_in, int):
            access = Access(lies_in, box)
            return (access if target is None else self._brought(use, access, source, cores),)
        found = self._in_rows(lies_in, use, box, core)
        if target is None:
            return found
        return [self._brought(use, access, source, cores) for access in found]

    def _source(self, use: Use, core: int) -> _Source:
        pieces = self.held.pieces.get(use.root)
        if pieces is not None:
            return self._at_hand(use, core, pieces, pieces.space.memory)
        ring = self.held.rings.get((use.root, core))
        if ring is not None:
            return self._at_hand(use, core, ring, ring.memory)
        kept = self.held.kept(use.root, core)
        if kept is not None:
            view = self.builder.view(kept, use.tensor)
            if use.memory is None:
                return _Source(view, None)
            return self._at_hand(use, core, view, self.homes.of_kept(use.root))
        outside = self.builder.view(self._outside(use.root), use.tensor)
        if use.memory is None or (use.memory == ANYWHERE and self.homes.places.home("I1") is None):
            return _Source(outside, None, is_outside=True)
        memory = self.homes.memory_of_tiles(use.memory)
        return _Source(outside, self.homes.places.named(memory, core), is_outside=True)

    def _outside(self, root: str) -> int:
        """The buffer of a tensor outside the scratchpads; a sink takes and never gives."""
        found = self.held.outside(root)
        space = self.homes.places.by_name[self.builder.buffers[found].space]
        if space.kind == "sink":
            message = f"tensor {root!r} has nowhere to wait for those that read it: results go to "
            hint = "declare an external memory for O, or a scratchpad that is large enough"
            raise InfeasibleError(Problem(message=f"{message}{space.name}", hint=hint))
        return found

    def _at_hand(self, use: Use, core: int, lies_in: Ring | Pieces | int, here: str) -> _Source:
        """What a core holds, to be moved if the task wants it elsewhere."""
        if use.memory in (ANYWHERE, here):
            return _Source(lies_in, None)
        return _Source(lies_in, self.homes.places.named(use.memory or here, core))

    def _in_rows(self, rows: Ring | Pieces, use: Use, box: Box, core: int) -> Sequence[Access]:
        """Where a box lies in a rolling buffer, or in rows that are made on demand."""
        key = (use.tensor, core, box)
        found = self._rows.get(key)
        if found is None:
            if isinstance(rows, Ring):
                self._fill(rows, box[rows.axis][1])
                found = rows.accesses(use.tensor, box)
            else:
                found = rows.accesses(box)
            self._rows[key] = found
        return found

    def _fill(self, ring: Ring, upto: int) -> None:
        """Bring rows from outside that have not come yet, to all cores that want the same."""
        if ring.arrived is None or upto <= ring.arrived:
            return
        rings = {id(other): other for other in self.held.rings.values()}
        alike = [
            other
            for other in rings.values()
            if (other.root, other.box, other.arrived) == (ring.root, ring.box, ring.arrived)
        ]
        rows = (ring.arrived, upto)
        box = (*ring.box[: ring.axis], rows, *ring.box[ring.axis + 1 :])
        outside = self.held.outside(ring.root)
        for parts in zip(*(other.accesses(ring.root, box) for other in alike), strict=True):
            self._pending.append(self.builder.copy(Access(outside, parts[0].box), parts, "load"))
        for other in alike:
            other.arrived = upto

    def _brought(self, use: Use, access: Access, source: _Source, sharing: Sequence[int]) -> Access:
        """A tile where a task wants it, copied once; all `sharing` get it in the same transfer."""
        target, box = source.target, access.box
        assert target is not None
        staged = self._staged.setdefault(use.tensor, {})
        found = staged.get((box, target.name))
        if found is None:
            targets = [target]
            if len(sharing) > 1:
                spaces = [self.homes.places.named(target.memory, core) for core in sharing]
                distinct = {space.name: space for space in (*spaces, target)}
                targets = [space for name, space in distinct.items() if (box, name) not in staged]
            made = []
            for space in targets:
                found = Access(self.builder.buffer(use.tensor, box, space), box)
                staged[box, space.name] = found
                made.append(found)
            self._pending.append(self.builder.copy(access, tuple(made), source.kind))
            found = staged[box, target.name]
        return found

    def forget(self, tensors: Iterable[str]) -> None:
        """Let tiles of some tensors come again when they are next needed."""
        for tensor in tensors:
            self._staged.pop(tensor, None)

    def forget_others(self, tensors: Iterable[str], *wanted: Collection[tuple[str, Box]]) -> None:
        """Let tiles of some tensors come again, all but those that are wanted."""
        for tensor in tensors:
            staged = self._staged.get(tensor, {})
            for box, space in list(staged):
                if not any((tensor, box) in tiles for tiles in wanted):
                    del staged[box, space]

    def forget_all_but(self, reads: Sequence[Access]) -> None:
        """Let all tiles come again that a task does not read."""
        used = [access.buffer for access in reads]
        kept: dict[str, dict[tuple[Box, str], Access]] = {}
        for tensor, staged in self._staged.items():
            left = {key: tile for key, tile in staged.items() if tile.buffer in used}
            if left:
                kept[tensor] = left
        self._staged = kept

    def look_again(self) -> None:
        """Find out anew where tensors lie: rolling buffers have come or gone."""
        self._sources.clear()
        self._rows.clear()

    def start_copies(self) -> None:
        """Emit the copies that a task wants; those that take less than their set-up go together."""
        pending = self._pending
        while len(pending) > 1:
            first = max(pending, key=lambda copy: elements(copy.source.box))
            together, left = [first], list[Copy]()
            for copy in pending:
                if copy is not first:
                    (together if self._may_join(first, copy) else left).append(copy)
            self._start(together)
            pending = left
        if pending:
            self._start(pending)
        self._pending = []

    def _start(self, copies: Sequence[Copy]) -> None:
        tensor = self.builder.buffers[copies[0].source.buffer].tensor
        self.builder.transfer(copies, name=f"{tensor} in")

    def _may_join(self, first: Copy, other: Copy) -> bool:
        """Whether two copies go the same way and the second is hardly worth a transfer."""
        if first.kind != other.kind or first.spaces != other.spaces:
            return False
        return other.size_bytes <= self._small_bytes.get(other.spaces[:2], -1)

    @cached_property
    def _small_bytes(self) -> dict[tuple[str, ...], int]:
        """The most bytes that take less than two set-ups, by source and target."""
        return {
            ends: floor((route.setup_cycles - 1) * route.bytes_per_cycle)
            for ends, route in self.homes.places.routes.items()
        }

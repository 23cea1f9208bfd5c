"""Where a task finds what it reads, and the copies that bring it there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tilewright.program.boxes import elements
from tilewright.program.build import Builder, Copy
from tilewright.program.held import Held
from tilewright.program.homes import ANYWHERE, Homes
from tilewright.program.model import Access, Box, Space, TaskKind
from tilewright.program.rings import Ring
from tilewright.program.uses import Use


@dataclass
class Reads:
    """Finds what tasks read; copies wait until `start_copies`, so that small ones go together."""

    homes: Homes
    held: Held
    builder: Builder
    _staged: dict[str, dict[tuple[Box, str], int]] = field(default_factory=dict)
    """Buffers of tiles that were brought, by tensor, then by box and space."""
    _found: dict[str, dict[tuple[Box, int, str | None], Sequence[Access]]] = field(
        default_factory=dict
    )
    """What was answered before, by tensor, then by box, core and the memory that is wanted."""
    _pending: list[Copy] = field(default_factory=list)

    def accesses(self, use: Use, box: Box, core: int, sharing: Sequence[int]) -> Sequence[Access]:
        """Where a task finds a box of an operand; what comes from outside comes to all `sharing`.

        Raises:
            InfeasibleError: the tensor has nowhere to come from.
        """
        known = self._found.setdefault(use.tensor, {})
        key = (box, core, use.memory)
        found = known.get(key)
        if found is None:
            found = known[key] = self._accesses(use, box, core, sharing)
        return found

    def _accesses(self, use: Use, box: Box, core: int, sharing: Sequence[int]) -> Sequence[Access]:
        pieces = self.held.pieces.get(use.root)
        if pieces is not None:
            return self._at_hand(use, core, pieces.accesses(box), pieces.space.memory)
        ring = self.held.rings.get((use.root, core))
        if ring is not None:
            self._fill(ring, box[ring.axis][1])
            return self._at_hand(use, core, ring.accesses(use.tensor, box), ring.memory)
        kept = self.held.kept(use.root, core)
        if kept is not None:
            found = [Access(self.builder.view(kept, use.tensor), box)]
            return self._at_hand(use, core, found, self.homes.of_kept(use.root))
        if use.memory is None or (use.memory == ANYWHERE and self.homes.places.home("I1") is None):
            return [self._outside(use, box)]
        memory = self.homes.memory_of_tiles(use.memory)
        wanted = self.homes.places.named(memory, core)
        staged = self._staged.get(use.tensor, {}).get((box, wanted.name))
        if staged is not None:
            return [Access(staged, box)]
        targets = [self.homes.places.named(memory, number) for number in sharing]
        return [self._bring(self._outside(use, box), targets, wanted, kind="load")]

    def _outside(self, use: Use, box: Box) -> Access:
        return Access(self.builder.view(self.held.outside(use.root), use.tensor), box)

    def _at_hand(self, use: Use, core: int, found: Sequence[Access], here: str) -> Sequence[Access]:
        """What a core holds, where the task wants it."""
        if use.memory in (ANYWHERE, here):
            return found
        target = self.homes.places.named(use.memory or here, core)
        return [self._bring(access, [target], target, kind="move") for access in found]

    def _fill(self, ring: Ring, upto: int) -> None:
        """Bring rows from outside that have not come yet, to all cores that want the same."""
        if ring.arrived is None or upto <= ring.arrived:
            return
        alike = [
            other
            for (root, _), other in self.held.rings.items()
            if (root, other.box, other.arrived) == (ring.root, ring.box, ring.arrived)
        ]
        rows = (ring.arrived, upto)
        box = (*ring.box[: ring.axis], rows, *ring.box[ring.axis + 1 :])
        outside = self.held.outside(ring.root)
        for parts in zip(*(other.accesses(ring.root, box) for other in alike), strict=True):
            self._pending.append(Copy(Access(outside, parts[0].box), parts, "load"))
        for other in alike:
            other.arrived = upto

    def _bring(
        self, source: Access, targets: Sequence[Space], wanted: Space, *, kind: TaskKind
    ) -> Access:
        """A copy of a box in a space, made once; `targets` get it in the same transfer."""
        tensor, box = self.builder.buffers[source.buffer].tensor, source.box
        staged = self._staged.setdefault(tensor, {})
        if (box, wanted.name) not in staged:
            fresh = [wanted]
            if len(targets) > 1:
                spaces = {space.name: space for space in (*targets, wanted)}
                fresh = [space for name, space in spaces.items() if (box, name) not in staged]
            made = [Access(self.builder.buffer(tensor, box, space), box) for space in fresh]
            self._pending.append(Copy(source, tuple(made), kind))
            for space, access in zip(fresh, made, strict=True):
                staged[box, space.name] = access.buffer
        return Access(staged[box, wanted.name], box)

    def forget(self, tensors: Iterable[str]) -> None:
        """Let tiles of some tensors come again when they are next needed."""
        for tensor in tensors:
            self._staged.pop(tensor, None)
            self._found.pop(tensor, None)

    def forget_all_but(self, reads: Sequence[Access]) -> None:
        """Let all tiles come again that a task does not read."""
        used = [access.buffer for access in reads]
        for tensor, staged in list(self._staged.items()):
            unused = [key for key, buffer in staged.items() if buffer not in used]
            if len(unused) == len(staged):
                self.forget([tensor])
            elif unused:
                self._found.pop(tensor, None)
                for key in unused:
                    del staged[key]

    def look_again(self) -> None:
        """Find out anew where tensors lie: rolling buffers have come or gone."""
        self._found.clear()

    def start_copies(self) -> None:
        """Emit the copies that a task wants; those that take less than their set-up go together."""
        while len(self._pending) > 1:
            first = max(self._pending, key=lambda copy: elements(copy.source.box))
            together = [c for c in self._pending if c is not first and self._may_join(first, c)]
            self._pending = [c for c in self._pending if c is not first and c not in together]
            self._start([first, *together])
        if self._pending:
            self._start([self._pending.pop()])

    def _start(self, copies: Sequence[Copy]) -> None:
        tensor = self.builder.buffers[copies[0].source.buffer].tensor
        self.builder.transfer(copies, name=f"{tensor} in")

    def _may_join(self, first: Copy, other: Copy) -> bool:
        """Whether two copies go the same way and the second is hardly worth a transfer."""
        ends = self.builder.spaces_of(other)
        if first.kind != other.kind or self.builder.spaces_of(first) != ends:
            return False
        route = self.homes.places.routes.get((ends[0], ends[1]))
        size = self.builder.copy_bytes(other)
        return route is not None and route.cycles(size) < 2 * route.setup_cycles

"""Buffers that outlive a task: what lies outside, what cores keep, and rolling buffers."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.errors import InfeasibleError, Problem
from tilewright.program.boxes import elements, overlap, shifted, whole
from tilewright.program.build import Builder
from tilewright.program.cascade import Flow
from tilewright.program.homes import Homes
from tilewright.program.layout import Layout
from tilewright.program.model import Access, Box, Space
from tilewright.program.pieces import Pieces
from tilewright.program.rings import Ring, ring_box


@dataclass(frozen=True, slots=True)
class _Holding:
    """Who holds a tensor with storage of its own, and whether it has to be outside, too."""

    rings: tuple[Ring, ...]
    """Rolling buffers."""
    kept: tuple[tuple[int, Box], ...]
    """What cores keep, one core for each place."""
    goes_out: bool


@dataclass
class Held:
    """Makes such buffers when they are first asked for."""

    homes: Homes
    layout: Layout
    builder: Builder
    rings: dict[tuple[str, int], Ring] = field(default_factory=dict)
    """Rolling buffers of the cascade at hand, by root and core."""
    pieces: dict[str, Pieces] = field(default_factory=dict)
    """Tensors that the cascade at hand makes on demand, by root."""
    _kept: dict[tuple[str, str], int] = field(default_factory=dict)
    """By root and space."""
    _outside: dict[str, int] = field(default_factory=dict)
    _holding: dict[str, _Holding] = field(default_factory=dict)

    def outside(self, root: str) -> int:
        """The buffer of a whole tensor outside the scratchpads.

        Raises:
            InfeasibleError: the machine has no place for it.
        """
        if root in self._outside:
            return self._outside[root]
        space = self.homes.outside(root)
        if root in self.homes.given:
            memory = self.homes.of_kept(root)
            message = f"input {root!r} lies in {memory} from the start, and is wanted outside"
            hint = f"write `outputs: {memory}` beside `inputs` under `given` of the machine file"
            raise InfeasibleError(Problem(message=message, hint=hint))
        if space is None:
            message = f"tensor {root!r} has nowhere to come from or to go to"
            hint = "declare an external memory, or a source and a sink"
            raise InfeasibleError(Problem(message=message, hint=hint))
        self._outside[root] = self.builder.outside(root, space)
        return self._outside[root]

    def kept(self, root: str, core: int) -> int | None:
        """The buffer in which a core keeps a tensor; an input that is kept is loaded at once."""
        box = self.layout.kept.get((root, core))
        if box is None:
            return None
        here = self._space_of_kept(root, core)
        if (root, here.name) not in self._kept:
            role, is_given = self.homes.network.by_name[root].role, root in self.homes.given
            is_loaded = role in ("input", "constant") and not is_given
            spaces = self._spaces_that_keep(root, box) if is_loaded else [here]
            for space in spaces:
                self._kept[root, space.name] = self.builder.buffer(root, box, space)
            if is_given:
                self.builder.given.append(self._kept[root, here.name])
            if is_loaded:
                targets = tuple([Access(self._kept[root, space.name], box) for space in spaces])
                copy = self.builder.copy(Access(self.outside(root), box), targets, "load")
                self.builder.transfer([copy], name=f"{root} in")
        return self._kept[root, here.name]

    def _space_of_kept(self, root: str, core: int) -> Space:
        return self.homes.places.named(self.homes.of_kept(root), core)

    def _spaces_that_keep(self, root: str, box: Box) -> list[Space]:
        """Where cores keep the same box of a tensor: it comes to all of them at once."""
        cores = range(self.homes.places.cores)
        keeping = [core for core in cores if self.layout.kept.get((root, core)) == box]
        spaces = [self._space_of_kept(root, core) for core in keeping]
        return list({space.name: space for space in spaces}.values())

    def take_place(self, name: str, made: str, core: int) -> None:
        """Let a result take the place of an input that a core keeps."""
        here = self._space_of_kept(made, core).name
        if (made, here) not in self._kept and (name, here) in self._kept:
            self._kept[made, here] = self.builder.in_place(made, self._kept[name, here])

    def begin_cascade(self, flow: Flow) -> None:
        """Make a cascade's rolling buffers; those that fill from outside are empty at first."""
        self._holding.clear()
        made: dict[tuple[str, str], Ring] = {}
        for rolling in self.layout.rolling[flow.cascade.first]:
            roll, root, core = rolling.roll, rolling.root, rolling.core
            space = self.homes.places.named(rolling.memory, core)
            if (root, space.name) not in made:
                box = ring_box(rolling.box, roll.axis, roll.rows)
                made[root, space.name] = Ring(
                    builder=self.builder,
                    root=root,
                    box=rolling.box,
                    axis=roll.axis,
                    rows=roll.rows,
                    memory=rolling.memory,
                    buffer=self.builder.buffer(root, box, space),
                    arrived=None if root in flow.rolls else 0,
                )
            self.rings[root, core] = made[root, space.name]
        for root, roll in flow.pieces.items():
            space = self.homes.places.named(self.homes.of_kept(root), 0)
            slicing = flow.slicing_of(self.layout.makers[root])
            box = whole(self.homes.network.by_name[root].shape)
            self.pieces[root] = Pieces(self.builder, space, root, box, roll.axis, slicing)
        for root, roll in flow.passing.items():
            space = self.homes.places.named(self.homes.of_kept(root), 0)
            box = whole(self.homes.network.by_name[root].shape)
            self.pieces[root] = Pieces(self.builder, space, root, box, roll.axis, None)

    def end_cascade(self) -> None:
        """Forget the rolling buffers."""
        self._holding.clear()
        self.rings.clear()
        self.pieces.clear()

    def parts(self, tensor: str, box: Box) -> list[Access]:
        """Parts of a box that cores keep, or have in their rolling buffers."""
        root = self.homes.root(tensor)
        holding = self._who_holds(root)
        found: list[Access] = []
        if root in self.pieces:
            found += self.pieces[root].accesses(box)
        for ring in holding.rings:
            found += ring.accesses(tensor, box)
        if holding.kept:
            found += self._parts_kept(tensor, box, holding)
        return found

    def _parts_kept(self, tensor: str, box: Box, holding: _Holding) -> Iterator[Access]:
        root, below = self.homes.root_box(tensor, box)
        for core, kept in holding.kept:
            common = overlap(kept, below)
            if elements(common):
                buffer = self.kept(root, core)
                assert buffer is not None
                if tensor != root:
                    pairs = zip(box, below, strict=True)
                    common = shifted(common, [start - moved for (start, _), (moved, _) in pairs])
                yield Access(self.builder.view(buffer, tensor), common)

    def goes_out(self, root: str) -> bool:
        """Whether a tensor has to be outside: a result in it goes there, or it is not kept."""
        return self._who_holds(root).goes_out

    def _who_holds(self, root: str) -> _Holding:
        found = self._holding.get(root)
        if found is None:
            keys = [(root, core) for core in range(self.homes.places.cores)]
            rings = {id(ring): ring for key in keys if (ring := self.rings.get(key)) is not None}
            kept: dict[str, tuple[int, Box]] = {}
            for _, core in keys:
                own = self.layout.kept.get((root, core))
                if own is not None:
                    kept.setdefault(self._space_of_kept(root, core).name, (core, own))
            is_held = rings or kept or root in self.pieces
            goes_out = root in self.homes.leaving or not is_held
            found = _Holding(tuple(rings.values()), tuple(kept.values()), goes_out)
            self._holding[root] = found
        return found

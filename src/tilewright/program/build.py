"""Putting a program together: buffers, views of them, tasks, and who waits for whom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tilewright.errors import InfeasibleError, Problem
from tilewright.network.graph import Network
from tilewright.program.boxes import (
    elements,
    overlap,
    shifted,
    size_bytes,
    whole,
)
from tilewright.program.model import Access, Box, Buffer, Charge, Route, Space, Task, TaskKind, View
from tilewright.program.places import Places, remedy
from tilewright.program.ring_waits import Lap
from tilewright.program.stages import Storage
from tilewright.program.waits import Waits, waits_for
from tilewright.records import quickly_made
from tilewright.units import packed_bytes


@quickly_made
class Copy(NamedTuple):
    """A box that has to get from one buffer to others, all of it to each."""

    source: Access
    targets: tuple[Access, ...]
    kind: TaskKind
    size_bytes: int
    """What is read, once."""
    spaces: tuple[str, ...]
    """Between which it goes, that of the source first."""


@dataclass(frozen=True, slots=True)
class _Moving:
    """What it takes to move so many bytes from one space to others."""

    engine: str
    cycles: int
    setup_cycles: int
    ports: tuple[str, ...]
    charges: tuple[Charge, ...]


@dataclass
class Builder:
    """A program while it grows. Boxes of accesses are in coordinates of their buffer's tensor."""

    network: Network
    places: Places
    storage: Mapping[str, Storage]
    buffers: list[Buffer] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    given: list[int] = field(default_factory=list)
    wide_bits: dict[int, int] = field(default_factory=dict)
    """By buffer the bits of its elements, where these are wider for a while."""
    _alike: dict[object, Buffer] = field(default_factory=dict)
    """Buffers that were made already: the same tiles come again and again."""
    _views: dict[tuple[int, str], int] = field(default_factory=dict)
    _chains: list[int] = field(default_factory=list)
    """Per task the first of the tasks that run one after the other up to it."""
    _waits: Waits = field(init=False)
    _outside: dict[str, int] = field(default_factory=dict)
    _moving: dict[tuple[tuple[str, ...], int], _Moving] = field(default_factory=dict)
    """By spaces, that of the source first, and bytes."""

    def __post_init__(self) -> None:
        self._waits = waits_for(self.network, self.buffers)

    def buffer(self, tensor: str, box: Box, space: Space, *, name: str = "", bits: int = 0) -> int:
        """A new buffer for a box of a tensor; `bits` where its elements are wider for a while."""
        key = (tensor, box, space.name, name, bits)
        made = self._alike.get(key)
        if made is None:
            size = packed_bytes(elements(box), bits or self.network.by_name[tensor].bits)
            made = self._alike[key] = Buffer(
                name=name or tensor, tensor=tensor, box=box, space=space.name, size_bytes=size
            )
        self.buffers.append(made)
        number = len(self.buffers) - 1
        if bits:
            self.wide_bits[number] = bits
        return number

    def lap(self, lap: Lap, tensor: str, box: Box, origin: tuple[int, ...]) -> int:
        """A box of a tensor that lies in a rolling buffer from `origin` on."""
        self.buffers.append(
            Buffer(
                name=tensor,
                tensor=tensor,
                box=box,
                space=self.buffers[lap.ring].space,
                size_bytes=size_bytes(box, self.network.by_name[tensor]),
                view=View(lap.ring, origin),
            )
        )
        number = len(self.buffers) - 1
        self._waits.lap(number, lap.ring, lap.axis, lap.steps, lap.number)
        return number

    def in_place(self, tensor: str, buffer: int) -> int:
        """A buffer for a tensor that takes the place of another one of the same shape."""
        below = self.buffers[buffer]
        root = below.view.buffer if below.view is not None else buffer
        view = View(root, tuple(start for start, _ in self.buffers[root].box))
        self.buffers.append(
            Buffer(
                name=tensor,
                tensor=tensor,
                box=below.box,
                space=below.space,
                size_bytes=below.size_bytes,
                view=view,
            )
        )
        return len(self.buffers) - 1

    def outside(self, root: str, space: Space) -> int:
        """The buffer of a whole tensor outside the scratchpads, made when first asked for."""
        if root not in self._outside:
            tensor = self.network.by_name[root]
            number = self.buffer(root, whole(tensor.shape), space)
            self._outside[root] = number
            if tensor.role in ("input", "constant"):
                self.given.append(number)
        return self._outside[root]

    def view(self, buffer: int, tensor: str) -> int:
        """A buffer as a tensor that lies in the storage of the buffer's own tensor."""
        below = self.buffers[buffer]
        lies = self.storage[tensor]
        if below.tensor == tensor:
            return buffer
        key = (buffer, tensor)
        if key not in self._views:
            made = self.network.by_name[tensor]
            if lies.origin is None:
                box, view = whole(made.shape), View(buffer)
            else:
                back = [-step for step in lies.origin]
                box = overlap(shifted(below.box, back), whole(made.shape))
                first = tuple(
                    start + step for (start, _), step in zip(box, lies.origin, strict=True)
                )
                view = View(buffer, first)
            self.buffers.append(
                Buffer(
                    name=tensor,
                    tensor=tensor,
                    box=box,
                    space=below.space,
                    size_bytes=size_bytes(box, made),
                    view=view,
                )
            )
            self._views[key] = len(self.buffers) - 1
        return self._views[key]

    def add(self, task: Task) -> int:
        """Append a task; it waits for whoever wrote what it reads.

        What it waits for already is the tile before it on its core, if there is one.
        """
        after = self.before(task.reads, task.writes, task.after)
        return self.append(replace(task, after=after), task.after)

    def before(
        self, reads: Sequence[Access], writes: Sequence[Access], known: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """All that the next task waits for: what is known, and whoever wrote what it reads."""
        return self._waits.before(reads, writes, known)

    def append(self, task: Task, previous: tuple[int, ...] = ()) -> int:
        """Append a task that knows what it waits for; `previous` is the tile before on its core."""
        number = len(self.tasks)
        self.tasks.append(task)
        chain = self._chains[previous[0]] if previous else number
        self._chains.append(chain)
        self._waits.note(task.reads, task.writes, chain, number)
        return number

    def copy(self, source: Access, targets: tuple[Access, ...], kind: TaskKind) -> Copy:
        """A copy of a box from one buffer to others, where there is room for just as much."""
        buffers = self.buffers
        below, first = buffers[source.buffer], buffers[targets[0].buffer]
        spaces: tuple[str, ...] = (below.space, first.space)
        if len(targets) > 1:
            spaces = (below.space, *[buffers[target.buffer].space for target in targets])
        size = first.size_bytes
        if first.box != source.box:
            size = size_bytes(source.box, self.network.by_name[below.tensor])
        return Copy(source, targets, kind, size, spaces)

    def transfer(self, copies: Sequence[Copy], *, name: str) -> int:
        """Append a transfer: copies that all go the same way, each to one or several buffers.

        Raises:
            InfeasibleError: nothing moves bytes between their spaces.
        """
        first = copies[0]
        reads: tuple[Access, ...] = (first.source,)
        writes, size = first.targets, first.size_bytes
        if len(copies) > 1:
            reads = tuple([copy.source for copy in copies for _ in copy.targets])
            writes = tuple([target for copy in copies for target in copy.targets])
            size = sum([copy.size_bytes for copy in copies])
        moving = self._moving.get((first.spaces, size))
        if moving is None:
            moving = self._moving[first.spaces, size] = self._moved(first, size)
        return self.append(
            Task(
                name=name,
                kind=first.kind,
                engine=moving.engine,
                cycles=moving.cycles,
                reads=reads,
                writes=writes,
                after=self.before(reads, writes),
                setup_cycles=moving.setup_cycles,
                ports=moving.ports,
                charges=moving.charges,
            )
        )

    def _moved(self, copy: Copy, size: int) -> _Moving:
        """What it takes to move so many bytes the way that a copy goes."""
        source = self.buffers[copy.source.buffer]
        routes = [self._route(source, self.buffers[t.buffer]) for t in copy.targets]
        memory = self.places.memory_of
        charges = [Charge(memory[source.space], size, 0, size * routes[0].read_pj_per_byte)]
        charges += [Charge(memory[r.target], 0, size, size * r.write_pj_per_byte) for r in routes]
        return _Moving(
            engine=routes[0].engine,
            cycles=max(route.cycles(size) for route in routes),
            setup_cycles=routes[0].setup_cycles,
            ports=tuple(dict.fromkeys(port for route in routes for port in route.ports)),
            charges=tuple(charges),
        )

    def _route(self, source: Buffer, target: Buffer) -> Route:
        found = self.places.routes.get((source.space, target.space))
        if found is None:
            message = f"nothing moves {source.tensor!r} from {source.space} to {target.space}"
            hint = remedy(self.places, source.space, target.space)
            raise InfeasibleError(Problem(message=message, hint=hint))
        return found

"""Timetables made by hand, for tests of what reads them."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import permutations
from math import prod

from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import Network
from tilewright.network.moves import concat, reshape
from tilewright.network.nests import elementwise
from tilewright.program.model import (
    Access,
    Box,
    Buffer,
    Charge,
    Engine,
    Program,
    Route,
    Slot,
    Space,
    Task,
    TaskKind,
    Timetable,
    View,
)

DRAM = Space(name="dram", memory="dram", kind="external", size_bytes=1024)
CMX = Space(
    name="cmx[0]",
    memory="cmx",
    kind="scratchpad",
    size_bytes=96,
    alignment_bytes=8,
    core=0,
    reserved=((88, 96),),
)
ENGINES = (
    Engine(name="core[0]"),
    Engine(name="core[0].vector"),
    Engine(name="dma", count=2),
    Engine(name="port"),
)


@dataclass
class Draft:
    """A timetable while it grows; elements take one byte unless said otherwise."""

    spaces: tuple[Space, ...] = (DRAM, CMX)
    engines: tuple[Engine, ...] = ENGINES
    buffers: list[Buffer] = field(default_factory=list)
    addresses: list[int] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    given: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)

    def buffer(self, name: str, box: Box, address: int, view: View | None = None) -> int:
        """`name` is `tensor@space`."""
        tensor, _, space = name.partition("@")
        size = prod(max(0, end - begin) for begin, end in box)
        self.buffers.append(
            Buffer(name=name, tensor=tensor, box=box, space=space, size_bytes=size, view=view)
        )
        self.addresses.append(address)
        return len(self.buffers) - 1

    def task(
        self,
        name: str,
        at: tuple[str, int, int],
        reads: tuple[Access, ...],
        writes: tuple[Access, ...],
        *,
        kind: TaskKind = "compute",
        tile: tuple[tuple[str, int, int], ...] = (),
    ) -> int:
        """`at`: the engine, with `/instance` if not the first, the start and the cycles.

        The op is the part of a compute task's name before any `[` or `#`; a transfer sets up for
        two cycles and then holds the port, and what computes outside the chip holds it, too.
        """
        engine, _, instance = at[0].partition("/")
        is_copy = kind != "compute"
        outside = [space.name for space in self.spaces if space.kind == "external"]
        touched = [a.buffer for a in (*reads, *writes) if a.buffer < len(self.buffers)]
        is_outside = any(self.buffers[buffer].space in outside for buffer in touched)
        self.tasks.append(
            Task(
                name=name,
                kind=kind,
                engine=engine,
                cycles=at[2],
                reads=reads,
                writes=writes,
                op="" if is_copy else name.partition("[")[0].partition("#")[0],
                tile=tile,
                setup_cycles=2 if is_copy else 0,
                ports=("port",) if is_copy or is_outside else (),
            )
        )
        start, end = at[1], at[1] + at[2]
        self.slots.append(Slot(start_cycle=start, end_cycle=end, instance=int(instance or 0)))
        return len(self.tasks) - 1

    def timetable(self) -> Timetable:
        """What was drafted so far; a way leads from every space to every other one."""
        return Timetable(
            program=Program(
                name="draft",
                spaces=self.spaces,
                engines=self.engines,
                routes=tuple(_route(*ends) for ends in permutations(self.spaces, 2)),
                buffers=tuple(self.buffers),
                tasks=tuple(map(self._charged, self.tasks)),
                given=tuple(self.given),
                results=tuple(self.results),
            ),
            slots=tuple(self.slots),
            addresses=tuple(self.addresses),
        )

    def _charged(self, task: Task) -> Task:
        """A task with charges for what it reads and writes, which takes no energy.

        What a transfer brings to several places it reads once.
        """
        reads = task.reads if task.kind == "compute" else tuple(dict.fromkeys(task.reads))
        charges = [
            *(Charge(*self._moved(access), 0, 0.0) for access in reads),
            *(Charge(memory, 0, size, 0.0) for memory, size in map(self._moved, task.writes)),
        ]
        return replace(task, charges=tuple(charges))

    def _moved(self, access: Access) -> tuple[str, int]:
        """A memory, and the bytes of an access there; nothing if there is no such buffer."""
        memory = {space.name: space.memory for space in self.spaces}
        if access.buffer >= len(self.buffers):
            return "", 0
        buffer = self.buffers[access.buffer]
        size, whole = (prod(max(0, b - a) for a, b in box) for box in (access.box, buffer.box))
        return memory.get(buffer.space, ""), size * max(1, buffer.size_bytes // max(1, whole))


def _route(source: Space, target: Space) -> Route:
    """Two cycles to set up, and then 32 bytes in three cycles."""
    return Route(
        source=source.name,
        target=target.name,
        engine="dma",
        setup_cycles=2,
        bytes_per_cycle=Fraction(32, 3),
        ports=("port",),
    )


def rows(begin: int, end: int) -> Box:
    """Rows of a matrix with four columns."""
    return ((begin, end), (0, 4))


def views_network() -> Network:
    """e = exp(reshape(concat(relu(x) + w, -x))), everything of one byte."""
    builder = NetworkBuilder("views")
    builder.tensor("x", (4, 4), bits=8, role="input")
    builder.tensor("w", (4, 4), bits=8, role="constant")
    builder.op("relu", "relu", elementwise((4, 4)), ["x"], {"a": (8, "")})
    builder.op("add", "add", elementwise((4, 4), (4, 4)), ["a", "w"], {"b": (8, "")})
    builder.op("neg", "neg", elementwise((4, 4)), ["x"], {"d": (8, "")})
    builder.op("concat", "concat", concat([(4, 4), (4, 4)], 0), ["b", "d"], {"c": (8, "")})
    builder.op("reshape", "reshape", reshape((8, 4), (32,)), ["c"], {"r": (8, "")})
    builder.op("exp", "exp", elementwise((32,)), ["r"], {"e": (8, "")})
    return builder.finish(["e"])


def views_draft() -> Draft:
    """A correct plan of that network: in place, in parts, under another shape, addresses reused.

    ========  =====  =======================================
    buffer    bytes  holds
    ========  =====  =======================================
    x         0-16   its copy, until relu and neg have read it
    w         16-32  its copy, until add has read it
    e         0-32   the result, once both are gone
    c         32-64  a, and then b in its place; behind it d
    ========  =====  =======================================
    """
    draft = Draft()
    x, w = draft.buffer("x@dram", rows(0, 4), 0), draft.buffer("w@dram", rows(0, 4), 16)
    e = draft.buffer("e@dram", ((0, 32),), 32)
    near_x = draft.buffer("x@cmx[0]", rows(0, 4), 0)
    near_w = draft.buffer("w@cmx[0]", rows(0, 4), 16)
    c = draft.buffer("c@cmx[0]", rows(0, 8), 32)
    a = draft.buffer("a@cmx[0]", rows(0, 4), 32, View(c, (0, 0)))
    b = draft.buffer("b@cmx[0]", rows(0, 4), 32, View(c, (0, 0)))
    d = draft.buffer("d@cmx[0]", rows(0, 4), 48, View(c, (4, 0)))
    r = draft.buffer("r@cmx[0]", ((0, 32),), 32, View(c))
    near_e = draft.buffer("e@cmx[0]", ((0, 32),), 0)
    draft.given += [x, w]
    draft.results.append(e)

    def copy(name: str, source: int, target: int, at: tuple[str, int, int], kind: TaskKind) -> None:
        box = draft.buffers[source].box
        draft.task(name, at, (Access(source, box),), (Access(target, box),), kind=kind)

    copy("load x", x, near_x, ("dma", 0, 6), "load")
    copy("load w", w, near_w, ("dma/1", 4, 6), "load")
    for number, start in enumerate((6, 9)):
        box = rows(2 * number, 2 * number + 2)
        reads, writes = (Access(near_x, box),), (Access(a, box),)
        draft.task(f"relu[{number}]", ("core[0]", start, 3), reads, writes, tile=_tile(box))
    whole = rows(0, 4)
    reads, writes = (Access(near_x, whole),), (Access(d, whole),)
    draft.task("neg[0]", ("core[0].vector", 6, 4), reads, writes, tile=_tile(whole))
    for number, start in enumerate((12, 15)):
        box = rows(2 * number, 2 * number + 2)
        both = (Access(a, box), Access(near_w, box))
        writes = (Access(b, box),)
        draft.task(f"add[{number}]", ("core[0]", start, 3), both, writes, tile=_tile(box))
    flat = ((0, 32),)
    draft.task("exp[0]", ("core[0]", 18, 8), (Access(r, flat),), (Access(near_e, flat),))
    copy("store e", near_e, e, ("dma", 26, 8), "store")
    return draft


def _tile(box: Box) -> tuple[tuple[str, int, int], ...]:
    return tuple((dim, *ends) for dim, ends in zip(("D", "K"), box, strict=True))

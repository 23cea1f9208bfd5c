"""Random programs with everything a program may have, dependencies found cell by cell."""

import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from tests.schedule_emulator import cells

from tilewright.program.model import (
    Access,
    Box,
    Buffer,
    Engine,
    Program,
    Route,
    Space,
    Task,
    TaskKind,
    View,
)


class RichBuilder:
    """Appends random layers; `after` is whatever the cells say: who wrote, who still reads."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.pads = ["pad[0]", "pad[1]"][: self.rng.choice([1, 2, 2])]
        self.buffers: list[Buffer] = []
        self.tasks: list[Task] = []
        self.given: list[int] = []
        self.results: list[int] = []
        self.writer: dict[tuple[int, int], int] = {}
        self.readers: dict[tuple[int, int], list[int]] = {}
        self.ports = ("port",) if self.rng.random() < 0.5 else ()
        self.setup = self.rng.choice([0, 1, 3])
        self.bandwidth = Fraction(self.rng.choice([1, 2, 3]), self.rng.choice([1, 2]))

    def buffer(self, tensor: str, box: Box, space: str, view: View | None = None) -> int:
        size = 1
        for low, high in box:
            size *= high - low
        name = f"{tensor}@{space}:{len(self.buffers)}"
        self.buffers.append(
            Buffer(name=name, tensor=tensor, box=box, space=space, size_bytes=size, view=view)
        )
        return len(self.buffers) - 1

    def whole(self, buffer: int) -> Access:
        return Access(buffer, self.buffers[buffer].box)

    def program(self) -> Program:
        spaces = [
            Space(
                name=name,
                memory="pad",
                kind="scratchpad",
                size_bytes=1 << 20,
                alignment_bytes=self.rng.choice([1, 4]),
                core=number,
                reserved=((8, 11),) if self.rng.random() < 0.3 else (),
            )
            for number, name in enumerate(self.pads)
        ]
        spaces.append(Space(name="dram", memory="dram", kind="external", size_bytes=1 << 30))
        spaces.append(
            Space(name="sensor", memory="sensor", kind="source", size_bytes=0, rereadable=False)
        )
        spaces.append(Space(name="sink", memory="sink", kind="sink", size_bytes=0))
        routes = [
            Route(
                source=source,
                target=target,
                engine="dma",
                setup_cycles=self.setup,
                bytes_per_cycle=self.bandwidth,
                ports=self.ports,
            )
            for pad in self.pads
            for source, target in (("dram", pad), (pad, "dram"))
        ]
        engines = [Engine(name="dma", count=2), Engine(name="port", count=1)]
        engines += [Engine(name=f"core[{number}]") for number in range(len(self.pads))]
        engines += [
            Engine(name=f"core[{number}].vector", count=2) for number in range(len(self.pads))
        ]
        return Program(
            name="rich",
            spaces=tuple(spaces),
            engines=tuple(engines),
            routes=tuple(routes),
            buffers=tuple(self.buffers),
            tasks=tuple(self.tasks),
            given=tuple(self.given),
            results=tuple(self.results),
        )

    def add(self, kind: TaskKind, engine: str, reads: list[Access], writes: list[Access]) -> int:
        number = len(self.tasks)
        draft = Program(
            name="",
            spaces=(),
            engines=(),
            routes=(),
            buffers=tuple(self.buffers),
            tasks=(),
        )

        def touched(access: Access) -> list[tuple[int, int]]:
            root = draft.root(access.buffer)
            return [(root, cell) for _, cell in cells(draft, access, 0)]

        after: set[int] = set()
        for access in reads:
            for cell in touched(access):
                if cell in self.writer:
                    after.add(self.writer[cell])
                self.readers.setdefault(cell, []).append(number)
        for access in writes:
            for cell in touched(access):
                if cell in self.writer:
                    after.add(self.writer[cell])
                after.update(self.readers.pop(cell, ()))
                self.writer[cell] = number
        after.discard(number)
        size = sum(self.volume(access.box) for access in (reads if kind != "compute" else writes))
        cycles = self.setup - int(-size // self.bandwidth)
        if kind == "compute":
            cycles = self.rng.randint(1, 9)
        self.tasks.append(
            Task(
                name=f"t{number}",
                kind=kind,
                engine=engine,
                cycles=cycles,
                reads=tuple(reads),
                writes=tuple(writes),
                after=tuple(sorted(after)),
                setup_cycles=0 if kind == "compute" else self.setup,
                ports=() if kind == "compute" else self.ports,
            )
        )
        return number

    @staticmethod
    def volume(box: Box) -> int:
        size = 1
        for low, high in box:
            size *= high - low
        return size

    # Layers

    def load(self, tensor: str, box: Box, pad: str, source: str = "dram") -> int:
        outside = self.buffer(tensor, box, source)
        self.given.append(outside)
        inside = self.buffer(tensor, box, pad)
        rows = box[0][1] - box[0][0]
        if rows > 1 and self.rng.random() < 0.3:
            for part in ((0, 1), (1, rows)):
                piece = (part, *box[1:])
                self.add("load", "dma", [Access(outside, piece)], [Access(inside, piece)])
        else:
            self.add("load", "dma", [self.whole(outside)], [self.whole(inside)])
        return inside

    def multicast(self, tensor: str, box: Box) -> list[int]:
        outside = self.buffer(tensor, box, "dram")
        self.given.append(outside)
        inside = [self.buffer(tensor, box, pad) for pad in self.pads]
        self.add("load", "dma", [self.whole(outside)], [self.whole(b) for b in inside])
        return inside

    def engine(self, pad: str) -> str:
        return f"core[{self.pads.index(pad)}]" + self.rng.choice(["", "", ".vector"])

    def compute(self, tensor: str, inputs: list[int], pad: str) -> int:
        """A result in up to three row tiles, each from all inputs."""
        rows, columns = self.rng.randint(1, 4), self.rng.randint(1, 4)
        result = self.buffer(tensor, ((0, rows), (0, columns)), pad)
        cut = sorted({0, rows, *(self.rng.randrange(rows) for _ in range(2))})
        for low, high in pairwise(cut):
            box = ((low, high), (0, columns))
            reads = [self.whole(b) for b in inputs]
            self.add("compute", self.engine(pad), reads, [Access(result, box)])
        return result

    def in_place(self, tensor: str, target: int, pad: str) -> int:
        """Overwrites a buffer row by row under another tensor's name."""
        root = self.buffers[target]
        if root.view is not None:
            return target
        origin = tuple(low for low, _ in root.box)
        view = self.buffer(tensor, root.box, pad, View(target, origin))
        for row in range(*root.box[0]):
            box = ((row, row + 1), *root.box[1:])
            self.add("compute", self.engine(pad), [Access(target, box)], [Access(view, box)])
        return view

    def concat(self, tensor: str, inputs: list[int], pad: str) -> int:
        """Two parts computed into views of one root."""
        rows, columns = 4, self.rng.randint(1, 3)
        root = self.buffer(tensor, ((0, rows), (0, columns)), pad)
        cut = self.rng.randint(1, 3)
        for part, (low, high) in enumerate(((0, cut), (cut, rows))):
            box = ((0, high - low), (0, columns))
            view = self.buffer(f"{tensor}.{part}", box, pad, View(root, (low, 0)))
            reads = [self.whole(b) for b in inputs]
            self.add("compute", self.engine(pad), reads, [self.whole(view)])
        return root

    def reshaped(self, tensor: str, target: int, pad: str) -> int:
        root = self.buffers[target]
        if root.view is not None:
            return target
        return self.buffer(tensor, ((0, root.size_bytes),), pad, View(target))

    def through_dram(self, target: int, pad: str) -> int:
        source = self.buffers[target]
        outside = self.buffer(source.tensor, source.box, "dram")
        inside = self.buffer(source.tensor, source.box, pad)
        self.add("store", "dma", [self.whole(target)], [self.whole(outside)])
        self.add("load", "dma", [self.whole(outside)], [self.whole(inside)])
        return inside

    def moved(self, target: int, pad: str) -> int:
        source = self.buffers[target]
        inside = self.buffer(source.tensor, source.box, pad)
        self.add("move", "dma", [self.whole(target)], [self.whole(inside)])
        return inside


def rich_program(seed: int, layers: int = 8, views: bool = True) -> Program:
    """A random program whose scratchpads are just large enough for its largest task."""
    builder = RichBuilder(seed)
    rng = builder.rng
    here: dict[str, list[int]] = {pad: [] for pad in builder.pads}
    shared = builder.multicast("shared", ((0, 2), (0, 3)))
    for pad, buffer in zip(builder.pads, shared, strict=True):
        here[pad].append(buffer)
        here[pad].append(builder.load(f"in{pad}", ((0, 2), (0, 2)), pad, "sensor"))
    for layer in range(layers):
        _add_layer(builder, here, layer, views)
    for pad in builder.pads:
        last = builder.whole(here[pad][-1])
        sink = builder.buffer(
            builder.buffers[last.buffer].tensor, last.box, rng.choice(["dram", "sink"])
        )
        builder.add("store", "dma", [last], [builder.whole(sink)])
        builder.results.append(sink)
        if rng.random() < 0.3 and builder.buffers[here[pad][-1]].view is None:
            builder.results.append(here[pad][-1])
    return _tight(builder.program(), rng)


def _add_layer(builder: RichBuilder, here: dict[str, list[int]], layer: int, views: bool) -> None:
    rng = builder.rng
    pad = rng.choice(builder.pads)
    inputs = rng.sample(here[pad], min(len(here[pad]), rng.randint(1, 2)))
    name = f"x{layer}"
    kinds = ["weighted", "weighted", "weighted", "plain", "through_dram"]
    kinds += ["moved"] if len(builder.pads) > 1 else []
    kinds += ["in_place", "concat", "reshaped"] if views else []
    match rng.choice(kinds):
        case "weighted":
            box = ((0, rng.randint(1, 3)), (0, rng.randint(1, 4)))
            weights = builder.load(f"w{layer}", box, pad)
            made = builder.compute(name, [*inputs, weights], pad)
        case "through_dram":
            made = builder.through_dram(inputs[0], pad)
        case "moved":
            pad = next(other for other in builder.pads if other != pad)
            made = builder.moved(inputs[0], pad)
        case "in_place":
            made = builder.in_place(name, inputs[0], pad)
            here[pad] = [b for b in here[pad] if b != inputs[0]]
        case "concat":
            made = builder.concat(name, inputs, pad)
        case "reshaped":
            made = builder.compute(name, [builder.reshaped(f"r{layer}", inputs[0], pad)], pad)
        case _:
            made = builder.compute(name, inputs, pad)
    here[pad].append(made)


def _tight(program: Program, rng: random.Random) -> Program:
    """Scratchpads of the least size at which every task's operands fit, or a little more."""
    spaces = []
    for space in program.spaces:
        if space.kind == "scratchpad":
            groups = [
                {program.root(a.buffer) for a in (*task.reads, *task.writes)}
                for task in program.tasks
            ]
            groups.append({program.root(b) for b in program.results})
            most = 0
            for group in groups:
                sizes = [
                    -(-program.buffers[b].size_bytes // space.alignment_bytes)
                    * space.alignment_bytes
                    for b in group
                    if program.buffers[b].space == space.name
                ]
                most = max(most, sum(sizes))
            # A reserved range may cut the memory in two, and both ends lose something to that.
            extra = 40 if space.reserved else 0
            size = most + extra + rng.choice([0, 0, 2, 5, 12, 30])
            space = replace(space, size_bytes=size)
        spaces.append(space)
    return replace(program, spaces=tuple(spaces))

"""Programs for tests of the scheduler: a short notation, and random small ones."""

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tilewright.program.model import (
    Access,
    Buffer,
    Engine,
    Program,
    Route,
    Space,
    Task,
    TaskKind,
)


class Builder:
    """A program on one or more scratchpads with one external memory, written task by task."""

    def __init__(
        self,
        capacity_bytes: int | Mapping[str, int],
        engines: Mapping[str, int],
        *,
        alignment_bytes: int = 1,
        reserved: Sequence[tuple[int, int]] = (),
        bytes_per_cycle: Fraction = Fraction(1),
        spill: bool = True,
    ) -> None:
        sizes = {"cmx": capacity_bytes} if isinstance(capacity_bytes, int) else capacity_bytes
        self.spaces = [
            Space(
                name=name,
                memory=name,
                kind="scratchpad",
                size_bytes=size,
                alignment_bytes=alignment_bytes,
                reserved=tuple(reserved),
            )
            for name, size in sizes.items()
        ]
        self.spaces.append(Space(name="dram", memory="dram", kind="external", size_bytes=1 << 32))
        self.engines = [Engine(name=name, count=count) for name, count in engines.items()]
        self.routes = [
            Route(
                source=source,
                target=target,
                engine="dma",
                setup_cycles=0,
                bytes_per_cycle=bytes_per_cycle,
            )
            for name in sizes
            for source, target in (("dram", name), (name, "dram"))
            if spill or source == "dram"
        ]
        self.buffers: list[Buffer] = []
        self.tasks: list[Task] = []
        self.given: list[int] = []
        self.results: list[int] = []
        self.writers: dict[int, list[int]] = {}

    def buffer(self, name: str, size_bytes: int, space: str = "cmx") -> int:
        self.buffers.append(
            Buffer(
                name=name,
                tensor=name.split("@")[0],
                box=((0, size_bytes),),
                space=space,
                size_bytes=size_bytes,
            )
        )
        return len(self.buffers) - 1

    def whole(self, buffer: int) -> Access:
        return Access(buffer, self.buffers[buffer].box)

    def task(
        self,
        name: str,
        engine: str,
        cycles: int,
        reads: Sequence[int] = (),
        writes: Sequence[int] = (),
        after: Sequence[int] = (),
    ) -> int:
        """A task on whole buffers; it waits for the writers of what it reads."""
        kind: TaskKind = "compute"
        if any(self.buffers[buffer].space == "dram" for buffer in reads):
            kind = "load"
        elif any(self.buffers[buffer].space == "dram" for buffer in writes):
            kind = "store"
        before = [writer for buffer in reads for writer in self.writers.get(buffer, ())]
        self.tasks.append(
            Task(
                name=name,
                kind=kind,
                engine=engine,
                cycles=cycles,
                reads=tuple(self.whole(buffer) for buffer in reads),
                writes=tuple(self.whole(buffer) for buffer in writes),
                after=tuple(sorted({*before, *after})),
            )
        )
        number = len(self.tasks) - 1
        for buffer in writes:
            self.writers.setdefault(buffer, []).append(number)
        return number

    def load(self, target: int, cycles: int | None = None, name: str = "") -> int:
        inside = self.buffers[target]
        outside = self.buffer(f"{inside.name}@dram", inside.size_bytes, "dram")
        self.given.append(outside)
        length = self._cycles("dram", inside.space, inside.size_bytes, cycles)
        return self.task(name or f"load {inside.name}", "dma", length, [outside], [target])

    def store(self, source: int, cycles: int | None = None, name: str = "") -> int:
        inside = self.buffers[source]
        outside = self.buffer(f"{inside.name}@dram", inside.size_bytes, "dram")
        self.results.append(outside)
        length = self._cycles("dram", inside.space, inside.size_bytes, cycles)
        return self.task(name or f"store {inside.name}", "dma", length, [source], [outside])

    def _cycles(self, source: str, target: str, size_bytes: int, cycles: int | None) -> int:
        if cycles is not None:
            return cycles
        routes = {(route.source, route.target): route for route in self.routes}
        return routes[source, target].cycles(size_bytes)

    def program(self, name: str = "test") -> Program:
        return Program(
            name=name,
            spaces=tuple(self.spaces),
            engines=tuple(self.engines),
            routes=tuple(self.routes),
            buffers=tuple(self.buffers),
            tasks=tuple(self.tasks),
            given=tuple(self.given),
            results=tuple(self.results),
        )


def random_program(seed: int, max_tasks: int = 8, spill: bool = True) -> Program:
    """A few compute tasks on one to three engines, with loads and stores, and little room."""
    rng = random.Random(seed)
    engines = {"dma": rng.choice([1, 1, 2])}
    engines |= {f"core{number}": 1 for number in range(rng.choice([1, 2, 2, 3]))}
    builder = Builder(1, engines, bytes_per_cycle=Fraction(rng.choice([1, 2])), spill=spill)
    ready: list[int] = []
    used: set[int] = set()
    while len(builder.tasks) < max_tasks - 2:
        operands = [b for b in ready if rng.random() < 0.4][-2:]
        while len(operands) < 2 and (not operands or rng.random() < 0.6):
            operands.append(builder.buffer(f"w{len(builder.buffers)}", rng.randint(1, 6)))
            builder.load(operands[-1])
            ready.append(operands[-1])
        result = builder.buffer(f"x{len(builder.buffers)}", rng.randint(1, 6))
        core = f"core{rng.randrange(len(engines) - 1)}"
        builder.task(f"op{len(builder.tasks)}", core, rng.randint(1, 8), operands, [result])
        used.update(operands)
        ready.append(result)
    for buffer in [b for b in ready if b not in used][: max_tasks - len(builder.tasks)]:
        builder.store(buffer)
    sizes = [buffer.size_bytes for buffer in builder.buffers]
    widest = max(
        sum(
            sizes[a.buffer]
            for a in (*t.reads, *t.writes)
            if builder.buffers[a.buffer].space == "cmx"
        )
        for t in builder.tasks
    )
    capacity = widest + rng.choice([0, 0, 1, 2, 4, 8])
    builder.spaces[0] = Space(name="cmx", memory="cmx", kind="scratchpad", size_bytes=capacity)
    return builder.program(f"random {seed}")

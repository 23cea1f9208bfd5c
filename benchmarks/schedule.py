"""How the scheduler grows with the size of a program, and how close it comes to its bounds.

    python benchmarks/schedule.py [--tasks N ...] [--capacity-kib N ...] [--all-rules]

One line per program: a chain of layers with shortcuts, weights of all sizes, and now and then a
stored result. Each is scheduled in a process of its own, so that its memory can be told. Every
program is simulated twice, as large ones are; with `--all-rules` small ones try all rules.
"""

import argparse
import random
import resource
import subprocess
import sys
import time
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
from tilewright.schedule.bounds import bounds
from tilewright.schedule.options import ScheduleOptions
from tilewright.schedule.schedule import schedule

TASKS = (1_000, 10_000, 100_000)
CAPACITIES_KIB = (256, 512)
BYTES_PER_CYCLE = Fraction(32)


class Layers:
    """A program written layer by layer."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.buffers: list[Buffer] = []
        self.tasks: list[Task] = []
        self.given: list[int] = []
        self.results: list[int] = []
        self.writer: dict[int, int] = {}

    def buffer(self, name: str, size_bytes: int, space: str) -> int:
        box = ((0, size_bytes),)
        self.buffers.append(
            Buffer(name=name, tensor=name, box=box, space=space, size_bytes=size_bytes)
        )
        return len(self.buffers) - 1

    def task(
        self, kind: TaskKind, engine: str, cycles: int, reads: list[int], writes: list[int]
    ) -> None:
        name = f"{kind} {self.buffers[(writes or reads)[0]].name}"
        self.tasks.append(
            Task(
                name=name,
                kind=kind,
                engine=engine,
                cycles=cycles,
                reads=tuple(Access(b, self.buffers[b].box) for b in reads),
                writes=tuple(Access(b, self.buffers[b].box) for b in writes),
                after=tuple(sorted({self.writer[b] for b in reads if b in self.writer})),
            )
        )
        for buffer in writes:
            self.writer[buffer] = len(self.tasks) - 1

    def load(self, name: str, size_bytes: int) -> int:
        outside = self.buffer(name, size_bytes, "dram")
        inside = self.buffer(name, size_bytes, "cmx")
        self.given.append(outside)
        cycles = -int(-size_bytes // BYTES_PER_CYCLE)
        self.task("load", "dma", cycles, [outside], [inside])
        return inside

    def store(self, buffer: int) -> None:
        inside = self.buffers[buffer]
        outside = self.buffer(inside.name, inside.size_bytes, "dram")
        self.results.append(outside)
        cycles = -int(-inside.size_bytes // BYTES_PER_CYCLE)
        self.task("store", "dma", cycles, [buffer], [outside])


def layered_program(tasks: int, capacity_bytes: int, seed: int = 0) -> Program:
    """About so many tasks; a layer reads the last result, weights, and every fourth a shortcut."""
    layers = Layers(seed)
    last = shortcut = layers.load("input", 20_000)
    number = 0
    while len(layers.tasks) < tasks:
        weights = layers.load(f"w{number}", layers.random.randint(1_000, 60_000))
        result = layers.buffer(f"x{number}", layers.random.randint(1_000, 40_000), "cmx")
        reads = [last, weights, shortcut] if number % 4 == 3 else [last, weights]
        layers.task("compute", "core", layers.random.randint(200, 3_000), reads, [result])
        if number % 4 == 3:
            shortcut = result
        if number % 10 == 9:
            layers.store(result)
        last = result
        number += 1
    return Program(
        name="layers",
        spaces=(
            Space(
                name="cmx",
                memory="cmx",
                kind="scratchpad",
                size_bytes=capacity_bytes,
                alignment_bytes=64,
            ),
            Space(name="dram", memory="dram", kind="external", size_bytes=1 << 40),
        ),
        engines=(Engine(name="dma", count=2), Engine(name="core")),
        routes=tuple(
            Route(
                source=source,
                target=target,
                engine="dma",
                setup_cycles=0,
                bytes_per_cycle=BYTES_PER_CYCLE,
            )
            for source, target in (("dram", "cmx"), ("cmx", "dram"))
        ),
        buffers=tuple(layers.buffers),
        tasks=tuple(layers.tasks),
        given=tuple(layers.given),
        results=tuple(layers.results),
    )


def measure(tasks: int, capacity_kib: int, all_rules: bool) -> None:
    """Schedule one program and print a line of figures."""
    program = layered_program(tasks, capacity_kib * 1024)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    options = ScheduleOptions() if all_rules else ScheduleOptions(portfolio_tasks=0)
    timetable = schedule(program, options)
    seconds = time.process_time() - begin
    used_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    found = bounds(program)
    added = len(timetable.program.tasks) - len(program.tasks)
    print(
        f"{len(program.tasks):>8,} tasks  {capacity_kib:>5} KiB  {seconds:>7.2f} s CPU  "
        f"{seconds / len(program.tasks) * 1e6:>4.0f} us/task  {used_kib / 1024:>5.0f} MiB  "
        f"{used_kib / len(program.tasks):.1f} KiB/task  {added:>6,} transfers added  "
        f"{timetable.cycles / found.cycles:.4f} x bound  "
        f"{timetable.cycles / found.order_cycles:.4f} x bound of the order"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, nargs="+", default=TASKS)
    parser.add_argument("--capacity-kib", type=int, nargs="+", default=CAPACITIES_KIB)
    parser.add_argument("--all-rules", action="store_true")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for capacity_kib in options.capacity_kib:
        for tasks in options.tasks:
            if options.here:
                measure(tasks, capacity_kib, options.all_rules)
                continue
            command = [sys.executable, __file__, "--here"]
            command += ["--tasks", str(tasks), "--capacity-kib", str(capacity_kib)]
            command += ["--all-rules"] if options.all_rules else []
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()

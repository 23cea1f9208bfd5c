"""The shortest possible run of a small program, by trying every order of starts.

If a schedule exists, then so does one that is no longer and in which each task, taken by its
start, starts as soon as it can but not before the one taken before it. So it is enough to try which
task starts next, including saving a buffer (a store), fetching it again (a load), and dropping
buffers whose data exists elsewhere at the moment at which something else needs the room.

Memory is counted in bytes, without addresses: the answer is a lower bound of what is possible with
addresses, and exact where no fragmentation gets in the way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from tilewright.program.model import Program


@dataclass(frozen=True)
class Moment:
    """All that matters for what can still happen, at the time of the latest start."""

    now: int
    waiting: frozenset[int]
    ends: tuple[tuple[int, int], ...]
    """Running jobs as (end, job); jobs beyond the program's tasks save or fetch a buffer."""
    resident: frozenset[int]
    filling: frozenset[int]
    """Resident buffers whose data is not there yet."""
    saved: frozenset[int]
    """Buffers whose data exists outside."""
    written: frozenset[int]
    """Buffers that have been filled at some time, and so need fetching once they are gone."""


class Optimum:
    """Depth-first search with bounds; `best` is the end of the best run found."""

    def __init__(
        self, program: Program, below: int, may_save: bool, keep_order: bool = False
    ) -> None:
        self.program = program
        self.keep_order = keep_order
        self.best = below
        self.may_save = may_save
        self.n = len(program.tasks)
        inside = [program.space[b.space].kind == "scratchpad" for b in program.buffers]
        self.buffers = [number for number, is_inside in enumerate(inside) if is_inside]
        self.size = {b: program.buffers[b].size_bytes for b in self.buffers}
        self.capacity = sum(s.size_bytes for s in program.spaces if s.kind == "scratchpad")
        self.reads = [[a.buffer for a in t.reads if inside[a.buffer]] for t in program.tasks]
        self.writes = [[a.buffer for a in t.writes if inside[a.buffer]] for t in program.tasks]
        self.loaded = {
            b
            for t, w in zip(program.tasks, self.writes, strict=True)
            if t.kind == "load"
            for b in w
        }
        self.count = {engine.name: engine.count for engine in program.engines}
        self.tail = [0] * self.n
        for number in reversed(range(self.n)):
            behind = [self.tail[k] for k in range(self.n) if number in program.tasks[k].after]
            self.tail[number] = program.tasks[number].cycles + max(behind, default=0)
        self.seen: dict[tuple[object, ...], int] = {}

    def run(self) -> int:
        none: frozenset[int] = frozenset()
        self.visit(Moment(0, frozenset(range(self.n)), (), none, none, none, none))
        return self.best

    # Jobs: a task; n + 2b saves buffer b; n + 2b + 1 fetches it.

    def cycles(self, job: int) -> int:
        if job < self.n:
            return self.program.tasks[job].cycles
        buffer, fetching = divmod(job - self.n, 2)
        space = self.program.buffers[buffer].space
        if fetching and buffer in self.loaded:
            task = next(t for t in self.program.tasks if t.writes and t.writes[0].buffer == buffer)
            return task.cycles
        route = self.program.route[("dram", space) if fetching else (space, "dram")]
        return route.cycles(self.size[buffer])

    def engine(self, job: int) -> str:
        return self.program.tasks[job].engine if job < self.n else "dma"

    def uses(self, job: int) -> tuple[list[int], list[int]]:
        if job < self.n:
            return self.reads[job], self.writes[job]
        buffer, fetching = divmod(job - self.n, 2)
        return ([], [buffer]) if fetching else ([buffer], [])

    def jobs(self, moment: Moment) -> Iterator[int]:
        """What could start next, memory left aside."""
        started_ends = {job for _, job in moment.ends}
        for job in sorted(moment.waiting):
            task = self.program.tasks[job]
            if any(before in moment.waiting for before in task.after):
                continue
            if not (self.keep_order and task.kind == "compute" and self.is_overtaken(moment, job)):
                yield job
        needed = {b for job in moment.waiting for b in self.reads[job]}
        for buffer in self.buffers:
            save, fetch = self.n + 2 * buffer, self.n + 2 * buffer + 1
            if save in started_ends or fetch in started_ends or buffer not in needed:
                continue
            if buffer in moment.resident:
                if self.may_save and buffer not in moment.saved:
                    yield save
            elif buffer in moment.saved and buffer in moment.written:
                yield fetch

    def is_overtaken(self, moment: Moment, job: int) -> bool:
        engine = self.program.tasks[job].engine
        return any(
            other < job and self.program.tasks[other].engine == engine for other in moment.waiting
        )

    def visit(self, moment: Moment) -> None:
        if not moment.waiting:
            self.best = min(self.best, max((end for end, _ in moment.ends), default=moment.now))
            return
        if self.bound(moment) >= self.best:
            return
        key = (
            moment.waiting,
            tuple((max(0, end - moment.now), job) for end, job in moment.ends if end > moment.now),
            moment.resident,
            moment.filling,
            moment.saved,
        )
        if self.seen.get(key, 1 << 60) <= moment.now:
            return
        self.seen[key] = moment.now
        for job in self.jobs(moment):
            for following in self.starts(moment, job):
                self.visit(following)

    def bound(self, moment: Moment) -> int:
        ends = {job: end for end, job in moment.ends}
        lowest = max((end for end, _ in moment.ends), default=moment.now)
        for job in moment.waiting:
            before = self.program.tasks[job].after
            ready = max((ends[task] for task in before if task in ends), default=0)
            lowest = max(lowest, max(ready, moment.now) + self.tail[job])
        for engine, count in self.count.items():
            busy = sum(
                max(0, end - moment.now) for end, job in moment.ends if self.engine(job) == engine
            )
            mine = [job for job in moment.waiting if self.program.tasks[job].engine == engine]
            work = sum(self.program.tasks[job].cycles for job in mine)
            rest = min((self.tail[job] - self.program.tasks[job].cycles for job in mine), default=0)
            lowest = max(lowest, moment.now + -(-(busy + work) // count) + rest)
        return lowest

    def starts(self, moment: Moment, job: int) -> Iterator[Moment]:
        """A job starts at the first time at which it can, with each choice of what is dropped."""
        reads, writes = self.uses(job)
        times = sorted({moment.now, *(end for end, _ in moment.ends if end > moment.now)})
        for time in times:
            later = self.at(moment, time)
            busy = [other for _, other in later.ends]
            if (
                sum(self.engine(other) == self.engine(job) for other in busy)
                >= self.count[self.engine(job)]
            ):
                continue
            if job < self.n and any(before in busy for before in self.program.tasks[job].after):
                continue
            if any(b not in later.resident or b in later.filling for b in reads):
                continue
            if any(b in later.resident for b in writes):
                return
            yield from self.with_drops(later, job, reads, writes)
            used = sum(self.size[b] for b in later.resident)
            if used + sum(self.size[b] for b in writes) <= self.capacity:
                return

    def at(self, moment: Moment, time: int) -> Moment:
        """Let time pass: jobs end, their data is there, dead buffers are gone."""
        over = [job for end, job in moment.ends if end <= time]
        ends = tuple((end, job) for end, job in moment.ends if end > time)
        filled = {b for job in over for b in self.uses(job)[1]}
        saved = {(job - self.n) // 2 for job in over if job >= self.n and (job - self.n) % 2 == 0}
        saved |= {
            b
            for job in over
            if job < self.n and self.program.tasks[job].kind == "load"
            for b in self.writes[job]
        }
        alive = {b for job in moment.waiting for b in self.reads[job]}
        alive |= {b for _, job in ends for part in self.uses(job) for b in part}
        return Moment(
            time,
            moment.waiting,
            ends,
            moment.resident & alive,
            moment.filling - filled,
            moment.saved | saved,
            moment.written | filled,
        )

    def with_drops(
        self, moment: Moment, job: int, reads: list[int], writes: list[int]
    ) -> Iterator[Moment]:
        in_use = {b for _, other in moment.ends for part in self.uses(other) for b in part}
        free = self.capacity - sum(self.size[b] for b in moment.resident)
        short = sum(self.size[b] for b in writes) - free
        droppable = sorted(moment.saved & moment.resident - in_use - set(reads) - moment.filling)
        for count in range(len(droppable) + 1):
            for dropped in combinations(droppable, count):
                sizes = [self.size[b] for b in dropped]
                if sum(sizes) < short or (sizes and sum(sizes) - min(sizes) >= short):
                    continue
                yield Moment(
                    moment.now,
                    moment.waiting - {job},
                    tuple(sorted((*moment.ends, (moment.now + self.cycles(job), job)))),
                    moment.resident - set(dropped) | set(writes),
                    moment.filling | set(writes),
                    moment.saved,
                    moment.written,
                )


def shortest(
    program: Program, below: int = 1 << 30, may_save: bool = True, keep_order: bool = False
) -> int:
    """The end of the shortest run if it is below a limit, else the limit."""
    return Optimum(program, below, may_save, keep_order).run()

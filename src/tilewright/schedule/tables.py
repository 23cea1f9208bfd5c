"""A program as flat lists of integers, indexed by task or by buffer, as the simulation wants it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.program.model import Access, Box, Buffer, Program, Route, Space
from tilewright.schedule.contents import Held, elements

COMPUTE, LOAD, STORE, MOVE = range(4)
_KINDS = {"compute": COMPUTE, "load": LOAD, "store": STORE, "move": MOVE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spill:
    """The way out of a scratchpad and back."""

    space: str
    out: Route
    back: Route


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Everything that no schedule changes; what not every caller needs is made when asked for.

    If results lie in scratchpads, one task more than the program has stands at the end: it takes
    no time and reads them all, so that they are there when everything else is done.
    """

    program: Program
    engine_names: list[str]
    instances: list[int]
    engine: list[int]
    cycles: list[int]
    setup: list[int]
    ports: list[tuple[int, ...]]
    kind: list[int]
    touched: list[tuple[int, ...]]
    """Roots in scratchpads that a task reads or writes."""
    after: list[tuple[int, ...]]
    scratchpad: list[int]
    """By buffer: which scratchpad it lies in, or -1."""
    size_bytes: list[int]
    aligned_bytes: list[int]
    """By buffer: its size rounded up to its scratchpad's alignment; 0 if it lies in none."""
    root: list[int]
    scratchpads: list[str]
    alignment: list[int]
    room_bytes: list[int]
    spill: list[Spill | None]
    work_cycles: list[int]
    """By engine: the cycles of all its tasks."""
    transfer_engines: list[int]
    """Engines that move data of the program, or data that is spilled."""

    @cached_property
    def writes(self) -> list[tuple[tuple[int, Box], ...]]:
        """Buffers in scratchpads, views included, and the boxes that a task writes."""
        inside = self.scratchpad
        found = [
            tuple((a.buffer, a.box) for a in task.writes if inside[a.buffer] >= 0)
            for task in self.program.tasks
        ]
        return found + [()] * self._n_end_tasks

    @cached_property
    def written(self) -> list[tuple[int, ...]]:
        """Roots in scratchpads that a task writes."""
        root = _inside(self.root, self.scratchpad)
        found = [_roots(task.writes, root) for task in self.program.tasks]
        return found + [()] * self._n_end_tasks

    @cached_property
    def sources(self) -> list[tuple[int, ...]]:
        """Roots in scratchpads that a task reads and does not write."""
        pairs = zip(self.touched, self.written, strict=True)
        return [
            tuple([root for root in touched if root not in written]) if touched != written else ()
            for touched, written in pairs
        ]

    @cached_property
    def made(self) -> list[tuple[tuple[int, Held], ...]]:
        """Roots in scratchpads, and what a task leaves in them."""
        root = self.root
        return [
            tuple([(root[buffer], Held(buffer, box, task)) for buffer, box in written])
            for task, written in enumerate(self.writes)
        ]

    @cached_property
    def followers(self) -> list[list[int]]:
        """By task: the tasks that wait for it."""
        followers: list[list[int]] = [[] for _ in self.after]
        for task, before in enumerate(self.after):
            for other in before:
                followers[other].append(task)
        return followers

    @cached_property
    def users(self) -> list[list[int]]:
        """By root: the tasks that touch it."""
        users: list[list[int]] = [[] for _ in self.root]
        for task, roots in enumerate(self.touched):
            for root in roots:
                users[root].append(task)
        return users

    @cached_property
    def least_bytes(self) -> list[int]:
        """By scratchpad: the most that a single task needs."""
        least = [0] * len(self.scratchpads)
        needed = [0] * len(self.scratchpads)
        for roots in self.touched:
            for root in roots:
                pad = self.scratchpad[root]
                needed[pad] += self.aligned_bytes[root]
                if needed[pad] > least[pad]:
                    least[pad] = needed[pad]
            for root in roots:
                needed[self.scratchpad[root]] = 0
        return least

    @cached_property
    def repeatable(self) -> list[bool]:
        """Whether all that a task reads outside the scratchpads stays as it is."""
        return _repeatable(self.program, self.root) + [False] * self._n_end_tasks

    @cached_property
    def reloadable(self) -> list[bool]:
        """Whether what a task writes can be fetched again from where it came from."""
        found = [
            task.kind == "load" and bool(task.reads) and repeatable
            for task, repeatable in zip(self.program.tasks, self.repeatable, strict=False)
        ]
        return found + [False] * self._n_end_tasks

    @cached_property
    def rolling(self) -> list[bool]:
        """By root: whether more is written to it than it has room for, some of it over the rest."""
        return _rolling(self)

    @property
    def _n_end_tasks(self) -> int:
        return len(self.engine) - len(self.program.tasks)


def tables_of(program: Program) -> Tables:
    """Lay a program out flat."""
    names = [space.name for space in program.spaces if space.kind == "scratchpad"]
    index = {name: number for number, name in enumerate(names)}
    root = [n if b.view is None else b.view.buffer for n, b in enumerate(program.buffers)]
    scratchpad = [index.get(buffer.space, -1) for buffer in program.buffers]
    inside = _inside(root, scratchpad)
    engine_names = [engine.name for engine in program.engines]
    engine_index = {name: number for number, name in enumerate(engine_names)}
    tasks = program.tasks
    external = [space for space in program.spaces if space.kind == "external"]
    spill = [_spill(program, name, external) for name in names]
    tables = Tables(
        program=program,
        engine_names=engine_names,
        instances=[engine.count for engine in program.engines],
        engine=[engine_index[task.engine] for task in tasks],
        cycles=[task.cycles for task in tasks],
        setup=[task.setup_cycles for task in tasks],
        ports=_ports(program, engine_index),
        kind=[_KINDS[task.kind] for task in tasks],
        touched=[_roots((*task.reads, *task.writes), inside) for task in tasks],
        after=[
            task.after if len(task.after) < 2 else tuple(dict.fromkeys(task.after))
            for task in tasks
        ],
        scratchpad=scratchpad,
        size_bytes=[buffer.size_bytes for buffer in program.buffers],
        aligned_bytes=_aligned_bytes(program),
        root=root,
        scratchpads=names,
        alignment=[program.space[name].alignment_bytes for name in names],
        room_bytes=[_room_bytes(program, name) for name in names],
        spill=spill,
        work_cycles=_work_cycles(program, engine_index),
        transfer_engines=_transfer_engines(program, spill, engine_index),
    )
    _add_end_task(tables)
    return tables


def _inside(root: list[int], scratchpad: list[int]) -> list[int]:
    """By buffer: its root if it lies in a scratchpad, or -1."""
    return [number if pad >= 0 else -1 for number, pad in zip(root, scratchpad, strict=True)]


def _roots(accesses: Sequence[Access], root: list[int]) -> tuple[int, ...]:
    """The roots of accesses to scratchpads, every one once."""
    found: list[int] = []
    for access in accesses:
        number = root[access.buffer]
        if number >= 0 and number not in found:
            found.append(number)
    return tuple(found)


def _ports(program: Program, engine_index: dict[str, int]) -> list[tuple[int, ...]]:
    """By task: its ports as numbers; there are few different ones."""
    known: dict[tuple[str, ...], tuple[int, ...]] = {}
    for task in program.tasks:
        if task.ports not in known:
            known[task.ports] = tuple(engine_index[port] for port in task.ports)
    return [known[task.ports] for task in program.tasks]


def _aligned_bytes(program: Program) -> list[int]:
    alignment = {s.name: s.alignment_bytes for s in program.spaces if s.kind == "scratchpad"}
    return [_aligned(buffer, alignment.get(buffer.space)) for buffer in program.buffers]


def _aligned(buffer: Buffer, alignment_bytes: int | None) -> int:
    if alignment_bytes is None:
        return 0
    return -(-buffer.size_bytes // alignment_bytes) * alignment_bytes


def _work_cycles(program: Program, engine_index: dict[str, int]) -> list[int]:
    work = [0] * len(engine_index)
    for task in program.tasks:
        work[engine_index[task.engine]] += task.cycles
    return work


def _transfer_engines(
    program: Program, spills: Sequence[Spill | None], engine_index: dict[str, int]
) -> list[int]:
    moving = {task.engine for task in program.tasks if task.kind != "compute"}
    for spill in spills:
        if spill is not None:
            moving |= {spill.out.engine, spill.back.engine}
    return sorted(engine_index[name] for name in moving)


def _add_end_task(tables: Tables) -> None:
    held = tuple(
        dict.fromkeys(
            tables.root[buffer]
            for buffer in tables.program.results
            if tables.scratchpad[buffer] >= 0
        )
    )
    if not held:
        return
    tables.engine_names.append("")
    tables.instances.append(1)
    tables.work_cycles.append(0)
    tables.after.append(tuple(range(len(tables.engine))))
    tables.engine.append(len(tables.engine_names) - 1)
    tables.cycles.append(0)
    tables.setup.append(0)
    tables.ports.append(())
    tables.kind.append(COMPUTE)
    tables.touched.append(held)


def _repeatable(program: Program, root: list[int]) -> list[bool]:
    """By task: whether all it reads outside the scratchpads stays as it is for good."""
    buffers = program.buffers
    last_writer: dict[int, int] = {}
    for number, task in enumerate(program.tasks):
        for access in task.writes:
            last_writer[root[access.buffer]] = number
    inside = {space.name for space in program.spaces if space.kind == "scratchpad"}
    rereadable = {space.name for space in program.spaces if space.rereadable}
    steady_from = [
        len(program.tasks) if buffer.space not in rereadable else last_writer.get(root[number], -1)
        for number, buffer in enumerate(program.buffers)
    ]
    answers = []
    for number, task in enumerate(program.tasks):
        steady = True
        for access in task.reads:
            if steady_from[access.buffer] >= number and buffers[access.buffer].space not in inside:
                steady = False
        answers.append(steady)
    return answers


def _rolling(tables: Tables) -> list[bool]:
    writes = Counter(tables.root[buffer] for task in tables.writes for buffer, _ in task)
    # What is written once is never written over.
    written = {root: 0 for root, count in writes.items() if count > 1}
    for task in tables.writes:
        for buffer, box in task:
            if tables.root[buffer] in written:
                written[tables.root[buffer]] += elements(box)
    buffers = tables.program.buffers
    rolling = [False] * len(buffers)
    for root, total in written.items():
        rolling[root] = total > elements(buffers[root].box)
    return rolling


def _room_bytes(program: Program, name: str) -> int:
    space = program.space[name]
    return space.size_bytes - sum(end - begin for begin, end in space.reserved)


def _spill(program: Program, name: str, external: Sequence[Space]) -> Spill | None:
    """The fastest way to an external memory that also has a way back; the first one on ties."""
    best: Spill | None = None
    for space in external:
        out = program.route.get((name, space.name))
        back = program.route.get((space.name, name))
        if out is None or back is None:
            continue
        speed = 1 / out.bytes_per_cycle + 1 / back.bytes_per_cycle
        if best is None or speed < 1 / best.out.bytes_per_cycle + 1 / best.back.bytes_per_cycle:
            best = Spill(space=space.name, out=out, back=back)
    return best

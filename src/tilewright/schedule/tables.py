"""A program as flat lists of integers, indexed by task or by buffer, as the simulation wants it."""

from dataclasses import dataclass

from tilewright.program.model import Box, Program, Route, Task
from tilewright.schedule.contents import Held, elements

COMPUTE, LOAD, STORE, MOVE = range(4)
_KINDS = {"compute": COMPUTE, "load": LOAD, "store": STORE, "move": MOVE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spill:
    """The way out of a scratchpad and back."""

    space: str
    out: Route
    back: Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Everything that no schedule changes.

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
    writes: list[tuple[tuple[int, Box], ...]]
    """Buffers in scratchpads, views included, and the boxes that a task writes."""
    written: list[tuple[int, ...]]
    """Roots in scratchpads that a task writes."""
    made: list[tuple[tuple[int, Held], ...]]
    """Roots in scratchpads, and what a task leaves in them."""
    after: list[tuple[int, ...]]
    followers: list[list[int]]
    repeatable: list[bool]
    """Whether all that a task reads outside the scratchpads stays as it is."""
    reloadable: list[bool]
    """Whether what a task writes can be fetched again from where it came from."""
    scratchpad: list[int]
    """By buffer: which scratchpad it lies in, or -1."""
    size_bytes: list[int]
    aligned_bytes: list[int]
    """By buffer: its size rounded up to its scratchpad's alignment; 0 if it lies in none."""
    root: list[int]
    users: list[list[int]]
    """By root: the tasks that touch it."""
    rolling: list[bool]
    """By root: whether more is written to it than it has room for, some of it over the rest."""
    scratchpads: list[str]
    alignment: list[int]
    room_bytes: list[int]
    least_bytes: list[int]
    """By scratchpad: the most that a single task needs."""
    spill: list[Spill | None]
    work_cycles: list[int]
    """By engine: the cycles of all its tasks."""
    transfer_engines: list[int]
    """Engines that move data of the program, or data that is spilled."""


def tables_of(program: Program) -> Tables:
    """Lay a program out flat."""
    names = [space.name for space in program.spaces if space.kind == "scratchpad"]
    index = {name: number for number, name in enumerate(names)}
    root = [program.root(number) for number in range(len(program.buffers))]
    scratchpad = [index.get(buffer.space, -1) for buffer in program.buffers]
    engine_names = [engine.name for engine in program.engines]
    engine_index = {name: number for number, name in enumerate(engine_names)}
    tasks = program.tasks
    repeatable = _repeatable(program, root)
    tables = Tables(
        program=program,
        engine_names=engine_names,
        instances=[engine.count for engine in program.engines],
        engine=[engine_index[task.engine] for task in tasks],
        cycles=[task.cycles for task in tasks],
        setup=[task.setup_cycles for task in tasks],
        ports=[tuple(engine_index[port] for port in task.ports) for task in tasks],
        kind=[_KINDS[task.kind] for task in tasks],
        touched=[
            tuple(
                dict.fromkeys(
                    root[a.buffer] for a in (*task.reads, *task.writes) if scratchpad[a.buffer] >= 0
                )
            )
            for task in tasks
        ],
        writes=[
            tuple((a.buffer, a.box) for a in task.writes if scratchpad[a.buffer] >= 0)
            for task in tasks
        ],
        written=[
            tuple(dict.fromkeys(root[a.buffer] for a in task.writes if scratchpad[a.buffer] >= 0))
            for task in tasks
        ],
        made=[_made(number, task, scratchpad, root) for number, task in enumerate(tasks)],
        after=[tuple(dict.fromkeys(task.after)) for task in tasks],
        followers=[[] for _ in tasks],
        repeatable=repeatable,
        reloadable=[
            task.kind == "load" and bool(task.reads) and repeatable[number]
            for number, task in enumerate(tasks)
        ],
        scratchpad=scratchpad,
        size_bytes=[buffer.size_bytes for buffer in program.buffers],
        aligned_bytes=_aligned_bytes(program),
        root=root,
        users=[[] for _ in program.buffers],
        rolling=_rolling(program, root),
        scratchpads=names,
        alignment=[program.space[name].alignment_bytes for name in names],
        room_bytes=[_room_bytes(program, name) for name in names],
        least_bytes=[0] * len(names),
        spill=[_spill(program, name) for name in names],
        work_cycles=_work_cycles(program, engine_index),
        transfer_engines=_transfer_engines(program, names, engine_index),
    )
    _add_end_task(tables)
    _add_users(tables)
    return tables


def _made(
    number: int, task: Task, scratchpad: list[int], root: list[int]
) -> tuple[tuple[int, Held], ...]:
    inside = [access for access in task.writes if scratchpad[access.buffer] >= 0]
    return tuple((root[a.buffer], Held(a.buffer, a.box, number)) for a in inside)


def _add_users(tables: Tables) -> None:
    """Who follows whom, who touches what, and what single tasks need."""
    for task, before in enumerate(tables.after):
        for other in before:
            tables.followers[other].append(task)
        needed: dict[int, int] = {}
        for root in tables.touched[task]:
            tables.users[root].append(task)
            pad = tables.scratchpad[root]
            needed[pad] = needed.get(pad, 0) + tables.aligned_bytes[root]
        for pad, total in needed.items():
            tables.least_bytes[pad] = max(tables.least_bytes[pad], total)


def _aligned_bytes(program: Program) -> list[int]:
    alignment = {s.name: s.alignment_bytes for s in program.spaces if s.kind == "scratchpad"}
    return [
        -(-buffer.size_bytes // alignment[buffer.space]) * alignment[buffer.space]
        if buffer.space in alignment
        else 0
        for buffer in program.buffers
    ]


def _work_cycles(program: Program, engine_index: dict[str, int]) -> list[int]:
    work = [0] * len(engine_index)
    for task in program.tasks:
        work[engine_index[task.engine]] += task.cycles
    return work


def _transfer_engines(
    program: Program, scratchpads: list[str], engine_index: dict[str, int]
) -> list[int]:
    moving = {task.engine for task in program.tasks if task.kind != "compute"}
    for spill in (_spill(program, name) for name in scratchpads):
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
    tables.writes.append(())
    tables.written.append(())
    tables.made.append(())
    tables.followers.append([])
    tables.repeatable.append(False)
    tables.reloadable.append(False)


def _repeatable(program: Program, root: list[int]) -> list[bool]:
    """By task: whether all it reads outside the scratchpads stays as it is for good."""
    last_writer: dict[int, int] = {}
    for number, task in enumerate(program.tasks):
        for access in task.writes:
            last_writer[root[access.buffer]] = number
    inside = {space.name for space in program.spaces if space.kind == "scratchpad"}
    answers = []
    for number, task in enumerate(program.tasks):
        outside = [a.buffer for a in task.reads if program.buffers[a.buffer].space not in inside]
        answers.append(
            all(
                program.space[program.buffers[buffer].space].rereadable
                and last_writer.get(root[buffer], -1) < number
                for buffer in outside
            )
        )
    return answers


def _rolling(program: Program, root: list[int]) -> list[bool]:
    written = [0] * len(program.buffers)
    for task in program.tasks:
        for access in task.writes:
            written[root[access.buffer]] += elements(access.box)
    return [
        total > elements(buffer.box) for total, buffer in zip(written, program.buffers, strict=True)
    ]


def _room_bytes(program: Program, name: str) -> int:
    space = program.space[name]
    return space.size_bytes - sum(end - begin for begin, end in space.reserved)


def _spill(program: Program, name: str) -> Spill | None:
    """The fastest way to an external memory that also has a way back; the first one on ties."""
    best: Spill | None = None
    for space in program.spaces:
        out = program.route.get((name, space.name))
        back = program.route.get((space.name, name))
        if space.kind != "external" or out is None or back is None:
            continue
        speed = 1 / out.bytes_per_cycle + 1 / back.bytes_per_cycle
        if best is None or speed < 1 / best.out.bytes_per_cycle + 1 / best.back.bytes_per_cycle:
            best = Spill(space=space.name, out=out, back=back)
    return best

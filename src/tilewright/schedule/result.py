"""From a finished simulation to a timetable: added tasks and buffers become part of the program."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.program.model import (
    Access,
    Buffer,
    Charge,
    Program,
    Route,
    Slot,
    Task,
    Timetable,
    View,
)
from tilewright.schedule.contents import Held, box_bytes, elements
from tilewright.schedule.external import external_addresses
from tilewright.schedule.state import Added, State


class _Copies:
    """Buffers that stand for a root and its views elsewhere: at another time, in another space."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.buffers = list(program.buffers)
        self.numbers: dict[tuple[str, int, int], int] = {}

    def of(self, buffer: int, label: str, space: str) -> int:
        """The buffer that stands for this one in the copy of its root with this label."""
        root = self.program.root(buffer)
        key = (label, root, buffer)
        if key not in self.numbers:
            original = self.program.buffers[buffer]
            view = original.view
            if view is not None:
                view = View(self.of(root, label, space), view.origin)
            self.numbers[key] = len(self.buffers)
            name = f"{original.name}#{label}"
            self.buffers.append(replace(original, name=name, space=space, view=view))
        return self.numbers[key]


def timetable_of(state: State) -> Timetable:
    """The timetable of a finished simulation."""
    program = state.tables.program
    copies = _Copies(program)
    kept = _kept(state)
    number = {task: len(program.tasks) + index for index, task in enumerate(kept)}
    backs: dict[tuple[int, int], list[int]] = {}
    for task in kept:
        added = state.added[task - state.n_tasks]
        if not added.out:
            backs.setdefault((added.root, added.copy), []).append(task)
    tasks = [
        _redirected(state, task, copies, backs, number) if task in state.used_copies else original
        for task, original in enumerate(program.tasks)
    ]
    for task in kept:
        if state.added[task - state.n_tasks].recomputed:
            tasks.append(_computed_again(state, task, copies, backs, number))
        else:
            tasks.append(_added_task(state, task, copies, number))
    slots = [_slot(state, task) for task in (*range(len(program.tasks)), *kept)]
    scheduled = replace(
        program,
        buffers=tuple(copies.buffers),
        tasks=tuple(tasks),
        results=_results(state, copies),
    )
    return Timetable(
        program=scheduled,
        slots=tuple(slots),
        addresses=_addresses(state, scheduled, copies, slots),
    )


def _kept(state: State) -> list[int]:
    """The added tasks that serve a purpose, by start; data saved and never fetched serves none."""
    used = {(root, copy) for pairs in state.used_copies.values() for root, copy in pairs}
    backs: list[int] = []
    # Latest first: what is computed again uses copies that came back before.
    for task in sorted(
        range(state.n_tasks, len(state.engine)), key=lambda task: (-state.start[task], -task)
    ):
        added = state.added[task - state.n_tasks]
        if state.start[task] >= 0 and not added.out and (added.root, added.copy) in used:
            backs.append(task)
            used.update(added.inputs)
            if added.origin >= state.n_tasks:
                used.add((added.root, state.added[added.origin - state.n_tasks].copy))
    sources = {state.added[task - state.n_tasks].origin for task in backs}
    outs = [
        task
        for task in range(state.n_tasks, len(state.engine))
        if state.start[task] >= 0 and state.added[task - state.n_tasks].out and task in sources
    ]
    return sorted(outs + backs, key=lambda task: (state.start[task], task))


def _slot(state: State, task: int) -> Slot:
    return Slot(
        start_cycle=state.start[task],
        end_cycle=state.start[task] + state.cycles[task],
        instance=state.instance[task],
    )


def _label(copy: int) -> str:
    return str(copy + 1)


def _redirected(
    state: State,
    task: int,
    copies: _Copies,
    backs: dict[tuple[int, int], list[int]],
    number: dict[int, int],
) -> Task:
    """A task that uses later copies of its buffers, behind the transfers that filled them."""
    program = state.tables.program
    original = program.tasks[task]
    now = state.used_copies[task]
    before = _before(state, task, now, backs, number)
    return replace(
        original,
        reads=_moved(program, original.reads, now, copies),
        writes=_moved(program, original.writes, now, copies),
        after=(*original.after, *before),
    )


def _moved(
    program: Program,
    accesses: Sequence[Access],
    now: Sequence[tuple[int, int]],
    copies: _Copies,
) -> tuple[Access, ...]:
    """The same accesses to those copies that roots have now."""
    copy_of = dict(now)
    moved = []
    for access in accesses:
        root = program.root(access.buffer)
        if copy_of.get(root):
            space = program.buffers[root].space
            buffer = copies.of(access.buffer, _label(copy_of[root]), space)
            access = Access(buffer, access.box)
        moved.append(access)
    return tuple(moved)


def _before(
    state: State,
    task: int,
    now: Sequence[tuple[int, int]],
    backs: dict[tuple[int, int], list[int]],
    number: dict[int, int],
) -> list[int]:
    """The added tasks that filled the copies that a task uses."""
    return [
        number[back]
        for pair in now
        for back in backs.get(pair, ())
        if back != task and state.start[back] + state.cycles[back] <= state.start[task]
    ]


def _computed_again(
    state: State,
    task: int,
    copies: _Copies,
    backs: dict[tuple[int, int], list[int]],
    number: dict[int, int],
) -> Task:
    """A task of the program once more, for a copy of its result."""
    added = state.added[task - state.n_tasks]
    program = state.tables.program
    original = program.tasks[added.origin]
    now = (*added.inputs, (added.root, added.copy))
    return replace(
        original,
        name=f"{original.name}#{number[task]}",
        reads=_moved(program, original.reads, now, copies),
        writes=_moved(program, original.writes, now, copies),
        after=(*original.after, *_before(state, task, added.inputs, backs, number)),
    )


def _added_task(state: State, task: int, copies: _Copies, number: dict[int, int]) -> Task:
    added = state.added[task - state.n_tasks]
    program = state.tables.program
    root = program.buffers[added.root]
    held = added.held
    inside = held.buffer
    if added.copy:
        inside = copies.of(held.buffer, _label(added.copy), root.space)
    route = _route(state, added)
    repeated = None if added.saved >= 0 else program.tasks[added.origin]
    if repeated is None:
        spill = state.tables.spill[state.tables.scratchpad[added.root]]
        assert spill is not None
        outside: tuple[Access, ...]
        saved = copies.of(held.buffer, f"saved{added.saved}", spill.space)
        outside = (Access(saved, held.box),)
    else:
        outside = _repeated_reads(repeated, held)
    here = (Access(inside, held.box),)
    after: tuple[int, ...]
    if added.out:
        after = (number.get(added.origin, added.origin),) if added.origin >= 0 else ()
    elif added.origin >= state.n_tasks:
        after = (number[added.origin],)
    else:
        after = program.tasks[added.origin].after
    names = state.tables.engine_names
    label = "saved" if added.out else "fetched"
    return Task(
        name=f"{copies.buffers[inside].name}#{label}{number[task]}",
        kind="store" if added.out else "load",
        engine=names[state.engine[task]],
        cycles=state.cycles[task],
        reads=here if added.out else outside,
        writes=outside if added.out else here,
        after=after,
        op=repeated.op if repeated else "",
        fused=repeated.fused if repeated else (),
        tile=repeated.tile if repeated else (),
        setup_cycles=state.setup[task],
        ports=tuple(names[port] for port in state.ports[task]),
        charges=_charges(state, added, route),
    )


def _repeated_reads(task: Task, held: Held) -> tuple[Access, ...]:
    """What a transfer reads for one of its targets: all of it, or what it pairs with that one."""
    if len(task.reads) != len(task.writes):
        return task.reads
    return (task.reads[task.writes.index(Access(held.buffer, held.box))],)


def _route(state: State, added: Added) -> Route | None:
    spill = state.tables.spill[state.tables.scratchpad[added.root]]
    if added.saved >= 0 and spill is not None:
        return spill.out if added.out else spill.back
    program = state.tables.program
    source = program.buffers[program.tasks[added.origin].reads[0].buffer].space
    return program.route.get((source, program.buffers[added.root].space))


def _charges(state: State, added: Added, route: Route | None) -> tuple[Charge, ...]:
    """Bytes and energy of an added transfer: as its route says, or as the repeated task had it."""
    program = state.tables.program
    if added.saved < 0:
        original = program.tasks[added.origin]
        if len(original.writes) == 1 or route is None:
            return original.charges
    assert route is not None
    size_bytes = box_bytes(program, added.held)
    source, target = program.space[route.source].memory, program.space[route.target].memory
    return (
        Charge(source, size_bytes, 0, size_bytes * route.read_pj_per_byte),
        Charge(target, 0, size_bytes, size_bytes * route.write_pj_per_byte),
    )


def _results(state: State, copies: _Copies) -> tuple[int, ...]:
    program = state.tables.program
    end_task = len(program.tasks)
    now = dict(state.used_copies.get(end_task, ()))
    results = []
    for buffer in program.results:
        root = program.root(buffer)
        if now.get(root):
            buffer = copies.of(buffer, _label(now[root]), program.buffers[root].space)
        results.append(buffer)
    return tuple(results)


def _addresses(
    state: State, program: Program, copies: _Copies, slots: list[Slot]
) -> tuple[int, ...]:
    known = external_addresses(program, slots)
    for (root, copy), address in state.copy_address.items():
        if copy == 0:
            known[root] = address
        elif (_label(copy), root, root) in copies.numbers:
            known[copies.numbers[_label(copy), root, root]] = address
    return addresses_of(program, known)


def addresses_of(program: Program, known: Mapping[int, int]) -> tuple[int, ...]:
    """Addresses of all buffers from those of their roots; what has none gets 0."""
    return tuple(
        known.get(program.root(number), 0) + _offset_bytes(program, buffer)
        for number, buffer in enumerate(program.buffers)
    )


def _offset_bytes(program: Program, buffer: Buffer) -> int:
    """Where a view's first element lies in its root, which is dense and row-major."""
    if buffer.view is None or buffer.view.origin is None:
        return 0
    root = program.buffers[buffer.view.buffer]
    index = 0
    for at, (low, high) in zip(buffer.view.origin, root.box, strict=True):
        index = index * (high - low) + at - low
    return index * root.size_bytes // max(1, elements(root.box))

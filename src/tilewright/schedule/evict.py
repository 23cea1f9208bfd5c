"""Making room: what may leave a scratchpad, at what price, and how it goes and comes back."""

from bisect import insort
from heapq import heappush

from tilewright.program.model import Route
from tilewright.schedule.contents import Held, box_bytes, surviving
from tilewright.schedule.state import (
    ABSENT,
    EVICTED,
    LEAVING,
    RESERVED,
    RESIDENT,
    UNKNOWN,
    Added,
    Awaited,
    State,
)
from tilewright.schedule.tables import COMPUTE, LOAD, STORE, Tables

Like = tuple[int, int, int, tuple[int, ...]]
"""Engine, cycles, setup and ports of a transfer that is added."""

_SCALE = 1 << 24
FIRST = -(1 << 62)
"""The key of a transfer that goes before all others."""


def leaving_cost(state: State, root: int, step: int) -> int | None:
    """What it costs if a root leaves for the sake of a task at a step; None if it must stay.

    Nothing if it will leave soon anyway. Otherwise the cycles of going (unless its data still
    exists elsewhere) and coming back, the less the longer it will not be missed.
    """
    where = state.where[root]
    if where == LEAVING or not state.waiting[root]:
        return 0
    if state.writing[root]:
        return None
    distance = state.next_position(root) - step
    if distance <= 0:
        return None
    cycles: int | None = 0
    if where != RESERVED:
        cycles = state.moving[root]
        if cycles == UNKNOWN:
            cycles = moving_cycles(state, root)
    if not cycles:
        return cycles
    if state.policy.eviction == "distance":
        return _SCALE // distance * _SCALE + cycles
    return cycles * _SCALE // distance + 1


def survivors(state: State, root: int) -> list[Held] | None:
    """What a root still holds of all that was written to it; remembered until more is written."""
    held = surviving(state.tables.program, root, state.contents[root], state.settled[root])
    if held is not None:
        state.contents[root] = held
        state.settled[root] = len(held)
    return held


def moving_cycles(state: State, root: int) -> int | None:
    """Cycles of writing out what exists nowhere else and of fetching everything back."""
    cycles = state.moving[root]
    if cycles == UNKNOWN:
        cycles = _moving_cycles(state, root)
        # Whether a result can be computed again depends on more than what its root holds.
        if not state.policy.recompute:
            state.moving[root] = cycles
    return cycles


def _moving_cycles(state: State, root: int) -> int | None:
    tables = state.tables
    spill = tables.spill[tables.scratchpad[root]]
    if spill is None and not state.policy.recompute:
        # What was written last is all there: no need to look at what it left of the rest.
        last = state.contents[root][-1:]
        if last and not is_clean(state, last[0]):
            return None
    held = survivors(state, root)
    if held is None:
        return None
    if can_recompute(state, root, held):
        return state.cycles[held[0].writer]
    total = 0
    for piece in held:
        if is_clean(state, piece):
            total += back_like(state, root, piece)[1]
        elif spill is None:
            return None
        else:
            size_bytes = box_bytes(tables.program, piece)
            total += spill.out.cycles(size_bytes) + spill.back.cycles(size_bytes)
    return total


def is_clean(state: State, held: Held) -> bool:
    """Whether what is held exists elsewhere and can be fetched from there."""
    if not held.whole:
        return False
    if held.writer >= state.n_tasks:
        return not state.added[held.writer - state.n_tasks].recomputed
    return state.tables.reloadable[held.writer]


def make_room(state: State, root: int, step: int, may_drop: bool) -> bool:
    """Send away whatever gives a root room at the least cost; whether there is any such way.

    What exists elsewhere is dropped at once (if `may_drop`); the rest stays until written out.
    """
    window = _window(state, root, step)
    if window is None:
        return False
    cost, roots = window
    state.awaited = Awaited(root, step, cost)
    for other in roots:
        if state.waiting[other]:
            evict(state, other, may_drop)
    return True


def is_in_the_way(state: State) -> bool:
    """Whether what was placed last makes the room dearer that the next compute task waits for."""
    awaited = state.awaited
    if awaited is None:
        return False
    window = _window(state, awaited.root, awaited.step)
    return window is None or window[0] > awaited.cost


def _window(state: State, root: int, step: int) -> tuple[int, list[int]] | None:
    pad = state.pads[state.scratchpad[root]]
    size_bytes = max(1, state.size_bytes[root])
    return pad.cheapest_window(size_bytes, lambda other: leaving_cost(state, other, step))


def evict(state: State, root: int, may_drop: bool = True) -> None:
    """Let a root leave: at once if its data exists elsewhere, else after it is written out.

    While tasks still read it, it may be written out already, but stays until they have ended.
    """
    if state.where[root] == RESERVED:
        state.note_live(root, state.next_position(root), -1)
        state.vacate(root, EVICTED if state.missing[root] else ABSENT)
        return
    if state.where[root] != RESIDENT:
        return
    held = survivors(state, root)
    assert held is not None
    dirty = [number for number, piece in enumerate(held) if not is_clean(state, piece)]
    if can_recompute(state, root, held):
        if state.running[root]:
            return
        dirty = []
    if not dirty and not may_drop:
        return
    if dirty and state.tables.spill[state.tables.scratchpad[root]] is None:
        # What it would be computed from has left with the same window.
        return
    if not dirty and not state.running[root]:
        state.contents[root] = held
        leave(state, root)
        return
    state.contents[root] = list(held)
    state.where[root] = LEAVING
    state.leaving[root] = len(dirty)
    if dirty:
        state.saved_roots.append(root)
    for number in dirty:
        _write_out(state, root, held[number])


def _write_out(state: State, root: int, held: Held) -> None:
    tables = state.tables
    spill = tables.spill[tables.scratchpad[root]]
    assert spill is not None
    added = Added(
        root=root,
        held=held,
        out=True,
        copy=state.copy[root],
        saved=len(state.saved_roots) - 1,
        origin=held.writer,
    )
    like = like_route(tables, spill.out, box_bytes(tables.program, held))
    task = state.add_task(added, like, STORE)
    state.key[task] = FIRST
    insort(state.copies_out[state.engine[task]], (FIRST, task))


def written_out(state: State, task: int) -> None:
    """A piece of a leaving root has been saved."""
    added = state.added[task - state.n_tasks]
    root = added.root
    contents = state.contents[root]
    contents[contents.index(added.held)] = Held(added.held.buffer, added.held.box, task)
    state.leaving[root] -= 1
    state.moving[root] = UNKNOWN


def leave(state: State, root: int) -> None:
    """A root's place is given back; each piece will be fetched again before the next use."""
    user = state.next_use(root)
    held = state.contents[root]
    again = not all(is_clean(state, piece) for piece in held)
    state.note_live(root, state.next_position(root), -1)
    state.vacate(root, EVICTED)
    state.contents[root] = []
    state.settled[root] = 0
    state.moving[root] = UNKNOWN
    for piece in held:
        if again:
            _compute_again_later(state, root, piece, user)
        else:
            _bring_back_later(state, root, piece, user)


def _bring_back_later(state: State, root: int, held: Held, user: int) -> None:
    like = back_like(state, root, held)
    added = Added(root=root, held=held, out=False, origin=held.writer)
    if held.writer >= state.n_tasks:
        before = state.added[held.writer - state.n_tasks]
        added.saved = before.saved
        added.origin = before.origin if not before.out else held.writer
    _add_back(state, added, like, user)


def _add_back(state: State, added: Added, like: Like, user: int) -> int:
    task = state.add_task(added, like, LOAD)
    state.missing[added.root] += 1
    state.position[task] = state.next_position(added.root)
    state.key[task] = state.key[user]
    if state.policy.key == "slack":
        state.key[task] -= state.cycles[task]
    release = state.position[task] - state.policy.lookahead_steps
    heappush(state.later, (release, state.key[task], task))
    return task


def back_like(state: State, root: int, held: Held) -> Like:
    """Engine, cycles, setup and ports of fetching a piece again."""
    tables = state.tables
    writer = held.writer
    if writer >= state.n_tasks:
        if not state.added[writer - state.n_tasks].out:
            return (
                state.engine[writer],
                state.cycles[writer],
                state.setup[writer],
                state.ports[writer],
            )
        spill = tables.spill[tables.scratchpad[root]]
        assert spill is not None
        return like_route(tables, spill.back, box_bytes(tables.program, held))
    return reload_like(tables, root, held)


def reload_like(tables: Tables, root: int, held: Held) -> Like:
    """How a piece is fetched again that a task of the program brought in."""
    writer = held.writer
    task = tables.program.tasks[writer]
    if len(task.writes) > 1:
        # A multicast is not repeated for everybody: only this scratchpad lost its copy.
        source = tables.program.buffers[task.reads[0].buffer].space
        route = tables.program.route.get((source, tables.program.buffers[root].space))
        if route is not None:
            return like_route(tables, route, box_bytes(tables.program, held))
    return tables.engine[writer], tables.cycles[writer], tables.setup[writer], tables.ports[writer]


def like_route(tables: Tables, route: Route, size_bytes: int) -> Like:
    """How so many bytes go along a route."""
    names = tables.engine_names
    ports = tuple(names.index(port) for port in route.ports)
    return names.index(route.engine), route.cycles(size_bytes), route.setup_cycles, ports


# Computing again


def can_recompute(state: State, root: int, held: list[Held]) -> bool:
    """Whether a result is sooner computed again than written out and fetched.

    Only if it is the one result of one task whose inputs are there and will be until then.
    """
    if not _may_recompute(state, root) or len(held) != 1:
        return False
    writer = held[0].writer
    if writer >= state.n_tasks or not held[0].whole:
        return False
    tables = state.tables
    if not is_repeatable(tables, root, writer):
        return False
    spill = tables.spill[tables.scratchpad[root]]
    size_bytes = box_bytes(tables.program, held[0])
    if spill is not None and state.cycles[writer] >= spill.out.cycles(
        size_bytes
    ) + spill.back.cycles(size_bytes):
        return False
    until = state.next_position(root)
    return all(_stays(state, other, writer, until) for other in _inputs(state, root, writer))


def is_repeatable(tables: Tables, root: int, writer: int) -> bool:
    """Whether a root is the one result of a task that can be repeated and does not read it."""
    if tables.kind[writer] != COMPUTE or not tables.repeatable[writer]:
        return False
    task = tables.program.tasks[writer]
    return len(task.writes) == 1 and all(tables.root[a.buffer] != root for a in task.reads)


def _may_recompute(state: State, root: int) -> bool:
    # Computing again needs room for the inputs too: no good when the memory is cleared for a task.
    is_forced = state.forced >= 0 and state.tables.spill[state.tables.scratchpad[root]] is not None
    return state.policy.recompute and not is_forced


def _inputs(state: State, root: int, task: int) -> list[int]:
    return [other for other in state.touched[task] if other != root]


def _stays(state: State, root: int, reader: int, until: int) -> bool:
    """Whether a root is there, is still needed at a step, and holds what a task once read."""
    if state.where[root] != RESIDENT or state.missing[root] or not state.waiting[root]:
        return False
    if state.position[state.order.uses[root][-1]] < until:
        return False
    tables = state.tables
    for user in tables.users[root]:
        if any(tables.root[buffer] == root for buffer, _ in tables.writes[user]) and (
            state.start[user] < 0 or state.start[user] + state.cycles[user] > state.start[reader]
        ):
            return False
    return True


def _compute_again_later(state: State, root: int, held: Held, user: int) -> None:
    writer = held.writer
    inputs = _inputs(state, root, writer)
    added = Added(root=root, held=held, out=False, origin=writer, recomputed=True)
    like = (state.engine[writer], state.cycles[writer], state.setup[writer], state.ports[writer])
    task = _add_back(state, added, like, user)
    state.touched[task] = (root, *inputs)
    for other in inputs:
        state.left[other] += 1
        state.waiting[other] += 1
        position = state.position[task]
        state.promised[other] = min(position, state.promised.get(other, position))

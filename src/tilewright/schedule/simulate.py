"""The simulation: from event to event, start whatever can start, and make room where it must be."""

from heapq import heappop, heappush

from tilewright.schedule.contents import Held
from tilewright.schedule.evict import evict, leave, make_room, moving_cycles, written_out
from tilewright.schedule.options import Policy
from tilewright.schedule.order import Order
from tilewright.schedule.state import (
    ABSENT,
    EVICTED,
    LEAVING,
    RESERVED,
    RESIDENT,
    WAKE,
    State,
)
from tilewright.schedule.tables import COMPUTE, LOAD, STORE, Tables


class StuckError(Exception):
    """A task can never start under this order and these rules; caught inside this package."""

    def __init__(self, state: State, task: int) -> None:
        super().__init__(task)
        self.state = state
        self.task = task


def simulate(tables: Tables, order: Order, policy: Policy, keys: list[int]) -> State:
    """Run a program to its end; raises StuckError if some task never gets its memory."""
    state = State(tables, order, policy, keys)
    for task in range(state.n_tasks):
        if not tables.after[task] and tables.kind[task] == STORE:
            state.make_ready(task)
    while True:
        _start_all(state)
        if not state.unfinished:
            return state
        if not state.events:
            _force(state)
            continue
        state.now = state.events[0][0]
        while state.events and state.events[0][0] == state.now:
            task = heappop(state.events)[1]
            if task != WAKE:
                _finish(state, task)


def _finish(state: State, task: int) -> None:
    heappush(state.idle[state.engine[task]], state.instance[task])
    if task >= state.n_tasks:
        _finish_added(state, task)
        return
    state.unfinished -= 1
    tables = state.tables
    for buffer, box in tables.writes[task]:
        state.contents[tables.root[buffer]].append(Held(buffer, box, task))
    for root in tables.touched[task]:
        state.running[root] -= 1
        state.left[root] -= 1
        _after_use(state, root)
    for follower in tables.followers[task]:
        state.pending[follower] -= 1
        if not state.pending[follower]:
            state.make_ready(follower)


def _finish_added(state: State, task: int) -> None:
    added = state.added[task - state.n_tasks]
    root = added.root
    state.running[root] -= 1
    if added.out:
        written_out(state, task)
    else:
        state.missing[root] -= 1
        state.contents[root].append(Held(added.held.buffer, added.held.box, task))
    _after_use(state, root)


def _after_use(state: State, root: int) -> None:
    if state.running[root]:
        return
    if not state.left[root]:
        state.vacate(root, ABSENT)
    elif state.where[root] == LEAVING and not state.leaving[root]:
        leave(state, root)


def _start_all(state: State) -> None:
    while True:
        started = _start_computes(state)
        state.release_copies_in()
        started += _claim(state)
        started += _start_transfers(state)
        if not started:
            return


# Compute tasks


def _start_computes(state: State) -> int:
    started = 0
    for engine, queue in enumerate(state.order.queues):
        while state.idle[engine] and state.head[engine] < len(queue):
            task = queue[state.head[engine]]
            if state.pending[task] or not _can_compute(state, task):
                break
            state.head[engine] += 1
            state.begin(task)
            started += 1
            _advance(state)
    return started


def _advance(state: State) -> None:
    steps = state.order.steps
    while state.current < len(steps) and state.start[steps[state.current]] >= 0:
        state.current += 1


def _can_compute(state: State, task: int) -> bool:
    """Whether a task's operands are there; if so, its results get their places."""
    if state.forced not in (-1, task):
        return False
    new = []
    for root in state.touched[task]:
        where = state.where[root]
        if where == RESIDENT:
            if state.missing[root]:
                return False
        elif where in (ABSENT, RESERVED) and not state.missing[root]:
            new.append(root)
        else:
            return False
    return state.lanes_free(task) and _place_all(state, new, state.position[task], False)


def _place_all(state: State, roots: list[int], position: int, from_top: bool) -> bool:
    """Place every root that has no place yet, or none of them; the placed ones are then in use."""
    placed: list[int] = []
    for root in roots:
        if state.where[root] == RESERVED:
            continue
        if not (state.has_room_until(root, position) and state.place(root, position, from_top)):
            for other in placed:
                evict(state, other)
            return False
        placed.append(root)
    for root in roots:
        state.settle(root)
    return True


# Transfers


def _start_transfers(state: State) -> int:
    started = 0
    for engine in range(len(state.idle)):
        while state.idle[engine] and _start_one(state, engine):
            started += 1
    return started


def _start_one(state: State, engine: int) -> bool:
    """Start the first transfer that can start among the first ones of an engine."""
    going, coming = state.copies_out[engine], state.copies_in[engine]
    window = state.policy.window
    choices = going[:window] + coming[:window]
    if not (state.policy.stores_first or state.blocked_pad >= 0):
        choices.sort()
    for key, task in choices:
        if _can_transfer(state, task):
            pool = going if state.kind[task] == STORE else coming
            pool.remove((key, task))
            state.begin(task)
            return True
    return False


def _can_transfer(state: State, task: int) -> bool:
    """Whether a transfer's source is there; if so, its targets get their places."""
    position = state.position[task]
    if state.kind[task] != STORE:
        last = state.current if not state.policy.prefetch else position
        if state.forced >= 0:
            last = state.position[state.forced]
        if position > last:
            return False
    if task >= state.n_tasks:
        return _can_transfer_added(state, task)
    new = _unplaced_targets(state, task)
    if new is None or not state.lanes_free(task):
        return False
    ahead = state.kind[task] == LOAD and position > state.current
    return _place_all(state, new, position, state.policy.both_ends and ahead)


def _unplaced_targets(state: State, task: int) -> list[int] | None:
    """Roots that a transfer writes and that have no place in use yet; None if it must wait."""
    tables = state.tables
    new = []
    written = [tables.root[buffer] for buffer, _ in tables.writes[task]]
    for root in tables.touched[task]:
        where = state.where[root]
        if root in written:
            if where == LEAVING:
                return None
            if where != RESIDENT:
                new.append(root)
        elif where not in (RESIDENT, LEAVING) or state.missing[root]:
            return None
    return new


def _can_transfer_added(state: State, task: int) -> bool:
    added = state.added[task - state.n_tasks]
    root = added.root
    if not state.lanes_free(task):
        return False
    if added.out:
        return True
    where = state.where[root]
    if where == LEAVING:
        return False
    if where in (EVICTED, RESERVED):
        position = state.position[task]
        from_top = state.policy.both_ends and position > state.current
        if not _place_all(state, [root], position, from_top):
            return False
    added.copy = state.copy[root]
    return True


# Room for the next compute task


def _claim(state: State) -> int:
    """Keep places for what the next compute task lacks, and make room for it if need be.

    Returns how many roots got their place.
    """
    state.blocked_pad = -1
    steps = state.order.steps
    if state.current >= len(steps) or state.forced >= 0:
        return 0
    task = steps[state.current]
    for before in state.tables.after[task]:
        if state.start[before] < 0 and state.kind[before] in (COMPUTE, STORE):
            return 0
    can_start = bool(state.idle[state.engine[task]])
    lacking = [root for root in state.touched[task] if state.where[root] in (ABSENT, EVICTED)]
    lacking.sort(key=lambda root: (-state.aligned[root], root))
    for root in lacking:
        is_result = state.where[root] == ABSENT and state.next_use(root) == task
        if not _claim_one(state, root, state.current, can_start or not is_result):
            state.blocked_pad = state.tables.scratchpad[root]
            break
    return sum(state.where[root] == RESERVED for root in lacking)


def _claim_one(state: State, root: int, step: int, now: bool) -> bool:
    """Whether a root has its place or needs none yet."""
    if not now:
        pad = state.pads[state.tables.scratchpad[root]]
        if pad.has_room(state.aligned[root]):
            return True
        make_room(state, root, step, may_drop=False)
        return True
    while not state.place(root, step, False):
        gaps = len(state.pads[state.tables.scratchpad[root]].addresses)
        if not make_room(state, root, step, may_drop=True):
            return False
        if len(state.pads[state.tables.scratchpad[root]].addresses) == gaps:
            return False
    return True


def _force(state: State) -> None:
    """Nothing runs and nothing can start: the memory is emptied for the first task in order."""
    task = _first_waiting(state)
    state.forced_times = state.forced_times + 1 if task == state.forced else 0
    state.forced = task
    # Once the memory is empty and the task's operands have their places, it starts.
    if state.forced_times > 2:
        raise StuckError(state, task)
    state.blocked_pad = -1
    for pad in state.pads:
        for address in list(pad.addresses):
            root = pad.owners[address][1]
            if _may_leave(state, root):
                evict(state, root)
    if any(state.where[root] == LEAVING for pad in state.pads for _, root in pad.owners.values()):
        return
    lacking = [root for root in state.touched[task] if state.where[root] in (ABSENT, EVICTED)]
    lacking.sort(key=lambda root: (-state.aligned[root], root))
    for root in lacking:
        if not state.place(root, state.position[task], False):
            raise StuckError(state, task)
    if not lacking:
        raise StuckError(state, task)


def _may_leave(state: State, root: int) -> bool:
    return state.where[root] == RESERVED or moving_cycles(state, root) is not None


def _first_waiting(state: State) -> int:
    """The first task in order that has not started and is not pulled by others."""
    sequence = state.order.sequence
    index = state.first_waiting
    while index < len(sequence) and (
        state.start[sequence[index]] >= 0 or state.kind[sequence[index]] not in (COMPUTE, STORE)
    ):
        index += 1
    state.first_waiting = index
    if index < len(sequence):
        return sequence[index]
    return next(task for task in sequence if state.start[task] < 0)

"""The simulation: from event to event, whatever can start is started."""

from bisect import bisect_left
from heapq import heappop, heappush

from tilewright.schedule.claims import claim, first_waiting, force, start_forcing
from tilewright.schedule.contents import Held
from tilewright.schedule.evict import evict, is_in_the_way, leave, written_out
from tilewright.schedule.options import Policy
from tilewright.schedule.order import Order
from tilewright.schedule.state import (
    ABSENT,
    EVICTED,
    LEAVING,
    NO_LIMIT,
    RESERVED,
    RESIDENT,
    UNKNOWN,
    WAKE,
    Score,
    State,
)
from tilewright.schedule.tables import LOAD, STORE, Tables

_MOST_IN_VAIN = 20_000
"""So many added transfers without any progress of the program are too many."""


def simulate(
    tables: Tables,
    order: Order,
    policy: Policy,
    keys: list[int],
    limit: Score = NO_LIMIT,
) -> State:
    """Run a program to its end; raises StuckError if some task never gets its memory.

    Raises TooSlowError as soon as it is certain that its score does not stay below a limit.
    """
    state = State(tables, order, policy, keys)
    state.limit = limit
    for task in range(state.n_tasks):
        if not tables.after[task] and tables.kind[task] == STORE:
            state.make_ready(task)
    unfinished, added = state.unfinished, 0
    while True:
        _start_all(state)
        if not state.unfinished:
            return state
        if state.unfinished < unfinished:
            unfinished, added = state.unfinished, len(state.added)
        elif len(state.added) - added > _MOST_IN_VAIN:
            # Copies push each other out for ever, and no task of the program gets to run.
            task = first_waiting(state)
            start_forcing(state, task, task)
            added = len(state.added)
        if not state.events:
            force(state)
            continue
        state.now = state.events[0][0]
        while state.events and state.events[0][0] == state.now:
            task = heappop(state.events)[1]
            if task != WAKE:
                _finish(state, task)


def _finish(state: State, task: int) -> None:
    heappush(state.idle[state.engine[task]], state.instance[task])
    for root in state.written[task]:
        state.writing[root] -= 1
    if task >= state.n_tasks:
        _finish_added(state, task)
        return
    state.unfinished -= 1
    tables, running, left, pending = state.tables, state.running, state.left, state.pending
    for root, held in tables.made[task]:
        state.contents[root].append(held)
        state.moving[root] = UNKNOWN
    for root in tables.touched[task]:
        running[root] -= 1
        left[root] -= 1
        if not running[root]:
            _after_use(state, root)
    for follower in tables.followers[task]:
        pending[follower] -= 1
        if not pending[follower]:
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
        state.moving[root] = UNKNOWN
    _after_use(state, root)
    for other, _ in added.inputs:
        state.running[other] -= 1
        state.left[other] -= 1
        _after_use(state, other)


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
        started += claim(state)
        started += _start_transfers(state)
        if not started:
            return


# Compute tasks


def _start_computes(state: State) -> int:
    started = 0
    for engine in state.compute_engines:
        if not state.idle[engine]:
            continue
        queue = state.order.queues[engine]
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
        fits = (
            state.has_gap(root)
            and state.has_room_until(root, position)
            and state.place(root, position, from_top)
        )
        if fits:
            placed.append(root)
            if state.scratchpad[root] == state.blocked_pad:
                fits = not is_in_the_way(state)
        if not fits:
            for other in placed:
                evict(state, other)
            return False
    for root in roots:
        state.settle(root)
    return True


# Transfers


def _start_transfers(state: State) -> int:
    started = 0
    for engine in state.transfer_engines:
        if state.copies_in[engine] or state.copies_out[engine]:
            while state.idle[engine] and _start_one(state, engine):
                started += 1
    return started


def _start_one(state: State, engine: int) -> bool:
    """Start the first transfer that can start among the first ones of an engine."""
    for key, task in _choices(state, engine):
        if _can_transfer(state, task):
            is_store = state.kind[task] == STORE
            (state.copies_out if is_store else state.copies_in)[engine].remove((key, task))
            state.begin(task)
            return True
    return False


def _choices(state: State, engine: int) -> list[tuple[int, int]]:
    """Transfers to choose from, the best first; what is needed now is always among them."""
    going, coming = state.copies_out[engine], state.copies_in[engine]
    if state.forced >= 0:
        return going + _serving_forced(state, coming)
    window = state.policy.window
    if not going and len(coming) <= window:
        return coming
    choices = going[:window] + coming[:window]
    if going and coming and not (state.policy.stores_first or state.blocked_pad >= 0):
        choices.sort()
    if len(coming) > window:
        choices += _needed_now(state, coming, window)
    return choices


def _needed_now(state: State, coming: list[tuple[int, int]], window: int) -> list[tuple[int, int]]:
    """Copies behind the first ones that the current step waits for."""
    if state.policy.key == "need" and not state.promised:
        # They stand in the order of their steps.
        return coming[window : bisect_left(coming, (state.current + 1,), window)]
    position = state.position
    return [pair for pair in coming[window:] if position[pair[1]] <= state.current]


def _can_transfer(state: State, task: int) -> bool:
    """Whether a transfer's source is there; if so, its targets get their places."""
    position = state.position[task]
    is_ahead = position > state.current
    if is_ahead and not state.policy.prefetch and state.kind[task] != STORE:
        return False
    if task >= state.n_tasks:
        return _can_transfer_added(state, task)
    new = _unplaced_targets(state, task)
    if new is None or not state.lanes_free(task):
        return False
    if not new:
        return True
    from_top = is_ahead and state.policy.both_ends and state.kind[task] == LOAD
    return _place_all(state, new, position, from_top)


def _serving_forced(state: State, coming: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Copies that are the forced task itself or only bring in what that one touches."""
    wanted, written = state.touched[state.forced], state.written
    found = []
    for pair in coming:
        task = pair[1]
        for root in written[task]:
            if root not in wanted and task != state.forced:
                break
        else:
            found.append(pair)
    return found


def _unplaced_targets(state: State, task: int) -> list[int] | None:
    """Roots that a transfer writes and that have no place in use yet; None if it must wait."""
    where, missing = state.where, state.missing
    for root in state.sources[task]:
        if (where[root] != RESIDENT and where[root] != LEAVING) or missing[root]:
            return None
    new = []
    for root in state.written[task]:
        # What comes back to a rolling buffer must not come on top of what is newer.
        if where[root] == LEAVING or (missing[root] and state.tables.rolling[root]):
            return None
        if where[root] != RESIDENT:
            new.append(root)
    return new


def _can_transfer_added(state: State, task: int) -> bool:
    added = state.added[task - state.n_tasks]
    root = added.root
    if not state.lanes_free(task):
        return False
    if added.out:
        return True
    where = state.where[root]
    # A root that nobody reads any more may have died before its data came back.
    if where == LEAVING or not state.left[root]:
        return False
    inputs = state.touched[task][1:]
    if any(state.where[other] != RESIDENT or state.missing[other] for other in inputs):
        return False
    if where in (EVICTED, RESERVED):
        position = state.position[task]
        from_top = state.policy.both_ends and position > state.current
        if not _place_all(state, [root], position, from_top):
            return False
    for other in inputs:
        state.waiting[other] -= 1
    added.inputs = tuple((other, state.copy[other]) for other in inputs)
    added.copy = state.copy[root]
    return True

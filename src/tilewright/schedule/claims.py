"""Room for the next compute task: kept, made by evicting, or forced if nothing else helps."""

from tilewright.schedule.evict import evict, make_room, moving_cycles
from tilewright.schedule.state import ABSENT, EVICTED, LEAVING, RESERVED, State
from tilewright.schedule.tables import COMPUTE, STORE

_PATIENCE = 6
"""So often the memory is emptied without any task of the program coming to its end."""


class StuckError(Exception):
    """A task can never start under this order and these rules; caught inside this package."""

    def __init__(self, state: State, task: int) -> None:
        super().__init__(task)
        self.state = state
        self.task = task


def claim(state: State) -> int:
    """Keep places for what the next compute task lacks, and make room for it if need be.

    Returns how many roots got their place.
    """
    state.blocked_pad = -1
    state.awaited = None
    steps = state.order.steps
    if state.current >= len(steps) or state.forced >= 0:
        return 0
    task = steps[state.current]
    lacking = _lacking(state, task)
    if not lacking:
        return 0
    for before in state.tables.after[task]:
        if state.start[before] < 0 and state.kind[before] in (COMPUTE, STORE):
            return 0
    can_start = bool(state.idle[state.engine[task]])
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


def force(state: State) -> None:
    """Nothing runs and nothing can start: the memory is emptied for the first task in order.

    If that does not let it start, a copy that it waits for is forced first.
    """
    task = first_waiting(state)
    if state.forced_at != state.unfinished:
        state.forced_at, state.forced_times = state.unfinished, 0
    elif state.forced >= 0 and not _is_writing_out(state):
        state.forced_times += 1
    if state.forced_times > _PATIENCE:
        raise StuckError(state, task)
    if state.forced_times > 1:
        task = _first_copy_for(state, task)
    state.forced = task
    state.blocked_pad = -1
    _empty(state)
    if _is_writing_out(state):
        return
    for root in _lacking(state, task):
        if not state.place(root, state.position[task], False):
            raise StuckError(state, task)


def _is_writing_out(state: State) -> bool:
    return any(
        state.where[root] == LEAVING for pad in state.pads for _, root in pad.owners.values()
    )


def _first_copy_for(state: State, task: int) -> int:
    """The first copy that a task waits for, directly or not, and that waits for nothing itself."""
    seen = {task}
    open_tasks = [task]
    found = []
    while open_tasks:
        for before in state.tables.after[open_tasks.pop()]:
            if state.start[before] < 0 and before not in seen:
                seen.add(before)
                open_tasks.append(before)
                if not state.pending[before] and state.kind[before] != COMPUTE:
                    found.append(before)
    return min(found, default=task)


def _empty(state: State) -> None:
    for pad in state.pads:
        for address in list(pad.addresses):
            root = pad.owners[address][1]
            if state.where[root] == RESERVED or moving_cycles(state, root) is not None:
                evict(state, root)


def _lacking(state: State, task: int) -> list[int]:
    """Roots of a task that have no place, the largest first."""
    where = state.where
    roots = [
        root for root in state.touched[task] if where[root] == ABSENT or where[root] == EVICTED
    ]
    if len(roots) > 1:
        roots.sort(key=lambda root: (-state.aligned[root], root))
    return roots


def first_waiting(state: State) -> int:
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

"""Room for the next compute task: kept, made by evicting, or forced if nothing else helps."""

from tilewright.schedule.evict import evict, make_room, moving_cycles
from tilewright.schedule.state import ABSENT, EVICTED, LEAVING, RESERVED, State
from tilewright.schedule.tables import COMPUTE, STORE

_PATIENCE = 64
"""So often the memory is emptied without any task of the program coming to its end."""


class StuckError(Exception):
    """A task can never start under this order and these rules; caught inside this package."""

    def __init__(self, task: int, lying: list[list[int]]) -> None:
        super().__init__(task)
        self.task = task
        self.lying = lying
        """By scratchpad: the roots that lie in it, the smallest first."""


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
    where = state.where
    for root in state.touched[task]:
        if where[root] == ABSENT or where[root] == EVICTED:
            break
    else:
        return 0
    lacking = _lacking(state, task)
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
        state.is_short = True
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
    """Nothing runs and nothing can start: the memory is cleared for the first task in order.

    At first what that task touches may stay; then all that can leave does; then what the task
    waits for is forced before it, one task at a time.
    """
    state.is_short = True
    task = first_waiting(state)
    if state.forced_at != state.unfinished:
        state.forced_at, state.forced_times = state.unfinished, 0
    elif not state.is_clearing:
        state.forced_times += 1
    while state.forced_times <= _PATIENCE:
        target = task if state.forced_times < 2 else _first_obstacle(state, task)
        if _clear_for(state, task, target, keep_touched=state.forced_times == 0):
            return
        if state.forced_times >= 2:
            break
        state.forced_times += 1
    raise StuckError(task, [sorted(r for _, r in pad.owners.values()) for pad in state.pads])


def start_forcing(state: State, task: int, target: int) -> None:
    """From now on only what serves a target starts, and afterwards only what serves a task."""
    state.forced = target
    state.forced_for = task
    state.blocked_pad = -1


def _clear_for(state: State, task: int, target: int, keep_touched: bool) -> bool:
    """Whether a target gets its places now, or after what is in its way has been written out."""
    start_forcing(state, task, target)
    kept = state.touched[target] if keep_touched else ()
    for pad in state.pads:
        for address in list(pad.addresses):
            root = pad.owners[address][1]
            if root in kept:
                continue
            if state.where[root] == RESERVED or moving_cycles(state, root) is not None:
                evict(state, root)
    state.is_clearing = any(
        state.where[root] == LEAVING for pad in state.pads for _, root in pad.owners.values()
    )
    return state.is_clearing or _stack(state, target)


def _stack(state: State, task: int) -> bool:
    """Place what a task lacks, one on the other; on top what would need the most padding."""
    roots = _lacking(state, task)
    roots.sort(key=lambda root: state.aligned[root] - state.tables.size_bytes[root])
    position = state.position[task]
    return all(state.place(root, position, from_top=False, stacked=True) for root in roots)


def _first_obstacle(state: State, task: int) -> int:
    """The first copy or repetition that a task waits for and that waits for no other itself."""
    again = {
        state.added[number - state.n_tasks].root: number
        for number in range(state.n_tasks, len(state.engine))
        if state.start[number] < 0 and state.added[number - state.n_tasks].recomputed
    }
    seen = {task}
    open_tasks = [task]
    found = []
    while open_tasks:
        current = open_tasks.pop()
        before = _waits_for(state, current, again)
        if not before:
            found.append(current)
        for other in before:
            if other not in seen:
                seen.add(other)
                open_tasks.append(other)
    return min(found)


def _waits_for(state: State, task: int, again: dict[int, int]) -> list[int]:
    """Tasks that must end before a task starts; `again` are repetitions by the root they make."""
    before = [again[root] for root in state.touched[task] if again.get(root, task) != task]
    if task < state.n_tasks:
        before += [other for other in state.tables.after[task] if state.start[other] < 0]
    return before


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

"""The state of a simulated machine at one moment: what runs, what lies where, what is ready."""

from bisect import insort
from dataclasses import dataclass
from heapq import heappop, heappush

from tilewright.schedule.contents import Held
from tilewright.schedule.counted import CountedPad
from tilewright.schedule.options import Policy
from tilewright.schedule.order import Order
from tilewright.schedule.scratchpad import Scratchpad
from tilewright.schedule.tables import COMPUTE, STORE, Tables

ABSENT, RESIDENT, RESERVED, LEAVING, EVICTED = range(5)
"""Where a root is: not yet there, there, only its place is kept, there but being written out, gone
and to be fetched again before its next use."""

UNKNOWN = -1
"""Instead of cycles: they have not been looked for since the data changed."""

WAKE = -1
"""An event at which nothing ends, but a lane of a port becomes usable."""


Score = tuple[int, int]
"""Cycles, then cycles of added transfers."""

NO_LIMIT: Score = (1 << 62, 0)
"""A score that every run is below."""


class TooSlowError(Exception):
    """A run cannot end with a score below its limit; caught inside this package."""

    def __init__(self, is_short: bool) -> None:
        super().__init__()
        self.is_short = is_short
        """Whether somebody had waited for room until then."""


@dataclass(slots=True, kw_only=True)
class Added:
    """A transfer that the program did not have: a root's data goes out, or comes back."""

    root: int
    held: Held
    out: bool
    copy: int = 0
    """Which copy of the root it reads or writes."""
    saved: int = -1
    """Which saved copy it writes or reads; -1 if it comes from where it first came from."""
    origin: int = -1
    """The task that wrote what goes out, or that is repeated."""
    recomputed: bool = False
    inputs: tuple[tuple[int, int], ...] = ()
    """Of what is computed again: the roots it reads and which copies of them."""


@dataclass(frozen=True, slots=True)
class Awaited:
    """Room that is being cleared for a root of the task at a step, and what that costs."""

    root: int
    step: int
    cost: int


def planned_bytes(tables: Tables, policy: Policy) -> list[int]:
    """By scratchpad: how much of it may be planned to be full."""
    return [
        max(least, room * policy.room_percent // 100)
        for room, least in zip(tables.room_bytes, tables.least_bytes, strict=True)
    ]


class State:
    """Plain lists by task and by root; tasks that are added stand behind the program's."""

    def __init__(self, tables: Tables, order: Order, policy: Policy, keys: list[int]) -> None:
        self.tables = tables
        self.order = order
        self.policy = policy
        self.limit = NO_LIMIT
        """The run is of no use if it does not end with fewer cycles, or cycles of added tasks."""
        self.added_cycles = 0
        self.is_short = False
        """Whether something ever had to wait for room, or to leave to make some."""
        self.scratchpad = tables.scratchpad
        self.size_bytes = tables.size_bytes
        self.aligned = tables.aligned_bytes
        self.now = 0
        self._set_up_tasks(tables, order, keys)
        self._set_up_roots(tables, order)
        self._set_up_engines(tables)
        self.added: list[Added] = []
        self.saved_roots: list[int] = []
        self.current = 0
        self.forced = -1
        """The one task that may start now, with what serves it; -1: whatever can."""
        self.forced_for = -1
        """The task for whose sake another one may be forced."""
        self.is_clearing = False
        self.forced_times = 0
        self.forced_at = -1
        self.first_waiting = 0
        self.blocked_pad = -1
        self.awaited: Awaited | None = None

    def _set_up_tasks(self, tables: Tables, order: Order, keys: list[int]) -> None:
        n = len(tables.engine)
        self.n_tasks = n
        self.unfinished = n
        self.engine = list(tables.engine)
        self.cycles = list(tables.cycles)
        self.setup = list(tables.setup)
        self.ports = list(tables.ports)
        self.kind = list(tables.kind)
        self.touched = list(tables.touched)
        self.written = list(tables.written)
        self.sources = tables.sources
        self.position = list(order.position)
        self.key = list(keys)
        self.pending = [len(before) for before in tables.after]
        self.start = [-1] * n
        self.instance = [0] * n
        self.used_copies: dict[int, list[tuple[int, int]]] = {}
        self.release = order.release
        self.later = sorted(
            (self._release(task), keys[task], task)
            for task in range(n)
            if tables.kind[task] not in (COMPUTE, STORE) and not tables.after[task]
        )

    def _set_up_roots(self, tables: Tables, order: Order) -> None:
        n = len(tables.root)
        self.where = [ABSENT] * n
        self.missing = [0] * n
        self.running = [0] * n
        self.writing = [0] * n
        self.left = [len(users) for users in tables.users]
        self.waiting = list(self.left)
        self.uses = order.uses
        self.use_index = [0] * n
        self.address = [0] * n
        self.copy = [0] * n
        self.next_copy = [0] * n
        self.copy_address: dict[tuple[int, int], int] = {}
        self.copy_begin: dict[tuple[int, int], int] = {}
        self.copy_end: dict[tuple[int, int], int] = {}
        self.contents: list[list[Held]] = [[] for _ in range(n)]
        self.settled = [0] * n
        self.moving: list[int | None] = [UNKNOWN] * n
        """By root: what moving_cycles said when its contents last changed."""
        self.leaving = [0] * n
        self.promised: dict[int, int] = {}
        """Roots from which something will be computed again, and the step before which."""
        self.planned_bytes = planned_bytes(tables, self.policy)
        self.live_bytes = [live.copy() for live in order.live_bytes]
        spaces = [tables.program.space[name] for name in tables.scratchpads]
        self.pads: list[CountedPad | Scratchpad]
        if self.policy.addresses_later:
            pairs = zip(spaces, self.planned_bytes, strict=True)
            self.pads = [CountedPad(space, room_bytes) for space, room_bytes in pairs]
        else:
            last_step = None
            if self.policy.by_life:
                last_step = [order.position[uses[-1]] if uses else 0 for uses in order.uses]
            self.pads = [Scratchpad(space, last_step) for space in spaces]

    def _set_up_engines(self, tables: Tables) -> None:
        self.idle = [list(range(count)) for count in tables.instances]
        self.work = list(tables.work_cycles)
        self.lanes = [[0] * count for count in tables.instances]
        self.head = [0] * len(tables.instances)
        self.compute_engines = [e for e, queue in enumerate(self.order.queues) if queue]
        self.transfer_engines = tables.transfer_engines
        if self.policy.recompute:
            self.transfer_engines = list(range(len(tables.instances)))
        self.events: list[tuple[int, int]] = []
        self.wakes: set[int] = set()
        self.copies_in: list[list[tuple[int, int]]] = [[] for _ in tables.instances]
        self.copies_out: list[list[tuple[int, int]]] = [[] for _ in tables.instances]

    # Tasks

    def lanes_free(self, task: int) -> bool:
        """Whether a task's bytes could flow if it started now; otherwise a wake-up is noted."""
        ports = self.ports[task]
        if not ports:
            return True
        latest = 0
        for port in ports:
            lanes = self.lanes[port]
            # A port named twice gives two lanes, as for a transfer to two cores at once.
            free = lanes[0] if len(lanes) == 1 else sorted(lanes)[ports.count(port) - 1]
            if free > latest:
                latest = free
        if latest <= self.now + self.setup[task]:
            return True
        wake = latest - self.setup[task]
        if wake not in self.wakes:
            self.wakes.add(wake)
            heappush(self.events, (wake, WAKE))
        return False

    def begin(self, task: int) -> None:
        """Start a task now: its engine is idle, its lanes are free and its roots are placed."""
        self.start[task] = self.now
        if task < self.n_tasks:
            self._give_up_if_too_slow(task)
        if task == self.forced:
            self.forced = self.forced_for = -1 if task == self.forced_for else self.forced_for
        self.instance[task] = heappop(self.idle[self.engine[task]])
        end = self.now + self.cycles[task]
        for port in self.ports[task]:
            lanes = self.lanes[port]
            lanes[lanes.index(min(lanes))] = end
        is_added = task >= self.n_tasks
        counted = not is_added and self.kind[task] != STORE
        running, waiting, copy = self.running, self.waiting, self.copy
        for root in self.touched[task]:
            running[root] += 1
            if counted:
                waiting[root] -= 1
            if copy[root] and not is_added:
                self.used_copies.setdefault(task, []).append((root, copy[root]))
        for root in self.written[task]:
            self.writing[root] += 1
        heappush(self.events, (end, task))

    def _give_up_if_too_slow(self, task: int) -> None:
        """Raise TooSlowError if what remains from the start of a task on takes too long."""
        engine = self.engine[task]
        work = self.work[engine]
        self.work[engine] = work - self.cycles[task]
        left = max(self.order.left_cycles[task], work // self.tables.instances[engine])
        if self.now + left >= self.limit[0] and (self.now + left, self.added_cycles) >= self.limit:
            raise TooSlowError(self.is_short)

    def make_ready(self, task: int) -> None:
        """Everything a task waits for has ended: transfers may start from now on."""
        kind = self.kind[task]
        if kind == STORE:
            for root in self.touched[task]:
                self.waiting[root] -= 1
            insort(self.copies_out[self.engine[task]], (self.key[task], task))
        elif kind != COMPUTE:
            heappush(self.later, (self._release(task), self.key[task], task))

    def _release(self, task: int) -> int:
        return max(self.release[task], self.position[task] - self.policy.lookahead_steps)

    def release_copies_in(self) -> None:
        """Let transfers whose data is needed soon enough be chosen from."""
        later = self.later
        while later and later[0][0] <= self.current:
            _, key, task = heappop(later)
            insort(self.copies_in[self.engine[task]], (key, task))

    def add_task(self, added: Added, like: tuple[int, int, int, tuple[int, ...]], kind: int) -> int:
        """Append a task (engine, cycles, setup, ports) and return its number."""
        task = len(self.engine)
        engine, cycles, setup, ports = like
        self.engine.append(engine)
        self.cycles.append(cycles)
        self.added_cycles += cycles
        self.setup.append(setup)
        self.ports.append(ports)
        self.kind.append(kind)
        self.touched.append((added.root,))
        self.written.append(() if added.out else (added.root,))
        self.start.append(-1)
        self.instance.append(0)
        self.added.append(added)
        self.position.append(0)
        self.key.append(0)
        return task

    # Roots

    def next_use(self, root: int) -> int:
        """The first task by position that touches a root and has not started, or -1."""
        uses = self.uses[root]
        index = self.use_index[root]
        start = self.start
        while index < len(uses):
            task = uses[index]
            if start[task] < 0:
                return task
            index += 1
            self.use_index[root] = index
        return -1

    def next_position(self, root: int) -> int:
        """The step at which a root is needed next."""
        position = self.position[self.next_use(root)]
        if self.promised:
            return min(position, self.promised.get(root, position))
        return position

    def has_gap(self, root: int) -> bool:
        """Whether a root may get a place; only said before it is tried if room was short before."""
        pad = self.pads[self.scratchpad[root]]
        return not self.is_short or self.size_bytes[root] <= pad.largest_gap_bytes

    def place(
        self, root: int, position: int, from_top: bool = False, stacked: bool = False
    ) -> bool:
        """Find room for a root that is needed at a step; its place is then kept for it.

        If `stacked`, it takes the best gap from below, whatever the policy says.
        """
        pad = self.pads[self.scratchpad[root]]
        size_bytes = self.size_bytes[root] or 1
        address = None
        if size_bytes <= pad.largest_gap_bytes:
            address = pad.place(root, size_bytes, from_top, stacked)
        if address is None:
            self.is_short = True
            return False
        self.address[root] = address
        if self.where[root] == EVICTED:
            self.next_copy[root] += 1
        self.copy[root] = self.next_copy[root]
        self.where[root] = RESERVED
        self.note_live(root, position, 1)
        return True

    def settle(self, root: int) -> None:
        """A writer starts to fill the place that is kept for a root."""
        self.where[root] = RESIDENT
        self.copy_address[root, self.copy[root]] = self.address[root]
        self.copy_begin[root, self.copy[root]] = self.now

    def vacate(self, root: int, where: int) -> None:
        """Give a root's place back."""
        self.pads[self.scratchpad[root]].release(self.address[root])
        self.copy_end[root, self.copy[root]] = self.now
        self.where[root] = where

    def note_live(self, root: int, until: int, sign: int) -> None:
        """Count a root's bytes as live (or no longer) from the current step up to another."""
        if until > self.current:
            live = self.live_bytes[self.scratchpad[root]]
            change = sign * self.aligned[root]
            live[self.current : until] = [size + change for size in live[self.current : until]]

    def has_room_until(self, root: int, position: int) -> bool:
        """Whether every step before a position keeps its room if a root comes in now."""
        if position <= self.current:
            return True
        pad = self.scratchpad[root]
        if not self.policy.guarded:
            return pad != self.blocked_pad
        if pad == self.blocked_pad and self.awaited is None:
            return False
        most = max(self.live_bytes[pad][self.current : position])
        return most + self.aligned[root] <= self.planned_bytes[pad]

"""Who must wait for whom because a place in memory is used again.

A timetable is correct at its own times. A machine runs it by order alone, each task as soon as what
it waits for has ended, so every wait that addresses cause has to be said. `_control_edges.c` makes
the same walk, compiled.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate, chain

from tilewright.program.model import Timetable
from tilewright.schedule.clocks import Clocks
from tilewright.schedule.place_edges import PlaceUses, User
from tilewright.schedule.touched_places import (
    given_outside,
    is_memory,
    space_numbers,
    touched_places,
)

try:
    from tilewright.schedule import _control_edges as kernel
except ImportError:
    kernel = None  # type: ignore[assignment]  # not compiled here


def control_edges(timetable: Timetable) -> tuple[tuple[int, int], ...]:
    """Pairs of tasks, sorted: the second must not start before the first has ended.

    Together with `after` and the order of the tasks on every instance of an engine they order every
    two tasks of which one writes what the other touches.
    Pairs that follow from all of these are left out, and so are tasks that run at the same time.
    Two readers never wait for each other.
    """
    turns = _turns_of(timetable)
    try:
        found = _edges_by_kernel(turns, timetable) if is_compiled() else _edges(turns, timetable)
    except OverflowError:
        found = _edges(turns, timetable)
    order = turns.order
    return tuple(sorted([(order[first], order[second]) for first, second in found]))


def is_compiled() -> bool:
    """Whether the compiled walk is there."""
    return kernel is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turns:
    """Tasks in the order of their starts; all else is by turn, the place in this order."""

    order: list[int]
    queues: list[int]
    starts: list[int]
    ends: list[int]
    after: list[list[int]]


def _turns_of(timetable: Timetable) -> _Turns:
    slots, tasks = timetable.slots, timetable.program.tasks
    order = _start_order(timetable)
    turns = [0] * len(order)
    for turn, number in enumerate(order):
        turns[number] = turn
    queues = _queues(timetable)
    return _Turns(
        order=order,
        queues=[queues[number] for number in order],
        starts=[slots[number].start_cycle for number in order],
        ends=[slots[number].end_cycle for number in order],
        after=[[turns[first] for first in tasks[number].after] for number in order],
    )


def _edges(turns: _Turns, timetable: Timetable) -> list[tuple[int, int]]:
    """Pairs of turns of which the second must wait for the first."""
    touched = touched_places(timetable)
    clocks, ends = Clocks(turns.queues), turns.ends
    spaces = [PlaceUses() for _ in range(touched.n_spaces)]
    edges: list[tuple[int, int]] = []
    for turn, number in enumerate(turns.order):
        start = turns.starts[turn]
        known = clocks.begin([first for first in turns.after[turn] if ends[first] <= start])
        user = User(turn, turns.queues[turn], known)
        met: list[int] = []
        for is_write in (False, True):
            for row in touched.rows_of(number, is_write):
                place = touched.places[row]
                if place.begin < place.end:
                    met += spaces[touched.spaces[row]].waits(user, place, is_write)
        if met:
            needed = clocks.add([first for first in met if ends[first] <= start])
            edges += [(first, turn) for first in needed]
    return edges


def _edges_by_kernel(turns: _Turns, timetable: Timetable) -> Iterable[tuple[int, int]]:
    """The same, compiled; raises OverflowError if a number has more than 64 bits."""
    program = timetable.program
    order = array("q", turns.order)
    spaces = space_numbers(program)
    memories = [is_memory(space) for space in program.spaces]
    is_shared = bytes([memories[number] for number in spaces])
    rows_at, *columns, n_axes = kernel.places(
        *(program.tasks, order, program.buffers, timetable.addresses, given_outside(program)),
        *(array("q", spaces), is_shared),
    )
    rows = array("q", range(len(columns[0]) // 8))
    given = (
        array("q", turns.queues),
        array("q", turns.starts),
        array("q", turns.ends),
        *_flat(turns.after),
        *(array("q", column) for column in (rows_at, rows, *columns)),
    )
    n_queues = max(turns.queues, default=-1) + 1
    found = array("q", kernel.edges(given, n_queues, len(program.spaces), n_axes))
    return zip(found[::2], found[1::2], strict=True)


def _flat(lists: Sequence[Sequence[int]]) -> "tuple[array[int], array[int]]":
    """Where each of some lists begins (and the last one ends), and all of them in one."""
    begins = accumulate(map(len, lists), initial=0)
    return array("q", begins), array("q", chain.from_iterable(lists))


def _start_order(timetable: Timetable) -> list[int]:
    """Tasks by start; of those at one cycle the ones that take no time first, as they wait."""
    slots, tasks = timetable.slots, timetable.program.tasks
    place: Sequence[int] = range(len(tasks))
    if any(task.after and max(task.after) > number for number, task in enumerate(tasks)):
        place = _topological_places(
            [
                [first for first in task.after if slots[first].end_cycle <= slot.start_cycle]
                for task, slot in zip(tasks, slots, strict=True)
            ]
        )
    pairs = zip(slots, place, strict=True)
    keys = [(slot.start_cycle, slot.end_cycle, at) for slot, at in pairs]
    return sorted(range(len(tasks)), key=keys.__getitem__)


def _queues(timetable: Timetable) -> list[int]:
    """By task a number for the instance of the engine that it runs on."""
    numbers: dict[tuple[str, int], int] = {}
    pairs = zip(timetable.program.tasks, timetable.slots, strict=True)
    return [numbers.setdefault((t.engine, slot.instance), len(numbers)) for t, slot in pairs]


def _topological_places(dependencies: Sequence[Sequence[int]]) -> list[int]:
    """By task its place in an order in which each comes after what it waits for.

    Of those that could come next it is the one with the smallest number.

    Raises:
        ValueError: tasks wait for each other in a circle.

    >>> _topological_places([[2], [], []])
    [2, 0, 1]
    """
    followers: list[list[int]] = [[] for _ in dependencies]
    for task, before in enumerate(dependencies):
        for first in before:
            followers[first].append(task)
    missing = [len(before) for before in dependencies]
    ready = [task for task, count in enumerate(missing) if not count]
    places = [-1] * len(dependencies)
    for place in range(len(dependencies)):
        if not ready:
            raise ValueError(f"task {places.index(-1)} waits for itself through others")
        task = heappop(ready)
        places[task] = place
        for follower in followers[task]:
            missing[follower] -= 1
            if not missing[follower]:
                heappush(ready, follower)
    return places

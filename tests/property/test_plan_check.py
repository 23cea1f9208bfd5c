"""A plan is changed in one place: whenever running it goes wrong, the checker has said so."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from tests.plan_simulator import Element, data_faults, faults
from tests.timetable_builder import views_draft, views_network

from tilewright.program.model import Access, Slot, Task, Timetable, View
from tilewright.replay.check import problems
from tilewright.schedule.control_edges import control_edges

CHANGES = 600


def origin(tensor: str, at: tuple[int, ...]) -> Element:
    """Of the network of `views_draft`: r is c under another shape, c is b and behind it d."""
    if tensor == "r":
        return origin("c", (at[0] // 4, at[0] % 4))
    if tensor == "c":
        return ("b", at) if at[0] < 4 else ("d", (at[0] - 4, at[1]))
    return tensor, at


def moved_slot(timetable: Timetable, generator: random.Random) -> Timetable:
    slots = list(timetable.slots)
    at = generator.randrange(len(slots))
    by = generator.choice([-9, -4, -2, -1, 1, 2, 4, 9])
    old = slots[at]
    slots[at] = replace(old, start_cycle=old.start_cycle + by, end_cycle=old.end_cycle + by)
    return replace(timetable, slots=tuple(slots))


def swapped_slots(timetable: Timetable, generator: random.Random) -> Timetable:
    slots, tasks = list(timetable.slots), timetable.program.tasks
    one, other = generator.sample(range(len(slots)), 2)
    first, second = slots[one].start_cycle, slots[other].start_cycle
    slots[one] = Slot(start_cycle=second, end_cycle=second + tasks[one].cycles)
    slots[other] = Slot(start_cycle=first, end_cycle=first + tasks[other].cycles)
    return replace(timetable, slots=tuple(slots))


def other_instance(timetable: Timetable, generator: random.Random) -> Timetable:
    slots = list(timetable.slots)
    at = generator.randrange(len(slots))
    slots[at] = replace(slots[at], instance=generator.randrange(3))
    return replace(timetable, slots=tuple(slots))


def moved_buffer(timetable: Timetable, generator: random.Random) -> Timetable:
    """A root goes elsewhere, and its views with it."""
    program, addresses = timetable.program, list(timetable.addresses)
    roots = [n for n, buffer in enumerate(program.buffers) if buffer.view is None]
    root = generator.choice(roots)
    by = generator.choice([-16, -8, -3, 3, 8, 16, 24, 32, 48, 64])
    for number in range(len(addresses)):
        if program.root(number) == root:
            addresses[number] += by
    return replace(timetable, addresses=tuple(addresses))


def moved_view(timetable: Timetable, generator: random.Random) -> Timetable:
    buffers, addresses = list(timetable.program.buffers), list(timetable.addresses)
    views = [n for n, b in enumerate(buffers) if b.view is not None and b.view.origin is not None]
    at = generator.choice(views)
    view = buffers[at].view
    assert view is not None
    row = generator.randrange(5)
    buffers[at] = replace(buffers[at], view=View(view.buffer, (row, 0)))
    addresses[at] = addresses[view.buffer] + 4 * row
    program = replace(timetable.program, buffers=tuple(buffers))
    return replace(timetable, program=program, addresses=tuple(addresses))


def changed_access(timetable: Timetable, generator: random.Random) -> Timetable:
    """An access is dropped, made smaller, or goes to another buffer with such a box."""
    program = timetable.program
    tasks = list(program.tasks)
    at = generator.randrange(len(tasks))
    reads, writes = list(tasks[at].reads), list(tasks[at].writes)
    side = generator.choice([reads, writes])
    which = generator.randrange(len(side))
    access = side[which]
    kind = generator.randrange(3)
    if kind == 0:
        del side[which]
    elif kind == 1:
        (begin, end), *rest = access.box
        begin, end = generator.choice([(begin + 1, end), (begin, end - 1)])
        side[which] = Access(access.buffer, ((begin, end), *rest))
    else:
        fitting = [n for n, b in enumerate(program.buffers) if len(b.box) == len(access.box)]
        side[which] = Access(generator.choice(fitting), access.box)
    tasks[at] = replace(tasks[at], reads=tuple(reads), writes=tuple(writes))
    return replace(timetable, program=replace(program, tasks=tuple(tasks)))


def dropped_task(timetable: Timetable, generator: random.Random) -> Timetable:
    program = timetable.program
    at = generator.randrange(len(program.tasks))
    tasks = (*program.tasks[:at], *program.tasks[at + 1 :])
    slots = (*timetable.slots[:at], *timetable.slots[at + 1 :])
    return replace(timetable, program=replace(program, tasks=tasks), slots=slots)


def not_given(timetable: Timetable, generator: random.Random) -> Timetable:
    given = generator.sample(timetable.program.given, 1)
    return replace(timetable, program=replace(timetable.program, given=tuple(given)))


KINDS = (
    moved_slot,
    swapped_slots,
    other_instance,
    moved_buffer,
    moved_view,
    changed_access,
    dropped_task,
    not_given,
)


def test_the_plan_that_is_changed_runs_well() -> None:
    assert faults(views_draft().timetable(), origin) == []


def test_whenever_a_changed_plan_goes_wrong_the_checker_has_said_so() -> None:
    generator = random.Random(20)
    network = views_network()
    wrong: Counter[str] = Counter()
    accepted = 0
    for turn in range(CHANGES):
        change = KINDS[turn % len(KINDS)]
        timetable = change(views_draft().timetable(), generator)
        if turn % 3 == 0:
            timetable = moved_slot(timetable, generator)
        said = problems(timetable, network)
        accepted += not said
        seen = faults(timetable, origin)
        if seen:
            assert said, f"{change.__name__}, turn {turn}: {seen}"
            wrong.update(sorted(set(seen)))
    # Every way to go wrong was met, and the checker does not simply refuse whatever is changed.
    ways = ("slot", "instance", "engine", "port", "outside", "reserved", "data", "race", "result")
    assert [way for way in ways if not wrong[way]] == []
    assert accepted > CHANGES // 20


def retimed(
    timetable: Timetable, edges: tuple[tuple[int, int], ...], generator: random.Random
) -> Timetable:
    """The same tasks in the same order per engine, each whenever edges allow, or later."""
    tasks, slots = timetable.program.tasks, timetable.slots
    new: dict[int, Slot] = {}
    for number in sorted(range(len(tasks)), key=lambda n: (slots[n].start_cycle, n)):
        waits = [first for first, second in edges if second == number]
        waits += [n for n in new if tasks[n].engine == tasks[number].engine]
        start = max((new[n].end_cycle for n in waits), default=0) + generator.choice([0, 0, 5, 80])
        new[number] = Slot(start_cycle=start, end_cycle=start + tasks[number].cycles)
    return replace(timetable, slots=tuple(new[n] for n in range(len(tasks))))


def test_control_edges_alone_keep_the_data_right_at_other_times() -> None:
    timetable = views_draft().timetable()
    edges = control_edges(timetable)
    generator = random.Random(3)
    for _ in range(150):
        assert data_faults(retimed(timetable, edges, generator), origin) == []


@pytest.mark.parametrize("engine", ["dma", "core[0].vector"])
def test_without_the_edges_of_an_engine_data_goes_wrong(engine: str) -> None:
    timetable = views_draft().timetable()
    tasks: tuple[Task, ...] = timetable.program.tasks
    edges = tuple(e for e in control_edges(timetable) if tasks[e[0]].engine != engine)
    generator = random.Random(3)
    tries = [data_faults(retimed(timetable, edges, generator), origin) for _ in range(150)]
    assert any(tries)

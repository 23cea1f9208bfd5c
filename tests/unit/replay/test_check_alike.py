"""One of many alike tasks speaks for all: whatever makes a difference, a task is looked at."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.timetable_builder import views_draft, views_network

from tilewright.program.model import Access, Buffer, Charge, Program, Task
from tilewright.replay.check import problems
from tilewright.replay.check_accesses import accesses_of
from tilewright.replay.check_alike import unlike_tasks
from tilewright.replay.check_boxes import MOST_ELEMENTS
from tilewright.replay.check_made import made_boxes
from tilewright.replay.check_tiles import tiles_of


def draft() -> Program:
    return views_draft().timetable().program


def named(name: str) -> Task:
    return next(task for task in draft().tasks if task.name == name)


def looked_at(program: Program) -> list[str]:
    network, accesses = views_network(), accesses_of(program)
    tiles = tiles_of(program, network, accesses.kinds)
    found = unlike_tasks(program, network, accesses, tiles, made_boxes(network, tiles, accesses))
    return [program.tasks[number].name for number in found]


TASK_CHANGES: list[Callable[[Task], Task]] = [
    lambda task: replace(task, cycles=task.cycles - 1),
    lambda task: replace(task, engine="core[0].vector"),
    lambda task: replace(task, kind="move"),
    lambda task: replace(task, op="neg"),
    lambda task: replace(task, op=""),
    lambda task: replace(task, fused=("neg",)),
    lambda task: replace(task, mapping=0),
    lambda task: replace(task, setup_cycles=1),
    lambda task: replace(task, ports=("port",)),
    lambda task: replace(task, charges=()),
    lambda task: replace(task, charges=tuple(replace(c, energy_pj=1.0) for c in task.charges)),
    lambda task: replace(task, charges=(*task.charges, Charge("cmx", 1, 0, 0.0))),
    lambda task: replace(task, tile=(("D", 0, 1), ("K", 0, 4))),
    lambda task: replace(task, tile=(("D", 0, 4), ("K", 0, 2))),
    # As long, and behind the last row it makes nothing.
    lambda task: replace(task, tile=(("D", 3, 5), ("K", 0, 4))),
    lambda task: replace(task, tile=()),
    lambda task: replace(task, name=f"{task.op} strip 2 [0]"),
    lambda task: replace(task, name=f"{task.op}[0] #1"),
    lambda task: replace(task, reads=()),
    lambda task: replace(task, reads=(*task.reads, *task.reads)),
    lambda task: replace(task, reads=(*task.reads, *task.writes), writes=()),
    lambda task: replace(task, reads=(Access(task.reads[0].buffer, ((0, 1), (0, 4))),)),
    lambda task: replace(task, writes=(Access(task.writes[0].buffer, ((0, 1), (0, 4))),)),
]

BUFFER_CHANGES: list[Callable[[Buffer], Buffer]] = [
    lambda buffer: replace(buffer, tensor="w"),
    lambda buffer: replace(buffer, space="dram"),
    lambda buffer: replace(buffer, size_bytes=buffer.size_bytes + 1),
    lambda buffer: replace(buffer, box=((0, 8), (0, 4))),
    lambda buffer: replace(buffer, name=f"{buffer.tensor} partial sums"),
]


@pytest.mark.parametrize("name", ["relu[0]", "load x"])
def test_a_task_that_does_the_same_elsewhere_is_not_looked_at(name: str) -> None:
    fine = named(name)
    box = ((2, 4), (0, 4)) if fine.tile else fine.reads[0].box
    elsewhere = replace(
        fine,
        name="twin",
        after=(0,),
        tile=(("D", 2, 4), ("K", 0, 4)) if fine.tile else (),
        reads=(Access(fine.reads[0].buffer, box),),
        writes=(Access(fine.writes[0].buffer, box),),
    )
    program = replace(draft(), tasks=(fine, elsewhere))
    assert looked_at(program) == [name]


@pytest.mark.parametrize("change", TASK_CHANGES)
def test_a_task_that_differs_is_looked_at(change: Callable[[Task], Task]) -> None:
    fine = named("relu[0]")
    other = change(replace(fine, name="twin"))
    assert looked_at(replace(draft(), tasks=(fine, other, fine))) == ["relu[0]", other.name]


def test_a_task_that_touches_nothing_is_not_like_one_that_reads() -> None:
    fine = named("relu[0]")
    nothing, reading = replace(fine, reads=(), writes=()), replace(fine, name="twin", writes=())
    assert looked_at(replace(draft(), tasks=(nothing, reading))) == ["relu[0]", "twin"]


@pytest.mark.parametrize("change", BUFFER_CHANGES)
def test_a_task_of_another_buffer_is_looked_at(change: Callable[[Buffer], Buffer]) -> None:
    program, fine = draft(), named("relu[0]")
    buffers = (*program.buffers, change(program.buffers[fine.reads[0].buffer]))
    reads = (Access(len(program.buffers), fine.reads[0].box),)
    other = replace(fine, name="twin", reads=reads)
    program = replace(program, buffers=buffers, tasks=(fine, other))
    assert looked_at(program) == ["relu[0]", "twin"]
    same = replace(program, buffers=(*program.buffers[:-1], program.buffers[fine.reads[0].buffer]))
    assert looked_at(same) == ["relu[0]"]


def test_every_copy_that_reads_a_box_twice_is_looked_at() -> None:
    """One that copies a box twice reads as many elements as one that copies two."""
    load = named("load x")
    (read,), (write,) = load.reads, load.writes
    halves = [((0, 2), (0, 4)), ((2, 4), (0, 4))]
    both = [tuple(Access(end.buffer, box) for box in halves) for end in (read, write)]
    two = replace(load, name="two", reads=both[0], writes=both[1])
    twice = replace(two, name="twice", reads=(both[0][0],) * 2, writes=(both[1][0],) * 2)
    program = replace(draft(), tasks=(two, twice, two, twice))
    assert looked_at(program) == ["two", "twice", "twice"]


def test_elements_that_cannot_be_counted_make_no_task_like_another() -> None:
    program, fine = draft(), named("relu[0]")
    large = replace(program.buffers[0], box=((0, MOST_ELEMENTS), (0, 4)))
    program = replace(program, buffers=(*program.buffers, large), tasks=(fine, fine))
    assert looked_at(program) == ["relu[0]", "relu[0]"]


FAULTS: list[Callable[[Task], Task]] = [
    lambda task: replace(task, cycles=task.cycles - 3),
    lambda task: replace(task, engine="core[0]"),
    lambda task: replace(task, ports=()),
    lambda task: replace(task, setup_cycles=1),
    lambda task: replace(task, charges=()),
    lambda task: replace(task, charges=(*task.charges, *task.charges)),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_among_alike_transfers_is_told_for_each_that_has_it(
    fault: Callable[[Task], Task],
) -> None:
    timetable, fine = views_draft().timetable(), named("load x")
    wrong = [replace(fault(fine), name=name) for name in ("wrong", "wrong too")]

    def told(*more: Task) -> list[str]:
        program = replace(timetable.program, tasks=(*timetable.program.tasks, *more))
        slots = (*timetable.slots, *timetable.slots[:1] * len(more))
        found = problems(replace(timetable, program=program, slots=slots), views_network())
        return [problem.message for problem in found if problem.message.startswith("task ")]

    assert told(fine, fine) == []
    one, other = (told(fine, task, fine) for task in wrong)
    assert one
    assert [message.replace("wrong", "wrong too") for message in one] == other
    assert sorted(told(fine, *wrong, fine)) == sorted([*one, *other])

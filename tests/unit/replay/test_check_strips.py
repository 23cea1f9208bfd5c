"""Plans in strips that were made wrong on purpose: checker and replay find each of them."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

import pytest
from tests.small_machines import Small, small_machine
from tests.strip_cases import InStrips, in_strips, tower

from tilewright.program.model import Access, Task, Timetable
from tilewright.program.strips import strip_of
from tilewright.replay.check import problems
from tilewright.replay.verify import verify
from tilewright.strategy.columns import stretch_of

COLUMNS = 3
"""The axis of columns in batch, channels, rows, columns."""


@cache
def planned() -> InStrips:
    """The first four ops of the tower in two strips of ten columns; they share two columns."""
    machine = small_machine(Small(kind="ends", size_bytes=16 * 1024, dma=True))
    network = tower()
    stretch = stretch_of(network, network.ops[:4])
    assert stretch is not None
    made = in_strips(network, machine, ((stretch, 2),))
    assert made is not None
    return made


def changed(is_meant: Callable[[Task], bool], change: Callable[[Task], Task]) -> Timetable:
    """The plan with some of its tasks changed."""
    plan = planned().timetable
    tasks = [change(task) if is_meant(task) else task for task in plan.program.tasks]
    return replace(plan, program=replace(plan.program, tasks=tuple(tasks)))


def without(is_meant: Callable[[Task], bool]) -> Timetable:
    """The plan without some of its tasks; nobody waits for them."""
    plan = planned().timetable
    left = [n for n, task in enumerate(plan.program.tasks) if not is_meant(task)]
    number = {old: new for new, old in enumerate(left)}

    def known(numbers: Iterable[int]) -> tuple[int, ...]:
        return tuple(number[n] for n in numbers if n in number)

    tasks = [plan.program.tasks[n] for n in left]
    return replace(
        plan,
        program=replace(
            plan.program, tasks=tuple(replace(task, after=known(task.after)) for task in tasks)
        ),
        slots=tuple(plan.slots[n] for n in left),
        edges=tuple((number[a], number[b]) for a, b in plan.edges if a in number and b in number),
    )


def of_strip(op: str, strip: int) -> Callable[[Task], bool]:
    return lambda task: task.op == op and strip_of(task) == strip


def moved(task: Task, by: int) -> Task:
    """A task that claims to compute other columns."""
    tile = [(dim, a + by, b + by) if dim == "OX" else (dim, a, b) for dim, a, b in task.tile]
    return replace(task, tile=tuple(tile))


def narrower(accesses: tuple[Access, ...]) -> tuple[Access, ...]:
    """Accesses of feature maps without their first column."""
    found = []
    for buffer, box in accesses:
        *front, (start, stop) = box
        is_map = len(box) == COLUMNS + 1 and stop - start > 2
        found.append(Access(buffer, (*front, (start + 1, stop)) if is_map else box))
    return tuple(found)


def cut_sums(task: Task) -> Task:
    """A task that leaves out a channel of what it adds up."""
    tile = [(dim, a, b - 1) if dim == "C" else (dim, a, b) for dim, a, b in task.tile]
    return replace(task, tile=tuple(tile))


def messages(plan: Timetable) -> str:
    return "\n".join(problem.message for problem in problems(plan, planned().network))


def test_the_plan_itself_is_right() -> None:
    made = planned()
    assert problems(made.timetable, made.network) == []
    assert verify(made.timetable, made.network).agrees


def test_a_strip_that_leaves_out_a_column_at_its_border_is_found() -> None:
    wrong = changed(
        of_strip("depthwise", 2), lambda task: replace(task, reads=narrower(task.reads))
    )
    assert "of first and reads nothing of" in messages(wrong)


def test_a_column_that_a_strip_did_not_make_is_missing_where_it_is_read() -> None:
    wrong = changed(of_strip("first", 2), lambda task: replace(task, writes=narrower(task.writes)))
    assert "and nobody has written" in messages(wrong)


def test_a_strip_that_computes_other_columns_is_found() -> None:
    wrong = changed(of_strip("sum", 2), lambda task: moved(task, -1))
    assert "no task computes" in messages(wrong)
    assert not verify(wrong, planned().network).agrees


@pytest.mark.parametrize("op", ["first", "depthwise", "sum", "pool"])
def test_a_strip_that_is_left_out_is_found(op: str) -> None:
    assert f"of {op}; " in messages(without(of_strip(op, 2)))


def test_a_strip_with_incomplete_sums_is_found() -> None:
    # The last of three channels: 5 x 9 x 11 results of 3 x 3 products each.
    missing = (
        "no task computes for strip 1 B 0:1, K 0:5, C 2:3, OY 0:9, OX 0:11, FY 0:3, FX 0:3 of "
        "first; 4455 of its 13365 points are missing"
    )
    assert missing in messages(changed(of_strip("first", 1), cut_sums))


def test_a_strip_that_reads_what_the_other_one_made_is_found() -> None:
    plan = planned().timetable
    made = {
        strip: next(
            access.buffer
            for task in plan.program.tasks
            if of_strip("first", strip)(task)
            for access in task.writes
        )
        for strip in (1, 2)
    }
    buffers = plan.program.buffers

    def exchanged(task: Task) -> Task:
        reads = []
        for buffer, box in task.reads:
            other = made[1] if buffer == made[2] else buffer
            ends = zip(box, buffers[other].box, strict=True)
            inside = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in ends)
            reads.append(Access(other, inside if other != buffer else box))
        return replace(task, reads=tuple(reads))

    assert messages(changed(of_strip("depthwise", 2), exchanged))


def test_nothing_is_computed_twice_but_by_two_strips() -> None:
    # Without their marks the same tasks compute two columns twice.
    for strip in (1, 2):
        wrong = changed(of_strip("first", strip), lambda task: replace(task, name="first"))
        assert "both compute" in messages(wrong)
    # Under one mark, too.
    wrong = changed(
        of_strip("first", 1),
        lambda task: replace(task, name=task.name.replace("strip 1", "strip 2")),
    )
    assert "both compute" in messages(wrong)

"""Plans that claim to be quicker or cheaper than their mappings and ways: none is accepted."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.planner import Plan, plan
from tilewright.program.model import Task, Timetable
from tilewright.replay.check import problems
from tilewright.replay.verify import verify


@cache
def planned() -> Plan:
    return plan(load_network("lenet5"), load_machine("edge_tpu_like"))


def with_task(number: int, task: Task) -> Timetable:
    """The plan with another task, whose slot is as long as the task."""
    found = planned().timetable
    tasks, slots = list(found.program.tasks), list(found.slots)
    tasks[number] = task
    start = slots[number].start_cycle
    slots[number] = replace(slots[number], end_cycle=start + task.cycles)
    return replace(found, program=replace(found.program, tasks=tuple(tasks)), slots=tuple(slots))


def said(timetable: Timetable) -> list[str]:
    return [problem.message for problem in problems(timetable, planned().network)]


def number_of(kind: str) -> int:
    """The first load, or the first task that has a mapping and takes more than a cycle."""
    tasks = planned().timetable.program.tasks
    return next(
        number
        for number, task in enumerate(tasks)
        if task.kind == kind and (kind != "compute" or task.mapping is not None) and task.cycles > 1
    )


def cheaper(task: Task) -> Task:
    first, *rest = task.charges
    return replace(task, charges=(replace(first, energy_pj=first.energy_pj / 2), *rest))


def shorter(task: Task) -> Task:
    return replace(task, cycles=task.cycles - 1)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (shorter, "its mapping takes"),
        (cheaper, "its mapping does"),
        (lambda task: replace(task, engine="core[0].vector"), "has a mapping and is on"),
        (lambda task: replace(task, mapping=10_000), "which does not exist"),
        (lambda task: replace(task, mapping=-1), "which does not exist"),
    ],
)
def test_a_tile_is_no_better_than_its_mapping(
    change: Callable[[Task], Task], expected: str
) -> None:
    number = number_of("compute")
    changed = change(planned().timetable.program.tasks[number])
    (message,) = [m for m in said(with_task(number, changed)) if "apping" in m]
    assert message.startswith(f"task {changed.name} ")
    assert expected in message


def test_a_tile_has_its_own_mapping() -> None:
    """Of another op, whose loops are as many but of other lengths."""
    found = planned().timetable
    number = number_of("compute")
    task = found.program.tasks[number]
    dims = [dict(mapped.setup.nest.dims) for mapped in found.program.mappings]
    assert task.mapping is not None
    other = next(at for at, lengths in enumerate(dims) if lengths != dims[task.mapping])
    assert any("loops of" in m for m in said(with_task(number, replace(task, mapping=other))))


@pytest.mark.parametrize("change", [shorter, cheaper])
def test_a_file_that_was_changed_is_not_replayed_without_a_word(
    change: Callable[[Task], Task],
) -> None:
    """Nothing of what is computed changes; mappings are not in the file, but ways are."""
    number = number_of("load")
    timetable = with_task(number, change(planned().timetable.program.tasks[number]))
    read = replace(timetable, program=replace(timetable.program, mappings=()))
    found = verify(read, planned().network)
    assert all(output.agrees for output in found.outputs)
    assert not found.agrees


def test_the_plan_itself_is_right() -> None:
    assert said(planned().timetable) == []

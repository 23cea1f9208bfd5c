"""A transfer is looked at although others like it are fine, whatever makes the difference."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.timetable_builder import views_draft, views_network

from tilewright.program.model import Program, Task
from tilewright.replay.check_routes import route_problems

CHANGES: list[Callable[[Task], Task]] = [
    lambda task: replace(task, cycles=task.cycles - 100),
    lambda task: replace(task, engine="core[0]"),
    lambda task: replace(task, charges=()),
    lambda task: replace(task, charges=(*task.charges, *task.charges)),
]


def program_with(task: Task, *more: Task) -> Program:
    program = views_draft().timetable().program
    return replace(program, tasks=(*program.tasks, task, *more))


@pytest.mark.parametrize("change", CHANGES)
def test_a_fault_among_alike_transfers_is_found(change: Callable[[Task], Task]) -> None:
    fine = next(task for task in views_draft().timetable().program.tasks if task.kind == "load")
    assert list(route_problems(program_with(fine, fine), views_network())) == []
    wrong = replace(change(fine), name="wrong")
    said = [p.message for p in route_problems(program_with(fine, wrong, fine), views_network())]
    assert said
    assert all("task wrong" in message for message in said)


def test_every_one_of_alike_faults_is_told() -> None:
    fine = next(task for task in views_draft().timetable().program.tasks if task.kind == "load")
    wrong = replace(fine, charges=())
    told = len(list(route_problems(program_with(wrong), views_network())))
    assert len(list(route_problems(program_with(wrong, wrong), views_network()))) == 2 * told > 0

"""Changes to a timetable made by hand, for tests of what finds its faults."""

from tests.timetable_builder import Draft

from tilewright.program.model import Slot, Task
from tilewright.replay.check import problems


def messages(draft: Draft) -> list[str]:
    return [problem.message for problem in problems(draft.timetable())]


def number(draft: Draft, name: str) -> int:
    names = [task.name for task in draft.tasks]
    return names.index(name) if name in names else [b.name for b in draft.buffers].index(name)


def change_task(draft: Draft, name: str, changed: Task) -> None:
    draft.tasks[number(draft, name)] = changed


def task(draft: Draft, name: str) -> Task:
    return draft.tasks[number(draft, name)]


def start_at(draft: Draft, name: str, start: int) -> None:
    length = task(draft, name).cycles
    at = number(draft, name)
    instance = draft.slots[at].instance
    draft.slots[at] = Slot(start_cycle=start, end_cycle=start + length, instance=instance)


def move_to(draft: Draft, name: str, address: int) -> None:
    draft.addresses[number(draft, name)] = address

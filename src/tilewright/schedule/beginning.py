"""Data that lies in a scratchpad from the start, as if a task of no time had written it there.

The simulations know only of data that tasks write. So they get a program with one task more, which
stands before all others and makes what is given; it is taken out of the timetable again.
"""

from dataclasses import replace

from tilewright.program.model import Access, Engine, Program, Slot, Task, Timetable

_NAME = "what is given"
"""Of the task, and of an engine of its own."""


def with_beginning(program: Program) -> Program:
    """The program with such a task; the same where nothing is given in a scratchpad."""
    pads = [space.name for space in program.spaces if space.kind == "scratchpad"]
    inside = [number for number in program.given if program.buffers[number].space in pads]
    if not inside:
        return program
    made = tuple(Access(number, program.buffers[number].box) for number in inside)
    # It reads what it writes: nobody makes it once more instead of keeping it.
    first = Task(name=_NAME, kind="compute", engine=_NAME, cycles=0, reads=made, writes=made)
    tasks = [
        replace(task, after=tuple([other + 1 for other in task.after]) or (0,))
        for task in program.tasks
    ]
    return replace(
        program,
        engines=(*program.engines, Engine(name=_NAME)),
        tasks=(first, *tasks),
        given=tuple(number for number in program.given if number not in inside),
    )


def is_beginning(task: Task) -> bool:
    """Whether a task is that one."""
    return task.engine == _NAME


def without_beginning(timetable: Timetable, program: Program) -> Timetable:
    """The timetable of the program as it was, and of what was added to it."""
    scheduled = timetable.program
    if not scheduled.tasks or not is_beginning(scheduled.tasks[0]):
        return timetable
    tasks = [
        replace(task, after=tuple([other - 1 for other in task.after if other]))
        for task in scheduled.tasks[1:]
    ]
    whole = replace(scheduled, engines=program.engines, tasks=tuple(tasks), given=program.given)
    slots: tuple[Slot, ...] = timetable.slots[1:]
    return replace(timetable, program=whole, slots=slots)

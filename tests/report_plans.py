"""Plans for tests of reports: small ones, and one with very many tasks."""

from dataclasses import replace
from functools import cache

from tests.cascade_cases import prepared

from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.plan_drafts import Drafts
from tilewright.planner import Plan, PlanOptions, plan
from tilewright.program.cascade import Cascade, Strategy
from tilewright.program.model import Access, Slot, Timetable, View


@cache
def small_plan(network: str = "resnet18", machine: str = "npu_37xx") -> Plan:
    return plan(load_network(network), load_machine(machine), PlanOptions())


@cache
def cascaded_plan() -> Plan:
    """`notes_cnn` with two cascades, conv1 to pool1 and conv2 to pool2, its input waiting outside.

    Rows are the axis 2. A pool makes half as many rows as it reads, and each row of a convolution
    takes three rows of its input, the next row one more.
    """
    cascades = (
        Cascade(first=0, last=1, axis=2, step=4),
        Cascade(first=2, last=3, axis=2, step=2),
    )
    network, machine = load_network("notes_cnn"), load_machine("ethos_u65_256")
    drafts = Drafts(prepared(network, machine), PlanOptions(), lambda step: None, {})
    candidate = drafts.candidate("latency", Strategy(cascades=cascades, gone=("input",)))
    assert candidate is not None
    draft = drafts.draft(candidate)
    assert draft is not None
    return drafts.finished(draft)


def run_again_and_again(made: Plan, tasks: int) -> Plan:
    """A plan run one time after the other until there are so many tasks."""
    program = made.program
    times = -(-tasks // len(program.tasks))
    n_tasks, n_buffers = len(program.tasks), len(program.buffers)
    many_tasks, many_buffers, slots = [], [], []
    for turn in range(times):
        later, shift = turn * n_tasks, turn * n_buffers
        many_buffers += [
            b if b.view is None else replace(b, view=View(b.view.buffer + shift, b.view.origin))
            for b in program.buffers
        ]
        many_tasks += [
            replace(
                task,
                after=tuple(n + later for n in task.after if n + later < tasks),
                reads=tuple(Access(a.buffer + shift, a.box) for a in task.reads),
                writes=tuple(Access(a.buffer + shift, a.box) for a in task.writes),
            )
            for task in program.tasks
        ]
        slots += [
            Slot(
                start_cycle=slot.start_cycle + turn * made.cycles,
                end_cycle=slot.end_cycle + turn * made.cycles,
                instance=slot.instance,
            )
            for slot in made.timetable.slots
        ]
    turns = [(turn * n_tasks, turn * n_buffers) for turn in range(times)]
    timetable = Timetable(
        program=replace(
            program,
            tasks=tuple(many_tasks[:tasks]),
            buffers=tuple(many_buffers),
            results=tuple(b + shift for _, shift in turns for b in program.results),
            given=tuple(b + shift for _, shift in turns for b in program.given),
        ),
        slots=tuple(slots[:tasks]),
        addresses=made.timetable.addresses * times,
        edges=tuple(
            (first + later, second + later)
            for later, _ in turns
            for first, second in made.timetable.edges
            if max(first, second) + later < tasks
        ),
    )
    return replace(made, timetable=timetable)

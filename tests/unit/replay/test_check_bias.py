"""A bias is added by the task that ends a sum, and by no other."""

from dataclasses import replace
from functools import cache

from tests.small_machines import Small, small_machine

import tilewright
from tilewright.network.zoo import layers
from tilewright.program.model import Access, Task
from tilewright.replay.check import problems


@cache
def planned() -> tilewright.Plan:
    """Sums so long that they are cut, with a bias."""
    net = layers.draft("sums", 8)
    scores = layers.gemm(net, "scores", layers.given(net, "data", (1, 512)), 96)
    machine = small_machine(Small(size_bytes=600, dma=True))
    return tilewright.plan(net.finish(scores), machine)


def slices() -> list[int]:
    return [n for n, task in enumerate(planned().program.tasks) if task.op == "scores"]


def is_bias(access: Access) -> bool:
    return planned().program.buffers[access.buffer].name == "scores.bias"


def ending() -> Task:
    tasks = planned().program.tasks
    return next(tasks[n] for n in slices() if any(map(is_bias, tasks[n].reads)))


def messages(changed: Task, reads: tuple[Access, ...]) -> list[str]:
    """What is said of the plan if one task reads something else."""
    made = planned()
    tasks = [replace(t, reads=reads) if t is changed else t for t in made.program.tasks]
    program = replace(made.program, tasks=tuple(tasks))
    told = problems(replace(made.timetable, program=program), made.network, made.machine)
    return [problem.message for problem in told]


def test_nothing_is_wrong_with_the_plan() -> None:
    assert messages(ending(), ending().reads) == []


def test_a_slice_that_reads_the_bias_would_add_it_too() -> None:
    first = planned().program.tasks[slices()[0]]
    told = messages(first, (*first.reads, *filter(is_bias, ending().reads)))
    assert (
        "task scores [K0:8 C0:20] leaves its sums to others and reads scores.bias, which the last "
        "of them adds or applies"
    ) in told


def test_a_bias_that_nobody_reads_is_missed() -> None:
    told = messages(ending(), tuple(a for a in ending().reads if not is_bias(a)))
    assert any("of scores.bias and reads nothing of" in message for message in told)

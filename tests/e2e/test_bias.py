"""Of an op that is cut into several tasks, exactly one adds the bias to each result."""

from dataclasses import replace

import numpy as np
import pytest
from tests.small_machines import Kind, Small, small_machine

import tilewright
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.model import Access, Program, Task
from tilewright.replay.check import problems
from tilewright.replay.verify import verify

OUTPUTS = 96


def long_sums() -> Network:
    """Sums so long that their weights come in several parts, with a bias and a ReLU behind them."""
    net = layers.draft("sums", 8)
    scores = layers.gemm(net, "scores", layers.given(net, "data", (1, 512)), OUTPUTS)
    return net.finish(layers.activation(net, "relu", scores, "relu"))


def planned(kind: Kind = "one", cores: int = 1) -> tilewright.Plan:
    machine = small_machine(Small(kind=kind, size_bytes=600, cores=cores, dma=True))
    return tilewright.plan(long_sums(), machine)


def touches(program: Program, accesses: tuple[Access, ...], name: str) -> bool:
    return any(program.buffers[access.buffer].name == name for access in accesses)


def leaves_sums(program: Program, task: Task) -> bool:
    return any("partial sums" in program.buffers[access.buffer].name for access in task.writes)


@pytest.mark.parametrize("kind", ["one", "ends", "split"])
@pytest.mark.parametrize("cores", [1, 3])
def test_each_element_of_a_bias_is_read_by_the_one_task_that_ends_its_sum(
    kind: Kind, cores: int
) -> None:
    made = planned(kind, cores)
    program = made.program
    adding = [task for task in program.tasks if touches(program, task.reads, "scores.bias")]
    adding = [task for task in adding if task.kind == "compute"]
    products = [task for task in program.tasks if task.op == "scores"]
    assert len(adding) < len(products)
    assert not any(leaves_sums(program, task) for task in adding)
    times = np.zeros(OUTPUTS, dtype=np.int64)
    for task in adding:
        begin, end = next((a, b) for dim, a, b in task.tile if dim == "K")
        times[begin:end] += 1
    assert times.tolist() == [1] * OUTPUTS
    assert verify(made.timetable, made.network).agrees


def forged(made: tilewright.Plan, number: int, reads: tuple[Access, ...]) -> str:
    tasks = list(made.program.tasks)
    tasks[number] = replace(tasks[number], reads=reads)
    program = replace(made.program, tasks=tuple(tasks))
    told = problems(replace(made.timetable, program=program), made.network, made.machine)
    return "\n".join(problem.message for problem in told)


def test_a_bias_that_is_added_twice_or_not_at_all_is_noticed() -> None:
    made = planned()
    program = made.program
    numbers = [n for n, task in enumerate(program.tasks) if task.op == "scores"]
    first = next(n for n in numbers if leaves_sums(program, program.tasks[n]))
    last = next(n for n in numbers if touches(program, program.tasks[n].reads, "scores.bias"))
    reads = program.tasks[last].reads
    bias = [a for a in reads if touches(program, (a,), "scores.bias")]
    twice = forged(made, first, (*program.tasks[first].reads, *bias))
    assert "reads scores.bias, which the last of them adds or applies" in twice
    never = forged(made, last, tuple(a for a in reads if a not in bias))
    assert "of scores.bias and reads nothing of" in never

"""Of an op that is cut into several tasks, exactly one adds the bias to each result."""

import numpy as np
import pytest
from tests.small_machines import Kind, Small, small_machine

import tilewright
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.model import Access, Program, Task
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

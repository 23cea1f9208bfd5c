"""Random networks whose inputs cannot be read again: each element comes once, to all at once."""

from math import prod

from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.cascade_cases import networks
from tests.random_cases import examples, repeatable
from tests.small_machines import Small, small_machine

import tilewright
from tilewright.errors import InfeasibleError
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import Plan, PlanObjective, PlanOptions
from tilewright.replay.verify import verify

machines = st.builds(
    Small,
    kind=st.just("once"),
    size_bytes=st.sampled_from([256, 512, 1024, 4096]),
    cores=st.integers(1, 3),
    alignment_bytes=st.sampled_from([1, 16]),
    dma=st.booleans(),
)
objectives: st.SearchStrategy[PlanObjective] = st.sampled_from(("latency", "memory", "energy"))


def elements_brought(plan: Plan) -> int:
    """Of inputs, counted once for each transfer, to however many cores it goes."""
    buffers = plan.program.buffers
    boxes = [
        access.box
        for task in plan.program.tasks
        for access in dict.fromkeys(task.reads)
        if buffers[access.buffer].space == "data"
    ]
    return sum(prod(stop - start for start, stop in box) for box in boxes)


@settings(repeatable, max_examples=examples(40))
@given(networks(), machines, objectives)
def test_plans_read_each_element_once(
    network: Network, small: Small, objective: PlanObjective
) -> None:
    # The plan is checked, and that nothing is read twice is one of the checks.
    options = PlanOptions(objective=objective, lpf_limit=3)
    try:
        found = tilewright.plan(network, small_machine(small), options)
    except InfeasibleError:
        reject()
    inputs = [tensor for tensor in network.tensors if tensor.role == "input"]
    assert elements_brought(found) <= sum(tensor.elements for tensor in inputs)
    assert verify(found.timetable, network).agrees


def test_an_image_larger_than_the_scratchpad_comes_row_by_row() -> None:
    net = layers.draft("image", 8)
    data = layers.given(net, "x", (1, 3, 64, 64))
    data = layers.conv(net, "first", data, 4, layers.square(3, 2, 1))
    data = layers.conv(net, "second", data, 4, layers.square(3, 2, 1))
    network = net.finish(layers.conv(net, "third", data, 4, layers.square(3, 2, 1)))
    for cores in (1, 2):
        small = Small(kind="once", size_bytes=4 * 1024, cores=cores, dma=True)
        found = tilewright.plan(network, small_machine(small))
        assert elements_brought(found) == 3 * 64 * 64
        assert max(found.peak_bytes.values()) <= 4 * 1024
        assert verify(found.timetable, network).agrees

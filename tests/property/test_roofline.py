"""What no plan can do better, against the shortest of all runs of small programs."""

from collections.abc import Iterator
from itertools import permutations

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.small_machines import Small, small_machine
from tests.small_networks import Draw, window_op

from tilewright.errors import InfeasibleError
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.lower import lower, prepare
from tilewright.program.model import Program, Task
from tilewright.program.tile import Goal

QUICK = SearchOptions(lpf_limit=3, unrollings=2)
MOST_TASKS = 6


@st.composite
def short_networks(draw: Draw) -> Network:
    """One or two windows over an input."""
    net = layers.draft("short", 8)
    shape = (1, draw(st.integers(1, 9)), draw(st.integers(2, 9)), draw(st.integers(2, 9)))
    made = [layers.given(net, "x", shape)]
    for number in range(draw(st.integers(1, 2))):
        found = window_op(net, f"op{number}", made[-1:], draw)
        if found is not None:
            made.append(found)
    assume(len(made) > 1)
    return net.builder.finish([made[-1].name])


def orders(program: Program) -> Iterator[tuple[int, ...]]:
    """Orders of starts in which nobody is before what it waits for."""
    for order in permutations(range(len(program.tasks))):
        place = {task: at for at, task in enumerate(order)}
        if all(
            place[before] < place[number]
            for number, task in enumerate(program.tasks)
            for before in task.after
        ):
            yield order


def phases(task: Task, start: int) -> Iterator[tuple[str, int, int]]:
    """What a task holds from when to when: its engine, and ports while bytes flow."""
    yield task.engine, start, start + task.cycles
    for port in task.ports:
        yield port, start + task.setup_cycles, start + task.cycles


def is_free(held: list[tuple[str, int, int]], phase: tuple[str, int, int], count: int) -> bool:
    name, start, end = phase
    others = [(since, until) for other, since, until in held if other == name]
    moments = [start, *(since for since, _ in others if start < since < end)]
    return all(sum(a <= moment < b for a, b in others) < count for moment in moments)


def shortest(program: Program) -> int:
    """The end of the shortest run, with memory without end: every order, each task at once."""
    counts = {engine.name: engine.count for engine in program.engines}
    best = 1 << 30
    for order in orders(program):
        held: list[tuple[str, int, int]] = []
        ends: dict[int, int] = {}
        for number in order:
            task = program.tasks[number]
            start = max((ends[before] for before in task.after), default=0)
            while not all(is_free(held, p, counts[p[0]]) for p in phases(task, start)):
                start += 1
            held += phases(task, start)
            ends[number] = start + task.cycles
        best = min(best, max(ends.values()))
    return best


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    short_networks(),
    st.sampled_from(["one", "split", "ends"]),
    st.booleans(),
    st.sampled_from(["latency", "energy", "traffic"]),
)
def test_no_run_of_a_small_program_is_shorter_than_the_roofline(
    network: Network, kind: str, dma: bool, goal: Goal
) -> None:
    machine = small_machine(Small(kind=kind, size_bytes=4096, dma=dma))  # type: ignore[arg-type]  # drawn from its literals
    try:
        found = lower(prepare(network, machine, network.ops, QUICK), goal)
    except InfeasibleError:
        return
    if len(found.program.tasks) <= MOST_TASKS:
        assert shortest(found.program) >= found.bounds.cycles


def test_the_set_up_of_the_first_transfer_and_the_last_transfer_count() -> None:
    net = layers.draft("pointwise", 8)
    data = layers.given(net, "x", (1, 8, 1, 1))
    made = layers.conv(net, "conv", data, 8, layers.square(1))
    network = net.builder.finish([made.name])
    machine = small_machine(Small(dma=True))
    bounds = prepare(network, machine, network.ops, QUICK).bounds
    # 8 B of data, 64 B of weights, 8 biases of 4 B: 26 cycles at 4 B a cycle, which is longer than
    # the array needs. Before that come 20 cycles of set-up, behind it 20 and one for a byte.
    assert bounds.array_cycles < bounds.transfer_cycles == 26
    assert bounds.cycles == 20 + 26 + 21


def test_what_nobody_reads_may_be_computed_while_the_result_leaves() -> None:
    net = layers.draft("strided", 8)
    data = layers.given(net, "x", (1, 8, 4, 4))
    middle = layers.conv(net, "all", data, 8, layers.square(1))
    made = layers.conv(net, "every second", middle, 8, layers.square(1, 2))
    network = net.builder.finish([made.name])
    bounds = prepare(network, small_machine(Small(dma=True)), network.ops, QUICK).bounds
    assert (bounds.begin_cycles, bounds.end_cycles) == (0, 0)


def test_a_view_of_everything_reads_everything() -> None:
    net = layers.draft("flattened", 8)
    data = layers.given(net, "x", (1, 2, 4, 4))
    middle = layers.conv(net, "conv", data, 4, layers.square(3, 1, 1))
    made = layers.gemm(net, "scores", layers.flatten(net, "flat", middle), 6)
    network = net.builder.finish([made.name])
    bounds = prepare(network, small_machine(Small(dma=True)), network.ops, QUICK).bounds
    assert (bounds.begin_cycles, bounds.end_cycles) == (20, 21)


def test_a_chain_has_one_order_and_takes_as_long_as_its_tasks() -> None:
    net = layers.draft("chain", 8)
    data = layers.given(net, "x", (1, 1, 2, 2))
    made = layers.max_pool(net, "pool", data, layers.square(2))
    network = net.builder.finish([made.name])
    program = lower(prepare(network, small_machine(Small()), network.ops, QUICK), "latency").program
    found = list(orders(program))
    assert [[program.tasks[n].kind for n in order] for order in found] == [
        ["load", "compute", "store"]
    ]
    assert shortest(program) == sum(task.cycles for task in program.tasks)

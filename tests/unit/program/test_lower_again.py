"""Lowering once more: what is remembered of an earlier candidate changes nothing."""

from dataclasses import replace

import pytest
from tests.cascade_cases import QUICK
from tests.small_machines import Small, small_machine

from tilewright.mapping.search import Mapped
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.cascade import PLAIN, Cascade, Strategy
from tilewright.program.lower import Prepared, laid_out, lower, prepare
from tilewright.program.model import Program, Task
from tilewright.program.places import places_of


def network() -> Network:
    """Two convolutions, a pool that is part of the cascade, and what reads the first one again."""
    net = layers.draft("chain", 8)
    data = layers.given(net, "x", (1, 8, 24, 24))
    first = layers.conv(net, "first", data, 16, layers.square(3, 1, 1))
    second = layers.conv(net, "second", first, 16, layers.square(3, 1, 1))
    pooled = layers.max_pool(net, "pool", second, layers.square(2, 2))
    return net.finish(layers.conv(net, "last", pooled, 8, layers.square(1)))


def fresh(small: Small) -> Prepared:
    made = network()
    return prepare(made, small_machine(small), made.ops, QUICK)


def unnumbered(program: Program) -> list[tuple[Task, Mapped | None]]:
    """Tasks with their mappings: the order in which mappings are found is of no interest."""
    mappings = [None if t.mapping is None else program.mappings[t.mapping] for t in program.tasks]
    assert any(mappings)
    tasks = [replace(task, mapping=None) for task in program.tasks]
    return list(zip(tasks, mappings, strict=True))


@pytest.mark.parametrize("cores", [1, 3])
def test_candidates_are_the_same_whatever_was_lowered_before(cores: int) -> None:
    cascade = Strategy(cascades=(Cascade(first=0, last=2, axis=2, step=1),))
    frugal = replace(cascade, frugal=True)
    machines = [Small(size_bytes=size, cores=cores, dma=True) for size in (64 * 1024, 8 * 1024)]
    cases = [(small, strategy) for small in machines for strategy in (cascade, PLAIN, frugal)]
    prepared = fresh(machines[0])
    for small, strategy in cases:
        again = replace(prepared, places=places_of(small_machine(small)))
        found = lower(again, "latency", strategy).program
        alone = lower(fresh(small), "latency", strategy).program
        assert found.buffers == alone.buffers
        assert unnumbered(found) == unnumbered(alone)


def test_what_was_decided_alike_is_emitted_once() -> None:
    prepared = fresh(Small(size_bytes=64 * 1024, dma=True))
    first = lower(prepared, "latency").program
    # All that is made takes 8 x 24 x 24 + 2 x 16 x 24 x 24 B and less: it is kept here as there.
    larger = places_of(small_machine(Small(size_bytes=128 * 1024, dma=True)))
    again = lower(replace(prepared, places=larger), "latency").program
    assert again.tasks is first.tasks
    assert again.spaces == larger.spaces != first.spaces
    smaller = places_of(small_machine(Small(size_bytes=8 * 1024, dma=True)))
    other = lower(replace(prepared, places=smaller), "latency").program
    assert other.tasks != first.tasks


def test_constants_that_come_whole_in_a_larger_scratchpad_alone_make_another_program() -> None:
    net = layers.draft("biased", 8)
    data = layers.given(net, "x", (1, 2, 4, 4))
    made = net.finish(layers.conv(net, "c", data, 256, layers.square(1)))
    # The bias takes 256 x 4 B: whole where that is no more than a 16th of the scratchpad.
    sizes = [8 * 1024, 16 * 1024]
    machines = [small_machine(Small(size_bytes=size, dma=True)) for size in sizes]
    prepared = prepare(made, machines[0], made.ops, QUICK)
    tiling = lower(prepared, "latency").layout.tilings[0]
    halves = replace(tiling, order=("K",), lengths={**tiling.lengths, "K": 128})
    loaded = []
    for machine in machines:
        there = replace(prepared, places=places_of(machine))
        layout = replace(laid_out(there, "latency"), tilings=(halves,))
        program = lower(there, "latency", layout=layout).program
        loads = [w.box for t in program.tasks if t.kind == "load" for w in t.writes]
        loaded.append([box for box in loads if len(box) == 1])
    assert loaded == [[((0, 128),), ((128, 256),)], [((0, 256),)]]


@pytest.mark.parametrize(
    ("size", "cascades"), [(2048, ()), (65536, (Cascade(first=0, last=2, axis=2, step=1),))]
)
def test_a_frugal_program_holds_no_tile_that_the_next_task_does_not_need(
    size: int, cascades: tuple[Cascade, ...]
) -> None:
    strategy = Strategy(cascades=cascades, frugal=True)
    program = lower(fresh(Small(size_bytes=size, dma=True)), "latency", strategy).program
    computing = [task for task in program.tasks if task.kind == "compute"]
    loaded = {w.buffer for task in program.tasks if task.kind == "load" for w in task.writes}
    tiles = [number for number in sorted(loaded) if program.buffers[number].view is None]
    boxes = [(program.buffers[n].tensor, program.buffers[n].box) for n in tiles]
    # Some tiles come again, and none stays while a task does not read it.
    assert len(set(boxes)) < len(boxes)
    for number in tiles:
        readers = [at for at, t in enumerate(computing) if number in [a.buffer for a in t.reads]]
        assert readers == list(range(readers[0], readers[-1] + 1))

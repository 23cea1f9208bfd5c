"""Points that no output depends on may be left out, and only those."""

from dataclasses import replace

from tests.ladder_cases import prepared_on

from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.network.zoo import layers
from tilewright.program.model import Timetable
from tilewright.replay.check import problems
from tilewright.replay.check_needed import needed_points
from tilewright.strategy.ladder.cells import work_of
from tilewright.strategy.ladder.program import timetable_of
from tilewright.strategy.ladder.rungs import rung_run


def loops(network: Network, op: str) -> dict[str, list[int]]:
    """By loop the positions that outputs need, where they need them in one way."""
    (lattice,) = needed_points(network)[op]
    dims = next(o.dims for o in network.ops if o.name == op)
    return {dim: places.tolist() for (dim, _), places in zip(dims, lattice, strict=True)}


def test_rows_that_a_pool_drops_are_not_needed() -> None:
    # 13 rows of conv2 are pooled by two, so the last is not read; that takes 14 rows of pool1.
    network = load_network("notes_cnn")
    assert loops(network, "conv2")["OY"] == list(range(12))
    assert loops(network, "pool1")["OX"] == list(range(14))
    assert loops(network, "conv1")["OY"] == list(range(28))
    assert loops(network, "conv3")["OY"] == list(range(4))


def test_summed_loops_are_needed_whole() -> None:
    assert loops(load_network("notes_cnn"), "conv2")["C"] == list(range(16))
    assert loops(load_network("notes_cnn"), "pool1")["FY"] == [0, 1]


def test_what_a_stride_skips_is_not_needed() -> None:
    net = layers.draft("skipping", 8)
    data = layers.given(net, "input", (1, 1, 7, 7))
    made = layers.conv(net, "first", data, 1, layers.square(1))
    network = net.finish(layers.conv(net, "second", made, 1, layers.square(1, 3)))
    assert loops(network, "first")["OY"] == [0, 3, 6]


def test_two_readers_need_what_either_needs() -> None:
    net = layers.draft("two", 8)
    data = layers.given(net, "input", (1, 1, 7, 7))
    made = layers.conv(net, "first", data, 1, layers.square(1))
    thin = layers.conv(net, "thin", made, 1, layers.square(1, 3))
    wide = layers.conv(net, "wide", made, 1, layers.square(1, 2))
    network = net.finish(thin, wide)
    found = [lattice[3].tolist() for lattice in needed_points(network)["first"]]
    assert sorted(found) == [[0, 2, 4, 6], [0, 3, 6]]


def cropped() -> tuple[Timetable, Network]:
    network = load_network("notes_cnn")
    run = rung_run(work_of(network), "line_buffered_cropped")
    assert run is not None
    return timetable_of(prepared_on(network, 49_052), run), network


def test_a_plan_without_dead_rows_is_right() -> None:
    timetable, network = cropped()
    computed = [task for task in timetable.program.tasks if task.op == "conv2"]
    assert len(computed) == 12 * 12
    assert problems(timetable, network) == []


def test_a_needed_point_that_is_left_out_is_found() -> None:
    timetable, network = cropped()
    program = timetable.program
    number = next(
        n
        for n, task in enumerate(program.tasks)
        if task.op == "conv1" and ("OX", 3, 4) in task.tile
    )
    lost = program.tasks[number]
    # It is named as if it computed again what another task computes.
    tasks = list(program.tasks)
    tasks[number] = replace(lost, name=f"{lost.name} #1")
    wrong = replace(timetable, program=replace(program, tasks=tuple(tasks)))
    found = [p.message for p in problems(wrong, network)]
    # A pixel has 16 kernels of 9 taps, and 28 x 28 pixels are needed.
    assert any(
        message.startswith("no task computes") and "144 of its 112896 points" in message
        for message in found
    )

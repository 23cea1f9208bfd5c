"""Random networks, random cascades: rows are there when they are read, and no more are held."""

from math import prod

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.cascade_cases import Cascaded, cascaded, cascades, networks, prepared, rows_of
from tests.cascade_counts import arrivals, operand_rows, rows_held, turn_reads
from tests.random_cases import examples, repeatable
from tests.small_machines import Small, small_machine

from tilewright.errors import InfeasibleError
from tilewright.network.graph import Network
from tilewright.program.cascade import Cascade, Flow, Roll, flow_of
from tilewright.program.rows import Rows
from tilewright.replay.check import problems
from tilewright.replay.verify import verify
from tilewright.units import packed_bytes

machines = st.builds(
    Small,
    kind=st.sampled_from(["one", "one", "split", "streamed"]),
    size_bytes=st.sampled_from([256, 512, 1024, 4096]),
    cores=st.integers(1, 2),
    alignment_bytes=st.sampled_from([1, 16]),
    dma=st.booleans(),
)


def drawn_flow(rows: Rows, data: st.DataObject) -> tuple[Cascade, Flow]:
    cascade = data.draw(cascades(rows))
    if cascade is None:
        reject()
    found = flow_of(rows, cascade)
    assert found is not None
    return cascade, found


def made_rows(found: Flow) -> dict[int, list[int]]:
    """By stage the rows that it makes, in the order in which it does."""
    made: dict[int, list[int]] = {number: [] for number in found.cascade.stages}
    for turn in found.turns:
        made[turn.stage] += range(turn.start, turn.stop)
    return made


def counted_roll(rows: Rows, found: Flow, root: str, axis: int) -> Roll:
    """How many rows of a storage have to be there at once, by a walk through all reads."""
    reads = turn_reads(rows, found.turns, found.loops)
    come = arrivals(found.turns, reads, rows)[root]
    held = rows_held(root, come, reads)
    if found.cascade.ahead:
        held += max(map(len, come))
    return Roll(axis, min(held, rows.network.by_name[root].shape[axis]))


@settings(repeatable, max_examples=examples(150))
@given(networks(), st.data())
def test_turns_make_every_row_that_is_read_once_and_in_order(
    network: Network, data: st.DataObject
) -> None:
    rows = rows_of(network)
    cascade, found = drawn_flow(rows, data)
    made = made_rows(found)
    for number in reversed(cascade.stages):
        root, size = rows.root(number), rows.stages[number].op.sizes[found.loops[number]]
        wanted = set(range(size))
        if root in found.rolls:
            touched = {
                read
                for reader in cascade.stages
                for operand in rows.stages[reader].inputs
                if number in rows.makers(operand.tensor, cascade.stages)
                for row in made[reader]
                for read in operand_rows(rows, reader, operand, found.loops[reader], row)
            }
            wanted = set(range(min(touched, default=0), max(touched, default=-1) + 1))
        assert made[number] == sorted(wanted)


@settings(repeatable, max_examples=examples(150))
@given(networks(), st.data())
def test_no_turn_comes_before_the_rows_that_it_reads(network: Network, data: st.DataObject) -> None:
    rows = rows_of(network)
    cascade, found = drawn_flow(rows, data)
    made: dict[int, set[int]] = {number: set() for number in cascade.stages}
    for turn in found.turns:
        for row in range(turn.start, turn.stop):
            for operand in rows.stages[turn.stage].inputs:
                read = operand_rows(rows, turn.stage, operand, found.loops[turn.stage], row)
                makers = rows.makers(operand.tensor, cascade.stages)
                assert all(read <= made[maker] for maker in makers)
        made[turn.stage].update(range(turn.start, turn.stop))


@settings(repeatable, max_examples=examples(200))
@given(networks(), st.data())
def test_as_many_rows_are_held_as_a_walk_through_all_reads_counts(
    network: Network, data: st.DataObject
) -> None:
    rows = rows_of(network)
    _, found = drawn_flow(rows, data)
    for root, roll in (*found.rolls.items(), *found.inputs.items()):
        assert roll == counted_roll(rows, found, root, roll.axis)


def ring_sizes(made: Cascaded) -> dict[str, list[int]]:
    """The sizes of all buffers with several laps, by tensor."""
    buffers = made.lowered.program.buffers
    laps = [buffer.view.buffer for buffer in buffers if buffer.view is not None]
    sizes: dict[str, list[int]] = {}
    for number, buffer in enumerate(buffers):
        if number in laps and buffer.space != "ddr":
            sizes.setdefault(buffer.tensor, []).append(buffer.size_bytes)
    return sizes


def assert_sound(network: Network, small: Small, data: st.DataObject) -> None:
    machine = small_machine(small)
    rows = prepared(network, machine).rows
    cascade, found = drawn_flow(rows, data)
    try:
        made = cascaded(network, machine, cascade)
    except InfeasibleError:
        return
    assert problems(made.timetable, network) == []
    replayed = verify(made.timetable, network)
    assert replayed.problems == ()
    assert replayed.agrees
    sizes = ring_sizes(made)
    for (_, root), planned in made.lowered.layout.rings.items():
        tensor = network.by_name[root]
        roll = counted_roll(rows, found, root, planned.axis)
        row_elements = prod(tensor.shape) // tensor.shape[roll.axis]
        size = packed_bytes(roll.rows * row_elements, tensor.bits)
        if small.cores == 1 and root in found.rolls:
            assert sizes[root] == [size]
        # What comes from outside may be a part of every row, and a core may have a part as well.
        assert max(sizes[root]) <= size


@settings(repeatable, max_examples=40)
@given(networks(), machines, st.data())
def test_a_plan_with_a_cascade_computes_what_the_network_computes(
    network: Network, small: Small, data: st.DataObject
) -> None:
    assert_sound(network, small, data)


@pytest.mark.slow
@settings(repeatable, max_examples=150)
@given(networks(), machines, st.data())
def test_many_plans_with_a_cascade_compute_what_their_networks_compute(
    network: Network, small: Small, data: st.DataObject
) -> None:
    assert_sound(network, small, data)

"""Rows that are made on demand, slice by slice: what is computed, and what is held meanwhile."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cascade_cases import Cascaded, cascaded, prepared
from tests.random_cases import repeatable
from tests.small_machines import Small, small_machine
from tests.small_networks import Draw

from tilewright.errors import InfeasibleError
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.network.zoo.layers import Filter
from tilewright.program.cascade import Cascade
from tilewright.program.slicing import SLICE, slicing
from tilewright.program.strips import is_repeated
from tilewright.replay.check import problems
from tilewright.replay.verify import verify


def bottleneck(
    size: int, channels: int, window: Filter, *, residual: bool = False, pooled: bool = False
) -> Network:
    """A pointwise convolution, one of every channel by itself, and a pointwise one behind it."""
    net = layers.draft("bottleneck", 8)
    data = layers.given(net, "input", (1, 3, size, size))
    wide = layers.conv(net, "expand", data, channels, layers.square(1))
    apart = layers.conv(net, "depthwise", wide, channels, window)
    narrow = layers.conv(net, "project", apart, 3, layers.square(1))
    if residual and narrow.shape == data.shape:
        narrow = layers.add(net, "add", narrow, data)
    if pooled:
        narrow = layers.global_average_pool(net, "mean", narrow)
    return net.finish(narrow)


@st.composite
def bottlenecks(draw: Draw) -> Network:
    """Such networks with windows and channels of many sizes."""
    channels = draw(st.integers(SLICE - 3, 3 * SLICE))
    kernel = draw(st.integers(1, 4))
    window = layers.square(
        kernel, draw(st.integers(1, 2)), draw(st.integers(0, kernel // 2)), group=channels
    )
    size = draw(st.integers(kernel + 2, 9))
    more = draw(st.booleans()), draw(st.booleans())
    return bottleneck(size, channels, window, residual=more[0], pooled=more[1])


def on_demand(network: Network, small: Small) -> list[tuple[int, ...]]:
    """All ways to make some stages of a cascade of all of them work on demand."""
    rows = prepared(network, small_machine(small)).rows
    linked = rows.linked(0, len(rows.stages) - 1, 2)
    assert linked is not None
    makers = [number for number in linked if slicing(rows, linked, number) is not None]
    return [tuple(sorted(c)) for n in range(1, len(makers) + 1) for c in combinations(makers, n)]


def planned(
    network: Network, small: Small, step: int, makers: tuple[int, ...], *, forgets: bool = False
) -> Cascaded:
    machine = small_machine(small)
    cascade = Cascade(
        first=0,
        last=len(prepared(network, machine).stages) - 1,
        axis=2,
        step=step,
        eager=step > 1,
        on_demand=makers,
        forgets=forgets,
    )
    return cascaded(network, machine, cascade)


@settings(repeatable, max_examples=30)
@given(
    bottlenecks(),
    st.builds(
        Small,
        kind=st.sampled_from(["one", "split", "ends"]),
        size_bytes=st.sampled_from([1024, 4096, 65536]),
        alignment_bytes=st.sampled_from([1, 16]),
    ),
    st.sampled_from([1, 1, 2]),
    st.booleans(),
    st.data(),
)
def test_a_plan_with_slices_computes_what_the_network_computes(
    network: Network, small: Small, step: int, forgets: bool, data: st.DataObject
) -> None:
    makers = data.draw(st.sampled_from(on_demand(network, small)))
    try:
        made = planned(network, small, step, makers, forgets=forgets)
    except InfeasibleError:
        return
    assert problems(made.timetable, network) == []
    assert verify(made.timetable, network).agrees


def most_held(made: Cascaded, tensor: str) -> int:
    """Bytes of a tensor at once if tasks run one after the other, each buffer until last used."""
    program = made.lowered.program
    lives: dict[int, tuple[int, int]] = {}
    for number, task in enumerate(program.tasks):
        for access in (*task.reads, *task.writes):
            if program.buffers[access.buffer].tensor == tensor:
                lives[access.buffer] = (lives.get(access.buffer, (number, 0))[0], number)
    return max(
        sum(program.buffers[b].size_bytes for b, (s, e) in lives.items() if s <= number <= e)
        for number in range(len(program.tasks))
    )


def test_two_rows_and_a_slice_of_the_third_are_held_for_a_window_of_three() -> None:
    # A row is 8 x 32 B. Two wait; a slice of 16 channels of the next, 8 x 16 B, comes to them.
    network = bottleneck(8, 2 * SLICE, layers.square(3, 1, 1, group=2 * SLICE))
    made = planned(network, Small(size_bytes=2048), 1, (0,))
    assert most_held(made, "expand") == 2 * 8 * 32 + 8 * 16


def slices_of(made: Cascaded) -> list[tuple[int, int]]:
    """The channels that tasks of the depthwise convolution go through at once."""
    tasks = [task for task in made.lowered.program.tasks if task.op == "depthwise"]
    tiles = [{dim: (start, stop) for dim, start, stop in task.tile} for task in tasks]
    return sorted({tile["G"] for tile in tiles})


def test_three_rows_of_a_slice_are_held_if_none_wait() -> None:
    # They are made for every row of the result; rows of the input wait for that instead.
    network = bottleneck(8, 2 * SLICE, layers.square(3, 1, 1, group=2 * SLICE))
    made = planned(network, Small(size_bytes=2048), 1, (0,), forgets=True)
    longest = max(stop - start for start, stop in slices_of(made))
    assert longest < 2 * SLICE
    assert most_held(made, "expand") == 3 * 8 * longest
    assert made.lowered.layout.flows[0].inputs["input"].rows == 3
    # What nobody waits for has a buffer of its own for every row.
    rows = [buffer.box for buffer in made.lowered.program.buffers if buffer.tensor == "depthwise"]
    assert rows == [((0, 1), (0, 32), (row, row + 1), (0, 8)) for row in range(8)]


def test_what_is_made_again_is_told_apart_from_what_is_made_first() -> None:
    # Of 8 rows, those inside are made three times and the outer ones twice, all slices of each.
    network = bottleneck(8, 2 * SLICE, layers.square(3, 1, 1, group=2 * SLICE))
    made = planned(network, Small(size_bytes=2048), 1, (0,), forgets=True)
    tasks = [task for task in made.lowered.program.tasks if task.op == "expand"]
    rows = [(is_repeated(task), task.tile[3][2] - task.tile[3][1]) for task in tasks]
    slices = len(slices_of(made))
    assert slices > 1
    assert sum(count for again, count in rows if not again) == slices * 8
    assert sum(count for again, count in rows if again) == slices * (6 * 2 + 2 * 1)


def test_with_a_stride_of_two_one_row_waits_and_two_come() -> None:
    network = bottleneck(9, 2 * SLICE, layers.square(3, 2, 0, group=2 * SLICE))
    made = planned(network, Small(size_bytes=2048), 1, (0,))
    assert most_held(made, "expand") == 9 * 32 + 2 * 9 * 16


def test_nothing_is_made_twice_where_the_reader_is_cut_along_columns_too() -> None:
    network = bottleneck(16, 2 * SLICE, layers.square(3, 1, 1, group=2 * SLICE))
    made = planned(network, Small(size_bytes=2200), 1, (0,))
    tasks = made.lowered.program.tasks
    assert any("depthwise" in task.name and "OX8:16" in task.name for task in tasks)
    assert problems(made.timetable, network) == []
    assert verify(made.timetable, network).agrees


def test_what_sums_over_channels_is_not_read_in_slices_of_them() -> None:
    network = bottleneck(8, 2 * SLICE, layers.square(3, 1, 1, group=2 * SLICE))
    rows = prepared(network, small_machine(Small())).rows
    linked = rows.linked(0, 2, 2)
    assert linked is not None
    found = [slicing(rows, linked, number) for number in range(3)]
    assert found[0] is not None
    assert (found[0].reader, found[0].axis) == (1, 1)
    # The last convolution reads all channels, but may go along the columns.
    assert found[1] is not None
    assert found[1].axis == 3
    assert found[2] is None

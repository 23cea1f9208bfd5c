"""Strips by hand: the columns that they need, their ops and tensors, and how plans go back."""

from functools import cache

from tests.small_machines import Small, small_machine
from tests.strip_cases import InStrips, in_strips, tower

from tilewright.network.graph import Index, Network
from tilewright.network.zoo import layers
from tilewright.program.cascade import Strategy
from tilewright.program.model import Task
from tilewright.program.strips import strip_name, strip_of
from tilewright.replay.check import check
from tilewright.replay.verify import verify
from tilewright.strategy.columns import Stretch, stretch_of
from tilewright.strategy.patches import patched
from tilewright.strategy.unpatched import unpatched_strategy

COLUMNS = 3
"""The axis of columns in batch, channels, rows, columns."""


def stretch(network: Network, first: int, last: int) -> Stretch:
    found = stretch_of(network, network.ops[first:last])
    assert found is not None
    return found


@cache
def planned() -> InStrips:
    """The first four ops of the tower in two strips of the pool's ten columns."""
    machine = small_machine(Small(kind="ends", size_bytes=16 * 1024, dma=True))
    network = tower()
    made = in_strips(network, machine, ((stretch(network, 0, 4), 2),))
    assert made is not None
    return made


def test_a_strip_needs_the_columns_around_its_own() -> None:
    # Columns 5 to 10 of the pool are made of 10 to 20 of the sum, whose windows of three reach one
    # column further: the depthwise convolution reads 9 to 20, and the first one 8 to 20.
    found = stretch(tower(), 0, 4)
    assert found.columns == 10
    assert found.needed(5, 10) == {
        "pool": (5, 10),
        "sum": (10, 20),
        "depthwise": (10, 20),
        "first": (9, 20),
        "x": (8, 20),
    }


def test_a_strip_needs_what_any_of_several_readers_needs() -> None:
    net = layers.draft("fork", 8)
    data = layers.conv(net, "start", layers.given(net, "x", (1, 2, 4, 8)), 3, layers.square(1))
    near = layers.activation(net, "near", data, "sigmoid")
    far = layers.conv(net, "far", data, 3, layers.square(3, 1, 1))
    network = net.finish(layers.add(net, "sum", near, far))
    # The window of three reaches a column further than the activation, on both sides.
    needed = stretch(network, 0, 4).needed(3, 5)
    assert needed is not None
    assert needed["start"] == needed["x"] == (2, 6)


def test_the_columns_of_strips_are_counted_from_where_they_start() -> None:
    network = tower()
    patches = patched(network, network.ops, ((stretch(network, 0, 4), 2),))
    assert patches is not None
    ops = {op.name: op for op in patches.network.ops}
    assert patches.network.by_name["x for first strip 2"].shape == (1, 3, 9, 12)
    assert patches.network.by_name["first strip 2"].shape == (1, 5, 9, 11)
    # Column 0 of this strip is column 9 of the network's; its window begins at 8, where x does.
    assert dict(ops["first strip 2"].dims)["OX"] == 11
    index = ops["first strip 2"].inputs[0].index
    assert index is not None
    assert index[COLUMNS] == Index((("OX", 1), ("FX", 1)), 0)
    # In the first strip it begins in the padding, as it did.
    index = ops["first strip 1"].inputs[0].index
    assert index is not None
    assert index[COLUMNS] == Index((("OX", 1), ("FX", 1)), -1)


def test_two_stretches_may_read_the_same_input_in_strips() -> None:
    net = layers.draft("twice", 8)
    data = layers.given(net, "x", (1, 2, 6, 9))
    near = layers.conv(net, "near", data, 3, layers.square(1))
    far = layers.conv(net, "far", data, 3, layers.square(3, 1, 1))
    network = net.finish(near, far)
    stretches = (stretch(network, 0, 1), 3), (stretch(network, 1, 2), 3)
    patches = patched(network, network.ops, stretches)
    assert patches is not None
    shapes = {tensor.name: tensor.shape for tensor in patches.network.inputs}
    # Three columns each; a window of three reaches one further on both sides.
    assert shapes["x for near strip 2"] == (1, 2, 6, 3)
    assert shapes["x for far strip 2"] == (1, 2, 6, 5)


def test_two_stretches_may_read_the_same_map_in_strips() -> None:
    net = layers.draft("twice", 8)
    data = layers.conv(net, "map", layers.given(net, "x", (1, 2, 6, 9)), 4, layers.square(1))
    near = layers.conv(net, "near", data, 3, layers.square(1))
    far = layers.conv(net, "far", data, 3, layers.square(3, 1, 1))
    network = net.finish(near, far)
    machine = small_machine(Small(kind="ends", size_bytes=16 * 1024, dma=True))
    made = in_strips(network, machine, ((stretch(network, 1, 2), 3), (stretch(network, 2, 3), 3)))
    assert made is not None
    shapes = {tensor.name: tensor.shape for tensor in made.patches.network.tensors}
    assert shapes["map for near strip 2"] == (1, 4, 6, 3)
    assert shapes["map for far strip 2"] == (1, 4, 6, 5)
    check(made.timetable, network, machine)
    assert verify(made.timetable, network).agrees


def test_what_is_computed_again_is_counted() -> None:
    network = tower()
    patches = patched(network, network.ops, ((stretch(network, 0, 4), 2),))
    assert patches is not None
    # The first convolution makes columns 0 to 11 and 9 to 20, two of them twice: 2 columns of 9
    # rows and 5 channels, each of 3 x 3 x 3 products.
    assert [figures.macs_again for figures in patches.figures] == [2 * 9 * 5 * 27]


def test_a_column_that_nobody_reads_is_not_computed_less_often() -> None:
    net = layers.draft("odd", 8)
    data = layers.conv(net, "conv", layers.given(net, "x", (1, 2, 4, 9)), 3, layers.square(3, 1, 1))
    network = net.finish(layers.max_pool(net, "pool", data, layers.square(2, 2)))
    patches = patched(network, network.ops, ((stretch(network, 0, 2), 2),))
    assert patches is not None
    # The pool reads columns 0 to 3 and 4 to 7: none twice, and never the ninth.
    assert [figures.macs_again for figures in patches.figures] == [0]


def pooled() -> Network:
    net = layers.draft("pooled", 8)
    data = layers.conv(net, "conv", layers.given(net, "x", (1, 2, 6, 9)), 3, layers.square(3, 1, 1))
    return net.finish(layers.global_average_pool(net, "mean", data))


def test_what_is_made_of_all_columns_is_added_up_over_strips() -> None:
    network = pooled()
    found = stretch(network, 0, 2)
    assert found.reduces
    assert found.columns == 9
    assert found.needed(3, 6) == {"mean": (3, 6), "conv": (3, 6), "x": (2, 7)}
    patches = patched(network, network.ops, ((found, 3),))
    assert patches is not None
    tensors = patches.network.by_name
    # 54 numbers of 8 bits are added up in 32; the last strip makes the mean itself.
    sums = [tensors[f"mean strip {strip}"] for strip in (1, 2)]
    assert [(tensor.shape, tensor.bits) for tensor in sums] == [((1, 3, 1, 1), 32)] * 2
    means = [op for op in patches.network.ops if op.kind == "average_pool"]
    assert [[o.tensor for o in op.inputs] for op in means] == [
        ["conv strip 1"],
        ["conv strip 2", "mean strip 1"],
        ["conv strip 3", "mean strip 2"],
    ]
    assert means[-1].outputs[0].tensor == "mean"
    # All are parts of one: none makes again what another one has made.
    assert {patches.ops[op.name].strip for op in means} == {1}


def test_a_stretch_does_not_go_on_behind_what_needs_all_columns() -> None:
    net = layers.draft("gated", 8)
    data = layers.given(net, "x", (1, 3, 6, 6))
    mean = layers.global_average_pool(net, "mean", data)
    network = net.finish(layers.activation(net, "gate", mean, "sigmoid"))
    assert stretch_of(network, network.ops) is None


def test_there_are_no_more_strips_than_columns() -> None:
    network = tower()
    whole = stretch(network, 0, 4)
    assert patched(network, network.ops, ((whole, 10),)) is not None
    assert patched(network, network.ops, ((whole, 11),)) is None


def test_a_second_stretch_reads_the_result_of_the_first_where_it_lies() -> None:
    network = tower()
    strips = ((stretch(network, 0, 4), 2), (stretch(network, 4, 6), 2))
    patches = patched(network, network.ops, strips)
    assert patches is not None
    kinds = [op.kind for op in patches.network.ops]
    assert kinds.count("concat") == 2
    assert kinds.count("slice") == 2
    # The window of three needs one column of the other half.
    assert patches.network.by_name["pool for narrow strip 1"].shape == (1, 5, 4, 6)


def test_a_plan_has_the_network_s_own_names_again() -> None:
    made = planned()
    program, network = made.timetable.program, made.network
    assert {task.op for task in program.tasks if task.op} == {op.name for op in network.ops}
    assert {buffer.tensor for buffer in program.buffers} <= set(network.by_name)
    second = [task for task in program.tasks if strip_of(task) == 2 and task.op == "first"]
    spans = {(start, stop) for task in second for dim, start, stop in task.tile if dim == "OX"}
    assert (min(start for start, _ in spans), max(stop for _, stop in spans)) == (9, 20)
    # The input is given once, as a whole; strips are views of it.
    given = [program.buffers[number] for number in program.given]
    assert [buffer.box for buffer in given if buffer.tensor == "x"] == [
        ((0, 1), (0, 3), (0, 9), (0, 20))
    ]


def test_a_strategy_names_the_network_s_tensors() -> None:
    strips = ("x for first strip 1", "x for first strip 2")
    assert unpatched_strategy(Strategy(gone=strips), planned().patches).gone == ("x",)


def test_a_task_says_of_which_strip_it_is() -> None:
    def named(name: str, op: str) -> Task:
        return Task(name=name, kind="compute", engine="core", cycles=1, op=op)

    assert strip_of(named(strip_name("conv", 3), "conv")) == 3
    assert strip_of(named("conv strip 12 [OX0:4]#7", "conv")) == 12
    assert strip_of(named("conv [OX0:4]", "conv")) == 0
    # An op whose own name looks like that of a strip is in none.
    assert strip_of(named("conv strip 3", "conv strip 3")) == 0

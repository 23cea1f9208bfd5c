"""Which rows of its inputs a stage reads, and which stages can go through rows together."""

import pytest
from tests.cascade_cases import rows_of
from tests.cascade_counts import positions
from tests.small_networks import op

from tilewright.network import nests, windows
from tilewright.network.graph import Index, Network, Tensor
from tilewright.network.zoo import layers
from tilewright.network.zoo.layers import Draft
from tilewright.program.rows import RowRead, Rows, StageRows

HEIGHT, CHANNELS = 2, 1


def net_with_input(*shape: int) -> tuple[Draft, Tensor]:
    net = layers.draft("t", 8)
    return net, layers.given(net, "x", shape)


def conv(net: Draft, name: str, data: Tensor, kernel: int = 3, stride: int = 1) -> Tensor:
    return layers.conv(net, name, data, 4, layers.square(kernel, stride, kernel // 2))


def exp(net: Draft, name: str, data: Tensor) -> Tensor:
    return layers.activation(net, name, data, "exp")


def stage_rows(network: Network, name: str, axis: int) -> StageRows | None:
    rows = rows_of(network)
    (number,) = [n for n, stage in enumerate(rows.stages) if stage.op.name == name]
    return rows.of(number, axis)


def only_read(network: Network, name: str, axis: int = HEIGHT) -> RowRead:
    found = stage_rows(network, name, axis)
    assert found is not None
    (read,) = found.reads
    return read


def names(rows: Rows) -> list[str]:
    return [stage.op.name for stage in rows.stages]


def test_a_window_reads_the_rows_around() -> None:
    net, x = net_with_input(1, 4, 9, 9)
    read = only_read(net.finish(conv(net, "conv", x)), "conv")
    # Kernel 3, padding 1: row r takes rows r - 1 to r + 1, of which there are 9.
    assert [read.rows(r, r + 1) for r in (0, 1, 4, 8)] == [(0, 2), (0, 3), (3, 6), (7, 9)]
    assert read.rows(2, 6) == (1, 7)
    assert (read.tensor, read.root, read.axis) == ("x", "x", HEIGHT)


def test_no_rows_take_no_rows() -> None:
    net, x = net_with_input(1, 4, 9, 9)
    start, stop = only_read(net.finish(conv(net, "conv", x)), "conv").rows(4, 4)
    assert start >= stop


def test_a_stride_skips_rows_and_a_dilation_spreads_them() -> None:
    net, x = net_with_input(1, 4, 20, 9)
    window = windows.Window(kernel=3, stride=2, dilation=3, pad_begin=2, pad_end=1)
    plain = windows.Window(kernel=1)
    nest = windows.conv(x.shape, 4, 1, [window, plain], windows.ONNX_CONV)
    weights = layers.constant(net, "w", (4, 4, 3, 1))
    read = only_read(net.finish(op(net, "conv", "conv", nest, x, weights)), "conv")
    # Row r touches 2r - 2, 2r + 1 and 2r + 4, and reads what lies between as well.
    assert [read.rows(r, r + 1) for r in (0, 1, 5)] == [(0, 5), (0, 7), (8, 15)]
    assert read.rows(3, 5) == (4, 13)


def test_a_window_that_is_all_padding_reads_nothing() -> None:
    net, x = net_with_input(1, 4, 6, 6)
    window = layers.Filter(kernel=(2, 2), pads=(3, 0, 3, 0))
    read = only_read(net.finish(layers.conv(net, "conv", x, 4, window)), "conv")
    first, last = read.rows(0, 1), read.rows(10, 11)
    assert first[0] >= first[1]
    assert last[0] >= last[1]
    assert read.rows(2, 3) == (0, 1)


def test_a_step_wider_than_the_window_leaves_rows_out() -> None:
    net, x = net_with_input(1, 4, 9, 9)
    network = net.finish(layers.max_pool(net, "pool", x, layers.square(1, 3)))
    read = only_read(network, "pool")
    assert [read.rows(r, r + 1) for r in (0, 1, 2)] == [(0, 1), (3, 4), (6, 7)]


@pytest.mark.parametrize("divisor", [1, 2, 3])
@pytest.mark.parametrize("offset", [-3, 0, 2])
@pytest.mark.parametrize("factor", [1, 2])
def test_rows_read_are_those_that_points_land_on(divisor: int, offset: int, factor: int) -> None:
    index = Index((("OY", factor), ("FY", 2)), offset, divisor)
    # FY goes from 0 to 2: positions from offset to offset + 4.
    read = RowRead(
        tensor="x",
        root="x",
        axis=0,
        factor=factor,
        low=offset,
        high=offset + 4,
        divisor=divisor,
        size=7,
    )
    for start in range(6):
        for stop in range(start + 1, 7):
            landing = [positions(index, {"FY": 3}, "OY", row) for row in range(start, stop)]
            touched = [at for found in landing for at in found]
            span = range(min(touched, default=0), max(touched, default=-1) + 1)
            inside = [at for at in span if 0 <= at < 7]
            found = list(range(*read.rows(start, stop)))
            assert set(inside) <= set(found)
            if divisor == 1:
                assert inside == found


def test_channels_of_a_pool_are_rows_and_those_of_a_convolution_take_all() -> None:
    net, x = net_with_input(1, 4, 8, 8)
    pool = layers.max_pool(net, "pool", x, layers.square(2, 2))
    network = net.finish(conv(net, "conv", pool))
    read = only_read(network, "pool", CHANNELS)
    assert [read.rows(c, c + 1) for c in range(4)] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    found = stage_rows(network, "conv", CHANNELS)
    assert found is not None
    assert (found.loop, found.reads, found.wholes) == ("K", (), ("pool",))


def test_channels_of_a_depthwise_convolution_are_rows() -> None:
    net, x = net_with_input(1, 4, 8, 8)
    network = net.finish(layers.conv(net, "conv", x, 4, layers.square(3, 1, 1, group=4)))
    found = stage_rows(network, "conv", CHANNELS)
    assert found is not None
    assert found.loop == "G"
    assert [read.rows(2, 3) for read in found.reads] == [(2, 3)]


def test_several_channels_of_a_group_are_no_rows() -> None:
    net, x = net_with_input(1, 4, 8, 8)
    network = net.finish(layers.conv(net, "conv", x, 8, layers.square(3, 1, 1, group=4)))
    assert stage_rows(network, "conv", CHANNELS) is None


def test_rows_of_a_product_are_tokens() -> None:
    net, x = net_with_input(1, 12, 8)
    weights = layers.constant(net, "w", (8, 5))
    found = stage_rows(net.finish(layers.matmul(net, "product", x, weights)), "product", 1)
    assert found is not None
    assert found.loop == "D"
    assert [read.rows(3, 5) for read in found.reads] == [(3, 5)]


def test_the_other_matrix_is_read_as_a_whole() -> None:
    net, x = net_with_input(1, 2, 6, 6)
    network = net.finish(layers.matmul(net, "product", exp(net, "a", x), exp(net, "b", x)))
    found = stage_rows(network, "product", 2)
    assert found is not None
    assert [read.tensor for read in found.reads] == ["a"]
    assert found.wholes == ("b",)


def test_what_is_coupled_along_an_axis_has_no_rows_there() -> None:
    net, x = net_with_input(1, 2, 6, 6)
    network = net.finish(layers.softmax(net, "softmax", x))
    assert stage_rows(network, "softmax", 3) is None
    assert stage_rows(network, "softmax", 2) is not None


def test_the_rows_of_a_pool_over_everything_are_those_that_it_reads() -> None:
    net, x = net_with_input(1, 4, 6, 5)
    network = net.finish(layers.global_average_pool(net, "pool", x))
    for axis, loop, size in ((HEIGHT, "FY", 6), (HEIGHT + 1, "FX", 5)):
        found = stage_rows(network, "pool", axis)
        assert found is not None
        assert (found.loop, found.size, found.reduces) == (loop, size, True)
        assert [read.rows(2, 4) for read in found.reads] == [(2, 4)]
    channels = stage_rows(network, "pool", 1)
    assert channels is not None
    assert not channels.reduces


def test_an_axis_of_one_row_has_no_rows() -> None:
    net, x = net_with_input(1, 4, 6, 6)
    network = net.finish(layers.global_average_pool(net, "pool", x))
    assert stage_rows(network, "pool", 0) is None
    assert stage_rows(network, "pool", 7) is None


def test_a_chain_goes_through_rows_together() -> None:
    net, x = net_with_input(1, 4, 12, 12)
    network = net.finish(conv(net, "b", conv(net, "a", x, 3, 2)))
    linked = rows_of(network).linked(0, 1, HEIGHT)
    assert linked is not None
    assert {n: (s.root, s.loop, s.size) for n, s in linked.items()} == {
        0: ("a", "OY", 6),
        1: ("b", "OY", 6),
    }


def test_branches_and_joins_go_together_if_they_do_so_along_one_axis() -> None:
    net, x = net_with_input(1, 4, 12, 12)
    left = conv(net, "left", x)
    right = exp(net, "right", left)
    network = net.finish(layers.add(net, "sum", conv(net, "far", right), left))
    rows = rows_of(network)
    last = len(rows.stages) - 1
    assert rows.linked(0, last, HEIGHT) is not None
    # Along channels the convolution in the middle wants all of what it reads.
    assert rows.linked(0, last, CHANNELS) is None


def test_a_tensor_cannot_roll_along_two_axes() -> None:
    net, x = net_with_input(1, 1, 6, 6)
    made = exp(net, "made", x)
    turned = op(net, "both", "add", _turned_sum((1, 1, 6, 6)), made, made)
    rows = rows_of(net.finish(turned))
    assert rows.of(1, 2) is not None
    assert rows.linked(0, 1, 2) is None


def _turned_sum(shape: tuple[int, ...]) -> nests.Nest:
    """A tensor plus itself with rows and columns exchanged."""
    nest = nests.elementwise(shape, shape)
    straight = nest.inputs[0]
    assert straight is not None
    turned = (*straight[:2], straight[3], straight[2])
    return nests.Nest(
        dims=nest.dims, shape=nest.shape, output=nest.output, inputs=(straight, turned)
    )


def test_a_concatenation_of_channels_rolls_along_rows_but_not_along_channels() -> None:
    net, x = net_with_input(1, 4, 12, 12)
    joined = layers.concat(net, "joined", [exp(net, "a", x), exp(net, "b", x)], 1)
    network = net.finish(layers.max_pool(net, "pool", joined, layers.square(2, 2)))
    rows = rows_of(network)
    assert names(rows) == ["a", "b", "pool"]
    linked = rows.linked(0, 2, HEIGHT)
    assert linked is not None
    assert [linked[n].root for n in (0, 1)] == ["joined", "joined"]
    assert rows.makers("joined", range(3)) == (0, 1)
    assert rows.makers("b", range(3)) == (1,)
    assert rows.linked(0, 2, CHANNELS) is None


def test_a_concatenation_of_rows_does_not_roll_along_rows() -> None:
    net, x = net_with_input(1, 4, 12, 12)
    joined = layers.concat(net, "joined", [exp(net, "a", x), exp(net, "b", x)], HEIGHT)
    network = net.finish(layers.max_pool(net, "pool", joined, layers.square(2, 2)))
    rows = rows_of(network)
    assert rows.linked(0, 2, HEIGHT) is None
    assert rows.linked(0, 2, 3) is not None


def test_a_reshape_between_stages_ends_a_cascade() -> None:
    net, x = net_with_input(1, 4, 6, 6)
    flat = layers.reshape(net, "flat", exp(net, "a", x), (1, 24, 1, 6))
    rows = rows_of(net.finish(exp(net, "b", flat)))
    assert names(rows) == ["a", "b"]
    for axis in range(4):
        assert rows.linked(0, 1, axis) is None


def test_a_slice_of_rows_does_not_roll_and_one_of_channels_does() -> None:
    net, x = net_with_input(1, 4, 6, 6)
    made = exp(net, "made", x)
    rows = rows_of(net.finish(exp(net, "last", layers.take(net, "part", made, 1, (1, 3)))))
    assert rows.linked(0, 1, HEIGHT) is not None
    assert rows.linked(0, 1, CHANNELS) is None
    net, x = net_with_input(1, 4, 6, 6)
    made = exp(net, "made", x)
    rows = rows_of(net.finish(exp(net, "last", layers.take(net, "part", made, 2, (1, 3)))))
    assert rows.linked(0, 1, HEIGHT) is None


def test_a_row_of_an_upsampling_reads_the_one_row_that_it_repeats() -> None:
    net, x = net_with_input(1, 4, 6, 6)
    network = net.finish(layers.upsample(net, "up", exp(net, "a", x), 3))
    read = only_read(network, "up")
    assert [read.rows(r, r + 1) for r in range(18)] == [(r // 3, r // 3 + 1) for r in range(18)]
    # Rows 2 to 6 are the last repeat of row 0, those of row 1, and the first of row 2.
    assert read.rows(2, 7) == (0, 3)
    assert rows_of(network).linked(0, 1, HEIGHT) is not None
    assert rows_of(network).linked(0, 1, CHANNELS) is not None


def test_an_operand_that_is_broadcast_along_rows_must_come_from_outside() -> None:
    net, x = net_with_input(1, 4, 6, 6)
    pool = layers.global_average_pool(net, "pool", x)
    scale = exp(net, "scale", pool)
    network = net.finish(exp(net, "last", layers.add(net, "sum", exp(net, "a", x), scale)))
    rows = rows_of(network)
    at = {name: number for number, name in enumerate(names(rows))}
    found = rows.of(at["sum"], HEIGHT)
    assert found is not None
    assert found.wholes == ("scale",)
    assert rows.linked(at["a"], at["last"], HEIGHT) is not None
    assert rows.linked(at["scale"], at["last"], HEIGHT) is None


def test_a_transposition_goes_on_along_another_axis() -> None:
    net, x = net_with_input(1, 4, 6, 8)
    turned = layers.transpose(net, "turned", exp(net, "a", x), (0, 1, 3, 2))
    rows = rows_of(net.finish(exp(net, "b", turned)))
    assert names(rows) == ["a", "turned", "b"]
    linked = rows.linked(0, 2, 2)
    assert linked is not None
    # Rows of the result are columns of what is turned.
    assert [linked[number].axis for number in range(3)] == [3, 2, 2]
    assert [linked[number].size for number in range(3)] == [8, 8, 8]


def test_only_what_nobody_else_touches_is_private() -> None:
    net, x = net_with_input(1, 4, 12, 12)
    inner = exp(net, "inner", x)
    shared = exp(net, "shared", inner)
    handed = exp(net, "handed", shared)
    last = conv(net, "last", handed)
    network = net.finish(handed, last, exp(net, "other", shared))
    rows = rows_of(network)
    at = {name: number for number, name in enumerate(names(rows))}
    linked = rows.linked(0, at["last"], HEIGHT)
    assert linked is not None
    # `shared` is read outside the cascade, `handed` is a result.
    assert rows.private(linked) == {"inner"}

"""Cascades step by step: who makes which rows when, and how many of them are held."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.cascade_cases import rows_of

from tilewright.network import nests
from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import Network, Tensor
from tilewright.network.zoo import layers
from tilewright.network.zoo.layers import Draft
from tilewright.program.cascade import Cascade, Flow, Roll, flow_of
from tilewright.program.rows import unfinished_bits

HEIGHT = 2


def exp(net: Draft, name: str, data: Tensor) -> Tensor:
    return layers.activation(net, name, data, "exp")


def conv(net: Draft, name: str, data: Tensor, stride: int = 1) -> Tensor:
    return layers.conv(net, name, data, 4, layers.square(3, stride, 1))


def chain(strides: Sequence[int], height: int) -> Network:
    """Convolutions 3 x 3 with a padding of 1, called a, b, c."""
    net = layers.draft("chain", 8)
    data = layers.given(net, "x", (1, 4, height, 6))
    for name, stride in zip("abc", strides, strict=False):
        data = conv(net, name, data, stride)
    return net.finish(data)


def flow(network: Network, step: int = 1, *, eager: bool = True, ahead: bool = False) -> Flow:
    """All stages of a network as one cascade along the height."""
    rows = rows_of(network)
    last = len(rows.stages) - 1
    cascade = Cascade(first=0, last=last, axis=HEIGHT, step=step, eager=eager, ahead=ahead)
    found = flow_of(rows, cascade)
    assert found is not None
    return found


def turns(found: Flow) -> list[tuple[int, int, int]]:
    return [(turn.stage, turn.start, turn.stop) for turn in found.turns]


def held(found: Flow) -> dict[str, int]:
    return {name: roll.rows for name, roll in found.rolls.items()}


@pytest.mark.parametrize("eager", [True, False])
def test_a_stage_makes_rows_when_the_next_one_asks_for_them(eager: bool) -> None:
    found = flow(chain([1, 1], 5), eager=eager)
    # Row r of b takes rows r - 1 to r + 1 of a.
    assert turns(found) == [
        *[(0, 0, 1), (0, 1, 2), (1, 0, 1)],
        *[(0, 2, 3), (1, 1, 2)],
        *[(0, 3, 4), (1, 2, 3)],
        *[(0, 4, 5), (1, 3, 4)],
        (1, 4, 5),
    ]
    assert found.rolls == {"a": Roll(HEIGHT, 3)}
    assert found.inputs == {"x": Roll(HEIGHT, 3)}
    assert found.loops == {0: "OY", 1: "OY"}


def test_several_rows_at_once_if_eager_and_one_at_a_time_if_not() -> None:
    assert turns(flow(chain([1, 1], 4), step=2)) == [
        *[(0, 0, 2), (0, 2, 3), (1, 0, 2)],
        *[(0, 3, 4), (1, 2, 4)],
    ]
    assert turns(flow(chain([1, 1], 4), step=2, eager=False)) == [
        *[(0, 0, 1), (0, 1, 2), (1, 0, 1)],
        *[(0, 2, 3), (1, 1, 2)],
        *[(0, 3, 4), (1, 2, 3)],
        (1, 3, 4),
    ]


def test_a_step_of_all_rows_is_one_stage_after_the_other() -> None:
    found = flow(chain([1, 1], 5), step=9)
    assert turns(found) == [(0, 0, 5), (1, 0, 5)]
    assert found.rolls == {"a": Roll(HEIGHT, 5)}


def test_a_stride_asks_for_as_many_rows_as_it_steps_over() -> None:
    found = flow(chain([1, 2], 8))
    # Row r of b takes rows 2r - 1 to 2r + 1 of a, two of them new.
    assert turns(found) == [
        *[(0, 0, 2), (1, 0, 1)],
        *[(0, 2, 4), (1, 1, 2)],
        *[(0, 4, 6), (1, 2, 3)],
        *[(0, 6, 8), (1, 3, 4)],
    ]
    assert held(found) == {"a": 3}
    # a itself makes two rows of four: rows -1 to 2, then 1 to 4 and so on.
    assert found.inputs == {"x": Roll(HEIGHT, 4)}
    assert flow(chain([1, 2], 8), eager=False).inputs == {"x": Roll(HEIGHT, 3)}


def test_an_upsampling_asks_for_every_row_as_often_as_it_repeats_it() -> None:
    net = layers.draft("larger", 8)
    small = conv(net, "a", layers.given(net, "x", (1, 4, 4, 4)))
    network = net.finish(conv(net, "b", layers.upsample(net, "up", small, 2)))
    found = flow(network)
    # Row r of up is row floor(r / 2) of a, and row r of b takes rows r - 1 to r + 1 of up.
    assert turns(found)[:9] == [
        *[(0, 0, 1), (1, 0, 1), (1, 1, 2), (2, 0, 1)],
        *[(0, 1, 2), (1, 2, 3), (2, 1, 2)],
        *[(1, 3, 4), (2, 2, 3)],
    ]
    assert held(found) == {"a": 1, "up": 3}


def test_rows_are_held_over_two_strides() -> None:
    found = flow(chain([2, 2, 1], 16))
    # c makes 1 row at a time from 3 of b; b makes 1 from 3 of a; a makes 2 from 5 of x.
    assert held(found) == {"a": 3, "b": 3}
    assert found.inputs == {"x": Roll(HEIGHT, 5)}
    assert [found.turn_rows(stage) for stage in range(3)] == [2, 1, 1]


def test_room_for_the_next_step_is_as_many_rows_as_come_at_once() -> None:
    plain, ahead = (flow(chain([1, 2], 40), step=3, ahead=ahead) for ahead in (False, True))
    assert ahead.turns == plain.turns
    assert plain.turn_rows(0) == 6
    assert ahead.rolls["a"].rows == plain.rolls["a"].rows + 6
    # Never more than there are.
    assert flow(chain([1, 1], 4), step=4, ahead=True).rolls == {"a": Roll(HEIGHT, 4)}


def test_a_shortcut_holds_rows_until_the_long_way_is_done() -> None:
    net = layers.draft("residual", 8)
    start = exp(net, "start", layers.given(net, "x", (1, 4, 9, 6)))
    far = conv(net, "far", conv(net, "near", start))
    found = flow(net.finish(layers.add(net, "sum", far, start)))
    # For row r of the sum: far r, near r - 1 to r + 1, start r - 2 to r + 2. When start r + 2
    # comes, near r + 1 still wants r to r + 2, and the sum wants r: three rows.
    assert held(found) == {"start": 3, "near": 3, "far": 1}


def test_a_longer_way_holds_more() -> None:
    net = layers.draft("residual", 8)
    start = exp(net, "start", layers.given(net, "x", (1, 4, 12, 6)))
    far = conv(net, "c", conv(net, "b", conv(net, "a", start)))
    found = flow(net.finish(layers.add(net, "sum", far, start)))
    # Row r of the sum takes c r, b to r + 1, a to r + 2, start to r + 3, and start r itself.
    assert held(found) == {"start": 4, "a": 3, "b": 3, "c": 1}


def test_parts_of_a_concatenation_are_made_in_turn() -> None:
    net = layers.draft("joined", 8)
    data = layers.given(net, "x", (1, 4, 5, 6))
    joined = layers.concat(net, "joined", [exp(net, "a", data), exp(net, "b", data)], 1)
    found = flow(net.finish(layers.max_pool(net, "pool", joined, layers.square(2, 1))))
    assert turns(found)[:6] == [
        *[(0, 0, 1), (0, 1, 2), (1, 0, 1), (1, 1, 2), (2, 0, 1)],
        (0, 2, 3),
    ]
    assert found.rolls == {"joined": Roll(HEIGHT, 2)}


def test_rows_that_nobody_reads_are_not_made() -> None:
    net = layers.draft("skipping", 8)
    made = exp(net, "made", layers.given(net, "x", (1, 4, 8, 6)))
    network = net.finish(layers.max_pool(net, "pool", made, layers.square(2, 3)))
    # Rows 0, 1, 3 and 4 are read, 2 stands between them, 6 and 7 make no window any more: it
    # would end at row 7, which is there: windows begin at rows 0, 3 and 6.
    assert [t for t in turns(flow(network)) if t[0] == 0][-1][2] == 8
    net = layers.draft("skipping", 8)
    made = exp(net, "made", layers.given(net, "x", (1, 4, 7, 6)))
    network = net.finish(layers.max_pool(net, "pool", made, layers.square(2, 3)))
    # Of 7 rows, the windows at 0 and 3 read no more than 5.
    assert [t for t in turns(flow(network)) if t[0] == 0][-1][2] == 5


def test_a_result_on_the_way_is_made_completely_and_not_rolled() -> None:
    net = layers.draft("two results", 8)
    middle = exp(net, "middle", layers.given(net, "x", (1, 4, 7, 6)))
    network = net.finish(middle, layers.max_pool(net, "pool", middle, layers.square(2, 3)))
    found = flow(network)
    assert found.rolls == {}
    assert [t for t in turns(found) if t[0] == 0][-1][2] == 7


def test_a_tensor_that_is_also_read_as_a_whole_does_not_come_by_row() -> None:
    net = layers.draft("squared", 8)
    data = layers.given(net, "x", (1, 2, 6, 6))
    first = exp(net, "first", data)
    network = net.finish(exp(net, "last", layers.matmul(net, "product", first, data)))
    rows = rows_of(network)
    found = flow_of(rows, Cascade(first=0, last=2, axis=HEIGHT, step=1))
    assert found is not None
    assert found.inputs == {}
    assert found.rolls == {"first": Roll(HEIGHT, 1), "product": Roll(HEIGHT, 1)}


def test_a_pool_over_everything_goes_through_the_rows_that_it_reads() -> None:
    net = layers.draft("global", 8)
    made = exp(net, "made", layers.given(net, "x", (1, 4, 6, 6)))
    rows = rows_of(net.finish(layers.global_average_pool(net, "pool", made)))
    found = flow_of(rows, Cascade(first=0, last=1, axis=HEIGHT, step=2))
    assert found is not None
    assert (found.loops[1], found.reducing) == ("FY", (1,))
    assert found.rolls == {"made": Roll(HEIGHT, 2)}
    assert turns(found) == [(0, 0, 2), (1, 0, 2), (0, 2, 4), (1, 2, 4), (0, 4, 6), (1, 4, 6)]


def test_what_reads_a_pool_over_everything_cannot_go_along() -> None:
    net = layers.draft("global", 8)
    made = exp(net, "made", layers.given(net, "x", (1, 4, 6, 6)))
    mean = layers.global_average_pool(net, "pool", made)
    rows = rows_of(net.finish(exp(net, "last", mean)))
    assert flow_of(rows, Cascade(first=0, last=2, axis=HEIGHT, step=1)) is None
    assert flow_of(rows, Cascade(first=1, last=2, axis=HEIGHT, step=1)) is None


def test_a_look_up_goes_through_the_rows_of_its_table() -> None:
    net = layers.draft("looked_up", 8)
    made = exp(net, "made", layers.given(net, "x", (6, 4)))
    places = layers.given_indices(net, "places", (3,))
    rows = rows_of(net.finish(layers.look_up(net, "gather", made, places)))
    # Its own rows are one for each place, for which it takes the whole table.
    assert rows.axes(1) == [0, 1, ~0]
    assert flow_of(rows, Cascade(first=0, last=1, axis=0, step=2)) is None
    found = flow_of(rows, Cascade(first=0, last=1, axis=~0, step=2))
    assert found is not None
    assert (found.loops[1], found.reducing) == ("S0", (1,))
    assert found.rolls == {"made": Roll(0, 2)}
    assert turns(found) == [(0, 0, 2), (1, 0, 2), (0, 2, 4), (1, 2, 4), (0, 4, 6), (1, 4, 6)]


@pytest.mark.parametrize(
    ("bits", "dtype", "axes"),
    [(8, "int8", [0, ~1]), (16, "uint16", [0, ~1]), (32, "int32", [0]), (16, "float16", [0])],
)
def test_the_best_of_short_whole_numbers_can_wait_for_more_rows(
    bits: int, dtype: str, axes: list[int]
) -> None:
    # The best so far and its place are kept as one number of 64 bits.
    net = NetworkBuilder("best")
    net.tensor("x", (4, 6), bits=bits, role="input", dtype=dtype)
    nest = nests.reduce((4, 6), [1], keep_dims=False)
    net.op("best", "arg_max", nest, ["x"], {"best": (32, "int32")})
    rows = rows_of(net.finish(["best"]))
    assert rows.axes(0) == axes
    assert unfinished_bits(rows.stages[0].op) == 64


def test_two_results_are_paced_alike() -> None:
    """While the last result grows by a row, one on the way grows by its share of all its rows."""
    net = layers.draft("two results", 8)
    middle = exp(net, "middle", layers.given(net, "x", (1, 4, 8, 6)))
    network = net.finish(middle, layers.max_pool(net, "pool", middle, layers.square(2, 2)))
    found = flow(network)
    assert turns(found) == [
        turn for n in range(4) for turn in ((0, 2 * n, 2 * n + 2), (1, n, n + 1))
    ]


def test_rows_lie_along_each_tensors_own_axis() -> None:
    net = layers.draft("turned", 8)
    made = exp(net, "made", layers.given(net, "x", (1, 4, 5, 6)))
    turned = layers.transpose(net, "turned", made, (0, 1, 3, 2))
    rows = rows_of(net.finish(layers.max_pool(net, "pool", turned, layers.square(2))))
    found = flow_of(rows, Cascade(first=0, last=2, axis=HEIGHT, step=1))
    assert found is not None
    # Rows of the pool are rows of what was turned, and columns before.
    assert found.rolls == {"made": Roll(3, 1), "turned": Roll(HEIGHT, 2)}
    assert found.inputs == {"x": Roll(3, 1)}


def test_rows_that_wait_are_those_that_were_there_when_others_came() -> None:
    """A window of three rows: two of them wait for the third."""
    rows = rows_of(chain([1, 1, 1], 9))
    way = Cascade(first=0, last=2, axis=HEIGHT, step=1, eager=False, on_demand=(0,))
    found = flow_of(rows, way)
    assert found is not None
    assert found.pieces == {"a": Roll(HEIGHT, 2)}
    forgetting = flow_of(rows, replace(way, forgets=True))
    assert forgetting is not None
    assert forgetting.pieces == {"a": Roll(HEIGHT, 0)}

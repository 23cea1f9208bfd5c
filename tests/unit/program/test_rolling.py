"""What cascades hold, in bytes that are worked out by hand."""

from dataclasses import replace

from tests.cascade_cases import prepared
from tests.small_machines import Kind, Small, small_machine

from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.boxes import Ranges
from tilewright.program.cascade import Cascade, Flow, Roll, flow_of
from tilewright.program.homes import Homes
from tilewright.program.model import Box
from tilewright.program.rolling import Rolling

CASCADE = Cascade(first=0, last=2, axis=2, step=1)
Boxes = dict[tuple[str, int], Box]


def network() -> Network:
    """x of 4 channels, a of 6 by a window of 3 x 3, b of 5 by one, and both x and b joined."""
    net = layers.draft("fork", 8)
    data = layers.given(net, "x", (1, 4, 12, 10))
    first = layers.conv(net, "a", data, 6, layers.square(3, 1, 1))
    second = layers.conv(net, "b", first, 4, layers.square(1))
    return net.finish(layers.add(net, "sum", second, data))


def rolling(
    boxes: Boxes | None = None,
    parts: list[tuple[Ranges, ...]] | None = None,
    *,
    kind: Kind = "one",
    cores: int = 2,
) -> tuple[Rolling, Flow]:
    """The cascade of all three ops by rows; buffers begin at multiples of 16 bytes."""
    net = network()
    machine = small_machine(Small(kind=kind, cores=cores, alignment_bytes=16))
    here = prepared(net, machine)
    flow = flow_of(here.rows, CASCADE)
    assert flow is not None
    whole = [({dim: (0, n) for dim, n in stage.op.dims},) for stage in here.stages]
    homes = Homes(net, here.places, here.storage)
    flows = dict.fromkeys(CASCADE.stages, flow)
    return Rolling(homes, here.stages, flows, parts or whole, boxes or {}), flow


def columns(begin: int, end: int, channels: int) -> Box:
    return ((0, 1), (0, channels), (0, 12), (begin, end))


def test_a_rolling_buffer_has_rows_of_the_core_that_needs_most() -> None:
    found, _ = rolling({("a", 0): columns(0, 5, 6), ("a", 1): columns(3, 10, 6)})
    # Three rows of seven columns of six channels; the other core has five columns.
    assert found.buffer_bytes("a", Roll(2, 3)) == 3 * 7 * 6


def test_rows_are_counted_by_memory_each_rounded_up() -> None:
    found, flow = rolling({("a", 0): columns(0, 10, 6), ("b", 0): columns(0, 10, 4)}, cores=1)
    rolls = {"a": Roll(2, 3), "b": Roll(2, 1)}
    # 180 bytes are 12 times 16, and 40 are 3 times.
    assert found.row_bytes(replace(flow, pieces={}, together=()), rolls) == {"bank": 192 + 48}


def test_of_rows_that_do_not_stay_those_count_that_are_there_together() -> None:
    found, flow = rolling({("a", 0): columns(0, 10, 6), ("b", 0): columns(0, 10, 4)}, cores=1)
    passing = {"a": Roll(2, 1), "b": Roll(2, 2)}
    alone = replace(flow, pieces={}, passing=passing, together=(("a",), ("b",)))
    # 60 bytes are 64, 80 are 80; beside 48 that stay.
    assert found.row_bytes(alone, {"b": Roll(2, 1)}) == {"bank": 48 + 80}
    found, _ = rolling({("a", 0): columns(0, 10, 6), ("b", 0): columns(0, 10, 4)}, cores=1)
    both = replace(alone, together=(("b",), ("a", "b"), ("a",)))
    assert found.row_bytes(both, {"b": Roll(2, 1)}) == {"bank": 48 + 64 + 80}
    found, _ = rolling({("a", 0): columns(0, 10, 6), ("b", 0): columns(0, 10, 4)}, cores=1)
    assert found.row_bytes(both, {}) == {"bank": 64 + 80}


def test_a_result_of_all_rows_waits_as_sums() -> None:
    found, flow = rolling({("a", 0): columns(0, 10, 6)}, cores=1)
    pooled = replace(flow, pieces={}, together=(), reducing=(1,))
    # 4 x 12 x 10 sums of b, of 32 bit each, beside a row of 60 bytes.
    assert found.row_bytes(pooled, {"a": Roll(2, 1)}) == {"bank": 4 * 480 + 64}


def test_rows_lie_where_results_are_made_and_where_inputs_are_read() -> None:
    found, _ = rolling(kind="split", cores=1)
    assert (found.memory("a"), found.memory("x")) == ("results", "inputs")


def part(number: int, rows: tuple[int, int]) -> Ranges:
    """Some rows of one of the ops, and all of everything else."""
    return {dim: rows if dim == "OY" else (0, n) for dim, n in network().ops[number].dims}


def test_what_passes_from_outside_is_all_that_is_read_of_it() -> None:
    """The window reads a row more than the sum does, which comes after it."""
    parts: list[tuple[Ranges, ...]] = [(part(number, (0, 6)),) for number in range(3)]
    found, flow = rolling(parts=parts)
    (buffer,) = found.buffers(replace(flow, rolls={}), {"x": Roll(2, 3)})
    assert (buffer.core, buffer.box) == (0, ((0, 1), (0, 4), (0, 7), (0, 10)))
    assert buffer.memory == "bank"


def test_constants_that_every_turn_needs() -> None:
    found, _ = rolling()
    # 6 x 4 x 3 x 3 weights, and 6 sums of four bytes: 216 are 224, 24 are 32.
    assert found.constant_bytes(0) == {"bank": 224 + 32}
    # 4 x 6 weights, and 4 sums: 24 are 32, 16 are 16. The sum of two tensors has none.
    assert found.constant_bytes(1) == {"bank": 32 + 16}
    assert found.constant_bytes(2) == {}


def test_constants_that_come_with_their_rows_are_none_of_them() -> None:
    found, flow = rolling()
    by_channel = replace(flow, loops={0: "K", 1: "K", 2: "K"})
    other = replace(found, flows=dict.fromkeys(CASCADE.stages, by_channel), _constants={})
    assert other.constant_bytes(0) == {}
    by_input = replace(flow, loops={0: "C", 1: "C", 2: "C"})
    other = replace(found, flows=dict.fromkeys(CASCADE.stages, by_input), _constants={})
    # Weights come with their input channels, sums do not.
    assert other.constant_bytes(0) == {"bank": 32}


def test_constants_that_stream_take_no_room() -> None:
    found, _ = rolling(kind="streamed", cores=1)
    assert sum(found.constant_bytes(0).values()) <= 32


def test_constants_stay_if_they_leave_a_quarter_of_the_room() -> None:
    found, flow = rolling()
    # 256 + 48 bytes are three quarters of 405.33.
    assert found.lasting(flow, {"bank": 406}) == [2, 1, 0]
    assert found.lasting(flow, {"bank": 405}) == [2, 1]
    # Then half of the room is for the smallest of them.
    assert found.lasting(flow, {"bank": 96}) == [2, 1]
    assert found.lasting(flow, {"bank": 95}) == [2]


def test_constants_in_two_memories_stay_where_both_have_room() -> None:
    found, flow = rolling()
    other = replace(
        found,
        _constants={0: {"bank": 10, "other": 100}, 1: {"bank": 20}, 2: {}},
        _lasting={},
    )
    assert other.lasting(flow, {"bank": 1000, "other": 1000}) == [2, 1, 0]
    assert other.lasting(flow, {"bank": 1000, "other": 100}) == [2, 1]

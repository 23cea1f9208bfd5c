"""What is known before it is decided what stays: homes, boxes, results in place, and the pace."""

import pytest
from tests.small_machines import Kind, Small, small_machine

from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Index, Network, Operand, Tensor
from tilewright.network.zoo import layers
from tilewright.network.zoo.layers import Draft
from tilewright.program.boxes import Footprint, touched
from tilewright.program.cores import boxes_read, shared_out
from tilewright.program.homes import ANYWHERE, Homes
from tilewright.program.in_place import Replacement, replacements
from tilewright.program.lower import prepare
from tilewright.program.pace import in_step, lead_cycles
from tilewright.program.places import places_of
from tilewright.program.stages import Stage, stages_of, storages
from tilewright.program.tenants import tenant_of
from tilewright.program.tile import Tiling


def facts(network: Network, small: Small) -> tuple[Homes, list[Stage]]:
    storage, stages = storages(network, stages_of(network, network.ops, joins_on_array=False))
    return Homes(network, places_of(small_machine(small)), storage), list(stages)


def exp(net: Draft, name: str, data: Tensor) -> Tensor:
    return layers.activation(net, name, data, "exp")


def conv_and_exp() -> Network:
    net = layers.draft("two", 8)
    data = layers.given(net, "x", (1, 4, 8, 8))
    made = layers.conv(net, "conv", data, 16, layers.square(3, 1, 1))
    return net.finish(exp(net, "exp", made))


def tiling(lengths: dict[str, int], cycles: float = 0.0, moving_cycles: float = 0.0) -> Tiling:
    return Tiling(
        lengths=lengths,
        order=(),
        cycles=cycles,
        moving_cycles=moving_cycles,
        moved_bytes=0.0,
        value=0.0,
        doubled=False,
    )


@pytest.mark.parametrize(
    ("kind", "data", "weights", "result"),
    [
        ("one", "bank", "bank", "bank"),
        ("split", "inputs", "weights", "results"),
        ("streamed", "bank", None, "bank"),
    ],
)
def test_the_array_wants_each_operand_in_the_scratchpad_that_serves_it(
    kind: Kind, data: str, weights: str | None, result: str
) -> None:
    homes, (conv, last) = facts(conv_and_exp(), Small(kind=kind))
    by_name = {operand.name: operand for operand in conv.inputs}
    assert homes.where(conv, by_name["I"]) == data
    assert homes.where(conv, by_name["W"]) == weights
    # A bias lies where weights do; where they stream, beside the data.
    assert homes.where(conv, by_name["B"]) == (weights or data)
    assert homes.where(conv, conv.results[0]) == result
    # The vector unit reads wherever the tensor is.
    assert homes.where(last, last.inputs[0]) == ANYWHERE


def test_only_small_constants_beside_the_weights_come_whole() -> None:
    # 16 biases of 32 bit are 64 B: a sixteenth of 1,024 B, and more than that of 1,023 B.
    for size, expected in ((1024, True), (1023, False)):
        homes, (conv, _) = facts(conv_and_exp(), Small(size_bytes=size))
        found = {o.name: homes.comes_whole(conv, o) for o in conv.inputs}
        assert found == {"I": False, "W": False, "B": expected}


def test_sizes_are_rounded_up_to_the_alignment_of_a_memory() -> None:
    homes, _ = facts(conv_and_exp(), Small(alignment_bytes=16))
    assert [homes.aligned(size, "bank") for size in (0, 1, 16, 17)] == [0, 16, 16, 32]


def test_a_core_needs_the_box_around_all_that_it_reads_and_nothing_is_left_over() -> None:
    net = layers.draft("rows", 8)
    data = exp(net, "data", layers.given(net, "x", (1, 1, 8, 4)))
    network = net.finish(layers.max_pool(net, "pool", data, layers.square(2, 3)))
    homes, stages = facts(network, Small(cores=2))
    full = {dim: (0, size) for dim, size in stages[1].op.dims}
    rows = next(dim for dim, size in stages[1].op.dims if size == 3)
    # Rows 0, 3 and 6 begin a window of two rows: 0 to 4 and 6 to 7 are read, row 5 is not.
    halves = tuple({**full, rows: part} for part in ((0, 2), (2, 3)))
    parts = [({dim: (0, size) for dim, size in stages[0].op.dims},), halves]
    found = boxes_read(homes, stages, parts)
    assert [found["data", core][2] for core in (0, 1)] == [(0, 6), (6, 8)]
    assert found["x", 0][2] == (0, 8)


def test_a_result_takes_the_place_of_an_input_that_nobody_else_reads() -> None:
    net = layers.draft("chain", 8)
    first = exp(net, "first", layers.given(net, "x", (1, 4, 8, 8)))
    second = exp(net, "second", first)
    third = exp(net, "third", second)
    network = net.finish(layers.add(net, "sum", exp(net, "fourth", third), third))
    homes, stages = facts(network, Small())
    parts = [({dim: (0, size) for dim, size in s.op.dims},) for s in stages]
    found = replacements(homes, stages, boxes_read(homes, stages, parts))
    # `x` is no activation, `third` is read twice, and nobody reads the last result.
    assert found == {
        1: Replacement("second", ("first",)),
        2: Replacement("third", ("second",)),
    }


def test_a_vector_op_keeps_step_with_the_tiles_before_it_if_they_are_not_too_small() -> None:
    net = layers.draft("two", 8)
    made = layers.conv(net, "conv", layers.given(net, "x", (1, 4, 64, 64)), 16, layers.square(1))
    _, stages = facts(net.finish(exp(net, "exp", made)), Small())
    rows = stages[1].op.dims[2][0]
    full = dict(stages[0].op.dims)
    assert in_step(stages, {0: tiling(full)}, 1) == {}
    # A row of the result has 16 * 64 = 1,024 points: never fewer than two of them.
    for length, expected in ((8, 8), (1, 2)):
        found = in_step(stages, {0: tiling({**full, "OY": length})}, 1)
        assert found == {rows: expected}


def test_transfers_of_constants_begin_in_the_time_that_stages_before_leave() -> None:
    homes, _ = facts(conv_and_exp(), Small())
    # 90 - 20 = 70 cycles are left, rounded down to a power of two.
    tilings = {0: tiling({}, cycles=90.0, moving_cycles=20.0)}
    assert lead_cycles(homes.places, tilings, 1, {"bank": 4096}) == 64
    # 32 bit a cycle bring the half of 80 B in 10 cycles.
    assert lead_cycles(homes.places, tilings, 1, {"bank": 80}) == 8
    # What a later stage moves longer than it computes is taken off: 70 - 60.
    busy = {**tilings, 1: tiling({}, cycles=10.0, moving_cycles=70.0)}
    assert lead_cycles(homes.places, busy, 2, {"bank": 4096}) == 8


def test_a_footprint_is_what_is_touched_whatever_was_asked_before() -> None:
    network = conv_and_exp()
    conv = network.ops[0]
    data = next(o for o in conv.inputs if o.name == "I")
    shape = network.by_name["x"].shape
    print_of_data = Footprint(data, shape)
    full = {dim: (0, size) for dim, size in conv.dims}
    for rows in ((0, 2), (2, 5), (0, 2)):
        for channels in ((0, 8), (8, 16)):
            ranges = {**full, "OY": rows, "K": channels}
            assert print_of_data.box(ranges) == touched(data, ranges, shape)
    unknown = Operand(name="I", tensor="x", index=None)
    assert Footprint(unknown, shape).box(full) == ((0, 1), (0, 4), (0, 8), (0, 8))


def test_a_footprint_ends_where_its_tensor_ends() -> None:
    # A loop of ten steps over an axis of eight elements, which are its positions.
    operand = Operand(name="I", tensor="x", index=(Index((("OX", 1),)),))
    footprint = Footprint(operand, (8,))
    spans = [(0, 8), (3, 8), (3, 10), (8, 10)]
    assert [footprint.box({"OX": span}) for span in spans] == [
        ((0, 8),),
        ((3, 8),),
        ((3, 8),),
        ((8, 8),),
    ]
    moved = Operand(name="I", tensor="x", index=(Index((("OX", 1),), -2),))
    assert Footprint(moved, (8,)).box({"OX": (0, 4)}) == ((0, 2),)


@pytest.mark.parametrize(("cores", "part"), [(1, 1.0), (2, 0.5), (4, 0.25)])
def test_cores_with_parts_of_their_own_share_what_is_moved(cores: int, part: float) -> None:
    homes, stages = facts(conv_and_exp(), Small(cores=4))
    weights = next(operand for operand in stages[0].inputs if operand.name == "W")
    found = tenant_of(homes, stages[0], weights, kept=False, result=False, cores=cores)
    # The DRAM moves 32 bit a cycle, for one transfer at a time.
    assert found.bytes_per_cycle == 4 * part


def test_how_many_parts_of_an_operand_there_are() -> None:
    net = layers.draft("wide", 8)
    data = layers.given(net, "x", (1, 16, 8, 8))
    network = net.finish(layers.conv(net, "y", data, 64, layers.square(1, 1, 0)))
    prepared = prepare(network, small_machine(Small(cores=4)), network.ops, SearchOptions())
    homes = Homes(network, prepared.places, prepared.storage)
    shares = shared_out(homes, prepared.costs, prepared.stages, [""])
    (parts,), (apart,) = shares.parts, shares.apart
    (cut,) = [dim for dim, ends in parts[0].items() if ends != parts[1][dim]]
    operands = (*prepared.stages[0].inputs, *prepared.stages[0].results)
    for operand, (count, largest) in zip(operands, apart, strict=True):
        walks = any(dim == cut for axis in operand.index or () for dim, _ in axis.terms)
        assert count == (len(parts) if walks else 1)
        size = network.by_name[operand.tensor].size_bytes
        assert largest == (size // len(parts) if walks else size)

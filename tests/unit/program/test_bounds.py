"""What no plan of a network can do better, by hand and against runs that are possible.

The machine is an array of 8 x 4 units, 16 lanes for what is no multiplication, and a DRAM of 4
bytes a cycle.
"""

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from tests.small_machines import Kind, Small, small_machine

from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Index, Network, Operand, Tensor
from tilewright.network.zoo import layers
from tilewright.program.bounds import NetworkBounds, _joint, _reads_all, network_bounds
from tilewright.program.lower import prepare
from tilewright.program.model import Route

QUICK = SearchOptions(lpf_limit=3, unrollings=2)
POINT = layers.square(1)
INDEX_BYTES = layers.INDEX_BITS // 8


def bounds_of(
    network: Network,
    kind: Kind = "one",
    *,
    cores: int = 1,
    dma: bool = False,
    size_bytes: int = 64 * 1024,
) -> NetworkBounds:
    small = Small(kind=kind, cores=cores, dma=dma, size_bytes=size_bytes)
    machine = small_machine(small)
    return prepare(network, machine, network.ops, QUICK).bounds


def _ends(found: NetworkBounds) -> int:
    return found.begin_cycles + found.end_cycles


def product_and_two_others() -> Network:
    """8 x 4 products for each of 16 x 16 pixels, and two ops of the vector unit."""
    net = layers.draft("pair", 8)
    data = layers.given(net, "x", (1, 8, 16, 16))
    middle = layers.conv(net, "conv", data, 4, POINT)
    made = layers.activation(net, "sigmoid", middle, "sigmoid")
    return net.builder.finish([layers.softmax(net, "shares", made).name])


class TestWork:
    """256 pixels: as many steps of the array, and twice 4 x 256 elements over 16 lanes."""

    @pytest.mark.parametrize(
        ("cores", "array", "vector"), [(1, 256, 128), (2, 128, 64), (3, 86, 43)]
    )
    def test_all_cores_share_it(self, cores: int, array: int, vector: int) -> None:
        found = bounds_of(product_and_two_others(), cores=cores)
        assert (found.array_cycles, found.vector_cycles) == (array, vector)

    def test_the_longest_kind_decides(self) -> None:
        """2048 bytes of x, 32 of weights and 4 biases of 4 bytes come at 4 bytes a cycle, and 1024
        go through the same port."""
        found = bounds_of(product_and_two_others())
        assert found.transfer_cycles == (2048 + 32 + 16) // 4
        assert found.cycles == found.shared_cycles == (2048 + 32 + 16 + 1024) // 4
        assert found.traffic_bytes == 2048 + 32 + 16 + 1024

    def test_each_kind_can_be_the_longest(self) -> None:
        least = NetworkBounds(
            array_cycles=1,
            vector_cycles=1,
            transfer_cycles=1,
            shared_cycles=1,
            begin_cycles=2,
            end_cycles=3,
            traffic_bytes=0,
            energy_pj=0.0,
            in_order_cycles=100,
        )
        assert replace(least, array_cycles=7).cycles == 12
        assert replace(least, vector_cycles=7).cycles == 12
        assert replace(least, transfer_cycles=7).cycles == 12
        assert replace(least, shared_cycles=17).cycles == 19


class TestConstantsAfterWork:
    """A convolution of 8 to 32 channels with 3 x 3 taps, a mean, and two products of many weights.

    The array takes 8 x 9 x 256 steps for its 256 pixels. When it is done, at most a scratchpad
    full of the weights of the products is there: of 32 x 1024 and 1024 x 64, and their biases of 4
    bytes each, which come at 4 bytes a cycle.
    """

    def _network(self) -> Network:
        net = layers.draft("late", 8)
        data = layers.conv(
            net, "conv", layers.given(net, "x", (1, 8, 16, 16)), 32, layers.square(3, 1, 1)
        )
        mean = layers.flatten(net, "flat", layers.global_average_pool(net, "mean", data))
        made = layers.gemm(net, "last", layers.gemm(net, "first", mean, 1024), 64)
        return net.builder.finish([made.name])

    @pytest.mark.parametrize(("cores", "room"), [(2, 8192), (3, 12288)])
    def test_those_without_room_come_after_it(self, cores: int, room: int) -> None:
        found = bounds_of(self._network(), cores=cores, size_bytes=4096)
        late = 1024 * (32 + 4) + 64 * (1024 + 4)
        in_order = 8 * 9 * 256 // cores + (late - room) // 4
        assert found.in_order_cycles == in_order + found.end_cycles
        assert found.cycles < in_order

    def test_where_they_stream_nothing_is_known(self) -> None:
        small, large = (bounds_of(self._network(), "streamed", size_bytes=n) for n in (4096, 65536))
        assert small == large


class TestBytes:
    def test_a_constant_that_two_ops_read_comes_once(self) -> None:
        net = layers.draft("twice", 8)
        data = layers.given(net, "x", (1, 8))
        weight = layers.constant(net, "w", (8, 8))
        middle = layers.matmul(net, "first", data, weight)
        made = layers.matmul(net, "second", middle, weight)
        found = bounds_of(net.builder.finish([made.name]))
        assert found.traffic_bytes == 8 + 64 + 8
        assert found.transfer_cycles == (8 + 64) // 4

    def test_of_an_input_counts_what_the_op_that_reads_most_reads(self) -> None:
        """Every second pixel of 4 x 4, row and column, makes 4; the other op reads all 16."""
        net = layers.draft("halves", 8)
        data = layers.given(net, "x", (1, 8, 4, 4))
        half = layers.conv(net, "half", data, 1, layers.square(1, 2))
        strided = net.builder.finish([half.name])
        assert bounds_of(strided).traffic_bytes == 8 * 4 + (8 + 4) + 4

        net = layers.draft("both", 8)
        data = layers.given(net, "x", (1, 8, 4, 4))
        whole = layers.conv(net, "whole", data, 1, POINT)
        half = layers.conv(net, "half", data, 1, layers.square(1, 2))
        both = net.builder.finish([whole.name, half.name])
        assert bounds_of(both).traffic_bytes == 8 * 16 + 2 * (8 + 4) + 16 + 4

    @pytest.mark.parametrize(("rows", "words"), [(50, 3), (2, 3)])
    def test_of_a_table_come_no_more_bytes_than_are_looked_up(self, rows: int, words: int) -> None:
        net = layers.draft("words", 8)
        table = layers.constant(net, "table", (rows, 8))
        made = layers.look_up(net, "looked up", table, layers.given_indices(net, "ids", (words,)))
        found = bounds_of(net.builder.finish([made.name]))
        assert found.traffic_bytes == INDEX_BYTES * words + 8 * min(rows, words) + 8 * words

    def test_of_positions_that_are_constant_all_come_and_of_the_table_what_they_find(self) -> None:
        net = layers.draft("words", 8)
        table = layers.given(net, "table", (50, 1))
        indices = net.builder.tensor("ids", (30,), bits=8 * INDEX_BYTES, role="constant")
        made = layers.look_up(net, "looked up", table, indices)
        found = bounds_of(net.builder.finish([made.name]))
        assert found.traffic_bytes == 30 + INDEX_BYTES * 30 + 30

    def test_results_that_share_bytes_go_once(self) -> None:
        """16 elements come, 16 go as two results of other shapes, and half of them as a third."""
        net = layers.draft("views", 8)
        made = layers.activation(net, "made", layers.given(net, "x", (1, 4, 2, 2)))
        flat = layers.flatten(net, "flat", made)
        half = layers.take(net, "half", made, 1, (1, 3))
        found = bounds_of(net.finish(made, flat, half))
        assert found.traffic_bytes == 16 + 16

    def test_parts_that_do_not_overlap_go_both(self) -> None:
        """Channels 0 and 1, 1 and 2, and 3 of four: those in the middle are in the first."""
        net = layers.draft("parts", 4)
        made = layers.activation(net, "made", layers.given(net, "x", (1, 4, 1, 3)))
        parts = [
            layers.take(net, f"from {a}", made, 1, (a, b)) for a, b in ((0, 2), (1, 3), (3, 4))
        ]
        found = bounds_of(net.finish(*parts))
        # Of 4 bits each: 12 elements come, 6 + 3 go.
        assert found.traffic_bytes == 6 + 5


class TestEnergy:
    def test_products_operations_and_bytes_cost_at_least_this(self) -> None:
        """0.05 pJ for a product or an operation; reading and writing for each byte."""
        found = bounds_of(product_and_two_others())
        products, operations, moved = 8 * 4 * 256, 2 * 4 * 256, 2096 + 1024
        # 320 pJ for 32 bit of DRAM, 12.8 pJ for 128 bit of the scratchpad.
        each = 320 / 4 + 12.8 / 16
        assert found.energy_pj == pytest.approx((products + operations) * 0.05 + moved * each)


class TestEnds:
    """A set-up of 20 cycles, and a last byte that takes 20 and one: only where they are certain."""

    @pytest.mark.parametrize(("kind", "expected"), [("one", 41), ("streamed", 0)])
    def test_what_streams_needs_no_transfer_of_its_own(self, kind: Kind, expected: int) -> None:
        net = layers.draft("conv", 8)
        made = layers.conv(net, "conv", layers.given(net, "x", (1, 8, 2, 2)), 4, POINT)
        found = bounds_of(net.builder.finish([made.name]), kind, dma=True)
        assert _ends(found) == expected

    def test_a_result_that_is_only_moved_may_leave_at_any_time(self) -> None:
        net = layers.draft("turned", 8)
        middle = layers.conv(net, "conv", layers.given(net, "x", (1, 8, 2, 2)), 4, POINT)
        made = layers.transpose(net, "turn", middle, (0, 2, 3, 1))
        found = bounds_of(net.builder.finish([made.name]), dma=True)
        assert (_ends(found), found.vector_cycles) == (0, 0)

    def test_what_is_cut_off_a_result_may_be_computed_last(self) -> None:
        net = layers.draft("cut", 8)
        middle = layers.conv(net, "conv", layers.given(net, "x", (1, 8, 2, 2)), 4, POINT)
        made = layers.take(net, "cut", middle, 1, (0, 2))
        assert _ends(bounds_of(net.builder.finish([made.name]), dma=True)) == 0

    def test_a_part_that_is_read_on_is_not_all_of_a_tensor(self) -> None:
        net = layers.draft("half", 8)
        middle = layers.conv(net, "conv", layers.given(net, "x", (1, 8, 2, 2)), 4, POINT)
        half = layers.take(net, "half", middle, 1, (0, 2))
        made = layers.conv(net, "last", half, 4, POINT)
        assert _ends(bounds_of(net.builder.finish([made.name]), dma=True)) == 0

    def test_the_quickest_way_in_and_out_counts(self) -> None:
        """Set up in 30 cycles at least on the way in; 20, and one for a byte, on the way out."""
        net = layers.draft("conv", 8)
        made = layers.conv(net, "conv", layers.given(net, "x", (1, 8, 2, 2)), 4, POINT)
        network = net.builder.finish([made.name])
        prepared = prepare(network, small_machine(Small(kind="split")), network.ops, QUICK)
        kinds = {space.name: space.kind for space in prepared.places.spaces}
        setups = {"external": iter((30, 40, 50)), "scratchpad": iter((20, 60, 70))}
        routes = {
            ends: replace(
                route, setup_cycles=next(setups[kinds[ends[0]]]), bytes_per_cycle=Fraction(1)
            )
            for ends, route in prepared.places.routes.items()
            if "external" in (kinds[ends[0]], kinds[ends[1]])
        }
        within = Route(
            source="inputs",
            target="results",
            engine="dma",
            setup_cycles=1,
            bytes_per_cycle=Fraction(1),
        )
        places = replace(prepared.places, routes={**routes, ("inputs", "results"): within})
        found = network_bounds(network, prepared.stages, prepared.storage, places, prepared.costs)
        assert _ends(found) == 30 + 20 + 1

    def test_all_of_a_tensor_is_read_only_where_that_is_sure(self) -> None:
        net = layers.draft("conv", 8)
        made = layers.conv(net, "conv", layers.given(net, "x", (1, 8, 4, 4)), 4, POINT)
        network = net.builder.finish([made.name])
        (stage,) = prepare(network, small_machine(Small()), network.ops, QUICK).stages
        rows, columns = Index((("OY", 1),)), Index((("OX", 1),))
        for index, is_all in (
            ((rows, columns), True),
            ((rows, rows), False),
            ((rows, Index((("OX", 1),), divisor=2)), False),
            ((rows, Index((("OX", 1),), reach=1)), False),
            ((rows, Index((("OX", 2),))), False),
            (None, False),
        ):
            operand = Operand(name="I", tensor="t", index=index)
            tensor = Tensor(name="t", shape=(4, 4), bits=8, role="activation")
            assert _reads_all(stage, operand, tensor) == is_all


class TestJoint:
    def test_what_has_no_room_comes_after_the_work_before(self) -> None:
        """When stage 0 ends, at 500, at most 50 of stage 2's 1000 bytes are there."""
        assert _bound([500, 10, 10], [0, 0, 1000], room=50, rate=10) == 500 + 95

    def test_what_has_room_comes_meanwhile(self) -> None:
        assert _bound([500, 10, 10], [0, 0, 1000], room=1000, rate=10) == 520
        assert _bound([500, 10, 10], [0, 0, 1000], room=750, rate=10) == 500 + 25

    def test_the_stage_that_begins_may_have_been_loaded_whatever_its_size(self) -> None:
        assert _bound([500, 10], [0, 1000], room=50, rate=10) == 510

    def test_all_bytes_come_one_after_the_other(self) -> None:
        assert _bound([1, 1, 1], [300, 300, 300], room=900, rate=10) == 90

    def test_no_run_is_shorter(self) -> None:
        """Constants are loaded in order, as soon as there is room, and stay until they are used."""
        chance = Random(3)
        equal = 0
        for _ in range(300):
            count = chance.randint(1, 5)
            room, rate = chance.randint(4, 30), chance.choice((1, 2, 4))
            array = [chance.randint(0, 9) for _ in range(count)]
            weights = [chance.randint(0, room) for _ in range(count)]
            shortest = _run(array, weights, room, rate)
            found = _bound(array, weights, room=room, rate=rate)
            assert found <= shortest
            equal += found == shortest
        assert equal > 10


def _bound(array: list[int], weights: list[int], *, room: int, rate: float) -> float:
    return _joint(np.array(array, dtype=float), np.array(weights, dtype=float), room, rate)


def _run(array: list[int], weights: list[int], room: int, rate: int) -> Fraction:
    """When the last stage ends: each starts once the one before has ended and it is loaded."""
    ends: list[Fraction] = []
    loaded = Fraction(0)
    for number, cycles in enumerate(array):
        # Bytes come as room is left by the earlier stages that end, one after the other.
        size = weights[number]
        held = sum(weights[:number])
        for earlier in range(number):
            come = min(size, max(0, room - held))
            loaded += Fraction(come, rate)
            size, held = size - come, held + come
            if size:
                loaded = max(loaded, ends[earlier])
            held -= weights[earlier]
        loaded += Fraction(size, rate)
        ends.append(max(loaded, ends[-1] if ends else Fraction(0)) + cycles)
    return ends[-1]

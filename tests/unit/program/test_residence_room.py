"""What is left for a stage's tiles beside what is kept, in bytes that are worked out by hand."""

from dataclasses import replace

from tests.cascade_cases import prepared
from tests.small_machines import Small, small_machine

from tilewright.machine.load import load_machine
from tilewright.network.graph import Network, Tensor
from tilewright.network.zoo import layers
from tilewright.network.zoo.layers import Draft
from tilewright.program.cascade import Cascade, flow_of
from tilewright.program.places import Places
from tilewright.program.residence import Residence

ROOM = 64 * 1024


def undecided(
    network: Network,
    small: Small,
    cascade: Cascade | None = None,
    gone: tuple[str, ...] | None = None,
) -> Residence:
    """A residence about which nothing is known yet."""
    on = prepared(network, small_machine(small))
    flow = None if cascade is None else flow_of(on.rows, cascade)
    flows = {} if cascade is None or flow is None else dict.fromkeys(cascade.stages, flow)
    known = on.network, on.places, on.costs, on.stages, on.storage
    return Residence(*known, "latency", flows=flows, waiting=gone)


def residence(
    network: Network,
    small: Small,
    cascade: Cascade | None = None,
    gone: tuple[str, ...] | None = None,
) -> Residence:
    """What is known once ops are shared out, before anything is sent out for want of room."""
    found = undecided(network, small, cascade, gone)
    found.begin()
    return found


def elsewhere(found: Residence, places: Places) -> Residence:
    """The same on another machine."""
    known = found.network, places, found.costs, found.stages, found.storage
    other = Residence(*known, "latency")
    other.begin()
    return other


def taken(found: Residence) -> list[int]:
    """By stage, what does not belong to its tiles."""
    return [ROOM - found.work(number).room["bank"] for number in range(len(found.stages))]


def tenants(found: Residence) -> list[list[str]]:
    """By stage, the operands whose tiles need a place, but for constants."""
    return [
        [t.operand.tensor for t in found.work(number).tenants if not t.constant]
        for number in range(len(found.stages))
    ]


def exp(net: Draft, name: str, data: Tensor) -> Tensor:
    return layers.activation(net, name, data, "exp")


def skip() -> Network:
    """x -> a -> b -> c -> e, then a is added; a and e have 256 B, b has 512 and c 128."""
    net = layers.draft("skip", 8)
    first = layers.conv(net, "a", layers.given(net, "x", (1, 4, 8, 8)), 4, layers.square(1))
    data = layers.conv(net, "b", first, 8, layers.square(1))
    data = layers.conv(net, "c", data, 2, layers.square(1))
    data = layers.conv(net, "e", data, 4, layers.square(1))
    return net.finish(layers.add(net, "sum", data, first))


def test_room_is_what_the_tensors_of_a_stage_leave() -> None:
    found = residence(skip(), Small())
    assert taken(found) == [256, 256 + 512, 512 + 128, 128 + 256, 256 + 256]
    assert tenants(found) == [["x"], [], [], [], ["sum"]]


def test_what_is_kept_where_the_array_does_not_read_comes_over_tile_by_tile() -> None:
    # Results are kept apart from inputs; the sum reads its operands wherever they are.
    assert tenants(residence(skip(), Small(kind="split"))) == [["x"], ["a"], ["b"], ["c"], ["sum"]]


def test_what_no_scratchpad_is_for_needs_no_place() -> None:
    net = layers.draft("outside", 8)
    network = net.finish(exp(net, "b", exp(net, "a", layers.given(net, "x", (1, 4, 8, 8)))))
    assert tenants(residence(network, Small(kind="weights"))) == [[], []]


def crossed(*, is_output: bool) -> Network:
    """On two cores, a product of which each makes half the rows and reads half the columns."""
    net = layers.draft("crossed", 8)
    weights = layers.constant(net, "w", (9, 14))
    made = layers.matmul(net, "made", layers.given(net, "y", (1, 5, 12, 9)), weights)
    last = layers.add(net, "sum", made, made)
    return net.finish(made, last) if is_output else net.finish(last)


def test_tiles_of_an_output_need_a_place_unless_every_core_keeps_all_that_it_makes() -> None:
    assert tenants(residence(crossed(is_output=False), Small(cores=2)))[0] == ["y"]
    found = residence(crossed(is_output=True), Small(cores=2))
    assert tenants(found)[0] == ["y", "made"]
    # One core alone that keeps everything is not enough, and the other may keep nothing.
    everything = ((0, 1), (0, 5), (0, 12), (0, 14))
    found.boxes["made", 0] = everything
    assert tenants(found)[0] == ["y", "made"]
    kept = found.boxes.pop(("made", 1))
    assert kept != everything
    assert tenants(found)[0] == ["y", "made"]
    found.boxes["made", 1] = everything
    assert tenants(found)[0] == ["y"]


def test_where_it_is_said_what_waits_room_is_what_all_others_leave() -> None:
    # a waits beside c and e, until the sum has read it.
    found = residence(skip(), Small(), gone=())
    assert taken(found) == [256, 256 + 512, 256 + 512 + 128, 256 + 128 + 256, 256 + 256]
    found = residence(skip(), Small(), gone=("b",))
    assert taken(found) == [256, 256, 256 + 128, 256 + 128 + 256, 256 + 256]
    assert tenants(found) == [["x"], ["b"], ["b"], [], ["sum"]]


def test_beside_a_cascade_waits_what_is_of_use_before_its_end_and_after_its_begin() -> None:
    found = residence(skip(), Small(), Cascade(first=1, last=2, axis=2, step=1), gone=())
    # b passes by single rows of 8 x 8 B. c, which the cascade makes, takes room from its first
    # stage on; e is made after it. 2 x 8 weights and 2 sums of c, or 8 x 4 and 8 of b, stay.
    rows, constants_of_b, constants_of_c = 64, 32 + 32, 16 + 8
    assert taken(found)[1:3] == [
        256 + 128 + rows + constants_of_c,
        256 + 128 + rows + constants_of_b,
    ]
    assert found.lives["a"] == (0, 4)


def test_every_tensor_takes_whole_units_of_the_memory() -> None:
    # 256 B are 6 times 48, 512 are 11 times and 128 are 3 times.
    found = residence(skip(), Small(alignment_bytes=48))
    assert taken(found) == [288, 288 + 528, 528 + 144, 144 + 288, 288 + 288]


def test_room_is_that_of_the_core_that_keeps_most() -> None:
    net = layers.draft("halo", 8)
    data = layers.conv(net, "a", layers.given(net, "x", (1, 4, 8, 8)), 4, layers.square(1))
    network = net.finish(layers.conv(net, "b", data, 4, layers.square(3, 1, 1)))
    found = residence(network, Small(cores=3))
    # Of eight rows the cores make three, three and two, and read one more on every side:
    # the second of them five, of 8 x 4 B.
    assert found.bytes_of("a") == 5 * 32
    assert taken(found) == [160, 160]


def test_a_result_that_takes_the_place_of_its_input_takes_no_room_of_its_own() -> None:
    net = layers.draft("chain", 8)
    data = layers.given(net, "x", (1, 4, 8, 8))
    for name in ("a", "b", "c", "d"):
        data = exp(net, name, data)
    network = net.finish(data)
    found = residence(network, Small())
    assert [found.overwritten(number) for number in range(4)] == [None, "a", "b", None]
    assert taken(found) == [256] * 4
    # With b outside there is nothing to write over, and nothing that could be written there.
    found = residence(network, Small(), gone=("b",))
    assert [found.overwritten(number) for number in range(4)] == [None] * 4
    assert taken(found) == [256] * 4


def test_nothing_takes_the_place_of_an_input_in_a_cascade() -> None:
    net = layers.draft("joined", 8)
    one = exp(net, "a", layers.given(net, "x", (1, 4, 8, 8)))
    other = exp(net, "b", layers.given(net, "y", (1, 4, 8, 8)))
    both = layers.add(net, "d", exp(net, "c", other), one)
    network = net.finish(exp(net, "e", both))
    found = residence(network, Small())
    assert [found.overwritten(number) for number in range(5)] == [None, None, "b", "c", None]
    assert taken(found) == [256, 256, 256, 512, 256]
    # d might lie where a does, but its rows are made while those of a are still to be read.
    found = residence(network, Small(), Cascade(first=2, last=3, axis=2, step=1))
    assert [found.overwritten(number) for number in range(5)] == [None] * 5
    # a, b and d, and a row of c.
    assert taken(found)[2:4] == [3 * 256 + 32] * 2


def separable() -> Network:
    """Of 6 x 5 positions: x of 4 channels, two results of 48 and one of 8."""
    net = layers.draft("separable", 8)
    data = layers.conv(net, "expand", layers.given(net, "x", (1, 4, 6, 5)), 48, layers.square(1))
    data = layers.conv(net, "depthwise", data, 48, layers.square(3, 1, 1, group=48))
    return net.finish(layers.conv(net, "project", data, 8, layers.square(1)))


def test_nothing_that_passes_through_a_cascade_is_kept() -> None:
    for forgets in (False, True):
        cascade = Cascade(
            first=0, last=2, axis=2, step=1, eager=False, on_demand=(0,), forgets=forgets
        )
        found = residence(separable(), Small(alignment_bytes=16), cascade, gone=())
        assert list(found.gone) == ["x", "expand", "depthwise"]
        # 48 x 9 weights and 48 sums of the second stage, 8 x 48 and 8 of the last.
        constants = 432 + 192 + 384 + 32
        # A row of 48 x 5 B passes between them. Of x two rows are held, 40 B of 48, and two rows
        # of what is made of them; or, where those are forgotten, the three that a window reads.
        rows = 240 + 64 if forgets else 240 + 48 + 2 * 240
        assert taken(found)[0] == rows + constants
        assert tenants(found) == [[], ["expand"], ["project"]]


def test_slices_that_are_forgotten_are_longer() -> None:
    lengths = []
    for forgets in (False, True):
        cascade = Cascade(
            first=0, last=2, axis=2, step=1, eager=False, on_demand=(0,), forgets=forgets
        )
        found = residence(separable(), Small(size_bytes=2400), cascade, gone=())
        lengths.append(found.work(1).lengths["G"])
    # A window reads 3 x 5 B of each channel. Rows of 240 + 40 + 480 B, which wait, leave 1,640 B:
    # an eighth is not even enough for 16 channels, the least. The half of what 240 + 60 B leave is
    # enough for all 48.
    assert lengths == [16, 48]


def test_slices_go_around_the_rows_that_are_made_of_them() -> None:
    net = layers.draft("mlp", 8)
    weights = [
        layers.constant(net, name, shape) for name, shape in (("w", (4, 64)), ("v", (64, 8)))
    ]
    data = layers.matmul(net, "expand", layers.given(net, "x", (8, 4)), weights[0])
    network = net.finish(layers.matmul(net, "project", exp(net, "exp", data), weights[1]))
    cascade = Cascade(first=0, last=2, axis=0, step=2, on_demand=(0,))
    tiling = residence(network, Small(size_bytes=600), cascade, gone=("x",)).tiling(1)
    assert tiling is not None
    # A slice of 16 of the 64 channels is made once for both rows of a step.
    assert (tiling.order, tiling.lengths) == (("K", "D"), {"K": 16, "D": 2})


def test_rows_from_outside_are_held_only_if_their_tensor_is_not_kept() -> None:
    net = layers.draft("three", 8)
    data = layers.conv(net, "a", layers.given(net, "x", (1, 4, 8, 8)), 4, layers.square(1))
    data = layers.conv(net, "b", data, 4, layers.square(3, 1, 1))
    network = net.finish(layers.conv(net, "c", data, 4, layers.square(3, 1, 1)))
    cascade = Cascade(first=1, last=2, axis=2, step=1)
    # Three rows of b, of 4 x 8 B; 4 x 4 x 9 weights and 4 sums of c stay.
    always = 3 * 32 + 144 + 16
    assert taken(residence(network, Small(), cascade, gone=()))[1] == 256 + always
    assert taken(residence(network, Small(), cascade, gone=("a",)))[1] == 3 * 32 + always


def test_what_a_stage_reads_outside_is_not_kept() -> None:
    net = layers.draft("product", 8)
    one = exp(net, "one", layers.given(net, "x", (8, 8)))
    other = exp(net, "other", layers.given(net, "y", (8, 8)))
    network = net.finish(layers.matmul(net, "product", one, other))
    # The second factor comes the way of weights, which stream.
    assert list(residence(network, Small(kind="streamed")).gone) == ["x", "y", "other"]


def test_only_what_is_made_and_has_a_way_out_and_is_there_can_wait_outside() -> None:
    found = residence(skip(), Small(), gone=("b",))
    assert [found.may_send(root) for root in "xabce"] == [False, True, False, True, True]
    # Without an external memory nothing can, nor without a way to it.
    found = residence(skip(), Small(kind="ends"))
    assert not any(found.may_send(root) for root in "xabce")
    found = residence(skip(), Small())
    known = found.places
    ways = {ends: route for ends, route in known.routes.items() if ends != ("bank", "ddr")}
    found = elsewhere(found, replace(known, routes=ways))
    assert not any(found.may_send(root) for root in "xabce")
    # What comes only once is kept, and nobody writes it out.
    once = tuple(replace(space, rereadable=space.name != "ddr") for space in known.spaces)
    found = elsewhere(found, replace(known, spaces=once))
    assert list(found.gone) == []
    assert [found.may_send(root) for root in "xabce"] == [False, True, True, True, True]


def test_the_choice_of_tiles_sees_the_machine_as_it_is() -> None:
    net = layers.draft("two", 8)
    made = layers.conv(net, "conv", layers.given(net, "x", (1, 4, 64, 64)), 16, layers.square(1))
    network = net.finish(exp(net, "exp", made))
    small = Small(alignment_bytes=48, size_bytes=1 << 14)
    found = residence(network, small)
    array, vector = found.work(0), found.work(1)
    # The array takes a cycle a pass; where no vector unit is declared, one of 16 lanes serves.
    assert (array.rate, vector.rate) == (1.0, 16.0)
    for work in (array, vector, found.in_any_room(0), found.in_any_room(1)):
        assert work.alignment == 48
    # Sums of 32 bit wait where results lie, and come back through a port of 128 bit.
    for work in (array, found.in_any_room(0)):
        assert work.partial is not None
        assert (work.partial.bits, work.partial.memory) == (32, "bank")
    assert vector.partial is None
    assert array.partial_bytes_per_cycle == 16
    # The vector unit keeps step with the tiles before it, but rows of a cascade set the pace.
    apart = undecided(network, small)
    rows = apart.layout().tilings[0].lengths["OY"]
    assert 1 < rows < 64
    assert apart.work(1).at_most == {"OY": rows}
    passing = undecided(network, small, Cascade(first=0, last=1, axis=2, step=4))
    passing.layout()
    assert passing.work(1).at_most == {}


def test_tiles_are_aligned_as_the_memory_wants_it_that_wants_most() -> None:
    found = residence(skip(), Small(kind="split"))
    spaces = tuple(
        replace(space, alignment_bytes=16) if space.memory == "weights" else space
        for space in found.places.spaces
    )
    assert elsewhere(found, replace(found.places, spaces=spaces)).work(0).alignment == 16


def test_a_model_of_the_core_lets_constants_come_while_the_stage_before_computes() -> None:
    net = layers.draft("two", 8)
    data = layers.given(net, "x", (1, 16, 16, 16))
    for name in ("a", "b"):
        data = layers.conv(net, name, data, 16, layers.square(3, 1, 1))
    network = net.finish(data)
    for name, has_model in (("ethos_u55_128", True), ("npe8", False)):
        on = prepared(network, load_machine(name))
        known = on.network, on.places, on.costs, on.stages, on.storage
        found = Residence(*known, "latency")
        before = found.layout().tilings[0]
        spare = before.cycles - before.moving_cycles
        lead = found.work(1).lead_cycles
        # Of the time that is left the largest power of two.
        assert lead <= spare < 2 * lead if has_model else lead == 0
        assert found.work(0).lead_cycles == 0


def test_tiles_are_chosen_anew_where_a_later_stage_sends_a_result_out() -> None:
    net = layers.draft("late", 8)
    data = layers.conv(net, "a", layers.given(net, "x", (1, 2, 16, 8)), 8, layers.square(1))
    network = net.finish(layers.conv(net, "b", data, 64, layers.square(3, 1, 1)))
    small = Small(size_bytes=1100)
    # Beside a, of 1,024 B, and 16 + 32 B of constants there is room for one row of x, of 16 B.
    beside = residence(network, small).tiling(0)
    assert beside is not None
    assert beside.lengths["OY"] == 1
    # The second stage is much slower with so little, and sends a out. Then 1,052 B are enough for
    # several rows of both, of 16 + 64 B.
    layout = undecided(network, small).layout()
    assert layout.kept == {}
    assert layout.tilings[0].lengths["OY"] > 1


def test_a_tensor_is_sent_out_exactly_where_that_saves_more_than_its_way_out_and_back() -> None:
    decisions = set()
    for channels, size_bytes in ((4, 320), (4, 336), (4, 376), (16, 516), (16, 536)):
        net = layers.draft("two", 8)
        data = layers.conv(net, "a", layers.given(net, "x", (1, 4, 8, 8)), 4, layers.square(1))
        network = net.finish(layers.conv(net, "b", data, channels, layers.square(1)))
        small = Small(size_bytes=size_bytes)
        kept, gone = residence(network, small), residence(network, small)
        gone.gone["a"] = None
        pairs = [(kept.tiling(number), gone.tiling(number)) for number in (0, 1)]
        # 256 B take 64 cycles in either direction.
        is_sent = any(one and other and other.cycles + 128 < one.cycles for one, other in pairs)
        assert (("a", 0) in undecided(network, small).layout().kept) != is_sent
        # Where it is said what waits outside, nothing else does.
        assert ("a", 0) in undecided(network, small, gone=()).layout().kept
        decisions.add(is_sent)
    assert decisions == {False, True}


def test_the_largest_tensor_of_a_stage_leaves_first() -> None:
    # Beside a and b, of 256 and 512 B, there is no room in 700 B for anything; beside a there is.
    kept = undecided(skip(), Small(size_bytes=700)).layout().kept
    assert [root for root, _ in kept] == ["a", "c", "e"]

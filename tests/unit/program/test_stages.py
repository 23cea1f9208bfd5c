"""What is applied in passing, and what is a mere view."""

from collections.abc import Mapping

from tests.small_networks import op

from tilewright.network import moves, nests
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.stages import Stage, Storage, stages_of, storages


def stages(network: Network, *, joins_on_array: bool = True) -> list[tuple[str, ...]]:
    """The names of the ops of each stage."""
    found = stages_of(network, network.ops, joins_on_array=joins_on_array)
    return [(stage.op.name, *(op.name for op in stage.fused)) for stage in found]


def stored(network: Network) -> tuple[Mapping[str, Storage], list[Stage]]:
    return storages(network, stages_of(network, network.ops, joins_on_array=True))


def test_activations_and_scales_are_applied_to_the_result_before() -> None:
    net = layers.draft("t", 8)
    x = layers.conv(net, "conv", layers.given(net, "x", (1, 3, 8, 8)), 4, layers.square(3))
    scale = layers.constant(net, "scale", (4, 1, 1))
    x = op(net, "mul", "mul", nests.elementwise(x.shape, scale.shape), x, scale)
    x = layers.activation(net, "relu", x)
    x = layers.activation(net, "sigmoid", x, "sigmoid")
    network = net.finish(layers.activation(net, "clip", x, "clip"))
    assert stages(network) == [("conv", "mul", "relu"), ("sigmoid", "clip")]
    (first, _) = stages_of(network, network.ops, joins_on_array=True)
    assert [o.tensor for o in first.inputs] == ["x", "conv.weight", "conv.bias", "scale"]
    assert [o.tensor for o in first.results] == ["relu"]
    # The scale has a value for each output channel, which is loop K of the convolution.
    index = first.inputs[-1].index
    assert index is not None
    assert [axis.terms for axis in index] == [(("K", 1),), (), ()]


def test_nothing_is_fused_over_a_tensor_that_others_read_or_that_is_a_result() -> None:
    net = layers.draft("t", 8)
    data = layers.given(net, "x", (1, 3, 8, 8))
    shared = layers.conv(net, "shared", data, 4, layers.square(1))
    one = layers.activation(net, "one", shared)
    two = layers.activation(net, "two", shared)
    handed = layers.conv(net, "handed", data, 4, layers.square(1))
    three = layers.activation(net, "three", handed)
    network = net.finish(one, two, handed, three)
    assert stages(network) == [("shared",), ("one",), ("two",), ("handed",), ("three",)]


def test_nothing_is_fused_to_an_input_a_move_or_another_shape() -> None:
    net = layers.draft("t", 8)
    data = layers.given(net, "x", (1, 4, 1, 6))
    first = layers.activation(net, "first", data)
    turned = layers.transpose(
        net, "turned", layers.activation(net, "exp", first, "exp"), (0, 3, 2, 1)
    )
    after_move = layers.activation(net, "after_move", turned)
    wide = layers.constant(net, "wide", (1, 6, 5, 4))
    grown = op(net, "grown", "add", nests.elementwise(turned.shape, wide.shape), after_move, wide)
    network = net.finish(grown)
    assert stages(network) == [("first",), ("exp",), ("turned",), ("after_move",), ("grown",)]


def test_a_join_of_activations_is_never_fused_and_runs_where_it_may() -> None:
    net = layers.draft("t", 8)
    data = layers.given(net, "x", (1, 4, 6, 6))
    left = layers.conv(net, "left", data, 4, layers.square(1))
    right = layers.conv(net, "right", data, 4, layers.square(1))
    network = net.finish(layers.add(net, "add", left, right))
    assert stages(network) == [("left",), ("right",), ("add",)]
    for joins, worker in ((True, "array"), (False, "vector")):
        assert stages_of(network, network.ops, joins_on_array=joins)[-1].worker == worker


def test_a_join_of_elements_too_wide_for_the_array_runs_on_the_vector_unit() -> None:
    net = layers.draft("t", 16)
    data = layers.given(net, "x", (1, 4, 6, 6))
    network = net.finish(layers.add(net, "add", data, data))
    for bits, worker in ((16, "array"), (8, "vector"), (None, "array")):
        (stage,) = stages_of(network, network.ops, joins_on_array=True, joined_bits=bits)
        assert stage.worker == worker


def test_parts_of_a_concatenation_of_concatenations_lie_in_the_last_one() -> None:
    net = layers.draft("t", 8)
    data = layers.given(net, "x", (1, 4, 6, 6))
    a, b, c = (
        layers.conv(net, name, data, n, layers.square(1))
        for name, n in zip("abc", (2, 3, 5), strict=True)
    )
    inner = layers.concat(net, "inner", [a, b], 1)
    outer = layers.concat(net, "outer", [c, inner], 1)
    tail = layers.take(net, "tail", outer, 1, (4, 9))
    again = layers.take(net, "again", tail, 2, (1, 3))
    lies, left = stored(net.finish(layers.activation(net, "last", again, "exp")))
    assert [stage.op.name for stage in left] == ["a", "b", "c", "last"]
    assert lies["c"] == Storage("outer", (0, 0, 0, 0))
    assert lies["a"] == Storage("outer", (0, 5, 0, 0))
    assert lies["b"] == Storage("outer", (0, 7, 0, 0))
    assert lies["inner"] == Storage("outer", (0, 5, 0, 0))
    assert lies["tail"] == Storage("outer", (0, 4, 0, 0))
    assert lies["again"] == Storage("outer", (0, 4, 1, 0))


def test_a_reshape_is_a_view_of_a_whole_tensor_only() -> None:
    net = layers.draft("t", 8)
    data = layers.conv(net, "data", layers.given(net, "x", (1, 4, 6, 6)), 4, layers.square(1))
    flat = layers.flatten(net, "flat", data)
    part = layers.take(net, "part", data, 1, (0, 2))
    flat_part = layers.flatten(net, "flat_part", part)
    network = net.finish(
        layers.activation(net, "one", flat, "exp"), layers.activation(net, "two", flat_part, "exp")
    )
    lies, left = stored(network)
    assert lies["flat"] == Storage("data", None)
    assert lies["part"] == Storage("data", (0, 0, 0, 0))
    assert lies["flat_part"].root == "flat_part"
    assert [stage.op.name for stage in left] == ["data", "flat_part", "one", "two"]


def test_a_concatenation_is_work_if_a_part_is_given_repeated_handed_out_or_elsewhere() -> None:
    net = layers.draft("t", 8)
    data = layers.given(net, "x", (1, 4, 6, 6))
    made = layers.conv(net, "made", data, 4, layers.square(1))
    handed = layers.conv(net, "handed", data, 4, layers.square(1))
    fixed = layers.constant(net, "fixed", (1, 4, 6, 6))
    taken = layers.conv(net, "taken", data, 4, layers.square(1))
    ways = {
        "an_input": [made, data],
        "a_constant": [made, fixed],
        "twice": [made, made],
        "a_result": [made, handed],
        "first": [made, taken],
        "second": [made, taken],
    }
    results = [layers.concat(net, name, parts, 1) for name, parts in ways.items()]
    _, left = stored(net.finish(handed, *results))
    moved = [stage.op.name for stage in left if stage.worker == "move"]
    # The first concatenation of two free tensors holds them; for the second they lie elsewhere.
    assert moved == ["an_input", "a_constant", "twice", "a_result", "second"]


def test_a_step_of_two_is_work_and_a_turn_of_short_axes_is_not() -> None:
    net = layers.draft("t", 8)
    data = layers.conv(net, "data", layers.given(net, "x", (1, 4, 1, 6)), 4, layers.square(1))
    nest = moves.slice_axes(data.shape, (0, 1, 0, 0), (1, 2, 1, 6), (1, 2, 1, 1))
    odd = op(net, "odd", "slice", nest, data)
    short = layers.transpose(net, "short", data, (2, 1, 0, 3))
    turned = layers.transpose(net, "turned", data, (0, 3, 2, 1))
    network = net.finish(
        *(layers.activation(net, f"{t.name}_exp", t, "exp") for t in (odd, short, turned))
    )
    lies, left = stored(network)
    assert [s.op.name for s in left if s.worker == "move"] == ["odd", "turned"]
    assert lies["short"] == Storage("data", (0, 0, 0, 0))


def test_a_result_is_no_view_of_what_was_given() -> None:
    net = layers.draft("t", 8)
    data = layers.given(net, "x", (1, 4, 6, 6))
    flat = layers.flatten(net, "flat", data)
    part = layers.take(net, "part", data, 1, (0, 2))
    lies, left = stored(net.finish(flat, part))
    assert [stage.op.name for stage in left] == ["flat", "part"]
    assert (lies["flat"].root, lies["part"].root) == ("flat", "part")

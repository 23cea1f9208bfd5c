"""Ops and their tiles as operations of the hardware."""

from collections.abc import Mapping

from tests.e2e.test_transposed_plans import transposed

from tilewright.mapping.ethos_u.configuration import Shape
from tilewright.mapping.ethos_u.formats import feature_map_formats
from tilewright.mapping.ethos_u.operation import Operation
from tilewright.mapping.ethos_u.softmax import softmax_steps
from tilewright.mapping.ethos_u.step import Step
from tilewright.mapping.ethos_u.translate import Tile, TiledOp, tile_steps
from tilewright.network import nests
from tilewright.network.graph import Network, Op
from tilewright.network.windows import Window
from tilewright.network.zoo import layers
from tilewright.strategy.columns import stretch_of
from tilewright.strategy.patches import patched


def op_named(network: Network, name: str) -> Op:
    return next(op for op in network.ops if op.name == name)


def steps(network: Network, name: str, cut: Mapping[str, int] | None = None) -> tuple[Step, ...]:
    op = op_named(network, name)
    of = TiledOp(op=op, network=network)
    return tile_steps(Tile(of=of, fused=(), lengths={**op.sizes, **(cut or {})}))


def only(network: Network, name: str, cut: Mapping[str, int] | None = None) -> Operation:
    (step,) = steps(network, name, cut)
    return step.operation


def small_cnn() -> Network:
    """An image of 3 channels; strided, plain and depthwise windows; a pool; a product."""
    net = layers.draft("small", 8)
    image = layers.given(net, "image", (1, 3, 32, 32))
    first = layers.conv(net, "first", image, 16, layers.square(3, 2, 1))
    plain = layers.conv(net, "plain", first, 32, layers.square(3, 1, 1))
    deep = layers.conv(net, "deep", plain, 32, layers.square(3, 2, 1, group=32))
    sums = layers.add(net, "sum", deep, deep)
    pooled = layers.global_average_pool(net, "pool", sums)
    point = layers.conv(net, "point", pooled, 10, layers.square(1))
    return net.finish(point)


def test_a_convolution_reads_its_whole_input() -> None:
    assert only(small_cnn(), "plain") == Operation(
        engine="convolution", input=Shape(16, 16, 16), output=Shape(16, 16, 32), kernel=(3, 3)
    )


def test_a_stripe_reads_the_rows_that_its_taps_reach() -> None:
    # 4 rows at a stride of 2 reach 3 * 2 + 3 = 9.
    found = only(small_cnn(), "deep", {"OY": 4})
    assert (found.input.height, found.output.height) == (9, 4)
    assert found.engine == "depthwise"


def test_a_slice_of_channels_reads_all_inputs_or_those_of_its_channels() -> None:
    network = small_cnn()
    assert only(network, "plain", {"K": 8}).input.depth == 16
    assert only(network, "deep", {"G": 8}).input.depth == 8


def test_an_upsampling_repeats_elements_also_in_a_strip_with_half_of_a_border() -> None:
    net = layers.draft("larger", 8)
    data = layers.given(net, "x", (1, 4, 6, 6))
    network = net.finish(layers.upsample(net, "up", data, 2))
    assert only(network, "up", {"OY": 4}) == Operation(
        engine="pooling", input=Shape(2, 6, 4), output=Shape(4, 12, 4), upscaling="nearest"
    )
    stretch = stretch_of(network, network.ops)
    assert stretch is not None
    patches = patched(network, network.ops, ((stretch, 4),))
    assert patches is not None
    # Strips of 3 columns: the first takes columns 0 and 1, of which the other half is the next's.
    found = only(patches.network, "up strip 1")
    assert (found.input, found.output) == (Shape(6, 2, 4), Shape(12, 3, 4))


def test_a_transposed_convolution_sees_the_inputs_around_its_tile() -> None:
    """Kernel 4, stride 2: rows 2i - 1 to 2i + 2 are made of row i."""
    window = Window(kernel=4, stride=2, pad_begin=1, pad_end=1)
    network = transposed(window, channels=8, kernels=4, size=6)
    whole = only(network, "up")
    assert (whole.input, whole.output) == (Shape(6, 6, 8), Shape(12, 12, 4))
    assert (whole.kernel, whole.upscaling) == ((4, 4), "zeros")
    # Rows 2 to 5 are made of rows 0 to 3, or 2 to 4 of rows 0 to 2.
    part = only(network, "up", {"OY": 4, "OX": 3})
    assert (part.input, part.output) == (Shape(4, 3, 8), Shape(4, 3, 4))


def test_the_first_convolution_folds_every_second_column_into_channels() -> None:
    # Taps at columns -1, 0 and 1 of 2 x lie in pairs -1 and 0: two taps, of 6 channels.
    found = only(small_cnn(), "first")
    assert found.input == Shape(32, 16, 6)
    assert (found.kernel, found.stride) == ((3, 2), (2, 1))


def test_a_convolution_of_a_point_is_a_vector_product() -> None:
    found = only(small_cnn(), "point")
    assert (found.engine, found.input, found.output) == (
        "vector_product",
        Shape(1, 1, 32),
        Shape(1, 1, 10),
    )


def test_sums_that_go_on_are_added_element_by_element() -> None:
    network = small_cnn()
    op = op_named(network, "plain")
    lengths = {**op.sizes, "C": 8}
    of = TiledOp(op=op, network=network)
    tile = Tile(of=of, fused=(), lengths=lengths, is_continued=True, is_unfinished=True)
    first, second = (step.operation for step in tile_steps(tile))
    assert (first.engine, first.output_bits) == ("convolution", 32)
    assert (second.engine, second.input_bits, second.output) == ("elementwise", 32, first.output)


def test_an_addition_has_two_inputs() -> None:
    found = only(small_cnn(), "sum", {"OY": 3})
    assert (found.engine, found.arithmetic) == ("elementwise", "addition")
    assert found.input == found.second_input == found.output == Shape(3, 8, 32)


def test_a_constant_for_each_channel_is_small() -> None:
    net = layers.draft("scaled", 8)
    data = layers.given(net, "data", (1, 16, 4, 4))
    scale = layers.constant(net, "scale", (16, 1, 1))
    nest = nests.elementwise(data.shape, scale.shape)
    made = net.builder.op("mul", "mul", nest, ["data", "scale"], {"out": (8, "")})
    found = only(net.finish(made), "mul")
    assert (found.second_input, found.arithmetic) == (Shape(1, 1, 16), "product")
    assert not found.has_scalar


def test_an_activation_by_itself_is_carried_by_a_pool() -> None:
    net = layers.draft("activation", 8)
    data = layers.given(net, "data", (1, 16, 4, 4))
    network = net.finish(layers.activation(net, "sigmoid", data, "sigmoid"))
    found = only(network, "sigmoid")
    assert (found.engine, found.activation, found.kernel) == ("pooling", "table", (1, 1))


def test_a_fused_clip_slows_the_output_down_and_a_fused_scale_is_a_step() -> None:
    net = layers.draft("fused", 8)
    data = layers.given(net, "data", (1, 16, 4, 4))
    made = layers.conv(net, "conv", data, 8, layers.square(1))
    clipped = layers.relu6(net, "clip", made)
    scale = layers.constant(net, "scale", (8, 1, 1))
    nest = nests.elementwise(clipped.shape, scale.shape)
    scaled = net.builder.op("mul", "mul", nest, [clipped.name, "scale"], {"out": (8, "")})
    network = net.finish(scaled)
    conv, clip, mul = network.ops
    of, *fused = (TiledOp(op=op, network=network) for op in (conv, clip, mul))
    tile = Tile(of=of, fused=tuple(fused), lengths={**conv.sizes, "OY": 2})
    first, second = (step.operation for step in tile_steps(tile))
    assert (first.activation, first.output) == ("clamp", Shape(2, 4, 8))
    assert (second.output, second.second_input) == (Shape(2, 4, 8), Shape(1, 1, 8))


def test_what_the_hardware_does_not_run_has_no_steps() -> None:
    net = layers.draft("other", 8)
    data = layers.given(net, "data", (2, 16))
    norm = layers.layer_norm(net, "norm", data, 1e-5)
    assert steps(net.finish(norm), "norm") == ()


def test_32_bit_data_is_not_multiplied() -> None:
    net = layers.draft("wide", 32)
    data = layers.given(net, "data", (1, 16, 4, 4))
    made = layers.conv(net, "conv", data, 8, layers.square(1))
    assert steps(net.finish(made), "conv") == ()


def test_a_softmax_takes_31_operations() -> None:
    found = softmax_steps(rows=3, depth=10)
    assert sum(step.times for step in found) == 31
    assert found[0].operation.kernel == (1, 10)
    assert found[-1].operation.output == Shape(1, 3, 10)


def test_maps_lie_in_bricks_where_that_takes_no_more_room() -> None:
    # `pool` is read by the product; `point` is handed out, and has 10 channels.
    bricks = set(feature_map_formats(small_cnn()))
    assert bricks == {"first", "plain", "deep", "sum", "pool"}


def test_a_map_that_is_read_in_another_shape_lies_linear() -> None:
    net = layers.draft("reshaped", 8)
    data = layers.given(net, "data", (1, 16, 4, 4))
    made = layers.conv(net, "conv", data, 16, layers.square(1))
    nest = nests.moved((1, 256), None)
    flat = net.builder.op("flat", "reshape", nest, [made.name], {"flat": (8, "")})
    assert feature_map_formats(net.finish(flat)) == {}

"""MACs, weights and the registry; every number is derived here, from the papers' tables."""

import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import pytest

from tilewright.errors import InputError
from tilewright.network import zoo
from tilewright.network.counts import constant_bytes, macs, weight_bytes
from tilewright.network.graph import Network


@dataclass(frozen=True)
class Layer:
    """A layer as papers tabulate it: result positions, channels in and out, taps, groups."""

    positions: int
    inputs: int
    outputs: int
    taps: int = 1
    groups: int = 1

    @property
    def weights(self) -> int:
        return self.inputs // self.groups * self.outputs * self.taps

    @property
    def macs(self) -> int:
        return self.positions * self.weights


@dataclass(frozen=True)
class Totals:
    macs: int
    weights: int
    biases: int


def totals(layers: Iterable[Layer]) -> Totals:
    listed = list(layers)
    return Totals(
        sum(layer.macs for layer in listed),
        sum(layer.weights for layer in listed),
        sum(layer.outputs for layer in listed),
    )


def counted(network: Network) -> Totals:
    weights = {
        operand.tensor
        for op in network.ops
        if op.kind in ("conv", "matmul")
        for operand in op.inputs
        if operand.name == "W" and network.by_name[operand.tensor].role == "constant"
    }
    biases = {t.name for t in network.tensors if t.role == "constant" and t.bits == 32}
    return Totals(
        sum(macs(op, network) for op in network.ops),
        sum(network.by_name[name].elements for name in weights),
        sum(network.by_name[name].elements for name in biases),
    )


def lenet5_layers() -> list[Layer]:
    return [
        Layer(28**2, 1, 6, 25),
        Layer(10**2, 6, 16, 25),
        Layer(1, 16 * 5 * 5, 120),
        Layer(1, 120, 84),
        Layer(1, 84, 10),
    ]


def alexnet_layers() -> list[Layer]:
    return [
        Layer(55**2, 3, 96, 121),
        Layer(27**2, 96, 256, 25, 2),
        Layer(13**2, 256, 384, 9),
        Layer(13**2, 384, 384, 9, 2),
        Layer(13**2, 384, 256, 9, 2),
        Layer(1, 256 * 6 * 6, 4096),
        Layer(1, 4096, 4096),
        Layer(1, 4096, 1000),
    ]


def resnet18_layers() -> list[Layer]:
    layers = [Layer(112**2, 3, 64, 49)]
    for before, channels, side in ((64, 64, 56), (64, 128, 28), (128, 256, 14), (256, 512, 7)):
        layers.append(Layer(side**2, before, channels, 9))
        layers += [Layer(side**2, channels, channels, 9)] * 3
        if before != channels:
            layers.append(Layer(side**2, before, channels))
    return [*layers, Layer(1, 512, 1000)]


def resnet50_layers() -> list[Layer]:
    layers = [Layer(112**2, 3, 64, 49)]
    before, side_before = 64, 56
    for channels, depth, side in ((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)):
        layers.append(Layer(side**2, before, 4 * channels))
        for _ in range(depth):
            # In v1.5 the 3x3 has the stride, so the first 1x1 still runs at the larger side.
            layers.append(Layer(side_before**2, before, channels))
            layers.append(Layer(side**2, channels, channels, 9))
            layers.append(Layer(side**2, channels, 4 * channels))
            before, side_before = 4 * channels, side
    return [*layers, Layer(1, 2048, 1000)]


def mobilenetv2_layers() -> list[Layer]:
    # Table 2 of the paper, unrolled: channels out and side out of each of the 17 bottlenecks.
    rows = [(16, 112), *[(24, 56)] * 2, *[(32, 28)] * 3, *[(64, 14)] * 4, *[(96, 14)] * 3]
    rows += [*[(160, 7)] * 3, (320, 7)]
    layers = [Layer(112**2, 3, 32, 9), Layer(112**2, 32, 32, 9, 32), Layer(112**2, 32, 16)]
    for (before, side_before), (channels, side) in pairwise(rows):
        wide = 6 * before
        layers.append(Layer(side_before**2, before, wide))
        layers.append(Layer(side**2, wide, wide, 9, wide))
        layers.append(Layer(side**2, wide, channels))
    return [*layers, Layer(7**2, 320, 1280), Layer(1, 1280, 1000)]


def squeezenet_layers() -> list[Layer]:
    layers = [Layer(111**2, 3, 64, 9)]
    before = 64
    for squeeze, side in ((16, 55), (32, 27), (48, 13), (64, 13)):
        for _ in range(2):
            layers.append(Layer(side**2, before, squeeze))
            layers.append(Layer(side**2, squeeze, 4 * squeeze))
            layers.append(Layer(side**2, squeeze, 4 * squeeze, 9))
            before = 8 * squeeze
    return [*layers, Layer(13**2, 512, 1000)]


def yolo_backbone_layers() -> list[Layer]:
    rows = ((3, 416), (16, 208), (32, 104), (64, 52), (128, 26), (256, 13), (512, 13))
    outputs = (16, 32, 64, 128, 256, 512, 1024)
    return [
        Layer(side**2, before, channels, 9)
        for (before, side), channels in zip(rows, outputs, strict=True)
    ]


def tiny_yolov2_layers() -> list[Layer]:
    return [*yolo_backbone_layers(), Layer(13**2, 1024, 1024, 9), Layer(13**2, 1024, 125)]


def tiny_yolov3_layers() -> list[Layer]:
    return [
        *yolo_backbone_layers(),
        Layer(13**2, 1024, 256),
        Layer(13**2, 256, 512, 9),
        Layer(13**2, 512, 255),
        Layer(13**2, 256, 128),
        Layer(26**2, 128 + 256, 256, 9),
        Layer(26**2, 256, 255),
    ]


def ds_cnn_layers() -> list[Layer]:
    block = [Layer(25 * 5, 64, 64, 9, 64), Layer(25 * 5, 64, 64)]
    return [Layer(25 * 5, 1, 64, 40), *block * 4, Layer(1, 64, 12)]


@pytest.mark.parametrize(
    ("name", "layers", "published"),
    [
        # Weights without biases: 150 + 2,400 + 48,000 + 10,080 + 840.
        ("lenet5", lenet5_layers(), Totals(416_520, 61_470, 236)),
        # Caffe counts 60,965,224 parameters.
        ("alexnet", alexnet_layers(), Totals(724_406_816, 60_954_656, 10_568)),
        # torchvision counts 11,689,512: a bias here stands for scale and shift of a batch norm.
        ("resnet18", resnet18_layers(), Totals(1_814_073_344, 11_678_912, 5_800)),
        # torchvision: 25,557,032 parameters, 4.09 G.
        ("resnet50", resnet50_layers(), Totals(4_089_184_256, 25_502_912, 27_560)),
        # torchvision: 3,504,872 parameters, 0.30 G.
        ("mobilenetv2", mobilenetv2_layers(), Totals(300_774_272, 3_469_760, 18_056)),
        # torchvision: 1,235,496 parameters, 0.35 G.
        ("squeezenet", squeezenet_layers(), Totals(349_151_936, 1_231_552, 3_944)),
        ("tiny_yolov2", tiny_yolov2_layers(), Totals(3_485_520_896, 15_855_536, 3_181)),
        ("tiny_yolov3", tiny_yolov3_layers(), Totals(2_782_480_896, 8_845_488, 3_694)),
        # MLPerf Tiny: 24,908 parameters before batch norm is folded, 2.66 M.
        ("ds_cnn", ds_cnn_layers(), Totals(2_656_768, 22_016, 588)),
    ],
)
def test_macs_and_weights_are_those_of_the_paper(
    name: str, layers: list[Layer], published: Totals
) -> None:
    assert totals(layers) == published
    assert counted(zoo.build(name)) == published


@pytest.mark.parametrize(
    ("name", "batch_norm_channels", "parameters"),
    [
        ("alexnet", 0, 60_965_224),
        ("resnet18", 4_800, 11_689_512),
        ("resnet50", 26_560, 25_557_032),
        ("mobilenetv2", 17_056, 3_504_872),
        ("squeezenet", 0, 1_235_496),
    ],
)
def test_unfolding_batch_norm_gives_the_published_parameter_count(
    name: str, batch_norm_channels: int, parameters: int
) -> None:
    count = counted(zoo.build(name))
    # A folded bias stands for a scale and a shift.
    assert count.weights + count.biases + batch_norm_channels == parameters


@pytest.mark.parametrize(
    ("name", "kib"),
    [("lenet5", 60.0), ("resnet18", 11_405.2), ("tiny_yolov2", 15_483.9), ("tiny_yolov3", 8_638.2)],
)
def test_weights_at_8_bit_take_the_bytes_of_the_notes(name: str, kib: float) -> None:
    assert round(weight_bytes(zoo.build(name)) / 1024, 1) == kib


def test_notes_cnn_is_the_five_layers_of_the_notes() -> None:
    network = zoo.build("notes_cnn")
    assert [op.kind for op in network.ops] == ["conv", "max_pool", "conv", "max_pool", "conv"]
    assert [macs(op, network) for op in network.ops] == [129_600, 0, 778_752, 0, 294_912]
    chain = [network.ops[0].inputs[0].tensor, *(op.outputs[0].tensor for op in network.ops)]
    sizes = [network.by_name[name].size_bytes for name in chain]
    assert sizes == [2_048, 28_800, 7_200, 10_816, 2_304, 2_048]
    weights = [t.size_bytes for t in network.tensors if t.role == "constant"]
    assert weights == [288, 9_216, 36_864]
    assert constant_bytes(network) == weight_bytes(network) == 46_368


def encoder_layer_macs(tokens: int, width: int) -> int:
    projections = 4 * tokens * width * width
    attention = 2 * tokens * tokens * width
    feed_forward = 2 * tokens * width * 4 * width
    return projections + attention + feed_forward


def encoder_layer_weights(width: int) -> int:
    return 4 * width * width + 2 * width * 4 * width


def test_vit_tiny_counts() -> None:
    count = counted(zoo.build("vit_tiny"))
    patches = 14 * 14
    patch_weights = 3 * 16 * 16 * 192
    assert count.macs == (
        patches * patch_weights + 12 * encoder_layer_macs(patches + 1, 192) + 192 * 1000
    )
    assert count.macs == 1_253_683_200
    assert count.weights == patch_weights + 12 * encoder_layer_weights(192) + 192 * 1000
    # timm counts 5,717,416 parameters: also biases, class token, positions and scales of the norms.
    scales = (12 * 2 + 1) * 192
    positions = (patches + 1) * 192
    assert count.weights + count.biases + 192 + positions + scales == 5_717_416


def test_bert_base_counts() -> None:
    network = zoo.build("bert_base")
    count = counted(network)
    assert count.macs == 12 * encoder_layer_macs(128, 768) + 768 * 768 == 11_174_215_680
    assert count.weights == 12 * encoder_layer_weights(768) + 768 * 768
    # The published 110 M: 109,482,240 with embeddings (30,522 + 512 + 2 rows) and norms.
    tables = (30_522 + 512 + 2) * 768
    scales = (12 * 2 + 1) * 768
    assert count.weights + count.biases + tables + scales == 109_482_240


def test_bert_base_attention_grows_with_the_square_of_the_sequence() -> None:
    count = counted(zoo.build("bert_base", {"sequence": 384}))
    assert count.macs == 12 * encoder_layer_macs(384, 768) + 768 * 768


@pytest.mark.parametrize(("tokens", "past"), [(1, 1023), (1, 0), (7, 100), (64, 0)])
def test_gpt2_block_counts(tokens: int, past: int) -> None:
    network = zoo.build("gpt2_block", {"tokens": tokens, "past": past})
    count = counted(network)
    weights = 768 * (3 * 768 + 768 + 2 * 3072)
    assert count.weights == weights
    assert count.macs == tokens * weights + 2 * tokens * (past + tokens) * 768
    # A block of GPT-2 small has 7,087,872 parameters; the norms have two scales of 768.
    assert count.weights + count.biases + 2 * 768 == 7_087_872
    hidden, key, value = network.outputs
    assert hidden.shape == (1, tokens, 768)
    assert key.shape == value.shape == (1, 12, past + tokens, 64)


def test_gpt2_block_needs_no_mask_for_one_token_and_no_cache_for_the_first() -> None:
    def inputs(tokens: int, past: int) -> list[str]:
        network = zoo.build("gpt2_block", {"tokens": tokens, "past": past})
        return [tensor.name for tensor in network.inputs]

    assert inputs(1, 5) == ["hidden_states", "past_key", "past_value"]
    assert inputs(3, 0) == ["hidden_states", "attention_mask"]


@pytest.mark.parametrize("name", zoo.names())
def test_batch_multiplies_macs_and_leaves_weights(name: str) -> None:
    one, three = counted(zoo.build(name)), counted(zoo.build(name, {"batch": 3}))
    assert three == Totals(3 * one.macs, one.weights, one.biases)


@pytest.mark.parametrize("name", zoo.names())
def test_bits_set_the_width_of_weights_and_activations_but_not_of_biases(name: str) -> None:
    network = zoo.build(name, {"bits": 4})
    widths = {tensor.role: set[int]() for tensor in network.tensors}
    for tensor in network.tensors:
        widths[tensor.role].add(tensor.bits)
    assert widths["output"] == widths.get("activation", {4}) == {4}
    assert widths["constant"] - {32} == {4}
    assert all(tensor.dtype == "" for tensor in network.tensors)


@pytest.mark.parametrize("name", zoo.names())
def test_ops_and_tensors_are_named_alike_and_once(name: str) -> None:
    network = zoo.build(name)
    assert network.name == name
    assert network.source == f"zoo:{name}"
    assert [op.name for op in network.ops] == [op.outputs[0].tensor for op in network.ops]
    assert len({op.name for op in network.ops}) == len(network.ops)


def test_names_tell_where_an_op_stands() -> None:
    resnet = {op.name for op in zoo.build("resnet18").ops}
    assert {"layer1.0.conv1", "layer1.0.relu", "layer2.0.downsample", "fc"} <= resnet
    bert = {op.name for op in zoo.build("bert_base").ops}
    assert {"encoder.3.attention.scores", "encoder.11.mlp.gelu", "pooler.tanh"} <= bert


def test_mac_ops_read_data_weights_and_bias() -> None:
    network = zoo.build("resnet18")
    for op in network.ops:
        if op.kind in ("conv", "matmul"):
            assert [operand.name for operand in op.inputs] == ["I", "W", "B"]
            assert network.by_name[op.inputs[2].tensor].bits == 32


def test_source_names_the_options_that_differ() -> None:
    options = {"size": 64, "bits": 8, "batch": 2}
    assert zoo.build("resnet18", options).source == "zoo:resnet18?batch=2&size=64"


def test_every_network_has_one_line_about_it_and_the_shared_options() -> None:
    for name in zoo.names():
        assert zoo.describe(name)
        assert "\n" not in zoo.describe(name)
        assert zoo.defaults(name)["batch"] == 1
        assert zoo.defaults(name)["bits"] == (16 if name == "notes_cnn" else 8)


@pytest.mark.parametrize("ask", [zoo.build, zoo.describe, zoo.defaults])
def test_an_unknown_name_gets_the_nearest_and_the_list(ask: object) -> None:
    assert callable(ask)
    with pytest.raises(InputError) as caught:
        ask("ResNet19")
    (problem,) = caught.value.problems
    assert problem.message == "no network 'ResNet19' in the zoo"
    assert problem.hint.splitlines() == [
        "did you mean 'resnet18'?",
        f"there are {', '.join(zoo.names())}",
    ]


def test_an_unknown_option_gets_the_nearest_and_the_list() -> None:
    with pytest.raises(InputError) as caught:
        zoo.build("bert_base", {"sequnce": 64, "size": 224})
    near, far = caught.value.problems
    assert near.message == "bert_base has no option 'sequnce'"
    listed = "its options and defaults: bits=8, batch=1, sequence=128"
    assert near.hint == f"did you mean 'sequence'?\n{listed}"
    assert far.hint == listed


@pytest.mark.parametrize(
    ("name", "options", "hint"),
    [
        ("resnet18", {"size": 225}, "size is a multiple of 32 from 32 to 4096; 224 if left out"),
        ("resnet18", {"size": 0}, "size is a multiple of 32 from 32 to 4096; 224 if left out"),
        ("lenet5", {"bits": 0}, "bits is from 1 to 64; 8 if left out"),
        ("lenet5", {"batch": -1}, "batch is from 1 to 4096; 1 if left out"),
        ("lenet5", {"batch": True}, "batch is from 1 to 4096; 1 if left out"),
        ("bert_base", {"sequence": 513}, "sequence is from 1 to 512; 128 if left out"),
        ("gpt2_block", {"past": -1}, "past is from 0 to 1023; 1023 if left out"),
        ("gpt2_block", {"tokens": 2}, "tokens + past may be 1024 at most"),
    ],
)
def test_an_impossible_value_is_refused(name: str, options: dict[str, int], hint: str) -> None:
    with pytest.raises(InputError) as caught:
        zoo.build(name, options)
    (problem,) = caught.value.problems
    assert problem.message.startswith(name)
    assert problem.hint == hint


@pytest.mark.parametrize("name", [name for name in zoo.names() if "size" in zoo.defaults(name)])
def test_the_smallest_image_works(name: str) -> None:
    assert zoo.build(name, {"size": 32}).inputs[0].shape == (1, 3, 32, 32)


def test_same_options_give_the_same_network() -> None:
    assert zoo.build("mobilenetv2", {"size": 96}) == zoo.build("mobilenetv2", {"size": 96})


def test_resnet50_is_built_within_a_tenth_of_a_second() -> None:
    start = time.process_time()
    zoo.build("resnet50")
    assert time.process_time() - start < 0.1


def test_the_registry_needs_no_numpy() -> None:
    check = "import sys; from tilewright.network import zoo; zoo.names(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert not {"numpy", "onnx", "pydantic"} & set(done.stdout.split())

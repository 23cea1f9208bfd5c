"""Every shape, and some values, of the zoo against ONNX Runtime, which infers them its own way."""

from itertools import product

import numpy as np
import pytest
from tests.zoo_export import run, to_onnx

from tilewright.network import moves, zoo
from tilewright.network.graph import Index, Network

SMALL = {
    "lenet5": {"batch": 2},
    "resnet18": {"batch": 2, "size": 64},
    "resnet50": {"size": 96},
    "mobilenetv2": {"batch": 3, "size": 64},
    "squeezenet": {"batch": 2, "size": 67},
    "tiny_yolov2": {"size": 96},
    "tiny_yolov3": {"batch": 2, "size": 64},
    "ds_cnn": {"batch": 2},
    "vit_tiny": {"batch": 2, "size": 48},
    "gpt2_block": {"batch": 2, "tokens": 3, "past": 5},
    "notes_cnn": {},
}


def assert_same_shapes(network: Network) -> None:
    results = run(network)
    made = [operand.tensor for op in network.ops for operand in op.outputs]
    assert {name: network.by_name[name].shape for name in made} == {
        name: value.shape for name, value in results.items()
    }


@pytest.mark.parametrize("name", SMALL)
def test_shapes_at_small_sizes_are_those_of_onnxruntime(name: str) -> None:
    assert_same_shapes(zoo.build(name, SMALL[name]))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SMALL else []) for name in zoo.names()],
)
def test_shapes_at_full_size_are_those_of_onnxruntime(name: str) -> None:
    assert_same_shapes(zoo.build(name))


@pytest.mark.parametrize("size", range(32, 50))
def test_squeezenet_pools_round_as_those_of_onnxruntime(size: int) -> None:
    assert_same_shapes(zoo.build("squeezenet", {"size": size}))


@pytest.mark.parametrize("name", SMALL)
def test_every_op_is_one_onnx_node(name: str) -> None:
    network = zoo.build(name, SMALL[name])
    nodes = [node for node in to_onnx(network).graph.node if node.op_type != "ConstantOfShape"]
    assert [node.name for node in nodes] == [op.name for op in network.ops]


def test_a_token_on_top_of_the_cache_is_what_the_whole_sequence_gives() -> None:
    tokens, past = 5, 4
    hidden = np.random.default_rng(1).standard_normal((1, tokens, 768), dtype=np.float32)
    mask = np.triu(np.full((1, 1, tokens, tokens), -np.inf, dtype=np.float32), 1)
    whole = run(
        zoo.build("gpt2_block", {"tokens": tokens, "past": 0}),
        seed=7,
        values={"hidden_states": hidden, "attention_mask": mask},
    )
    keys, values = whole["present_key"], whole["present_value"]
    last = run(
        zoo.build("gpt2_block", {"tokens": 1, "past": past}),
        seed=7,
        values={
            "hidden_states": hidden[:, past:],
            "past_key": keys[:, :, :past],
            "past_value": values[:, :, :past],
        },
    )
    np.testing.assert_allclose(last["present_key"], keys, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(last["add2"], whole["add2"][:, past:], rtol=1e-4, atol=1e-4)


def test_magnify_copies_the_elements_that_resize_copies() -> None:
    network = zoo.build("tiny_yolov3", {"size": 64})
    values = run(network, seed=3)
    (op,) = [op for op in network.ops if op.kind == "resize"]
    source, result = values[op.inputs[0].tensor], values[op.outputs[0].tensor]
    read, written = op.inputs[0].index, op.outputs[0].index
    assert read is not None
    assert written is not None
    copied = np.full_like(result, np.nan)
    names = [name for name, _ in op.dims]
    # Channels are alike, so the first two of them are enough.
    sizes = [2 if name == "G" else size for name, size in op.dims]
    for point in product(*map(range, sizes)):
        loops = dict(zip(names, point, strict=True))
        copied[position(written, loops)] = source[position(read, loops)]
    np.testing.assert_array_equal(copied[:, :2], result[:, :2])


def position(indices: tuple[Index, ...], loops: dict[str, int]) -> tuple[int, ...]:
    """The only element in the window of each axis."""
    found = []
    for index in indices:
        low = index.offset + sum(loops[dim] * factor for dim, factor in index.terms)
        window = [at for at in range(low, low + index.reach + 1) if at % index.divisor == 0]
        (at,) = window
        found.append(at // index.divisor)
    return tuple(found)


def test_magnify_refuses_factors_that_fit_no_axis() -> None:
    with pytest.raises(ValueError, match="does not magnify"):
        moves.magnify((2, 3), (2, 2, 2))
    with pytest.raises(ValueError, match="does not magnify"):
        moves.magnify((2, 3), (0,))

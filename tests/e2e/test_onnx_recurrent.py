"""Recurrent layers are unrolled, and compute what ONNX Runtime computes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.e2e.test_onnx_shapes import session
from tests.onnx_models import Array, Given, model, node, saved

import tilewright
from tilewright.errors import InputError
from tilewright.network.counts import macs
from tilewright.network.load import load_network
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import values_of
from tilewright.replay.verify import verify

STEPS, INNER, HIDDEN = 4, 5, 3
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer: what of its inputs is given, and its attributes."""

    op: str
    batch: int = 1
    directions: int = 1
    has_bias: bool = True
    states: str = ""
    """Where states before the first step come from: `input`, `constant`, or nowhere."""
    lengths: int = 0
    """Steps of every sequence, if they are given."""
    attributes: dict[str, Any] = field(default_factory=dict)


LAYERS = {
    "lstm": Layer(op="LSTM"),
    "lstm of a batch, both ways, with states": Layer(
        op="LSTM", batch=2, directions=2, states="input"
    ),
    "lstm backwards, with constant states": Layer(
        op="LSTM", states="constant", attributes={"direction": "reverse"}
    ),
    "lstm without bias, with lengths": Layer(op="LSTM", has_bias=False, lengths=STEPS),
    "lstm with other activations": Layer(
        op="LSTM",
        directions=2,
        attributes={"activations": ["Sigmoid", "Relu", "Tanh", "Sigmoid", "Tanh", "Relu"]},
    ),
    "gru": Layer(op="GRU"),
    "gru of a batch, both ways, with states": Layer(
        op="GRU", batch=2, directions=2, states="input"
    ),
    "gru that resets late": Layer(op="GRU", attributes={"linear_before_reset": 1}),
    "gru that resets late, both ways, with states": Layer(
        op="GRU", directions=2, states="input", attributes={"linear_before_reset": 1}
    ),
    "gru that resets late, without bias": Layer(
        op="GRU", has_bias=False, attributes={"linear_before_reset": 1}
    ),
    "rnn": Layer(op="RNN"),
    "rnn of a batch, both ways": Layer(op="RNN", batch=2, directions=2, states="input"),
}


def written(layer: Layer, folder: Path) -> Path:
    """The layer in a file, with all of its results."""
    random = np.random.default_rng(0)
    ways, rows = layer.directions, GATES[layer.op] * HIDDEN
    state = (ways, layer.batch, HIDDEN)

    def drawn(*shape: int) -> Array:
        return random.uniform(-1, 1, shape).astype(np.float32)

    given = {"x": Given(shape=(STEPS, layer.batch, INNER))}
    constants = {"w": drawn(ways, rows, INNER), "r": drawn(ways, rows, HIDDEN)}
    names = ["x", "w", "r", *("b" if layer.has_bias else "", "n" if layer.lengths else "")]
    constants |= {"b": drawn(ways, 2 * rows)} if layer.has_bias else {}
    constants |= {"n": np.full(layer.batch, layer.lengths, np.int32)} if layer.lengths else {}
    for name in ("h", "c") if layer.op == "LSTM" else ("h",):
        names.append(name if layer.states else "")
        given |= {name: Given(shape=state)} if layer.states == "input" else {}
        constants |= {name: drawn(*state)} if layer.states == "constant" else {}
    attributes = {"hidden_size": HIDDEN, **layer.attributes}
    attributes |= {"direction": "bidirectional"} if ways == 2 else {}
    outputs = ["y", "last", "cell"] if layer.op == "LSTM" else ["y", "last"]
    nodes = [node(layer.op, names, outputs, attributes, name="it")]
    return saved(model(nodes, given, outputs, constants, opset=14), folder)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS.keys())
def test_a_layer_computes_what_onnx_runtime_computes(layer: Layer, tmp_path: Path) -> None:
    path = written(layer, tmp_path)
    network = load_network(path)
    values = values_of(network, path)
    feed = {tensor.name: values.arrays[tensor.name] for tensor in network.inputs}
    names = [tensor.name for tensor in network.outputs]
    found = computed(network, values.arrays, values.quantisation)
    for name, expected in zip(names, session(onnx.load(path)).run(names, feed), strict=True):
        assert found[name].shape == expected.shape
        np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_first_state_of_zeros_costs_no_products(tmp_path: Path) -> None:
    network = load_network(written(Layer(op="LSTM"), tmp_path))
    # 4 steps times 12 gate values of 5 inputs, 3 steps times 12 of 3 states.
    assert sum(macs(op, network) for op in network.ops) == 4 * 12 * 5 + 3 * 12 * 3


@pytest.mark.slow
def test_a_plan_of_a_layer_is_right(tmp_path: Path) -> None:
    network = load_network(written(Layer(op="RNN", directions=2), tmp_path), bits=16)
    plan = tilewright.plan(network, tilewright.load_machine("seneca"))
    assert verify(plan.timetable, network).agrees


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (Layer(op="LSTM", lengths=STEPS - 1), "its sequences may be shorter than 4 steps"),
        (Layer(op="GRU", attributes={"clip": 3.0}), "it clips its sums"),
        (Layer(op="RNN", attributes={"layout": 1}), "its batch comes first"),
        (Layer(op="RNN", attributes={"activations": ["Elu"]}), "sigmoid, tanh, relu are read"),
        (Layer(op="LSTM", attributes={"input_forget": 1}), "its input and forget gates are one"),
    ],
)
def test_what_is_not_read_of_a_layer_is_said(layer: Layer, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=reason):
        load_network(written(layer, tmp_path))


def test_a_layer_of_too_many_steps_is_refused(tmp_path: Path) -> None:
    shapes = {"w": (1, 1, 2), "r": (1, 1, 1)}
    constants = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    given = {"x": Given(shape=("time", 1, 2))}
    nodes = [node("RNN", ["x", "w", "r"], ["y"], {"hidden_size": 1})]
    path = saved(model(nodes, given, ["y"], constants), tmp_path)
    assert len(load_network(path, dims={"time": 2}).ops) > 2
    with pytest.raises(InputError, match="1001 steps are not unrolled, 1000 are the most"):
        load_network(path, dims={"time": 1001})

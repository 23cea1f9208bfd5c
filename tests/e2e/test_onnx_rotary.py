"""Rotary embeddings compute what ONNX Runtime computes."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.e2e.test_onnx_shapes import session
from tests.onnx_models import Array, Given, model, node, saved

import tilewright
from tilewright.errors import InputError
from tilewright.network.load import load_network
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import values_of
from tilewright.replay.verify import verify

BATCH, HEADS, ROWS, COLUMNS = 2, 3, 5, 8


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A node: the shape of its data, its attributes, and whose operator it is."""

    data: tuple[int, ...] = (BATCH, HEADS, ROWS, COLUMNS)
    pairs: int = COLUMNS // 2
    attributes: dict[str, int] = field(default_factory=dict)
    domain: str = ""
    has_positions: bool = True


FLAT = (BATCH, ROWS, HEADS * COLUMNS)
NODES = {
    "four axes": Turn(),
    "three axes": Turn(data=FLAT, attributes={"num_heads": HEADS}),
    "neighbours turn": Turn(attributes={"interleaved": 1}),
    "neighbours turn, three axes": Turn(
        data=FLAT, attributes={"num_heads": HEADS, "interleaved": 1}
    ),
    "some columns": Turn(pairs=2, attributes={"rotary_embedding_dim": 4}),
    "without positions": Turn(has_positions=False),
    "Microsoft's": Turn(domain="com.microsoft"),
    "Microsoft's, three axes": Turn(data=FLAT, domain="com.microsoft"),
    "Microsoft's, some columns": Turn(
        data=FLAT,
        pairs=2,
        attributes={"rotary_embedding_dim": 4, "num_heads": HEADS},
        domain="com.microsoft",
    ),
}


def written(turn: Turn, folder: Path) -> Path:
    angles = np.random.default_rng(0).uniform(0, 6, (9, turn.pairs))
    if not turn.has_positions:
        angles = np.random.default_rng(0).uniform(0, 6, (BATCH, ROWS, turn.pairs))
    stored: dict[str, Array] = {
        "cos": np.cos(angles).astype(np.float32),
        "sin": np.sin(angles).astype(np.float32),
    }
    given = {"x": Given(shape=turn.data)}
    inputs = ["x", "cos", "sin"]
    if turn.has_positions:
        given["places"] = Given(shape=(BATCH, ROWS), dtype="int64")
        inputs = ["x", "places", "cos", "sin"] if turn.domain else [*inputs, "places"]
    turned = node(
        "RotaryEmbedding", inputs, ["y"], turn.attributes, domain=turn.domain, name="turn"
    )
    return saved(model([turned], given, ["y"], stored, opset=23), folder)


@pytest.mark.parametrize("name", NODES)
def test_turned_pairs_are_those_of_onnx_runtime(name: str, tmp_path: Path) -> None:
    path = written(NODES[name], tmp_path)
    network = load_network(path)
    values = values_of(network, path).arrays
    found = computed(network, values, {})["y"]
    feed = {tensor.name: values[tensor.name] for tensor in network.inputs}
    (expected,) = session(onnx.load(path)).run(["y"], feed)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_plan_of_turned_pairs_is_verified(tmp_path: Path) -> None:
    network = load_network(written(NODES["some columns"], tmp_path))
    plan = tilewright.plan(network, tilewright.load_machine("ethos_u65_256"))
    assert verify(plan.timetable, network).agrees


def test_columns_that_make_no_pairs_are_refused(tmp_path: Path) -> None:
    path = written(Turn(attributes={"rotary_embedding_dim": 3}), tmp_path)
    with pytest.raises(InputError, match="3 of 8 columns cannot turn in pairs"):
        load_network(path)

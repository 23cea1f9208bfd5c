"""Attention in one operator computes what ONNX Runtime computes."""

from collections.abc import Mapping
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


@dataclass(frozen=True, kw_only=True)
class Attention:
    """A node: its inputs in order, shapes of those that are given and arrays of constants."""

    operands: tuple[tuple[int, ...] | Array | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    results: int = 1
    op: str = "Attention"


def drawn(*shape: int) -> Array:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def lengths(batch: int, rows: int) -> tuple[Array, Array]:
    """All rows of each sequence count: the place of the last one, and their number."""
    return np.full(batch, rows - 1, dtype=np.int32), np.array([rows], dtype=np.int32)


ANGLES = 10 * drawn(12, 8)
TRIANGLE = np.tril(np.ones((6, 6), dtype=bool))
FLAT = {"q_num_heads": 4, "kv_num_heads": 2}
MICROSOFT = "com.microsoft."
NODES = {
    "four axes": Attention(operands=((2, 4, 6, 8),) * 3),
    "heads share keys": Attention(operands=((2, 4, 6, 8), (2, 2, 6, 8), (2, 2, 6, 8))),
    "other keys, other values": Attention(operands=((1, 2, 6, 8), (1, 2, 9, 8), (1, 2, 9, 5))),
    "causal": Attention(operands=((2, 4, 6, 8),) * 3, attributes={"is_causal": 1}),
    "a mask to add": Attention(
        operands=(*((2, 4, 6, 8),) * 3, (2, 1, 6, 6)), attributes={"scale": 0.3}
    ),
    "a mask of truths": Attention(operands=(*((2, 4, 6, 8),) * 3, TRIANGLE)),
    "with a past": Attention(
        operands=(*((2, 4, 6, 8),) * 3, None, (2, 4, 3, 8), (2, 4, 3, 8)),
        attributes={"is_causal": 1},
        results=3,
    ),
    "three axes": Attention(operands=((2, 6, 32), (2, 6, 16), (2, 6, 16)), attributes=FLAT),
    "with a projection": Attention(
        operands=((2, 6, 8), drawn(8, 24), drawn(24)),
        attributes={"num_heads": 4, "unidirectional": 1},
        op=f"{MICROSOFT}Attention",
    ),
    "of many heads": Attention(
        operands=((2, 6, 8), (2, 9, 8), (2, 9, 8), drawn(24), None, (2, 4, 6, 9)),
        attributes={"num_heads": 4},
        op=f"{MICROSOFT}MultiHeadAttention",
    ),
    "groups of queries": Attention(
        operands=((2, 6, 64), (2, 6, 32), (2, 6, 32), None, None, *lengths(2, 6)),
        attributes={"num_heads": 4, "kv_num_heads": 2, "scale": 0.3},
        results=3,
        op=f"{MICROSOFT}GroupQueryAttention",
    ),
    "groups of queries, turned, with a past": Attention(
        operands=(
            *((1, 3, 64), (1, 3, 32), (1, 3, 32), (1, 2, 5, 16), (1, 2, 5, 16), *lengths(1, 8)),
            *(np.cos(ANGLES), np.sin(ANGLES)),
        ),
        attributes={"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1},
        results=3,
        op=f"{MICROSOFT}GroupQueryAttention",
    ),
    "groups of queries in one tensor, neighbours turned": Attention(
        operands=(
            *((2, 1, 128), None, None, (2, 2, 5, 16), (2, 2, 5, 16), *lengths(2, 6)),
            *(np.cos(ANGLES), np.sin(ANGLES)),
        ),
        attributes={"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "rotary_interleaved": 1},
        results=3,
        op=f"{MICROSOFT}GroupQueryAttention",
    ),
}


def written(case: Attention, folder: Path) -> Path:
    names = ["" if operand is None else f"x{i}" for i, operand in enumerate(case.operands)]
    given = {
        name: Given(shape=operand)
        for name, operand in zip(names, case.operands, strict=True)
        if isinstance(operand, tuple)
    }
    constants = {
        name: operand
        for name, operand in zip(names, case.operands, strict=True)
        if isinstance(operand, np.ndarray)
    }
    outputs = [f"y{i}" for i in range(case.results)]
    domain, _, op = case.op.rpartition(".")
    nodes = [node(op, names, outputs, case.attributes, name="it", domain=domain)]
    return saved(model(nodes, given, outputs, constants, opset=23), folder)


@pytest.mark.parametrize("case", NODES.values(), ids=NODES.keys())
def test_attention_computes_what_onnx_runtime_computes(case: Attention, tmp_path: Path) -> None:
    path = written(case, tmp_path)
    network = load_network(path)
    values = values_of(network, path)
    feed = {tensor.name: values.arrays[tensor.name] for tensor in network.inputs}
    names = [tensor.name for tensor in network.outputs]
    assert len(names) == case.results
    found = computed(network, values.arrays, values.quantisation)
    for name, expected in zip(names, session(onnx.load(path)).run(names, feed), strict=True):
        assert found[name].shape == expected.shape
        np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-5, err_msg=name)


def test_the_mask_of_many_causal_rows_is_there_for_a_replay(tmp_path: Path) -> None:
    case = Attention(operands=((1, 1, 300, 2),) * 3, attributes={"is_causal": 1})
    path = written(case, tmp_path)
    network = load_network(path)
    (mask,) = (tensor for tensor in network.tensors if tensor.role == "constant")
    # Row 1 sees keys 0 and 1.
    found = values_of(network, path).arrays[mask.name]
    np.testing.assert_array_equal(found[1, :4], [0, 0, -np.inf, -np.inf])


def test_products_of_heads_that_share_keys_are_counted_for_each_query(tmp_path: Path) -> None:
    network = load_network(written(NODES["heads share keys"], tmp_path))
    # 2 x 4 heads, 6 queries with 6 keys of 8 elements, and the same with the values.
    assert sum(macs(op, network) for op in network.ops) == 2 * (2 * 4 * 6 * 6 * 8)


@pytest.mark.slow
def test_a_plan_of_attention_is_right(tmp_path: Path) -> None:
    network = load_network(written(NODES["three axes"], tmp_path), bits=16)
    plan = tilewright.plan(network, tilewright.load_machine("seneca"))
    assert verify(plan.timetable, network).agrees


@pytest.mark.parametrize(
    ("operands", "attributes", "reason"),
    [
        (((2, 4, 6, 8),) * 3, {"softcap": 2.0}, "it has 'softcap', which is not read"),
        (((2, 4, 6, 8), (2, 3, 6, 8), (2, 3, 6, 8)), {}, "4 and 3 heads of shapes"),
        (((2, 4, 6, 8), (2, 4, 6, 7), (2, 4, 6, 8)), {}, "queries of shape .* and keys of shape"),
        (((2, 4, 6, 8), (2, 4, 6, 8), (2, 4, 5, 8)), {}, "keys of shape .* and values of shape"),
        ((*((2, 4, 6, 8),) * 3, (7, 2, 4, 6, 6)), {}, "a mask of shape"),
    ],
)
def test_what_is_not_read_of_attention_is_said(
    operands: tuple[tuple[int, ...], ...],
    attributes: dict[str, Any],
    reason: str,
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match=reason):
        load_network(written(Attention(operands=operands, attributes=attributes), tmp_path))

"""Every kernel against ONNX Runtime, on all of an op and tile by tile."""

from pathlib import Path

import numpy as np
import pytest
from tests.e2e.onnx_cases import ALL
from tests.e2e.test_onnx_shapes import session
from tests.kernel_runs import in_tiles, run_in_tiles
from tests.onnx_models import Array, Case, Given, saved, single

from tilewright.network.graph import Network
from tilewright.network.onnx_reader import read_onnx
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import values_of

POSITIVE = ("Log", "Sqrt", "Pow", "ReduceLogSum")
EACH_CASE = pytest.mark.parametrize(
    "case", [c for _, c in ALL], ids=[f"{g}: {c.name}" for g, c in ALL]
)
SEEDS = (0, 1, 2)


def feed_of(case: Case, seed: int) -> dict[str, Array]:
    """Reals in (-1, 1), bytes of all sizes, and other whole numbers that are valid as indices."""
    random = np.random.default_rng(seed)
    feed: dict[str, Array] = {}
    for i, given in enumerate(case.operands):
        if isinstance(given, Given):
            shape = tuple(size for size in given.shape if isinstance(size, int))
            values: Array
            if given.dtype.startswith("float"):
                values = random.uniform(0.1 if case.op in POSITIVE else -1, 1, shape)
            elif given.dtype in ("uint8", "int8"):
                limits = np.iinfo(given.dtype)
                values = random.integers(limits.min, limits.max + 1, shape)
            else:
                values = random.integers(0, 2, shape)
            feed[f"x{i}"] = values.astype(given.dtype)
    return feed


def prepared(case: Case, seed: int, folder: Path) -> tuple[Network, dict[str, Array], list[Array]]:
    """The network, its inputs and constants, and ONNX Runtime's results."""
    proto = single(case)
    feed = feed_of(case, seed)
    expected = session(proto).run([f"y{i}" for i in range(case.results)], feed)
    path = saved(proto, folder)
    network = read_onnx(path)
    return network, {**values_of(network, path).arrays, **feed}, expected


def is_defined(case: Case, result: int) -> bool:
    """Before opset 10 nothing says what the mask of a dropout that drops nothing holds."""
    return case.op != "Dropout" or case.opset >= 10 or result == 0


def assert_same(name: str, found: Array, expected: Array) -> None:
    assert (name, found.dtype, found.shape) == (name, expected.dtype, expected.shape)
    if expected.dtype.kind in "iub":
        np.testing.assert_array_equal(found, expected, err_msg=name)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=name)


@EACH_CASE
@pytest.mark.parametrize("seed", SEEDS)
def test_one_op_computes_what_onnx_runtime_computes(case: Case, seed: int, tmp_path: Path) -> None:
    network, values, expected = prepared(case, seed, tmp_path)
    found = computed(network, values, {})
    for i, array in enumerate(expected):
        if f"y{i}" in network.by_name and is_defined(case, i):
            assert_same(f"y{i}", found[f"y{i}"], array)


@EACH_CASE
@pytest.mark.parametrize("length", [1, 2])
def test_one_op_in_small_tiles_computes_what_onnx_runtime_computes(
    case: Case, length: int, tmp_path: Path
) -> None:
    if case.op == "DynamicQuantizeMatMul":
        pytest.skip("it quantises its first factor as a whole, and says so")
    network, values, expected = prepared(case, 0, tmp_path)
    found = run_in_tiles(network, values, {}, in_tiles(lambda dim, size: min(size, length)))
    for i, array in enumerate(expected):
        if f"y{i}" in network.by_name and is_defined(case, i):
            assert_same(f"y{i}", found[f"y{i}"], array)

"""However an op's loops are cut, its tiles together compute what all of it computes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.e2e.onnx_cases import CONVOLUTIONS, NORMALISATIONS, POOLS, PRODUCTS, REDUCTIONS
from tests.e2e.onnx_move_cases import MOVES, QUANTISED, RESIZES
from tests.e2e.test_kernels_onnx import feed_of
from tests.kernel_runs import in_tiles, run_in_tiles
from tests.onnx_models import Case, saved, single
from tests.random_cases import examples

from tilewright.network.onnx_reader import read_onnx
from tilewright.replay.kernels.whole import computed

CASES = [
    case
    for group in (CONVOLUTIONS, PRODUCTS, POOLS, NORMALISATIONS, REDUCTIONS, MOVES, RESIZES)
    for case in group
] + [case for case in QUANTISED if case.op != "DynamicQuantizeMatMul"]


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data(), case=st.sampled_from(CASES), seed=st.integers(0, 2**31))
def test_any_tiling_gives_the_result_of_the_whole_op(
    data: st.DataObject, case: Case, seed: int, tmp_path: Path
) -> None:
    network = read_onnx(saved(single(case), tmp_path))
    constants = {f"x{i}": o for i, o in enumerate(case.operands) if isinstance(o, np.ndarray)}
    values = {**constants, **feed_of(case, seed)}
    lengths: dict[str, int] = {}

    def length(dim: str, size: int) -> int:
        if dim not in lengths:
            lengths[dim] = data.draw(st.integers(1, max(1, size)), label=dim)
        return lengths[dim]

    whole = computed(network, values, {})
    tiled = run_in_tiles(network, values, {}, in_tiles(length))
    for op in network.ops:
        for operand in op.outputs:
            found, expected = tiled[operand.tensor], whole[operand.tensor]
            if expected.dtype.kind in "iub":
                np.testing.assert_array_equal(found, expected)
            else:
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_the_comparison_sees_a_tile_that_is_missing(tmp_path: Path) -> None:
    case = CONVOLUTIONS[0]
    network = read_onnx(saved(single(case), tmp_path))
    constants = {f"x{i}": o for i, o in enumerate(case.operands) if isinstance(o, np.ndarray)}
    values = {**constants, **feed_of(case, 0)}
    cut = in_tiles(lambda dim, size: 2)
    tiled = run_in_tiles(network, values, {}, lambda op: cut(op)[1:])
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(tiled["y0"], computed(network, values, {})["y0"], rtol=1e-4)

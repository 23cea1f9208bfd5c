"""The compiled choice of blocks against NumPy: the same block, whatever the operation."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.mapping.ethos_u import blocks
from tilewright.mapping.ethos_u.blocks import BlockChoice, choose_block
from tilewright.mapping.ethos_u.configuration import CONFIGURATIONS, Configuration, Shape
from tilewright.mapping.ethos_u.operation import Operation

pytestmark = pytest.mark.skipif(not blocks.is_compiled(), reason="the search was not built")

SHAPES = st.builds(Shape, st.integers(1, 70), st.integers(1, 140), st.integers(1, 300))
PAIRS = st.tuples(st.integers(1, 11), st.integers(1, 11))
STEPS = st.tuples(st.integers(1, 3), st.integers(1, 3))

OPERATIONS = st.builds(
    Operation,
    engine=st.sampled_from(("convolution", "depthwise", "vector_product", "pooling")),
    input=SHAPES,
    output=SHAPES,
    input_bits=st.sampled_from((8, 16)),
    output_bits=st.sampled_from((8, 16, 32)),
    kernel=PAIRS,
    stride=STEPS,
    dilation=STEPS,
    activation=st.sampled_from(("none", "clamp", "table")),
    upscaling=st.sampled_from(("none", "nearest", "zeros")),
)
ELEMENTWISE = st.builds(
    Operation,
    engine=st.just("elementwise"),
    input=SHAPES,
    second_input=st.none() | SHAPES,
    output=SHAPES,
    input_bits=st.sampled_from((8, 16, 32)),
    activation=st.sampled_from(("none", "table")),
    has_scalar=st.booleans(),
)


def by_numpy(operation: Operation, configuration: Configuration) -> BlockChoice | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "is_compiled", lambda: False)
        return choose_block(operation, configuration)


@settings(max_examples=400, deadline=None)
@given(OPERATIONS | ELEMENTWISE, st.sampled_from(sorted(CONFIGURATIONS)))
def test_both_choose_the_same_block(operation: Operation, name: str) -> None:
    configuration = CONFIGURATIONS[name]
    assert choose_block(operation, configuration) == by_numpy(operation, configuration)


@settings(max_examples=200, deadline=None)
@given(SHAPES, st.sampled_from(sorted(CONFIGURATIONS)))
def test_both_choose_the_same_of_equally_good_blocks(shape: Shape, name: str) -> None:
    # A pool of 1 x 1 fetches everything once whatever its block: rounding decides.
    pool = Operation(engine="pooling", input=shape, output=shape)
    for operation in (pool, replace(pool, engine="depthwise"), replace(pool, input_bits=16)):
        configuration = CONFIGURATIONS[name]
        assert choose_block(operation, configuration) == by_numpy(operation, configuration)


def test_figures_that_are_no_operation_are_refused() -> None:
    from tilewright.mapping import _blocks

    with pytest.raises(TypeError):
        _blocks.best((1, 2, 3))
    with pytest.raises(ValueError, match="no figures"):
        _blocks.best((0,) * 27)

"""The compiled model of the Ethos-U against Python and NumPy: the same cycles, to the last one."""

from array import array
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.random_cases import examples

from tilewright.mapping.ethos_u import compiled, tile_cycles
from tilewright.mapping.ethos_u.configuration import CONFIGURATIONS, Shape
from tilewright.mapping.ethos_u.operation import (
    Format,
    MemoryTiming,
    Operation,
    Storage,
    Storages,
)
from tilewright.mapping.ethos_u.tile_cycles import EthosU

pytestmark = pytest.mark.skipif(not compiled.is_used(), reason="the model was not built")

SHAPES = st.builds(Shape, st.integers(1, 70), st.integers(1, 140), st.integers(1, 300))
PAIRS = st.tuples(st.integers(1, 11), st.integers(1, 11))
STEPS = st.tuples(st.integers(1, 3), st.integers(1, 3))
ARITHMETICS = st.sampled_from(("product", "addition", "maximum", "other"))
ACTIVATIONS = st.sampled_from(("none", "clamp", "table"))
FORMATS: st.SearchStrategy[Format] = st.sampled_from(("linear", "bricks"))

OPERATIONS = st.builds(
    Operation,
    engine=st.sampled_from(("convolution", "depthwise", "vector_product", "pooling", "reduce_sum")),
    input=SHAPES,
    output=SHAPES,
    second_input=st.none(),
    input_bits=st.sampled_from((8, 16)),
    output_bits=st.sampled_from((8, 16, 32)),
    kernel=PAIRS,
    stride=STEPS,
    dilation=STEPS,
    arithmetic=ARITHMETICS,
    activation=ACTIVATIONS,
    upscaling=st.sampled_from(("none", "nearest", "zeros")),
    has_scalar=st.just(False),
    is_scaled=st.booleans(),
    weight_bits=st.sampled_from((4, 8, 16)),
)
ELEMENTWISE = st.builds(
    Operation,
    engine=st.just("elementwise"),
    input=SHAPES | st.just(Shape(1, 1, 1)),
    second_input=st.none() | SHAPES | st.just(Shape(1, 1, 1)),
    output=SHAPES,
    input_bits=st.sampled_from((8, 16, 32)),
    output_bits=st.sampled_from((8, 16, 32)),
    kernel=st.just((1, 1)),
    stride=st.just((1, 1)),
    dilation=st.just((1, 1)),
    arithmetic=ARITHMETICS,
    activation=ACTIVATIONS,
    upscaling=st.just("none"),
    has_scalar=st.booleans(),
    is_scaled=st.just(True),
    weight_bits=st.just(8),
)
TIMINGS = st.builds(
    MemoryTiming,
    st.just("near"),
    st.sampled_from((Fraction(4), Fraction(8), Fraction(12), Fraction(7, 3))),
    st.sampled_from((1, 32, 128)),
    st.integers(0, 600),
    st.integers(0, 600),
)
MEMBERS = st.builds(
    EthosU,
    configuration=st.sampled_from([CONFIGURATIONS[name] for name in sorted(CONFIGURATIONS)]),
    near=TIMINGS,
    far=st.builds(replace, TIMINGS, name=st.just("far")),
    formats=st.just({}),
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Operation, EthosU, Storages]:
    ethos_u = draw(MEMBERS)
    streams = draw(st.booleans())
    storages = Storages(
        input=Storage(ethos_u.near, draw(FORMATS)),
        output=Storage(ethos_u.near, draw(FORMATS)),
        second_input=Storage(draw(st.sampled_from((ethos_u.near, ethos_u.far))), draw(FORMATS)),
        scales=ethos_u.far if streams else ethos_u.near,
        weights=ethos_u.far if streams else None,
    )
    return draw(OPERATIONS | ELEMENTWISE), ethos_u, storages


def both(operation: Operation, ethos_u: EthosU, storages: Storages) -> tuple[int | None, ...]:
    found = compiled.cycles(operation, storages, ethos_u.figures)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "is_used", lambda: False)
        return found, tile_cycles.slowest_part(operation, ethos_u, storages)


@settings(max_examples=examples(600), deadline=None)
@given(cases())
def test_both_take_equally_long(case: tuple[Operation, EthosU, Storages]) -> None:
    found, by_python = both(*case)
    assert found == by_python


@settings(max_examples=examples(200), deadline=None)
@given(SHAPES, MEMBERS)
def test_both_choose_the_same_of_equally_good_blocks(shape: Shape, ethos_u: EthosU) -> None:
    # A pool of 1 x 1 fetches everything once whatever its block: rounding decides.
    pool = Operation(engine="pooling", input=shape, output=shape)
    near = Storage(ethos_u.near)
    storages = Storages(input=near, output=near, second_input=near, scales=ethos_u.near)
    for operation in (pool, pool._replace(engine="depthwise"), pool._replace(input_bits=16)):
        found, by_python = both(operation, ethos_u, storages)
        assert found == by_python


def test_what_is_too_large_is_left_to_python() -> None:
    memory = MemoryTiming("near", Fraction(8), 32, 32, 32)
    near = Storage(memory)
    member = CONFIGURATIONS["u55-128"]
    ethos_u = EthosU(configuration=member, near=memory, far=memory, formats={})
    storages = Storages(input=near, output=near, second_input=near, scales=memory)
    huge = Shape(2**20, 2**20, 2**10)
    pool = Operation(engine="pooling", input=huge, output=huge)
    with pytest.raises(OverflowError):
        compiled.cycles(pool, storages, ethos_u.figures)
    # Half a cycle an element in the output unit.
    assert (tile_cycles.slowest_part(pool, ethos_u, storages) or 0) >= 2**49


def test_figures_that_are_no_operation_are_refused() -> None:
    from tilewright.mapping import _ethos_u

    with pytest.raises(TypeError):
        _ethos_u.cycles((1, 2, 3), array("q"))
    with pytest.raises(ValueError, match="no figures of an operation"):
        _ethos_u.cycles((0,) * 29, array("q"))
    one = (0, *[1] * 6, 0, 0, 0, 8, 8, *[1] * 6, *[0] * 11)
    with pytest.raises(ValueError, match="no figures of a member"):
        _ethos_u.cycles(one, array("q"))

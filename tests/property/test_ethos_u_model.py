"""The compiled model of the Ethos-U against Python and NumPy: the same cycles, to the last one."""

from array import array
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.random_cases import examples

from tilewright.mapping.ethos_u import compiled, tile_cycles
from tilewright.mapping.ethos_u.accesses import access_cycles
from tilewright.mapping.ethos_u.blocks import choose_block
from tilewright.mapping.ethos_u.configuration import CONFIGURATIONS, Shape
from tilewright.mapping.ethos_u.cycles import operation_cycles
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


@settings(max_examples=examples(120), deadline=None)
@given(cases())
def test_both_take_equally_long(case: tuple[Operation, EthosU, Storages]) -> None:
    found, by_python = both(*case)
    assert found == by_python


SMALL = st.builds(Shape, st.integers(1, 13), st.integers(1, 19), st.integers(1, 40))


@st.composite
def windows(draw: st.DrawFn) -> Operation:
    return Operation(
        engine=draw(st.sampled_from(("convolution", "depthwise", "pooling"))),
        input=draw(SMALL),
        output=draw(SMALL),
        kernel=draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
    )


def blocks(size: int, step: int, most: int) -> range:
    """Lengths of a block along an axis: multiples of the micro-block, as far as the result goes."""
    return range(step, -(-min(size, most) // step) * step + 1, step)


def best_of_all(operation: Operation, ethos_u: EthosU, storages: Storages) -> int:
    """What an operation of 8 bit takes with the best block, all being tried, none left out.

    On the smallest member some depths are not among the blocks that Vela tries.
    """
    member, whole = ethos_u.configuration, operation.output
    granules, found = member.granules, []
    vela = choose_block(operation, member)
    assert vela is not None
    for height, width, depth in product(
        blocks(whole.height, member.micro_block.height, 32),
        blocks(whole.width, member.micro_block.width, 64),
        blocks(whole.depth, member.micro_block.depth, 128),
    ):
        if depth < whole.depth and depth % 16:
            continue
        seen = Shape(
            -(-(height - 1 + operation.kernel[0]) // member.micro_block.height)
            * member.micro_block.height,
            -(-(width - 1 + operation.kernel[1]) // member.micro_block.width)
            * member.micro_block.width,
            vela.input.depth if operation.sums_depth else depth,
        )
        is_flat = whole.height == operation.kernel[0] == 1 and member.micro_block.height == 2
        sums = (1 if is_flat else height) * width * -(-depth // 8) * 32
        banks = 0
        for size, granule in (
            (seen.area * -(-seen.depth // 8) * 8, granules.inputs),
            (sums, granules.accumulators),
        ):
            banks += -(-2 * -(-size // 1024) // granule) * granule
        if banks <= member.usable_banks:
            block = replace(vela, output=Shape(height, width, depth), input=seen)
            moving = access_cycles(operation, block, member, storages)
            computing = operation_cycles(operation, block, member, storages)
            found.append(max(computing, *(ceil(busy) for _, busy in moving)))
    return min(found)


@settings(max_examples=examples(40), deadline=None)
@given(windows(), MEMBERS, FORMATS, FORMATS)
def test_no_block_is_better(
    operation: Operation, ethos_u: EthosU, read: Format, written: Format
) -> None:
    assume(ethos_u.configuration.micro_block.depth == 8)
    storages = Storages(
        input=Storage(ethos_u.near, read),
        output=Storage(ethos_u.near, written),
        second_input=Storage(ethos_u.near),
        scales=ethos_u.near,
    )
    found = compiled.cycles(operation, storages, ethos_u.figures)
    assert found == best_of_all(operation, ethos_u, storages)


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

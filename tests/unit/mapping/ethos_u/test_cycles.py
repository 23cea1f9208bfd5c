"""Cycles and accesses of small operations, worked out by hand."""

from fractions import Fraction

import pytest

from tilewright.mapping.ethos_u.accesses import Accesses, access_cycles, element_accesses
from tilewright.mapping.ethos_u.blocks import BlockChoice
from tilewright.mapping.ethos_u.configuration import CONFIGURATIONS, Shape
from tilewright.mapping.ethos_u.cycles import least_cycles, operation_cycles
from tilewright.mapping.ethos_u.operation import (
    Activation,
    Format,
    MemoryTiming,
    Operation,
    Storage,
    Storages,
)

U55_128 = CONFIGURATIONS["u55-128"]
U55_256 = CONFIGURATIONS["u55-256"]
SRAM = MemoryTiming("sram", Fraction(8), 32, 32, 32)
FLASH = MemoryTiming("flash", Fraction(1), 128, 64, 64)


def lying(source: Format = "linear", target: Format = "linear") -> Storages:
    return Storages(
        input=Storage(SRAM, source),
        output=Storage(SRAM, target),
        second_input=Storage(SRAM, source),
        scales=SRAM,
    )


FIRST = Operation(
    engine="convolution",
    input=Shape(32, 32, 3),
    output=Shape(32, 32, 16),
    kernel=(3, 3),
    activation="clamp",
)
FIRST_BLOCK = BlockChoice(output=Shape(4, 32, 16), input=Shape(6, 34, 8), part_kernel_first=True)


def test_a_convolution_by_parts_of_its_kernel() -> None:
    # Micro-blocks of 1 x 2 x 8: 4 rows, 16 columns, 2 layers. 9 taps in 3 steps of 4 cycles each:
    # 4 * 64 * 3 * 2 = 1536. The output unit takes 0.5 * 2048 = 1024. 8 blocks: 8 * 1536 + 1024.
    cycles = operation_cycles(FIRST, FIRST_BLOCK, U55_128, lying("linear", "bricks"))
    assert cycles == 13_312


def test_a_vector_waits_for_weights_scales_and_commands() -> None:
    # Weights of 2 layers and 2 x 32 channels: 32 * 2 * 2 = 128. Scales: 10 * 12 * 32 / 256 = 15.
    # Inputs come in 32 + 32 / 8 = 36 cycles, results go in 32 + 2 * 12 / 8 = 35.
    # A quarter of all: (36 + 35 + 15 + 128) / 4 = 53.5, more than the output unit's 15.
    product = Operation(engine="vector_product", input=Shape(1, 1, 64), output=Shape(1, 1, 12))
    block = BlockChoice(output=Shape(2, 2, 16), input=Shape(2, 2, 32), part_kernel_first=False)
    assert operation_cycles(product, block, U55_256, lying()) == 181


def test_a_single_micro_block_waits_for_its_own_sums() -> None:
    # 8 channels in one micro-block: 32 cycles, 2 more until the pipeline is free. 8 B use a quarter
    # of a burst, 4 cycles: a quarter of 32 + 4 to come, 32 + 4 to go, 10 for scales and 34 is 29.
    product = Operation(engine="vector_product", input=Shape(1, 1, 8), output=Shape(1, 1, 8))
    block = BlockChoice(output=Shape(1, 2, 8), input=Shape(1, 2, 8), part_kernel_first=False)
    assert operation_cycles(product, block, U55_128, lying()) == 34 + 29


def test_a_depthwise_convolution() -> None:
    # 4 rows and 2 columns of micro-blocks, 9 taps in 3 steps: 4 * 8 * 3 = 96. Blocks of 128 B come
    # and go in pieces of 8 B: 32 + 128 * 4 / 8 = 96 each way. (96 + 96 + 64 + 96) / 4 = 88 is more
    # than the output unit's 64.
    whole = Shape(4, 4, 8)
    window = Operation(engine="depthwise", input=whole, output=whole, kernel=(3, 3))
    block = BlockChoice(output=whole, input=Shape(6, 6, 8), part_kernel_first=True)
    assert operation_cycles(window, block, U55_128, lying()) == 96 + 88


@pytest.mark.parametrize(("bits", "expected"), [(8, 4 * 8), (16, 2 * 4 * 8)])
def test_a_pool_of_wide_elements_takes_twice_as_long(bits: int, expected: int) -> None:
    # 8 x 4 micro-blocks, each for at least 4 cycles; 16-bit elements count as bytes when they move.
    whole = Shape(8, 8, 8)
    pool = Operation(engine="pooling", input=whole, output=whole, input_bits=bits, output_bits=bits)
    block = BlockChoice(output=whole, input=whole, part_kernel_first=False)
    fast = MemoryTiming("fast", Fraction(10**6), 1, 0, 0)
    near = Storages(
        input=Storage(fast), output=Storage(fast), second_input=Storage(fast), scales=fast
    )
    # The output unit takes 0.5 * 512 = 256 cycles, longer than the pool itself.
    summing = expected * 4
    assert operation_cycles(pool, block, U55_128, near) == 256 + max(summing, (256 + summing) // 4)


def test_an_addition_takes_what_its_elements_take() -> None:
    whole = Shape(32, 32, 16)
    addition = Operation(
        engine="elementwise",
        input=whole,
        second_input=whole,
        output=whole,
        arithmetic="addition",
    )
    block = BlockChoice(output=Shape(8, 32, 16), input=Shape(8, 32, 16), part_kernel_first=False)
    assert operation_cycles(addition, block, U55_128, lying("bricks", "bricks")) == 24_576  # 1.5 x


def test_a_number_alone_waits_for_memory() -> None:
    # 1 element each way: 32 + 1 / 8 cycles; (64.25 + 0.75 * 16) / 4 / 16 = 1.19 cycles an element.
    one = Shape(1, 1, 1)
    addition = Operation(
        engine="elementwise",
        input=one,
        second_input=one,
        output=one,
        input_bits=32,
        output_bits=32,
        arithmetic="addition",
    )
    block = BlockChoice(output=Shape(1, 2, 8), input=Shape(1, 2, 8), part_kernel_first=False)
    assert operation_cycles(addition, block, U55_128, lying()) == 2


@pytest.mark.parametrize(("activation", "expected"), [("none", 8), ("clamp", 8), ("table", 16)])
def test_activations_slow_the_output_unit_down(activation: Activation, expected: int) -> None:
    # On 128 multipliers: 0.5 cycles an element of any kind, as much to clamp it, 1 to look it up.
    whole = Shape(1, 2, 8)
    pool = Operation(engine="pooling", input=whole, output=whole, activation=activation)
    assert least_cycles(pool, U55_128) == expected


def test_large_kernels_are_run_in_parts() -> None:
    window = Operation(
        engine="convolution", input=Shape(16, 16, 8), output=Shape(4, 4, 8), kernel=(10, 3)
    )
    assert window.sub_kernels == (24, 6)


def test_inputs_are_read_again_for_every_block() -> None:
    # 8 blocks, each with a window of 6 x 32 (the map is 32 wide) and 3 channels. Weights: 27 * 16.
    assert element_accesses(FIRST, FIRST_BLOCK, lying("linear", "bricks")) == Accesses(
        input=6 * 32 * 3 * 8,
        second_input=0,
        output=32 * 32 * 16,
        weights=9 * 3 * 16 * 8,
        scales=16,
    )


def test_bursts_that_are_used_in_part_keep_a_memory_busy() -> None:
    # Read in pieces of 8 B of a burst of 32: 4608 * 4 / 8 = 2304 cycles; written in full bursts:
    # 16384 / 8 = 2048.
    busy = access_cycles(FIRST, FIRST_BLOCK, U55_128, lying("linear", "bricks"))
    assert busy == ((SRAM, 2304 + 2048),)


def test_a_constant_second_input_is_read_where_constants_lie() -> None:
    # 64 numbers of 32 bit: the second input's 16 stored channels (as the first's bricks want it)
    # come in pieces of 4 * 8 B of a burst of 128.
    row, one = Shape(1, 1, 12), Shape(1, 1, 1)
    shift = Operation(
        engine="elementwise",
        input=row,
        second_input=one,
        output=row,
        input_bits=32,
        output_bits=32,
    )
    lies = Storages(
        input=Storage(SRAM, "bricks"),
        output=Storage(SRAM, "linear"),
        second_input=Storage(FLASH),
        scales=SRAM,
    )
    block = BlockChoice(output=Shape(1, 2, 8), input=Shape(1, 2, 8), part_kernel_first=False)
    busy = dict(access_cycles(shift, block, U55_128, lies))
    assert busy[FLASH] == 16 * 4 * 128 / 32
    assert busy[SRAM] == 16 * 4 / 8 + 12 * 4 / 8


def test_no_way_of_cutting_goes_below_the_least() -> None:
    # 27 products for each of 16,384 elements, 128 a cycle, are 3,456 cycles; the output unit needs
    # half a cycle an element.
    assert least_cycles(FIRST, U55_128) == 8_192
    assert operation_cycles(FIRST, FIRST_BLOCK, U55_128, lying()) >= 8_192

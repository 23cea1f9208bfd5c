"""Blocks of small operations, worked out by hand."""

import pytest

from tilewright.mapping.ethos_u.blocks import BlockChoice, choose_block
from tilewright.mapping.ethos_u.configuration import CONFIGURATIONS, Configuration, Shape
from tilewright.mapping.ethos_u.operation import Operation

U55_128 = CONFIGURATIONS["u55-128"]
U55_256 = CONFIGURATIONS["u55-256"]


def block(operation: Operation, configuration: Configuration) -> BlockChoice:
    found = choose_block(operation, configuration)
    assert found is not None
    return found


def test_an_addition_takes_the_first_of_the_largest_blocks_that_fit() -> None:
    # 24 banks, less 2 for the output unit and 2 at the end, leave 10 for each input: two sets in
    # granules of 4 are 8 banks, so 4 KiB a set. 8 x 32 x 16 is the first block of 4096 elements.
    whole = Shape(32, 32, 16)
    addition = Operation(engine="elementwise", input=whole, second_input=whole, output=whole)
    assert block(addition, U55_128).output == Shape(8, 32, 16)


def test_an_operation_with_a_number_has_room_for_larger_blocks() -> None:
    # One input gets all 20 banks, 10 KiB a set: 20 rows of 32 x 16.
    whole, one = Shape(32, 32, 16), Shape(1, 1, 1)
    scaled = Operation(
        engine="elementwise", input=whole, second_input=one, output=whole, has_scalar=True
    )
    assert block(scaled, U55_128).output == Shape(20, 32, 16)


def test_a_vector_has_one_candidate_of_a_micro_block() -> None:
    product = Operation(engine="vector_product", input=Shape(1, 1, 64), output=Shape(1, 1, 12))
    assert block(product, U55_256) == BlockChoice(
        output=Shape(2, 2, 16), input=Shape(2, 2, 32), part_kernel_first=False
    )


def test_the_input_block_reaches_as_far_as_strides_and_dilated_taps_do() -> None:
    # One output row and column: 5 taps along a dilated kernel of 3; two columns at a stride of 2
    # reach 2 columns further. Rounded up to the micro-block of 1 x 2.
    window = Operation(
        engine="convolution",
        input=Shape(5, 7, 8),
        output=Shape(1, 2, 8),
        kernel=(3, 3),
        stride=(2, 2),
        dilation=(2, 2),
    )
    assert block(window, U55_128).input == Shape(5, 8, 8)


@pytest.mark.parametrize(
    ("depth", "bits", "expected"),
    [
        (8, 8, True),  # few channels
        (16, 8, True),  # 16 of 32 channels against 9 of 12 taps
        (32, 8, False),  # all of 32 channels against 9 of 12 taps
        (16, 16, False),  # all of 16 channels against 9 of 10 taps
    ],
)
def test_taps_come_first_where_they_use_the_multipliers_better(
    depth: int, bits: int, expected: bool
) -> None:
    window = Operation(
        engine="convolution",
        input=Shape(8, 8, depth),
        output=Shape(8, 8, 16),
        kernel=(3, 3),
        input_bits=bits,
    )
    assert block(window, U55_256).part_kernel_first is expected


def test_of_equally_good_blocks_a_small_one_with_fewer_windows_is_taken() -> None:
    # A pool of 1 x 1 fetches every input once whatever the block. Of 17 outputs in a row a block of
    # 2 x 2 sees 4 and one of 2 x 4 sees 8, both at exactly the same cost; wider ones may not take
    # the place of an equal.
    row = Shape(1, 17, 1)
    pool = Operation(engine="pooling", input=row, output=row)
    assert block(pool, U55_256).output == Shape(2, 4, 8)


def test_a_block_that_holds_more_than_half_of_the_inputs_counts_half() -> None:
    # 16 columns: all blocks cost the same, and 10 columns are the first that are more than half.
    row = Shape(1, 16, 8)
    pool = Operation(engine="pooling", input=row, output=row)
    assert block(pool, U55_128).output == Shape(1, 10, 8)


def test_a_look_up_table_takes_room_where_no_bank_is_kept_for_it() -> None:
    assert CONFIGURATIONS["u55-64"].usable_banks == 14
    assert CONFIGURATIONS["u55-64"].banks_beside_a_table == 12
    assert U55_128.usable_banks == U55_128.banks_beside_a_table == 20


def test_nothing_is_chosen_where_not_even_the_smallest_block_fits() -> None:
    # Two columns 400 apart see 8 x 408 inputs of 32 channels: 102 KiB, and the SHRAM has 24.
    window = Operation(
        engine="convolution",
        input=Shape(4000, 4000, 32),
        output=Shape(40, 40, 8),
        kernel=(8, 8),
        stride=(1, 400),
    )
    assert choose_block(window, U55_128) is None


def test_members_are_named_by_their_multiplications_a_cycle() -> None:
    told = {name: c.macs_per_cycle for name, c in CONFIGURATIONS.items()}
    assert told == {name: int(name.split("-")[1]) for name in CONFIGURATIONS}

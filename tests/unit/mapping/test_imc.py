"""In-memory macros of a few cells, counted by hand.

Switching energies at 0.9 V, in fJ: full adder (3 x 0.7 + 2 x 1.05) x 0.81 = 3.402, with one input
at rest 2 x 1.05 x 0.81 = 1.701, flip-flop 2.1 x 0.81 = 1.701, multiplier 0.35 x 0.81 = 0.2835, one
cell on a line 0.35 x 0.81 = 0.2835.
"""

from dataclasses import replace

import pytest
from tests.mapping_cases import conv_nest, product_nest

from tilewright.machine.model import Array, InMemoryCompute
from tilewright.mapping.attach import Unrolling
from tilewright.mapping.imc import (
    cycles_per_op,
    imc_area,
    imc_area_mm2,
    imc_clock_ns,
    imc_delay,
    imc_energy,
)

ADDER, HALF, FLIP_FLOP, MULTIPLIER, LINE = 3.402e-3, 1.701e-3, 1.701e-3, 0.2835e-3, 0.2835e-3

ANALOG = Array(
    dims=(("D1", 4), ("D2", 8)),
    mac_pj=0.0,
    input_bits=(4, 2),
    in_memory=InMemoryCompute(kind="analog", bit_serial_bits=2, adc_bits=3),
)
DIGITAL = Array(
    dims=(("D1", 2), ("D2", 4)),
    mac_pj=0.0,
    input_bits=(2, 2),
    in_memory=InMemoryCompute(kind="digital", bit_serial_bits=1, adc_bits=0),
)


def unrolled(**dims: dict[str, int]) -> Unrolling:
    return tuple((dim, tuple(loops.items())) for dim, loops in dims.items())


def test_an_activation_enters_in_as_many_cycles_as_it_has_pieces() -> None:
    assert cycles_per_op(ANALOG) == 2  # 4 bits, 2 at a time
    assert cycles_per_op(DIGITAL) == 2  # 2 bits, 1 at a time
    assert cycles_per_op(replace(ANALOG, in_memory=None)) == 1


def test_an_analog_macro_pays_for_converters_and_bit_lines() -> None:
    # 32 points, 2 x 4 at once, 2 passes each: the macro fires 8 times.
    energy = imc_energy(product_nest(1, 8, 4), ANALOG, unrolled(D1={"K": 2}, D2={"C": 4}))
    firings = 32 / (2 * 4) * 2
    assert energy.dac_pj == pytest.approx(50e-3 * 2 * 0.81 * 4 * firings)  # 4 rows
    # (100 x 3 + 0.001 x 4^3) fF x 0.81 for each of 2 weight bits in each of 2 columns.
    assert energy.adc_pj == pytest.approx(300.064e-3 * 0.81 * 2 * 2 * firings)
    # Weight bits x all 4 columns x 4 rows in use.
    assert energy.multiplier_pj == pytest.approx(MULTIPLIER * 2 * 4 * 4 * firings)
    # Weight bits x 2 columns in use x all 8 rows.
    assert energy.bit_line_pj == pytest.approx(LINE * 2 * 2 * 8 * firings)
    assert energy.adder_tree_pj == 0
    # Two 3-bit words, one shifted: 3 x 1 + 2 x (1 - 0.5) = 4 full adders a column.
    assert energy.place_value_pj == pytest.approx(ADDER * 4 * 2 * firings)
    # 4 + 3 + 2 = 9 bits a column.
    assert energy.accumulator_pj == pytest.approx((ADDER + FLIP_FLOP) * 9 * 2 * firings)
    assert energy.precharge_pj == 0
    # The eight parts, in fJ: 2592 + 7777.65888 + 72.576 + 72.576 + 217.728 + 734.832.
    assert energy.total_pj == pytest.approx(11.46737088)


@pytest.mark.parametrize(
    ("rows", "full", "half"),
    [
        # Two 2-bit adders below a 3-bit one.
        (4, 7, 0),
        (3, 2 + 3, 2),  # the second 2-bit adder has one input
        (2, 2, 3),  # the first 2-bit adder feeds the 3-bit one, the other input of which rests
        (1, 0, 2 + 3),
    ],
)
def test_a_digital_macro_pays_for_adders_in_use(rows: int, full: int, half: int) -> None:
    nest = product_nest(1, rows, 2)
    energy = imc_energy(nest, DIGITAL, unrolled(D1={"K": 2}, D2={"C": rows}))
    firings = 2  # all points at once, 2 passes
    assert energy.adder_tree_pj == pytest.approx((full * ADDER + half * HALF) * 2 * firings)
    # 1 bit x 2 weight bits x all 2 x 4 cells.
    assert energy.multiplier_pj == pytest.approx(MULTIPLIER * 2 * 8 * firings)
    assert (energy.dac_pj, energy.adc_pj, energy.bit_line_pj) == (0, 0, 0)
    assert energy.place_value_pj == 0  # one bit at a time
    # 2 + log2(4) + 2 = 6 bits a column.
    assert energy.accumulator_pj == pytest.approx((ADDER + FLIP_FLOP) * 6 * 2 * firings)


def test_a_whole_activation_at_once_needs_no_accumulator() -> None:
    whole = InMemoryCompute(kind="digital", bit_serial_bits=2, adc_bits=0)
    array = replace(DIGITAL, in_memory=whole)
    energy = imc_energy(product_nest(1, 4, 2), array, unrolled(D1={"K": 2}, D2={"C": 4}))
    assert energy.accumulator_pj == 0
    assert energy.adder_tree_pj == pytest.approx(7 * ADDER * 2 * 2)  # a tree per activation bit
    # Two sums of 2 + 2 bits, one shifted: 4 x 1 + 2 x (1 - 0.5) = 5 full adders a column.
    assert energy.place_value_pj == pytest.approx(ADDER * 5 * 2)
    assert imc_delay(array).accumulator_ns == 0


def test_outputs_over_columns_shift_the_kernel_down_the_rows() -> None:
    # 2 outputs side by side and 3 taps: each tap is needed one row lower in the next column.
    nest = conv_nest({"B": 1, "K": 1, "C": 2, "OX": 2, "FX": 3})
    straight = imc_energy(nest, ANALOG, unrolled(D1={"K": 1}, D2={"FX": 3, "C": 2}))
    shifted = imc_energy(nest, ANALOG, unrolled(D1={"OX": 2}, D2={"FX": 3, "C": 2}))
    # (3 + 2 - 1) x 2 = 8 rows instead of 6, in half as many firings.
    assert shifted.dac_pj / straight.dac_pj == pytest.approx(8 / 6 / 2)
    # The columns double, the firings halve.
    assert shifted.adc_pj == pytest.approx(straight.adc_pj)


def test_banks_do_not_count_twice() -> None:
    # Twice the banks at work fire half as often each: the energy is that of one bank.
    banked = replace(ANALOG, dims=(*ANALOG.dims, ("D3", 2)))
    nest = product_nest(2, 8, 4)
    both = imc_energy(nest, banked, unrolled(D1={"K": 2}, D2={"C": 4}, D3={"D": 2}))
    assert both == imc_energy(nest, ANALOG, unrolled(D1={"K": 2}, D2={"C": 4}))
    assert imc_area_mm2(banked) == pytest.approx(2 * imc_area_mm2(ANALOG))


def test_turning_to_another_weight_charges_the_bit_line() -> None:
    # 2 weight bits x (1 word line + 4 cells on the bit line) x 10 times.
    energy = imc_energy(
        product_nest(1, 8, 4), ANALOG, unrolled(D1={}, D2={}), group_depth=4, precharges=10
    )
    assert energy.precharge_pj == pytest.approx(LINE * 2 * (1 + 4) * 10)


def test_the_analog_clock_waits_for_the_converter() -> None:
    delay = imc_delay(ANALOG)
    assert delay.adc_ns == pytest.approx(3 * (0.00653 * 8 + 0.640))
    assert delay.multiplier_ns == 0.0478
    assert delay.adder_tree_ns == 0
    # Adders in ns: input to carry 0.0478 x 4.4 = 0.21032, carry to carry 0.0478 x 2 = 0.0956.
    assert delay.place_value_ns == pytest.approx(0.21032 + 0.0956)  # 1 stage, 2 - 1 carries
    # From 3 + 2 to 4 + 3 + 2 bits: 9 - 5 - 1 carries.
    assert delay.accumulator_ns == pytest.approx(0.21032 + 3 * 0.0956)
    assert imc_clock_ns(ANALOG) == pytest.approx(2.07672 + 0.0478 + 0.30592 + 0.49712)


def test_the_digital_clock_waits_for_the_adder_tree() -> None:
    delay = imc_delay(DIGITAL)
    assert delay.adc_ns == delay.place_value_ns == 0
    # 2 stages, input to sum 0.0478 x 4.8 = 0.22944, and 2 + 2 - 2 carries.
    assert delay.adder_tree_ns == pytest.approx(0.22944 + 0.21032 + 2 * 0.0956)
    # From 4 to 6 bits: one carry.
    assert delay.accumulator_ns == pytest.approx(0.21032 + 0.0956)


def test_the_area_counts_every_cell_and_column() -> None:
    # µm²: NAND 0.614, full adder 0.614 x (3 + 4.8) = 4.7892, flip-flop 3.684.
    digital = imc_area(DIGITAL, cell_mm2=2e-6)
    assert digital.cell_mm2 == pytest.approx(8 * 2e-6)
    assert digital.multiplier_mm2 == pytest.approx(0.614e-6 * 2 * 8)
    assert digital.adder_tree_mm2 == pytest.approx(4.7892e-6 * 7 * 2)
    assert digital.place_value_mm2 == digital.adc_mm2 == 0
    assert digital.accumulator_mm2 == pytest.approx((4.7892e-6 + 3.684e-6) * 6 * 2)
    analog = imc_area(ANALOG)
    assert analog.adc_mm2 == pytest.approx(10 ** (1.206 - 0.0369 * 3) * 8e-6 * 2 * 4)
    assert analog.multiplier_mm2 == pytest.approx(0.614e-6 * 2 * 32)
    assert analog.place_value_mm2 == pytest.approx(4.7892e-6 * 4 * 4)
    assert (analog.cell_mm2, analog.adder_tree_mm2) == (0, 0)


def test_a_comparator_is_no_converter_to_speak_of() -> None:
    one_bit = InMemoryCompute(kind="analog", bit_serial_bits=1, adc_bits=1)
    array = replace(ANALOG, in_memory=one_bit)
    assert imc_area(array).adc_mm2 == 0
    energy = imc_energy(product_nest(1, 8, 4), array, unrolled(D1={"K": 2}, D2={"C": 4}))
    assert energy.dac_pj == 0  # a single bit drives the word line itself


def test_other_arrays_have_no_macro() -> None:
    plain = Array(dims=(("D1", 4),), mac_pj=1.0)
    with pytest.raises(ValueError, match="does not compute in memory"):
        imc_clock_ns(plain)

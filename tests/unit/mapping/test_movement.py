"""What moves over each link, in numbers that are worked out by hand."""

from dataclasses import replace

import pytest
from tests.mapping_cases import conv_nest, product_nest, setup_of, three_levels

from tilewright.machine.model import Machine
from tilewright.mapping.attach import Levels
from tilewright.mapping.evaluate import Loops, Setup, evaluate_loops
from tilewright.mapping.movement import Movement, boosts, unit_counts
from tilewright.mapping.nest import LoopNest, NestOperand, Relation
from tilewright.mapping.wires import EVERY


def with_units(units: int) -> Machine:
    where = three_levels()
    core = where.cores[0]
    array = replace(core.array, dims=(("D1", units),))
    return replace(where, cores=(replace(core, array=array),))


def all_in_the_registers(setup: Setup) -> Movement:
    """What moves when the lowest level of every operand has all loops."""
    order = setup.spatial.temporal
    ends = tuple((operand.letter, (len(order),) * 3) for operand in setup.nest.operands)
    return evaluate_loops(setup, Loops(order, ends)).moves


def transposed(inputs: int, taps: int) -> LoopNest:
    """Every input adds to as many outputs as there are taps, two further for the next input."""
    return LoopNest(
        dims=(("K", 4), ("IX", inputs), ("FX", taps)),
        operands=(
            NestOperand("O", ("K", "OX"), 16),
            NestOperand("W", ("K", "FX"), 8),
            NestOperand("I", ("IX",), 8),
        ),
        relations=(Relation("OX", (("IX", 2), ("FX", 1)), 2 * inputs + taps - 2),),
        final_bits=8,
    )


def returning(moves: Movement) -> list[bool]:
    """Level by level, whether partial sums come to it from above or go down from it."""
    rows = [row for row, link in enumerate(moves.links) if link.comes_back]
    return [bool(moves.exists[row, 0]) for row in rows]


def result_bits(moves: Movement) -> set[float]:
    rows = [row for row, link in enumerate(moves.links) if link.letter == "O"]
    return {float(moves.bits[row, 0]) for row in rows if moves.exists[row, 0]}


def test_a_loop_of_one_step_does_not_end_the_time_in_which_nothing_changes() -> None:
    # Innermost first: I changes with C and D. Of the 12 cycles that its tile stays in the
    # registers, K runs 2 * 1 * 3 times over the same two elements: they may be replaced while
    # each is read for the last time.
    setup = setup_of(product_nest(3, 2, 6), three_levels())
    order = (("C", 2), ("K", 2), ("K", 1), ("K", 3), ("D", 3))
    ends = (("O", (0, 5, 5)), ("I", (4, 5, 5)), ("W", (0, 5, 5)))
    moves = evaluate_loops(setup, Loops(order, ends)).moves
    found = {
        (link.level, link.direction): (moves.period[row, 0], moves.window[row, 0])
        for row, link in enumerate(moves.links)
        if link.letter == "I"
    }
    assert found[0, "fh"] == found[1, "tl"] == (12, 2)


def test_sums_over_a_window_that_is_unrolled_as_a_whole_are_final_at_once() -> None:
    setup = setup_of(transposed(2, 3), with_units(6), [("IX", 2), ("FX", 3)])
    moves = all_in_the_registers(setup)
    assert not any(returning(moves))
    assert result_bits(moves) == {8}
    # Unrolled in part, outputs of one cycle are added to in another, in the registers.
    for loop, units in (("IX", 2), ("FX", 3)):
        moves = all_in_the_registers(setup_of(transposed(2, 3), with_units(6), [(loop, units)]))
        assert returning(moves) == [True, False, False, False, False]


def test_sums_are_final_where_a_fraction_of_the_units_times_the_passes_is_not_quite_whole() -> None:
    # 61 inputs on 9 units are 7 passes of 61 / 7 units, and in floats 7 * (61 / 7) < 61.
    assert 61 / 7 * 7 < 61
    moves = all_in_the_registers(setup_of(transposed(61, 3), with_units(9), [("IX", 9)]))
    assert returning(moves) == [True, False, False, False, False]


@pytest.mark.parametrize("is_zigzags", [False, True])
def test_taps_that_never_meet_leave_no_sums(is_zigzags: bool) -> None:
    # Results two apart, two taps: 8 inputs write 16 results, each once, wherever the loops lie.
    nest = transposed(8, 2)
    nest = replace(nest, relations=(replace(nest.relations[0], is_zigzags=is_zigzags),))
    setup = setup_of(nest, three_levels())
    order = (("FX", 2), ("K", 4), ("IX", 8))
    ends = (("O", (0, 1, 3)), ("W", (0, 1, 3)), ("I", (0, 1, 3)))
    moves = evaluate_loops(setup, Loops(order, ends)).moves
    assert not any(returning(moves))
    assert result_bits(moves) == {8}


@pytest.mark.parametrize("is_zigzags", [False, True])
def test_taps_that_meet_leave_sums_until_the_last_of_them(is_zigzags: bool) -> None:
    # Three taps two apart: what the last tap of an input adds to, the next input's first does, too.
    # The second level has all taps of one input, and the third all inputs.
    nest = transposed(8, 3)
    nest = replace(nest, relations=(replace(nest.relations[0], is_zigzags=is_zigzags),))
    setup = setup_of(nest, three_levels())
    order = (("FX", 3), ("K", 4), ("IX", 8))
    ends = (("O", (0, 2, 3)), ("W", (0, 2, 3)), ("I", (0, 2, 3)))
    moves = evaluate_loops(setup, Loops(order, ends)).moves
    # Down to the array, up into the registers, down from and up into the second level: all return.
    assert returning(moves) == [True, True, True, True, True]
    ends = (("O", (0, 3, 3)), ("W", (0, 3, 3)), ("I", (0, 3, 3)))
    moves = evaluate_loops(setup, Loops(order, ends)).moves
    # With all loops in the second level, nothing comes back from the third.
    assert returning(moves) == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        # Outputs side by side read an element more each; three such groups read three times that.
        (((("OX", 2.0),), (("OX", 3.0),), ()), (2, 3)),
        # A window reads 3 elements, and 4 of them, side by side, 6: twice as many as one.
        (((("FX", 3.0),), (("OX", 4.0),), ()), (3, 2)),
        # 3 outputs side by side read 3 elements, and for all of a window 5.
        (((("OX", 3.0),), (("FX", 3.0),), ()), (3, 2)),
        # Every channel has elements of its own, results share those of one channel.
        (((("K", 8.0), ("C", 4.0)), (), ()), (4, 1)),
        (((("C", 2.0), ("OX", 4.0)), (("C", 3.0), ("K", 5.0)), ()), (8, 3)),
        # 3.75 channels on average are nearer to four than to three, and 3.25 are not.
        (((("C", 3.75),), ()), (4,)),
        (((("C", 3.25),), ()), (3,)),
    ],
)
def test_instances_ask_for_elements_that_others_do_not_ask_for(
    levels: Levels, expected: tuple[int, ...]
) -> None:
    nest = conv_nest({"B": 1, "K": 8, "C": 16, "OX": 16, "FX": 3})
    data = next(operand for operand in nest.operands if operand.letter == "I")
    assert boosts(nest, data, levels, (EVERY,) * len(levels)) == expected


def test_windows_that_are_strides_apart_share_fewer_elements() -> None:
    nest = conv_nest({"B": 1, "K": 8, "C": 16, "OX": 16, "FX": 3}, stride=2)
    data = next(operand for operand in nest.operands if operand.letter == "I")
    levels = ((("FX", 3.0),), (("OX", 5.0),), ())
    # Five outputs two apart with windows of 3 read 4 * 2 + 3 elements, nearly 4 times those of one.
    assert boosts(nest, data, levels, (EVERY,) * 2) == (3, 4)
    # Each of them by itself reads three, wherever the elements of another lie.
    assert boosts(nest, data, levels, (0, 0)) == (3, 5)


def test_units_at_work_are_the_product_of_all_that_is_unrolled_above() -> None:
    # 2 * 3 units, which 3 instances of the first memory serve, and one of the second.
    assert unit_counts(((("C", 2.0),), (("K", 3.0),), ())) == (6, 3, 1)
    assert unit_counts(((("C", 2.0),), (), (("K", 3.0), ("B", 2.0)), ())) == (12, 6, 6, 1)
    assert unit_counts(((("K", 31.25),), ())) == (31, 1)
    # What is a whole number but for rounding counts as that number.
    assert unit_counts(((("K", 61 / 7),), (("C", 7.0),), ())) == (61, 7, 1)

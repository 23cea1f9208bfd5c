"""Softmax of 8-bit data as the hardware runs it: in 32-bit integers, a step after the other.

The exponentials are looked up. One over their sum is found by Newton's method: it starts from a
straight line and is improved three times.
"""

from typing import Final

from tilewright.mapping.ethos_u.configuration import Shape
from tilewright.mapping.ethos_u.operation import Operation
from tilewright.mapping.ethos_u.step import Step

EXPONENTIALS_BYTES: Final = 4 * 256
CONSTANT_STEPS: Final = 14
"""Of the steps on one number a row, those whose second input is a constant; and the others."""
OTHER_STEPS: Final = 10


def softmax_steps(rows: int, depth: int) -> tuple[Step, ...]:
    """The steps of a softmax over `depth` channels of every row."""
    all_rows, sums, one = Shape(1, rows, depth), Shape(1, rows, 1), Shape(1, 1, 1)
    largest = Operation(
        engine="pooling",
        input=Shape(rows, depth, 1),
        output=Shape(rows, 1, 1),
        kernel=(1, depth),
        arithmetic="maximum",
    )
    exponential = Operation(
        engine="elementwise",
        input=all_rows,
        second_input=sums,
        output=all_rows,
        output_bits=32,
        arithmetic="addition",
        activation="table",
    )
    added = Operation(
        engine="reduce_sum",
        input=all_rows,
        output=sums,
        input_bits=32,
        output_bits=32,
        activation="clamp",
    )
    return (
        Step(operation=largest),
        Step(operation=exponential, table_bytes=EXPONENTIALS_BYTES),
        Step(operation=_wide(all_rows, one), second_is_constant=True),
        Step(operation=added),
        Step(operation=_wide(sums, None)),
        Step(operation=_wide(sums, one), times=CONSTANT_STEPS, second_is_constant=True),
        Step(operation=_wide(sums, sums), times=OTHER_STEPS),
        Step(operation=_wide(all_rows, sums)),
        Step(operation=_wide(all_rows, sums, output_bits=8)),
    )


def _wide(shape: Shape, second: Shape | None, output_bits: int = 32) -> Operation:
    """An element-wise operation on 32-bit numbers; which one makes no difference."""
    return Operation(
        engine="elementwise",
        input=shape,
        second_input=second,
        output=shape,
        input_bits=32,
        output_bits=output_bits,
        activation="clamp" if output_bits == 32 else "none",
    )

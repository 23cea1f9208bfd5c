"""The compiled model of the Ethos-U, where it was built: the same cycles, faster.

An operation and the member of the family that runs it are described to it by whole numbers;
`ethos_u_operation.h` has them in the order in which they are written here.
"""

from array import array
from collections.abc import Sequence
from math import lcm
from typing import Final, get_args

from tilewright.mapping.ethos_u.configuration import Configuration, Shape
from tilewright.mapping.ethos_u.operation import (
    Activation,
    Arithmetic,
    Engine,
    MemoryTiming,
    Operation,
    Storages,
    Upscaling,
)

try:
    from tilewright.mapping import _ethos_u
except ImportError:
    _IS_BUILT = False
else:
    _IS_BUILT = True

Figures = tuple[int, ...]

_ENGINES: Final = {name: number for number, name in enumerate(get_args(Engine))}
_ARITHMETICS: Final = {name: number for number, name in enumerate(get_args(Arithmetic))}
_ACTIVATIONS: Final = {name: number for number, name in enumerate(get_args(Activation))}
_UPSCALINGS: Final = {name: number for number, name in enumerate(get_args(Upscaling))}
_NEAR, _FAR = range(2)


def is_used() -> bool:
    """Whether the model was built when the package was installed, and so is used."""
    return _IS_BUILT


def member_figures(
    configuration: Configuration, near: MemoryTiming, far: MemoryTiming
) -> "array[int]":
    """A member of the family, with the memory of its feature maps and that of its constants."""
    rates, granules = configuration.output_cycles, configuration.granules
    fractions = (
        *(rates.wide_binary, rates.wide_unary, rates.wide_product, rates.product),
        *(rates.addition, rates.max_pool, rates.other, rates.table, rates.clamp),
    )
    elements = lcm(*(fraction.denominator for fraction in fractions))
    figures = [*_shape(configuration.micro_block), configuration.usable_banks]
    figures += [configuration.banks_beside_a_table, granules.inputs, granules.wide_inputs]
    figures += [granules.accumulators, granules.wide_accumulators]
    figures += [configuration.cores, configuration.macs_per_cycle, elements]
    figures += [int(fraction * elements) for fraction in fractions]
    for memory in (near, far):
        figures += [memory.bytes_per_cycle.numerator, memory.bytes_per_cycle.denominator]
        figures += [memory.burst_bytes, memory.read_latency_cycles, memory.write_latency_cycles]
    return array("q", figures)


def cycles(operation: Operation, storages: Storages, member: "array[int]") -> int | None:
    """Cycles of computing, or of the busiest memory if that is slower; None if no block fits.

    All feature maps lie in the near memory of the member, but for constants in the far one. So do
    weights and scales, unless they come from there.

    Raises:
        OverflowError: the numbers are too large for it.
    """
    source, target, second = storages.input, storages.output, storages.second_input
    return _ethos_u.cycles(
        (
            *_figures(operation),
            source.format == "bricks",
            target.format == "bricks",
            second.format == "bricks",
            # Mostly they are one object, which takes no comparison of fractions.
            _NEAR if second.memory is source.memory or second.memory == source.memory else _FAR,
            _NEAR if storages.weights is None else _FAR,
        ),
        member,
    )


def _shape(shape: Shape) -> Sequence[int]:
    return shape.height, shape.width, shape.depth


def _figures(operation: Operation) -> Figures:
    source, target, second = operation.input, operation.output, operation.second_input
    return (
        _ENGINES[operation.engine],
        *(source.height, source.width, source.depth),
        *(target.height, target.width, target.depth),
        *((0, 0, 0) if second is None else (second.height, second.width, second.depth)),
        *(operation.input_bits, operation.output_bits),
        *operation.kernel,
        *operation.stride,
        *operation.dilation,
        _ARITHMETICS[operation.arithmetic],
        _ACTIVATIONS[operation.activation],
        _UPSCALINGS[operation.upscaling],
        *(operation.has_scalar, operation.is_scaled, operation.weight_bits),
    )

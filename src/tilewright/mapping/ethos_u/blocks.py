"""Blocks of outputs that the hardware works at between two looks at memory.

Plans take the best of all blocks that fit. Vela chooses by how often inputs and weights would be
fetched for an element of the result, which is worked out for all candidates at once, in arrays.
These costs are floating-point numbers on purpose: Vela compares such numbers, and in many an
operation (a pool of 1 x 1, say) rounding alone tells candidates apart.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping.ethos_u.configuration import BANK_BYTES, Configuration, Shape
from tilewright.mapping.ethos_u.operation import SUB_KERNEL, Operation

Grid = NDArray[np.int64]
Costs = NDArray[np.float64]

LARGEST_BLOCK = Shape(32, 64, 128)
SPLIT_DEPTH = 16
"""Outputs are split over depth in multiples of this."""
LEAST_LINE = 8
"""Bytes a column that a line of a block in bricks has at least: upscaled inputs have half of 16."""
LARGEST_TIE = 4
"""Only blocks this high and wide may take the place of an equally good one found before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChoice:
    """The block of outputs, the block of inputs that it needs, and how the kernel is walked."""

    output: Shape
    input: Shape
    part_kernel_first: bool
    """Whether parts of the kernel are walked before input channels: better for few channels."""


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Blocks, and the blocks of inputs they need, along axes that are depth, height and width.

    Read from front to back they stand in the order in which Vela tries them.
    """

    depth: Grid
    height: Grid
    width: Grid
    input_depth: Grid
    input_height: Grid
    input_width: Grid


def blocks_that_fit(
    operation: Operation, configuration: Configuration, burst_bytes: int
) -> Iterator[BlockChoice]:
    """The blocks that fit into the SHRAM, but for those that cannot be the best.

    A block that is higher than another one and gives as many blocks along the height takes no less
    time; nor does one that is wider, once lines of the narrower one fill bursts. Element-wise
    operations want the widest that fit.
    """
    seen = _seen(operation)
    part_kernel_first = _walks_part_kernel_first(operation, seen.depth)
    input_depth = _input_depth(operation, seen, part_kernel_first)
    found = _candidates(operation, configuration, input_depth)
    good = _banks(operation, configuration, found) <= _room(operation, configuration)
    if operation.engine == "elementwise":
        good[:, :, :-1] &= ~good[:, :, 1:]
    else:
        micro, whole = configuration.micro_block, operation.output
        good &= _is_shortest(whole.height, found.height, micro.height)
        narrow = LEAST_LINE * (found.width - micro.width) < burst_bytes
        good &= _is_shortest(whole.width, found.width, micro.width) | narrow
    for deep, high, wide in np.argwhere(good).tolist():
        output, needed = _block_at(found, (deep, high, wide))
        yield BlockChoice(output=output, input=needed, part_kernel_first=part_kernel_first)


def _is_shortest(size: int, length: Grid, step: int) -> NDArray[np.bool_]:
    """Whether no shorter block along an axis gives as few blocks."""
    shorter = np.maximum(1, length - step)
    shortest: NDArray[np.bool_] = (length <= step) | (-(-size // length) < -(-size // shorter))
    return shortest


def _seen(operation: Operation) -> Shape:
    """The larger one of the inputs."""
    second = operation.second_input
    is_larger = second is not None and second.elements > operation.input.elements
    return second if is_larger and second is not None else operation.input


def choose_block(operation: Operation, configuration: Configuration) -> BlockChoice | None:
    """Vela's block for an operation; None if not even the smallest one fits into the SHRAM."""
    seen = _seen(operation)
    part_kernel_first = _walks_part_kernel_first(operation, seen.depth)
    input_depth = _input_depth(operation, seen, part_kernel_first)
    found = _best(operation, configuration, seen, input_depth)
    if found is None:
        return None
    output, needed = found
    return BlockChoice(output=output, input=needed, part_kernel_first=part_kernel_first)


def _best(
    operation: Operation, configuration: Configuration, seen: Shape, input_depth: int | None
) -> tuple[Shape, Shape] | None:
    """The best block and the inputs that it needs."""
    found = _candidates(operation, configuration, input_depth)
    fits = _banks(operation, configuration, found) <= _room(operation, configuration)
    if not fits.any():
        return None
    best = _first_best(np.where(fits, _costs(operation, seen, found), np.inf), seen, found)
    return _block_at(found, best)


def _maps(operation: Operation) -> int:
    """Maps that an operation element by element keeps in the SHRAM, less 1; 2 for all others."""
    if operation.engine != "elementwise":
        return 2
    return int(operation.second_input is not None and not operation.has_scalar)


def _room(operation: Operation, configuration: Configuration) -> int:
    """Banks for inputs and accumulators."""
    if operation.activation == "table":
        return configuration.banks_beside_a_table
    return configuration.usable_banks


def _block_at(found: _Candidates, at: tuple[int, int, int]) -> tuple[Shape, Shape]:
    """A candidate and the block of inputs that it needs."""
    deep, high, wide = at
    inner = deep if found.input_depth.size > 1 else 0
    return (
        Shape(
            int(found.height[0, high, 0]),
            int(found.width[0, 0, wide]),
            int(found.depth[deep, 0, 0]),
        ),
        Shape(
            int(found.input_height[0, high, 0]),
            int(found.input_width[0, 0, wide]),
            int(found.input_depth[inner, 0, 0]),
        ),
    )


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def _walks_part_kernel_first(operation: Operation, depth: int) -> bool:
    """Whether multipliers are better used by parts of the kernel than by input channels."""
    if operation.engine not in ("convolution", "depthwise"):
        return False
    if depth <= 8:
        return True
    narrow = operation.input_bits == 8
    elements = operation.kernel_elements
    by_depth = depth / _up(depth, 32 if narrow else 16)
    by_kernel = depth * elements / (_up(depth, 8) * _up(elements, 4 if narrow else 2))
    return by_kernel > by_depth


def _input_depth(operation: Operation, seen: Shape, part_kernel_first: bool) -> int | None:
    """Channels of a block of inputs; None: as many as the block of outputs has."""
    if operation.keeps_depth:
        return None
    if operation.input_bits == 16:
        return _up(min(seen.depth, 16), 4)
    return _up(min(seen.depth, 16 if part_kernel_first else 32), 8)


def _candidates(
    operation: Operation, configuration: Configuration, input_depth: int | None
) -> _Candidates:
    micro, output = configuration.micro_block, operation.output
    space = output.within(LARGEST_BLOCK)
    depths = _depths(_up(space.depth, micro.depth), output.depth, micro.depth)
    depth = np.array(depths).reshape(-1, 1, 1)
    height = np.arange(micro.height, _up(space.height, micro.height) + 1, micro.height)
    width = np.arange(micro.width, _up(space.width, micro.width) + 1, micro.width)
    return _Candidates(
        depth=depth,
        height=height.reshape(1, -1, 1),
        width=width.reshape(1, 1, -1),
        input_depth=depth if input_depth is None else np.array([[[input_depth]]]),
        input_height=_reach(operation, height, 0, micro.height).reshape(1, -1, 1),
        input_width=_reach(operation, width, 1, micro.width).reshape(1, 1, -1),
    )


def _depths(largest: int, output_depth: int, step: int) -> list[int]:
    """Depths to try: multiples of the split, and beyond the output's depth of the micro-block."""
    found = []
    depth = max(step, min(largest, SPLIT_DEPTH))
    while depth <= largest:
        found.append(depth)
        depth += step
        if depth < output_depth:
            depth = _up(depth, SPLIT_DEPTH)
    return found


def _reach(operation: Operation, size: Grid, axis: int, step: int) -> Grid:
    """Inputs along an axis that `size` outputs depend on."""
    reach = (size - 1) * operation.stride[axis] + _taps(operation, axis)
    if operation.upscaling == "nearest":
        reach = reach + 1
    if operation.upscaling != "none":
        reach = -(-reach // 2)
    return -(-reach // step) * step


def _taps(operation: Operation, axis: int) -> int:
    """Inputs along an axis that an output depends on in one part of the kernel."""
    return min((operation.kernel[axis] - 1) * operation.dilation[axis] + 1, SUB_KERNEL)


def _banks(operation: Operation, configuration: Configuration, found: _Candidates) -> Grid:
    """Banks of the SHRAM that inputs and accumulators take, twice each: one set is filled while
    the other is in use.
    """
    column_bytes = -(-found.input_depth * operation.input_bits // 64) * 8
    window = found.input_height * found.input_width
    inputs = _in_banks(window * column_bytes, _input_granule(operation, configuration))
    if operation.engine == "elementwise":
        return inputs * (1 + _maps(operation))
    height = 1 if _has_one_row(operation, configuration) else found.height
    column_bytes = -(-found.depth // 8) * operation.accumulator_bits
    granule = _accumulator_granule(operation, configuration)
    return inputs + _in_banks(height * found.width * column_bytes, granule)


def _input_granule(operation: Operation, configuration: Configuration) -> int:
    granules = configuration.granules
    return granules.wide_inputs if operation.input_bits >= 32 else granules.inputs


def _accumulator_granule(operation: Operation, configuration: Configuration) -> int:
    granules = configuration.granules
    wide = operation.accumulator_bits == 40
    return granules.wide_accumulators if wide else granules.accumulators


def _has_one_row(operation: Operation, configuration: Configuration) -> bool:
    """Whether accumulators of a single row are kept although a micro-block has two."""
    flat = operation.output.height == operation.kernel[0] == 1
    return flat and configuration.micro_block.height == 2


def _in_banks(size_bytes: Grid, granule: int) -> Grid:
    """Banks for two sets of so many bytes."""
    # Few distinct numbers of banks come from many sizes: they are looked up, not divided.
    single = (size_bytes + BANK_BYTES - 1) // BANK_BYTES
    rounded = np.arange(int(single.max()) + 1) * 2
    rounded = -(-rounded // granule) * granule
    return rounded[single]


def _costs(operation: Operation, seen: Shape, found: _Candidates) -> Costs:
    """What is fetched for an element of the result, by candidate."""
    output = operation.output
    if operation.engine == "elementwise":
        block = found.height * found.width * found.depth
        cost = np.maximum(output.elements / block, 1.0)
    else:
        blocks = (output.width / found.width) * (output.height / found.height)
        window = found.input_width * found.input_height
        fetched = window * seen.depth * len(operation.sub_kernels) * blocks
        if operation.sums_depth:
            fetched = fetched * -(-output.depth // found.depth)
        cost = (fetched + _weights(operation, seen, found)) / output.elements
    held = found.input_height * found.input_width * found.input_depth
    return np.where(2 * held > seen.elements, cost / 2, cost)


def _weights(operation: Operation, seen: Shape, found: _Candidates) -> Grid | int:
    output = operation.output
    blocks = -(-output.height // found.height) * -(-output.width // found.width)
    return _weights_of_an_area(operation, seen) * blocks


def _weights_of_an_area(operation: Operation, seen: Shape) -> int:
    """Weights that are read for the blocks of all channels at one place."""
    if not operation.has_weights:
        return 0
    filters = 1 if operation.engine == "depthwise" else operation.output.depth
    return operation.kernel_elements * seen.depth * filters


def _first_best(costs: Costs, seen: Shape, found: _Candidates) -> tuple[int, int, int]:
    """The first of the cheapest, or a small one as cheap whose inputs cover no less of the map."""
    ties = np.argwhere(costs == costs.min())
    best = ties[0]
    fewest = float("inf")
    for at in ties[1:]:
        _, high, wide = at
        if found.height[0, high, 0] <= LARGEST_TIE and found.width[0, 0, wide] <= LARGEST_TIE:
            window = found.input_height[0, high, 0] * found.input_width[0, 0, wide]
            windows = max(1.0, seen.area / window)
            if windows <= fewest:
                best, fewest = at, windows
    return int(best[0]), int(best[1]), int(best[2])

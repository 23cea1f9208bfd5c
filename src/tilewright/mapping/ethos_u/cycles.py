"""Cycles of one operation while nothing but its own blocks holds it up.

A block's outputs are accumulated while those of the block before leave, so the slower of both sides
counts for every block and the quicker once. No block takes less than a quarter of the time in which
its inputs come, its results go, and both units work at it.

Figures that are rounded down to cycles at the end are floating-point numbers, added up in Vela's
order: with a memory of 12 bytes a cycle exact fractions would now and then give a cycle more.
"""

from fractions import Fraction
from math import ceil

from tilewright.mapping.ethos_u.blocks import BlockChoice
from tilewright.mapping.ethos_u.configuration import Configuration, Shape
from tilewright.mapping.ethos_u.operation import (
    BRICK_DEPTH,
    Operation,
    Storage,
    Storages,
    stored_depth,
)

LEAST_SHARE = 0.25
"""Of all the work at a block, what the next block has to wait for at least."""
SCALE_BYTES = 10
"""A bias with its scale, for each output channel."""
LONGEST_WRITE = 64


def operation_cycles(
    operation: Operation, block: BlockChoice, configuration: Configuration, storages: Storages
) -> int:
    """Cycles of an operation, waiting for weights left out."""
    if operation.engine == "elementwise":
        return _elementwise_cycles(operation, block, configuration, storages)
    part = block.output.within(operation.output)
    summing = _summing_cycles(operation, block, configuration)
    per_output = _cycles_per_output(operation, configuration)
    leaving: float = -(-per_output.numerator * part.elements // per_output.denominator)
    if operation.has_weights:
        waiting = SCALE_BYTES * part.depth * storages.scales.read_latency_cycles
        leaving = max(leaving, waiting / 256)
    moving = _moving_cycles(operation, block, configuration, storages)
    least = (moving + leaving + summing) * LEAST_SHARE
    summing, leaving = max(summing, least), max(leaving, least)
    return int(max(summing, leaving) * _blocks(operation.output, block) + min(summing, leaving))


def _elementwise_cycles(
    operation: Operation, block: BlockChoice, configuration: Configuration, storages: Storages
) -> int:
    per_output = float(_cycles_per_output(operation, configuration))
    elements = block.output.elements
    moving = _moving_cycles(operation, block, configuration, storages)
    least = (moving + per_output * elements) * LEAST_SHARE / elements
    depth = stored_depth(operation.output.depth, storages.output.format)
    return ceil(max(per_output, least) * operation.output.area * depth)


def _blocks(output: Shape, block: BlockChoice) -> int:
    return (
        -(-output.height // block.output.height)
        * -(-output.width // block.output.width)
        * -(-output.depth // block.output.depth)
    )


def _cycles_per_output(operation: Operation, configuration: Configuration) -> Fraction:
    """Cycles that the output unit needs for an element."""
    figures = configuration.output_cycles
    after = {"none": Fraction(0), "clamp": figures.clamp, "table": figures.table}
    if operation.engine == "elementwise" and operation.input_bits >= 32:
        unary = operation.second_input is None
        own = figures.wide_unary if unary else figures.wide_binary
    elif operation.arithmetic == "product" and operation.output_bits >= 32:
        own = figures.wide_product
    elif operation.arithmetic == "product" or operation.accumulator_bits == 40:
        own = figures.product
    elif operation.arithmetic == "addition":
        own = figures.addition
    elif operation.arithmetic == "maximum" and operation.engine == "pooling":
        own = figures.max_pool
    else:
        own = figures.other
    return max(own, after[operation.activation])


def _summing_cycles(
    operation: Operation, block: BlockChoice, configuration: Configuration
) -> float:
    """Cycles of the multipliers for one block."""
    part = block.output.within(operation.output)
    micro = configuration.micro_block
    columns = -(-part.width // micro.width)
    rows = -(-part.height // micro.height)
    layers = -(-part.depth // micro.depth)
    area = columns * rows
    # Weights come at a fixed rate: a micro-block's cannot be used up in less than this.
    decoding = 32 * micro.depth // 8
    channels = 1
    if operation.engine == "convolution" and block.part_kernel_first:
        channels = -(-min(block.input.depth, operation.input.depth) // 8)
    total = 0
    for elements in operation.sub_kernels:
        steps = _steps(operation, block, elements)
        if operation.engine == "pooling":
            wide = operation.input_bits == 16 and configuration.macs_per_cycle > 32
            total += max(4, elements) * area * layers * (2 if wide else 1)
        else:
            wide = operation.engine == "depthwise" and operation.input_bits == 16
            total += max(decoding, 4 * area * (2 if wide else 1)) * steps * channels * layers
        total += channels * _delay(operation, configuration, (columns, rows, layers), steps)
    if operation.sums_depth:
        total *= -(-operation.input.depth // block.input.depth)
    return total / configuration.cores


def _steps(operation: Operation, block: BlockChoice, elements: int) -> int:
    """In how many steps a sub-kernel of so many elements is walked."""
    if operation.engine == "pooling":
        return 1
    if operation.engine == "depthwise":
        return -(-elements // 4)
    if operation.engine == "convolution" and block.part_kernel_first:
        return -(-elements // (2 if operation.input_bits == 16 else 4))
    return elements


def _delay(
    operation: Operation,
    configuration: Configuration,
    micro_blocks: tuple[int, int, int],
    steps: int,
) -> int:
    """Cycles in which a sum waits for itself, where too few are under way to fill the pipeline."""
    columns, rows, layers = micro_blocks
    wide = operation.accumulator_bits == 40
    smallest = configuration.macs_per_cycle == 32
    if smallest:
        cycles = 7 if wide else 3
    else:
        cycles = 3 if wide and configuration.macs_per_cycle <= 128 else 2
    if columns == rows == 1:
        return cycles * steps if layers == 1 else cycles * (steps - 1) * layers
    if smallest and wide and layers > 1 and 1 in (columns, rows):
        return cycles * layers
    return 0


def _moving_cycles(
    operation: Operation, block: BlockChoice, configuration: Configuration, storages: Storages
) -> float:
    """Cycles in which a block's inputs come and its results go.

    Elements are counted as bytes here whatever their width, as Vela does.
    """
    inputs = block.input.within(operation.input).elements
    results = block.output.within(operation.output).elements
    source, target = storages.input, storages.output
    read = read_length(block.input, operation.input_bits, source)
    written = write_length(block.output, operation.output_bits, target, configuration.cores)
    coming = source.memory.read_latency_cycles + busy_cycles(inputs, source, read)
    going = target.memory.write_latency_cycles + busy_cycles(results, target, written)
    return coming + going


def busy_cycles(size_bytes: int, storage: Storage, length_bytes: int) -> float:
    """Cycles that a memory needs for useful bytes, taken in pieces of a length.

    Of a burst only as much is useful as lies side by side.
    """
    burst = storage.memory.burst_bytes
    moved = size_bytes * burst / min(burst, length_bytes)
    return moved / float(storage.memory.bytes_per_cycle)


def read_length(block: Shape, bits: int, storage: Storage) -> int:
    """Bytes that lie side by side in memory where a block of a feature map is read."""
    element = bits // 8
    if storage.format == "bricks":
        return BRICK_DEPTH * element * block.width
    return element * block.depth


def write_length(block: Shape, bits: int, storage: Storage, cores: int) -> int:
    """Bytes that lie side by side in memory where a block of a feature map is written."""
    element = bits // 8
    if storage.format == "bricks":
        return BRICK_DEPTH * element * block.width * cores
    return min(LONGEST_WRITE, BRICK_DEPTH * element * cores, block.depth * element)


def least_cycles(operation: Operation, configuration: Configuration) -> float:
    """Cycles of an operation whose every block is full, which no way of cutting it goes below."""
    leaving = operation.output.elements * float(_cycles_per_output(operation, configuration))
    if operation.engine == "elementwise":
        return leaving
    points = operation.output.elements * operation.kernel_elements
    rate = configuration.micro_block.elements * configuration.cores
    if operation.sums_depth:
        points, rate = points * operation.input.depth, configuration.macs_per_cycle
    return max(leaving, points / rate)

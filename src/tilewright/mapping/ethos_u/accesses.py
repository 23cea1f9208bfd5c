"""What one operation reads and writes, and how long the memories are busy with it."""

from dataclasses import dataclass

from tilewright.mapping.ethos_u.blocks import BlockChoice
from tilewright.mapping.ethos_u.configuration import Configuration, Shape
from tilewright.mapping.ethos_u.cycles import (
    SCALE_BYTES,
    busy_cycles,
    read_length,
    write_length,
)
from tilewright.mapping.ethos_u.operation import (
    MemoryTiming,
    Operation,
    Storage,
    Storages,
    stored_depth,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accesses:
    """Elements that an operation reads and writes; inputs again for every block that needs them."""

    input: int
    second_input: int
    output: int
    weights: int
    scales: int
    """Output channels whose scale is read."""


def element_accesses(operation: Operation, block: BlockChoice, storages: Storages) -> Accesses:
    """The elements that an operation reads and writes."""
    output = _stored(operation.output, storages.output)
    if operation.engine == "elementwise":
        return Accesses(
            input=_elementwise_reads(operation, operation.input, storages.input),
            # Vela rounds the second input up as the format of the first one wants it.
            second_input=_elementwise_reads(operation, operation.second_input, storages.input),
            output=output,
            weights=0,
            scales=0,
        )
    per_area = -(-operation.output.height // block.output.height)
    per_area *= -(-operation.output.width // block.output.width)
    layers = -(-operation.output.depth // block.output.depth) if operation.sums_depth else 1
    window = block.input.within(operation.input).area
    depth = stored_depth(operation.input.depth, storages.input.format)
    return Accesses(
        input=window * depth * len(operation.sub_kernels) * per_area * layers,
        second_input=0,
        output=output,
        weights=_weights(operation, block) * per_area * layers,
        scales=operation.output.depth if operation.has_weights else 0,
    )


def _stored(shape: Shape, storage: Storage) -> int:
    return shape.area * stored_depth(shape.depth, storage.format)


def _elementwise_reads(operation: Operation, shape: Shape | None, storage: Storage) -> int:
    """A map is read as often as there are results, a single number once, or never if of 8 bit."""
    if shape is None:
        return 0
    if shape.elements > 1:
        return _stored(operation.output, storage)
    return 0 if operation.input_bits == 8 else _stored(shape, storage)


def _weights(operation: Operation, block: BlockChoice) -> int:
    """Weights of one block of results."""
    if not operation.has_weights:
        return 0
    if operation.engine == "depthwise":
        return operation.kernel_elements * operation.input.depth
    depth = min(block.output.depth, operation.output.depth)
    return operation.kernel_elements * operation.input.depth * depth


def access_cycles(
    operation: Operation, block: BlockChoice, configuration: Configuration, storages: Storages
) -> tuple[tuple[MemoryTiming, float], ...]:
    """Cycles that each memory is busy with an operation's feature maps, and with weights that come
    straight from another one, their scales included."""
    accesses = element_accesses(operation, block, storages)
    source, second, target = storages.input, storages.second_input, storages.output
    length = read_length(block.input, operation.input_bits, source)
    second_length = read_length(block.input, operation.input_bits, second)
    write = write_length(block.output, operation.output_bits, target, configuration.cores)
    total: dict[MemoryTiming, float] = {}
    for elements, bits, storage, piece in (
        (accesses.input, operation.input_bits, source, length),
        (accesses.second_input, operation.input_bits, second, second_length),
        (accesses.output, operation.output_bits, target, write),
    ):
        busy = busy_cycles(elements * bits // 8, storage, piece)
        total[storage.memory] = total.get(storage.memory, 0.0) + busy
    far = storages.weights
    if far is not None:
        size_bytes = accesses.weights * operation.weight_bits // 8 + SCALE_BYTES * accesses.scales
        total[far] = total.get(far, 0.0) + size_bytes / float(far.bytes_per_cycle)
    return tuple(total.items())

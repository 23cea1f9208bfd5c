"""Shapes that can be, and parameters that are spread over the axes of a tensor."""

from collections.abc import Sequence
from dataclasses import replace

from tilewright.network.graph import MAX_SIZE, Index
from tilewright.network.nests import Indices, Nest, Shape, broadcast

MAX_RANK = 16
"""No tensor may have more axes: beyond it a file is broken, not deep."""


def possible_shape(shape: Shape) -> Shape:
    """The shape itself; ValueError where no tensor of this program can have it."""
    if len(shape) > MAX_RANK:
        raise ValueError(f"{len(shape)} axes are more than the {MAX_RANK} that are possible")
    for size in shape:
        if not 0 <= size <= MAX_SIZE:
            raise ValueError(f"shape {shape} is not possible: no axis has {size} elements")
    return shape


def spread(shape: Shape, nest: Nest, *, axis: int | None = None) -> Indices:
    """Where an operand lies under the nest's result, with NumPy's broadcasting into it.

    With `axis`, the operand's first axis lies under that axis instead of its last under the last.
    """
    end = len(nest.shape) if axis is None else axis + len(shape)
    start = end - len(shape)
    if nest.output is None or start < 0 or end > len(nest.shape):
        raise ValueError(f"shape {shape} does not broadcast into {nest.shape}")
    under = nest.shape[start:end]
    if broadcast(shape, under) != under:
        raise ValueError(f"shape {shape} does not broadcast into {nest.shape}")
    return tuple(
        Index(()) if size == 1 and full != 1 else index
        for size, full, index in zip(shape, under, nest.output[start:end], strict=True)
    )


def per_channel(shape: Shape, channel: Index, channels: int) -> Indices:
    """Where a parameter lies that has one element, or one per channel."""
    if all(size == 1 for size in shape):
        return tuple(Index(()) for _ in shape)
    if shape != (channels,):
        raise ValueError(f"a parameter of shape {shape} for {channels} channels")
    return (channel,)


def with_inputs(nest: Nest, further: Sequence[Indices | None]) -> Nest:
    """The nest with more inputs behind its own."""
    return replace(nest, inputs=(*nest.inputs, *further))

"""Data movement as loop nests: which element of the input each element of the result is.

Slices, pads, transposes and the like are affine, so a later step can see that two of them cancel
or that one is a mere view. What no affine index describes (a look-up, most reshapes) has None.
"""

from collections.abc import Sequence
from typing import TypeVar

from tilewright.network.graph import Index
from tilewright.network.nests import (
    Indices,
    Nest,
    Shape,
    along_dim,
    anywhere_along,
    axis_names,
    moved,
    normal_axis,
)

T = TypeVar("T")


def transpose(data: Shape, order: Sequence[int], *, channels_last: bool = False) -> Nest:
    """Axis i of the result is axis `order[i]` of the input."""
    axes = [normal_axis(axis, len(data)) for axis in order]
    if sorted(axes) != list(range(len(data))):
        raise ValueError(f"{tuple(order)} is no order of the axes of {data}")
    names = axis_names(len(data), channels_last=channels_last)
    index = tuple(Index(((names[axes.index(i)], 1),)) for i in range(len(data)))
    return moved(tuple(data[axis] for axis in axes), index, channels_last=channels_last)


def concat(shapes: Sequence[Shape], axis: int, *, channels_last: bool = False) -> Nest:
    """The inputs one behind the other; each is touched only where the result holds it."""
    first = shapes[0]
    at = normal_axis(axis, len(first))
    for shape in shapes:
        if (
            len(shape) != len(first)
            or shape[:at] != first[:at]
            or shape[at + 1 :] != first[at + 1 :]
        ):
            raise ValueError(f"shapes {first} and {shape} do not join along axis {axis}")
    names = axis_names(len(first), channels_last=channels_last)
    indices, start = [], 0
    for shape in shapes:
        indices.append(_identity(names, at, Index(((names[at], 1),), -start)))
        start += shape[at]
    shape = (*first[:at], start, *first[at + 1 :])
    return moved(shape, *indices, channels_last=channels_last)


def slice_axes(
    data: Shape,
    begins: Sequence[int],
    sizes: Sequence[int],
    steps: Sequence[int],
    *,
    channels_last: bool = False,
) -> Nest:
    """`sizes[i]` elements of axis i from `begins[i]` on, `steps[i]` apart (negative: backwards)."""
    for size, begin, count, step in zip(data, begins, sizes, steps, strict=True):
        last = begin + (count - 1) * step
        if step == 0 or count < 0 or (count and not (0 <= begin < size and 0 <= last < size)):
            raise ValueError(f"slice {begin}:{last}:{step} of an axis with {size} elements")
    names = axis_names(len(data), channels_last=channels_last)
    index = tuple(
        along_dim(name) if (begin, step) == (0, 1) else Index(((name, step),), begin)
        for name, begin, step in zip(names, begins, steps, strict=True)
    )
    return moved(tuple(sizes), index, channels_last=channels_last)


def pad(
    data: Shape, begins: Sequence[int], ends: Sequence[int], *, channels_last: bool = False
) -> Nest:
    """The input with room before and behind each axis; negative amounts cut."""
    shape = tuple(b + size + e for b, size, e in zip(begins, data, ends, strict=True))
    if any(size < 0 for size in shape):
        raise ValueError(
            f"padding {tuple(begins)} and {tuple(ends)} of {data} leaves less than nothing"
        )
    names = axis_names(len(data), channels_last=channels_last)
    index = tuple(Index(((name, 1),), -b) for name, b in zip(names, begins, strict=True))
    return moved(shape, index, channels_last=channels_last)


def repeating_pad(
    data: Shape, begins: Sequence[int], ends: Sequence[int], *, channels_last: bool = False
) -> Nest:
    """A pad with elements of the input, mirrored or the last ones again.

    What lies so far outside is found at most as far inside: twice the padding away from where it
    would be.
    """
    plain = pad(data, begins, ends, channels_last=channels_last)
    assert plain.inputs[0] is not None
    index = tuple(
        _near(along, size, begin, end)
        for along, size, begin, end in zip(plain.inputs[0], data, begins, ends, strict=True)
    )
    return moved(plain.shape, index, channels_last=channels_last)


def _near(along: Index, size: int, begin: int, end: int) -> Index:
    """Where a padded axis may be read: anywhere, if it is cut, too, or padded by its own size."""
    if begin == 0 and end == 0:
        return along
    if not 0 <= begin < size or not 0 <= end < size:
        return anywhere_along(size)
    return Index(along.terms, along.offset - 2 * end, reach=2 * (begin + end))


def expand(data: Shape, shape: Shape, *, channels_last: bool = False) -> Nest:
    """The input repeated along the axes where it has size 1, or that it lacks."""
    names = axis_names(len(shape), channels_last=channels_last)
    own = names[len(shape) - len(data) :]
    index = tuple(
        Index(()) if size == 1 and full != 1 else along_dim(name)
        for name, size, full in zip(own, data, shape[len(shape) - len(data) :], strict=True)
    )
    return moved(shape, index, channels_last=channels_last)


def space_blocks(
    data: Shape, block: int, *, to_space: bool, columns: bool, channels_last: bool
) -> Nest:
    """Depth to space (`to_space`) or back, over the last two spatial axes.

    `columns`: the block's position is the outer part of the channel (ONNX mode DCR, TFLite).
    """
    if len(data) != 4 or block < 1:
        raise ValueError(f"blocks of {block} in a tensor of shape {data}")
    batch, depth, height, width = (
        data[i] for i in ((0, 3, 1, 2) if channels_last else (0, 1, 2, 3))
    )
    area = block * block
    if (to_space and depth % area) or (not to_space and (height % block or width % block)):
        raise ValueError(f"shape {data} does not divide into blocks of {block}")
    small = depth // area if to_space else depth
    rows, cols = (height, width) if to_space else (height // block, width // block)
    dims = (("B", batch), ("G", small), ("OY", rows), ("OX", cols), ("FY", block), ("FX", block))
    channel = (
        Index((("G", 1), ("FY", block * small), ("FX", small)))
        if columns
        else Index((("G", area), ("FY", block), ("FX", 1)))
    )
    plain = (
        Index((("B", 1),)),
        Index((("G", 1),)),
        Index((("OY", block), ("FY", 1))),
        Index((("OX", block), ("FX", 1))),
    )
    deep = (Index((("B", 1),)), channel, Index((("OY", 1),)), Index((("OX", 1),)))
    wide_shape = (batch, small, rows * block, cols * block)
    deep_shape = (batch, small * area, rows, cols)
    source, result = (deep, plain) if to_space else (plain, deep)
    shape = wide_shape if to_space else deep_shape
    if channels_last:
        return Nest(
            dims=dims,
            shape=_channels_last(shape),
            output=_channels_last(result),
            inputs=(_channels_last(source),),
        )
    return Nest(dims=dims, shape=shape, output=result, inputs=(source,))


def magnify(data: Shape, factors: Sequence[int]) -> Nest:
    """Every element repeated along the last axes, one whole factor each (nearest neighbour).

    Result o along such an axis is element floor(o / factor), the only one in its window.
    """
    kept = len(data) - len(factors)
    if kept < 0 or any(factor < 1 for factor in factors):
        raise ValueError(f"{tuple(factors)} does not magnify a tensor of shape {data}")
    names = axis_names(len(data))
    repeats = [1] * kept + list(factors)
    index = tuple(
        along_dim(name) if factor == 1 else Index(((name, 1),), 1 - factor, factor, factor - 1)
        for name, factor in zip(names, repeats, strict=True)
    )
    shape = tuple(size * factor for size, factor in zip(data, repeats, strict=True))
    return moved(shape, index)


def anywhere(shape: Shape, inputs: int = 1, *, channels_last: bool = False) -> Nest:
    """A move that no affine index describes: a look-up, a reshape, a cubic resize."""
    return moved(shape, *(None for _ in range(inputs)), channels_last=channels_last)


def reshape(data: Shape, shape: Shape, *, channels_last: bool = False) -> Nest:
    """A reshape; affine where it only splits axes, and adds or drops axes of size 1."""
    names = axis_names(len(shape), channels_last=channels_last)
    left = [(name, size) for name, size in zip(names, shape, strict=True) if size != 1]
    index: list[Index] = []
    for size in data:
        terms: list[tuple[str, int]] = []
        while size != 1 and left and left[0][1] and size % left[0][1] == 0:
            name, part = left.pop(0)
            size //= part
            terms.append((name, size))
        if size != 1:
            break
        index.append(Index(tuple(terms)))
    if left or len(index) < len(data):
        return anywhere(shape, channels_last=channels_last)
    return moved(shape, tuple(index), channels_last=channels_last)


def _identity(names: Sequence[str], at: int, special: Index) -> Indices:
    return tuple(special if i == at else along_dim(name) for i, name in enumerate(names))


def _channels_last(items: tuple[T, ...]) -> tuple[T, ...]:
    return (items[0], *items[2:], items[1])

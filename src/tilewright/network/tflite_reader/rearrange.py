"""Operators that only change where elements lie, and the resizes."""

from math import prod

from tilewright.network import moves
from tilewright.network.graph import AttributeValue, Index
from tilewright.network.nests import (
    Indices,
    Nest,
    Shape,
    axis_names,
    broadcast,
    elementwise,
    moved,
    normal_axis,
    reshaped,
)
from tilewright.network.tflite_reader.call import (
    Call,
    Step,
    Value,
    axis_of,
    everywhere,
    integer,
    integers,
    known_integers,
    not_known,
)
from tilewright.network.tflite_reader.slices import computed_move


def reshape(call: Call, kind: str) -> tuple[Step, ...]:
    """RESHAPE: the shape is the second input, an option, or else what the file records."""
    data = call.tensor(0)
    wanted = _wanted_shape(call)
    if wanted is None:
        raise not_known("the shape of its result")
    shape = reshaped(data.elements, wanted, data.shape, zero_copies=False)
    return _reshape_step(call, kind, data, shape)


def squeeze(call: Call, kind: str) -> tuple[Step, ...]:
    """SQUEEZE: without the given axes of size 1, or without all of them."""
    data = call.tensor(0)
    options = dict(call.options)["squeeze_dims"]
    assert isinstance(options, tuple)
    axes = {axis_of(data.shape, axis) for axis in options}
    if not axes:
        axes = {i for i, size in enumerate(data.shape) if size == 1}
    if any(data.shape[axis] != 1 for axis in axes):
        raise ValueError(f"axes {sorted(axes)} of {data.shape} are not all of size 1")
    shape = tuple(size for i, size in enumerate(data.shape) if i not in axes)
    return _reshape_step(call, kind, data, shape)


def expand_dims(call: Call, kind: str) -> tuple[Step, ...]:
    """EXPAND_DIMS: a new axis of size 1."""
    data = call.tensor(0)
    axis = normal_axis(integer(call, 1, "the axis"), len(data.shape) + 1)
    return _reshape_step(call, kind, data, (*data.shape[:axis], 1, *data.shape[axis:]))


def transpose(call: Call, kind: str) -> tuple[Step, ...]:
    """TRANSPOSE: the second input is the order of the axes."""
    data = call.tensor(0)
    order = known_integers(call.tensor(1))
    if order is None:
        return computed_move(call, kind)
    nest = moves.transpose(data.shape, order, channels_last=True)
    return call.step(kind, nest, (data,), {"perm": order})


def broadcast_to(call: Call, kind: str) -> tuple[Step, ...]:
    """BROADCAST_TO the shape in the second input."""
    data = call.tensor(0)
    shape = known_integers(call.tensor(1))
    if shape is None:
        return computed_move(call, kind)
    if any(size < 0 for size in shape) or broadcast(data.shape, shape) != shape:
        raise ValueError(f"shape {data.shape} does not broadcast to {shape}")
    nest = moves.expand(data.shape, shape, channels_last=True)
    return call.step(kind, nest, (data,), {"shape": shape})


def tile(call: Call, kind: str) -> tuple[Step, ...]:
    """TILE: affine where every axis that is repeated has size 1."""
    data = call.tensor(0)
    repeats = known_integers(call.tensor(1))
    if repeats is None:
        return computed_move(call, kind)
    if len(repeats) != len(data.shape) or any(count < 0 for count in repeats):
        raise ValueError(f"{repeats} repeats of data of shape {data.shape}")
    shape = tuple(size * count for size, count in zip(data.shape, repeats, strict=True))
    is_affine = all(1 in pair for pair in zip(data.shape, repeats, strict=True))
    nest = moves.expand(data.shape, shape, channels_last=True) if is_affine else None
    nest = nest or moves.anywhere(shape, channels_last=True)
    return call.step(kind, nest, (data,), {"repeats": repeats})


def fill(call: Call, kind: str) -> tuple[Step, ...]:
    """FILL: one number everywhere, in the shape of the first input."""
    value = call.tensor(1)
    shape = known_integers(call.tensor(0))
    if shape is None:
        return computed_move(call, kind)
    if any(size < 0 for size in shape):
        raise ValueError(f"shape {shape} is not possible")
    nest = moved(shape, everywhere(value), channels_last=True)
    return call.step(kind, nest, (value,), {"shape": shape})


def space_blocks(call: Call, kind: str) -> tuple[Step, ...]:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH."""
    data, block = call.tensor(0), call.option("block_size")
    nest = moves.space_blocks(
        data.shape, block, to_space=kind == "depth_to_space", columns=True, channels_last=True
    )
    return call.step(kind, nest, (data,), {"blocksize": block, "mode": "DCR"})


def space_to_batch(call: Call, kind: str) -> tuple[Step, ...]:
    """SPACE_TO_BATCH_ND: pads, then moves each position within a block into the batch."""
    data, blocks, begins, ends = _blocks(call, "the paddings")
    sizes = [
        begin + size + end for begin, size, end in zip(begins, data.shape[1:], ends, strict=False)
    ]
    if any(size % block for size, block in zip(sizes, blocks, strict=True)):
        raise ValueError(f"padded sizes {tuple(sizes)} do not divide into blocks of {blocks}")
    counts = [size // block for size, block in zip(sizes, blocks, strict=True)]
    dims, wide, deep = _block_indices(data.shape, data.shape[0], blocks, counts, begins)
    shape = (data.shape[0] * prod(blocks), *counts, *data.shape[1 + len(blocks) :])
    nest = Nest(dims=dims, shape=shape, output=deep, inputs=(wide,))
    return call.step(kind, nest, (data,), {"block_shape": blocks, "pads": (*begins, *ends)})


def batch_to_space(call: Call, kind: str) -> tuple[Step, ...]:
    """BATCH_TO_SPACE_ND: the way back; what `crops` names is cut off."""
    data, blocks, begins, ends = _blocks(call, "the crops")
    if data.shape[0] % prod(blocks):
        raise ValueError(f"a batch of {data.shape[0]} does not divide into blocks of {blocks}")
    counts = data.shape[1 : 1 + len(blocks)]
    sizes = [
        count * block - begin - end
        for count, block, begin, end in zip(counts, blocks, begins, ends, strict=True)
    ]
    if any(size < 1 for size in sizes):
        raise ValueError(f"cropping {begins} and {ends} leaves nothing")
    batch = data.shape[0] // prod(blocks)
    dims, wide, deep = _block_indices(data.shape, batch, blocks, counts, begins)
    shape = (batch, *sizes, *data.shape[1 + len(blocks) :])
    nest = Nest(dims=dims, shape=shape, output=wide, inputs=(deep,))
    return call.step(kind, nest, (data,), {"block_shape": blocks, "crops": (*begins, *ends)})


def resize(call: Call, kind: str) -> tuple[Step, ...]:
    """RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR to the height and width in the second input."""
    # Asking what is supported need not load numpy.
    from tilewright.network.resampling import resized

    data = call.tensor(0)
    size = known_integers(call.tensor(1))
    if len(data.shape) != 4:
        raise ValueError(f"data of shape {data.shape} is no batch of images")
    if size is None:
        return computed_move(call, kind)
    if len(size) != 2 or min(size) < 1 or 0 in data.shape:
        raise ValueError(f"a size of {size} for images of shape {data.shape}")
    batch, *image, channels = data.shape
    if tuple(image) == size:
        return call.step("identity", elementwise(data.shape, channels_last=True), (data,))
    coordinates = _coordinates(call)
    attributes: dict[str, AttributeValue] = {
        "mode": "linear",
        "coordinate_transformation_mode": coordinates,
    }
    if call.operator == "RESIZE_NEAREST_NEIGHBOR":
        rounding = "floor" if coordinates == "asymmetric" else "round_prefer_ceil"
        attributes |= {"mode": "nearest", "nearest_mode": rounding}
    nest = resized(
        data.shape,
        (batch, *size, channels),
        {**attributes, "tflite_op": call.operator},
        channels_last=True,
    )
    return call.step(kind, nest, (data,), attributes)


def _coordinates(call: Call) -> str:
    """How a resize finds the place to read, in ONNX's words."""
    if call.option("align_corners"):
        return "align_corners"
    return "half_pixel" if call.option("half_pixel_centers") else "asymmetric"


def _wanted_shape(call: Call) -> tuple[int, ...] | None:
    source = call.optional(1)
    if source is not None:
        known = known_integers(source)
        return call.results[0].sample if known is None else known
    option = dict(call.options)["new_shape"]
    assert isinstance(option, tuple)
    # Files of TFLite's first years write a scalar as (0,).
    return () if option == (0,) else option


def _reshape_step(call: Call, kind: str, data: Value, shape: Shape) -> tuple[Step, ...]:
    nest = moves.reshape(data.shape, shape, channels_last=True)
    return call.step(kind, nest, (data,), {"shape": shape})


def _blocks(
    call: Call, what: str
) -> tuple[Value, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The data, its block shape, and what is padded or cropped before and behind each axis."""
    data, blocks, margins = call.tensor(0), integers(call, 1, "the block"), integers(call, 2, what)
    if not 0 < len(blocks) < len(data.shape) or len(margins) != 2 * len(blocks):
        raise ValueError(f"blocks of {blocks} and {what} {margins} for data of {data.shape}")
    if min(blocks) < 1 or min(margins) < 0:
        raise ValueError(f"blocks of {blocks} and {what} {margins} are not possible")
    return data, blocks, margins[::2], margins[1::2]


def _block_indices(
    data: Shape,
    batch: int,
    blocks: tuple[int, ...],
    counts: Shape | list[int],
    begins: tuple[int, ...],
) -> tuple[tuple[tuple[str, int], ...], Indices, Indices]:
    """Dims, and the indices of the side with large images and of the side with a large batch.

    The position within a block, row by row, is the outer part of the large batch.
    """
    names = axis_names(len(data), channels_last=True)
    spatial, rest = names[1 : 1 + len(blocks)], names[1 + len(blocks) :]
    inner = [f"F{name}" for name in spatial]
    dims = (
        (names[0], batch),
        *zip(spatial, counts, strict=True),
        *zip(rest, data[1 + len(blocks) :], strict=True),
        *zip(inner, blocks, strict=True),
    )
    steps = [batch * prod(blocks[i + 1 :]) for i in range(len(blocks))]
    tail = tuple(Index(((name, 1),)) for name in rest)
    wide = tuple(
        Index(((name, block), (position, 1)), -begin)
        for name, block, position, begin in zip(spatial, blocks, inner, begins, strict=True)
    )
    deep = Index((*zip(inner, steps, strict=True), (names[0], 1)))
    return (
        dims,
        (Index(((names[0], 1),)), *wide, *tail),
        (deep, *(Index(((name, 1),)) for name in spatial), *tail),
    )

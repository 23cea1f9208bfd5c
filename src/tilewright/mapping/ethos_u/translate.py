"""A tile of an op of a network as operations of the hardware, as Vela would rewrite it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from tilewright.mapping.ethos_u.configuration import Shape
from tilewright.mapping.ethos_u.operation import Activation, Arithmetic, Operation
from tilewright.mapping.ethos_u.softmax import softmax_steps
from tilewright.mapping.ethos_u.step import Step
from tilewright.network.graph import Index, Network, Op, Operand

CLAMPS: Final = frozenset(("relu", "relu6", "relu_n1_to_1", "clip"))
TABLES: Final = frozenset(("leaky_relu", "sigmoid", "tanh", "hard_swish", "hard_sigmoid", "gelu"))
"""Activations that are looked up, where data has 8 bit."""
PAIRS: Final[Mapping[str, Arithmetic]] = {
    "add": "addition",
    "sub": "addition",
    "mul": "product",
    "min": "other",
    "max": "other",
}
MOST_FOLDED_CHANNELS: Final = 4
LONGEST_STRIDE: Final = 2


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A tile: how far each loop of an op runs, and which part of its sums it adds."""

    op: Op
    fused: tuple[Op, ...]
    """Ops that are applied to the result before it is written."""
    lengths: Mapping[str, int]
    is_continued: bool = False
    is_unfinished: bool = False

    def length(self, *dims: str) -> int:
        """Points of these loops; 1 where the op does not have them."""
        points = 1
        for dim in dims:
            points *= self.lengths.get(dim, 1)
        return points

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """How far the loops of the whole op run."""
        return self.op.sizes


def tile_steps(tile: Tile, network: Network) -> tuple[Step, ...]:
    """What the hardware does for a tile; nothing if it cannot run the op."""
    translate = _TRANSLATIONS.get(tile.op.kind)
    steps = translate(tile, network) if translate is not None else ()
    if not steps or not _is_supported(steps):
        return ()
    if tile.is_unfinished:
        last = steps[-1]
        steps = (*steps[:-1], replace(last, operation=replace(last.operation, output_bits=32)))
    if tile.is_continued:
        # The hardware starts every sum anew: what was left before is added element by element.
        shape = steps[-1].operation.output
        steps = (*steps, _pair_step(shape, shape, "addition", 32))
    if tile.is_unfinished:
        return steps
    return _with_fused(steps, tile, network)


def _is_supported(steps: Sequence[Step]) -> bool:
    """Whether widths are of the kind that the hardware multiplies; element-wise it takes 32 bit."""
    return all(
        step.operation.input_bits <= (32 if step.operation.engine == "elementwise" else 16)
        for step in steps
        if step.operation.engine != "reduce_sum"
    )


def _bits(network: Network, operand: Operand) -> int:
    """The width of elements as the hardware has them: 8, 16 or 32."""
    bits = network.by_name[operand.tensor].bits
    return 8 if bits <= 8 else 16 if bits <= 16 else 32


def _data(tile: Tile) -> Operand:
    return next(operand for operand in tile.op.inputs if operand.name == "I")


def _activation(tile: Tile) -> Activation:
    """The activation that stands in the op itself."""
    name = str(tile.op.attribute("activation", ""))
    if tile.op.kind in TABLES or name in TABLES:
        return "table"
    return "clamp" if name in CLAMPS or tile.op.kind in CLAMPS else "none"


@dataclass(frozen=True, slots=True)
class _Axis:
    """One spatial axis of a window: steps between outputs and taps, and what a tile sees of it."""

    stride: int
    dilation: int
    pad: int
    size: int
    """Of the whole input."""
    seen: int


def _axis(tile: Tile, network: Network, out: str, tap: str) -> _Axis:
    operand = _data(tile)
    shape = network.by_name[operand.tensor].shape
    length = tile.lengths.get(out, 1)
    for index, size in zip(operand.index or (), shape, strict=False):
        terms = dict(index.terms)
        if out in terms or tap in terms:
            stride, dilation = terms.get(out, 1), terms.get(tap, 1)
            reach = stride * (length - 1) + dilation * (tile.lengths.get(tap, 1) - 1) + 1
            whole = length == tile.sizes.get(out, 1)
            seen = size if whole else min(size, reach)
            return _Axis(stride, dilation, -index.offset, size, seen)
    return _Axis(1, 1, 0, 1, 1)


def _windowed(tile: Tile, network: Network) -> tuple[_Axis, _Axis]:
    return _axis(tile, network, "OY", "FY"), _axis(tile, network, "OX", "FX")


def _convolution(tile: Tile, network: Network) -> tuple[Step, ...]:
    rows, columns = _windowed(tile, network)
    groups = tile.sizes.get("G", 1)
    depthwise = groups > 1 and tile.sizes.get("C", 1) == 1
    inner, outer = tile.length("C"), tile.length("K")
    times = tile.length("B", "OZ", "FZ")
    if depthwise:
        inner, outer = tile.length("G"), tile.length("G", "K")
    else:
        times *= tile.length("G")
    operation = Operation(
        engine="depthwise" if depthwise else "convolution",
        input=Shape(rows.seen, columns.seen, inner),
        output=Shape(tile.length("OY"), tile.length("OX"), outer),
        input_bits=_bits(network, _data(tile)),
        output_bits=_bits(network, tile.op.outputs[0]),
        kernel=(tile.length("FY"), tile.length("FX")),
        stride=(rows.stride, columns.stride),
        dilation=(rows.dilation, columns.dilation),
        activation=_activation(tile),
    )
    is_first = network.by_name[_data(tile).tensor].role == "input"
    if is_first and not depthwise:
        operation = _folded(operation, columns)
    is_vector = operation.kernel == (1, 1) and operation.input.area == operation.output.area == 1
    if is_vector and not depthwise:
        operation = replace(operation, engine="vector_product", stride=(1, 1))
    return (Step(operation=operation, times=times),)


def _folded(operation: Operation, columns: _Axis) -> Operation:
    """A first convolution of few channels, every second column of which becomes more channels."""
    depth = operation.input.depth
    if columns.stride != 2 or columns.size % 2 or columns.dilation != 1:
        return operation
    if depth > MOST_FOLDED_CHANNELS:
        return operation
    first, last = -columns.pad, operation.kernel[1] - 1 - columns.pad
    taps = last // 2 - first // 2 + 1
    whole = columns.seen == columns.size
    width = (
        columns.size // 2 if whole else min(columns.size // 2, operation.output.width - 1 + taps)
    )
    return replace(
        operation,
        input=Shape(operation.input.height, width, 2 * depth),
        kernel=(operation.kernel[0], taps),
        stride=(operation.stride[0], 1),
    )


def _transposed_convolution(tile: Tile, network: Network) -> tuple[Step, ...]:
    """Zeros are put between the inputs, as the hardware can for every second one."""
    terms = [dict(index.terms) for index in tile.op.outputs[0].index or ()]
    strides = {dim: found[dim] for found in terms for dim in ("IY", "IX") if dim in found}
    if any(stride != 2 for stride in strides.values()) or len(strides) != 2:
        return ()
    height, width = tile.length("IY"), tile.length("IX")
    operation = Operation(
        engine="convolution",
        input=Shape(height, width, tile.length("C")),
        output=Shape(2 * height, 2 * width, tile.length("K")),
        input_bits=_bits(network, _data(tile)),
        output_bits=_bits(network, tile.op.outputs[0]),
        kernel=(tile.length("FY"), tile.length("FX")),
        activation=_activation(tile),
        upscaling="zeros",
    )
    return (Step(operation=operation, times=tile.length("B", "G")),)


def _product(tile: Tile, network: Network) -> tuple[Step, ...]:
    """A matrix product, one row of the left matrix after the other side by side."""
    own = ("D", "K", "C")
    others = [dim for dim in tile.lengths if dim not in own]
    operation = Operation(
        engine="vector_product",
        input=Shape(1, tile.length("D"), tile.length("C")),
        output=Shape(1, tile.length("D"), tile.length("K")),
        input_bits=_bits(network, _data(tile)),
        output_bits=_bits(network, tile.op.outputs[0]),
        activation=_activation(tile),
    )
    return (Step(operation=operation, times=tile.length(*others)),)


def _pool(tile: Tile, network: Network) -> tuple[Step, ...]:
    rows, columns = _windowed(tile, network)
    depth = tile.length("G", "K")
    operation = Operation(
        engine="pooling",
        input=Shape(rows.seen, columns.seen, depth),
        output=Shape(tile.length("OY"), tile.length("OX"), depth),
        input_bits=_bits(network, _data(tile)),
        output_bits=_bits(network, tile.op.outputs[0]),
        kernel=(tile.length("FY"), tile.length("FX")),
        stride=(rows.stride, columns.stride),
        arithmetic="maximum" if tile.op.kind == "max_pool" else "other",
        activation=_activation(tile),
    )
    if operation.output.area == 1 and max(operation.stride) > LONGEST_STRIDE:
        operation = replace(operation, stride=(1, 1))
    return (Step(operation=operation, times=tile.length("B", "OZ", "FZ")),)


def _map_dims(tile: Tile) -> tuple[tuple[str, str, str], list[str]]:
    """The loops along height, width and depth of an op over the elements of a map, and others."""
    own = ("OY", "OX", "G") if "OY" in tile.lengths else ("B", "D", "K")
    return own, [dim for dim in tile.lengths if dim not in own]


def _map_shape(tile: Tile) -> tuple[Shape, int]:
    """The shape of such a tile, and how often it is done."""
    own, others = _map_dims(tile)
    return Shape(*(tile.length(dim) for dim in own)), tile.length(*others)


def _broadcast(tile: Tile, index: Sequence[Index]) -> Shape:
    """What a tile sees of an operand that may be smaller than the result."""
    own, _ = _map_dims(tile)
    walked = [dim for axis in index for dim, _ in axis.terms]
    return Shape(*(tile.length(dim) if dim in walked else 1 for dim in own))


def _pair(tile: Tile, network: Network) -> tuple[Step, ...]:
    shape, times = _map_shape(tile)
    if len(tile.op.inputs) < 2:
        return ()
    shapes = [_broadcast(tile, operand.index or ()) for operand in tile.op.inputs[:2]]
    roles = [network.by_name[operand.tensor].role for operand in tile.op.inputs[:2]]
    if shapes[0].elements < shapes[1].elements:
        shapes, roles = shapes[::-1], roles[::-1]
    operation = Operation(
        engine="elementwise",
        input=shapes[0],
        second_input=shapes[1],
        output=shape,
        input_bits=_bits(network, tile.op.inputs[0]),
        output_bits=_bits(network, tile.op.outputs[0]),
        arithmetic=PAIRS[tile.op.kind],
        activation=_activation(tile),
        has_scalar=roles[1] == "constant" and shapes[1].elements == 1,
    )
    return (Step(operation=operation, times=times),)


def _pair_step(shape: Shape, second: Shape, arithmetic: Arithmetic, bits: int) -> Step:
    operation = Operation(
        engine="elementwise",
        input=shape,
        second_input=second,
        output=shape,
        input_bits=bits,
        output_bits=bits,
        arithmetic=arithmetic,
        has_scalar=second.elements == 1,
    )
    return Step(operation=operation)


def _carrier(tile: Tile, network: Network) -> tuple[Step, ...]:
    """An activation or a change of scale by itself, carried by a pool of 1 x 1."""
    shape, times = _map_shape(tile)
    bits = _bits(network, _data(tile))
    if bits > 8:
        return ()
    operation = Operation(
        engine="pooling",
        input=shape,
        output=shape,
        output_bits=_bits(network, tile.op.outputs[0]),
        activation=_activation(tile),
    )
    return (Step(operation=operation, times=times),)


def _softmax(tile: Tile, network: Network) -> tuple[Step, ...]:
    if _bits(network, _data(tile)) > 8:
        return ()
    depth = tile.length(*tile.op.coupled)
    rows = tile.length(*(dim for dim in tile.lengths if dim not in tile.op.coupled))
    return softmax_steps(rows, depth)


def _resize(tile: Tile, network: Network) -> tuple[Step, ...]:
    """Twice as high and wide: by repeating elements, or by four windows of 2 x 2."""
    before = network.by_name[_data(tile).tensor].shape
    after = network.by_name[tile.op.outputs[0].tensor].shape
    scales = sorted(b / a for a, b in zip(before, after, strict=True))
    bits = _bits(network, _data(tile))
    if scales != [1, 1, 2, 2] or bits > 8:
        return ()
    shape = Shape(tile.length("OY", "FY"), tile.length("OX", "FX"), tile.length("G"))
    times = tile.length("B")
    small = Shape(-(-shape.height // 2), -(-shape.width // 2), shape.depth)
    if tile.op.attribute("mode") == "nearest":
        repeat = Operation(engine="pooling", input=small, output=shape, upscaling="nearest")
        return (Step(operation=repeat, times=times),)
    copy = Operation(engine="pooling", input=small, output=small)
    window = Operation(engine="depthwise", input=small, output=small, kernel=(2, 2))
    return (Step(operation=copy, times=times), Step(operation=window, times=4 * times))


def _with_fused(steps: tuple[Step, ...], tile: Tile, network: Network) -> tuple[Step, ...]:
    """The steps with what is applied to their result: in passing, or as a step of its own.

    Changes of scale are part of writing a result, and changes of type are the host's work.
    """
    for op in tile.fused:
        last = steps[-1]
        if op.kind in PAIRS:
            constant = [o for o in op.inputs if network.by_name[o.tensor].role == "constant"]
            own = Tile(op=op, fused=(), lengths=_fused_lengths(tile, op))
            second = _broadcast(own, constant[0].index or ()) if constant else Shape(1, 1, 1)
            shape, times = _map_shape(own)
            bits = last.operation.output_bits
            step = _pair_step(shape, second, PAIRS[op.kind], bits)
            steps = (*steps, replace(step, times=times))
        elif op.kind in CLAMPS or op.kind in TABLES:
            activation: Activation = "table" if op.kind in TABLES else "clamp"
            operation = replace(last.operation, activation=activation)
            steps = (*steps[:-1], replace(last, operation=operation))
    return steps


def _fused_lengths(tile: Tile, op: Op) -> dict[str, int]:
    """How far the loops of a fused op run in a tile: its result is laid out as the op's own."""
    lengths = {}
    for mine, own in zip(op.outputs[0].index or (), tile.op.outputs[0].index or (), strict=True):
        if mine.terms:
            steps = ((factor, tile.length(dim)) for dim, factor in own.terms)
            lengths[mine.terms[0][0]] = 1 + sum(factor * (n - 1) for factor, n in steps)
    return lengths


_TRANSLATIONS: Final[Mapping[str, Callable[[Tile, Network], tuple[Step, ...]]]] = {
    "conv": _convolution,
    "conv_transpose": _transposed_convolution,
    "matmul": _product,
    "max_pool": _pool,
    "average_pool": _pool,
    "softmax": _softmax,
    "resize": _resize,
    **dict.fromkeys(PAIRS, _pair),
    **dict.fromkeys((*sorted(CLAMPS), *sorted(TABLES), "requantize"), _carrier),
}

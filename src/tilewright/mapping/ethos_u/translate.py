"""A tile of an op of a network as operations of the hardware, as Vela would rewrite it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tilewright.mapping.ethos_u.configuration import Shape
from tilewright.mapping.ethos_u.operation import Activation, Arithmetic, Operation
from tilewright.mapping.ethos_u.softmax import softmax_steps
from tilewright.mapping.ethos_u.step import Step
from tilewright.network.graph import Index, Network, Op, Operand
from tilewright.network.windows import Interleaved, interleaved
from tilewright.once import once
from tilewright.records import quickly_made

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


@quickly_made
@dataclass(frozen=True, slots=True)
class _Axis:
    """One spatial axis of a window: its loops, steps between outputs and taps, and padding."""

    out: str
    tap: str
    stride: int
    dilation: int
    pad: int
    size: int
    """Of the whole input."""
    outputs: int
    """Of the whole op."""

    def seen(self, lengths: Mapping[str, int]) -> int:
        """What a tile sees of the input."""
        length = lengths.get(self.out, 1)
        if length == self.outputs:
            return self.size
        taps = lengths.get(self.tap, 1)
        return min(self.size, self.stride * (length - 1) + self.dilation * (taps - 1) + 1)


@dataclass(frozen=True, kw_only=True)
class TiledOp:
    """An op of a network, and what is the same for all of its tiles."""

    op: Op
    network: Network

    @once
    def data(self) -> Operand:
        """The operand that the op works at."""
        return next(operand for operand in self.op.inputs if operand.name == "I")

    @once
    def weight_bits(self) -> int:
        """Bits of each of its weights, if it has some."""
        weights = [operand.tensor for operand in self.op.inputs if operand.name == "W"]
        return self.network.by_name[weights[0]].bits if weights else 8

    @once
    def reads(self) -> tuple[str, ...]:
        """The first two tensors that the op reads."""
        return tuple(operand.tensor for operand in self.op.inputs[:2])

    @once
    def makes(self) -> str:
        """The tensor that the op makes."""
        return self.op.outputs[0].tensor

    @once
    def sizes(self) -> Mapping[str, int]:
        """How far the loops of the whole op run."""
        return self.op.sizes

    @once
    def input_bits(self) -> int:
        """Of elements as the hardware has them."""
        return self.bits(self.data)

    @once
    def output_bits(self) -> int:
        """Of elements as the hardware has them."""
        return self.bits(self.op.outputs[0])

    @once
    def activation(self) -> Activation:
        """The activation that stands in the op itself."""
        name = str(self.op.attribute("activation", ""))
        if self.op.kind in TABLES or name in TABLES:
            return "table"
        return "clamp" if name in CLAMPS or self.op.kind in CLAMPS else "none"

    @once
    def window(self) -> tuple[_Axis, _Axis]:
        """The axes along which a window moves: rows and columns."""
        return self._axis("OY", "FY"), self._axis("OX", "FX")

    @once
    def interleaved(self) -> tuple[Interleaved, ...]:
        """The axes of a transposed convolution that walks over its result."""
        return interleaved(self.op, self.network)

    @once
    def is_first(self) -> bool:
        """Whether it works at an input of the network."""
        return self.network.by_name[self.data.tensor].role == "input"

    @once
    def is_depthwise(self) -> bool:
        """Whether every channel is a convolution of its own."""
        return self.sizes.get("G", 1) > 1 and self.sizes.get("C", 1) == 1

    def bits(self, operand: Operand) -> int:
        """The width of elements as the hardware has them: 8, 16 or 32."""
        bits = self.network.by_name[operand.tensor].bits
        return 8 if bits <= 8 else 16 if bits <= 16 else 32

    def _axis(self, out: str, tap: str) -> _Axis:
        shape = self.network.by_name[self.data.tensor].shape
        for index, size in zip(self.data.index or (), shape, strict=False):
            terms = dict(index.terms)
            if out in terms or tap in terms:
                steps = terms.get(out, 1), terms.get(tap, 1)
                return _Axis(out, tap, *steps, -index.offset, size, self.sizes.get(out, 1))
        return _Axis(out, tap, 1, 1, 0, 1, 1)


@quickly_made
class Tile(NamedTuple):
    """A tile: how far each loop of an op runs, and which part of its sums it adds."""

    of: TiledOp
    fused: tuple[TiledOp, ...]
    """Ops that are applied to the result before it is written."""
    lengths: Mapping[str, int]
    is_continued: bool = False
    is_unfinished: bool = False
    streams: bool = False
    """Whether weights come straight from the memory of constants while the tile is at work."""

    def length(self, *dims: str) -> int:
        """Points of these loops; 1 where the op does not have them."""
        points = 1
        for dim in dims:
            points *= self.lengths.get(dim, 1)
        return points


def tile_steps(tile: Tile) -> tuple[Step, ...]:
    """What the hardware does for a tile; nothing if it cannot run the op."""
    translate = _TRANSLATIONS.get(tile.of.op.kind)
    steps = translate(tile) if translate is not None else ()
    if not steps or not _is_supported(steps):
        return ()
    if tile.is_unfinished:
        last = steps[-1]
        steps = (*steps[:-1], last._replace(operation=last.operation._replace(output_bits=32)))
    if tile.is_continued:
        # The hardware starts every sum anew: what was left before is added element by element.
        shape = steps[-1].operation.output
        steps = (*steps, _pair_step(shape, shape, "addition", 32))
    if tile.is_unfinished:
        return steps
    return _with_fused(steps, tile)


def _is_supported(steps: Sequence[Step]) -> bool:
    """Whether widths are of the kind that the hardware multiplies; element-wise it takes 32 bit."""
    for step in steps:
        engine, bits = step.operation.engine, step.operation.input_bits
        if engine != "reduce_sum" and bits > (32 if engine == "elementwise" else 16):
            return False
    return True


def _convolution(tile: Tile) -> tuple[Step, ...]:
    op, lengths = tile.of, tile.lengths
    rows, columns = op.window
    # Thousands of tiles are only compared: what is looked up here counts.
    length = lengths.get
    inner, outer, groups = length("C", 1), length("K", 1), length("G", 1)
    times = length("B", 1) * length("OZ", 1) * length("FZ", 1)
    if op.is_depthwise:
        inner, outer = groups, groups * outer
    else:
        times *= groups
    operation = Operation(
        engine="depthwise" if op.is_depthwise else "convolution",
        input=Shape(rows.seen(lengths), columns.seen(lengths), inner),
        output=Shape(length("OY", 1), length("OX", 1), outer),
        input_bits=op.input_bits,
        output_bits=op.output_bits,
        kernel=(length("FY", 1), length("FX", 1)),
        stride=(rows.stride, columns.stride),
        dilation=(rows.dilation, columns.dilation),
        activation=op.activation,
    )
    if op.is_first and not op.is_depthwise:
        operation = _folded(operation, columns)
    is_vector = operation.kernel == (1, 1) and operation.input.area == operation.output.area == 1
    if is_vector and not op.is_depthwise:
        operation = operation._replace(engine="vector_product", stride=(1, 1))
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
    width = columns.size // 2
    if operation.input.width != columns.size:
        width = min(width, operation.output.width - 1 + taps)
    return operation._replace(
        input=Shape(operation.input.height, width, 2 * depth),
        kernel=(operation.kernel[0], taps),
        stride=(operation.stride[0], 1),
    )


def _transposed_convolution(tile: Tile) -> tuple[Step, ...]:
    """Zeros are put between the inputs, as the hardware can for every second one."""
    shapes = _interleaved_shapes(tile) if tile.of.interleaved else _scattered_shapes(tile)
    if shapes is None:
        return ()
    seen, made = shapes
    operation = Operation(
        engine="convolution",
        input=seen,
        output=made,
        input_bits=tile.of.input_bits,
        output_bits=tile.of.output_bits,
        kernel=(tile.length("FY"), tile.length("FX")),
        activation=tile.of.activation,
        upscaling="zeros",
    )
    return (Step(operation=operation, times=tile.length("B", "G")),)


def _scattered_shapes(tile: Tile) -> tuple[Shape, Shape] | None:
    """What a tile of inputs sees and makes; None unless it makes every second one."""
    terms = [dict(index.terms) for index in tile.of.op.outputs[0].index or ()]
    strides = {dim: found[dim] for found in terms for dim in ("IY", "IX") if dim in found}
    if any(stride != 2 for stride in strides.values()) or len(strides) != 2:
        return None
    height, width = tile.length("IY"), tile.length("IX")
    seen = Shape(height, width, tile.length("C"))
    return seen, Shape(2 * height, 2 * width, tile.length("K"))


def _interleaved_shapes(tile: Tile) -> tuple[Shape, Shape] | None:
    """The same of a tile of the result."""
    axes = tile.of.interleaved
    if len(axes) != 2 or any(axis.stride != 2 for axis in axes):
        return None
    rows, columns = axes
    height, width = tile.length(rows.loop), tile.length(columns.loop)
    seen = Shape(
        rows.seen(height, tile.length(rows.tap)),
        columns.seen(width, tile.length(columns.tap)),
        tile.length("C"),
    )
    # Elements behind those that are made of twice as many inputs take no time of their own.
    made = Shape(
        min(height, 2 * rows.steps(height)),
        min(width, 2 * columns.steps(width)),
        tile.length("K"),
    )
    return seen, made


def _product(tile: Tile) -> tuple[Step, ...]:
    """A matrix product, one row of the left matrix after the other side by side."""
    own = ("D", "K", "C")
    others = [dim for dim in tile.lengths if dim not in own]
    operation = Operation(
        engine="vector_product",
        input=Shape(1, tile.length("D"), tile.length("C")),
        output=Shape(1, tile.length("D"), tile.length("K")),
        input_bits=tile.of.input_bits,
        output_bits=tile.of.output_bits,
        activation=tile.of.activation,
    )
    return (Step(operation=operation, times=tile.length(*others)),)


def _pool(tile: Tile) -> tuple[Step, ...]:
    rows, columns = tile.of.window
    depth = tile.length("G", "K")
    operation = Operation(
        engine="pooling",
        input=Shape(rows.seen(tile.lengths), columns.seen(tile.lengths), depth),
        output=Shape(tile.length("OY"), tile.length("OX"), depth),
        input_bits=tile.of.input_bits,
        output_bits=tile.of.output_bits,
        kernel=(tile.length("FY"), tile.length("FX")),
        stride=(rows.stride, columns.stride),
        arithmetic="maximum" if tile.of.op.kind == "max_pool" else "other",
        activation=tile.of.activation,
    )
    if operation.output.area == 1 and max(operation.stride) > LONGEST_STRIDE:
        operation = operation._replace(stride=(1, 1))
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


def _pair(tile: Tile) -> tuple[Step, ...]:
    shape, times = _map_shape(tile)
    if len(tile.of.op.inputs) < 2:
        return ()
    shapes = [_broadcast(tile, operand.index or ()) for operand in tile.of.op.inputs[:2]]
    roles = [tile.of.network.by_name[operand.tensor].role for operand in tile.of.op.inputs[:2]]
    if shapes[0].elements < shapes[1].elements:
        shapes, roles = shapes[::-1], roles[::-1]
    operation = Operation(
        engine="elementwise",
        input=shapes[0],
        second_input=shapes[1],
        output=shape,
        input_bits=tile.of.bits(tile.of.op.inputs[0]),
        output_bits=tile.of.output_bits,
        arithmetic=PAIRS[tile.of.op.kind],
        activation=tile.of.activation,
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


def _carrier(tile: Tile) -> tuple[Step, ...]:
    """An activation or a change of scale by itself, carried by a pool of 1 x 1."""
    shape, times = _map_shape(tile)
    bits = tile.of.input_bits
    if bits > 8:
        return ()
    operation = Operation(
        engine="pooling",
        input=shape,
        output=shape,
        output_bits=tile.of.output_bits,
        activation=tile.of.activation,
    )
    return (Step(operation=operation, times=times),)


def _softmax(tile: Tile) -> tuple[Step, ...]:
    if tile.of.input_bits > 8:
        return ()
    depth = tile.length(*tile.of.op.coupled)
    rows = tile.length(*(dim for dim in tile.lengths if dim not in tile.of.op.coupled))
    return softmax_steps(rows, depth)


def _resize(tile: Tile) -> tuple[Step, ...]:
    """Twice as high and wide: by repeating elements, or by four windows of 2 x 2."""
    bits = tile.of.input_bits
    if sorted(_scales(tile)) != [1, 1, 2, 2] or bits > 8:
        return ()
    shape = Shape(tile.length("OY"), tile.length("OX"), tile.length("G"))
    times = tile.length("B")
    small = Shape(-(-shape.height // 2), -(-shape.width // 2), shape.depth)
    if tile.of.op.attribute("mode") == "nearest":
        repeat = Operation(engine="pooling", input=small, output=shape, upscaling="nearest")
        return (Step(operation=repeat, times=times),)
    copy = Operation(engine="pooling", input=small, output=small)
    window = Operation(engine="depthwise", input=small, output=small, kernel=(2, 2))
    return (Step(operation=copy, times=times), Step(operation=window, times=4 * times))


def _scales(tile: Tile) -> list[float]:
    """How much longer a resize makes each axis; in strips, borders cut off some of it."""
    if tile.of.data.index is not None:
        return [axis.divisor / axis.terms[0][1] for axis in tile.of.data.index if axis.terms]
    before = tile.of.network.by_name[tile.of.data.tensor].shape
    after = tile.of.network.by_name[tile.of.op.outputs[0].tensor].shape
    return [b / a for a, b in zip(before, after, strict=True)]


def _with_fused(steps: tuple[Step, ...], tile: Tile) -> tuple[Step, ...]:
    """The steps with what is applied to their result: in passing, or as a step of its own.

    Changes of scale are part of writing a result, and changes of type are the host's work.
    """
    for fused in tile.fused:
        op, last = fused.op, steps[-1]
        if op.kind in PAIRS:
            tensors = fused.network.by_name
            constant = [o for o in op.inputs if tensors[o.tensor].role == "constant"]
            own = Tile(of=fused, fused=(), lengths=_fused_lengths(tile, op))
            second = _broadcast(own, constant[0].index or ()) if constant else Shape(1, 1, 1)
            shape, times = _map_shape(own)
            bits = last.operation.output_bits
            step = _pair_step(shape, second, PAIRS[op.kind], bits)
            steps = (*steps, step._replace(times=times))
        elif op.kind in CLAMPS or op.kind in TABLES:
            activation: Activation = "table" if op.kind in TABLES else "clamp"
            operation = last.operation._replace(activation=activation)
            steps = (*steps[:-1], last._replace(operation=operation))
    return steps


def _fused_lengths(tile: Tile, op: Op) -> dict[str, int]:
    """How far the loops of a fused op run in a tile: its result is laid out as the op's own."""
    lengths = {}
    for mine, own in zip(op.outputs[0].index or (), tile.of.op.outputs[0].index or (), strict=True):
        if mine.terms:
            steps = ((factor, tile.length(dim)) for dim, factor in own.terms)
            lengths[mine.terms[0][0]] = 1 + sum(factor * (n - 1) for factor, n in steps)
    return lengths


_TRANSLATIONS: Final[Mapping[str, Callable[[Tile], tuple[Step, ...]]]] = {
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

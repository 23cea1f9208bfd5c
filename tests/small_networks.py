"""Small random networks: windows of all sorts, joins, views, products and what is fused to them."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tilewright.network import moves, nests, windows
from tilewright.network.graph import Network, Tensor
from tilewright.network.resampling import resized
from tilewright.network.zoo import layers
from tilewright.network.zoo.layers import Draft

Draw = Callable[[st.SearchStrategy[Any]], Any]
Maker = Callable[[Draft, str, list[Tensor], Draw], Tensor | None]


def op(net: Draft, name: str, kind: str, nest: nests.Nest, *inputs: Tensor) -> Tensor:
    """An op without attributes, of which only the loops matter."""
    return net.builder.op(name, kind, nest, [t.name for t in inputs], {name: (net.bits, "")})


def window_op(net: Draft, name: str, made: list[Tensor], draw: Draw) -> Tensor | None:
    """A convolution, depthwise or not, strided, dilated, padded, or a pooling."""
    data = draw(st.sampled_from(made))
    sliding = [
        windows.Window(
            kernel=draw(st.integers(1, 3)),
            stride=draw(st.integers(1, 2)),
            dilation=draw(st.integers(1, 2)),
            pad_begin=draw(st.integers(0, 2)),
            pad_end=draw(st.integers(0, 2)),
        )
        for _ in range(2)
    ]
    try:
        if draw(st.integers(0, 3)) == 0:
            return op(net, name, "max_pool", windows.pool(data.shape, sliding), data)
        channels = data.shape[1]
        group = draw(st.sampled_from([1, channels]))
        kernels = channels if group > 1 else draw(st.integers(1, 20))
        nest = windows.conv(data.shape, kernels, group, sliding, windows.ONNX_CONV, bias=True)
    except ValueError:
        return None
    shape = (kernels, channels // group, *(w.kernel for w in sliding))
    weights = layers.constant(net, f"{name}.weight", shape)
    return op(net, name, "conv", nest, data, weights, layers.bias(net, f"{name}.bias", kernels))


def pointwise(net: Draft, name: str, made: list[Tensor], draw: Draw) -> Tensor | None:
    """An activation that may be fused, one that may not, or a scale for each channel."""
    data = draw(st.sampled_from(made))
    kind = draw(st.sampled_from(["relu", "sigmoid", "mul"]))
    if kind != "mul":
        return op(net, name, kind, nests.elementwise(data.shape), data)
    scale = layers.constant(net, f"{name}.scale", (data.shape[1], 1, 1))
    return op(net, name, kind, nests.elementwise(data.shape, scale.shape), data, scale)


def join(net: Draft, name: str, made: list[Tensor], draw: Draw) -> Tensor | None:
    """The sum of two tensors of one shape; a tensor may be added to itself."""
    data = draw(st.sampled_from(made))
    other = draw(st.sampled_from([t for t in made if t.shape == data.shape]))
    return layers.add(net, name, data, other)


def concatenation(net: Draft, name: str, made: list[Tensor], draw: Draw) -> Tensor | None:
    """Two or three tensors behind each other, along channels or rows."""
    axis = draw(st.sampled_from([1, 2]))

    def rest(tensor: Tensor) -> tuple[int, ...]:
        return (*tensor.shape[:axis], *tensor.shape[axis + 1 :])

    first = draw(st.sampled_from(made))
    fitting = [t for t in made if rest(t) == rest(first)]
    others = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=2))
    if sum(t.shape[axis] for t in (first, *others)) > 40:
        return None
    return layers.concat(net, name, [first, *others], axis)


def part(net: Draft, name: str, made: list[Tensor], draw: Draw) -> Tensor | None:
    """A slice of channels, rows or columns, with a step of 1 or 2."""
    data = draw(st.sampled_from(made))
    axis = draw(st.integers(1, 3))
    begin = draw(st.integers(0, data.shape[axis] - 1))
    step = draw(st.sampled_from([1, 1, 2]))
    most = (data.shape[axis] - begin + step - 1) // step
    sizes = [draw(st.integers(1, most)) if i == axis else n for i, n in enumerate(data.shape)]
    begins = [begin if i == axis else 0 for i in range(4)]
    steps = [step if i == axis else 1 for i in range(4)]
    return op(net, name, "slice", moves.slice_axes(data.shape, begins, sizes, steps), data)


def rearrangement(net: Draft, name: str, made: list[Tensor], draw: Draw) -> Tensor | None:
    """A reshape to and fro, rows and columns swapped, room around, or elements repeated."""
    data = draw(st.sampled_from(made))
    _, channels, rows, columns = data.shape
    match draw(st.sampled_from(["reshape", "transpose", "pad", "resize", "softmax"])):
        case "reshape":
            shape = (1, channels * rows, 1, columns)
            return op(net, name, "reshape", moves.reshape(data.shape, shape), data)
        case "transpose":
            return layers.transpose(net, name, data, (0, 1, 3, 2))
        case "pad":
            begins, ends = draw(st.integers(0, 5)), draw(st.integers(0, 3))
            nest = moves.pad(data.shape, (0, begins, 0, 0), (0, ends, 1, 0))
            return op(net, name, "pad", nest, data)
        case "softmax":
            return layers.softmax(net, name, data)
        case _:
            return resize(net, name, data, draw) if rows * columns <= 64 else None


def resize(net: Draft, name: str, data: Tensor, draw: Draw) -> Tensor:
    """Every element repeated, or other sizes, each result between the elements around its place."""
    if draw(st.booleans()):
        return layers.upsample(net, name, data, draw(st.sampled_from([2, 2, 3])))
    shape = (*data.shape[:2], *(draw(st.integers(1, 2 * size)) for size in data.shape[2:]))
    modes = ["half_pixel", "asymmetric", "align_corners"]
    attributes = {
        "mode": "linear",
        "coordinate_transformation_mode": draw(st.sampled_from(modes)),
    }
    nest = resized(data.shape, shape, attributes)
    results = {name: (net.bits, "")}
    return net.builder.op(name, "resize", nest, [data.name], results, attributes=attributes)


def product(net: Draft, name: str, made: list[Tensor], draw: Draw) -> Tensor | None:
    """A matrix product with weights, or of two tensors."""
    data = draw(st.sampled_from(made))
    fitting = [t for t in made if t.shape[1] == data.shape[1] and t.shape[2] == data.shape[3]]
    if fitting and draw(st.booleans()):
        return layers.matmul(net, name, data, draw(st.sampled_from(fitting)))
    weights = layers.constant(net, f"{name}.weight", (data.shape[3], draw(st.integers(1, 24))))
    return layers.matmul(net, name, data, weights)


MAKERS: tuple[Maker, ...] = (
    window_op,
    window_op,
    window_op,
    pointwise,
    pointwise,
    join,
    concatenation,
    part,
    rearrangement,
    product,
)


@st.composite
def networks(draw: Draw) -> Network:
    """Up to seven ops over one or two inputs; what nobody reads is a result, and maybe more."""
    net = layers.draft("small", draw(st.sampled_from([8, 8, 8, 16, 4])))
    shape = (1, draw(st.integers(1, 9)), draw(st.integers(2, 12)), draw(st.integers(2, 12)))
    made = [layers.given(net, "x", shape)]
    if draw(st.integers(0, 3)) == 0:
        made.append(layers.given(net, "y", shape))
    for number in range(draw(st.integers(1, 7))):
        maker = draw(st.sampled_from(MAKERS))
        # The newest tensors are likelier: chains are what most networks are made of.
        found = maker(net, f"op{number}", made + made[-1:] * 3, draw)
        if found is not None and found.elements <= 4096:
            made.append(found)
    if not net.builder.ops:
        made.append(layers.activation(net, "only", made[0]))
    read = {operand.tensor for op in net.builder.ops for operand in op.inputs}
    results = [o.tensor for op in net.builder.ops for o in op.outputs]
    last = [name for name in results if name not in read or draw(st.integers(0, 7)) == 0]
    return net.builder.finish(last)

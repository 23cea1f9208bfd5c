"""The layers that zoo networks are made of: each function adds one op, the twin of one ONNX node.

Attributes bear the names that ONNX has for them; what ONNX passes as a constant input beside the
data (the bounds of a slice, the scales of a resize) is an attribute too. A result and the op that
makes it share their name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tilewright.network import moves, nests, windows
from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import AttributeValue, Network, Tensor
from tilewright.network.nests import Nest, Shape

BIAS_BITS = 32
INDEX_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A network under construction, and the bits of its activations and weights."""

    builder: NetworkBuilder
    bits: int

    def finish(self, *results: Tensor) -> Network:
        """The network with these results as its outputs."""
        return self.builder.finish(tensor.name for tensor in results)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """How a kernel slides over height and width; `pads` are top, left, bottom and right."""

    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    group: int = 1
    bias: bool = True
    ceil_mode: bool = False


def square(kernel: int, stride: int = 1, pad: int = 0, *, group: int = 1) -> Filter:
    """A filter that is the same along both axes.

    >>> square(3, 2, 1).pads
    (1, 1, 1, 1)
    """
    return Filter(
        kernel=(kernel, kernel), strides=(stride, stride), pads=(pad, pad, pad, pad), group=group
    )


def draft(name: str, bits: int) -> Draft:
    """An empty network of the zoo."""
    return Draft(builder=NetworkBuilder(name, f"zoo:{name}"), bits=bits)


def given(net: Draft, name: str, shape: Shape) -> Tensor:
    """An input of the network."""
    return net.builder.tensor(name, shape, bits=net.bits, role="input")


def given_indices(net: Draft, name: str, shape: Shape) -> Tensor:
    """An input that holds positions in a table."""
    return net.builder.tensor(name, shape, bits=INDEX_BITS, role="input")


def constant(net: Draft, name: str, shape: Shape) -> Tensor:
    """A constant with the bits of a weight."""
    return net.builder.tensor(name, shape, bits=net.bits, role="constant")


def bias(net: Draft, name: str, size: int) -> Tensor:
    """A constant with the bits of a partial sum."""
    return net.builder.tensor(name, (size,), bits=BIAS_BITS, role="constant")


def conv(net: Draft, name: str, data: Tensor, channels: int, window: Filter) -> Tensor:
    """Conv; its weights are `<name>.weight` and `<name>.bias`."""
    inputs = [
        data,
        constant(net, f"{name}.weight", (channels, data.shape[1] // window.group, *window.kernel)),
    ]
    if window.bias:
        inputs.append(bias(net, f"{name}.bias", channels))
    nest = windows.conv(
        data.shape, channels, window.group, _windows(window), windows.ONNX_CONV, bias=window.bias
    )
    attributes = {**_sliding(window), "dilations": (1, 1), "group": window.group}
    return _op(net, name, "conv", nest, inputs, attributes)


def max_pool(net: Draft, name: str, data: Tensor, window: Filter) -> Tensor:
    """MaxPool."""
    attributes = {**_sliding(window), "dilations": (1, 1), "ceil_mode": int(window.ceil_mode)}
    return _op(net, name, "max_pool", _pool_nest(data, window), [data], attributes)


def global_average_pool(net: Draft, name: str, data: Tensor) -> Tensor:
    """AveragePool over the whole height and width."""
    window = Filter(kernel=(data.shape[2], data.shape[3]))
    attributes = {**_sliding(window), "ceil_mode": 0, "count_include_pad": 0}
    return _op(net, name, "average_pool", _pool_nest(data, window), [data], attributes)


def activation(
    net: Draft,
    name: str,
    data: Tensor,
    kind: str = "relu",
    attributes: Mapping[str, AttributeValue] | None = None,
) -> Tensor:
    """An op that makes each element of the result from one element."""
    return _op(net, name, kind, nests.elementwise(data.shape), [data], attributes or {})


def relu6(net: Draft, name: str, data: Tensor) -> Tensor:
    """Clip to 0 … 6, which is how ONNX spells this activation."""
    return activation(net, name, data, "clip", {"min": 0.0, "max": 6.0})


def add(net: Draft, name: str, left: Tensor, right: Tensor) -> Tensor:
    """Add, with NumPy's broadcasting."""
    return _op(net, name, "add", nests.elementwise(left.shape, right.shape), [left, right], {})


def softmax(net: Draft, name: str, data: Tensor) -> Tensor:
    """Softmax along the last axis."""
    return _op(net, name, "softmax", nests.along(data.shape, [-1]), [data], {"axis": -1})


def layer_norm(net: Draft, name: str, data: Tensor, epsilon: float) -> Tensor:
    """LayerNormalization along the last axis, with a scale and a bias."""
    size = data.shape[-1]
    inputs = [
        data,
        constant(net, f"{name}.weight", (size,)),
        bias(net, f"{name}.bias", size),
    ]
    nest = nests.along(data.shape, [-1], (size,), (size,))
    return _op(net, name, "layer_norm", nest, inputs, {"axis": -1, "epsilon": epsilon})


def local_response_norm(net: Draft, name: str, data: Tensor, size: int) -> Tensor:
    """LRN over `size` neighbouring channels, with the parameters of Caffe's AlexNet."""
    attributes = {"size": size, "alpha": 1e-4, "beta": 0.75, "bias": 1.0}
    nest = nests.along(data.shape, [1])
    return _op(net, name, "local_response_norm", nest, [data], attributes)


def matmul(net: Draft, name: str, left: Tensor, right: Tensor) -> Tensor:
    """MatMul of two tensors that are there already."""
    return _op(net, name, "matmul", nests.matmul(left.shape, right.shape), [left, right], {})


def gemm(net: Draft, name: str, data: Tensor, features: int, *, transposed: bool = True) -> Tensor:
    """Gemm of a matrix with weights and a bias; weights lie by output if `transposed`."""
    depth = data.shape[1]
    shape = (features, depth) if transposed else (depth, features)
    inputs = [
        data,
        constant(net, f"{name}.weight", shape),
        bias(net, f"{name}.bias", features),
    ]
    product = nests.matmul(data.shape, shape, transpose_right=transposed)
    assert product.output is not None
    nest = replace(product, inputs=(*product.inputs, product.output[-1:]))
    attributes = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": int(transposed)}
    return _op(net, name, "matmul", nest, inputs, attributes)


def reshape(net: Draft, name: str, data: Tensor, shape: Shape) -> Tensor:
    """Reshape."""
    return _op(net, name, "reshape", moves.reshape(data.shape, shape), [data], {})


def flatten(net: Draft, name: str, data: Tensor) -> Tensor:
    """Reshape to one row per image."""
    return reshape(net, name, data, (data.shape[0], prod(data.shape[1:])))


def transpose(net: Draft, name: str, data: Tensor, perm: tuple[int, ...]) -> Tensor:
    """Transpose: axis i of the result is axis `perm[i]` of the data."""
    return _op(net, name, "transpose", moves.transpose(data.shape, perm), [data], {"perm": perm})


def concat(net: Draft, name: str, parts: Sequence[Tensor], axis: int) -> Tensor:
    """Concat."""
    nest = moves.concat([part.shape for part in parts], axis)
    return _op(net, name, "concat", nest, parts, {"axis": axis})


def take(net: Draft, name: str, data: Tensor, axis: int, bounds: tuple[int, int]) -> Tensor:
    """Slice of one axis, from the first bound up to but without the second."""
    start, end = bounds
    begins = [start if i == axis else 0 for i in range(len(data.shape))]
    sizes = [end - start if i == axis else size for i, size in enumerate(data.shape)]
    nest = moves.slice_axes(data.shape, begins, sizes, [1] * len(sizes))
    attributes = {"starts": (start,), "ends": (end,), "axes": (axis,), "steps": (1,)}
    return _op(net, name, "slice", nest, [data], attributes)


def expand(net: Draft, name: str, data: Tensor, shape: Shape) -> Tensor:
    """Expand: the data repeated along its axes of size 1."""
    return _op(net, name, "expand", moves.expand(data.shape, shape), [data], {})


def look_up(net: Draft, name: str, table: Tensor, indices: Tensor) -> Tensor:
    """Gather of rows: a row of the table for every index."""
    shape = (*indices.shape, *table.shape[1:])
    walk = nests.moved(shape, None)
    assert walk.output is not None
    rank = len(indices.shape)
    source = (nests.anywhere_along(table.shape[0]), *walk.output[rank:])
    nest = replace(walk, inputs=(source, walk.output[:rank]))
    return _op(net, name, "gather", nest, [table, indices], {"axis": 0})


def upsample(net: Draft, name: str, data: Tensor, factor: int) -> Tensor:
    """Resize that repeats every element `factor` times along height and width."""
    attributes: dict[str, AttributeValue] = {
        "mode": "nearest",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
        "scales": (1.0, 1.0, float(factor), float(factor)),
    }
    nest = moves.magnify(data.shape, (factor, factor))
    return _op(net, name, "resize", nest, [data], attributes)


def _op(
    net: Draft,
    name: str,
    kind: str,
    nest: Nest,
    inputs: Sequence[Tensor],
    attributes: Mapping[str, AttributeValue],
) -> Tensor:
    return net.builder.op(
        name,
        kind,
        nest,
        [tensor.name for tensor in inputs],
        {name: (net.bits, "")},
        attributes=attributes,
    )


def _sliding(window: Filter) -> dict[str, AttributeValue]:
    return {"kernel_shape": window.kernel, "strides": window.strides, "pads": window.pads}


def _windows(window: Filter) -> list[windows.Window]:
    top, left, bottom, right = window.pads
    return [
        windows.Window(
            kernel=kernel, stride=stride, pad_begin=begin, pad_end=end, round_up=window.ceil_mode
        )
        for kernel, stride, begin, end in zip(
            window.kernel, window.strides, (top, left), (bottom, right), strict=True
        )
    ]


def _pool_nest(data: Tensor, window: Filter) -> Nest:
    return windows.pool(data.shape, _windows(window))

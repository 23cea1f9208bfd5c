"""Networks drawn at random: ONNX models of a few ops of all kinds, with weights."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

OPSET = 17
MOST_ELEMENTS = 6_000
"""Elements of a tensor that is drawn, at most."""

Shapes = dict[str, tuple[int, ...]]


class Draft:
    """A graph that grows op by op: names with shapes, and what is read already."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.values = np.random.default_rng(chance.getrandbits(32))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.shapes: Shapes = {}

    def given(self, name: str, shape: tuple[int, ...]) -> None:
        """A further input of the network."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.shapes[name] = shape

    def constant(self, *shape: int) -> str:
        """Weights of a shape."""
        return self.table(self.values.standard_normal(shape).astype(np.float32) / 4)

    def table(self, values: Any) -> str:
        """A constant with given values."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> bool:
        """Append a node; false, and nothing appended, if its shapes cannot be worked out."""
        n_nodes = len(self.nodes)
        names = [f"t{n_nodes}_{i}" if i else f"t{n_nodes}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"n{n_nodes}", **attributes))
        shapes = self._inferred(names)
        if shapes is None:
            self.nodes.pop()
            return False
        self.shapes |= shapes
        return True

    def _inferred(self, names: list[str]) -> Shapes | None:
        try:
            whole = shape_inference.infer_shapes(self.model(names), strict_mode=True)
        except (shape_inference.InferenceError, ValueError):
            return None
        shapes: Shapes = {}
        for value in whole.graph.output:
            sizes = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
            if not sizes or min(sizes) < 1 or int(np.prod(sizes)) > MOST_ELEMENTS:
                return None
            shapes[value.name] = sizes
        return shapes

    def model(self, results: list[str]) -> onnx.ModelProto:
        """The model as it is so far."""
        outputs = [helper.make_empty_tensor_value_info(name) for name in results]
        for output in outputs:
            output.type.tensor_type.elem_type = TensorProto.FLOAT
        graph = helper.make_graph(self.nodes, "drawn", self.inputs, outputs, self.constants)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8
        )

    def pick(self, rank: int | None = None) -> str | None:
        """A tensor of some rank, the newest ones likelier."""
        names = [n for n, s in self.shapes.items() if rank is None or len(s) == rank]
        if not names:
            return None
        return self.chance.choice(names + names[-2:] * 2)


def convolution(draft: Draft, data: str) -> bool:
    """Dense, grouped or depthwise; strided, dilated, padded unequally."""
    chance, channels = draft.chance, draft.shapes[data][1]
    group = chance.choice([1, 1, channels, *(g for g in (2, 3) if channels % g == 0)])
    kernels = group * chance.choice([1, 1, 2]) if group > 1 else chance.randint(1, 20)
    kernel = [chance.randint(1, 4), chance.randint(1, 4)]
    dilations = [chance.choice([1, 1, 2]), chance.choice([1, 1, 2])]
    pads = [chance.randint(0, 2) for _ in range(4)]
    rooms = [size + pads[i] + pads[i + 2] for i, size in enumerate(draft.shapes[data][2:])]
    if any((k - 1) * d >= room for k, d, room in zip(kernel, dilations, rooms, strict=True)):
        return False
    weights = draft.constant(kernels, channels // group, *kernel)
    biased = [draft.constant(kernels)] if chance.random() < 0.7 else []
    return draft.add(
        "Conv",
        data,
        weights,
        *biased,
        group=group,
        strides=[chance.randint(1, 3), chance.randint(1, 3)],
        dilations=dilations,
        pads=pads,
    )


def transposed_convolution(draft: Draft, data: str) -> bool:
    """With any kernel against any stride, cropped and longer behind."""
    chance, channels = draft.chance, draft.shapes[data][1]
    strides = [chance.randint(1, 3), chance.randint(1, 3)]
    weights = draft.constant(channels, chance.randint(1, 6), *(chance.randint(1, 4) for _ in "hw"))
    pads = [chance.choice([0, 0, 1]) for _ in range(4)]
    more = [chance.randrange(s) for s in strides]
    return draft.add(
        "ConvTranspose", data, weights, strides=strides, pads=pads, output_padding=more
    )


def pool(draft: Draft, data: str) -> bool:
    """The most or the mean of windows."""
    chance = draft.chance
    kernel = [chance.randint(1, 3), chance.randint(1, 3)]
    pads = [chance.randrange(k) for k in kernel * 2]
    if any(k > size for k, size in zip(kernel, draft.shapes[data][2:], strict=True)):
        return False
    strides = [chance.randint(1, 3), chance.randint(1, 3)]
    kind = chance.choice(["MaxPool", "AveragePool"])
    return draft.add(kind, data, kernel_shape=kernel, strides=strides, pads=pads)


def whole_pool(draft: Draft, data: str) -> bool:
    """Everything of a channel."""
    return draft.add(draft.chance.choice(["GlobalAveragePool", "GlobalMaxPool"]), data)


def normalisation(draft: Draft, data: str) -> bool:
    """A factor and an offset for each channel."""
    channels = draft.shapes[data][1]
    mean, scale, offset = (draft.constant(channels) for _ in range(3))
    variance = draft.table(draft.values.uniform(0.5, 2, channels).astype(np.float32))
    return draft.add("BatchNormalization", data, scale, offset, mean, variance)


def larger(draft: Draft, data: str) -> bool:
    """Each element several times."""
    scales = [1.0, 1.0, float(draft.chance.randint(1, 3)), float(draft.chance.randint(1, 2))]
    factors = draft.table(np.array(scales, np.float32))
    return draft.add("Resize", data, "", factors, mode="nearest", nearest_mode="floor",
                     coordinate_transformation_mode="asymmetric")  # fmt: skip


def depth_to_space(draft: Draft, data: str) -> bool:
    """Channels become rows and columns, or the other way round."""
    _, channels, rows, columns = draft.shapes[data]
    if channels % 4 == 0:
        return draft.add("DepthToSpace", data, blocksize=2)
    return rows % 2 == columns % 2 == 0 and draft.add("SpaceToDepth", data, blocksize=2)


def activation(draft: Draft, data: str) -> bool:
    """One element to one element."""
    kinds = ["Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Elu", "Abs", "Sqrt"]
    kind = draft.chance.choice(kinds[:-1])
    return draft.add(kind, data)


def join(draft: Draft, data: str) -> bool:
    """The sum, the product or the larger of two."""
    shape = draft.shapes[data]
    alike = [name for name, s in draft.shapes.items() if s == shape]
    kind = draft.chance.choice(["Add", "Mul", "Sub", "Max"])
    return draft.add(kind, data, draft.chance.choice(alike))


def scaled(draft: Draft, data: str) -> bool:
    """With a constant for each channel, or for each element of the last axis."""
    shape = draft.shapes[data]
    sizes = (shape[1], *[1] * (len(shape) - 2)) if len(shape) > 2 else (shape[-1],)
    return draft.add(draft.chance.choice(["Add", "Mul"]), data, draft.constant(*sizes))


def _are_alike_but(axis: int, first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    return len(first) == len(second) and all(
        a == b or i == axis for i, (a, b) in enumerate(zip(first, second, strict=True))
    )


def concatenation(draft: Draft, data: str) -> bool:
    """Behind each other along any axis."""
    shape = draft.shapes[data]
    axis = draft.chance.randrange(1, len(shape)) if len(shape) > 1 else 0
    rest = [name for name, other in draft.shapes.items() if _are_alike_but(axis, shape, other)]
    others = [draft.chance.choice(rest) for _ in range(draft.chance.randint(1, 2))]
    return draft.add("Concat", data, *others, axis=axis)


def part(draft: Draft, data: str) -> bool:
    """A slice with a step along one axis."""
    chance, shape = draft.chance, draft.shapes[data]
    axis = chance.randrange(len(shape))
    begin = chance.randrange(shape[axis])
    end = chance.randint(begin + 1, shape[axis])
    tables = [
        draft.table(np.array([v], np.int64)) for v in (begin, end, axis, chance.choice([1, 1, 2]))
    ]
    return draft.add("Slice", data, *tables)  # fmt: skip


def split(draft: Draft, data: str) -> bool:
    """Two parts along one axis."""
    chance, shape = draft.chance, draft.shapes[data]
    axes = [i for i, size in enumerate(shape) if size > 1]
    if not axes:
        return False
    axis = chance.choice(axes)
    first = chance.randint(1, shape[axis] - 1)
    sizes = draft.table(np.array([first, shape[axis] - first], np.int64))
    return draft.add("Split", data, sizes, outputs=2, axis=axis)


def picked(draft: Draft, data: str) -> bool:
    """Some elements of an axis, in any order, some of them twice."""
    chance, shape = draft.chance, draft.shapes[data]
    axis = chance.randrange(len(shape))
    indices = [chance.randrange(shape[axis]) for _ in range(chance.randint(1, 5))]
    return draft.add("Gather", data, draft.table(np.array(indices, np.int64)), axis=axis)


def reshaped(draft: Draft, data: str) -> bool:
    """The same elements in another shape."""
    shape = draft.shapes[data]
    size = int(np.prod(shape))
    split_of = [(1, size)] + [(1, d, size // d) for d in range(2, 12) if size % d == 0]
    split_of += [
        (1, s[1], d, s[2] // d) for s in split_of if len(s) == 3 for d in (2, 3) if s[2] % d == 0
    ]
    to = draft.chance.choice(split_of)  # fmt: skip
    return draft.add("Reshape", data, draft.table(np.array(to, np.int64)))


def transposed(draft: Draft, data: str) -> bool:
    """Axes in another order, the batch kept in front."""
    axes = list(range(1, len(draft.shapes[data])))
    draft.chance.shuffle(axes)
    return draft.add("Transpose", data, perm=[0, *axes])


def padded(draft: Draft, data: str) -> bool:
    """Room around rows and columns."""
    rank = len(draft.shapes[data])
    pads = [draft.chance.choice([0, 0, 1, 3]) if i % rank >= 1 else 0 for i in range(2 * rank)]
    return draft.add("Pad", data, draft.table(np.array(pads, np.int64)))


def product(draft: Draft, data: str) -> bool:
    """A matrix product with weights, or of two tensors."""
    shape = draft.shapes[data]
    others = [
        name
        for name, other in draft.shapes.items()
        if len(other) == len(shape) > 2 and (*other[:-2], other[-2]) == (*shape[:-2], shape[-1])
    ]
    if others and draft.chance.random() < 0.6:
        return draft.add("MatMul", data, draft.chance.choice(others))
    return draft.add("MatMul", data, draft.constant(shape[-1], draft.chance.randint(1, 24)))


def dense(draft: Draft, data: str) -> bool:
    """A product with weights and bias."""
    kernels = draft.chance.randint(1, 30)
    weights = draft.constant(kernels, draft.shapes[data][1])
    return draft.add("Gemm", data, weights, draft.constant(kernels), transB=1)


def over_axis(draft: Draft, data: str) -> bool:
    """What looks at a whole axis."""
    shape = draft.shapes[data]
    match draft.chance.choice(["Softmax", "LayerNormalization", "ReduceMean", "ReduceMax"]):
        case "Softmax":
            return draft.add("Softmax", data, axis=draft.chance.randrange(1, len(shape)))
        case "LayerNormalization":
            scale, offset = draft.constant(shape[-1]), draft.constant(shape[-1])
            return draft.add("LayerNormalization", data, scale, offset, axis=-1)
        case kind:
            axes = [draft.chance.randrange(1, len(shape))]
            return draft.add(kind, data, axes=axes, keepdims=1)


Maker = Callable[[Draft, str], bool]
MAPS: tuple[Maker, ...] = (
    *[convolution] * 6, transposed_convolution, pool, pool, whole_pool, normalisation, larger,
    depth_to_space,
)  # fmt: skip
ANY: tuple[Maker, ...] = (
    activation, activation, join, join, scaled, concatenation, part, split, picked, reshaped,
    transposed, padded, product, over_axis,
)  # fmt: skip


def drawn_network(chance: Random) -> onnx.ModelProto:
    """A network of up to nine ops; what nobody reads is a result, and now and then more."""
    draft = Draft(chance)
    draft.given("x", (1, chance.randint(1, 12), chance.randint(1, 16), chance.randint(1, 16)))
    if chance.random() < 0.25:
        draft.given("y", draft.shapes["x"])
    for _ in range(chance.randint(1, 9)):
        maps = draft.pick(4) if chance.random() < 0.6 else None
        flat = draft.pick(2) if maps is None and chance.random() < 0.3 else None
        if maps is not None:
            chance.choice(MAPS)(draft, maps)
        elif flat is not None:
            dense(draft, flat)
        else:
            data = draft.pick()
            if data is not None:
                chance.choice(ANY)(draft, data)
    if not draft.nodes:
        draft.add("Relu", "x")
    read = {name for node in draft.nodes for name in node.input}
    made = [name for node in draft.nodes for name in node.output]
    results = [name for name in made if name not in read or chance.random() < 0.1]
    # An input that nobody reads is none.
    used = [value for value in draft.inputs if value.name in read]
    draft.inputs = used
    return draft.model(results)

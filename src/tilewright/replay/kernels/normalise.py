"""Softmaxes, normalisations, reductions, and what picks along an axis."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from tilewright.replay.kernels import tflite
from tilewright.replay.kernels.activations import activated
from tilewright.replay.kernels.quantise import dequantised, dtype_of, quantised, single
from tilewright.replay.kernels.tile import Array, Kernel, KernelError, Tile


def _coupled(tile: Tile) -> tuple[int, ...]:
    """Axes, among the loops, along which every result depends on all elements."""
    return tuple(tile.axis_of(dim) for dim in tile.op.coupled)


def softmax(x: Array, axes: tuple[int, ...]) -> Array:
    """exp(x) / Σ exp(x) over the axes, without overflow."""
    powers = np.exp(x - x.max(axis=axes, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axes, keepdims=True))


def _softmax(tile: Tile) -> Sequence[Array]:
    axes = _coupled(tile)
    x = tile.over_loops("I")
    if tile.parts["I"].quantisation is not None and x.dtype.kind in "iu":
        return [tflite.softmax(tile)]
    if tile.text("onnx_op") == "QLinearSoftmax":
        real = dequantised(x, single(tile, "X3"), single(tile, "X4"))
        dtype = dtype_of(tile.results[0].tensor.dtype)
        result = tile.boxed(softmax(real, axes))
        return [quantised(result, single(tile, "X5"), single(tile, "X6"), dtype)]
    return [tile.boxed(softmax(x * x.dtype.type(tile.number("beta", 1)), axes))]


def _log_softmax(tile: Tile) -> Sequence[Array]:
    x = tile.over_loops("I")
    if tile.parts["I"].quantisation is not None and x.dtype.kind in "iu":
        raise KernelError("log_softmax of quantised numbers is not emulated")
    axes = _coupled(tile)
    moved = x - x.max(axis=axes, keepdims=True)
    return [tile.boxed(moved - np.log(np.exp(moved).sum(axis=axes, keepdims=True)))]


def _hardmax(tile: Tile) -> Sequence[Array]:
    x = tile.over_loops("I")
    axes = _coupled(tile)
    order = [i for i in range(x.ndim) if i not in axes] + list(axes)
    moved = x.transpose(order)
    rows = moved.reshape(*moved.shape[: x.ndim - len(axes)], -1)
    best = np.zeros_like(rows)
    np.put_along_axis(best, rows.argmax(axis=-1)[..., None], 1, axis=-1)
    back = [order.index(i) for i in range(x.ndim)]
    return [tile.boxed(best.reshape(moved.shape).transpose(back))]


def _scaled(tile: Tile, x: Array, scale: str, bias: str) -> Array:
    if tile.has(scale):
        x = x * tile.over_loops(scale)
    return x + tile.over_loops(bias) if tile.has(bias) else x


def _statistics(tile: Tile, x: Array, *, centred: bool) -> tuple[Array, Array]:
    """The mean, or 0, and 1 / the standard deviation around it."""
    axes = _coupled(tile) or tuple(
        i for i, (dim, _) in enumerate(tile.op.dims) if dim not in _result_dims(tile)
    )
    mean = x.mean(axis=axes, keepdims=True) if centred else np.zeros((), dtype=x.dtype)
    variance = np.square(x - mean).mean(axis=axes, keepdims=True)
    return mean, 1 / np.sqrt(variance + x.dtype.type(tile.number("epsilon", 1e-5)))


def _result_dims(tile: Tile) -> list[str]:
    return [dim for axis in tile.op.outputs[0].index or () for dim, _ in axis.terms]


def _layer_norm(*, centred: bool) -> Kernel:
    def kernel(tile: Tile) -> Sequence[Array]:
        x = tile.over_loops("I")
        letters = ("W", "B")
        if "Skip" in tile.text("onnx_op") and not tile.op.attribute("result", ""):
            # Operands: data, skip, scale, (shift,) bias of the sum.
            letters = ("B", "X3" if centred else "")
            x = x + tile.over_loops("W")
            last = "X4" if centred else "X3"
            x = x + tile.over_loops(last) if tile.has(last) else x
        mean, inverse = _statistics(tile, x, centred=centred)
        match int(tile.number("result")):
            case 1:
                return [tile.boxed(mean)]
            case 2:
                return [tile.boxed(inverse)]
            case _:
                return [tile.boxed(_scaled(tile, (x - mean) * inverse, *letters))]

    return kernel


def _centred(tile: Tile) -> Sequence[Array]:
    """Instance and group normalisation."""
    x = tile.over_loops("I")
    mean, inverse = _statistics(tile, x, centred=True)
    return [tile.boxed(_scaled(tile, (x - mean) * inverse, "W", "B"))]


def _mean_variance(tile: Tile) -> Sequence[Array]:
    x = tile.over_loops("I")
    axes = _coupled(tile)
    moved = x - x.mean(axis=axes, keepdims=True)
    deviation = np.sqrt(np.square(moved).mean(axis=axes, keepdims=True))
    return [tile.boxed(moved / (deviation + np.float32(tile.number("epsilon"))))]


def _batch_norm(tile: Tile) -> Sequence[Array]:
    x, scale, bias, mean, variance = (tile.over_loops(o.name) for o in tile.op.inputs)
    factor = scale / np.sqrt(variance + np.float32(tile.number("epsilon", 1e-5)))
    return [tile.boxed((x - mean) * factor + bias)]


def _lp_norm(tile: Tile) -> Sequence[Array]:
    x, axes = tile.over_loops("I"), _coupled(tile)
    if tile.number("p", 2) == 1:
        norm = np.abs(x).sum(axis=axes, keepdims=True)
    else:
        norm = np.sqrt(np.square(x).sum(axis=axes, keepdims=True))
    return [tile.boxed(x / np.where(norm == 0, 1, norm))]


def _l2_norm(tile: Tile) -> Sequence[Array]:
    x = tile.over_loops("I")
    if tile.parts["I"].quantisation is not None and x.dtype.kind in "iu":
        raise KernelError("l2_norm of quantised numbers is not emulated")
    # 1e-6 is what TFLite keeps the sum of squares above.
    squares = np.maximum(np.square(x).sum(axis=_coupled(tile), keepdims=True), np.float32(1e-6))
    return [activated(tile.op, tile.boxed(x / np.sqrt(squares)))]


def _local_response_norm(tile: Tile) -> Sequence[Array]:
    """Division by the squares of neighbouring channels: the second axis, TFLite's last."""
    part, wanted = tile.part("I"), tile.results[0]
    if tile.text("tflite_op"):
        axis, radius = len(wanted.box) - 1, int(tile.number("radius"))
        before, behind, share = radius, radius, 1.0
    else:
        axis, size = 1, int(tile.number("size"))
        before, behind, share = (size - 1) // 2, size // 2, float(size)
    (low, high), (first, last) = part.box[axis], wanted.box[axis]
    squares = np.moveaxis(np.square(part.array), axis, 0)
    sums = np.zeros((last - first, *squares.shape[1:]), dtype=squares.dtype)
    for step in range(-before, behind + 1):
        a, b = max(low, first + step), min(high, last + step)
        if a < b:
            sums[a - step - first : b - step - first] += squares[a - low : b - low]
    alpha, beta = np.float32(tile.number("alpha") / share), np.float32(tile.number("beta"))
    divisor = (np.float32(tile.number("bias")) + alpha * np.moveaxis(sums, 0, axis)) ** beta
    own = np.moveaxis(np.moveaxis(part.array, axis, 0)[first - low : last - low], 0, axis)
    return [own / divisor]


_REDUCTIONS: Final[Mapping[str, Callable[[Array, tuple[int, ...]], Array]]] = {
    "reduce_sum": lambda x, axes: x.sum(axis=axes, keepdims=True),
    "reduce_mean": lambda x, axes: x.mean(axis=axes, keepdims=True),
    "reduce_max": lambda x, axes: x.max(axis=axes, keepdims=True),
    "reduce_min": lambda x, axes: x.min(axis=axes, keepdims=True),
    "reduce_prod": lambda x, axes: x.prod(axis=axes, keepdims=True),
    "reduce_l1": lambda x, axes: np.abs(x).sum(axis=axes, keepdims=True),
    "reduce_l2": lambda x, axes: np.sqrt(np.square(x).sum(axis=axes, keepdims=True)),
    "reduce_log_sum": lambda x, axes: np.log(x.sum(axis=axes, keepdims=True)),
    "reduce_log_sum_exp": lambda x, axes: np.logaddexp.reduce(x, axis=axes, keepdims=True),
    "reduce_sum_square": lambda x, axes: np.square(x).sum(axis=axes, keepdims=True),
}


def _reduced(kind: str) -> Kernel:
    combine = _REDUCTIONS[kind]

    def kernel(tile: Tile) -> Sequence[Array]:
        x = tile.over_loops("I")
        kept = _result_dims(tile)
        axes = tuple(i for i, (dim, _) in enumerate(tile.op.dims) if dim not in kept)
        part = tile.part("I")
        if part.quantisation is not None and x.dtype.kind in "iu":
            return [tflite.reduced(tile, kind, x, axes)]
        if kind == "reduce_log_sum_exp":
            return [tile.boxed(_log_sum_exp(x, axes))]
        return [tile.boxed(combine(x, axes))]

    return kernel


def _log_sum_exp(x: Array, axes: tuple[int, ...]) -> Array:
    top = x.max(axis=axes, keepdims=True)
    return np.asarray(top + np.log(np.exp(x - top).sum(axis=axes, keepdims=True)))


def _top_k(tile: Tile) -> Sequence[Array]:
    axis, count = int(tile.number("axis")), int(tile.number("k"))
    x = tile.part("I").array
    key = -x.astype(np.float64) if tile.number("largest", 1) else x.astype(np.float64)
    # Equal elements come in the order of their places.
    order = np.argsort(key, axis=axis, kind="stable").take(np.arange(count), axis=axis)
    return [np.take_along_axis(x, order, axis=axis), order][: len(tile.results)]


def _cumsum(tile: Tile) -> Sequence[Array]:
    axis, x = int(tile.number("axis")), tile.part("I").array
    x = np.flip(x, axis) if tile.number("reverse") else x
    sums = np.cumsum(x, axis=axis, dtype=x.dtype)
    sums = sums - x if tile.number("exclusive") else sums
    return [np.flip(sums, axis) if tile.number("reverse") else sums]


KERNELS: Final[Mapping[str, Kernel]] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "hardmax": _hardmax,
    "layer_norm": _layer_norm(centred=True),
    "rms_norm": _layer_norm(centred=False),
    "instance_norm": _centred,
    "group_norm": _centred,
    "batch_norm": _batch_norm,
    "mean_variance_norm": _mean_variance,
    "lp_norm": _lp_norm,
    "l2_norm": _l2_norm,
    "local_response_norm": _local_response_norm,
    **{kind: _reduced(kind) for kind in _REDUCTIONS},
    "top_k": _top_k,
    "cumsum": _cumsum,
}

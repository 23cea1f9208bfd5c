"""Functions of one number, and the activations that are part of another op."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np

from tilewright.network.graph import Op
from tilewright.replay.kernels.tile import Array, KernelError, Tile

Function = Callable[[Array], Array]
Parametric = Callable[[Tile, Array], Array]


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def softplus(x: Array) -> Array:
    """log(1 + e^x), without overflow."""
    return np.logaddexp(x, np.zeros_like(x))


def erf(x: Array) -> Array:
    """The error function to 1.5e-7: Abramowitz and Stegun, Handbook, 7.1.26."""
    z = np.abs(x.astype(np.float64))
    t = 1 / (1 + 0.3275911 * z)
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    return np.asarray(np.copysign(1 - series * np.exp(-z * z), x))


def gelu(x: Array, *, tanh: bool) -> Array:
    """x Φ(x), exactly or by the usual approximation with tanh."""
    if tanh:
        return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
    return np.asarray(0.5 * x * (1 + erf(x / np.sqrt(2))))


def hard_swish(x: Array) -> Array:
    """x × clip(x / 6 + 1/2, 0, 1)."""
    return np.asarray(x * np.clip(x / 6 + 0.5, 0, 1))


_FUSED: Final[Mapping[str, Function]] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "relu_n1_to_1": lambda x: np.clip(x, -1, 1),
    "tanh": np.tanh,
    "sigmoid": sigmoid,
}
_FUSED_WITH_NUMBERS: Final[Mapping[str, Callable[..., Array]]] = {
    "leakyrelu": lambda x, alpha: np.where(x >= 0, x, x * np.float32(alpha)),
    "hardsigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "clip": lambda x, low, high: np.clip(x, low, high),
}


def activated(op: Op, values: Array) -> Array:
    """Real values after the activation that the op itself has, if any."""
    name = str(op.attribute("activation", "")).lower()
    if not name:
        return values
    numbers = op.attribute("activation_numbers", ())
    if name in _FUSED_WITH_NUMBERS and isinstance(numbers, tuple) and numbers:
        return _FUSED_WITH_NUMBERS[name](values, *numbers)
    if name not in _FUSED:
        raise KernelError(f"activation {name!r} is not emulated")
    return _FUSED[name](values)


def _plain(function: Function) -> Parametric:
    def apply(tile: Tile, x: Array) -> Array:
        return function(x)

    return apply


def _leaky_relu(tile: Tile, x: Array) -> Array:
    return np.where(x >= 0, x, x * np.float32(tile.number("alpha", 0.01)))


def _elu(tile: Tile, x: Array) -> Array:
    return np.where(x >= 0, x, tile.number("alpha", 1) * np.expm1(np.minimum(x, 0)))


def _selu(tile: Tile, x: Array) -> Array:
    return np.asarray(tile.number("gamma") * _elu(tile, x))


def _celu(tile: Tile, x: Array) -> Array:
    alpha = tile.number("alpha", 1)
    return np.asarray(np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(np.minimum(x, 0) / alpha)))


def _thresholded_relu(tile: Tile, x: Array) -> Array:
    return np.where(x > tile.number("alpha", 1), x, 0)


def _hard_sigmoid(tile: Tile, x: Array) -> Array:
    return np.clip(tile.number("alpha", 0.2) * x + tile.number("beta", 0.5), 0, 1)


def _swish(tile: Tile, x: Array) -> Array:
    return np.asarray(x * sigmoid(tile.number("alpha", 1) * x))


def _shrink(tile: Tile, x: Array) -> Array:
    bias, limit = tile.number("bias"), tile.number("lambd", 0.5)
    return np.where(x < -limit, x + bias, np.where(x > limit, x - bias, 0))


def _is_inf(tile: Tile, x: Array) -> Array:
    up = np.isposinf(x) & bool(tile.number("detect_positive", 1))
    return np.asarray(up | (np.isneginf(x) & bool(tile.number("detect_negative", 1))))


def _neg(x: Array) -> Array:
    return np.negative(x)


_PLAIN: Final[Mapping[str, Function]] = {
    "identity": partial(np.asarray),
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": sigmoid,
    "hard_swish": hard_swish,
    "mish": lambda x: x * np.tanh(softplus(x)),
    "tanh": np.tanh,
    "softplus": softplus,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "erf": erf,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "abs": np.abs,
    "neg": _neg,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "square": np.square,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "is_nan": np.isnan,
    "not": np.logical_not,
    "bitwise_not": np.bitwise_not,
}

UNARY: Final[Mapping[str, Parametric]] = {
    **{kind: _plain(function) for kind, function in _PLAIN.items()},
    "leaky_relu": _leaky_relu,
    "elu": _elu,
    "selu": _selu,
    "celu": _celu,
    "thresholded_relu": _thresholded_relu,
    "hard_sigmoid": _hard_sigmoid,
    "swish": _swish,
    "shrink": _shrink,
    "is_inf": _is_inf,
}
"""Kinds that make each element from one element."""

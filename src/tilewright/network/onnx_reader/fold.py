"""Working out constants: small ones only, since only shapes hang on them."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tilewright.network.graph import AttributeValue
from tilewright.network.onnx_reader.call import Step
from tilewright.network.onnx_reader.elements import NUMPY_NAMES
from tilewright.network.onnx_reader.stored import Array

Evaluator = Callable[[Step, Sequence[Array]], Any]


def evaluate(step: Step, arrays: Sequence[Array]) -> Array:
    """The result of a step on values that are known.

    ValueError, LookupError, TypeError or ArithmeticError where it has none or is not worked out.
    """
    evaluator = EVALUATORS.get(step.kind)
    element = step.outputs[0][1].name
    if evaluator is None or element not in NUMPY_NAMES or len(step.outputs) != 1:
        raise ValueError(f"{step.kind} of constants is not worked out")
    with np.errstate(all="ignore"):
        result = np.asarray(evaluator(step, arrays)).astype(element, copy=False)
    if result.shape != step.nest.shape:
        raise ValueError(f"{step.kind} of constants is not worked out for these shapes")
    return result


def _numbers(step: Step, key: str) -> tuple[int, ...]:
    """An attribute that a rule made as a tuple of whole numbers."""
    value = step.attributes[key]
    if not isinstance(value, tuple):
        raise ValueError(f"{key} is no list")
    return tuple(int(n) for n in value)


def _number(step: Step, key: str) -> int:
    value: AttributeValue = step.attributes[key]
    if not isinstance(value, int):
        raise ValueError(f"{key} is no whole number")
    return value


def _to_shape(step: Step, arrays: Sequence[Array]) -> Array:
    return arrays[0].reshape(step.nest.shape)


def _to_type(step: Step, arrays: Sequence[Array]) -> Array:
    return arrays[0].astype(step.outputs[0][1].name)


def _transpose(step: Step, arrays: Sequence[Array]) -> Array:
    return arrays[0].transpose(_numbers(step, "perm"))


def _concat(step: Step, arrays: Sequence[Array]) -> Array:
    return np.concatenate(arrays, axis=_number(step, "axis"))


def _slice(step: Step, arrays: Sequence[Array]) -> Any:
    chosen = zip(
        _numbers(step, "starts"), _numbers(step, "sizes"), _numbers(step, "steps"), strict=True
    )
    return arrays[0][tuple(_axis_slice(*numbers) for numbers in chosen)]


def _axis_slice(start: int, size: int, stride: int) -> slice:
    end = start + size * stride
    return slice(start, end if end >= 0 else None, stride) if size else slice(0, 0)


def _gather(step: Step, arrays: Sequence[Array]) -> Any:
    data, indices = arrays
    if step.attributes["onnx_op"] == "Gather":
        return np.take(data, indices, axis=_number(step, "axis"))
    if step.attributes["onnx_op"] == "GatherElements":
        return np.take_along_axis(data, indices, axis=_number(step, "axis"))
    raise ValueError("GatherND of constants is not worked out")


def _scatter(step: Step, arrays: Sequence[Array]) -> Array:
    data, indices, updates = arrays
    if step.attributes["reduction"] != "none":
        raise ValueError("this scatter of constants is not worked out")
    result = data.copy()
    if step.attributes["onnx_op"] == "ScatterND":
        where = np.moveaxis(indices, -1, 0)
    else:
        where = np.indices(indices.shape)
        where[_number(step, "axis")] = indices
    result[tuple(where)] = updates
    return result


def _expand(step: Step, arrays: Sequence[Array]) -> Array:
    return np.broadcast_to(arrays[0], step.nest.shape)


def _tile(step: Step, arrays: Sequence[Array]) -> Array:
    return np.tile(arrays[0], _numbers(step, "repeats"))


def _pad(step: Step, arrays: Sequence[Array]) -> Array:
    pads = _numbers(step, "pads")
    rank = len(pads) // 2
    if step.attributes["mode"] != "constant" or min(pads, default=0) < 0 or len(arrays) != 1:
        raise ValueError("this padding of constants is not worked out")
    filler = step.attributes.get("value", 0)
    widths = list(zip(pads[:rank], pads[rank:], strict=True))
    return np.pad(arrays[0], widths, constant_values=filler) if rank else arrays[0]


def _divide(step: Step, arrays: Sequence[Array]) -> Any:
    """Division; of whole numbers towards zero, as ONNX has it."""
    left, right = arrays
    if left.dtype.kind not in "iu":
        return left / right
    if not right.all():
        raise ValueError("it divides by zero")
    quotient = np.abs(left) // np.abs(right)
    return quotient * np.sign(left) * np.sign(right)


def _modulo(step: Step, arrays: Sequence[Array]) -> Any:
    left, right = arrays
    if left.dtype.kind in "iu" and not right.all():
        raise ValueError("it divides by zero")
    return np.fmod(left, right) if step.attributes["fmod"] else np.mod(left, right)


def _clip(step: Step, arrays: Sequence[Array]) -> Any:
    if len(arrays) != 1:
        raise ValueError("this clip of constants is not worked out")
    result = arrays[0]
    if "min" in step.attributes:
        result = np.maximum(result, step.attributes["min"])
    if "max" in step.attributes:
        result = np.minimum(result, step.attributes["max"])
    return result


def _cumulative_sum(step: Step, arrays: Sequence[Array]) -> Array:
    if step.attributes["exclusive"] or step.attributes["reverse"]:
        raise ValueError("this sum of constants is not worked out")
    return np.cumsum(arrays[0], axis=_number(step, "axis"))


def _triangle(step: Step, arrays: Sequence[Array]) -> Array:
    offset = _number(step, "k")
    if abs(offset) > 2**31:
        raise ValueError("this triangle is not worked out")
    return (np.triu if step.attributes["upper"] else np.tril)(arrays[0], offset)


def _folding(function: Callable[[Array, Array], Any]) -> Evaluator:
    """Applies a function of two to all inputs, from left to right."""

    def apply(step: Step, arrays: Sequence[Array]) -> Any:
        result = arrays[0]
        for array in arrays[1:]:
            result = function(result, array)
        return result

    return apply


def _each(function: Callable[[Array], Any]) -> Evaluator:
    def apply(step: Step, arrays: Sequence[Array]) -> Any:
        return function(arrays[0])

    return apply


def _reducing(function: Callable[..., Any]) -> Evaluator:
    def apply(step: Step, arrays: Sequence[Array]) -> Any:
        keep = bool(step.attributes["keepdims"])
        return function(arrays[0], axis=_numbers(step, "axes"), keepdims=keep)

    return apply


def _where(step: Step, arrays: Sequence[Array]) -> Array:
    return np.where(*arrays)


EVALUATORS: Final[Mapping[str, Evaluator]] = MappingProxyType(
    {
        "identity": _to_shape,
        "reshape": _to_shape,
        "cast": _to_type,
        "transpose": _transpose,
        "concat": _concat,
        "slice": _slice,
        "gather": _gather,
        "scatter": _scatter,
        "expand": _expand,
        "tile": _tile,
        "pad": _pad,
        "where": _where,
        "clip": _clip,
        "div": _divide,
        "mod": _modulo,
        "cumsum": _cumulative_sum,
        "trilu": _triangle,
        "add": _folding(np.add),
        "sub": _folding(np.subtract),
        "mul": _folding(np.multiply),
        "pow": _folding(np.power),
        "min": _folding(np.minimum),
        "max": _folding(np.maximum),
        "equal": _folding(np.equal),
        "less": _folding(np.less),
        "greater": _folding(np.greater),
        "less_or_equal": _folding(np.less_equal),
        "greater_or_equal": _folding(np.greater_equal),
        "and": _folding(np.logical_and),
        "or": _folding(np.logical_or),
        "xor": _folding(np.logical_xor),
        "not": _each(np.logical_not),
        "neg": _each(np.negative),
        "abs": _each(np.abs),
        "sign": _each(np.sign),
        "floor": _each(np.floor),
        "ceil": _each(np.ceil),
        "round": _each(np.round),
        "sqrt": _each(np.sqrt),
        "exp": _each(np.exp),
        "log": _each(np.log),
        "reciprocal": _each(np.reciprocal),
        "reduce_sum": _reducing(np.sum),
        "reduce_prod": _reducing(np.prod),
        "reduce_max": _reducing(np.max),
        "reduce_min": _reducing(np.min),
        "reduce_mean": _reducing(np.mean),
    }
)
"""How a kind is worked out on values; kinds that are not here leave their result unknown."""

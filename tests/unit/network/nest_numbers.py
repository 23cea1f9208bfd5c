"""Computing a network from its loop nests alone: an oracle for indices, slow and obvious."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewright.network.graph import Index, Network, Op, Operand
from tilewright.network.kinds import KIND_CLASSES

_MOVES = {kind for kind, group in KIND_CLASSES.items() if group == "move"} | {"resize"}
_ELEMENT: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "relu": lambda x: np.maximum(x, 0),
    "prelu": lambda x, alpha: np.where(x >= 0, x, x * alpha),
    "where": np.where,
    "cast": lambda x: x,
}
_OVER: Mapping[str, tuple[Any, float]] = {
    "max_pool": (np.maximum, -np.inf),
    "reduce_max": (np.maximum, -np.inf),
    "reduce_sum": (np.add, 0),
    "reduce_prod": (np.multiply, 1),
}


def run_nests(network: Network, given: Mapping[str, Any]) -> dict[str, Any]:
    """All tensors; `given` are inputs and constants by name."""
    tensors = dict(given)
    for op in network.ops:
        for i, operand in enumerate(op.inputs):
            value = op.attribute(f"constant_input_{i}")
            if operand.tensor not in tensors and value != "":
                shape = network.by_name[operand.tensor].shape
                tensors[operand.tensor] = np.array(value).reshape(shape)
        tensors[op.outputs[0].tensor] = _run(op, network, tensors)
    return tensors


def _run(op: Op, network: Network, tensors: Mapping[str, Any]) -> Any:
    result = op.outputs[0]
    shape = network.by_name[result.tensor].shape
    if op.kind == "reshape" and op.inputs[0].index is None:
        return tensors[op.inputs[0].tensor].reshape(shape)
    touched, places = _places(op, result, shape)
    reads = [_read(op, operand, tensors[operand.tensor]) for operand in op.inputs]
    if op.kind in ("conv", "conv_transpose", "matmul"):
        made = np.zeros(shape)
        np.add.at(made, places, (reads[0] * reads[1])[touched])
        bias = made * 0
        if len(reads) > 2:
            bias[places] = reads[2][touched]
        return made + bias
    if op.kind == "average_pool":
        inside, _ = _places(op, op.inputs[0], tensors[op.inputs[0].tensor].shape)
        total, count = np.zeros(shape), np.zeros(shape)
        np.add.at(total, places, reads[0][touched])
        np.add.at(count, places, inside[touched])
        return total / count
    if op.kind in _OVER:
        function, neutral = _OVER[op.kind]
        inside, _ = _places(op, op.inputs[0], tensors[op.inputs[0].tensor].shape)
        made = np.full(shape, neutral)
        function.at(made, places, np.where(inside, reads[0], neutral)[touched])
        return made
    if op.kind == "pad":
        inside, _ = _places(op, op.inputs[0], tensors[op.inputs[0].tensor].shape)
        reads = [np.where(inside, reads[0], float(op.attribute("value", 0)))]  # type: ignore[arg-type]  # a number
    values = sum(reads) if op.kind in _MOVES else _ELEMENT[op.kind](*reads)
    made = np.full(shape, np.nan)
    made[places] = values[touched]
    return made


def _read(op: Op, operand: Operand, data: Any) -> Any:
    """What each point of the nest reads; 0 outside."""
    inside, places = _places(op, operand, data.shape)
    values = np.zeros(inside.shape)
    values[inside] = data[places]
    return values


def _places(op: Op, operand: Operand, shape: tuple[int, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Which points touch the tensor, and where those do."""
    assert operand.index is not None, (op.name, operand.name)
    sizes = [size for _, size in op.dims]
    loops = dict(zip((dim for dim, _ in op.dims), np.indices(sizes), strict=True))
    zero = np.zeros(sizes, dtype=int)
    positions = [_position(index, loops, zero) for index in operand.index]
    inside = np.ones(sizes, dtype=bool)
    for position, size in zip(positions, shape, strict=True):
        inside &= (position >= 0) & (position < size)
    return inside, tuple(position[inside] for position in positions)


def _position(index: Index, loops: Mapping[str, Any], zero: Any) -> Any:
    low = zero + index.offset + sum(factor * loops[dim] for dim, factor in index.terms)
    position = (low + index.reach) // index.divisor
    is_there = position * index.divisor >= low
    assert index.reach < index.divisor, "more than one element lies in a window"
    assert is_there.all() or not index.reach, "no element lies in a window"
    # Between two whole positions is outside.
    return np.where(is_there, position, -1)

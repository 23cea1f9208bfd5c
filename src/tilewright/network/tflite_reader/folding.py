"""Working small results out while reading: the arithmetic on shapes that files carry along."""

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from tilewright.network.graph import Index
from tilewright.network.nests import Indices, Shape
from tilewright.network.tflite_reader.call import (
    MAX_NUMBERS,
    Call,
    Numbers,
    Step,
    known_integers,
    known_numbers,
)

_INTEGER_BITS = {"int32": 32, "int64": 64}


def _same(number: int | float) -> int | float:
    return number


_ELEMENT: Mapping[str, Callable[..., int | float]] = {
    "add": lambda *numbers: sum(numbers),
    "sub": lambda left, right: left - right,
    "mul": lambda left, right: left * right,
    "div": lambda left, right: _divided(left, right),
    "floor_div": lambda left, right: left // right,
    "mod": lambda left, right: left % right,
    "min": min,
    "max": max,
    "neg": lambda value: -value,
    "abs": abs,
    "floor": lambda value: float(math.floor(value)),
    "ceil": lambda value: float(math.ceil(value)),
    "equal": lambda left, right: left == right,
    "not_equal": lambda left, right: left != right,
    "less": lambda left, right: left < right,
    "less_or_equal": lambda left, right: left <= right,
    "greater": lambda left, right: left > right,
    "greater_or_equal": lambda left, right: left >= right,
    "and": lambda left, right: left and right,
    "or": lambda left, right: left or right,
    "not": lambda value: not value,
    "cast": _same,
    "where": lambda condition, yes, no: yes if condition else no,
}
_OVER: Mapping[str, Callable[[int | float, int | float], int | float]] = {
    "reduce_sum": lambda left, right: left + right,
    "reduce_prod": lambda left, right: left * right,
    "reduce_max": max,
    "reduce_min": min,
}
_MOVES = frozenset({"slice", "concat", "transpose", "expand", "reverse"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A result that is known beforehand; `numbers` is None where only its shape is."""

    shape: Shape
    numbers: Numbers | None


def known_beforehand(call: Call) -> Known | None:
    """The result of an operator that leaves no op: SHAPE, RANK or RANGE."""
    if call.operator == "SHAPE":
        shape = call.tensor(0).shape
        return Known(shape=(len(shape),), numbers=shape)
    if call.operator == "RANK":
        return Known(shape=(), numbers=(len(call.tensor(0).shape),))
    if call.operator == "RANGE":
        return _range(call)
    return None


def folded(steps: Sequence[Step]) -> dict[str, Known] | None:
    """The results by name if all that the steps read is known; None otherwise."""
    known: dict[str, Known] = {}
    for step in steps:
        numbers = _step_numbers(step, known)
        if numbers is None:
            return None
        known[step.results[0].name] = Known(shape=step.nest.shape, numbers=numbers)
    return known


def reads_constants(steps: Sequence[Step]) -> bool:
    """Whether constants are all that the steps read, besides what they make themselves."""
    own = {result.name for step in steps for result in step.results}
    return all(value.is_constant or value.name in own for step in steps for value in step.inputs)


def n_points(steps: Sequence[Step]) -> int:
    """How many points `folded` may have to visit."""
    return sum(prod(size for _, size in step.nest.dims) for step in steps)


def _step_numbers(step: Step, known: Mapping[str, Known]) -> Numbers | None:
    if (
        len(step.results) != 1
        or "activation" in step.attributes
        or prod(step.nest.shape) > MAX_NUMBERS
    ):
        return None
    inputs: list[Numbers] = []
    for value in step.inputs:
        numbers = known[value.name].numbers if value.name in known else known_numbers(value)
        if numbers is None or value.dtype not in (*_INTEGER_BITS, "float32", "bool"):
            return None
        inputs.append(numbers)
    try:
        return _as_stored(_computed(step, inputs), step.results[0].dtype)
    except (ArithmeticError, ValueError):
        return None  # A division by zero, or a number too large for its type.


def _computed(step: Step, inputs: list[Numbers]) -> list[int | float] | None:
    """The result's elements; None for kinds that are not worked out."""
    if step.kind == "reshape":
        return list(inputs[0])
    if step.kind == "gather":
        return _gathered(step, inputs)
    if step.kind in _OVER:
        return _reduced(step, inputs[0])
    if None in step.nest.inputs or (step.kind not in _MOVES and step.kind not in _ELEMENT):
        return None
    rows = zip(*(_read(step, i, inputs[i]) for i in range(len(inputs))), strict=True)
    # Every point of a move touches exactly one of its inputs.
    touched = ([number for number in row if number is not None] for row in rows)
    function = _ELEMENT.get(step.kind, _same)
    return [function(*numbers) for numbers in touched]


def _reduced(step: Step, data: Numbers) -> list[int | float] | None:
    assert step.nest.output is not None
    totals: dict[int, int | float] = {}
    combine = _OVER[step.kind]
    places = _places(step, step.nest.output, step.nest.shape)
    for place, number in zip(places, _read(step, 0, data), strict=True):
        if place is None or number is None:
            return None
        totals[place] = combine(totals[place], number) if place in totals else number
    if len(totals) != prod(step.nest.shape):
        return None
    return [totals[place] for place in sorted(totals)]


def _gathered(step: Step, inputs: list[Numbers]) -> list[int | float] | None:
    data, positions = inputs
    if len(step.inputs[0].shape) != 1 or step.attributes.get("axis") != 0:
        return None
    if any(not 0 <= position < len(data) for position in positions):
        return None
    return [data[int(position)] for position in positions]


def _read(step: Step, position: int, numbers: Numbers) -> Iterator[int | float | None]:
    """What each point of the nest reads of an input, None outside it."""
    index = step.nest.inputs[position]
    assert index is not None
    for place in _places(step, index, step.inputs[position].shape):
        yield None if place is None else numbers[place]


def _places(step: Step, indices: Indices, shape: Shape) -> Iterator[int | None]:
    """Where each point lands, as a position among all elements; None outside the tensor."""
    names = [name for name, _ in step.nest.dims]
    for point in product(*(range(size) for _, size in step.nest.dims)):
        loops = dict(zip(names, point, strict=True))
        yield _place(indices, shape, loops)


def _place(indices: Indices, shape: Shape, loops: Mapping[str, int]) -> int | None:
    place = 0
    for index, size in zip(indices, shape, strict=True):
        position = _position(index, loops)
        if not 0 <= position < size:
            return None
        place = place * size + position
    return place


def _position(index: Index, loops: Mapping[str, int]) -> int:
    return sum(factor * loops[dim] for dim, factor in index.terms) + index.offset


def _as_stored(numbers: list[int | float] | None, dtype: str) -> Numbers | None:
    """The numbers as the type holds them; None where it cannot, or is not worked with."""
    if numbers is None:
        return None
    if dtype == "float32":
        return tuple(struct.unpack("<f", struct.pack("<f", number))[0] for number in numbers)
    if dtype == "bool":
        return tuple(bool(number) for number in numbers)
    if dtype not in _INTEGER_BITS:
        return None
    limit = 1 << _INTEGER_BITS[dtype] - 1
    whole = tuple(int(number) for number in numbers)
    return whole if all(-limit <= number < limit for number in whole) else None


def _divided(left: int | float, right: int | float) -> int | float:
    """TFLite's DIV: rounds whole numbers towards zero."""
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _range(call: Call) -> Known | None:
    ends = [known_integers(call.tensor(i)) for i in range(3)]
    if any(end is None or len(end) != 1 for end in ends):
        return None
    start, limit, delta = (end[0] for end in ends if end is not None)
    if delta == 0:
        raise ValueError("a range with steps of 0")
    count = max(0, -(-(limit - start) // delta))
    numbers = tuple(range(start, limit, delta)) if count <= MAX_NUMBERS else None
    return Known(shape=(count,), numbers=numbers)

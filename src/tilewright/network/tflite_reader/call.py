"""One operator with what is known of its inputs, and the steps of the network it turns into."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.network.graph import AttributeValue, Index
from tilewright.network.nests import Indices, Nest, Shape, normal_axis
from tilewright.network.tflite_reader.raw import OptionValue

Numbers = tuple[int | float, ...]

MAX_NUMBERS = 1024
"""Tensors with more elements are never looked into."""

_FORMATS = {
    "float32": "f",
    "float64": "d",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "bool": "?",
}
_ACTIVATIONS = {1: "relu", 2: "relu_n1_to_1", 3: "relu6", 4: "tanh", 5: "sign_bit"}


class HintedError(ValueError):
    """An operator makes no sense; `hint` says what would help."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def not_known(what: str) -> HintedError:
    """The error for something that decides a shape and is computed while the network runs."""
    return HintedError(
        f"{what} is not known before the network runs",
        "convert the network with fixed shapes, so that none is computed while it runs",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A tensor as an operator reads it."""

    name: str
    shape: Shape
    dtype: str
    bits: int
    is_constant: bool = False
    data: memoryview | None = None
    """The bytes of a constant of the file."""
    numbers: Numbers | None = None
    """The elements of a constant that the reader worked out itself."""
    is_guess: bool = False
    """Its maker could not be read and the file says too little of its shape."""

    @property
    def elements(self) -> int:
        """Number of elements; 1 for a scalar."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A tensor an operator makes: what the file says of it."""

    name: str
    dtype: str
    bits: int
    recorded: Shape | None = None
    """The shape in the file, -1 for axes that may change; None where it says nothing of use."""
    sample: Shape | None = None
    """The same shape with the sizes that the file gives changing axes for the time being."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One op of the network to be. `results[0]` has the nest's shape, and so have the others."""

    kind: str
    nest: Nest
    inputs: tuple[Value, ...]
    results: tuple[Result, ...]
    attributes: Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One operator of the file; inputs that are left out are None."""

    operator: str
    inputs: tuple[Value | None, ...]
    results: tuple[Result, ...]
    options: tuple[tuple[str, OptionValue], ...]

    def optional(self, position: int) -> Value | None:
        """The input at `position`, or None where the operator has none."""
        return self.inputs[position] if position < len(self.inputs) else None

    def tensor(self, position: int) -> Value:
        """The input at `position`; ValueError where the operator has none."""
        value = self.optional(position)
        if value is None:
            raise ValueError(f"input {position} is missing")
        return value

    def present(self) -> tuple[Value, ...]:
        """All inputs that are there, at least one."""
        values = tuple(value for value in self.inputs if value is not None)
        if not values:
            raise ValueError("it has no inputs")
        return values

    def option(self, name: str) -> int:
        """A whole-number (or yes-no) option."""
        value = dict(self.options)[name]
        assert isinstance(value, int), name
        return value

    def attributes(self, extra: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
        """Attributes of a step: `extra`, the operator's name and its fused activation."""
        attributes = {**extra, "tflite_op": self.operator}
        fused = dict(self.options).get("fused_activation_function", 0)
        if fused:
            activation = _ACTIVATIONS.get(int(fused)) if isinstance(fused, int) else None
            if activation is None:
                raise ValueError(f"no activation function has the number {fused}")
            attributes["activation"] = activation
        return attributes

    def step(
        self,
        kind: str,
        nest: Nest,
        inputs: Sequence[Value],
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> tuple[Step, ...]:
        """The one step, from `inputs` to all results, that most operators turn into."""
        return (
            Step(
                kind=kind,
                nest=nest,
                inputs=tuple(inputs),
                results=self.results,
                attributes=self.attributes(attributes or {}),
            ),
        )


def known_numbers(value: Value) -> Numbers | None:
    """The elements of a constant, if it is small; None where they are not known beforehand."""
    if value.numbers is not None or value.data is None:
        return value.numbers
    letter = _FORMATS.get(value.dtype)
    if letter is None or value.elements > MAX_NUMBERS:
        return None
    layout = struct.Struct(f"<{value.elements}{letter}")
    if layout.size != len(value.data):
        return None
    return layout.unpack(value.data)


def known_integers(value: Value) -> tuple[int, ...] | None:
    """Like `known_numbers`, for constants of whole numbers only."""
    numbers = known_numbers(value)
    if numbers is None or not all(isinstance(number, int) for number in numbers):
        return None
    return tuple(int(number) for number in numbers)


def integers(call: Call, position: int, what: str) -> tuple[int, ...]:
    """The whole numbers in an input that has to be known beforehand."""
    value = call.tensor(position)
    numbers = known_integers(value)
    if numbers is None:
        raise not_known(f"{what} (tensor {value.name!r})")
    return numbers


def integer(call: Call, position: int, what: str) -> int:
    """The one whole number in an input that has to be known beforehand."""
    numbers = integers(call, position, what)
    if len(numbers) != 1:
        raise ValueError(f"{what} is {len(numbers)} numbers, not one")
    return numbers[0]


def recorded_shape(call: Call) -> Shape:
    """The result's shape as the file records it, for operators whose parameters are computed."""
    shape = call.results[0].recorded
    if shape is None or -1 in shape:
        raise not_known("the shape of its result")
    return shape


def made(step: Step) -> Value:
    """The step's first result, as the next step reads it."""
    result = step.results[0]
    return Value(name=result.name, shape=step.nest.shape, dtype=result.dtype, bits=result.bits)


def axis_of(shape: Shape, axis: int) -> int:
    """The axis counted from the front; ValueError where there is none, as in a scalar."""
    if not shape:
        raise ValueError(f"axis {axis} of a scalar")
    return normal_axis(axis, len(shape))


def everywhere(value: Value) -> Indices:
    """The index of a single number that every point reads."""
    if value.elements != 1:
        raise ValueError(f"tensor {value.name!r} of shape {value.shape} is not one number")
    return tuple(Index(()) for _ in value.shape)

"""One node with what is known of its inputs, and the ops it becomes.

A rule turns a `Call` into `Step`s and touches nothing else; it raises ValueError, in words fit to
follow the node's name, when the node cannot be understood.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from tilewright.network.graph import AttributeValue
from tilewright.network.nests import Indices, Nest, Shape
from tilewright.network.onnx_reader.elements import ElementType
from tilewright.network.onnx_reader.model import Attribute, Graph, Node, StoredTensor, Unreadable
from tilewright.network.onnx_reader.stored import MAX_ELEMENTS, Array, decode

Attributes = Mapping[str, AttributeValue]


class NodeError(ValueError):
    """A node cannot be read; the message says why and the hint what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Value:
    """What is known of a tensor while the file is read."""

    name: str
    shape: Shape
    element: ElementType
    is_constant: bool = False
    data: Array | StoredTensor | None = None
    unknown_because: str = ""
    """Why a constant has no data."""
    stored_bits: int = 0
    """Bits of an element where a constant lies, if fewer than its type has: 8 for weights that are
    dequantised when they are used."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """One op to be added; an input of None leaves its letter out.

    A step whose inputs are all constants is no op: its results are constants.
    """

    kind: str
    nest: Nest
    inputs: tuple[Value | None, ...]
    outputs: tuple[tuple[str, ElementType], ...]
    attributes: Attributes
    result: str = ""
    """Which of the node's results this is, where it is not the main one; part of the op's name."""
    is_op: bool = False
    """Whether it is an op even where all that it reads is constant."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call:
    """A node, its inputs in order (None where left out), and its operator set's version."""

    node: Node
    inputs: tuple[Value | None, ...]
    opset: int

    def has(self, position: int) -> bool:
        """Whether the input is given."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def get(self, position: int) -> Value | None:
        """The input, or None where it is left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    def value(self, position: int) -> Value:
        """The input; ValueError where it is left out."""
        value = self.get(position)
        if value is None:
            raise ValueError(f"input {position} is missing")
        return value

    def shape(self, position: int) -> Shape:
        """The shape of the input."""
        return self.value(position).shape

    def all_values(self, start: int = 0) -> tuple[Value, ...]:
        """The inputs from `start` on, of which there must be one at least and none left out."""
        return tuple(self.value(i) for i in range(start, max(start + 1, len(self.inputs))))

    def array(self, position: int) -> Array:
        """The values of the input; ValueError where they are not known while the file is read."""
        return known_array(self.value(position))

    def integers_at(self, position: int) -> tuple[int, ...]:
        """The values of the input as whole numbers."""
        array = self.array(position)
        if array.dtype.kind not in "iub":
            raise ValueError(f"input {position} must hold whole numbers, not {array.dtype}")
        return tuple(int(n) for n in array.ravel())

    def integer_at(self, position: int) -> int:
        """The only value of the input, a whole number."""
        values = self.integers_at(position)
        if len(values) != 1:
            raise ValueError(f"input {position} must hold one number, not {len(values)}")
        return values[0]

    def numbers_at(self, position: int) -> tuple[float, ...]:
        """The values of the input as finite floating-point numbers."""
        array = self.array(position)
        numbers = tuple(float(n) for n in array.ravel())
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"input {position} must hold finite numbers")
        return numbers

    def integer(self, key: str, default: int | None = None) -> int:
        """An attribute that is a whole number; without a default it is required."""
        value = self._attribute(key, default)
        if not isinstance(value, int):
            raise ValueError(f"attribute {key!r} is {_shown(value)}; a whole number is needed")
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        """An attribute that is 0 or 1."""
        return self.integer(key, int(default)) != 0

    def number(self, key: str, default: float) -> float:
        """An attribute that is a number."""
        value = self._attribute(key, default)
        if not isinstance(value, int | float):
            raise ValueError(f"attribute {key!r} is {_shown(value)}; a number is needed")
        return float(value)

    def text(self, key: str, default: str | None = None) -> str:
        """An attribute that is a text; without a default it is required."""
        value = self._attribute(key, default)
        if not isinstance(value, str):
            raise ValueError(f"attribute {key!r} is {_shown(value)}; a text is needed")
        return value

    def choice(self, key: str, options: Sequence[str]) -> str:
        """An attribute that is one of the texts, the first of which is the default."""
        value = self.text(key, options[0])
        if value not in options:
            raise ValueError(f"attribute {key!r} is {value!r}, not one of {', '.join(options)}")
        return value

    def integers(self, key: str) -> tuple[int, ...] | None:
        """An attribute that is a list of whole numbers; None where it is not given."""
        value = self.node.attributes.get(key)
        if value is None:
            return None
        whole = [n for n in value if isinstance(n, int)] if isinstance(value, tuple) else []
        if not isinstance(value, tuple) or len(whole) != len(value):
            raise ValueError(f"attribute {key!r} is {_shown(value)}; whole numbers are needed")
        return tuple(whole)

    def numbers(self, key: str) -> tuple[float, ...]:
        """An attribute that is a list of finite numbers."""
        value = self._attribute(key, None)
        found = [n for n in value if not isinstance(n, str)] if isinstance(value, tuple) else []
        if not isinstance(value, tuple) or len(found) != len(value):
            raise ValueError(f"attribute {key!r} is {_shown(value)}; numbers are needed")
        if not all(map(math.isfinite, found)):
            raise ValueError(f"attribute {key!r} must hold finite numbers")
        return tuple(map(float, found))

    def output(self, position: int) -> str:
        """The name of a result; empty where it is not asked for."""
        return self.node.outputs[position] if position < len(self.node.outputs) else ""

    def _attribute(self, key: str, default: Attribute | None) -> Attribute:
        value = self.node.attributes.get(key, default)
        if value is None:
            raise ValueError(f"attribute {key!r} is missing")
        return value


Builder = Callable[[Call], Sequence[Step]]


@dataclass(frozen=True, slots=True)
class Rule:
    """How an operator is read: the kind it becomes, and the function that makes its steps."""

    kind: str
    build: Builder = field(repr=False)


def known_array(value: Value) -> Array:
    """The values of a small constant; ValueError that says why they are not known."""
    if isinstance(value.data, StoredTensor):
        try:
            return decode(value.data)
        except ValueError as error:
            raise ValueError(f"the values of {value.name!r} are needed, but {error}") from error
    if value.data is not None:
        return value.data
    if value.is_constant:
        why = value.unknown_because or _TOO_LARGE
        raise ValueError(f"the values of {value.name!r} are needed, but {why}")
    raise NodeError(
        f"the values of {value.name!r} are needed, but they are computed at run time",
        "shapes and axes must not depend on data: make this input a constant, or cut the model",
    )


def known_number(value: Value) -> float | None:
    """The only value of a constant; None where it is not known."""
    if not value.is_constant:
        return None
    try:
        numbers = known_array(value).ravel()
    except ValueError:
        return None
    return float(numbers[0]) if len(numbers) == 1 else None


def main_step(
    call: Call,
    kind: str,
    nest: Nest,
    inputs: Sequence[Value | None],
    *,
    element: ElementType | None = None,
    attributes: Attributes | None = None,
) -> Step:
    """The step that makes the node's first result, of the first input's type if none is given.

    Inputs that are left out at the end, and their places in the nest, are dropped.
    """
    name = call.output(0)
    if not name:
        raise ValueError("its first result has no name")
    first = inputs[0]
    if first is None:
        raise ValueError("input 0 is missing")
    given = max(i for i, value in enumerate(inputs, 1) if value is not None)
    return Step(
        kind=kind,
        nest=replace(nest, inputs=nest.inputs[:given]),
        inputs=tuple(inputs[:given]),
        outputs=((name, element or first.element),),
        attributes={**(attributes or {}), "onnx_op": call.node.op_type},
    )


def with_operands(
    nest: Nest, values: Sequence[Value | None], place: Callable[[Shape], Indices | None]
) -> Nest:
    """The nest with more inputs behind its own, each where `place` puts a tensor of its shape."""
    places = (None if value is None else place(value.shape) for value in values)
    return replace(nest, inputs=(*nest.inputs, *places))


def further_result(main: Step, name: str, element: ElementType) -> Step:
    """The main step with one more result of the same shape; unchanged where it has no name."""
    if not name:
        return main
    return replace(main, outputs=(*main.outputs, (name, element)))


def side_step(
    call: Call, main: Step, position: int, nest: Nest, element: ElementType
) -> list[Step]:
    """A result of another shape as a step of its own, of the same kind and from the first input.

    Its attribute `result` is the number of the node's result; no step where it has no name.
    """
    name = call.output(position)
    if not name:
        return []
    return [
        replace(
            main,
            nest=nest,
            inputs=main.inputs[:1],
            outputs=((name, element),),
            attributes={**main.attributes, "result": position},
            result=str(position),
        )
    ]


_TOO_LARGE = f"only those of tensors up to {MAX_ELEMENTS} elements are kept"


def _shown(value: Attribute) -> str:
    match value:
        case Unreadable():
            return value.what
        case StoredTensor():
            return f"a tensor of shape {value.shape}"
        case Graph():
            return "a graph"
        case tuple():
            return f"a list of {len(value)}"
        case int() | float() | str():
            return repr(value)
        case _:
            assert_never(value)

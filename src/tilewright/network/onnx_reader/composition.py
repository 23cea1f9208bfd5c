"""Operators that become several ops, each of which reads what earlier ones made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType

from tilewright.network.graph import AttributeValue
from tilewright.network.moves import concat, reshape, slice_axes
from tilewright.network.nests import Nest, Shape, elementwise
from tilewright.network.onnx_reader.call import Call, Step, Value, known_array
from tilewright.network.onnx_reader.elements import ElementType
from tilewright.network.onnx_reader.stored import Array

_NOTHING: Mapping[str, AttributeValue] = MappingProxyType({})

_MAX_MADE = 2**23
"""Values of a constant that is made, such as the mask of 2,048 causal rows."""


class Composition:
    """Collects the steps of one node; the results between them are called after the node."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.element = call.value(0).element
        self.steps: list[Step] = []

    def add(
        self,
        kind: str,
        label: str,
        nest: Nest,
        inputs: Sequence[Value],
        attributes: Mapping[str, AttributeValue] = _NOTHING,
        *,
        name: str = "",
    ) -> Value:
        """One more op; `label` tells it from the node's others, its result may have a name."""
        name = name or f"{self.call.node.name}.{label}"
        self.steps.append(
            Step(
                kind=kind,
                nest=nest,
                inputs=tuple(inputs),
                outputs=((name, self.element),),
                attributes=attributes,
                result=label,
                is_op=True,
            )
        )
        return Value(name=name, shape=nest.shape, element=self.element)

    def of_type(self, value: Value, element: ElementType) -> Value:
        """The result of the op that was added last, of another type than the node's."""
        self.steps[-1] = replace(self.steps[-1], outputs=((value.name, element),))
        return replace(value, element=element)

    def constant(
        self, label: str, shape: Shape, source: Value, work_out: Callable[[Array], Array]
    ) -> Value:
        """A constant that is worked out from another one, as far as its values are known."""
        made = self.worked_out(label, shape, lambda: work_out(known_array(source)))
        return replace(made, element=source.element)

    def worked_out(self, label: str, shape: Shape, work_out: Callable[[], Array]) -> Value:
        """A constant of the node's type; of one that is large only the shape is known."""
        data, why = None, ""
        if prod(shape) <= _MAX_MADE:
            try:
                data = work_out()
            except ValueError as error:
                why = str(error)
        return Value(
            name=f"{self.call.node.name}.{label}",
            shape=shape,
            element=self.element,
            is_constant=True,
            data=data,
            unknown_because=why,
        )

    def each(self, kind: str, label: str, *values: Value) -> Value:
        """An op element by element."""
        nest = elementwise(*(value.shape for value in values))
        return self.add(kind, label, nest, values)

    def part(self, label: str, value: Value, ends: Mapping[int, tuple[int, int]]) -> Value:
        """The elements from one end to before the other along each of some axes."""
        whole = dict(enumerate((0, size) for size in value.shape))
        if {**whole, **ends} == whole:
            return value
        begins = tuple(ends.get(axis, around)[0] for axis, around in whole.items())
        stops = tuple(ends.get(axis, around)[1] for axis, around in whole.items())
        sizes = tuple(stop - begin for begin, stop in zip(begins, stops, strict=True))
        steps = (1,) * len(sizes)
        attributes = {"starts": begins, "sizes": sizes, "steps": steps}
        nest = slice_axes(value.shape, begins, sizes, steps)
        return self.add("slice", label, nest, [value], attributes)

    def shaped(self, label: str, value: Value, shape: Shape) -> Value:
        """The same elements under another shape."""
        if value.shape == shape:
            return value
        return self.add("reshape", label, reshape(value.shape, shape), [value], {"shape": shape})

    def joined(self, label: str, values: Sequence[Value], axis: int) -> Value:
        """Tensors one behind the other along an axis; a single one stays as it is."""
        if len(values) == 1:
            return values[0]
        nest = concat([value.shape for value in values], axis)
        return self.add("concat", label, nest, values, {"axis": axis})

    def give(self, position: int, value: Value, shape: Shape) -> None:
        """Makes a value, under the shape, the node's result at this position, if it has a name."""
        name = self.call.output(position)
        if name:
            nest, label = reshape(value.shape, shape), str(position)
            self.add("reshape", label, nest, [value], {"shape": shape}, name=name)

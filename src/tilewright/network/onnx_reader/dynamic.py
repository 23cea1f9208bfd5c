"""Dynamic dims: the graph's inputs with the sizes that the user gives them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.network.graph import MAX_SIZE
from tilewright.network.nests import Shape
from tilewright.network.onnx_reader.call import Value
from tilewright.network.onnx_reader.model import Declared
from tilewright.network.onnx_reader.shapes import possible_shape

Sizes = Mapping[str, int]
"""Sizes of dynamic dims, by the model's name for them or by `<input>.<axis>`."""

Fault = tuple[str, str]
"""What is wrong, and a hint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInputs:
    """The inputs whose shapes are known, those whose are not, and why."""

    values: tuple[Value, ...]
    lost: tuple[str, ...]
    faults: tuple[Fault, ...]


def bind_inputs(inputs: Sequence[Declared], sizes: Sizes) -> BoundInputs:
    """The graph's inputs as tensors; one fault names all dynamic dims that got no size."""
    values: list[Value] = []
    faults = _size_faults(inputs, sizes)
    lost: list[str] = []
    for declared in inputs:
        try:
            shape = declared_shape(declared, sizes)
        except ValueError as error:
            faults.append((f"input {declared.name!r}: {error}", ""))
            shape = None
        else:
            if declared.element is None:
                faults.append((f"input {declared.name!r} is no tensor of numbers", ""))
            elif declared.dims is None:
                faults.append(
                    (
                        f"input {declared.name!r} has no shape",
                        "store its shape in the model; dims may be named and given with --dim",
                    )
                )
        if shape is None or declared.element is None:
            lost.append(declared.name)
        else:
            values.append(Value(name=declared.name, shape=shape, element=declared.element))
    return BoundInputs(values=tuple(values), lost=tuple(lost), faults=tuple(faults))


def declared_shape(declared: Declared, sizes: Sizes) -> Shape | None:
    """The shape under these sizes; None where a size is missing."""
    if declared.dims is None:
        return None
    shape = [
        dim if isinstance(dim, int) else sizes.get(dim or f"{declared.name}.{axis}")
        for axis, dim in enumerate(declared.dims)
    ]
    known = tuple(size for size in shape if size is not None)
    return possible_shape(known) if len(known) == len(shape) else None


def _dynamic_dims(inputs: Sequence[Declared]) -> dict[str, list[tuple[str, int]]]:
    """Where each dynamic dim occurs: inputs and axes, by the key that gives it a size."""
    places: dict[str, list[tuple[str, int]]] = {}
    for declared in inputs:
        for axis, dim in enumerate(declared.dims or ()):
            if not isinstance(dim, int):
                key = dim or f"{declared.name}.{axis}"
                places.setdefault(key, []).append((declared.name, axis))
    return places


def _size_faults(inputs: Sequence[Declared], sizes: Sizes) -> list[Fault]:
    places = _dynamic_dims(inputs)
    faults: list[Fault] = []
    listed = ", ".join(places) or "none"
    for name, size in sizes.items():
        if name not in places:
            faults.append(
                (f"the model has no dynamic dim {name!r}", f"its dynamic dims are: {listed}")
            )
        elif not 1 <= size <= MAX_SIZE:
            faults.append((f"dim {name!r} cannot have size {size}", "give it a size of 1 or more"))
    missing = {name: found for name, found in places.items() if name not in sizes}
    if missing:
        where = "; ".join(
            f"{name} (input {found[0][0]!r}, axis {found[0][1]})" for name, found in missing.items()
        )
        hint = " ".join(
            f"--dim {name}={1 if found[0][1] == 0 else 128}" for name, found in missing.items()
        )
        faults.append((f"dynamic dims need a size: {where}", hint))
    return faults

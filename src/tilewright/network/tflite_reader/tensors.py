"""The tensors of a file: names that do not repeat, shapes, and the bytes of constants."""

from collections.abc import Mapping, Sequence

from tilewright.network.graph import MAX_SIZE
from tilewright.network.nests import Shape
from tilewright.network.tflite_reader.call import HintedError, Result, Value
from tilewright.network.tflite_reader.raw import ELEMENT_TYPES, MAX_RANK, ElementType, RawTensor
from tilewright.units import packed_bytes

_MAX_NAME_LENGTH = 4096


def unique_names(tensors: Sequence[RawTensor]) -> tuple[str, ...]:
    """A name for each tensor: its own, with a number from its second use on.

    One without a name is called by its position, `tensor_12`; a name that goes on for pages is
    cut short.
    """
    taken: set[str] = set()
    uses: dict[str, int] = {}
    names = []
    for position, tensor in enumerate(tensors):
        wanted = tensor.name[:_MAX_NAME_LENGTH] or f"tensor_{position}"
        name = wanted
        while name in taken:
            uses[wanted] = uses.get(wanted, 1) + 1
            name = f"{wanted}:{uses[wanted]}"
        taken.add(name)
        names.append(name)
    return tuple(names)


def element_type(tensor: RawTensor, name: str) -> ElementType:
    """The tensor's element type; ValueError for text and for what has no width."""
    element = ELEMENT_TYPES.get(tensor.type_number)
    if element is None:
        what = "text" if tensor.type_number == 5 else f"elements of type {tensor.type_number}"
        raise HintedError(
            f"tensor {name!r} holds {what}, which no accelerator computes with",
            "leave the part of the network that works on it to the host",
        )
    return element


def constant(tensor: RawTensor, name: str) -> Value:
    """A tensor whose bytes stand in the file; ValueError where they do not fit its shape."""
    element = element_type(tensor, name)
    if any(size < 0 for size in tensor.shape):
        raise ValueError(f"tensor {name!r} has shape {tensor.shape}")
    value = Value(
        name=name,
        shape=tensor.shape,
        dtype=element.name,
        bits=element.bits,
        is_constant=True,
        data=None if tensor.is_sparse else tensor.data,
    )
    needed = packed_bytes(value.elements, element.bits)
    if not tensor.is_sparse and needed != len(tensor.data):
        raise ValueError(
            f"tensor {name!r}, {element.name} of shape {tensor.shape}, needs {needed:,} bytes, "
            f"but the file has {len(tensor.data):,}"
        )
    return value


def result(tensor: RawTensor, name: str, *, is_recorded: bool) -> Result:
    """A tensor that an operator makes; with `is_recorded`, its shape in the file is of use."""
    element = element_type(tensor, name)
    known = is_recorded and bool(tensor.shape)
    return Result(
        name=name,
        dtype=element.name,
        bits=element.bits,
        recorded=_recorded(tensor) if known else None,
        sample=tensor.shape if known else None,
    )


def stand_in(tensor: RawTensor, name: str) -> Value:
    """Something to go on with after a problem, as close to the file as can be."""
    element = ELEMENT_TYPES.get(tensor.type_number, ELEMENT_TYPES[0])
    shape = tuple(max(size, 1) for size in tensor.shape)
    is_guess = not shape or -1 in _recorded(tensor)
    return Value(name=name, shape=shape, dtype=element.name, bits=element.bits, is_guess=is_guess)


def sized(tensor: RawTensor, name: str, dims: Mapping[str, int]) -> Value:
    """An input of the network, its axes as `dims` or else the file has them."""
    element = element_type(tensor, name)
    shape = tuple(dims.get(f"{name}.{axis}", size) for axis, size in enumerate(tensor.shape))
    for axis, size in enumerate(shape):
        if not 0 < size <= MAX_SIZE:
            raise HintedError(
                f"input {name!r}: axis {axis} has size {size}",
                f"give it a size as dim '{name}.{axis}'",
            )
    return Value(name=name, shape=shape, dtype=element.name, bits=element.bits)


def require_possible(name: str, shape: Shape) -> None:
    """Raise ValueError for the shape of a result that is empty or beyond all measure."""
    if 0 in shape:
        raise ValueError(f"makes {name!r} of shape {shape}, in which there is nothing")
    if len(shape) > MAX_RANK:
        raise ValueError(f"makes {name!r} with {len(shape)} axes, more than {MAX_RANK}")
    if any(size > MAX_SIZE for size in shape):
        raise ValueError(f"makes {name!r} with an axis of more than {MAX_SIZE:,} elements")


def agrees(computed: Shape, recorded: Shape | None) -> bool:
    """Whether a shape is what the file records, as far as it records one."""
    if recorded is None:
        return True
    if len(computed) != len(recorded):
        return False
    return all(size in (-1, own) for own, size in zip(computed, recorded, strict=True))


def _recorded(tensor: RawTensor) -> Shape:
    changes = tensor.signature if len(tensor.signature) == len(tensor.shape) else tensor.shape
    return tuple(
        -1 if size < 0 or change < 0 else size
        for size, change in zip(tensor.shape, changes, strict=True)
    )

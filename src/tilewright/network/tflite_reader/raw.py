"""A TFLite file as plain values: what stands in it, decoded but not yet understood."""

from dataclasses import dataclass

MAX_RANK = 16
"""TFLite's own operators stop at 8 axes or before."""

OptionValue = int | float | bool | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementType:
    """What one element of a tensor is: its name and its width."""

    name: str
    bits: int


ELEMENT_TYPES = {
    0: ElementType(name="float32", bits=32),
    1: ElementType(name="float16", bits=16),
    2: ElementType(name="int32", bits=32),
    3: ElementType(name="uint8", bits=8),
    4: ElementType(name="int64", bits=64),
    6: ElementType(name="bool", bits=8),
    7: ElementType(name="int16", bits=16),
    8: ElementType(name="complex64", bits=64),
    9: ElementType(name="int8", bits=8),
    10: ElementType(name="float64", bits=64),
    11: ElementType(name="complex128", bits=128),
    12: ElementType(name="uint64", bits=64),
    15: ElementType(name="uint32", bits=32),
    16: ElementType(name="uint16", bits=16),
    17: ElementType(name="int4", bits=4),
    18: ElementType(name="bfloat16", bits=16),
    19: ElementType(name="int2", bits=2),
    20: ElementType(name="uint4", bits=4),
}
"""By the schema's number; strings, resources and variants have no width and are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTensor:
    """A tensor as recorded. `signature` has -1 for axes that may change; empty: none given."""

    name: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    type_number: int
    data: memoryview
    """The bytes of a constant, a view into the file; empty for every other tensor."""
    is_variable: bool
    is_sparse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RawOperator:
    """An operator as recorded; an input of -1 is left out."""

    name: str
    """The schema's name (`CONV_2D`), or `CUSTOM name`."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: tuple[tuple[str, OptionValue], ...]
    fault: str = ""
    """What is wrong with its options; empty if nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawModel:
    """The main subgraph of a file; `n_subgraphs` counts all of them."""

    tensors: tuple[RawTensor, ...]
    operators: tuple[RawOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    n_subgraphs: int

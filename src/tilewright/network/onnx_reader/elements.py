"""Element types as ONNX numbers them, with their names and widths."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class ElementType:
    """What one element of a tensor is: its name in the network and its width."""

    name: str
    bits: int


FLOAT32: Final = ElementType("float32", 32)
UINT8: Final = ElementType("uint8", 8)
INT32: Final = ElementType("int32", 32)
INT64: Final = ElementType("int64", 64)
BOOL: Final = ElementType("bool", 8)

_NUMBERED = {
    1: FLOAT32,
    2: UINT8,
    3: ElementType("int8", 8),
    4: ElementType("uint16", 16),
    5: ElementType("int16", 16),
    6: INT32,
    7: INT64,
    9: BOOL,
    10: ElementType("float16", 16),
    11: ElementType("float64", 64),
    12: ElementType("uint32", 32),
    13: ElementType("uint64", 64),
    14: ElementType("complex64", 64),
    15: ElementType("complex128", 128),
    16: ElementType("bfloat16", 16),
    17: ElementType("float8e4m3fn", 8),
    18: ElementType("float8e4m3fnuz", 8),
    19: ElementType("float8e5m2", 8),
    20: ElementType("float8e5m2fnuz", 8),
    21: ElementType("uint4", 4),
    22: ElementType("int4", 4),
    23: ElementType("float4e2m1", 4),
    24: ElementType("float8e8m0", 8),
    25: ElementType("uint2", 2),
    26: ElementType("int2", 2),
    27: ElementType("float6e2m3", 6),
    28: ElementType("float6e3m2", 6),
}
_STRING = 8

_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
_REAL = ("float16", "float32", "float64")

NUMPY_NAMES: Final = frozenset((*_WHOLE, *_REAL))
"""Element types whose values are read and worked with; of all others only the width counts."""

ELEMENT_TYPES: Final = MappingProxyType(_NUMBERED)
"""Element types by ONNX's number for them (`TensorProto.DataType`)."""


def element_type(number: int) -> ElementType:
    """The element type ONNX gives this number; ValueError where there is none we can size."""
    if number == _STRING:
        raise ValueError("tensors of strings have no place on an accelerator")
    if number not in ELEMENT_TYPES:
        raise ValueError(f"element type {number} is not one of ONNX's")
    return ELEMENT_TYPES[number]

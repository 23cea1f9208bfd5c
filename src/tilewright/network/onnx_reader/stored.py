"""Values of tensors that lie in the file or beside it; only small ones are ever decoded."""

import os
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tilewright.network.onnx_reader.elements import NUMPY_NAMES, ElementType
from tilewright.network.onnx_reader.model import StoredTensor

Array = npt.NDArray[Any]

MAX_ELEMENTS: Final = 2**16
"""Values of larger tensors are never looked at: shapes do not hang on them."""

_EXTERNAL = 1  # TensorProto.EXTERNAL
_FIELDS: Final = {
    "float32": "float_data",
    "float64": "double_data",
    "int64": "int64_data",
    "uint64": "uint64_data",
    "uint32": "uint64_data",
}


def decode(tensor: StoredTensor) -> Array:
    """The values; ValueError, fit to follow "because", where they are not to be had."""
    name = tensor.element.name
    if name not in NUMPY_NAMES:
        raise ValueError(f"values of type {name} are not read")
    elements = prod(tensor.shape)
    if elements > MAX_ELEMENTS:
        raise ValueError(f"it has {elements} elements, more than the {MAX_ELEMENTS} that are read")
    dtype = np.dtype(name)
    if tensor.proto.data_location == _EXTERNAL:
        data = _external_bytes(tensor, elements * dtype.itemsize)
    else:
        data = tensor.proto.raw_data
    if not data and elements:
        return _typed_values(tensor, elements, dtype)
    if len(data) != elements * dtype.itemsize:
        raise ValueError(f"{len(data)} bytes are stored for shape {tensor.shape} of {name}")
    values: Array = np.frombuffer(data, dtype=dtype.newbyteorder("<")).astype(dtype, copy=False)
    return values.reshape(tensor.shape)


def encoded(name: str, values: Array, element: ElementType, folder: Path) -> StoredTensor:
    """Values that are worked out, as if they were stored in the file."""
    # Importing onnx takes 0.1 s, which whoever only wants a type does not need.
    from onnx import numpy_helper

    proto = numpy_helper.from_array(values, name)
    return StoredTensor(name=name, shape=values.shape, element=element, proto=proto, folder=folder)


def _typed_values(tensor: StoredTensor, elements: int, dtype: np.dtype[Any]) -> Array:
    """Values of a tensor that has no raw bytes but a repeated field of its type."""
    field = getattr(tensor.proto, _FIELDS.get(tensor.element.name, "int32_data"))
    if len(field) != elements:
        raise ValueError(f"{len(field)} values are stored for shape {tensor.shape}")
    if tensor.element.name == "float16":
        # ONNX stores the bits of a float16 as an integer.
        values: Array = np.array(field, dtype=np.int64).astype(np.uint16).view(np.float16)
    else:
        values = np.array(field).astype(dtype)
    return values.reshape(tensor.shape)


def _external_bytes(tensor: StoredTensor, size_bytes: int) -> bytes:
    entries = {entry.key: entry.value for entry in tensor.proto.external_data}
    path = _external_path(tensor.folder, str(entries.get("location", "")))
    offset_bytes = int(entries.get("offset") or 0)
    if not 0 <= offset_bytes < 2**62:
        raise ValueError(f"offset {offset_bytes} of its external data is not possible")
    if not os.path.isfile(path):
        raise ValueError(f"its external data, {path.name!r}, is not beside the model")
    try:
        with path.open("rb") as file:
            file.seek(offset_bytes)
            data = file.read(size_bytes)
    except OSError as error:
        raise ValueError(f"its external data, {path.name!r}: {error.strerror}") from error
    if len(data) < size_bytes:
        end_bytes = offset_bytes + size_bytes
        raise ValueError(f"its external data, {path.name!r}, ends before byte {end_bytes}")
    return data


def _external_path(folder: Path, location: str) -> Path:
    """The file beside the model; a location that leads out of the model's folder is refused."""
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    leads_out = posix.is_absolute() or windows.anchor or ".." in (*posix.parts, *windows.parts)
    if not location or "\0" in location or leads_out:
        raise ValueError(f"its external data lie outside the model's folder: {location!r}")
    return folder / posix

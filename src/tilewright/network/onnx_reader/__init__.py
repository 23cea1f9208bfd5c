"""The reader for ONNX files."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tilewright.network.graph import Network
from tilewright.network.onnx_reader.catalogue import supported_ops

__all__ = ["read_onnx", "supported_ops"]


def read_onnx(path: Path, *, dims: Mapping[str, int] = MappingProxyType({})) -> Network:
    """The network in an ONNX file; weights are not read.

    `dims` gives dynamic dims their sizes, by the name the model has for them, or, for one without a
    name, by `<input>.<axis>`. Raises InputError with every problem of the file at once.
    """
    # Importing onnx takes 0.1 s, which listing the operators does not need.
    from tilewright.network.onnx_reader.walk import read_network

    return read_network(path, dims)

"""Values of constants in a TFLite file, and the quantisation of its tensors."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.errors import InputError, Problem
from tilewright.network.graph import Network, Op
from tilewright.network.tflite_reader.decode import decode
from tilewright.network.tflite_reader.raw import ELEMENT_TYPES
from tilewright.network.tflite_reader.tensors import unique_names
from tilewright.replay.kernels.quantise import dtype_of
from tilewright.replay.kernels.tile import Array, Quantisation

_QUANTISED = ("int8", "uint8", "int16")


def stored_values(network: Network, path: Path) -> tuple[dict[str, Array], dict[str, Quantisation]]:
    """The network's constants by name, and the quantisation of every tensor that has one.

    Raises:
        InputError: a constant is not in the file, or not of that shape.
    """
    content = path.read_bytes()
    model = decode(content)
    names = unique_names(model.tensors)
    stored = dict(zip(names, model.tensors, strict=True))
    arrays: dict[str, Array] = dict(_worked_out(network))
    problems = []
    for tensor in network.tensors:
        if tensor.role != "constant" or tensor.name in arrays:
            continue
        raw = stored.get(tensor.name)
        # The file's own type: a network may have been made narrower.
        known = ELEMENT_TYPES.get(raw.type_number) if raw is not None else None
        dtype = dtype_of(known.name if known is not None else tensor.dtype)
        if raw is None or len(raw.data) != tensor.elements * dtype.itemsize:
            message = f"constant {tensor.name!r} of shape {tensor.shape} is not in the file"
            hint = "was the plan made from another model?"
            problems.append(Problem(file=str(path), message=message, hint=hint))
            continue
        arrays[tensor.name] = np.frombuffer(raw.data, dtype=dtype).reshape(tensor.shape)
    if problems:
        raise InputError(*problems)
    return arrays, _quantisations(network, content, names)


def stored_quantisations(network: Network, path: Path) -> dict[str, Quantisation]:
    """The quantisation of every tensor of a network that its file gives one."""
    content = path.read_bytes()
    return _quantisations(network, content, unique_names(decode(content).tensors))


def _worked_out(network: Network) -> Mapping[str, Array]:
    """Constants that the reader worked out itself: attributes of the op that reads them."""
    found = {}
    for op in network.ops:
        for position, operand in enumerate(op.inputs):
            numbers = _numbers(op, position)
            tensor = network.by_name[operand.tensor]
            if numbers is not None and tensor.role == "constant":
                array = np.array(numbers).astype(dtype_of(tensor.dtype))
                found[operand.tensor] = array.reshape(tensor.shape)
    return found


def _numbers(op: Op, position: int) -> Any:
    return dict(op.attributes).get(f"constant_input_{position}")


def _quantisations(
    network: Network, content: bytes, names: tuple[str, ...]
) -> dict[str, Quantisation]:
    graph = import_module("tflite.Model").Model.GetRootAs(content, 0).Subgraphs(0)
    found = {}
    for position, name in enumerate(names):
        tensor = network.by_name.get(name)
        table = graph.Tensors(position).Quantization()
        if tensor is None or table is None or not table.ScaleLength():
            continue
        if tensor.dtype in _QUANTISED:
            axis = table.QuantizedDimension()
            zero = table.ZeroPointAsNumpy() if table.ZeroPointLength() else np.zeros(1, np.int64)
            found[name] = Quantisation(
                np.array(table.ScaleAsNumpy(), dtype=np.float32),
                np.array(zero, dtype=np.int64),
                axis if axis < len(tensor.shape) else 0,
            )
    found |= _inherited(network, found)
    return found


def _inherited(network: Network, known: Mapping[str, Quantisation]) -> dict[str, Quantisation]:
    """Results of steps that the reader put in (the reshape before a matrix product) have their
    input's quantisation.
    """
    found: dict[str, Quantisation] = {}
    for op in network.ops:
        source, result = op.inputs[0].tensor if op.inputs else "", op.outputs[0].tensor
        if op.kind == "reshape" and result not in known and source in {**known, **found}:
            found[result] = {**known, **found}[source]
    return found

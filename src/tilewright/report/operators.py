"""What has to be known of an op to run its tasks: its attributes, its operands, what they mean."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.network.graph import Index, Network, Op, Operand
from tilewright.replay.kernels.tile import Array, Quantisation
from tilewright.replay.values_tflite import stored_quantisations


def operator_json(op: Op) -> dict[str, Any]:
    """An op's attributes and operands, for `plan.json`."""
    return {
        "attributes": dict(op.attributes),
        "accumulator_bits": op.accumulator_bits,
        "inputs": [_operand(operand) for operand in op.inputs],
        "outputs": [_operand(operand) for operand in op.outputs],
    }


def _operand(operand: Operand) -> dict[str, Any]:
    index = operand.index
    return {
        "operand": operand.name,
        "tensor": operand.tensor,
        "index": None if index is None else [_axis(axis) for axis in index],
    }


def _axis(axis: Index) -> dict[str, Any]:
    """An index by its terms; what is nothing, or the divisor 1, is left out."""
    data: dict[str, Any] = {"terms": axis.terms}
    if axis.offset:
        data["offset"] = axis.offset
    if axis.divisor != 1:
        data["divisor"] = axis.divisor
    if axis.reach:
        data["reach"] = axis.reach
    return data


def tensors_json(network: Network) -> Iterator[dict[str, Any]]:
    """Tensors, with the scales and zero points that a network's file gives them beside their
    values; where these are constants of an op, its operands name them."""
    stored = _stored(network)
    for tensor in network.tensors:
        data: dict[str, Any] = {
            "name": tensor.name,
            "shape": tensor.shape,
            "bits": tensor.bits,
            "role": tensor.role,
        }
        if tensor.dtype:
            data["dtype"] = tensor.dtype
        if tensor.name in stored:
            data["quantisation"] = quantisation_json(stored[tensor.name])
        yield data


def _stored(network: Network) -> Mapping[str, Quantisation]:
    """What the file says; nothing where there is none, or none any more."""
    path = Path(network.source)
    if path.suffix != ".tflite" or not path.is_file():
        return {}
    return stored_quantisations(network, path)


def quantisation_json(found: Quantisation) -> dict[str, Any]:
    """A scale and a zero point, or one for each step of an axis; all alike are one."""
    return {
        "scale": _numbers(found.scale),
        "zero_point": _numbers(found.zero_point),
        "axis": found.axis,
    }


def _numbers(array: Array) -> list[float] | list[int]:
    flat = array.reshape(-1)
    flat = flat[:1] if (flat == flat[:1]).all() else flat
    if flat.dtype.kind in "iu":
        return [int(number) for number in flat]
    # As few digits as tell one number of single precision from the next.
    return [float(str(number)) for number in flat.astype(np.float32)]

"""Values of a network's inputs and constants: from its file, from an .npz file, or from a seed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from tilewright.errors import InputError, Problem
from tilewright.network.graph import Network, Op, Tensor
from tilewright.network.kinds import KIND_CLASSES
from tilewright.replay.kernels.quantise import dtype_of
from tilewright.replay.kernels.tile import Array, Quantisation


@dataclass(frozen=True, kw_only=True, eq=False)
class Values:
    """Arrays of inputs and constants by tensor, and the quantisation that a file gives tensors."""

    arrays: Mapping[str, Array]
    quantisation: Mapping[str, Quantisation] = field(default_factory=dict)


def values_of(
    network: Network,
    model_file: Path | None = None,
    *,
    seed: int = 0,
    input_file: Path | None = None,
) -> Values:
    """Values for every input and constant.

    Constants come from the model file (ONNX or TFLite) or, without one, from the seed; inputs from
    the .npz file as far as it has them, else from the seed.

    Raises:
        InputError: a file lacks a value, or has one of another shape.
    """
    found = Values(arrays=seeded_arrays(network, seed))
    if model_file is not None:
        stored = _stored(network, model_file)
        found = Values(arrays={**found.arrays, **stored.arrays}, quantisation=stored.quantisation)
    if input_file is not None:
        given = _archived(network, input_file)
        found = Values(arrays={**found.arrays, **given}, quantisation=found.quantisation)
    return found


def seeded_arrays(network: Network, seed: int) -> dict[str, Array]:
    """Inputs and constants drawn from a seed, each tensor by itself in the order of the network.

    Weights are normally distributed and so small that sums of their products stay near 1.
    Positions in a table lie in the table; whole numbers are spread over a byte's range.
    """
    random = np.random.default_rng(seed)
    rows = _table_rows(network)
    return {
        tensor.name: _drawn(tensor, random, rows.get(tensor.name))
        for tensor in network.tensors
        if tensor.role in ("input", "constant")
    }


def _drawn(tensor: Tensor, random: np.random.Generator, rows: int | None) -> Array:
    dtype = dtype_of(tensor.dtype)
    if rows is not None:
        # Where a file has no types, positions are known by their use alone.
        return random.integers(0, rows, tensor.shape).astype(dtype if tensor.dtype else np.int64)
    if dtype.kind == "b":
        return random.integers(0, 2, tensor.shape).astype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = max(limits.min, -128), min(limits.max, 127)
        return random.integers(low, high + 1, tensor.shape).astype(dtype)
    values = random.standard_normal(tensor.shape, dtype=np.float32)
    if tensor.role == "constant" and values.ndim and values.size:
        values /= np.float32(max(1, tensor.elements // tensor.shape[0])) ** 0.5
    return values.astype(dtype, copy=False)


_AT_A_START = "DYNAMIC_UPDATE_SLICE"
"""A scatter without positions of single elements."""


_CHOICES = ("where", "clip", "min", "max")
"""Kinds whose results are elements of their inputs: so positions are brought into a table."""


def _table_rows(network: Network) -> dict[str, int]:
    """Rows of the smallest table that a tensor has positions in, itself or moved or chosen."""
    rows: dict[str, int] = {}
    for op in reversed(network.ops):
        is_at_a_start = op.attribute("tflite_op") == _AT_A_START
        if op.kind in ("gather", "scatter") and len(op.inputs) > 1 and not is_at_a_start:
            _note(rows, op.inputs[1].tensor, _searched_rows(network, op))
        if op.kind in _CHOICES or op.kind == "cast" or KIND_CLASSES[op.kind] == "move":
            read = op.inputs if op.kind in (*_CHOICES, "concat") else op.inputs[:1]
            for result in op.outputs:
                for operand in read if result.tensor in rows else ():
                    _note(rows, operand.tensor, rows[result.tensor])
    return rows


def _note(rows: dict[str, int], name: str, count: int) -> None:
    rows[name] = min(count, rows.get(name, count))


def _searched_rows(network: Network, op: Op) -> int:
    """The smallest axis that the positions of a gather or scatter go along."""
    table = (op.outputs if op.kind == "scatter" else op.inputs)[0]
    shape = network.by_name[table.tensor].shape
    axis = op.attribute("axis", "")
    if isinstance(axis, int):
        return shape[axis]
    batch = op.attribute("batch_dims", 0)
    first = batch if isinstance(batch, int) else 0
    depth = network.by_name[op.inputs[1].tensor].shape[-1:]
    return min(shape[first : first + sum(depth)], default=1)


def _stored(network: Network, path: Path) -> Values:
    if path.suffix == ".onnx":
        from tilewright.replay.values_onnx import stored_constants

        return Values(arrays=stored_constants(network, path))
    if path.suffix == ".tflite":
        from tilewright.replay.values_tflite import stored_values

        arrays, quantisation = stored_values(network, path)
        return Values(arrays=arrays, quantisation=quantisation)
    raise InputError(
        Problem(file=str(path), message="holds no values", hint="give an ONNX or a TFLite file")
    )


def _archived(network: Network, path: Path) -> dict[str, Array]:
    try:
        with path.open("rb") as stream:
            archive = np.load(stream)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("a single array, without a name")
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        reason = getattr(error, "strerror", None) or "it is no archive of arrays"
        hint = "write one with numpy.savez(file, input_name=array)"
        problem = Problem(file=str(path), message=f"cannot be read: {reason}", hint=hint)
        raise InputError(problem) from error
    problems = []
    known = {tensor.name: tensor for tensor in network.inputs}
    for name, array in arrays.items():
        if name not in known:
            hint = f"its inputs are {', '.join(known)}"
            message = f"the network has no input {name!r}"
            problems.append(Problem(file=str(path), message=message, hint=hint))
        elif array.shape != known[name].shape:
            message = f"{name!r} has shape {array.shape}, not {known[name].shape}"
            problems.append(Problem(file=str(path), message=message))
    if problems:
        raise InputError(*problems)
    return {name: array.astype(dtype_of(known[name].dtype)) for name, array in arrays.items()}

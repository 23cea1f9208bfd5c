"""Loading a network by file or by name of the zoo."""

import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import SupportsIndex

from tilewright.errors import InputError, Problem
from tilewright.garbage import without_garbage_collection
from tilewright.network.graph import Network
from tilewright.network.reading import NetworkReading
from tilewright.network.unmerged import unmerged

_COUNTING = ("int32", "int64", "uint32", "uint64", "bool")
"""Element types of indices, biases and masks, which no quantisation narrows."""
_SUFFIXES = (".onnx", ".tflite", ".yaml", ".yml")
_MOST = 2**53
"""Bytes of a tensor and steps of an op: sums of them stay within 64 bit, and figures exact."""


def load_network(
    name_or_path: str | Path, *, dims: Mapping[str, int] | None = None, bits: int | None = None
) -> Network:
    """Read a network from a file (ONNX, TFLite, ZigZag YAML) or build one of the zoo.

    `dims` gives dynamic dimensions, and options of zoo networks, by name. `bits` makes every
    activation and weight that wide.

    Raises:
        InputError: the network cannot be read; every reason is in it.
    """
    _refuse_wrong_types(dims or {}, bits)
    reading = read_network(str(name_or_path), dims=dims or {}, bits=bits)
    if reading.network is None:
        raise InputError(*(p for p in reading.problems if p.severity == "error"))
    return reading.network


def _refuse_wrong_types(dims: object, bits: object) -> None:
    """Raise InputError unless dims are whole numbers by name, and bits one or None."""
    wrong = []
    if bits is not None and not _is_whole(bits):
        wrong.append(Problem(message=f"bits: {bits!r} is no whole number", hint="such as bits=8"))
    hint = 'such as dims={"batch": 2}'
    if not isinstance(dims, Mapping):
        wrong.append(Problem(message=f"dims: {dims!r} is no mapping of names to sizes", hint=hint))
    else:
        wrong += [
            Problem(message=f"dims: {name!r}: {size!r} is no size by name", hint=hint)
            for name, size in dims.items()
            if not (isinstance(name, str) and _is_whole(size))
        ]
    if wrong:
        raise InputError(*wrong)


def _is_whole(value: object) -> bool:
    return isinstance(value, SupportsIndex) and not isinstance(value, bool)


@without_garbage_collection()
def read_network(name_or_path: str, *, dims: Mapping[str, int], bits: int | None) -> NetworkReading:
    """Like `load_network`, with what is worth a warning."""
    if bits is not None and not 1 <= bits <= 64:
        raise InputError(Problem(message=f"{bits} bits per element: from 1 to 64 are possible"))
    reading = _read(name_or_path, dims, bits)
    if reading.network is None or (not dims and bits is None):
        return reading
    network = replace(reading.network, dims=tuple(sorted(dims.items())), bits=bits)
    return NetworkReading(network, reading.problems)


def _read(name_or_path: str, dims: Mapping[str, int], bits: int | None) -> NetworkReading:
    path = Path(name_or_path)
    if path.suffix not in _SUFFIXES and len(path.parts) == 1 and not os.path.isfile(path):
        from tilewright.network.zoo import build

        options = {**dims, "bits": bits} if bits is not None else dict(dims)
        return NetworkReading(build(name_or_path, options))
    reading = _read_file(path, dims)
    if reading.network is not None:
        _refuse_beyond_counting(reading.network, path)
    if reading.network is None or bits is None:
        return reading
    return NetworkReading(with_bits(reading.network, bits), reading.problems)


def with_bits(network: Network, bits: int) -> Network:
    """The same network with activations and weights of `bits`; biases and indices stay.

    What is that wide keeps its type, and with it what its values mean.
    """
    data = {o.tensor for op in network.ops for o in (*op.outputs, *op.inputs) if o.name != "B"}
    tensors = tuple(
        replace(t, bits=bits, dtype="")
        if t.name in data and t.dtype not in _COUNTING and t.bits != bits
        else t
        for t in network.tensors
    )
    return replace(network, tensors=tensors)


def _refuse_beyond_counting(network: Network, path: Path) -> None:
    """A tensor or an op of more than `_MOST` is a broken file, not a big network."""
    sizes = [(f"tensor {t.name!r} of shape {t.shape}", t.size_bytes) for t in network.tensors]
    steps = [(f"op {op.name!r} with the loops {op.sizes}", op.points) for op in network.ops]
    problems = [
        Problem(
            file=str(path),
            message=f"{what} is not possible: {count:,} {unit}, more than {_MOST:,}",
            hint="are the sizes of its dims right?",
        )
        for found, unit in ((sizes, "bytes"), (steps, "steps"))
        for what, count in found
        if count > _MOST
    ]
    if problems:
        raise InputError(*problems)


def _read_file(path: Path, dims: Mapping[str, int]) -> NetworkReading:
    _refuse_no_file(path)
    match path.suffix:
        case ".onnx":
            from tilewright.network.onnx_reader import read_onnx

            return NetworkReading(unmerged(read_onnx(path, dims=dims)))
        case ".tflite":
            from tilewright.network.tflite_reader import read_tflite

            return NetworkReading(unmerged(read_tflite(path, dims=dims)))
        case ".yaml" | ".yml":
            return _read_yaml(path, dims)
        case _:
            known = ", ".join(_SUFFIXES)
            message = f"networks are files ending in {known}, or names of the zoo"
            raise InputError(Problem(file=str(path), message=message))


def _refuse_no_file(path: Path) -> None:
    """Raise InputError unless there is a plain file; what it holds is told by its name."""
    hint = ""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return
        reason = "it is a folder"
        if not stat.S_ISDIR(mode):
            reason = "it is a pipe or a device, whose name does not say what it holds"
            hint = f"write it to a file ending in {', '.join(_SUFFIXES)}"
    except (FileNotFoundError, NotADirectoryError, ValueError):
        reason = "no such file"
    except OSError as error:
        reason = error.strerror or str(error)
    raise InputError(Problem(file=str(path), message=f"cannot be read: {reason}", hint=hint))


def _read_yaml(path: Path, dims: Mapping[str, int]) -> NetworkReading:
    from tilewright.document import read_document
    from tilewright.network.zigzag_reader import is_workload, read_zigzag

    document = read_document(path)
    if not is_workload(document.data):
        message = "this is no network: a workload file is a list of layers with an equation each"
        raise InputError(document.problem((), message))
    if dims:
        message = f"a workload file has no dynamic dimensions; got {', '.join(dims)}"
        raise InputError(Problem(file=str(path), message=message))
    return read_zigzag(document, path.stem)

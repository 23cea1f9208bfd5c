"""The way in: a file's bytes, then what stands in them, then what it means."""

from collections.abc import Mapping
from mmap import ACCESS_READ, mmap
from pathlib import Path

from tilewright.errors import InputError, Problem
from tilewright.network.graph import Network
from tilewright.network.tflite_reader.decode import FormatError, decode
from tilewright.network.tflite_reader.interpret import interpret


def read_tflite(path: Path, *, dims: Mapping[str, int]) -> Network:
    """The network in a TFLite file; raises InputError with all that is wrong with it.

    `dims` gives axes of inputs other sizes than the file records, by `<input>.<axis>`. A constant
    that DEQUANTIZE or DENSIFY unpacks is read as it is stored; what follows from shapes alone is
    worked out and leaves no ops.
    """
    content = _content(path)
    try:
        model = decode(content)
    except FormatError as error:
        raise InputError(
            Problem(
                file=str(path),
                message=f"cannot be read as a TFLite model: {error}",
                hint="is the file complete, and of the kind that its name says?",
            )
        ) from error
    return interpret(model, path, dims)


def _content(path: Path) -> bytes | mmap:
    """The file's bytes, mapped: weights that nobody looks at stay on disk."""
    try:
        if not path.is_file():
            raise FileNotFoundError("no such file")
        with path.open("rb") as stream:
            empty = not stream.read(1)
            return b"" if empty else mmap(stream.fileno(), 0, access=ACCESS_READ)
    except OSError as error:
        raise InputError(
            Problem(file=str(path), message=f"cannot be opened: {error.strerror or error}")
        ) from error

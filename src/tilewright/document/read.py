"""Reading a text file, and YAML of any kind from it."""

from pathlib import Path
from typing import BinaryIO

from tilewright.document.content import Document
from tilewright.document.plain_yaml import plain_data
from tilewright.errors import InputError, Problem

_MAX_BYTES = 2**20
_PART_BYTES = 2**20


def read_document(path: Path, *, last_key_wins: bool = False) -> Document:
    """Parse a YAML file into plain data.

    A key that stands twice is an error, or with `last_key_wins` a warning, for files that other
    tools accept.

    Raises:
        InputError: the file cannot be read, is no YAML, or is built to exhaust its reader.
    """
    return parse_document(read_text(path), str(path), last_key_wins=last_key_wins)


def parse_document(text: str, file: str, *, last_key_wins: bool = False) -> Document:
    """Like `read_document`, for a text that was read already."""
    plain = plain_data(text)
    if plain is not None:
        return Document(file, *plain)
    from tilewright.document.any_yaml import parse_any_yaml  # it takes 20 ms to import

    return parse_any_yaml(text, file, last_key_wins=last_key_wins)


def read_text(path: Path, most_bytes: int = _MAX_BYTES) -> str:
    """The text of a file; by default of a size that a person could have written.

    Raises:
        InputError: it cannot be read, is larger, or is no text.
    """
    try:
        with path.open("rb") as stream:
            raw = _start_of(stream, most_bytes + 1)
        if len(raw) > most_bytes:
            message = f"is larger than {most_bytes:,} bytes, which no such file should be"
            raise InputError(Problem(file=str(path), message=message))
        return raw.decode("utf-8")
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise InputError(Problem(file=str(path), message=message)) from None
    except ValueError:
        message = "is no text file (UTF-8 is needed)"
        raise InputError(Problem(file=str(path), message=message)) from None


def _start_of(stream: BinaryIO, most_bytes: int) -> bytes:
    """The first bytes of a file, or of what is no file and has no end; room is taken as they
    come."""
    parts: list[bytes] = []
    left = most_bytes
    while left and (part := stream.read(min(left, _PART_BYTES))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)

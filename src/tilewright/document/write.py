"""Writing text files; where one cannot be written is told like any other wrong argument."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tilewright.errors import InputError, Problem


def write_text(path: Path, text: str) -> None:
    """Write a text file.

    Raises:
        InputError: it cannot be written.
    """
    with unwritable_refused(path):
        path.write_text(text, encoding="utf-8")


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by file name into a folder, made if need be; the files written.

    Raises:
        InputError: the folder cannot be made, or a file cannot be written.
    """
    with unwritable_refused(folder):
        folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_text(path, text)
    return paths


def refuse_unwritable(folder: Path) -> None:
    """Raise InputError if a folder clearly cannot be made or written into; nothing is made.

    Whoever asks this first does not lose an hour's result to a misspelt path.
    """
    place = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not place.is_dir():
        message = f"cannot be written: {place} is no folder"
        raise InputError(Problem(file=str(folder), message=message))
    if not os.access(place, os.W_OK | os.X_OK):
        message = f"cannot be written: no permission to write into {place}"
        raise InputError(Problem(file=str(folder), message=message))


@contextmanager
def unwritable_refused(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write into an InputError that names the path."""
    try:
        yield
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}"
        raise InputError(Problem(file=str(path), message=message)) from None

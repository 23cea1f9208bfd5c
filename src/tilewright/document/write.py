"""Writing text files; where one cannot be written is told like any other wrong argument."""

import os
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tilewright.errors import InputError, Problem


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    write_files({path: text.encode()})


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by file name into a folder, made if need be; the files written.

    Raises:
        InputError: the folder cannot be made, or a file cannot be written.
    """
    make_folder(folder)
    contents = {folder / name: text.encode() for name, text in texts.items()}
    write_files(contents)
    return list(contents)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, if they are not there.

    Raises:
        InputError: it cannot be made.
    """
    with _unwritable_refused(folder):
        folder.mkdir(parents=True, exist_ok=True)


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write files that belong together: a full disk or an interrupt leaves those that were there.

    Each is written beside its place first. Links and what is no plain file, such as `/dev/stdout`,
    and a file in a folder that may not be written into, are written where they are.

    Raises:
        InputError: one of them cannot be written.
    """
    waiting: list[tuple[Path, Path]] = []
    try:
        for number, (path, content) in enumerate(contents.items()):
            with _unwritable_refused(path):
                if path.is_symlink() or (path.exists() and not _is_replaceable(path)):
                    path.write_bytes(content)
                    continue
                name = f".tilewright-{os.getpid()}-{threading.get_ident()}-{number}"
                beside = path.with_name(name)
                waiting.append((beside, path))
                beside.write_bytes(content)
                if path.exists():
                    beside.chmod(stat.S_IMODE(path.stat().st_mode))
        for beside, path in waiting:
            with _unwritable_refused(path):
                beside.replace(path)
    finally:
        for beside, _ in waiting:
            with suppress(OSError):
                beside.unlink()


def _is_replaceable(path: Path) -> bool:
    may_write = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)
    return path.is_file() and may_write


def refuse_unwritable(folder: Path) -> None:
    """Raise InputError if a folder clearly cannot be made or written into; nothing is made.

    Whoever asks this first does not lose an hour's result to a misspelt path.
    """
    place = _nearest(folder)
    if not place.is_dir():
        message = f"cannot be written: {place} is no folder"
        raise InputError(Problem(file=str(folder), message=message))
    if not os.access(place, os.W_OK | os.X_OK):
        message = f"cannot be written: no permission to write into {place}"
        raise InputError(Problem(file=str(folder), message=message))


def _nearest(folder: Path) -> Path:
    """The folder, or that of those above it which is there."""
    for place in (folder, *folder.absolute().parents):
        with _unwritable_refused(folder), suppress(FileNotFoundError, NotADirectoryError):
            place.stat()
            return place
    return Path(folder.absolute().anchor)


@contextmanager
def _unwritable_refused(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write into an InputError that names the path."""
    try:
        yield
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}"
        raise InputError(Problem(file=str(path), message=message)) from None

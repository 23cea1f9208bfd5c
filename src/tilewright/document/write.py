"""Writing text files; where one cannot be written is told like any other wrong argument."""

import os
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EISDIR
from pathlib import Path

from tilewright.errors import InputError, Problem

_STAGED = ".tilewright-"
_FINISHED = ".whole"


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
    """Write files that belong together: a full disk, an interrupt or a kill leaves all of those
    that were there, or all of the new ones.

    They are written into a folder of their own beside their places; when all are whole, that folder
    gets another name, and from then on they only change places. `settle` ends what a killed writer
    began. A link is replaced and not followed. Devices, pipes, and a file that may not be
    replaced, are written where they are, or refused.

    Raises:
        InputError: one of them cannot be written.
    """
    staged: dict[Path, list[tuple[Path, bytes]]] = {}
    for path, content in contents.items():
        with _unwritable_refused(path):
            if _is_written_in_place(path):
                path.write_bytes(content)
            elif path.is_dir() and not path.is_symlink():
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
            else:
                staged.setdefault(path.parent, []).append((path, content))
    for folder, files in staged.items():
        settle(folder)
        _write_together(folder, files)


def _write_together(folder: Path, files: list[tuple[Path, bytes]]) -> None:
    name = f"{_STAGED}{os.getpid()}-{threading.get_ident()}"
    unfinished, finished = folder / name, folder / f"{name}{_FINISHED}"
    try:
        for path, content in files:
            with _unwritable_refused(path):
                unfinished.mkdir(exist_ok=True)
                beside = unfinished / path.name
                beside.write_bytes(content)
                if path.is_file() and not path.is_symlink():
                    beside.chmod(stat.S_IMODE(path.stat().st_mode))
        with _unwritable_refused(folder):
            unfinished.rename(finished)
            _put_in_place(finished)
    finally:
        _remove(unfinished)


def _put_in_place(finished: Path) -> None:
    for path in sorted(finished.iterdir()):
        path.replace(finished.parent / path.name)
    finished.rmdir()


def _remove(unfinished: Path) -> None:
    with suppress(OSError):
        for path in unfinished.iterdir():
            path.unlink()
        unfinished.rmdir()


def settle(folder: Path) -> None:
    """End what killed writers began in a folder: whole sets of files get their places, and what is
    not whole goes. Whoever may not write there leaves it."""
    with suppress(OSError):
        for left in sorted(folder.glob(f"{_STAGED}*")):
            writer = left.name.removeprefix(_STAGED).partition("-")[0]
            if not left.is_dir() or left.is_symlink() or _is_running(writer):
                continue
            if left.name.endswith(_FINISHED):
                _put_in_place(left)
            else:
                _remove(left)


def _is_running(process: str) -> bool:
    if not process.isdecimal() or int(process) >= 2**31:
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_written_in_place(path: Path) -> bool:
    """Whether a path leads to no plain file, such as `/dev/stdout`, or its folder is closed."""
    if path.absolute().parts[1:2] in (("dev",), ("proc",)):
        return True
    if path.is_symlink() or not path.exists() or path.is_dir():
        return False
    may_replace = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)
    return not (path.is_file() and may_replace)


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

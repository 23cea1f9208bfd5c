"""Files are written whole or not at all."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tilewright.document import settle, write_text, write_texts
from tilewright.errors import InputError


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """As on a disk that is full: a larger file is cut off, and writing it fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_disk_that_fills_up_leaves_the_files_that_were_there(tmp_path: Path) -> None:
    old = {"plan.json": "old plan", "report.html": "old report"}
    write_texts(tmp_path, old)
    with files_of_at_most(1000), pytest.raises(InputError) as refused:
        write_texts(tmp_path, {"plan.json": "new plan", "report.html": "x" * 2000})
    assert str(refused.value) == f"{tmp_path}/report.html: cannot be written: File too large"
    assert contents(tmp_path) == old


def test_a_disk_that_fills_up_leaves_no_half_of_a_new_file(tmp_path: Path) -> None:
    with files_of_at_most(1000), pytest.raises(InputError):
        write_text(tmp_path / "map.txt", "x" * 2000)
    assert contents(tmp_path) == {}


def test_a_new_file_has_the_mode_of_the_one_it_replaces(tmp_path: Path) -> None:
    file, other = tmp_path / "file", tmp_path / "other"
    write_text(file, "first")
    other.touch()
    assert file.stat().st_mode == other.stat().st_mode
    file.chmod(0o640)
    write_text(file, "second")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("second", 0o640)


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    """Whoever put a link into a folder that others write to would else choose what they lose."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "file").write_text("precious")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "far" / "file")
    write_text(link, "text")
    assert not link.is_symlink()
    assert link.read_text() == "text"
    assert contents(tmp_path / "far") == {"file": "precious"}


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    file.chmod(0o444)
    with pytest.raises(InputError, match="cannot be written: Permission denied"):
        write_text(file, "text")
    assert contents(tmp_path) == {"file": "kept"}


KILLED = """
import os, signal, sys
from pathlib import Path
from tilewright.document import write, write_texts
calls = 0
def counted(path, *arguments, original=getattr(Path, sys.argv[2]), **named):
    global calls
    calls += 1
    if calls == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return original(path, *arguments, **named)
setattr(Path, sys.argv[2], counted)
write_texts(Path(sys.argv[1]), {"a": "new", "b": "new", "c": "new"})
"""


@pytest.mark.parametrize(
    ("method", "call", "text"),
    [("write_bytes", 1, "old"), ("write_bytes", 3, "old"), ("rename", 1, "old"),
     ("replace", 1, "new"), ("replace", 2, "new"), ("replace", 3, "new"), ("rmdir", 1, "new")],
)  # fmt: skip
def test_a_killed_writer_leaves_the_old_or_the_new_files_and_nothing_else(
    tmp_path: Path, method: str, call: int, text: str
) -> None:
    write_texts(tmp_path, dict.fromkeys("abc", "old"))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), method, str(call)], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    settle(tmp_path)
    assert contents(tmp_path) == dict.fromkeys("abc", text)


def test_what_a_writer_at_work_has_written_so_far_stays(tmp_path: Path) -> None:
    at_work = tmp_path / f".tilewright-{os.getpid()}-1"
    at_work.mkdir()
    write_text(tmp_path / "file", "text")
    assert at_work.is_dir()


def test_what_is_no_plain_file_is_written_where_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no such device")
def test_a_file_behind_standard_output_keeps_what_is_printed_to_it(tmp_path: Path) -> None:
    script = "from tilewright.document import write_text; from pathlib import Path\n"
    script += "print('before', flush=True); write_text(Path('/dev/stdout'), 'text')\n"
    piped = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert piped.stdout == b"before\ntext"
    with (tmp_path / "file").open("a") as file:
        subprocess.run([sys.executable, "-c", script], stdout=file, check=True)
        file.write(" behind")
    assert (tmp_path / "file").read_text().endswith("text behind")


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(InputError, match="cannot be written: Is a directory"):
        write_text(tmp_path / "file", "text")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_file_whose_folder_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        write_text(tmp_path / "gone" / "file", "text")

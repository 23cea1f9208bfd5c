"""Files are written whole or not at all."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tilewright.document import write_text, write_texts
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


def test_a_link_still_leads_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "far" / "file")
    for text in ("first", "second"):
        write_text(link, text)
        assert link.is_symlink()
        assert contents(tmp_path / "far") == {"file": text}


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

"""The wheel in an empty environment: what is imported is declared, and what is needed is in it."""

import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OFFLINE = ("No matching distribution found", "Could not find a version", "Connection", "timed out")
IMPORT_ALL = """
import importlib, pkgutil, tilewright
names = [m.name for m in pkgutil.walk_packages(tilewright.__path__, "tilewright.")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def pip(python: Path, arguments: Sequence[str]) -> None:
    """Run pip; skip the test where it cannot get packages."""
    finished = subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode and any(sign in finished.stderr for sign in OFFLINE):
        pytest.skip(f"packages cannot be had here: {finished.stderr.strip().splitlines()[-1]}")
    assert finished.returncode == 0, finished.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip(Path(sys.executable), ["wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)])
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an environment that holds the wheel and what it declares, nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True, symlinks=sys.platform != "win32")
    scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
    pip(scripts / "python", ["install", "--quiet", str(wheel)])
    return scripts


def output(folder: Path, *arguments: str) -> str:
    finished = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=folder)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_wheel_holds_the_library_the_licence_and_nothing_of_the_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    files = sorted(path.name for path in (ROOT / "src/tilewright/machine/library").glob("*.yaml"))
    held = sorted(Path(n).name for n in names if n.startswith("tilewright/machine/library/"))
    assert held == files
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "tilewright/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "examples/"))]


def test_every_module_can_be_imported(bin_folder: Path, tmp_path: Path) -> None:
    found = output(tmp_path, str(bin_folder / "python"), "-W", "error", "-c", IMPORT_ALL)
    assert int(found) > 50


def test_the_command_runs(bin_folder: Path, tmp_path: Path) -> None:
    command = str(bin_folder / "tilewright")
    assert "Usage: tilewright" in output(tmp_path, command, "--help")
    assert "416,520" in output(tmp_path, command, "show", "lenet5")
    assert output(tmp_path, command, "check", "npe8") == ""


def test_tflite_files_are_read_without_an_extra(bin_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "some.tflite").write_bytes(b"anything")
    finished = subprocess.run(
        [bin_folder / "tilewright", "show", "some.tflite"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert finished.returncode == 2
    assert "cannot be read as a TFLite model" in finished.stderr

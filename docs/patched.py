"""Runs a script with a changed copy of the package: how-to pages show the change and its effect."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

_FILE = re.compile(r"^--- \S+\n\+\+\+ (\S+)\n", re.MULTILINE)


def output_with(change: Path, script: Path, root: Path) -> str:
    """What a script prints when the package under `root` is changed as a diff says."""
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        package = copy / "src" / "tilewright"
        shutil.copytree(root / "src" / "tilewright", package)
        apply(change.read_text("utf-8"), copy)
        environment = {**os.environ, "PYTHONPATH": str(package.parent)}
        finished = subprocess.run(
            [sys.executable, root / script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if finished.returncode:
        raise SystemExit(f"{script} with {change.name}: {finished.stderr}")
    return finished.stdout


def apply(change: str, folder: Path) -> None:
    """Change files as a unified diff says; lines are found by their text, not by their numbers."""
    _, *parts = _FILE.split(change)
    for name, hunks in zip(parts[::2], parts[1::2], strict=True):
        path = folder / name
        text = path.read_text("utf-8")
        for hunk in re.split(r"^@@.*\n", hunks, flags=re.MULTILINE)[1:]:
            lines = [line for line in hunk.splitlines(keepends=True) if line[0] in " +-"]
            before = "".join(line[1:] for line in lines if line[0] != "+")
            after = "".join(line[1:] for line in lines if line[0] != "-")
            if text.count(before) != 1:
                raise SystemExit(
                    f"{name}: these lines are there {text.count(before)} times:\n{before}"
                )
            text = text.replace(before, after)
        path.write_text(text, "utf-8")
